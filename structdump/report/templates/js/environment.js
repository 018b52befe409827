// Versions, machine, settings and variables; those that two bundles do not share are marked.

// Environment as a flat list of [section, name, value].
function environmentRows(side) {
  const e = side.environment;
  const rows = Object.entries(e.versions || {}).map(([k, v]) => ["Versions", k, v]);
  rows.push(["Machine", "os", e.os], ["Machine", "cpu", e.cpu], ["Machine", "cpus", e.cpu_count]);
  (e.devices || []).forEach((d, i) =>
    rows.push([
      "Machine",
      `device ${d.index === undefined ? i : d.index}`,
      [d.name, d.memory && bytes(d.memory), d.capability].filter(Boolean).join(", "),
    ]),
  );
  for (const [k, v] of Object.entries(e.drivers || {})) rows.push(["Machine", k, v]);
  for (const [module, settings] of Object.entries(e.configs || {})) {
    for (const [k, v] of Object.entries(settings)) rows.push([`Not default in ${module}`, k, v]);
  }
  for (const [k, v] of Object.entries(e.variables || {})) rows.push(["Environment variables", k, v]);
  for (const [k, v] of Object.entries(e.extra || {})) rows.push(["Framework", k, v]);
  return rows
    .filter(([, , v]) => v !== null && v !== undefined)
    .map(([s, k, v]) => [s, k, typeof v === "string" ? v : JSON.stringify(v)]);
}

function environmentTables() {
  const sections = new Map();
  Model.sides.forEach((side, i) => {
    for (const [section, name, value] of environmentRows(side)) {
      if (!sections.has(section)) sections.set(section, new Map());
      const rows = sections.get(section);
      if (!rows.has(name)) rows.set(name, [null, null]);
      rows.get(name)[i] = value;
    }
  });
  if (!sections.size) return null;
  const columns = h(
    "div",
    { class: "columns" },
    [...sections].map(([section, rows]) =>
      h(
        "section",
        {},
        h("h3", {}, section),
        h(
          "dl",
          {},
          [...rows].map(([name, [a, b]]) => {
            const differs = comparing() && a !== b;
            return h(
              "div",
              { class: differs ? "differs" : null },
              h("dt", {}, cut(name, 100)),
              h(
                "dd",
                { class: "mono" },
                differs
                  ? [`${cut(a === null ? "—" : a, 300)}`, h("br"), `${cut(b === null ? "—" : b, 300)}`]
                  : cut(a === null ? b : a, 600),
              ),
            );
          }),
        ),
      ),
    ),
  );
  return [h("h2", {}, "Environment"), columns];
}
