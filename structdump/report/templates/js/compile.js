// One compile: what became of it, its stages with node counts, its kernels.

function compilePage(compile) {
  const { function: fn = {}, recompile, cache = {}, error } = compile;
  const row = compileRows().find((r) => r.a === compile || r.b === compile);
  return h(
    "article",
    {},
    h(
      "p",
      { class: "crumbs" },
      h("a", { href: "#/overview" }, "Compiles"),
      comparing() ? ` · ${compile.side.letter.toUpperCase()}` : "",
    ),
    h(
      "h1",
      {},
      h("span", { class: "mono id" }, compile.id),
      " ",
      cut(compileName(compile), 100),
      " ",
      statusBadge(compile.status),
    ),
    h(
      "p",
      { class: "facts" },
      fn.file && fn.line ? sourceChip(compile.side, fn) : null,
      [
        compile.seconds !== undefined && seconds(compile.seconds),
        compile.guards !== undefined && plural(compile.guards, "guard"),
        compile.attempts > 1 && plural(compile.attempts, "attempt"),
        compile.backend,
        cache.fx_graph && `FX graph cache ${cache.fx_graph}`,
        cache.aot_autograd && `AOTAutograd cache ${cache.aot_autograd}`,
        cache.reason,
      ]
        .filter(Boolean)
        .map((fact) => h("span", {}, cut(fact, 200))),
      other(compile),
    ),
    error ? failureCard(compile) : null,
    recompile
      ? h(
          "section",
          { class: "note" },
          h(
            "p",
            {},
            "Compiled again because ",
            h("span", { class: "mono" }, cut(recompile.reason, 1000)),
            " ",
            recompile.previous ? compileRef(compile.side, recompile.previous) : null,
          ),
        )
      : null,
    (compile.graph_breaks || []).map((found) => breakCard(compile, found)),
    h("h2", {}, "Stages"),
    stageTable(row),
    kernelSection(row),
    Object.keys(compile.symbols || {}).length ? [h("h2", {}, "Symbolic shapes"), dictionary(compile.symbols)] : null,
    Object.keys(compile.metrics || {}).length
      ? branch("Metrics", Object.keys(compile.metrics).length, () => [dictionary(compile.metrics)], "plain")
      : null,
    (compile.stack || []).length
      ? branch("Where it was called", 0, () => [stackList(compile.side, compile.stack)], "plain")
      : null,
  );
}

function other(compile) {
  return compile.other
    ? h(
        "a",
        { class: "chip", href: `#/compile/${compile.other.ref}` },
        `in ${compile.other.side.letter.toUpperCase()}: ${compile.other.id}`,
      )
    : null;
}

function compileRef(side, id) {
  const found = side.byId.get(id);
  return found
    ? h("a", { class: "chip mono", href: `#/compile/${found.ref}` }, id)
    : h("span", { class: "mono" }, cut(id, 40));
}

function breakCard(compile, found) {
  const [first, ...others] = found.reason.split("\n");
  const frame = (found.stack || [])[(found.stack || []).length - 1];
  return h(
    "section",
    { class: "note" },
    h("p", {}, badge("graph break", "warn"), " ", cut(first, 300)),
    frame && frame.line
      ? h("p", {}, sourceChip(compile.side, frame), " ", frame.code ? h("code", {}, cut(frame.code, 200)) : null)
      : null,
    found.resumed_by ? h("p", {}, "Goes on in ", compileRef(compile.side, found.resumed_by)) : null,
    others.join("").trim() ? branch("In full", 0, () => [h("pre", { class: "trace" }, found.reason)], "plain") : null,
  );
}

function stackList(side, stack) {
  return h(
    "ol",
    { class: "stack" },
    stack.map((frame) =>
      h(
        "li",
        {},
        frame.line ? sourceChip(side, frame) : cut(frame.file, 200),
        " ",
        cut(frame.name, 80),
        frame.code ? h("code", {}, cut(frame.code, 300)) : null,
      ),
    ),
  );
}

function dictionary(values) {
  return h(
    "dl",
    {},
    Object.entries(values).map(([k, v]) =>
      h(
        "div",
        {},
        h("dt", {}, cut(k, 100)),
        h("dd", { class: "mono" }, cut(typeof v === "string" ? v : JSON.stringify(v), 1000)),
      ),
    ),
  );
}

function stageTable(row) {
  const rows = groupStages(rowsOf(row).filter((r) => isStage(r.a || r.b))).flatMap((g) =>
    g.rows.map((r) => ({ ...r, group: g.name })),
  );
  const of = (r) => r.a || r.b;
  const most = largest(rows, (r) => of(r).nodes);
  const nodes = (a) => (a && a.nodes === undefined ? null : a && a.nodes);
  return sortableTable(
    "Stages of this compile",
    [
      {
        title: "Stage",
        value: (r) => stageName(of(r)),
        cell: (r) =>
          h("a", { class: "stage", href: stageLink(of(r)) }, mark(stateOf(of(r))), cut(stageName(of(r)), 100)),
      },
      { title: "Part", value: (r) => r.group },
      {
        title: comparing() ? "Nodes A" : "Nodes",
        numeric: true,
        value: (r) => nodes(r.a),
        cell: (r) => bar(nodes(r.a), most, number(nodes(r.a))),
      },
      {
        title: "Nodes B",
        numeric: true,
        value: (r) => nodes(r.b),
        cell: (r) => bar(nodes(r.b), most, number(nodes(r.b))),
      },
      {
        title: "Change",
        numeric: true,
        value: nodeChange,
        cell: (r) => (nodeChange(r) === null ? null : signed(nodeChange(r))),
      },
      { title: "A and B", value: (r) => verdictOf(r) },
      {
        title: "Text",
        numeric: true,
        value: (r) => (Store.has(of(r).digest) ? of(r).bytes : null),
        cell: (r) => (Store.has(of(r).digest) ? bytes(of(r).bytes) : null),
      },
    ],
    rows,
  );
}

// Nodes against what the stage came from; null where it is not known to be a step from there.
function nodeChange(row) {
  const artifact = row.a || row.b;
  const base = artifact.before || defaultBase(artifact);
  return isGraph(artifact) &&
    changedOf(artifact) !== null &&
    base &&
    base.compile === artifact.compile &&
    artifact.nodes !== undefined &&
    base.nodes !== undefined
    ? artifact.nodes - base.nodes
    : null;
}

function kernelSection(row) {
  const rows = rowsOf(row).filter((r) => (r.a || r.b).kind === "kernel");
  return rows.length ? [h("h2", {}, "Kernels"), kernelTable(rows)] : null;
}
