// Looking for words in names and in texts.

const LEAST = 2; // characters before texts are searched
const HITS = 200; // texts that are listed
const LINES = 3; // lines that are shown of each

function searchPage(query) {
  const wanted = (query.get("q") || "").trim();
  const page = h("article", {}, h("h1", {}, "Search"));
  if (!wanted) {
    page.append(
      h(
        "p",
        { class: "muted" },
        "Type in the box at the top: names of stages, passes, kernels, ops and functions are searched, and all texts.",
      ),
    );
    return page;
  }
  const state = h("p", { class: "facts", role: "status" });
  const names = h("ul", { class: "results" });
  const texts = h("ul", { class: "results" });
  page.append(state, names, texts);
  page.shown = () => searchAll(wanted, { page, state, names, texts });
  return page;
}

async function searchAll(wanted, { page, state, names, texts }) {
  const low = wanted.toLowerCase();
  const all = Model.sides.flatMap((side) => side.artifacts);
  const named = all.filter((a) => a.kind !== "trace" && nameText(a).includes(low));
  const compiles = Model.sides
    .flatMap((s) => s.compiles)
    .filter((c) => `${c.id} ${compileName(c)}`.toLowerCase().includes(low));
  if (compiles.length + named.length) names.before(h("h2", {}, "Names"));
  names.append(
    ...compiles
      .slice(0, 20)
      .map((c) =>
        h(
          "li",
          {},
          h("a", { href: `#/compile/${c.ref}` }, h("span", { class: "mono" }, c.id), ` ${cut(compileName(c), 100)}`),
          h("span", { class: "muted" }, " compile"),
        ),
      ),
    ...named
      .slice(0, 50)
      .map((a) =>
        h(
          "li",
          {},
          h("a", { href: stageLink(a) }, placeName(a)),
          h("span", { class: "muted" }, ` ${a.kind.replace("_", " ")}${a.direction ? ` · ${a.direction}` : ""}`),
        ),
      ),
    ...(named.length > 50 ? [h("li", { class: "muted" }, `and ${number(named.length - 50)} more`)] : []),
  );
  if (low.length < LEAST) {
    state.textContent = "Two characters or more are looked for in texts as well.";
    return;
  }
  texts.before(h("h2", {}, "Texts"));
  const byDigest = new Map();
  for (const a of all) if (Store.has(a.digest)) byDigest.set(a.digest, [...(byDigest.get(a.digest) || []), a]);
  const order = [...byDigest.keys()].sort((x, y) => Store.data.texts[x][0] - Store.data.texts[y][0]);
  const matcher = new RegExp(wanted.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"), "gi");
  let found = 0;
  let matches = 0;
  let pause = performance.now();
  for (const [i, digest] of order.entries()) {
    const text = await Store.text(digest);
    const hit = matchesIn(text, matcher);
    if (hit.count) {
      found++;
      matches += hit.count;
      if (found <= HITS) texts.append(resultItem(byDigest.get(digest), hit, wanted));
    }
    if (performance.now() - pause > 40) {
      state.textContent = `Searching, ${Math.round((100 * i) / order.length)} %`;
      await breathe();
      if (!page.isConnected) return;
      pause = performance.now();
    }
  }
  const shown = found > HITS ? `, the first ${HITS} shown` : "";
  state.textContent = `${plural(matches, "match", "matches")} in ${plural(found, "text")}${shown}; ${plural(named.length + compiles.length, "name")}`;
}

function nameText(artifact) {
  const kernel = artifact.kernel ? [artifact.kernel.name, artifact.kernel.backend, ...(artifact.kernel.ops || [])] : [];
  const tuned = artifact.autotune ? [artifact.autotune.operation, artifact.autotune.winner] : [];
  return [artifact.name, artifact.stage, artifact.kind, ...kernel, ...tuned].filter(Boolean).join(" ").toLowerCase();
}

// How often a pattern occurs, and the first lines where it does.
function matchesIn(text, matcher) {
  const lines = [];
  let count = 0;
  let end = -1;
  matcher.lastIndex = 0;
  for (let m = matcher.exec(text); m; m = matcher.exec(text)) {
    count++;
    if (lines.length >= LINES || m.index < end) continue;
    const start = text.lastIndexOf("\n", m.index - 1) + 1;
    end = text.indexOf("\n", m.index);
    if (end < 0) end = text.length;
    const from = Math.max(start, m.index - 60);
    lines.push({ line: text.slice(from, Math.min(end, from + 240)), at: m.index - from, length: m[0].length });
  }
  return { count, lines };
}

function resultItem(artifacts, hit, wanted) {
  const [first, ...others] = artifacts;
  return h(
    "li",
    {},
    h("a", { href: stageLink(first, { mode: "text", q: wanted }) }, placeName(first)),
    h(
      "span",
      { class: "muted" },
      ` ${first.kind.replace("_", " ")} · ${plural(hit.count, "match", "matches")}${others.length ? ` · same text in ${plural(others.length, "other artifact")}` : ""}`,
    ),
    h(
      "pre",
      {},
      hit.lines.flatMap(({ line, at, length }) => [
        line.slice(0, at),
        h("mark", {}, line.slice(at, at + length)),
        line.slice(at + length),
        "\n",
      ]),
    ),
  );
}
