// The Python lines behind the graphs, and what became of each.

async function sourcePage(side, query) {
  const files = await gatherSources(side, (part) => say(`Reading graphs, ${Math.round(part * 100)} %`));
  if (!files.size) return emptyPage("Python source", "No graph in the bundle says which Python lines it comes from.");
  const weight = (lines) => [...lines.values()].reduce((sum, l) => sum + l.places.size + 100 * l.breaks.length, 0);
  const own = (file) => !/site-packages|dist-packages/.test(file);
  const order = [...files.keys()].sort((a, b) => own(b) - own(a) || weight(files.get(b)) - weight(files.get(a)));
  const file = files.has(query.get("file")) ? query.get("file") : query.get("file") ? null : order[0];
  const select = h(
    "select",
    { onchange: (e) => (location.hash = sourceRoute(side, e.target.value, "")) },
    file ? null : h("option", {}, cut(query.get("file"), 200)),
    order.map((name) => h("option", { value: name, selected: name === file }, cut(name, 200))),
  );
  const page = h(
    "article",
    {},
    h("h1", {}, "Python source"),
    h(
      "p",
      { class: "muted" },
      "The lines that graphs name as their origin. The rest of the files is not in the bundle.",
    ),
    h(
      "div",
      { class: "tools" },
      h("label", { class: "against" }, h("span", {}, "File"), select),
      comparing()
        ? Model.sides
            .filter((s) => s !== side)
            .map((s) => h("a", { class: "chip", href: `#/source/${s.letter}` }, `in ${s.letter.toUpperCase()}`))
        : null,
    ),
  );
  if (!file) {
    page.append(
      h(
        "div",
        { class: "note" },
        h(
          "p",
          {},
          `Line ${cut(query.get("line") || "?", 12)} of ${cut(query.get("file"), 300)} is named by a stack, but no graph kept here comes from this file.`,
        ),
      ),
    );
    return page;
  }
  const lines = [...files.get(file)].sort(([a], [b]) => a - b);
  const list = h("ol", { class: "lines" });
  let previous = null;
  for (const [number, entry] of lines) {
    if (previous !== null && number > previous + 1) list.append(h("li", { class: "gap", "aria-hidden": "true" }, "⋯"));
    list.append(sourceLine(side, file, number, entry, String(number) === query.get("line")));
    previous = number;
  }
  page.append(list);
  page.shown = () => {
    const target = page.querySelector(".chosen");
    if (target) target.scrollIntoView({ block: "center" });
  };
  return page;
}

function sourceLine(side, file, number, entry, chosen) {
  const kernels = new Map();
  for (const [artifact, { nodes }] of entry.places) {
    const finder = (artifact.finder = artifact.finder || kernelFinder(artifact));
    for (const node of nodes) {
      const found = finder(node);
      if (!found.likely) for (const k of found.kernels) kernels.set(k.ref, k);
    }
  }
  const origins = new Map();
  for (const [artifact, { nodes }] of entry.places) {
    if (TWINS.has(artifact.stage)) continue;
    const link = h(
      "a",
      { href: stageLink(artifact, { mode: "text", at: `${file}:${number}` }) },
      cut(stageName(artifact), 40),
      artifact.direction && artifact.direction !== artifact.stage ? ` ${artifact.direction}` : null,
      h("small", {}, ` ${nodes.length}`, unseen(" nodes")),
    );
    origins.set(artifact.compile, [...(origins.get(artifact.compile) || []), link]);
  }
  for (const kernel of kernels.values()) {
    const link = h("a", { class: "mono", href: stageLink(kernel) }, cut(kernel.kernel.name, 60));
    origins.set(kernel.compile, [...(origins.get(kernel.compile) || []), link]);
  }
  const places = [...origins].map(([compile, links]) =>
    h("p", { class: "origin" }, h("span", { class: "mono" }, compile ? compile.id : "—"), links),
  );
  return h(
    "li",
    { class: chosen ? "chosen" : null, "data-n": number },
    h(
      "code",
      {},
      entry.code
        ? tokenize(entry.code, "python", null).map(([kind, text]) =>
            kind && kind !== "id" ? h("span", { class: kind }, text) : text,
          )
        : "…",
    ),
    entry.breaks.map((b) =>
      h(
        "p",
        {},
        badge(b.compile.error ? "failed here" : "graph break", b.compile.error ? "bad" : "warn"),
        " ",
        compileRef(side, b.compile.id),
        " ",
        cut(b.reason.split("\n")[0], 200),
      ),
    ),
    places,
  );
}
