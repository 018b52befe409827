"""JSON merge patch (RFC 7396), except that a value which is null can't be told from an absent one."""

from __future__ import annotations

from typing import Any


def make_patch(base: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return what turns `base` into `other`.

    Example::

        >>> make_patch({"a": 1, "b": {"c": 2, "d": 3}}, {"a": 1, "b": {"c": 4}})
        {'b': {'c': 4, 'd': None}}
    """
    found: dict[str, Any] = {}
    for key in [*base, *(k for k in other if k not in base)]:
        one, new = base.get(key), other.get(key)
        if isinstance(one, dict) and isinstance(new, dict):
            if inner := make_patch(one, new):
                found[key] = inner
        elif one != new:
            found[key] = new
    return found


def apply_patch(base: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Return `base` as `patch` changes it; neither is touched.

    Example::

        >>> apply_patch({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"c": 4, "d": None}})
        {'a': 1, 'b': {'c': 4}}
    """
    found = dict(base)
    for key, new in patch.items():
        if new is None:
            found.pop(key, None)
        elif isinstance(new, dict):
            old = found.get(key)
            found[key] = apply_patch(old if isinstance(old, dict) else {}, new)
        else:
            found[key] = new
    return found
