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
    """What is known of the user: home, names to look for, values of secrets, longest first."""

    home: str = ""
    names: tuple[Name, ...] = ()
    secrets: tuple[str, ...] = ()

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
        found = _host_names(_hosts() if hosts is None else hosts)
        found += [_domain(name) for name in (_domains() if hosts is None else ())]
        found += [Name(name, "user", name, _word(name)) for name in users]
        distinct = {name.literal: name for name in found if _means_nothing_else(name.literal)}
        known = set(_secrets() if secrets is None else secrets) - {""}
        return cls(
            home=home if home.count("/") > 1 else "",
            names=tuple(sorted(distinct.values(), key=lambda name: _longest_first(name.literal))),
            secrets=tuple(sorted(known, key=_longest_first)),
        )


def _longest_first(value: str) -> tuple[int, str]:
    return -len(value), value


def _means_nothing_else(name: str) -> bool:
    if len(name) < 3 or name.lower() in COMMON_WORDS or name.lower() in rules.LOCAL_HOSTS:
        return False
    return any(character.isalpha() for character in name)


def _host_names(hosts: Iterable[str]) -> list[Name]:
    """Each host by its full and its short name, and its domain, which other hosts share."""
    found = []
    for host in hosts:
        short, _, domain = host.partition(".")
        value = (short if _means_nothing_else(short) else host).lower()
        found += [
            Name(form, "host", value, _host(form)) for form in (host, host.lower(), short, short.lower())
        ]
        if "." in domain:
            found.append(_domain(domain))
    return found


def _word(name: str) -> re.Pattern[str]:
    literal = re.escape(name)
    return re.compile(rf"{literal}(?<![A-Za-z0-9]{literal})(?![A-Za-z0-9])")


def _host(name: str) -> re.Pattern[str]:
    """The name, with a domain after it if there is one of two labels or more."""
    literal = re.escape(name)
    domain = r"(?:\.[A-Za-z0-9-]{1,63}){1,6}\.[A-Za-z]{2,24}(?![\w(])"
    return re.compile(rf"{literal}(?<![A-Za-z0-9]{literal})(?:{domain}|(?![A-Za-z0-9]))")


def _domain(name: str) -> Name:
    """A domain with whatever host stands before it."""
    literal = re.escape(name)
    before = r"(?:(?<![A-Za-z0-9.-])[A-Za-z0-9-]{1,63}\.(?:[A-Za-z0-9-]{1,63}\.){0,5})?"
    return Name(name, "host", name.lower(), re.compile(rf"{before}{literal}(?![A-Za-z0-9])"))


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
    addresses = {name for name in names if name.replace(".", "").isdigit()}
    return sorted(name for name in names - addresses if rules.HOST_NAME.fullmatch(name))


def _domains() -> list[str]:
    """The domains that this machine looks names up in."""
    try:
        lines = Path("/etc/resolv.conf").read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    words = [line.split() for line in lines if line.startswith(("search ", "domain "))]
    return [name for line in words for name in line[1:] if "." in name and rules.HOST_NAME.fullmatch(name)]


def _secrets() -> list[str]:
    return [
        value
        for name, value in os.environ.items()
        if rules.SECRET_NAME.search(name)
        and not rules.PUBLIC_NAME.search(name)
        and rules.UNMISTAKABLE_VALUE.fullmatch(value)
    ]
