"""Redaction: one pass over every string on its way into the file.

The rules are a reviewed table (`redact_rules`), not a library. detect-secrets 1.5.0, the best kept of
its kind for Python, was weighed: it imports in 0.14 s, scans kernels and graphs at 0.3 MB/s, and all of
its 32 findings in 1 MB of them were hashes that are no secrets; of paths, users and hosts it knows
nothing. So only values of a known shape, or under a name that says secret, are replaced here, and
nothing is guessed from entropy.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, unquote

from structdump.bundle import redact_paths as paths
from structdump.bundle import redact_rules as rules
from structdump.bundle.redact_identity import Identity
from structdump.errors import ConfigError

_MEMO_LIMIT = 50_000
Found = re.Match[str]


class Redactor:
    """Replaces private values by tokens such as `<user-1>` and `<path-3>`, the same value always by the same.

    `home`, `user` and `hosts` default to those of this process, `secrets` to the values of environment
    variables whose names say secret. `patterns` are more regular expressions; what they match becomes
    `<custom-N>`. Tokens are numbered by first appearance. Safe to share between threads. With
    `enabled=False` every method gives back what it got.

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
    ) -> None:
        self.enabled = enabled
        self._patterns = [_compiled(pattern) for pattern in patterns]
        self._lock = threading.Lock()
        self._tokens: dict[tuple[str, str], str] = {}
        self._numbers: dict[str, int] = {}
        self._counts: dict[str, int] = {}
        self._memo: dict[str, str] = {}
        self._identity = Identity.of(home, user, hosts, secrets) if enabled else Identity()

    @property
    def counts(self) -> dict[str, int]:
        """How many values each rule replaced, by rule name, sorted by it."""
        with self._lock:
            return dict(sorted(self._counts.items()))

    def text(self, text: str) -> str:
        """Return the text with every private value in it replaced by its token."""
        return self._text(text) if self.enabled and text else text

    def argv(self, items: Iterable[str]) -> list[str]:
        """Redact a command line, also where a secret is an item of its own: `--token`, `hf_…`."""
        if not self.enabled:
            return list(items)
        result: list[str] = []
        names_secret = False
        for item in items:
            if names_secret and not item.startswith("-"):
                result.append(self._secret(item, "argument"))
                names_secret = False
                continue
            names_secret = item.startswith("-") and "=" not in item and _says_secret(item.lstrip("-"))
            result.append(self._text(self._relative(item)))
        return result

    def env(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Redact environment variables; those whose names say secret, user or host lose their whole value."""
        if not self.enabled:
            return dict(variables)
        return {name: self._variable(name, value) for name, value in variables.items()}

    def value(self, value: Any) -> Any:
        """Redact plain data: strings at any depth, keys too. What is no plain data becomes a redacted string."""
        return self._value(value, "") if self.enabled else value

    # --- data ----------------------------------------------------------------------------------

    def _value(self, value: Any, key: str) -> Any:
        if isinstance(value, str):
            if key and _says_secret_in_data(key) and value:
                return self._secret(value, "setting")
            return self._text(value, addresses=not rules.VERSION_KEY.search(key)) if value else value
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, Mapping):
            return self._mapping(value, key)
        if isinstance(value, (list, tuple)):
            if any(isinstance(item, str) and item.startswith("-") for item in value):
                if all(isinstance(item, str) for item in value):
                    return self.argv(value)
            return [self._value(item, key) for item in value]
        if isinstance(value, (set, frozenset)):
            return sorted((self._value(item, key) for item in value), key=str)
        if isinstance(value, bytes):
            return self._text(value.decode("utf-8", "backslashreplace"))
        return self._text(str(value))

    def _mapping(self, value: Mapping[Any, Any], outer: str) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        versions = outer if rules.VERSION_KEY.search(outer) else ""
        for key, item in value.items():
            name = self._text(key) if isinstance(key, str) and key else key
            while name in result:  # two private keys may look alike once redacted
                name = f"{name} "
            said = key if isinstance(key, str) else ""
            result[name] = self._value(item, said if not versions or _says_secret_in_data(said) else versions)
        return result

    def _variable(self, name: str, value: str) -> str:
        if not value:
            return value
        if _says_secret(name):
            return value if rules.ORDINARY_VALUE.fullmatch(value) else self._secret(value, "variable")
        if name in rules.USER_VARIABLES and value.lower() not in rules.COMMON_WORDS:
            return self._token("user", value)
        if rules.HOST_VARIABLE.search(name) and _names_host(value):
            return self._token("ip" if rules.IPV4.fullmatch(value) else "host", value)
        return self._text(value)

    def _secret(self, value: str, rule: str) -> str:
        if rules.TOKEN.fullmatch(value):
            return value
        return self._token("secret", value, rule)

    def _relative(self, item: str) -> str:
        """Folders of a relative path on a command line are the user's too: keep its file name."""
        if item.startswith("-") or not paths.RELATIVE.fullmatch(item):
            return item
        folder, _, name = item.rpartition("/")
        if folder.strip("./") == "" or not paths.FILE_NAME.fullmatch(name):
            return item
        return f"{self._token('path', folder)}/{name}"

    # --- text ----------------------------------------------------------------------------------

    def _text(self, text: str, addresses: bool = True) -> str:
        for pattern in self._patterns:
            text = self._custom(pattern, text)
        for literal, pattern in self._identity.secrets:
            if literal in text:
                text = self._replace(pattern, text, "secret", "environment")
        for group in rules.GROUPS:
            if group.probe.search(text):
                for rule in group.rules:
                    text = self._apply(rule, text)
        text = self._paths(text)
        for literal, label, pattern in self._identity.names:
            if literal in text:
                text = self._replace(pattern, text, label, label)
        return self._addresses(text) if addresses else text

    def _custom(self, pattern: re.Pattern[str], text: str) -> str:
        def found(match: Found) -> str:
            return self._token("custom", match.group()) if match.group() else ""

        if "<" not in text:
            return pattern.sub(found, text)
        # Tokens already there are no text of the user's: redacting twice must change nothing.
        pieces = rules.TOKENS.split(text)
        pieces[::2] = [pattern.sub(found, piece) for piece in pieces[::2]]
        return "".join(pieces)

    def _replace(self, pattern: re.Pattern[str], text: str, label: str, rule: str) -> str:
        return pattern.sub(lambda match: self._token(label, match.group(), rule), text)

    def _apply(self, rule: rules.Rule, text: str) -> str:
        indexes = rule.pattern.groupindex

        def found(match: Found) -> str:
            whole = match.group()
            if "v" not in indexes:
                return self._token(rule.label, whole, rule.name)
            value = match.group("v")
            if "name" in indexes and not _assigns_secret(match, value):
                return whole
            if not value.strip() or rules.TOKEN.match(value):
                return whole
            start, end = match.start("v") - match.start(), match.end("v") - match.start()
            return whole[:start] + self._token(rule.label, value, rule.name) + whole[end:]

        return rule.pattern.sub(found, text)

    def _paths(self, text: str) -> str:
        if "/" in text:
            text = paths.POSIX.sub(self._posix, text)
            if "/home/" in text or "/Users/" in text:
                text = paths.WITHIN.sub(self._posix, text)
            if "~/" in text or "HOME" in text:
                text = paths.TILDE.sub(self._tilde, text)
        if "\\" in text:
            text = paths.WINDOWS.sub(self._windows, text)
            text = paths.ESCAPED.sub(self._escaped, text)
        if "%2" in text:
            text = paths.ENCODED.sub(self._encoded, text)
        return text

    def _posix(self, match: Found) -> str:
        found = match.group()
        start = match.start()
        if match.string[start - 1 : start] == ">" and rules.TOKEN_AT_END.search(
            match.string[max(0, start - 24) : start]
        ):
            return found
        return self._path(found)

    def _path(self, found: str) -> str:
        """Shorten one path as it was found; remembers the answer, since graphs name the same files over and over."""
        known = self._memo.get(found)
        if known is None:
            known = self._shortened(found)
            if len(self._memo) > _MEMO_LIMIT:
                self._memo.clear()
            self._memo[found] = known
        if known != found:
            self._count("path")
        return known

    def _shortened(self, found: str) -> str:
        first, space, rest = found.partition(" ")
        if space:
            parts = paths.split(first)
            if parts is None or paths.FILE_NAME.fullmatch(first.rpartition("/")[2]):
                return self._shortened(first) + paths.POSIX.sub(self._posix, space + rest)
        path = found.rstrip(".,=+-")
        ending = found[len(path) :]
        parts = paths.split(re.sub("/{2,}", "/", path))
        if parts is None:
            return self._owned(path) + ending
        return self._token("path", parts.private, count=False) + self._owned(parts.tail) + ending

    def _owned(self, path: str) -> str:
        if "torchinductor_" not in path:
            return path
        return paths.OWNED.sub(lambda match: self._token("user", match.group()), path)

    def _tilde(self, match: Found) -> str:
        head, _, rest = match.group().partition("/")
        home = self._identity.home if head in ("~", "$HOME", "${HOME}") else ""
        parts = paths.split(f"{home or '/home/' + head.strip('~${}')}/{rest}")
        if parts is None:
            return match.group()
        return self._token("path", parts.private) + self._owned(parts.tail)

    def _windows(self, match: Found) -> str:
        found, separator = match.group(), match.group("sep")
        parts = paths.split("/" + found.replace(separator, "/"))
        if parts is None:
            return found
        return self._token("path", parts.private[1:]) + self._owned(parts.tail).replace("/", separator)

    def _escaped(self, match: Found) -> str:
        found = match.group()
        slash = found[: found.index("/") + 1]
        parts = paths.split(found.replace(slash, "/"))
        if parts is None:
            return self._owned(found)
        return self._token("path", parts.private) + self._owned(parts.tail).replace("/", slash)

    def _encoded(self, match: Found) -> str:
        found = match.group()
        slash = found[:3]
        parts = paths.split(unquote(found))
        if parts is None:
            return self._owned(found)
        return self._token("path", parts.private) + quote(self._owned(parts.tail), safe="<>").replace(
            "%2F", slash
        )

    def _addresses(self, text: str) -> str:
        if rules.IPV4_PROBE.search(text):
            text = rules.IPV4.sub(self._ipv4, text)
        if rules.IPV6_PROBE.search(text):
            text = rules.MAC.sub(lambda match: self._token("mac", match.group()), text)
            text = rules.IPV6.sub(lambda match: self._token("ip", match.group()), text)
        return text

    def _ipv4(self, match: Found) -> str:
        found, text, start = match.group(), match.string, match.start()
        if found.startswith(("127.", "0.", "255.")) or rules.VERSION_BEFORE.search(
            text[max(0, start - 60) : start]
        ):
            return found
        if len(found) == len(text) and not rules.LIKELY_ADDRESS.match(found):
            return found
        return self._token("ip", found)

    # --- tokens --------------------------------------------------------------------------------

    def _token(self, label: str, value: str, rule: str = "", count: bool = True) -> str:
        if count:
            self._count(rule or label)
        token = self._tokens.get((label, value))
        if token is None:
            with self._lock:
                token = self._tokens.get((label, value))
                if token is None:
                    number = self._numbers.get(label, 0) + 1
                    self._numbers[label] = number
                    token = self._tokens[label, value] = f"<{label}-{number}>"
        return token

    def _count(self, rule: str) -> None:
        with self._lock:
            self._counts[rule] = self._counts.get(rule, 0) + 1


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


def _says_secret(name: str) -> bool:
    return bool(rules.SECRET_NAME.search(name)) and not rules.PUBLIC_NAME.search(name)


def _says_secret_in_data(key: str) -> bool:
    return bool(rules.STRONG_NAME.fullmatch(key))


def _assigns_secret(match: Found, value: str) -> bool:
    """Whether an assignment found in text is of a secret, and not a line of code that mentions one."""
    after = match.string[match.end() : match.end() + 1]
    return (
        _says_secret(match.group("name"))
        and after not in ("(", "[")
        and not rules.ORDINARY_VALUE.fullmatch(value)
    )


def _names_host(value: str) -> bool:
    return value.lower() not in rules.LOCAL_HOSTS and not value.startswith("127.")
