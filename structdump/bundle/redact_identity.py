"""Who and where this process is: the names that must not stand in a bundle."""

from __future__ import annotations

import getpass
import os
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from structdump.bundle import redact_rules as rules

Named = tuple[str, str, re.Pattern[str]]


@dataclass(frozen=True)
class Identity:
    """What is known of the user: `names` are (literal, label, pattern), `secrets` (literal, pattern)."""

    home: str = ""
    names: tuple[Named, ...] = ()
    secrets: tuple[tuple[str, re.Pattern[str]], ...] = ()

    @classmethod
    def of(
        cls,
        home: str | None = None,
        user: str | None = None,
        hosts: Iterable[str] | None = None,
        secrets: Iterable[str] | None = None,
    ) -> Identity:
        """Build it from what is given; None stands for what this process and its environment say."""
        home = _home() if home is None else home
        users = _users(home) if user is None else [user]
        hosts = _hosts() if hosts is None else hosts
        names: list[Named] = [(name, "host", _host_pattern(name)) for name in _words(hosts, both_cases=True)]
        names += [(name, "user", _word_pattern(name)) for name in _words(users)]
        known = _secrets() if secrets is None else secrets
        ordered = sorted(set(known), key=lambda value: (-len(value), value))
        return cls(
            home=home.rstrip("/") if home.count("/") > 1 else "",
            names=tuple(names),
            secrets=tuple((value, re.compile(re.escape(value))) for value in ordered if value),
        )


def _words(names: Iterable[str], both_cases: bool = False) -> list[str]:
    """Those of the names that mean nothing else, longest first."""
    found: set[str] = set()
    for name in names:
        plain = name.strip()
        if (
            len(plain) < 3
            or plain.lower() in rules.COMMON_WORDS | rules.LOCAL_HOSTS
            or not re.search(r"[^\W\d_]", plain)
        ):
            continue
        found |= {plain, plain.lower(), plain.upper()} if both_cases else {plain}
    return sorted(found, key=lambda name: (-len(name), name))


def _word_pattern(name: str) -> re.Pattern[str]:
    literal = re.escape(name)
    return re.compile(rf"{literal}(?<![A-Za-z0-9]{literal})(?![A-Za-z0-9])")


def _host_pattern(name: str) -> re.Pattern[str]:
    """The name, with a domain after it if there is one of two labels or more."""
    literal = re.escape(name)
    return re.compile(
        rf"{literal}(?<![A-Za-z0-9]{literal})(?:(?:\.[A-Za-z0-9-]{{1,63}}){{1,6}}\.[A-Za-z]{{2,24}}(?![\w(])|(?![A-Za-z0-9]))"
    )


def _home() -> str:
    try:
        return str(Path.home())
    except RuntimeError:  # no HOME, and a user id without an entry
        return ""


def _users(home: str) -> list[str]:
    names = {os.environ.get(name, "") for name in rules.USER_VARIABLES}
    names.add(Path(home).name)
    try:
        names.add(getpass.getuser())
    except (OSError, KeyError):  # a user id without an entry, as in many containers
        pass
    return sorted(names)


def _hosts() -> list[str]:
    # No getfqdn: it may ask a name server and wait.
    names = {socket.gethostname()}
    names |= {value for name, value in os.environ.items() if rules.HOST_VARIABLE.search(name)}
    short = {name.partition(".")[0] for name in names if not rules.IPV4.fullmatch(name)}
    return sorted(name for name in names | short if rules.HOST_NAME.fullmatch(name))


def _secrets() -> list[str]:
    return [
        value
        for name, value in os.environ.items()
        if rules.SECRET_NAME.search(name)
        and not rules.PUBLIC_NAME.search(name)
        and rules.UNMISTAKABLE_VALUE.fullmatch(value)
    ]
