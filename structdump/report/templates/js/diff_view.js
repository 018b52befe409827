// Two texts side by side, or one above the other where there is no room.

const SIGNS = { gone: "removed", new: "added" };

// `left` and `right`: {text, language, side, names}; `options`: loose, split.
function diffView(left, right, options) {
  const sides = [left, right].map((side) => {
    const lines = side.text.replace(/\n$/, "").split("\n");
    return { ...side, lines, states: lineStates(lines, side.language), sources: true };
  });
  const [a, b] = sides;
  const { rows, rough } = diffLines(a.lines, b.lines, options.loose);
  const { gone, added } = countChanges(rows);
  const root = h("div", {
    class: `diff ${options.split ? "split" : "unified"}`,
    tabindex: "0",
    role: "region",
    "aria-label": "Differences",
  });
  root.style.setProperty("--digits", `${String(Math.max(a.lines.length, b.lines.length)).length}ch`);
  const draw = (row) => (options.split ? splitRow(row, a, b) : unifiedRows(row, a, b));
  const plain = (row) => (row.fold ? "" : a.lines[row.a] || b.lines[row.b] || "").slice(0, 200);
  const put = (list) => {
    const blocks = lazyBlocks(
      list.length,
      BLOCK,
      (from, to) => list.slice(from, to).map(plain).join("\n"),
      (from, to) => list.slice(from, to).flatMap((row) => (row.fold ? [fold(row.fold)] : draw(row))),
    );
    return blocks.root;
  };
  const fold = (hidden) => {
    const open = button(`${plural(hidden.length, "unchanged line")}`, () => open.replaceWith(put(hidden)), {
      class: "fold",
    });
    return open;
  };
  root.append(gone || added ? put(foldSame(rows)) : h("p", { class: "empty" }, "No differences."));
  return { root, gone, added, rough };
}

function cell(side, i, kind, ranges) {
  if (i < 0) return h("div", { class: "cell none" });
  const sign = SIGNS[kind] ? unseen(`${SIGNS[kind]}: `) : null;
  const code = h("code", {}, lineContent(side.lines[i], side.states[i], side, ranges));
  return h("div", { class: `cell ${kind}`, "data-n": i + 1 }, sign, code);
}

function splitRow(row, a, b) {
  const words = row.kind === "changed" ? diffWords(a.lines[row.a], b.lines[row.b]) : null;
  const same = row.kind === "same";
  return [
    h(
      "div",
      { class: "pair" },
      cell(a, row.a, same ? "same" : "gone", words && words.left),
      cell(b, row.b, same ? "same" : "new", words && words.right),
    ),
  ];
}

function unifiedRows(row, a, b) {
  if (row.kind === "same") return [cell(b, row.b, "same")];
  const words = row.kind === "changed" ? diffWords(a.lines[row.a], b.lines[row.b]) : null;
  const out = [];
  if (row.a >= 0) out.push(cell(a, row.a, "gone", words && words.left));
  if (row.b >= 0) out.push(cell(b, row.b, "new", words && words.right));
  return out;
}
