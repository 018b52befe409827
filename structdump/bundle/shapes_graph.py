"""Rewrites the text of an FX graph so that it tells topology and shapes, and nothing of the user's.

The text stays the Python that torch prints, so whatever reads graphs reads it too. It is written
anew, token by token, from what is known: torch's ops, functions, methods and arguments, dtypes,
devices, shapes, and values named after their ops. Any other name becomes a token, any other literal
`...`; comments go. Whole numbers stay where an op takes dimensions or sizes.
"""

from __future__ import annotations

import re

from structdump.bundle.shapes_names import (
    CLASSES,
    KEYWORDS,
    Names,
    is_derived,
    is_function,
    is_generic,
    is_op,
)
from structdump.bundle.torch_names import known

_TOKEN = re.compile(
    r"(?P<space>[ \t]+)|(?P<comment>#[^\n]*)"
    r"|(?P<string>[rbfuRBFU]{0,2}(?:\"(?:[^\"\\\n]|\\.)*(?:\"|(?=\n)|$)|'(?:[^'\\\n]|\\.)*(?:'|(?=\n)|$)))"
    r"|(?P<name>[^\W\d]\w*(?:\.[^\W\d]\w*)*)(?P<call>\()?"
    r"|(?P<number>(?:(?<=[\[(, =:])-)?\d[\w.]*(?:(?<=[eE])[+-]\d+)?)"
    r"|(?P<open>[\[({])|(?P<close>[\])}])|(?P<line>\n)"
    r"|(?P<sign>->|//|\*\*|<<|>>|[-+*/%@&|^<>=!~:,;.])|(?P<other>.)"
)
_DTYPE = r"(?:[fiu]\d{1,2}|bf16|c\d{2,3}|b8|f8e\w{2,10}|f4e\w{2,10}|q\w{2,8})"
_SIZE = (
    r"(?:[\d\s,+*/()-]|\b(?:[suz]f?\d+|zuf\d+|Max|Min|Mod|FloorDiv|CeilToInt|ModularIndexing"
    r"|PythonMod|Where|TruncToInt)\b)*"
)
_DEVICE = r"(?:(?:cpu|cuda|xpu|mps|meta|hpu|mtia|privateuseone)(?::\d{1,3})?)?"
_ANNOTATION = re.compile(rf"(?:{_DTYPE}(?:\[{_SIZE}\]){{0,2}}{_DEVICE}|Sym\({_SIZE}\))")
_QUOTED = re.compile(rf'"({_ANNOTATION.pattern})"')
_WHOLE_LINE = re.compile(r"^[ \t]*(?:#[^\n]*)?\n", re.MULTILINE)
_DEFINED = re.compile(
    r"^[ \t]+(?P<name>\w+)(?: ?: ?\"[^\"\n]*\")? = "
    r"(?:(?P<call>[\w.]+)\(|(?P<item>\w+\[)|[^\n=]* (?P<sign>//|<<|>>|==|!=|<=|>=|\*\*|[-+*/%@&|^<>]) )?",
    re.MULTILINE,
)
_SIGNS = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod",
    "@": "matmul", "**": "pow",
    "&": "and_", "|": "or_", "^": "xor", "<<": "lshift", ">>": "rshift",
    "==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge",
}  # fmt: skip
_SMALL = 16
_LAST = 2**63 - 1  # the end of an open slice


def graph(text: str, names: Names) -> str:
    """Return a printed FX graph with nothing of the user's in it. Never raises.

    `names` holds the tokens of the bundle, and learns which values are named after ops.

    Example::

        graph('    secret = L_x_ * 0.5  # File: a.py', Names())  # '    local_1 = local_2 * ...'
    """
    return _Rewrite(text, names).run()


class _Rewrite:
    """One text: which of its names stay, and which call the token at hand stands in."""

    def __init__(self, text: str, names: Names) -> None:
        self._text = _WHOLE_LINE.sub("", text if text.endswith("\n") else text + "\n")
        self._names = names
        self._calls: list[str] = []
        self._header = False
        self._before = ""
        self._kept: dict[str, str] = {}
        self._sizes = {int(n) for s in set(_QUOTED.findall(self._text)) for n in re.findall(r"\d{1,18}", s)}
        self._decide()

    def _decide(self) -> None:
        """Find out which values are named after their op in each place where they are made."""
        found: dict[str, bool] = {}
        for match in _DEFINED.finditer(self._text):
            op = match["call"] or (
                "operator.getitem" if match["item"] else f"operator.{_SIGNS.get(match['sign'] or '')}"
            )
            derived = is_derived(match["name"], op.removeprefix("torch.ops."))
            found[match["name"]] = found.get(match["name"], True) and derived
        self._defined = found
        self._names.derived |= {name for name, derived in found.items() if derived}

    def run(self) -> str:
        return (
            re.sub(r"[ \t]+$", "", _TOKEN.sub(self._token, self._text), flags=re.MULTILINE).rstrip("\n")
            + "\n"
        )

    def _token(self, match: re.Match[str]) -> str:
        kind = match.lastgroup
        found = match.group()
        if kind == "space":
            return found
        before, self._before = self._before, found
        if kind == "call":
            return self._called(match["name"], before) + "("
        if kind == "name":
            return self._name(found, match)
        if kind == "number":
            return self._number(found)
        if kind == "string":
            return self._string(found)
        if kind == "open":
            self._calls.append(self._owner(found, match))
            return found
        if kind == "close":
            if self._calls:
                self._calls.pop()
            if not self._calls:
                self._header = False
            return found
        if kind == "line":
            if not self._calls:
                self._header = False
            return found
        return found if kind == "sign" else ""

    def _owner(self, bracket: str, match: re.Match[str]) -> str:
        """What the numbers in a bracket belong to: an index, or the call around it."""
        before = match.string[match.start() - 1 : match.start()]
        if bracket == "[" and (before.isalnum() or before in ("_", "]", ")")):
            return "getitem"
        outer = self._calls[-1] if self._calls else ""
        return outer if outer.startswith("[") or not outer else f"[{outer}"

    def _called(self, name: str, before: str) -> str:
        if name in KEYWORDS:
            self._calls.append("")
            return name
        if before in ("class", "def"):
            self._header = before == "def"
            self._calls.append("")
            return name if name in CLASSES or is_generic(name) or name == "forward" else "other"
        self._calls.append(name)
        return self._dotted(name, called=True)

    def _name(self, name: str, match: re.Match[str]) -> str:
        if name in KEYWORDS:
            if name == "def":
                self._header = True
            return name
        if (
            self._calls
            and not self._header
            and re.match(r"\s*=(?!=)", match.string[match.end() : match.end() + 3])
        ):
            return name if name in known("arguments") else self._names.identifier("option", name)
        return self._dotted(name)

    def _dotted(self, name: str, called: bool = False) -> str:
        kept = self._kept.get(name)
        if kept is None:
            kept = self._kept[name] = self._new(name, called)
        return kept

    def _new(self, name: str, called: bool) -> str:
        names = self._names
        if name.startswith("torch.ops."):
            return self._op(name.removeprefix("torch.ops."))
        if is_function(name) and not (name in self._defined and "." not in name):
            return name
        head, dot, rest = name.partition(".")
        if not dot:
            return names.function(name) if called and name not in self._defined else self._value(name)
        if head == "self":
            return f"self.{rest if is_generic(rest) else names.identifier('attr', rest)}"
        if head in ("torch", "operator", "math", "builtins"):
            return names.function(name)
        parts = [
            part if part in known("tensor") else names.identifier("attr", part) for part in rest.split(".")
        ]
        return ".".join([self._value(head), *parts])

    def _value(self, name: str) -> str:
        derived = self._defined.get(name, name in self._names.derived)
        return name if derived or is_generic(name) else self._names.identifier("local", name)

    def _op(self, name: str) -> str:
        if is_op(name):
            return f"torch.ops.{name}"
        parts = name.split(".")
        overload = ".default" if len(parts) > 2 else ""
        return f"torch.ops.{self._names.custom('.'.join(parts[:2]))}{overload}"

    def _number(self, number: str) -> str:
        try:
            value = abs(int(number))
        except ValueError:
            return "..."
        call = self._calls[-1] if self._calls else "Sym"
        op = call.lstrip("[").removeprefix("torch.ops.").split(".")
        name = op[1] if len(op) > 1 and is_op(".".join(op)) else op[-1]
        bracketed = call.startswith("[")
        allowed = name in known("dimensions") or (bracketed and name in known("sizes"))
        if allowed and (value <= _SMALL or value in self._sizes or value == _LAST):
            return number
        return number if call == "Sym" and value in self._sizes and value > _SMALL else "..."

    def _string(self, string: str) -> str:
        quote = string[-1:] if string[-1:] in "\"'" else "'"
        body = string.lstrip("rbfuRBFU")[1:-1]
        if body in known("strings") or _ANNOTATION.fullmatch(body):
            return f"{quote}{body}{quote}"
        return f"{quote}...{quote}"
