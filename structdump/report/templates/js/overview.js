// The first page: what this is, what failed, what compiled, where it ran, what is missing.

const VERDICTS = {
  cold: ["Complete", "Everything was compiled afresh, so all of it could be recorded.", "good"],
  warm: ["From a warm cache", "Parts were taken from a cache and not compiled again.", "warn"],
  partial: ["Partial", "Some of what was compiled is not in this bundle.", "warn"],
  empty: ["Nothing compiled", "No compile was recorded.", ""],
};

const MESSAGE = 8; // lines of an error's message that are shown at once

function overviewPage() {
  const sides = Model.sides;
  const title = comparing() ? "Two bundles, side by side" : sides[0].run.program || sides[0].name;
  return h(
    "article",
    {},
    h("h1", {}, cut(title, 120)),
    sides.map(lead),
    sides.flatMap((side) => side.compiles.filter((c) => c.error)).map(failureCard),
    comparing() ? partingList() : null,
    h("h2", {}, "Compiles"),
    compileTable(),
    environmentTables(),
    sides.map(missing),
  );
}

function partingList() {
  const found = partings();
  const item = ({ compile, row, more }) =>
    h(
      "li",
      {},
      h("span", { class: "mono" }, compile.id),
      ` ${cut(compileName(compile), 80)}: `,
      h(
        "a",
        { href: stageLink(row.a, { mode: "diff" }) },
        cut(stageName(row.a), 80),
        row.a.direction ? ` · ${row.a.direction}` : "",
      ),
      more ? h("span", { class: "muted" }, ` and ${plural(more, "later stage")}`) : null,
    );
  return [
    h("h2", {}, "Where they part"),
    found.length
      ? h("ul", { class: "partings" }, found.map(item))
      : h("p", { class: "muted" }, "In no stage that both hold, but for names and paths."),
  ];
}

function lead(side) {
  const { versions = {}, devices = [], cpu } = side.environment;
  const device = devices.length ? devices.map((d) => d.name).join(", ") : cpu;
  const facts = [
    comparing() ? side.name : null,
    versions.torch && `torch ${versions.torch}`,
    versions.triton && `triton ${versions.triton}`,
    versions.python && `Python ${versions.python}`,
    device,
    side.run.started && side.run.started.slice(0, 16).replace("T", " "),
  ].filter(Boolean);
  const { seen = 0, kept = 0, verdict = "empty", reasons = [], hints = [] } = side.completeness;
  const [word, text, kind] = VERDICTS[verdict] || [verdict, "", ""];
  const breaks = side.compiles.reduce((sum, c) => sum + (c.graph_breaks || []).length, 0);
  const stats = [
    [side.compiles.length, "compile"],
    [side.compiles.filter((c) => c.error).length, "failure"],
    [breaks, "graph break"],
    [side.compiles.filter((c) => c.recompile).length, "recompile"],
    [kernelsOf(side).filter((a) => a.kind === "kernel").length, "kernel"],
  ];
  return h(
    "section",
    { class: "lead" },
    comparing() ? h("h2", {}, `Bundle ${side.letter.toUpperCase()}`) : null,
    h(
      "p",
      { class: "facts" },
      facts.map((fact) => h("span", {}, cut(fact, 120))),
    ),
    h(
      "ul",
      { class: "stats" },
      stats.map(([count, name]) => h("li", {}, h("b", {}, number(count)), ` ${count === 1 ? name : `${name}s`}`)),
    ),
    h(
      "div",
      { class: `note ${kind}` },
      h(
        "p",
        {},
        badge(word, kind),
        " ",
        text,
        ` Level ${side.level}: ${number(kept)} of ${number(seen)} artifacts with their text.`,
      ),
      side.complete === false
        ? h(
            "p",
            {},
            badge("cut short", "warn"),
            " The process ended before the bundle was closed; what is here was saved before.",
          )
        : null,
      reasons.length || hints.length
        ? h(
            "ul",
            {},
            [...reasons, ...hints].map((line) => h("li", {}, line)),
          )
        : null,
    ),
  );
}

function failureCard(compile) {
  const { type, message, traceback } = compile.error;
  const lines = message.split("\n");
  const long = lines.length > MESSAGE + 4;
  return h(
    "section",
    { class: "failure", "aria-label": "Failure" },
    h(
      "h2",
      {},
      badge("failed", "bad"),
      " ",
      h("a", { href: `#/compile/${compile.ref}` }, `${compile.id} ${cut(compileName(compile), 80)}`),
    ),
    h("p", { class: "mono" }, h("b", {}, type), ": ", cut((long ? lines.slice(0, MESSAGE) : lines).join("\n"), 4000)),
    long ? branch("Whole message", 0, () => [h("pre", { class: "trace" }, message)], "plain") : null,
    compile.error.user_frame && compile.error.user_frame.line
      ? h("p", {}, sourceChip(compile.side, compile.error.user_frame))
      : null,
    traceback ? branch("Traceback", 0, () => [h("pre", { class: "trace" }, traceback)], "plain") : null,
  );
}

function compileTable() {
  const rows = compileRows();
  const all = rows.flatMap((row) => [row.a, row.b].filter(Boolean));
  const most = largest(all, (c) => c.seconds);
  const of = (row) => row.a || row.b;
  const time = (letter) => ({
    title: comparing() ? `Time ${letter.toUpperCase()}` : "Time",
    numeric: true,
    value: (row) => row[letter] && row[letter].seconds,
    cell: (row) => row[letter] && bar(row[letter].seconds, most, seconds(row[letter].seconds)),
  });
  return sortableTable(
    "Compiles",
    [
      {
        title: "Id",
        value: (row) => of(row).id,
        cell: (row) => h("a", { class: "mono", href: `#/compile/${of(row).ref}` }, of(row).id),
      },
      { title: "Function", value: (row) => compileName(of(row)), cell: (row) => functionCell(of(row)) },
      {
        title: "Status",
        value: (row) => of(row).status,
        cell: (row) => [...new Set([row.a, row.b].filter(Boolean).map((c) => c.status))].map(statusBadge),
      },
      { title: "Only in", value: (row) => (comparing() && !(row.a && row.b) ? (row.a ? "A" : "B") : null) },
      time("a"),
      ...(comparing() ? [time("b")] : []),
      { title: "Breaks", numeric: true, value: (row) => (of(row).graph_breaks || []).length || null },
      { title: "Guards", numeric: true, value: (row) => of(row).guards },
      {
        title: "Recompiled because",
        value: (row) => of(row).recompile && of(row).recompile.reason,
        cell: (row) => of(row).recompile && h("span", { class: "mono small" }, cut(of(row).recompile.reason, 160)),
      },
      { title: "Cache", value: (row) => (of(row).cache || {}).fx_graph },
    ],
    rows,
  );
}

function functionCell(compile) {
  const { file, line } = compile.function || {};
  const place = file && line ? sourceChip(compile.side, { file, line }) : null;
  return [h("span", {}, cut(compileName(compile), 80)), " ", place];
}
