// What each line of a printed FX graph says: its node, the op, and the Python line it came from.

const ASSIGN = /^\s+(\w+)(?:\s?:\s?"([^"]*)")? = (.+)$/;
const CALL = /^(?:torch\.ops\.)?([A-Za-z_][\w.]*)\(/;

// One entry per line of the text: {name, op, type, frame} for a node, {frame} for a comment, or null.
function readGraph(lines) {
  let frame = null;
  return lines.map((line) => {
    if (line.length > 1e5) return null;
    const comment = SOURCE.exec(line);
    if (comment) {
      frame = readFrame(comment);
      return { frame };
    }
    if (/^\s+# /.test(line)) frame = null;
    const match = ASSIGN.exec(line);
    if (!match) return null;
    const call = CALL.exec(match[3]);
    return { name: match[1], type: match[2] || null, op: call ? call[1] : null, frame };
  });
}

function readFrame(comment) {
  const place = comment[2];
  const colon = place.lastIndexOf(":");
  const name = comment[3].slice(" in ".length, -", code: ".length);
  return { file: place.slice(0, colon), line: Number(place.slice(colon + 1)), name, code: comment[4] };
}

// "aten.mm.default" and "aten.mm" are one op to those who look for it.
function bareOp(op) {
  const parts = op.replace(/^torch\.ops\./, "").split(".");
  return parts.length > 2 ? parts.slice(0, -1).join(".") : parts.join(".");
}

function isGraph(artifact) {
  return GRAPH_KINDS.has(artifact.kind);
}
