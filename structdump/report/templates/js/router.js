// From the address to a page.

const Router = { query: new URLSearchParams(), page: "", turn: 0, artifact: null };

const PAGES = {
  overview: () => overviewPage(),
  kernels: () => kernelsPage(),
  configs: () => configsPage(),
  autotune: () => autotunePage(),
  timeline: () => timelinePage(),
  artifacts: (_, query) => artifactsPage(query),
  search: (_, query) => searchPage(query),
  source: (letter, query) => sourcePage(Model.sides["ab".indexOf(letter)] || Model.sides[0], query),
  compile: (ref) => {
    const compile = compileOf(ref);
    return compile ? compilePage(compile) : null;
  },
  stage: (ref, query) => {
    const artifact = artifactOf(ref);
    return artifact ? stagePage(artifact, query) : null;
  },
};

function readAddress() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [page, ref = ""] = path.split("/");
  return { page: Object.hasOwn(PAGES, page) ? page : "overview", ref, query: new URLSearchParams(query) };
}

// Shows what the address says; `stay` keeps the place on the page.
async function showRoute(stay) {
  const { page, ref, query } = readAddress();
  const turn = ++Router.turn;
  Object.assign(Router, { page, query, artifact: page === "stage" ? artifactOf(ref) : null });
  const main = document.getElementById("main");
  main.setAttribute("aria-busy", "true");
  let content;
  try {
    content = (await PAGES[page](ref, query)) || emptyPage("Not here", "This report has no such page.");
  } catch (error) {
    content = emptyPage("This cannot be shown", String(error && error.message));
  }
  if (turn !== Router.turn) return;
  const place = main.scrollTop;
  main.replaceChildren(content);
  main.removeAttribute("aria-busy");
  main.scrollTop = stay === true ? place : 0;
  markCurrent(page, Router.artifact, page === "compile" ? compileOf(ref) : null);
  document.body.classList.remove("nav-open");
  document.getElementById("menu").setAttribute("aria-expanded", "false");
  const title = content.querySelector("h1");
  document.title = `${title ? title.textContent : "Report"} · structdump`;
  if (content.shown) content.shown();
  if (stay !== true && title) say(title.textContent);
}
