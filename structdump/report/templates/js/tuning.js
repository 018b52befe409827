// What tuning chose: launch configurations of kernels, and choices of tuned operations with their times.

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function configsPage() {
  const rows = Model.sides.flatMap((side) => side.artifacts.filter((a) => a.kind === "best_config"));
  if (!rows.length)
    return emptyPage(
      "Configs",
      "The bundle holds no tuned launch configurations. They are written when a kernel first runs on a GPU.",
    );
  const config = (a) => ({ ...(isObject(a.data) ? a.data : {}), ...((a.kernel && a.kernel.best_config) || {}) });
  const took = (a) => (typeof config(a).time_taken_ms === "number" ? config(a).time_taken_ms / 1e3 : null);
  const most = largest(rows, took);
  const kernel = (a) =>
    siblings(a).find((k) => k.kind === "kernel" && k.kernel && a.kernel && k.kernel.name === a.kernel.name);
  const name = (a) => (a.kernel ? a.kernel.name : a.name);
  return h(
    "article",
    {},
    h("h1", {}, "Configs"),
    h("p", { class: "facts" }, h("span", {}, `${plural(rows.length, "launch configuration")} that tuning chose`)),
    sortableTable(
      "Launch configurations",
      [
        {
          title: "Kernel",
          value: name,
          wide: true,
          cell: (a) => [
            h("a", { class: "mono", href: stageLink(kernel(a) || a) }, cut(name(a), 100)),
            Array.isArray(config(a).possible_kernels)
              ? h("small", { class: "muted" }, ` of one of ${plural(config(a).possible_kernels.length, "kernel")}`)
              : null,
          ],
        },
        { title: "Bundle", value: (a) => (comparing() ? a.side.letter.toUpperCase() : null) },
        {
          title: "Compile",
          value: (a) => a.compile_id,
          cell: (a) => (a.compile ? compileRef(a.side, a.compile_id) : null),
        },
        {
          title: "Config",
          value: (a) => configText(config(a)),
          cell: (a) => h("span", { class: "chips tight" }, configChips(config(a))),
        },
        { title: "Tuning took", numeric: true, value: took, cell: (a) => bar(took(a), most, seconds(took(a))) },
        {
          title: "Coordinate descent",
          value: (a) =>
            config(a).found_by_coordesc === undefined ? null : config(a).found_by_coordesc ? "found it" : "no",
        },
        {
          title: "Hash",
          value: (a) => config(a).configs_hash,
          cell: (a) => h("span", { class: "mono small" }, cut(config(a).configs_hash || "", 12)),
        },
      ],
      rows,
    ),
  );
}

function autotunePage() {
  const rows = Model.sides.flatMap((side) => side.artifacts.filter((a) => a.autotune));
  if (!rows.length)
    return emptyPage("Autotuning", 'No operation was tuned among choices. mode="max-autotune" does that.');
  const time = (a) => bestSeconds(a.autotune);
  const most = largest(rows, time);
  return h(
    "article",
    {},
    h("h1", {}, "Autotuning"),
    h("p", { class: "facts" }, h("span", {}, `${plural(rows.length, "operation")} tuned among choices`)),
    sortableTable(
      "Tuned operations",
      [
        {
          title: "Operation",
          value: (a) => a.autotune.operation,
          cell: (a) => h("a", { class: "mono", href: stageLink(a) }, cut(a.autotune.operation, 80)),
        },
        { title: "Bundle", value: (a) => (comparing() ? a.side.letter.toUpperCase() : null) },
        {
          title: "Compile",
          value: (a) => a.compile_id,
          cell: (a) => (a.compile ? compileRef(a.side, a.compile_id) : null),
        },
        {
          title: "Shapes",
          value: (a) => (a.autotune.shapes || []).join(" × "),
          cell: (a) => h("span", { class: "mono small" }, cut((a.autotune.shapes || []).join(" × "), 120)),
        },
        {
          title: "Winner",
          value: (a) => a.autotune.winner,
          cell: (a) => h("span", { class: "mono small" }, cut(a.autotune.winner || "", 80)),
        },
        { title: "Best time", numeric: true, value: time, cell: (a) => bar(time(a), most, seconds(time(a))) },
        { title: "Choices", numeric: true, value: (a) => (a.autotune.choices || []).length },
        {
          title: "Tuning took",
          numeric: true,
          value: (a) => a.autotune.seconds,
          cell: (a) => seconds(a.autotune.seconds),
        },
      ],
      rows,
    ),
    rows.length <= 40
      ? rows.map((a) =>
          branch(
            [
              h("span", { class: "mono" }, cut(a.autotune.operation, 80)),
              " ",
              cut((a.autotune.shapes || []).join(" × "), 100),
            ],
            (a.autotune.choices || []).length,
            () => [choiceTable(a.autotune)],
            "plain",
          ),
        )
      : null,
  );
}

function bestSeconds(autotune) {
  const times = (autotune.choices || []).map((c) => c.seconds).filter((t) => typeof t === "number");
  return times.length ? Math.min(...times) : null;
}

function autotuneCard(artifact) {
  return artifact.autotune ? h("section", { class: "card" }, choiceTable(artifact.autotune)) : null;
}

function choiceTable(autotune) {
  const choices = autotune.choices || [];
  if (!choices.length)
    return h(
      "p",
      { class: "muted" },
      autotune.winner
        ? `Winner: ${cut(autotune.winner, 200)}. Its rivals are not in the bundle.`
        : "No choices are in the bundle.",
    );
  const most = largest(choices, (c) => c.seconds);
  const best = bestSeconds(autotune);
  const ratio = (c) => (typeof c.seconds === "number" && best ? c.seconds / best : null);
  return sortableTable(
    `Choices for ${cut(autotune.operation, 80)}`,
    [
      {
        title: "Choice",
        value: (c) => c.name,
        cell: (c) => [
          h("span", { class: "mono" }, cut(c.name, 100)),
          c.name === autotune.winner ? [" ", badge("winner", "good")] : null,
        ],
      },
      { title: "Time", numeric: true, value: (c) => c.seconds, cell: (c) => bar(c.seconds, most, seconds(c.seconds)) },
      {
        title: "Against best",
        numeric: true,
        value: ratio,
        cell: (c) => (ratio(c) === null ? null : `${ratio(c).toFixed(2)}×`),
      },
      {
        title: "Config",
        value: (c) => (c.config && Object.keys(c.config).length ? configText(c.config) : null),
        cell: (c) => h("span", { class: "mono small" }, cut(configText(c.config || {}), 200)),
      },
    ],
    choices,
    { title: "Time", down: false },
  );
}
