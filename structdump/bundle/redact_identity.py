"""Who and where this process is: the names that must not stand in a bundle."""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from structdump.bundle import redact_rules as rules
from structdump.bundle.redact_words import COMMON_WORDS


class Name(NamedTuple):
    """A name to look for; all names of one `value` get one token."""

    literal: str
    label: str
    value: str
    pattern: re.Pattern[str]


@dataclass(frozen=True)
class Identity:
    """What is known of the user; `secrets` are (literal, pattern)."""

    home: str = ""
    names: tuple[Name, ...] = ()
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
        home = (_home() if home is None else home).rstrip("/")
        users = _users(home) if user is None else [user]
        found = {
            form: Name(form, "host", host.lower().partition(".")[0], _host_pattern(form))
            for host in (_hosts() if hosts is None else hosts)
            for form in (host.partition(".")[0], host.partition(".")[0].lower())
        }
        found |= {name: Name(name, "user", name, _word_pattern(name)) for name in users}
        known = set(_secrets() if secrets is None else secrets)
        return cls(
            home=home if home.count("/") > 1 else "",
            names=tuple(
                sorted((n for n in found.values() if _means_nothing_else(n.literal)), key=_longest_first)
            ),
            secrets=tuple(
                (value, re.compile(re.escape(value))) for value in sorted(known, key=_long) if value
            ),
        )


def _longest_first(name: Name) -> tuple[int, str]:
    return _long(name.literal)


def _long(value: str) -> tuple[int, str]:
    return -len(value), value


def _means_nothing_else(name: str) -> bool:
    if len(name) < 3 or name.lower() in COMMON_WORDS or name.lower() in rules.LOCAL_HOSTS:
        return False
    return any(character.isalpha() for character in name)


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
    with contextlib.suppress(OSError, KeyError):  # a user id without an entry, as in many containers
        names.add(getpass.getuser())
    return sorted(names)


def _hosts() -> list[str]:
    # No getfqdn: it may ask a name server and wait.
    names = {socket.gethostname()}
    names |= {value for name, value in os.environ.items() if rules.HOST_VARIABLE.fullmatch(name)}
    short = {name.partition(".")[0] for name in names if not name.replace(".", "").isdigit()}
    return sorted(name for name in names | short if rules.HOST_NAME.fullmatch(name))


def _secrets() -> list[str]:
    return [
        value
        for name, value in os.environ.items()
        if rules.SECRET_NAME.search(name)
        and not rules.PUBLIC_NAME.search(name)
        and rules.UNMISTAKABLE_VALUE.fullmatch(value)
    ]
