// The keyboard.

const KEYS = [
  ["n", "next stage or pass"],
  ["p", "previous stage or pass"],
  ["N", "next one that changed the graph"],
  ["P", "previous one that changed the graph"],
  ["d", "text or diff"],
  ["/", "search"],
  ["↑ ↓", "next or previous line, once one is chosen"],
  ["Esc", "close"],
  ["?", "this help"],
];

function startKeys() {
  const help = document.getElementById("help");
  help.append(
    h("h2", { id: "help-title" }, "Keyboard"),
    h(
      "dl",
      {},
      KEYS.map(([key, text]) => h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, text))),
    ),
    button("Close", () => help.close(), { class: "quiet" }),
  );
  document.getElementById("keys").addEventListener("click", () => help.showModal());
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") closeAll();
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, dialog[open]"))
      return;
    const action = ACTIONS[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}

const ACTIONS = {
  n: () => step(1, false),
  p: () => step(-1, false),
  N: () => step(1, true),
  P: () => step(-1, true),
  d: () => toggleDiff(),
  "/": () => openSearch(),
  "?": () => document.getElementById("help").showModal(),
};

function step(direction, changed) {
  const order = stageOrder();
  const here = Router.artifact;
  const at = order.findIndex((row) => here && (row.a === here || row.b === here || (row.a || row.b) === here.after));
  let i = at < 0 ? (direction > 0 ? -1 : order.length) : at;
  do i += direction;
  while (changed && order[i] && ![order[i].a, order[i].b].some((a) => a && changedOf(a)));
  if (order[i]) goStage(order[i]);
  else say(direction > 0 ? "No further stage" : "No earlier stage");
}

function toggleDiff() {
  if (!Router.artifact) return;
  const shown = document.querySelector(".tabs [aria-pressed=true]");
  const other = document.querySelector(".tabs [aria-pressed=false]");
  if (shown && other && !other.disabled) other.click();
}

function openSearch() {
  document.body.classList.add("finding");
  const input = document.getElementById("find");
  input.focus();
  input.select();
}

function closeAll() {
  document.body.classList.remove("nav-open", "finding");
  document.getElementById("menu").setAttribute("aria-expanded", "false");
  if (document.activeElement && document.activeElement.id === "find") document.activeElement.blur();
}
