// Rows of text: a number, coloured tokens, marks. Shared by the text and the diff.

const SHOWN = 4000; // characters of a line that are shown before one asks for the rest

// Cuts tokens where ranges [from, to) begin and end, and marks what lies in them.
function marked(tokens, ranges) {
  if (!ranges || !ranges.length) return tokens;
  const out = [];
  let at = 0;
  for (const [kind, text] of tokens) {
    let from = 0;
    for (const [start, end] of ranges) {
      const a = Math.max(start - at, from);
      const b = Math.min(end - at, text.length);
      if (a >= b) continue;
      if (a > from) out.push([kind, text.slice(from, a)]);
      out.push([kind, text.slice(a, b), true]);
      from = b;
    }
    if (from < text.length) out.push([kind, text.slice(from)]);
    at += text.length;
  }
  return out;
}

function rangesOf(line, query) {
  if (!query) return null;
  const all = [];
  const text = line.toLowerCase();
  const wanted = query.toLowerCase();
  for (let i = text.indexOf(wanted); i >= 0 && all.length < 200; i = text.indexOf(wanted, i + wanted.length)) {
    all.push([i, i + wanted.length]);
  }
  return all;
}

// The inside of a row. `context` has language, names (name -> link), sources (whether places are links), query.
function lineContent(line, state, context, ranges) {
  const shown = line.length > SHOWN ? line.slice(0, SHOWN) : line;
  const tokens = marked(tokenize(shown, context.language, state), ranges || rangesOf(shown, context.query));
  const out = tokens.map(([kind, text, mark]) => token(kind, text, mark, context));
  if (line.length > SHOWN) out.push(rest(line));
  return out;
}

function token(kind, text, mark, context) {
  const link = kind === "src" ? sourceLink(text, context) : context.names && context.names.get(text);
  const tag = mark ? "mark" : link ? "a" : kind && kind !== "id" ? "span" : null;
  if (!tag) return text;
  return h(tag, { class: kind && kind !== "id" ? kind : null, href: tag === "a" ? link : null }, text);
}

function sourceLink(place, context) {
  if (!context.sources) return null;
  const colon = place.lastIndexOf(":");
  return sourceRoute(context.side, place.slice(0, colon), place.slice(colon + 1));
}

function rest(line) {
  const left = line.length - SHOWN;
  const more = button(
    `… ${number(left)} more characters`,
    () => {
      more.replaceWith(h("span", { class: "rest" }, line.slice(SHOWN)));
    },
    { class: "more" },
  );
  return more;
}

// Blocks of rows that fill when they come near the window: `fill(from, to)` gives the rows.
function lazyBlocks(count, size, plain, fill) {
  const root = h("div", { class: "blocks" });
  const blocks = [];
  const watch = new IntersectionObserver(
    (entries) => entries.filter((e) => e.isIntersecting).forEach((e) => show(e.target)),
    { rootMargin: "800px" },
  );
  const show = (block) => {
    if (block.dataset.full) return;
    block.dataset.full = "1";
    watch.unobserve(block);
    const from = Number(block.dataset.from);
    block.replaceChildren(...fill(from, Math.min(from + size, count)));
  };
  for (let from = 0; from < count; from += size) {
    const to = Math.min(from + size, count);
    const block = h("div", { class: "block", "data-from": from }, h("pre", {}, plain(from, to)));
    block.style.containIntrinsicSize = `auto ${(to - from) * 1.55}em`;
    blocks.push(block);
    watch.observe(block);
  }
  root.append(...blocks);
  return { root, show: (row) => show(blocks[Math.floor(row / size)]) };
}
