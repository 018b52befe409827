// The left side: pages, then compiles with their stages.

const FOLD_FROM = 3; // so many passes in a row that changed nothing become one line

function buildTree() {
  const side = document.getElementById("side");
  const compiles = compileRows();
  const list = h(
    "ul",
    { class: "compiles" },
    compiles.map((row) => compileItem(row)),
  );
  const loose = rowsOf(null).filter((row) => (row.a || row.b).kind !== "trace");
  if (loose.length)
    list.append(
      h(
        "li",
        {},
        branch("Outside a compile", loose.length, () => [looseList(loose)], "compile-node loose"),
      ),
    );
  const title = comparing() ? "Compiles, aligned" : "Compiles";
  side.replaceChildren(pageList(), h("h2", {}, title), compiles.length ? list : h("p", { class: "muted" }, "None."));
}

function pageList() {
  const kernels = artifactRows().filter((row) => (row.a || row.b).kind === "kernel").length;
  const configs = Model.sides.flatMap((s) => s.artifacts).filter((a) => a.kind === "best_config").length;
  const tuned = Model.sides.flatMap((s) => s.artifacts).filter((a) => a.autotune).length;
  const pages = [
    ["overview", "Overview"],
    ["kernels", "Kernels", kernels],
    ["configs", "Configs", configs],
    ["autotune", "Autotuning", tuned],
    ["timeline", "Timeline"],
    ["source", "Python source"],
    ["artifacts", "All artifacts"],
  ];
  const item = ([page, name, count]) =>
    h(
      "li",
      {},
      h(
        "a",
        { href: `#/${page}`, "data-page": page },
        name,
        count === undefined ? null : h("span", { class: "count" }, number(count)),
      ),
    );
  return h("ul", { class: "pages" }, pages.map(item));
}

// A <details> that builds its content when it is first opened.
function branch(title, count, build, kind) {
  const inside = h("div", { class: "inside" });
  const details = h(
    "details",
    { class: kind },
    h("summary", {}, title, count ? h("span", { class: "count" }, number(count)) : null),
    inside,
  );
  details.fill = () => {
    if (!inside.firstChild) append(inside, build());
  };
  details.addEventListener("toggle", () => details.open && details.fill());
  return details;
}

function compileItem(row) {
  const compile = row.a || row.b;
  const failed = [row.a, row.b].some((c) => c && c.status !== "ok");
  const only = verdictBadge(!comparing() ? null : !row.b ? "only A" : !row.a ? "only B" : null);
  const link = h(
    "a",
    { href: `#/compile/${compile.ref}`, "data-compile": compile.ref },
    h("span", { class: "id" }, compile.id),
    " ",
    h("span", { class: "name" }, cut(compileName(compile), 80)),
  );
  const status = failed ? badge(STATUSES[compile.status] || compile.status, "bad") : null;
  const details = branch([link, only, status], 0, () => compileParts(row), `compile-node${failed ? " failed" : ""}`);
  details.dataset.node = compile.ref;
  return h("li", {}, details);
}

function compileParts(row) {
  const rows = rowsOf(row);
  const of = (kinds) => rows.filter((r) => kinds.includes((r.a || r.b).kind));
  const stages = groupStages(rows.filter((r) => isStage(r.a || r.b)));
  const more = rows.filter((r) => isMore(r.a || r.b));
  const telemetry = (row.a || row.b).artifacts.filter((a) => a.kind === "trace").length;
  return [
    stages.map((group) => [h("h3", {}, group.name), stageList(group.rows)]),
    extra("Kernels", of(["kernel"])),
    extra("Tuning", of(["best_config", "autotune"])),
    extra("Candidates", of(["candidate"])),
    extra("More", more),
    telemetry
      ? h(
          "a",
          { class: "leaf", href: `#/artifacts?compile=${(row.a || row.b).ref}&kind=trace` },
          "Telemetry",
          h("span", { class: "count" }, number(telemetry)),
        )
      : null,
  ];
}

function isMore(artifact) {
  const elsewhere = ["kernel", "candidate", "best_config", "autotune", "trace"];
  return (
    artifact.stage === "compile_command" || (!STAGE_KINDS.has(artifact.kind) && !elsewhere.includes(artifact.kind))
  );
}

function extra(title, rows) {
  return rows.length ? branch(title, rows.length, () => [looseList(rows)], "extra") : null;
}

function looseList(rows) {
  return h("ul", {}, rows.slice(0, 2000).map(stageItem));
}

function stageList(rows) {
  const items = [];
  for (const run of foldedRuns(rows)) {
    if (run.quiet) {
      items.push(
        h(
          "li",
          {},
          branch(
            `${plural(run.rows.length, "pass", "passes")} without a change`,
            0,
            () => [looseList(run.rows)],
            "quiet-passes",
          ),
        ),
      );
    } else items.push(...run.rows.map(stageItem));
  }
  return h("ul", {}, items);
}

// Cuts rows into runs; a quiet one is of passes that changed nothing, and long enough to be folded.
function foldedRuns(rows) {
  const runs = [];
  for (const row of rows) {
    const artifact = row.a || row.b;
    const quiet = artifact.kind === "pass" && changedOf(artifact) === false && verdictOf(row) !== "differs";
    const last = runs[runs.length - 1];
    if (last && last.quiet === quiet) last.rows.push(row);
    else runs.push({ quiet, rows: [row] });
  }
  return runs.map((run) => ({ ...run, quiet: run.quiet && run.rows.length >= FOLD_FROM }));
}

function stageItem(row) {
  const artifact = row.a || row.b;
  return h(
    "li",
    {},
    h(
      "a",
      { class: "stage", href: stageLink(artifact), "data-ref": artifact.ref },
      mark(stateOf(artifact)),
      h("span", { class: "name" }, cut(artifactName(artifact), 120)),
      verdictBadge(verdictOf(row)),
      artifact.nodes === undefined ? null : h("span", { class: "count" }, number(artifact.nodes), unseen(" nodes")),
    ),
  );
}

function verdictBadge(verdict) {
  return verdict && verdict !== "same" ? badge(verdict === "differs" ? "≠" : verdict, "tell") : null;
}

// Stages in the order of the tree, what is folded left out: the way that n and p go.
function stageOrder() {
  if (!Model.order) {
    const rows = compileRows().flatMap((row) =>
      groupStages(rowsOf(row).filter((r) => isStage(r.a || r.b))).flatMap((g) => g.rows),
    );
    const loose = rowsOf(null).filter((r) => isStage(r.a || r.b));
    Model.order = foldedRuns([...rows, ...loose]).flatMap((run) => (run.quiet ? [] : run.rows));
  }
  return Model.order;
}

function markCurrent(page, artifact, compile) {
  const side = document.getElementById("side");
  for (const old of side.querySelectorAll("[aria-current]")) old.removeAttribute("aria-current");
  const home = compile || (artifact && artifact.compile);
  const homes = home ? [home.ref, twinOf(home)] : [];
  const node = [...side.querySelectorAll("details[data-node]")].find((d) => homes.includes(d.dataset.node));
  if (node && !node.open) {
    node.open = true;
    node.fill();
  }
  const refs = artifact
    ? [artifact.ref, artifact.other && artifact.other.ref, artifact.after && artifact.after.ref]
    : [];
  const target = artifact
    ? [...side.querySelectorAll("a[data-ref]")].find((a) => refs.includes(a.dataset.ref)) ||
      (node && node.querySelector("a[data-compile]"))
    : compile
      ? node && node.querySelector("a[data-compile]")
      : side.querySelector(`a[data-page="${CSS.escape(page)}"]`);
  if (!target) return;
  target.setAttribute("aria-current", "page");
  target.scrollIntoView({ block: "nearest" });
}

function twinOf(compile) {
  return compile.other ? compile.other.ref : null;
}
