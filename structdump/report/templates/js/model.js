// Bundles as the page sees them: artifacts that know their compile, and stages in reading order.

const STAGE_KINDS = new Set(["graph", "pass", "output_code", "ir"]);
const GRAPH_KINDS = new Set(["graph", "pass"]);
const GROUPS = { joint: "Joint", forward: "Forward", backward: "Backward", inference: "Inference" };

const Model = { sides: [], pairs: null };

function buildModel(data) {
  Model.sides = data.sides.map((side, index) => buildSide(side, index));
  Model.pairs = data.pairs;
}

function buildSide(side, index) {
  side.index = index;
  side.letter = "ab"[index];
  side.byId = new Map();
  side.compiles.forEach((compile, i) => {
    Object.assign(compile, { side, index: i, ref: `${side.letter}${i}`, artifacts: [] });
    if (!side.byId.has(compile.id)) side.byId.set(compile.id, compile);
  });
  side.loose = [];
  side.artifacts.forEach((artifact, i) => {
    const compile = side.byId.get(artifact.compile_id) || null;
    Object.assign(artifact, { side, index: i, ref: `${side.letter}${i}`, compile });
    (compile ? compile.artifacts : side.loose).push(artifact);
  });
  for (const compile of side.compiles) pairPhases(compile.artifacts);
  pairPhases(side.loose);
  return side;
}

// An "after" knows its "before", which then needs no row of its own.
function pairPhases(artifacts) {
  const open = new Map();
  for (const a of artifacts) {
    if (!STAGE_KINDS.has(a.kind)) continue;
    const key = JSON.stringify([a.kind, a.stage, a.kind === "pass" ? a.name : "", a.direction, placeOf(a)]);
    if (a.phase === "before") open.set(key, a);
    else if (a.phase === "after" && open.has(key)) {
      a.before = open.get(key);
      a.before.after = a;
      open.delete(key);
    }
  }
}

function placeOf(artifact) {
  const piece = artifact.subgraph;
  return piece ? [piece.index, piece.name, piece.range] : null;
}

function isStage(artifact) {
  return STAGE_KINDS.has(artifact.kind) && !artifact.after && artifact.stage !== "compile_command";
}

function stageName(artifact) {
  const pass = artifact.kind === "pass" || !artifact.stage;
  const name = pass ? artifact.name : artifact.stage;
  return artifact.phase === "before" ? `${name} (before)` : name;
}

function artifactName(artifact) {
  if (STAGE_KINDS.has(artifact.kind)) return stageName(artifact);
  return artifact.kernel ? artifact.kernel.name : artifact.name;
}

function compileName(compile) {
  return compile.function ? compile.function.name : "unnamed";
}

function groupName(artifact) {
  const piece = artifact.subgraph;
  const parts = [GROUPS[artifact.direction] || "Capture"];
  if (piece) {
    parts.push(piece.name || `piece ${piece.index}`);
    if (piece.range) parts.push(`[${piece.range.join(", ")}]`);
  }
  return parts.join(" · ");
}

// The stages of some artifacts, grouped as Capture, Joint, Forward, …, each group in order of time.
function groupStages(rows) {
  const groups = new Map();
  for (const row of rows) {
    const name = groupName(row.a || row.b);
    if (!groups.has(name)) groups.set(name, { name, rows: [] });
    groups.get(name).rows.push(row);
  }
  return [...groups.values()];
}

// Whether a stage changed its graph: as stated, else told by the texts before and after; null if unknown.
function changedOf(artifact) {
  if (typeof artifact.changed === "boolean") return artifact.changed;
  const { before } = artifact;
  return before && before.digest && artifact.digest ? before.digest !== artifact.digest : null;
}

// Changed, unchanged, omitted or plain: what the mark before a stage says.
function stateOf(artifact) {
  if (!Store.has(artifact.digest)) return "omitted";
  const changed = changedOf(artifact);
  return changed === null ? "plain" : changed ? "changed" : "unchanged";
}

function artifactOf(ref) {
  const side = Model.sides["ab".indexOf(ref[0])];
  return (side && side.artifacts[Number(ref.slice(1))]) || null;
}

function compileOf(ref) {
  const side = Model.sides["ab".indexOf(ref[0])];
  return (side && side.compiles[Number(ref.slice(1))]) || null;
}

function stageLink(artifact, extra) {
  const query = new URLSearchParams(extra || {}).toString();
  return `#/stage/${artifact.ref}${query ? `?${query}` : ""}`;
}

function kernelsOf(side) {
  return side.artifacts.filter((a) => a.kernel && (a.kind === "kernel" || a.kind === "candidate"));
}
