// The Python lines that graphs, breaks and stacks speak of, gathered by file.

function sourceRoute(side, file, line) {
  return `#/source/${side.letter}?${new URLSearchParams({ file, line })}`;
}

function sourceChip(side, frame) {
  const short = frame.file.split("/").slice(-2).join("/");
  return h("a", { class: "chip mono", href: sourceRoute(side, frame.file, frame.line) }, `${short}:${frame.line}`);
}

// Map of file -> Map of line -> {code, names, places: [{artifact, nodes, lines}], breaks}. Read once per side.
async function gatherSources(side, progress) {
  if (side.sources) return side.sources;
  const files = new Map();
  const at = (frame) => {
    if (!files.has(frame.file)) files.set(frame.file, new Map());
    const lines = files.get(frame.file);
    if (!lines.has(frame.line)) lines.set(frame.line, { code: "", names: new Set(), places: new Map(), breaks: [] });
    const entry = lines.get(frame.line);
    entry.code = entry.code || frame.code || "";
    if (frame.name) entry.names.add(frame.name);
    return entry;
  };
  const graphs = side.artifacts.filter((a) => a.kind === "graph" && !a.after && Store.has(a.digest));
  for (const [i, artifact] of graphs.entries()) {
    if (i % 20 === 19) {
      progress(i / graphs.length);
      await breathe();
    }
    readGraph((await Store.text(artifact.digest)).split("\n")).forEach((entry, line) => {
      if (!entry || !entry.frame || !entry.name) return;
      const { places } = at(entry.frame);
      if (!places.has(artifact)) places.set(artifact, { nodes: [], lines: [] });
      places.get(artifact).nodes.push(entry);
      places.get(artifact).lines.push(line + 1);
    });
  }
  for (const compile of side.compiles) {
    for (const found of compile.graph_breaks || []) {
      const frame = (found.stack || [])[(found.stack || []).length - 1];
      if (frame && frame.line) at(frame).breaks.push({ compile, reason: found.reason });
    }
    const failed = compile.error && compile.error.user_frame;
    if (failed && failed.line) at(failed).breaks.push({ compile, reason: compile.error.message });
  }
  side.sources = files;
  return files;
}
