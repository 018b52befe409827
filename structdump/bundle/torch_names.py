"""The names that torch itself uses, by kind, out of `torch_names.txt`."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

_LINES = frozenset({"breaks", "named records"})  # one name a line, since they hold spaces


@lru_cache(maxsize=1)
def _sections() -> dict[str, frozenset[str]]:
    text = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
    parts = re.split(r"^\[([a-z ]+)\]\n", text, flags=re.MULTILINE)
    names, bodies = parts[1::2], parts[2::2]
    return {
        name: frozenset(body.splitlines() if name in _LINES else body.split())
        for name, body in zip(names, bodies, strict=True)
    }


def known(section: str) -> frozenset[str]:
    """Return the names of one section of the file.

    Example::

        >>> "aten.mm" in known("ops"), "mylib.mm" in known("ops")
        (True, False)
    """
    return _sections()[section]


@lru_cache(maxsize=1)
def op_bases() -> frozenset[str]:
    """Return the names of torch's ops without namespace, with underscores at their ends and without."""
    found = {op.rpartition(".")[2] for op in known("ops")}
    found |= known("tensor")
    return frozenset(found | {name.strip("_") for name in found})
