"""The rules on one text: specific shapes, then what a name tells, then paths, names, addresses."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from structdump.bundle import redact_rules as rules
from structdump.bundle.redact_gate import Gate, gate
from structdump.bundle.redact_identity import Identity, Name
from structdump.bundle.redact_paths import Paths
from structdump.bundle.redact_tokens import Tokens

Found = re.Match[str]


# The same few short strings, names and keys, come with every artifact.
_SHORT = 120
_CLEAN_LIMIT = 20_000
Replace = Callable[[Found], str]


class _Gated(NamedTuple):
    """How to tell whether a text may hold something, how to find it, and what to put in its place."""

    is_open: Gate
    rule: rules.Rule | Name
    replace: Replace


class TextRules:
    """All rules, for one bundle's tokens, one user and the user's own patterns."""

    def __init__(self, tokens: Tokens, identity: Identity, patterns: list[re.Pattern[str]]) -> None:
        self._tokens = tokens
        self._patterns = patterns
        self._clean: set[str] = set()
        self.paths = Paths(tokens, identity.home)
        secrets = [self._gated(rules.known_secret(value)) for value in identity.secrets]
        names = [_Gated(gate([re.escape(n.literal)]), n, partial(self._name, n)) for n in identity.names]
        self._before = secrets + [self._gated(rule) for rule in rules.BEFORE_PATHS]
        self._after = names + [self._gated(rule) for rule in rules.AFTER_PATHS]
        # One gate before many: most texts hold nothing that any rule is after.
        secret = [re.escape(s) for s in identity.secrets]
        name = [re.escape(n.literal) for n in identity.names]
        self._any_before = gate(["|".join(secret), *rules.GATES_BEFORE] if secret else rules.GATES_BEFORE)
        self._any_after = gate(["|".join(name), *rules.GATES_AFTER] if name else rules.GATES_AFTER)

    def apply(self, text: str, versions: bool = False) -> str:
        """Return the text redacted; with `versions`, four numbers with dots are taken as a version."""
        if len(text) > _SHORT:
            return self._apply(text, versions)
        if text in self._clean:
            return text
        result = self._apply(text, versions)
        if result == text and not versions and len(self._clean) < _CLEAN_LIMIT:
            self._clean.add(text)
        return result

    def _apply(self, text: str, versions: bool) -> str:
        for pattern in self._patterns:
            text = self._custom(pattern, text)
        if self._any_before(text):
            text = self._run(self._before, text)
        if "/" in text or "\\" in text or "%" in text:
            text = self.paths.text(text)
        if self._any_after(text):
            text = self._run(self._after, text, skip=rules.IPV4 if versions else None)
        return text

    def _run(self, gated: list[_Gated], text: str, skip: rules.Rule | None = None) -> str:
        for is_open, rule, replace in gated:
            if rule is not skip and is_open(text):
                text = rule.pattern.sub(replace, text)
        return text

    def _gated(self, rule: rules.Rule) -> _Gated:
        special: dict[rules.Rule, Replace] = {
            rules.ARGUMENT: self._argument,
            rules.EQUALS: self._assigned,
            rules.COLON: self._assigned,
            rules.IPV4: self._ipv4,
            rules.IPV6: self._ipv6,
        }
        return _Gated(gate(rule.gates), rule, special.get(rule) or partial(self._shape, rule))

    def _secret(self, value: str, rule: str) -> str:
        return self._tokens.replace("secret", value, rule)

    def _name(self, name: Name, _: Found) -> str:
        return self._tokens.replace(name.label, name.value)

    def _custom(self, pattern: re.Pattern[str], text: str) -> str:
        # Tokens already there are no text of the user's: redacting twice must change nothing.
        pieces = rules.TOKENS.split(text) if "<" in text else [text]
        pieces[::2] = [pattern.sub(self._own, piece) for piece in pieces[::2]]
        return "".join(pieces)

    def _own(self, match: Found) -> str:
        return self._tokens.replace("custom", match.group()) if match.group() else ""

    def _shape(self, rule: rules.Rule, match: Found) -> str:
        group = "v" if "v" in rule.pattern.groupindex else 0
        return _with(match, group, self._tokens.replace(rule.label, match.group(group), rule.name))

    def _argument(self, match: Found) -> str:
        if not says_secret(match.group("name")) or rules.ORDINARY_VALUE.fullmatch(match.group("v")):
            return match.group()
        return _with(match, "v", self._secret(match.group("v"), "argument"))

    def _assigned(self, match: Found) -> str:
        """An assignment whose name ends as one of a secret may: look at the whole name, and at the value."""
        before = rules.EMAN.match(match.string[max(0, match.start() - 130) : match.start()][::-1])
        group = match.lastgroup
        if before is None or group is None:
            return match.group()
        name, value = before.group(1)[::-1], match.group(group)
        if len(value.strip()) < 3 or rules.TOKEN.match(value) or rules.ORDINARY_VALUE.fullmatch(value):
            return match.group()
        if group == "plain" and match.string[match.end() : match.end() + 1] in ("(", "["):
            return match.group()
        if not _holds_secret(name, value, quoted=group != "plain"):
            return match.group()
        return _with(match, group, self._secret(value, "setting"))

    def _ipv4(self, match: Found) -> str:
        found, text, start = match.group(), match.string, match.start()
        if _is_version(text[max(0, start - 60) : start]):
            return found
        if len(found) == len(text) and not rules.LIKELY_ADDRESS.match(found):
            return found
        return self._tokens.replace("ip", found)

    def _ipv6(self, match: Found) -> str:
        local = not match.group().strip("0:1")
        return match.group() if local else self._tokens.replace("ip", match.group())


def _is_version(before: str) -> bool:
    if rules.VERSION_SIGN.search(before, max(0, len(before) - 9)):
        return True
    return any(
        rules.VERSION_GAP.fullmatch(before, word.end()) for word in rules.VERSION_WORD.finditer(before)
    )


def _with(match: Found, group: str | int, token: str) -> str:
    whole, start, end = match.group(), match.start(group) - match.start(), match.end(group) - match.start()
    return whole[:start] + token + whole[end:]


def says_secret(name: str) -> bool:
    """Whether a variable or argument of this name holds a secret."""
    return bool(rules.SECRET_NAME.search(name)) and not rules.PUBLIC_NAME.search(name)


def _holds_secret(name: str, value: str, quoted: bool) -> bool:
    if rules.SIGNATURE_NAME.fullmatch(name):
        return bool(rules.SIGNATURE_VALUE.match(value))
    if rules.PUBLIC_NAME.search(name):
        return False
    if rules.STRONG_NAME.fullmatch(name):
        # A word without quotes is more likely one of the program's own names.
        return quoted or name.isupper() or not rules.WORDS.fullmatch(value)
    return name.isupper() and says_secret(name) and not rules.WORDS.fullmatch(value)
