// Rows that hold one artifact (a single bundle) or two that answer to each other (a comparison).

function comparing() {
  return Model.sides.length === 2;
}

// Compiles as rows {a, b}; one of the two is null where a bundle has nothing like it.
function compileRows() {
  if (!Model.compileRows) {
    const [left, right] = Model.sides;
    Model.compileRows = comparing()
      ? Model.pairs.compiles.map(([i, j]) => pairUp({ a: pick(left.compiles, i), b: pick(right.compiles, j) }))
      : left.compiles.map((a) => ({ a, b: null }));
  }
  return Model.compileRows;
}

// All artifacts as rows, in order.
function artifactRows() {
  if (!Model.rows) {
    if (comparing()) {
      const [left, right] = Model.sides;
      Model.rows = Model.pairs.artifacts.map(([i, j, answer]) =>
        pairUp({ a: pick(left.artifacts, i), b: pick(right.artifacts, j), answer }),
      );
    } else Model.rows = Model.sides[0].artifacts.map((a) => ({ a, b: null }));
    Model.byCompile = new Map();
    for (const row of Model.rows) {
      const compile = (row.a || row.b).compile;
      if (!Model.byCompile.has(compile)) Model.byCompile.set(compile, []);
      Model.byCompile.get(compile).push(row);
    }
  }
  return Model.rows;
}

// The rows of a row of compiles, or of what belongs to no compile (null).
function rowsOf(compileRow) {
  artifactRows();
  const keys = compileRow ? [compileRow.a, compileRow.b] : [null];
  return keys.flatMap((key) => (key === null && compileRow ? [] : Model.byCompile.get(key) || []));
}

function pick(list, index) {
  return index === null ? null : list[index];
}

function pairUp(row) {
  if (row.a && row.b) {
    row.a.other = row.b;
    row.b.other = row.a;
  }
  return row;
}

// "same" (names and paths don't count), "differs", "only A", "only B", or null where there is nothing to tell.
function verdictOf(row) {
  if (!comparing()) return null;
  if (!row.b) return "only A";
  if (!row.a) return "only B";
  if (row.answer === "same" || row.answer === "alike") return "same";
  if (row.answer) return row.answer === "differs" ? "differs" : null;
  return row.a.digest && row.b.digest ? (row.a.digest === row.b.digest ? "same" : "differs") : null;
}

// For each compile that both have, the first stage where the graphs differ, with what follows it.
function partings() {
  return compileRows().flatMap((row) => {
    if (!row.a || !row.b) return [];
    const differing = rowsOf(row).filter((r) => r.a && isStage(r.a) && verdictOf(r) === "differs");
    return differing.length ? [{ compile: row.a, row: differing[0], more: differing.length - 1 }] : [];
  });
}
