// What is not in a bundle, and what would bring it back.

function missing(side) {
  const omitted = Object.entries(side.omitted || {});
  const redacted = Object.entries(side.redactions || {});
  const errors = side.hook_errors || [];
  if (!omitted.length && !redacted.length && !errors.length) return null;
  return h(
    "section",
    {},
    h("h2", {}, comparing() ? `Left out of ${side.letter.toUpperCase()}` : "Left out"),
    omitted.length
      ? h(
          "ul",
          {},
          omitted.map(([reason, o]) =>
            h(
              "li",
              {},
              `${cut(reason, 100)}: ${plural(o.indexed || 0, "artifact")} listed without text, ${number(o.dropped || 0)} only counted`,
              o.bytes ? `, ${bytes(o.bytes)}` : "",
              `. ${remedy(reason, null)}`,
            ),
          ),
        )
      : null,
    redacted.length
      ? h(
          "p",
          {},
          "Replaced as private: ",
          redacted.map(([rule, n]) => `${cut(rule, 60)} ${number(n)}`).join(", "),
          ".",
        )
      : null,
    errors.length
      ? h(
          "ul",
          {},
          errors.map((e) =>
            h(
              "li",
              {},
              `Hook ${cut(e.hook, 80)} failed ${e.count > 1 ? `${e.count} times` : "once"}: ${cut(e.error, 400)}`,
            ),
          ),
        )
      : null,
  );
}

// What brings an omitted text back.
function remedy(reason, needs) {
  const field = /^filter:(\w+)$/.exec(reason);
  if (field) return `The filter STRUCTDUMP_${field[1].toUpperCase()} leaves it out.`;
  if (reason === "level")
    return needs ? `STRUCTDUMP_LEVEL=${needs} keeps it.` : "A higher STRUCTDUMP_LEVEL keeps more.";
  if (reason === "budget") return "A larger STRUCTDUMP_MAX_BYTES keeps it.";
  return "";
}
