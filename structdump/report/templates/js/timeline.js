// When each phase of each compile ran, as bars on one time axis; a bar that is pressed fills the width.

function timelinePage() {
  const parts = Model.sides.map((side) => sideTimeline(side)).filter(Boolean);
  if (!parts.length) return emptyPage("Timeline", "The bundle holds no times of compile phases.");
  return h("article", {}, h("h1", {}, "Timeline"), parts);
}

function sideTimeline(side) {
  const spans = side.timeline.map(([compile, name, start, length, depth]) => ({ compile, name, start, length, depth }));
  if (!spans.length) return null;
  const timed = spans.filter((s) => s.start !== null);
  const end = largest(timed, (s) => s.start + (s.length || 0));
  const box = h("div", { class: "timeline" });
  const reset = button("Whole run", () => draw(0, end), { class: "quiet", hidden: true });
  const draw = (from, to) => {
    reset.hidden = from === 0 && to === end;
    box.replaceChildren(...(timed.length ? [axis(from, to)] : []), ...lanes(side, spans, from, to, draw));
  };
  draw(0, end);
  return h(
    "section",
    {},
    comparing() ? h("h2", {}, `Bundle ${side.letter.toUpperCase()}`) : null,
    h(
      "p",
      { class: "facts" },
      timed.length
        ? h("span", {}, `${seconds(end)} from the first phase to the last`)
        : h("span", {}, "Durations only: when each phase began is in bundles of level full"),
      reset,
    ),
    box,
    branch("As a table", spans.length, () => [spanTable(side, spans)], "plain"),
  );
}

function axis(from, to) {
  const marks = [0, 0.25, 0.5, 0.75].map((part) => {
    const tick = h("span", {}, seconds(from + (to - from) * part) || "0");
    tick.style.left = `${part * 100}%`;
    return tick;
  });
  return h("div", { class: "axis", "aria-hidden": "true" }, marks);
}

function lanes(side, spans, from, to, zoom) {
  const groups = new Map();
  for (const span of spans) groups.set(span.compile, [...(groups.get(span.compile) || []), span]);
  const order = [...groups].sort(([x], [y]) => (x === null) - (y === null));
  return order.map(([id, own]) => {
    const compile = side.byId.get(id);
    const title = compile
      ? h(
          "a",
          { href: `#/compile/${compile.ref}` },
          h("span", { class: "mono" }, id),
          ` ${cut(compileName(compile), 60)}`,
        )
      : cut(id || "Outside a compile", 60);
    const timed = own[0].start !== null;
    return h(
      "section",
      { class: "lane" },
      h("h3", {}, title),
      timed ? timedRows(own, from, to, zoom) : durationRows(own),
    );
  });
}

function timedRows(own, from, to, zoom) {
  const width = to - from || 1;
  const visible = own.filter(
    (s) => s.start < to && s.start + (s.length || 0) > from && (s.length || 0) / width > 0.0005,
  );
  const track = h("div", { class: "flame" });
  const rows = stacked(visible);
  track.style.height = `${Math.max(1, ...rows.map((row) => row + 1)) * 22}px`;
  for (const [i, span] of visible.entries()) {
    const length = span.length || 0;
    const left = Math.max(0, (span.start - from) / width);
    const right = Math.min(1, (span.start + length - from) / width);
    const text = `${cut(span.name, 60)} ${span.length === null ? "unfinished" : seconds(length)}`;
    const shape = button(right - left > 0.05 ? text : "", () => zoom(span.start, span.start + length), {
      class: `span d${rows[i] % 5}`,
      title: text,
      "aria-label": text,
    });
    shape.style.left = `${left * 100}%`;
    shape.style.width = `${Math.max((right - left) * 100, 0.15)}%`;
    shape.style.top = `${rows[i] * 22}px`;
    track.append(shape);
  }
  return track;
}

// The row of each span: its depth where that is free, else the next free one below (threads run side by side).
function stacked(spans) {
  const least = Math.min(...spans.map((s) => s.depth));
  const ends = [];
  return spans.map((span) => {
    let row = Math.min(span.depth - least, ends.length);
    while ((ends[row] || 0) > span.start + 1e-6) row++;
    ends[row] = span.start + (span.length || 0);
    return row;
  });
}

function durationRows(own) {
  const most = largest(own, (s) => s.length);
  return h(
    "ul",
    { class: "durations" },
    own.map((s) => {
      const label = h("span", { class: "label" }, cut(s.name.replace(/_/g, " "), 60));
      label.style.paddingLeft = `${s.depth * 14}px`;
      return h("li", {}, label, bar(s.length, most, seconds(s.length)));
    }),
  );
}

function spanTable(side, spans) {
  const most = largest(spans, (s) => s.length);
  return sortableTable(
    "Compile phases",
    [
      { title: "Phase", value: (s) => s.name },
      { title: "Compile", value: (s) => s.compile, cell: (s) => (s.compile ? compileRef(side, s.compile) : null) },
      {
        title: "Begins at",
        numeric: true,
        value: (s) => s.start,
        cell: (s) => (s.start === null ? null : seconds(s.start) || "0"),
      },
      { title: "Time", numeric: true, value: (s) => s.length, cell: (s) => bar(s.length, most, seconds(s.length)) },
    ],
    spans,
  );
}
