// A text with line numbers and colours; lines can be chosen, by mouse or with the arrow keys.

const BLOCK = 80;

// `options`: language, side, names, query, marks (a Set of line numbers from 0), choose(line), label.
function textView(text, options) {
  const lines = text.split("\n");
  if (lines.length > 1 && lines[lines.length - 1] === "") lines.pop();
  const states = lineStates(lines, options.language);
  const marks = options.marks || new Set();
  const context = { ...options, sources: true };
  const row = (i) => {
    const classes = ["row", marks.has(i) && "hit", options.touched && options.touched(i) && "made"].filter(Boolean);
    return h(
      "div",
      { class: classes.join(" "), "data-n": i + 1 },
      h("code", {}, lineContent(lines[i], states[i], context)),
    );
  };
  const blocks = lazyBlocks(
    lines.length,
    BLOCK,
    (from, to) =>
      lines
        .slice(from, to)
        .map((line) => (line.length > SHOWN ? line.slice(0, SHOWN) : line))
        .join("\n"),
    (from, to) => Array.from({ length: to - from }, (_, i) => row(from + i)),
  );
  const width = String(lines.length).length;
  const root = h("div", { class: "text", tabindex: "0", role: "region", "aria-label": options.label }, blocks.root);
  root.style.setProperty("--digits", `${width}ch`);
  let chosen = -1;
  const view = {
    root,
    lines,
    rowAt(i) {
      blocks.show(i);
      return root.querySelector(`.row[data-n="${i + 1}"]`);
    },
    goTo(i, quiet) {
      const target = view.rowAt(i);
      if (target) target.scrollIntoView({ block: quiet ? "nearest" : "center" });
    },
    choose(i, quiet) {
      if (i < 0 || i >= lines.length) return;
      for (const old of root.querySelectorAll(".chosen")) old.classList.remove("chosen");
      chosen = i;
      const target = view.rowAt(i);
      if (target) target.classList.add("chosen");
      view.goTo(i, quiet);
      if (options.choose) options.choose(i);
    },
  };
  root.addEventListener("click", (event) => {
    const target = event.target.closest(".row");
    const plain = !event.target.closest("a, button") && getSelection().isCollapsed;
    if (target && plain) view.choose(Number(target.dataset.n) - 1, true);
  });
  root.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || chosen < 0) return;
    event.preventDefault();
    view.choose(chosen + step, true);
  });
  return view;
}
