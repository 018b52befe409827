// From kernels to the graph lines they were made from, and back.

// Names of the graph nodes in the comment that Inductor writes beside a kernel.
function fragmentNodes(kernel) {
  const names = [];
  for (const line of (kernel.kernel.fragment || "").split("\n")) {
    const match = /^\s*%(\w+)\b.*= call_/.exec(line);
    if (match) names.push(match[1]);
  }
  return names;
}

// The kernels that run after a graph, those of another direction left out.
function kernelsAfter(artifact) {
  return siblings(artifact).filter(
    (a) =>
      a.kind === "kernel" &&
      a.kernel &&
      samePlace(artifact, a) &&
      (!artifact.direction || artifact.direction === "joint" || !a.direction || a.direction === artifact.direction),
  );
}

// Whether a graph and a kernel can belong together: a graph of no piece belongs to all.
function samePlace(graph, kernel) {
  return !graph.subgraph || JSON.stringify(placeOf(graph)) === JSON.stringify(placeOf(kernel));
}

// Kernel names as links, for the names in a text.
function kernelNames(artifact) {
  return new Map(kernelsAfter(artifact).map((a) => [a.kernel.name, stageLink(a)]));
}

// For the nodes of a graph, the kernels made from them: by the node's name where the kernel states it,
// else (`likely`) by the op. Returns a function from an entry of `readGraph`.
function kernelFinder(artifact) {
  const early = !artifact.direction || artifact.direction === "joint";
  const byNode = new Map();
  const byOp = new Map();
  const add = (map, key, kernel) => map.set(key, [...(map.get(key) || []), kernel]);
  for (const a of kernelsAfter(artifact)) {
    const nodes = early ? a.kernel.nodes || [] : fragmentNodes(a);
    for (const name of nodes) add(byNode, name, a);
    if (!nodes.length || !early) for (const op of a.kernel.ops || []) add(byOp, bareOp(op), a);
  }
  return (entry) => {
    if (!entry || !entry.name) return { kernels: [], likely: false };
    const stated = byNode.get(entry.name);
    if (stated) return { kernels: stated, likely: false };
    const guessed = (entry.op && byOp.get(bareOp(entry.op))) || [];
    return { kernels: guessed.filter((a) => early || !fragmentNodes(a).length), likely: true };
  };
}

// The graph and its lines that an op, or a node, of a kernel stands for; null where no kept graph has it.
async function graphLinesOf(kernel, { op, node }) {
  const stated = fragmentNodes(kernel);
  for (const artifact of graphsBehind(kernel)) {
    const text = await Store.text(artifact.digest);
    const entries = readGraph(text.split("\n"));
    const fits = (entry) =>
      entry && entry.name && (node ? entry.name === node : entry.op && bareOp(entry.op) === bareOp(op));
    let lines = entries.flatMap((entry, i) => (fits(entry) ? [i] : []));
    const exact = lines.filter((i) => stated.includes(entries[i].name));
    if (exact.length) lines = exact;
    if (lines.length) return { artifact, lines };
  }
  return null;
}

// A button that looks for the lines when it is pressed, and goes there.
function graphLink(kernel, wanted) {
  const name = wanted.op || wanted.node;
  const link = button(
    name,
    async () => {
      const found = await graphLinesOf(kernel, wanted);
      if (found)
        location.hash = stageLink(found.artifact, {
          mode: "text",
          lines: found.lines
            .slice(0, 200)
            .map((i) => i + 1)
            .join(","),
        });
      else {
        link.disabled = true;
        link.append(h("small", {}, " in no graph kept here"));
        say(`${name} is in no graph that this report holds`);
      }
    },
    { class: "chip mono" },
  );
  return link;
}
