// What is known of one artifact beside its text.

function artifactFacts(artifact) {
  const facts = [
    artifact.nodes !== undefined && plural(artifact.nodes, "node"),
    artifact.bytes !== undefined && bytes(artifact.bytes),
    artifact.direction,
    abandoned(artifact),
    artifact.graph_id,
    artifact.ranks && `ranks ${artifact.ranks.join(", ")}`,
  ].filter(Boolean);
  return h(
    "p",
    { class: "facts" },
    changeBadge(artifact),
    facts.map((fact) => h("span", {}, cut(fact, 120))),
    artifact.inferred && artifact.inferred.length
      ? h("span", { title: artifact.inferred.join(", ") }, "partly inferred")
      : null,
  );
}

// Which attempt of a compile an artifact is of, unless it is the last; Dynamo starts again after a graph break.
function abandoned(artifact) {
  const { compile, attempt } = artifact;
  return (
    compile &&
    attempt !== undefined &&
    compile.attempts > attempt + 1 &&
    `attempt ${attempt + 1} of ${compile.attempts}`
  );
}

function changeBadge(artifact) {
  const changed = changedOf(artifact);
  return changed === null ? null : changed ? badge("changed the graph", "accent") : badge("no change");
}

function kernelFacts(artifact) {
  const k = artifact.kernel;
  if (!k) return null;
  const simple = [
    ["Backend", k.backend],
    ["Role", k.role === "used" ? null : k.role],
    ["Heuristic", k.heuristic],
    ["Calls", k.calls],
    ["Loads", k.loads],
    ["Stores", k.stores],
    ["Reductions", k.reductions],
    ["Grid", k.grid],
    ["Size hints", k.size_hints && configText(k.size_hints)],
    ["Performance", k.performance],
  ].filter(([, v]) => v !== null && v !== undefined);
  const nodes = [...new Set([...fragmentNodes(artifact), ...(k.nodes || [])])];
  return h(
    "section",
    { class: "card" },
    h(
      "dl",
      { class: "inline" },
      simple.map(([name, value]) =>
        h(
          "div",
          {},
          h("dt", {}, name),
          h("dd", { class: "mono" }, cut(typeof value === "number" ? number(value) : value, 200)),
        ),
      ),
    ),
    k.best_config ? h("div", { class: "chips" }, h("h3", {}, "Config"), configChips(k.best_config)) : null,
    (k.ops || []).length
      ? h(
          "div",
          { class: "chips" },
          h("h3", {}, "ATen ops"),
          k.ops.slice(0, 200).map((op) => graphLink(artifact, { op })),
        )
      : null,
    nodes.length
      ? h(
          "div",
          { class: "chips" },
          h("h3", {}, "Graph nodes"),
          nodes.slice(0, 200).map((node) => graphLink(artifact, { node })),
        )
      : null,
    (k.stack || []).length
      ? h(
          "div",
          { class: "chips" },
          h("h3", {}, "Python"),
          k.stack.filter((f) => f.line).map((f) => sourceChip(artifact.side, f)),
        )
      : null,
  );
}

const CONFIG_FACTS = new Set([
  "configs_hash",
  "found_by_coordesc",
  "time_taken_ms",
  "triton_cache_hash",
  "possible_kernels",
]);

function configText(config) {
  return Object.entries(config)
    .filter(([k]) => !CONFIG_FACTS.has(k))
    .map(([k, v]) => `${k} ${typeof v === "object" ? JSON.stringify(v) : v}`)
    .join(" · ");
}

function configChips(config) {
  return Object.entries(config)
    .filter(([k]) => !CONFIG_FACTS.has(k))
    .map(([k, v]) =>
      h(
        "span",
        { class: "pairing mono" },
        h("span", {}, cut(k, 60)),
        h("b", {}, cut(typeof v === "object" ? JSON.stringify(v) : v, 60)),
      ),
    );
}

// What a chosen line says: its op and type, the Python line behind it, the kernels made from it.
function lineFacts(artifact, entry, finder) {
  if (!entry) return null;
  const { kernels, likely } = finder(entry);
  const parts = [
    entry.name
      ? h(
          "span",
          {},
          h("b", { class: "mono" }, entry.name),
          entry.op ? h("span", { class: "mono muted" }, ` ${entry.op}`) : null,
        )
      : null,
    entry.frame
      ? h("span", {}, h("span", { class: "muted" }, "Python "), sourceChip(artifact.side, entry.frame))
      : null,
    kernels.length
      ? h(
          "span",
          {},
          h("span", { class: "muted" }, likely ? "Kernels with this op " : kernels.length > 1 ? "Kernels " : "Kernel "),
          kernels.slice(0, 8).map((k) => h("a", { class: "chip mono", href: stageLink(k) }, cut(k.kernel.name, 80))),
        )
      : null,
  ].filter(Boolean);
  return parts.length ? parts : null;
}

function omissionNote(artifact) {
  const { reason = "", bytes: size } = artifact.omitted || {};
  return h(
    "div",
    { class: "note" },
    h(
      "p",
      {},
      badge("not kept", "warn"),
      ` The text${size ? ` (${bytes(size)})` : ""} is not in the bundle${reason ? `: ${cut(reason, 200)}` : ""}. `,
      remedy(reason, artifact.needs),
    ),
    artifact.ops
      ? h(
          "div",
          { class: "chips" },
          h("h3", {}, "Ops"),
          Object.entries(artifact.ops).map(([op, n]) =>
            h("span", { class: "pairing mono" }, h("span", {}, cut(op, 80)), h("b", {}, number(n))),
          ),
        )
      : null,
  );
}
