// Small bars behind numbers, and the small words beside names.

function bar(value, largest, label) {
  if (typeof value !== "number") return null;
  const fill = h("span", { class: "fill", "aria-hidden": "true" });
  fill.style.width = `${largest > 0 ? Math.max(1, (100 * value) / largest) : 0}%`;
  return h(
    "span",
    { class: "bar" },
    h("span", { class: "track", "aria-hidden": "true" }, fill),
    h("span", { class: "amount" }, label),
  );
}

function largest(rows, value) {
  return rows.reduce((most, row) => Math.max(most, value(row) || 0), 0);
}

function badge(text, kind) {
  return h("span", { class: `badge ${kind || ""}` }, text);
}

const STATES = {
  changed: "changed the graph",
  unchanged: "changed nothing",
  omitted: "text not in the bundle",
  plain: "",
};

function mark(state) {
  return [
    h("i", { class: `mark ${state}`, "aria-hidden": "true" }),
    STATES[state] ? unseen(`${STATES[state]}: `) : null,
  ];
}

const STATUSES = { ok: "ok", failed: "failed", fell_back: "fell back", skipped: "skipped", unfinished: "unfinished" };

function statusBadge(status) {
  const kind = { ok: "good", failed: "bad", fell_back: "bad" }[status] || "";
  return badge(STATUSES[status] || status, kind);
}
