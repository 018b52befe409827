// What a stage came from: the stages before it that lead to it.

// Graphs that print another stage's graph in another way, or again.
const TWINS = new Set(["runtime_asserts", "tensorify", "split_module"]);

function inLineage(earlier, artifact) {
  const direction = earlier.direction;
  const place = JSON.stringify(placeOf(earlier));
  const open = direction === undefined || direction === "joint" || direction === artifact.direction;
  return open && (place === "null" || place === JSON.stringify(placeOf(artifact)));
}

function siblings(artifact) {
  return artifact.compile ? artifact.compile.artifacts : artifact.side.loose;
}

// What a stage is compared with unless told otherwise: the text before it was changed. That is its own
// "before", else the last stage on its way that changed the graph, else the same stage of an earlier compile.
function defaultBase(artifact) {
  if (artifact.before && Store.has(artifact.before.digest)) return artifact.before;
  const all = siblings(artifact);
  const kinds = GRAPH_KINDS.has(artifact.kind) ? GRAPH_KINDS : new Set([artifact.kind]);
  const before = all.slice(0, all.indexOf(artifact)).reverse();
  const found = before.find(
    (a) =>
      kinds.has(a.kind) &&
      !TWINS.has(a.stage) &&
      changedOf(a) !== false &&
      a.phase !== "before" &&
      Store.has(a.digest) &&
      inLineage(a, artifact),
  );
  return found || sameInEarlierCompile(artifact);
}

function sameInEarlierCompile(artifact) {
  if (!artifact.compile) return null;
  const { side, index } = artifact.compile;
  const name = compileName(artifact.compile);
  for (let i = index - 1; i >= 0; i--) {
    const compile = side.compiles[i];
    if (compileName(compile) !== name) continue;
    const same = compile.artifacts.find((a) => sameRole(a, artifact) && Store.has(a.digest));
    if (same) return same;
  }
  return null;
}

function sameRole(a, b) {
  const named = b.kernel || b.kind === "pass" || !b.stage;
  return (
    a.kind === b.kind &&
    a.stage === b.stage &&
    a.phase === b.phase &&
    a.direction === b.direction &&
    JSON.stringify(placeOf(a)) === JSON.stringify(placeOf(b)) &&
    (!named || artifactName(a) === artifactName(b))
  );
}

// Graphs of a kernel's compile that may show its ops, the nearest to the kernel first.
function graphsBehind(kernel) {
  const order = ["post_grad", "forward", "backward", "joint", "pre_grad", "captured"];
  const rank = (a) => (order.includes(a.stage) ? order.indexOf(a.stage) : order.length);
  return siblings(kernel)
    .filter((a) => a.kind === "graph" && !a.after && Store.has(a.digest) && inLineage(a, kernel))
    .sort((a, b) => rank(a) - rank(b));
}

// How often each op occurs more or less in a graph than in another; [op, difference], largest first.
function opChanges(base, artifact) {
  if (!base || !base.ops || !artifact.ops) return [];
  const names = new Set([...Object.keys(base.ops), ...Object.keys(artifact.ops)]);
  return [...names]
    .map((op) => [op, (artifact.ops[op] || 0) - (base.ops[op] || 0)])
    .filter(([, change]) => change !== 0)
    .sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]) || (a[0] < b[0] ? -1 : 1));
}
