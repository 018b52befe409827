"""Redaction: one pass over every string on its way into the file.

The rules are a reviewed table (`redact_rules`), not a library. detect-secrets 1.5.0, the best kept of
its kind for Python, was weighed: it imports in 0.14 s, scans kernels and graphs at 0.3 MB/s, and all of
its 32 findings in 1 MB of them were hashes that are no secrets; of paths, users and hosts it knows
nothing. So only values of a known shape, or under a name that says secret, are replaced here, and
nothing is guessed from entropy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from structdump.bundle import redact_rules as rules
from structdump.bundle.redact_identity import Identity
from structdump.bundle.redact_text import TextRules, says_secret
from structdump.bundle.redact_tokens import Tokens
from structdump.errors import ConfigError


class Redactor:
    """Replaces private values by tokens such as `<user-1>` and `<path-3>`, the same value by the same token.

    `home`, `user` and `hosts` default to those of this process, `secrets` to the values of environment
    variables whose names say secret. `patterns` are more regular expressions; what they match becomes
    `<custom-N>`. Tokens are numbered by first appearance, after those that `taken` names by label. Safe to
    share between threads. With `enabled=False` every method gives back what it got.

    Raises ConfigError for a pattern that does not compile or that matches the empty text.

    Example::

        r = Redactor(user="alex")
        r.text("/home/alex/work/train.py:3")   # '<path-1>/train.py:3'
        r.counts                               # {'path': 1}
    """

    def __init__(
        self,
        enabled: bool = True,
        patterns: Iterable[str] = (),
        home: str | None = None,
        user: str | None = None,
        hosts: Iterable[str] | None = None,
        secrets: Iterable[str] | None = None,
        taken: Mapping[str, int] | None = None,
    ) -> None:
        self.enabled = enabled
        own = [_compiled(pattern) for pattern in patterns]
        self._tokens = Tokens(taken)
        identity = Identity.of(home, user, hosts, secrets) if enabled else Identity()
        self._rules = TextRules(self._tokens, identity, own)

    @property
    def counts(self) -> dict[str, int]:
        """How many values each rule replaced, by rule name, sorted by it."""
        return self._tokens.counts

    @property
    def found(self) -> list[tuple[str, str, str]]:
        """Label, value and token of each value that was replaced, in the order in which they appeared."""
        return self._tokens.items()

    def text(self, text: str) -> str:
        """Return the text with every private value in it replaced by its token."""
        return self._rules.apply(text) if self.enabled and text else text

    def argv(self, items: Iterable[str]) -> list[str]:
        """Redact a command line, also where a secret is an item of its own: `--token`, `hf_…`."""
        if not self.enabled:
            return list(items)
        result: list[str] = []
        secret_next = False
        for item in items:
            if secret_next and not item.startswith("-"):
                result.append(self._secret(item, "argument"))
            else:
                result.append(self._rules.apply(self._rules.paths.relative(item)) if item else item)
            secret_next = item.startswith("-") and "=" not in item and says_secret(item.lstrip("-"))
        return result

    def env(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Redact environment variables; those whose names say secret, user or host lose their whole value."""
        if not self.enabled:
            return dict(variables)
        return {name: self._variable(name, value) for name, value in variables.items()}

    def value(self, value: Any) -> Any:
        """Redact plain data: keys, and strings at any depth. Other objects become redacted strings."""
        return self._value(value, "") if self.enabled else value

    def _value(self, value: Any, key: str) -> Any:
        if isinstance(value, str):
            return self._string(value, key) if value else value
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, Mapping):
            return self._mapping(value, key)
        if isinstance(value, (list, tuple)):
            strings = all(isinstance(item, str) for item in value)
            if strings and any(item.startswith("-") for item in value):
                return self.argv(value)
            return [self._value(item, key) for item in value]
        if isinstance(value, (set, frozenset)):
            return sorted((self._value(item, key) for item in value), key=str)
        if isinstance(value, bytes):
            return self._string(value.decode("utf-8", "backslashreplace"), key)
        return self._string(str(value), key)

    def _string(self, value: str, key: str) -> str:
        if key and rules.STRONG_NAME.fullmatch(key) and not rules.PUBLIC_NAME.search(key):
            return self._secret(value, "setting")
        if key in rules.PATH_KEYS:
            value = self._rules.paths.relative(value)
        return self._rules.apply(value, versions=bool(key and rules.VERSION_KEY.search(key)))

    def _mapping(self, value: Mapping[Any, Any], outer: str) -> dict[Any, Any]:
        versions = bool(outer and rules.VERSION_KEY.search(outer))
        result: dict[Any, Any] = {}
        for key, item in value.items():
            name = self._rules.apply(key) if isinstance(key, str) and key else key
            while name in result:  # two private keys may look alike once redacted
                name = f"{name} "
            # Under `versions`, the name of each entry is that of a package.
            inner = f"version {key}" if versions else key
            result[name] = self._value(item, inner if isinstance(key, str) else outer)
        return result

    def _variable(self, name: str, value: str) -> str:
        if not value:
            return value
        if says_secret(name):
            return value if rules.ORDINARY_VALUE.fullmatch(value) else self._secret(value, "variable")
        if name in rules.USER_VARIABLES and value != "root":
            return self._whole("user", value)
        if rules.HOST_VARIABLE.fullmatch(name) and value.lower() not in rules.LOCAL_HOSTS:
            address = value.replace(".", "").isdigit()
            return self._rules.apply(value) if address else self._whole("host", value)
        return self._rules.apply(value)

    def _secret(self, value: str, rule: str) -> str:
        if not value or rules.ORDINARY_VALUE.fullmatch(value):
            return value
        return self._whole("secret", value, rule)

    def _whole(self, label: str, value: str, rule: str = "") -> str:
        return value if rules.TOKEN.fullmatch(value) else self._tokens.replace(label, value, rule)


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"redact_patterns: {pattern!r} is no regular expression: {error}") from error
    if compiled.search(""):
        raise ConfigError(
            f"redact_patterns: {pattern!r} matches the empty text, so it would match everywhere"
        )
    return compiled
