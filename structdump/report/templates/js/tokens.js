// A small tokenizer: a line of text in, [class, text, link?] tokens out. What it does not know stays plain.

const LONG = 2000; // characters of a line that are coloured
const KEYWORDS = {
  python: new Set(
    (
      "and as assert async await break class continue def del elif else except finally for from global if import in is " +
      "lambda nonlocal not or pass raise return try while with yield None True False"
    ).split(" "),
  ),
  cpp: new Set(
    (
      "auto bool break case char class const constexpr continue default do double else enum extern false float for if " +
      "inline int int32_t int64_t long namespace nullptr return short signed sizeof static static_cast struct switch " +
      "template this true typedef typename uint32_t uint64_t uint8_t int8_t unsigned using void volatile while half bfloat16"
    ).split(" "),
  ),
  json: new Set(["true", "false", "null"]),
};
const PATTERNS = {
  python:
    /(?<cm>#.*)|(?<st>[rbfu]{0,2}(?:"[^"\\]*(?:\\.[^"\\]*)*"?|'[^'\\]*(?:\\.[^'\\]*)*'?))|(?<at>@[\w.]+)|(?<nu>\b\d[\w.]*)|(?<id>[A-Za-z_%][\w.]*)|[ \t]+|[^\w\s]/giy,
  cpp: /(?<cm>\/\/.*|\/\*.*?(?:\*\/|$))|(?<at>^\s*#\s*\w+)|(?<st>"[^"\\]*(?:\\.[^"\\]*)*"?|'[^'\\]*(?:\\.[^'\\]*)*'?)|(?<nu>\b\d[\w.]*)|(?<id>[A-Za-z_][\w]*(?:::\w+)*)|[ \t]+|[^\w\s]/gy,
  json: /(?<key>"[^"\\]*(?:\\.[^"\\]*)*"(?=\s*:))|(?<st>"[^"\\]*(?:\\.[^"\\]*)*"?)|(?<nu>-?\b\d[\w.+-]*)|(?<id>[a-z]+)|[ \t]+|[^\w\s]/gy,
  text: /(?<cm>^\s*(?:\/\/|;|#).*)|(?<st>"[^"]*"|'[^'\s]*')|(?<id>[%$@][\w.]+)|(?<nu>\b\d[\d.]*\b)|[ \t]+|\w+|[^\w\s]/gy,
};
const OPS = /^(?:torch\.ops|aten|prims|torch\._higher_order_ops|extern_kernels)\./;
const TYPE = /^"[a-z]+\d*\[/;
const SOURCE = /^(\s*#.*?\bFile: )(.+?:\d+)( in .+?, code: )(.*)$/;

function languageOf(artifact) {
  return PATTERNS[artifact.language] ? artifact.language : "text";
}

// Tokens of one line. `state` is what `lineStates` says of it: a language, or "string".
function tokenize(line, language, state) {
  if (state === "string") return [["st", line]];
  const source = language === "python" && line.length < LONG ? SOURCE.exec(line) : null;
  if (source)
    return [
      ["cm", source[1]],
      ["src", source[2]],
      ["cm", source[3]],
      ["code", source[4]],
    ];
  const tokens = [];
  const pattern = PATTERNS[state || language];
  const words = KEYWORDS[state || language];
  const head = line.length > LONG ? line.slice(0, LONG) : line;
  pattern.lastIndex = 0;
  let end = 0;
  let previous = "";
  while (end < head.length) {
    const match = pattern.exec(head);
    if (!match) break;
    end = pattern.lastIndex;
    const { cm, st, at, nu, id, key } = match.groups;
    let kind = "";
    if (cm !== undefined) kind = "cm";
    else if (key !== undefined) kind = "key";
    else if (st !== undefined) kind = TYPE.test(st) ? "ty" : "st";
    else if (at !== undefined) kind = "at";
    else if (nu !== undefined) kind = "nu";
    else if (id !== undefined) kind = identifier(id, words, previous, head, end);
    if (kind || match[0].trim()) previous = match[0];
    const last = tokens[tokens.length - 1];
    if (!kind && last && !last[0]) last[1] += match[0];
    else tokens.push([kind, match[0]]);
  }
  if (end < line.length) tokens.push(["", line.slice(end)]);
  return tokens;
}

function identifier(id, words, previous, line, end) {
  if (words && words.has(id)) return "kw";
  if (previous === "def" || previous === "class") return "df";
  if (OPS.test(id)) return "op";
  if (/^[%$]/.test(id)) return "vr";
  return !id.includes(".") && line[end] === "(" ? "fn" : "id";
}

// For each line, null or the language it is in within a triple-quoted string: a kernel's, or "string".
function lineStates(lines, language) {
  const states = new Array(lines.length).fill(null);
  if (language !== "python") return states;
  const opening = /#|'''|"""|'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*"/g;
  let quote = null;
  let state = null;
  lines.forEach((line, i) => {
    if (quote) states[i] = state;
    if (line.length > LONG * 4) return;
    let from = 0;
    while (from < line.length) {
      if (quote) {
        const close = line.indexOf(quote, from);
        if (close < 0) return;
        from = close + 3;
        quote = null;
      } else {
        opening.lastIndex = from;
        const match = opening.exec(line);
        if (!match || match[0] === "#") return;
        from = opening.lastIndex;
        if (match[0] === "'''" || match[0] === '"""') {
          quote = match[0];
          state = embedded(line.slice(0, match.index));
        }
      }
    }
  });
  return states;
}

// What a triple-quoted string that stands after `before` holds.
function embedded(before) {
  if (/async_compile\.(cpp|cuda|rocm|halide)/.test(before)) return "cpp";
  return /async_compile\.\w+\(|kernel_src|_source\s*=/.test(before) ? "python" : "string";
}
