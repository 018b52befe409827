// What differs between two texts, line by line and then within lines. The algorithm is Myers', of a library.

const PATIENCE = 1500; // milliseconds that one comparison may take
const CONTEXT = 3; // unchanged lines that are shown around a change

class TooDifferent extends Error {}

// The common runs of two sequences as [length, start in a, start in b]; `rough` when time ran out.
function commonRuns(aLength, bLength, same, deadline) {
  const runs = [];
  let calls = 0;
  const isCommon = (i, j) => {
    if ((++calls & 0xffff) === 0 && performance.now() > deadline) throw new TooDifferent();
    return same(i, j);
  };
  try {
    diffSequences(aLength, bLength, isCommon, (length, i, j) => runs.push([length, i, j]));
    return { runs, rough: false };
  } catch (error) {
    if (!(error instanceof TooDifferent)) throw error;
    return { runs: ends(aLength, bLength, same), rough: true };
  }
}

// What two sequences have in common at their beginning and at their end.
function ends(aLength, bLength, same) {
  const short = Math.min(aLength, bLength);
  let head = 0;
  while (head < short && same(head, head)) head++;
  let tail = 0;
  while (tail < short - head && same(aLength - 1 - tail, bLength - 1 - tail)) tail++;
  return [
    [head, 0, 0],
    [tail, aLength - tail, bLength - tail],
  ].filter(([length]) => length);
}

// Lines as numbers, equal for equal lines; `loose` leaves out the counters of names, and comments.
function lineKeys(lines, table, loose) {
  return Int32Array.from(lines, (line) => {
    const key = loose ? line.replace(/_\d+\b/g, "").replace(/^\s*#.*/, "#") : line;
    let found = table.get(key);
    if (found === undefined) table.set(key, (found = table.size));
    return found;
  });
}

// Rows {kind: "same" | "changed" | "gone" | "new", a, b}, a and b being line numbers from 0 or -1.
function diffLines(aLines, bLines, loose) {
  const table = new Map();
  const a = lineKeys(aLines, table, loose);
  const b = lineKeys(bLines, table, loose);
  const { runs, rough } = commonRuns(a.length, b.length, (i, j) => a[i] === b[j], performance.now() + PATIENCE);
  const rows = [];
  let i = 0;
  let j = 0;
  for (const [length, nextI, nextJ] of [...runs, [0, a.length, b.length]]) {
    rows.push(...pairChanged(aLines, bLines, i, nextI, j, nextJ));
    i = nextI;
    j = nextJ;
    for (let k = 0; k < length; k++) rows.push({ kind: "same", a: i++, b: j++ });
  }
  return { rows, rough };
}

// Rows of a block that differs: lines that call the same op stand side by side, the rest below each other.
function pairChanged(aLines, bLines, fromA, toA, fromB, toB) {
  const a = aLines.slice(fromA, toA).map(roleOf);
  const b = bLines.slice(fromB, toB).map(roleOf);
  const same = (i, j) => a[i] !== null && a[i] === b[j];
  const { runs } = commonRuns(a.length, b.length, same, performance.now() + 100);
  const rows = [];
  let i = 0;
  let j = 0;
  for (const [length, nextI, nextJ] of [...runs, [0, a.length, b.length]]) {
    while (i < nextI) rows.push({ kind: "gone", a: fromA + i++, b: -1 });
    while (j < nextJ) rows.push({ kind: "new", a: -1, b: fromB + j++ });
    for (let k = 0; k < length; k++) rows.push({ kind: "changed", a: fromA + i++, b: fromB + j++ });
  }
  return rows;
}

// What a line does, whatever the names: its op, its Python line, or its words without numbers. Null for an empty line.
function roleOf(line) {
  if (line.length > SHOWN) return line.slice(0, SHOWN);
  const source = SOURCE.exec(line);
  if (source) return source[4];
  const match = ASSIGN.exec(line);
  const call = match && CALL.exec(match[3]);
  if (call) return call[1];
  return line.replace(/\d+/g, "").trim() || null;
}

function countChanges(rows) {
  let gone = 0;
  let added = 0;
  for (const row of rows) {
    if (row.kind === "same") continue;
    if (row.a >= 0) gone++;
    if (row.b >= 0) added++;
  }
  return { gone, added };
}

// Ranges of two lines that differ, or null where the lines have little in common.
function diffWords(a, b) {
  if (a.length > SHOWN || b.length > SHOWN || !a.trim() || !b.trim()) return null;
  const left = a.match(/\w+|\s+|[^\w\s]/g) || [];
  const right = b.match(/\w+|\s+|[^\w\s]/g) || [];
  if (left.length > 600 || right.length > 600) return null;
  const { runs } = commonRuns(left.length, right.length, (i, j) => left[i] === right[j], performance.now() + 50);
  let common = 0;
  for (const [length, i] of runs) for (let k = i; k < i + length; k++) common += left[k].trim().length;
  if (common * 2.5 < Math.min(a.trim().length, b.trim().length)) return null;
  return { left: gaps(left, runs, 1), right: gaps(right, runs, 2) };
}

function gaps(words, runs, which) {
  const out = [];
  let at = 0;
  let offset = 0;
  for (const run of [...runs, [0, words.length, words.length]]) {
    const start = offset;
    while (at < run[which]) offset += words[at++].length;
    if (offset > start) out.push([start, offset]);
    for (let k = 0; k < run[0]; k++) offset += words[at++].length;
  }
  return out;
}

// Folds long unchanged runs: rows in, rows and {fold: [rows]} out.
function foldSame(rows) {
  const out = [];
  let run = [];
  const flush = (last) => {
    const first = out.length === 0;
    const head = first ? 0 : CONTEXT;
    const tail = last ? 0 : CONTEXT;
    if (run.length > head + tail + 3) {
      out.push(...run.slice(0, head), { fold: run.slice(head, run.length - tail) }, ...run.slice(run.length - tail));
    } else out.push(...run);
    run = [];
  };
  for (const row of rows) {
    if (row.kind === "same") run.push(row);
    else {
      if (run.length) flush(false);
      out.push(row);
    }
  }
  if (run.length) flush(true);
  return out;
}
