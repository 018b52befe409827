// Starts the page.

function startMenu() {
  const menu = document.getElementById("menu");
  const toggle = () => menu.setAttribute("aria-expanded", String(document.body.classList.toggle("nav-open")));
  menu.addEventListener("click", toggle);
  document.getElementById("shade").addEventListener("click", closeAll);
  document.getElementById("side").addEventListener("click", (event) => event.target.closest("a") && closeAll());
  document.getElementById("lens").addEventListener("click", openSearch);
}

function startSearch() {
  const input = document.getElementById("find");
  let timer = 0;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      const address = `#/search?${new URLSearchParams({ q: input.value })}`;
      if (Router.page === "search") history.replaceState(null, "", address);
      else history.pushState(null, "", address);
      showRoute();
    }, 200);
  });
  if (Router.page === "search") input.value = Router.query.get("q") || "";
}

async function start() {
  startTheme();
  try {
    buildModel(await Store.open());
    buildTree();
    const names = Model.sides.map((side) => side.run.program || side.name);
    document.getElementById("run").textContent = cut(names.join(" · "), 80);
    startMenu();
    startKeys();
    await showRoute();
    startSearch();
    window.addEventListener("hashchange", () => showRoute());
    document.documentElement.dataset.ready = "1";
  } catch (error) {
    document
      .getElementById("main")
      .replaceChildren(emptyPage("This report cannot be opened", String(error && error.message)));
  }
}

start();
