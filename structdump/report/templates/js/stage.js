// One artifact: its text, or what differs between it and another.

const Reading = { mode: null, loose: false, wrap: false, split: null };

function wantsSplit() {
  return Reading.split === null ? !matchMedia("(max-width: 900px)").matches : Reading.split;
}

async function stagePage(artifact, query) {
  const base = chosenBase(artifact, query);
  const mode = query.get("mode") || Reading.mode || (comparing() && artifact.other ? "diff" : "text");
  const content = await contentOf(artifact);
  const body = h("div", { class: "body" });
  const page = h(
    "article",
    { class: "reading" },
    stageHead(artifact),
    kernelFacts(artifact),
    autotuneCard(artifact),
    toolbar(artifact, base, mode, content),
    body,
  );
  if (content === null) body.append(omissionNote(artifact));
  else if (mode === "diff" && base) await showDiff(body, base, artifact, content);
  else await showText(body, artifact, content, query, page);
  return page;
}

function chosenBase(artifact, query) {
  const asked = query.get("base") && artifactOf(query.get("base"));
  if (asked) return asked;
  if (artifact.other && Store.has(artifact.other.digest)) return artifact.side.index ? artifact.other : artifact;
  return defaultBase(artifact);
}

// The text, or small structured content written as one; null where the bundle has neither.
async function contentOf(artifact) {
  const text = await Store.text(artifact.digest);
  if (text !== null) return { text, language: languageOf(artifact) };
  if (artifact.data !== undefined) return { text: JSON.stringify(artifact.data, null, 2), language: "json" };
  return null;
}

function stageHead(artifact) {
  const { compile } = artifact;
  const order = stageOrder();
  const at = order.findIndex((row) => row.a === artifact || row.b === artifact);
  return h(
    "header",
    { class: "title" },
    h(
      "p",
      { class: "crumbs" },
      compile
        ? h(
            "a",
            { href: `#/compile/${compile.ref}` },
            h("span", { class: "mono" }, compile.id),
            ` ${cut(compileName(compile), 60)}`,
          )
        : "Outside a compile",
      STAGE_KINDS.has(artifact.kind) ? ` › ${cut(groupName(artifact), 80)}` : ` › ${artifact.kind.replace("_", " ")}`,
      comparing() ? ` · bundle ${artifact.side.letter.toUpperCase()}` : null,
    ),
    h(
      "div",
      { class: "name-line" },
      h("h1", {}, cut(artifactName(artifact), 160)),
      at >= 0
        ? h(
            "span",
            { class: "steps" },
            stepButton(order, at, -1),
            h("span", { class: "muted" }, `${at + 1} of ${order.length}`),
            stepButton(order, at, 1),
          )
        : null,
    ),
    artifact.name !== artifactName(artifact) ? h("p", { class: "muted mono small" }, cut(artifact.name, 200)) : null,
    artifactFacts(artifact),
  );
}

function stepButton(order, at, step) {
  const row = order[at + step];
  const label = step > 0 ? "Next stage (n)" : "Previous stage (p)";
  return button(step > 0 ? "›" : "‹", () => goStage(row), {
    class: "icon",
    "aria-label": label,
    title: label,
    disabled: !row,
  });
}

function goStage(row) {
  const artifact = row.a || row.b;
  location.hash = stageLink(artifact);
}

function toolbar(artifact, base, mode, content) {
  if (content === null) return null;
  const diff = mode === "diff" && base;
  const set = (change) => {
    Object.assign(Reading, change);
    showRoute(true);
  };
  const tab = (name, label, disabled) =>
    button(
      label,
      () => {
        Reading.mode = name;
        const asked = Router.query.get("base");
        location.hash = stageLink(artifact, { mode: name, ...(asked ? { base: asked } : {}) });
      },
      { "aria-pressed": String((diff ? "diff" : "text") === name), disabled },
    );
  const check = (key, label) =>
    h(
      "label",
      {},
      h("input", { type: "checkbox", checked: Reading[key], onchange: (e) => set({ [key]: e.target.checked }) }),
      ` ${label}`,
    );
  return h(
    "div",
    { class: "tools", role: "toolbar", "aria-label": "View" },
    h("span", { class: "tabs" }, tab("text", "Text"), tab("diff", "Diff", !base)),
    baseSelect(artifact, base),
    diff
      ? button(wantsSplit() ? "Side by side" : "One column", () => set({ split: !wantsSplit() }), {
          class: "quiet",
          "aria-label": `Layout: ${wantsSplit() ? "side by side" : "one column"}`,
        })
      : null,
    diff ? check("loose", "Ignore numbering") : check("wrap", "Wrap"),
    h("span", { class: "push" }),
    button("Copy", (e) => copyText(content.text, e.currentTarget), { class: "quiet", "aria-label": "Copy the text" }),
    button("Save", () => saveText(artifact, content), { class: "quiet", "aria-label": "Save the text as a file" }),
  );
}

function baseSelect(artifact, base) {
  const groups = Model.sides.flatMap((side) =>
    [...side.compiles.map((c) => [c, c.artifacts]), [null, side.loose]].map(([compile, list]) => [side, compile, list]),
  );
  const home = (compile) => compile === artifact.compile;
  groups.sort((x, y) => home(y[1]) - home(x[1]));
  const select = h("select", {
    onchange: (e) => {
      Reading.mode = "diff";
      location.hash = stageLink(artifact, { mode: "diff", base: e.target.value });
    },
  });
  if (!base) select.append(h("option", { value: artifact.ref, selected: true }, "another stage…"));
  for (const [side, compile, list] of groups) {
    const options = list.filter(
      (a) =>
        (STAGE_KINDS.has(a.kind) || a === base || a.kind === artifact.kind) &&
        a.kind !== "trace" &&
        Store.has(a.digest),
    );
    if (!options.length) continue;
    const letter = comparing() ? `${side.letter.toUpperCase()} · ` : "";
    select.append(
      h(
        "optgroup",
        { label: compile ? `${letter}${compile.id} ${cut(compileName(compile), 40)}` : `${letter}outside a compile` },
        options.map((a) =>
          h(
            "option",
            { value: a.ref, selected: a === base },
            `${cut(artifactName(a), 60)}${a.direction ? ` · ${a.direction}` : ""}`,
          ),
        ),
      ),
    );
  }
  return h("label", { class: "against" }, h("span", {}, "Against"), select);
}

async function showDiff(body, base, artifact, content) {
  const from = await contentOf(base);
  const to = base === artifact && artifact.other ? artifact.other : artifact;
  const target = to === artifact ? content : await contentOf(to);
  const view = diffView(
    { ...from, side: base.side, names: kernelNames(base) },
    { ...target, side: to.side, names: kernelNames(to) },
    { loose: Reading.loose, split: wantsSplit() },
  );
  const ops = opChanges(base, to);
  body.append(
    h(
      "div",
      { class: "summary" },
      h("span", { class: "mono" }, placeName(base)),
      h("span", { class: "muted" }, "→"),
      h("span", { class: "mono" }, placeName(to)),
      h("b", { class: "plus" }, `+${number(view.added)}`),
      h("b", { class: "minus" }, `−${number(view.gone)}`),
      view.rough ? h("span", { class: "muted" }, "Too different to align line by line.") : null,
      ops
        .slice(0, 12)
        .map(([op, n]) => h("span", { class: "pairing mono" }, h("span", {}, cut(op, 60)), h("b", {}, signed(n)))),
      ops.length > 12 ? h("span", { class: "muted" }, `and ${ops.length - 12} more ops`) : null,
    ),
    view.root,
  );
}

function placeName(artifact) {
  const letter = comparing() ? `${artifact.side.letter.toUpperCase()} ` : "";
  return `${letter}${artifact.compile ? `${artifact.compile.id} ` : ""}${cut(artifactName(artifact), 60)}`;
}

async function showText(body, artifact, content, query, page) {
  const graph = isGraph(artifact);
  const entries = graph ? readGraph(content.text.split("\n")) : [];
  const finder = graph ? kernelFinder(artifact) : null;
  const strip = h("div", { class: "strip", hidden: true, role: "status" });
  const at = query.get("at");
  const marks = new Set(
    (query.get("lines") || "")
      .split(",")
      .filter(Boolean)
      .map((n) => Number(n) - 1),
  );
  if (at) entries.forEach((e, i) => e && e.name && e.frame && `${e.frame.file}:${e.frame.line}` === at && marks.add(i));
  const view = textView(content.text, {
    language: content.language,
    side: artifact.side,
    names: kernelNames(artifact),
    query: query.get("q"),
    marks,
    label: `Text of ${artifactName(artifact)}`,
    touched: graph ? (i) => finder(entries[i]).kernels.length > 0 : null,
    choose(i) {
      const facts = graph ? lineFacts(artifact, entries[i], finder) : null;
      strip.replaceChildren(...(facts || []));
      strip.hidden = !facts;
    },
  });
  if (Reading.wrap) view.root.classList.add("wrap");
  body.append(view.root, strip);
  const first = marks.size
    ? Math.min(...marks)
    : query.get("q")
      ? view.lines.findIndex((l) => l.toLowerCase().includes(query.get("q").toLowerCase()))
      : -1;
  if (first >= 0) page.shown = () => view.choose(first);
}

async function copyText(text, control) {
  try {
    await navigator.clipboard.writeText(text);
    control.textContent = "Copied";
    say("Copied");
  } catch {
    control.textContent = "No clipboard";
  }
}

function saveText(artifact, content) {
  const ending = { python: "py", cpp: "cpp", json: "json" }[content.language] || "txt";
  const name =
    artifactName(artifact)
      .replace(/[^A-Za-z0-9._-]+/g, "_")
      .slice(0, 80) || "text";
  const url = URL.createObjectURL(new Blob([content.text], { type: "text/plain" }));
  const link = h("a", { href: url, download: `${name}.${ending}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
