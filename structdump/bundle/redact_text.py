"""The rules on one text: specific shapes, then what a name tells, then paths, names, addresses."""

from __future__ import annotations

import re
from functools import partial

from structdump.bundle import redact_rules as rules
from structdump.bundle.redact_identity import Identity, Name
from structdump.bundle.redact_paths import Paths
from structdump.bundle.redact_tokens import Tokens

Found = re.Match[str]


class TextRules:
    """All rules, for one bundle's tokens, one user and the user's own patterns."""

    def __init__(self, tokens: Tokens, identity: Identity, patterns: list[re.Pattern[str]]) -> None:
        self._tokens = tokens
        self._identity = identity
        self._patterns = patterns
        self.paths = Paths(tokens, identity.home)

    def apply(self, text: str, addresses: bool = True) -> str:
        """Return the text redacted; without `addresses`, four numbers with dots are taken as a version."""
        for pattern in self._patterns:
            text = self._custom(pattern, text)
        for literal, pattern in self._identity.secrets:
            if literal in text:
                text = pattern.sub(lambda match: self._secret(match.group(), "environment"), text)
        if "--" in text:
            text = rules.ARGUMENT.sub(self._argument, text)
        for group in rules.GROUPS:
            if group.probe.search(text):
                for rule in group.rules:
                    if rule is not rules.IPV4:
                        text = self._shape(rule, text)
                    elif addresses:
                        text = rule.pattern.sub(self._ipv4, text)
        if "=" in text:
            text = rules.EQUALS.sub(self._assigned, text)
        if ":" in text:
            text = rules.COLON.sub(self._assigned, text)
        text = self.paths.text(text)
        for name in self._identity.names:
            if name.literal in text:
                text = name.pattern.sub(partial(self._name, name), text)
        if ":" in text and rules.IPV6_PROBE.search(text):
            text = rules.MAC.sub(lambda match: self._tokens.replace("mac", match.group()), text)
            text = rules.IPV6.sub(self._ipv6, text)
        return text

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

    def _shape(self, rule: rules.Rule, text: str) -> str:
        group = "v" if "v" in rule.pattern.groupindex else 0

        def found(match: Found) -> str:
            return _with(match, group, self._tokens.replace(rule.label, match.group(group), rule.name))

        return rule.pattern.sub(found, text)

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
        return _with(match, group, self._secret(value, "assignment"))

    def _ipv4(self, match: Found) -> str:
        found, text, start = match.group(), match.string, match.start()
        if rules.VERSION_BEFORE.search(text[max(0, start - 60) : start]):
            return found
        if len(found) == len(text) and not rules.LIKELY_ADDRESS.match(found):
            return found
        return self._tokens.replace("ip", found)

    def _ipv6(self, match: Found) -> str:
        local = not match.group().strip("0:1")
        return match.group() if local else self._tokens.replace("ip", match.group())


def _with(match: Found, group: str | int, token: str) -> str:
    whole, start, end = match.group(), match.start(group) - match.start(), match.end(group) - match.start()
    return whole[:start] + token + whole[end:]


def says_secret(name: str) -> bool:
    """Whether a variable or argument of this name holds a secret."""
    return bool(rules.SECRET_NAME.search(name)) and not rules.PUBLIC_NAME.search(name)


def _holds_secret(name: str, value: str, quoted: bool) -> bool:
    if rules.SIGNATURE_NAME.fullmatch(name):
        return bool(rules.SIGNATURE_VALUE.fullmatch(value))
    if rules.PUBLIC_NAME.search(name):
        return False
    if rules.STRONG_NAME.fullmatch(name):
        # A word without quotes is more likely one of the program's own names.
        return quoted or name.isupper() or not rules.WORDS.fullmatch(value)
    return name.isupper() and says_secret(name) and not rules.WORDS.fullmatch(value)
