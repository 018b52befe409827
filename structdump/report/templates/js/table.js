// A table that sorts by a click on a heading.

const ROWS_SHOWN = 300;

// `columns`: {title, value(row), cell(row), numeric}; one whose values are all empty is left out.
function sortableTable(caption, columns, rows, sort) {
  const shown = columns.filter((column) => rows.some((row) => !isEmpty(column.value(row))));
  let limit = ROWS_SHOWN;
  let order = sort || null;
  const body = h("tbody");
  const heads = shown.map((column) => {
    const head = h("th", { scope: "col", class: column.numeric ? "num" : null });
    head.append(button(column.title, () => turn(column)));
    return head;
  });
  const more = button(
    "",
    () => {
      limit = Infinity;
      draw();
    },
    { class: "more" },
  );
  const turn = (column) => {
    const again = order && order.title === column.title;
    order = { title: column.title, down: again ? !order.down : Boolean(column.numeric) };
    draw();
  };
  const draw = () => {
    const column = order && shown.find((c) => c.title === order.title);
    const sorted = column
      ? [...rows].sort((x, y) => compareValues(column.value(x), column.value(y), order.down))
      : rows;
    heads.forEach((head, i) => {
      const active = column === shown[i];
      if (active) head.setAttribute("aria-sort", order.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    body.replaceChildren(...sorted.slice(0, limit).map(line));
    more.hidden = rows.length <= limit;
    more.textContent = `Show all ${number(rows.length)} rows`;
  };
  const line = (row) =>
    h(
      "tr",
      {},
      shown.map((column, i) => entry(column, row, i === 0)),
    );
  draw();
  const table = h("table", {}, h("caption", { class: "unseen" }, caption), h("thead", {}, h("tr", {}, heads)), body);
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, table, more);
}

function entry(column, row, first) {
  const content = column.cell ? column.cell(row) : column.value(row);
  const text = column.numeric && typeof content === "number" ? number(content) : content;
  const shown = typeof text === "string" ? cut(text, 400) : text;
  const attributes = {
    scope: first ? "row" : null,
    class: column.numeric ? "num" : column.wide ? "wide" : null,
    "data-title": column.title,
  };
  return h(first ? "th" : "td", attributes, isEmpty(column.value(row)) ? null : h("div", {}, shown));
}

function isEmpty(value) {
  return value === null || value === undefined || value === "";
}

// Empty values stand last, whichever way the rest is sorted.
function compareValues(x, y, down) {
  if (isEmpty(x) || isEmpty(y)) return isEmpty(x) - isEmpty(y);
  const order =
    typeof x === "number" && typeof y === "number"
      ? x - y
      : String(x).localeCompare(String(y), "en", { numeric: true });
  return down ? -order : order;
}
