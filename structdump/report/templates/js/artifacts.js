// Everything that was seen, kept or not.

function artifactsPage(query) {
  const compile = query.get("compile") ? compileOf(query.get("compile")) : null;
  const kind = query.get("kind");
  const all = Model.sides
    .flatMap((side) => side.artifacts)
    .filter((a) => (!compile || a.compile === compile) && (!kind || a.kind === kind));
  const text = (a) => [a.kind, a.stage, a.name, a.compile_id, a.direction].filter(Boolean).join(" ").toLowerCase();
  const title = kind === "trace" ? "Telemetry" : "All artifacts";
  return h(
    "article",
    {},
    h("h1", {}, title),
    h(
      "p",
      { class: "facts" },
      h("span", {}, plural(all.length, "artifact")),
      compile ? h("span", {}, "of ", compileRef(compile.side, compile.id)) : null,
      compile || kind ? h("a", { class: "chip", href: "#/artifacts" }, "Show all") : null,
    ),
    filterBox("Filter artifacts", (wanted) =>
      artifactTable(wanted ? all.filter((a) => text(a).includes(wanted)) : all),
    ),
  );
}

function artifactTable(rows) {
  const most = largest(rows, (a) => a.bytes);
  return sortableTable(
    "Artifacts",
    [
      {
        title: "Name",
        value: (a) => a.name,
        cell: (a) => h("a", { class: "stage", href: stageLink(a) }, mark(stateOf(a)), cut(a.name, 100)),
      },
      { title: "#", numeric: true, value: (a) => a.seq },
      { title: "Bundle", value: (a) => (comparing() ? a.side.letter.toUpperCase() : null) },
      { title: "Kind", value: (a) => a.kind },
      { title: "Stage", value: (a) => a.stage, cell: (a) => cut(a.stage || "", 60) },
      { title: "Phase", value: (a) => a.phase },
      {
        title: "Compile",
        value: (a) => a.compile_id,
        cell: (a) => (a.compile ? compileRef(a.side, a.compile_id) : cut(a.compile_id || "", 40)),
      },
      { title: "Part", value: (a) => a.direction },
      { title: "Nodes", numeric: true, value: (a) => a.nodes },
      { title: "Size", numeric: true, value: (a) => a.bytes, cell: (a) => bar(a.bytes, most, bytes(a.bytes)) },
      { title: "Not kept", value: (a) => a.omitted && a.omitted.reason },
    ],
    rows,
  );
}
