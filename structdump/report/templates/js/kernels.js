// Kernels of all compiles, as a table.

function kernelsPage() {
  const roles = ["kernel", "candidate"];
  const rows = artifactRows().filter((row) => roles.includes((row.a || row.b).kind) && (row.a || row.b).kernel);
  if (!rows.length) return emptyPage("Kernels", "The bundle lists no kernels.");
  const used = rows.filter((row) => (row.a || row.b).kind === "kernel");
  const tried = rows.length - used.length;
  const page = h(
    "article",
    {},
    h("h1", {}, "Kernels"),
    h(
      "p",
      { class: "facts" },
      h("span", {}, `${plural(used.length, "kernel")} that run`),
      tried ? h("span", {}, plural(tried, "candidate that lost", "candidates that lost")) : null,
    ),
  );
  const filtered = filterBox(
    "Filter kernels by name, op or backend",
    (text, all) => {
      const list = all ? rows : used;
      return kernelTable(text ? list.filter((row) => kernelText(row).includes(text)) : list);
    },
    tried ? "With candidates" : null,
  );
  page.append(filtered);
  return page;
}

function kernelText(row) {
  return [row.a, row.b]
    .filter(Boolean)
    .map((a) => [a.kernel.name, a.kernel.backend, a.compile_id, ...(a.kernel.ops || [])].join(" "))
    .join(" ")
    .toLowerCase();
}

function kernelTable(rows) {
  const of = (row) => row.a || row.b;
  const calls = largest(rows, (row) => of(row).kernel.calls || 1);
  const time = largest(rows, (row) => kernelSeconds(of(row)));
  const field = (title, name) => ({ title, numeric: true, value: (row) => of(row).kernel[name] });
  return sortableTable(
    "Kernels",
    [
      {
        title: "Kernel",
        wide: true,
        value: (row) => of(row).kernel.name,
        cell: (row) =>
          h(
            "a",
            { class: "stage mono", href: stageLink(of(row)) },
            mark(stateOf(of(row)) === "omitted" ? "omitted" : "plain"),
            cut(of(row).kernel.name, 100),
          ),
      },
      { title: "A and B", value: kernelVerdict },
      {
        title: "Compile",
        value: (row) => of(row).compile_id,
        cell: (row) => (of(row).compile ? compileRef(of(row).side, of(row).compile_id) : null),
      },
      { title: "Part", value: (row) => of(row).direction },
      { title: "Backend", value: (row) => of(row).kernel.backend },
      {
        title: "Role",
        value: (row) => (of(row).kernel.role && of(row).kernel.role !== "used" ? of(row).kernel.role : null),
      },
      {
        title: "ATen ops",
        wide: true,
        value: (row) => (of(row).kernel.ops || []).join(", ") || null,
        cell: (row) =>
          h(
            "span",
            { class: "mono small" },
            cut((of(row).kernel.ops || []).map((op) => op.replace(/^aten\./, "")).join(", "), 120),
          ),
      },
      {
        title: "Time",
        numeric: true,
        value: (row) => kernelSeconds(of(row)),
        cell: (row) => bar(kernelSeconds(of(row)), time, seconds(kernelSeconds(of(row)))),
      },
      {
        title: "Calls",
        numeric: true,
        value: (row) => of(row).kernel.calls || 1,
        cell: (row) => bar(of(row).kernel.calls || 1, calls, number(of(row).kernel.calls || 1)),
      },
      field("Loads", "loads"),
      field("Stores", "stores"),
      field("Reductions", "reductions"),
      {
        title: "Config",
        value: (row) => (of(row).kernel.best_config ? configText(of(row).kernel.best_config) : null),
        cell: (row) =>
          of(row).kernel.best_config
            ? h("span", { class: "mono small one-line" }, cut(configText(of(row).kernel.best_config), 60))
            : null,
      },
      { title: "Size", numeric: true, value: (row) => of(row).bytes, cell: (row) => bytes(of(row).bytes) },
    ],
    rows,
  );
}

// The benchmarked time of a kernel, which Inductor states in milliseconds.
function kernelSeconds(artifact) {
  const match = /^\s*([\d.]+(?:e[+-]?\d+)?)\s*(ms)?/.exec(artifact.kernel.performance || "");
  return match ? Number(match[1]) / 1e3 : null;
}

function kernelVerdict(row) {
  const verdict = verdictOf(row);
  if (verdict !== "same" && verdict !== null) return verdict;
  if (!row.a || !row.b) return null;
  const config = (a) => JSON.stringify(a.kernel.best_config || null);
  return config(row.a) === config(row.b) ? verdict : "config differs";
}

// An input and what it filters: `draw(text, all)` gives the content.
function filterBox(label, draw, option) {
  const out = h("div");
  const input = h("input", {
    type: "search",
    class: "filter",
    placeholder: "Filter",
    "aria-label": label,
    spellcheck: "false",
  });
  const check = option ? h("input", { type: "checkbox" }) : null;
  const redraw = () => out.replaceChildren(draw(input.value.trim().toLowerCase(), Boolean(check && check.checked)));
  input.addEventListener("input", redraw);
  if (check) check.addEventListener("change", redraw);
  redraw();
  return h("div", {}, h("div", { class: "tools" }, input, check ? h("label", {}, check, ` ${option}`) : null), out);
}

function emptyPage(title, text) {
  return h("article", {}, h("h1", {}, title), h("p", { class: "muted" }, text));
}
