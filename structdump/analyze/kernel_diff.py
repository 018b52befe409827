"""Kernels, their tuned configurations and autotuning of two compiles: added, removed, changed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property
from typing import Any

from structdump.analyze import canon
from structdump.analyze.difference import Change, ConfigDifference, KernelDifference
from structdump.analyze.text_diff import diff_lines
from structdump.bundle.loaded import ArtifactView
from structdump.bundle.model import Autotune, Kernel

_NUMBER = re.compile(r"_\d+$")
_FIELDS = ("backend", "calls", "grid", "heuristic", "size_hints", "loads", "stores", "reductions")
_LONGEST = 40  # lines of a kernel's diff
# What AutotuneCache.save notes beside the launch configuration (torch/_inductor/runtime/autotune_cache.py).
_NOTES = ("configs_hash", "found_by_coordesc", "time_taken_ms", "triton_cache_hash")


class KnownKernel:
    """A kernel that takes part in a comparison; its canonical source is made when first asked for."""

    def __init__(self, artifact: ArtifactView):
        self.artifact = artifact
        self.facts = artifact.kernel or Kernel(name=artifact.name)
        self.name = self.facts.name
        self.base = _NUMBER.sub("", self.name)
        self.made_of = (self.facts.backend, *self.facts.ops) if self.facts.ops else None

    @cached_property
    def source(self) -> str | None:
        """The source as far as it counts, or None if it was not kept."""
        text = self.artifact.text
        return None if text is None else canon.kernel(text, self.name)


KernelPair = tuple[KnownKernel | None, KnownKernel | None]
# From what says most to what says least. None pairs nothing.
_KEYS: tuple[Callable[[KnownKernel], Hashable], ...] = (
    lambda k: (k.name, k.artifact.digest, k.facts.calls, k.artifact.graph_id),
    lambda k: (k.name, k.artifact.digest, k.facts.calls),
    lambda k: (k.name, k.artifact.digest),
    lambda k: k.source and (k.base, k.source),
    lambda k: k.source,
    lambda k: k.name,
    lambda k: k.made_of and (k.base, k.made_of),
    lambda k: k.made_of,
    lambda k: k.base,
)


def pair_kernels(a: list[ArtifactView], b: list[ArtifactView]) -> list[KernelPair]:
    """Pair the kernels that two compiles run: by source, then by name, provenance and order.

    Numbers at the ends of names count least: one more kernel renumbers those after it.
    """
    left, right = [KnownKernel(k) for k in a], [KnownKernel(k) for k in b]
    order = {k: n for n, k in enumerate(left)}
    pairs: list[tuple[KnownKernel, KnownKernel | None]] = []
    for key in _KEYS:
        if not left or not right:
            break
        waiting: dict[Hashable, list[KnownKernel]] = defaultdict(list)
        for k in right:
            waiting[key(k)].append(k)
        waiting.pop(None, None)
        for k in list(left):
            found = waiting.get(key(k))
            if found:
                other = found.pop(0)
                pairs.append((k, other))
                left.remove(k)
                right.remove(other)
    pairs += [(k, None) for k in left]
    pairs.sort(key=lambda p: order[p[0]])
    return [*pairs, *((None, k) for k in right)]


def diff_kernels(pairs: Sequence[KernelPair], compile_label: str) -> Iterator[KernelDifference]:
    """Yield the kernels that differ; numbers in names, comments and paths are no difference."""
    for a, b in pairs:
        one = a or b
        assert one is not None  # noqa: S101  # pair_kernels makes no empty pair
        found = KernelDifference(
            "changed" if a and b else "removed" if a else "added",
            compile_label,
            one.artifact.direction,
            a.name if a else None,
            b.name if b else None,
            one.facts.backend,
            one.facts.ops,
        )
        if a and b:
            found.changes = list(_changes(a.facts, b.facts))
            found.lines = _source_diff(a, b)
        if not (a and b) or found.changes or found.lines:
            yield found


def _source_diff(a: KnownKernel, b: KnownKernel) -> list[str]:
    if a.artifact.digest == b.artifact.digest or a.source is None or b.source is None:
        return []
    text = diff_lines(a.source.splitlines(), b.source.splitlines())
    return text.lines[:_LONGEST] if text else []


def diff_configs(
    pairs: Sequence[KernelPair], a: list[ArtifactView], b: list[ArtifactView], compile_label: str
) -> Iterator[ConfigDifference]:
    """Yield the kernels whose tuned configurations differ; `a` and `b` are the `best_config` artifacts."""
    tuned_a, tuned_b = _by_kernel(a), _by_kernel(b)
    for left, right in pairs:
        if left is None or right is None:  # the kernel itself is the news
            continue
        one, other = tuned_a.get(left.name), tuned_b.get(right.name)
        config_a, config_b = left.artifact.best_config, right.artifact.best_config
        if config_a is None or config_b is None:
            continue
        config_a, config_b = _only_config(config_a), _only_config(config_b)
        if config_a != config_b:
            keys = [k for k in {**config_a, **config_b} if config_a.get(k) != config_b.get(k)]
            yield ConfigDifference(
                left.name,
                compile_label,
                {k: config_a.get(k) for k in keys},
                {k: config_b.get(k) for k in keys},
                _tuning_seconds(one),
                _tuning_seconds(other),
            )


def diff_autotune(
    a: list[ArtifactView], b: list[ArtifactView], compile_label: str
) -> Iterator[ConfigDifference]:
    """Yield the tuned operations, by name and shapes, that another template or configuration won."""
    waiting: dict[Hashable, list[Autotune]] = defaultdict(list)
    for artifact in b:
        if artifact.autotune is not None and artifact.autotune.winner:
            waiting[_operation(artifact.autotune)].append(artifact.autotune)
    for artifact in a:
        mine = artifact.autotune
        found = waiting.get(_operation(mine)) if mine is not None and mine.winner else None
        if mine is None or not found:
            continue
        theirs = found.pop(0)
        winner_a, winner_b = _winner(mine), _winner(theirs)
        if winner_a != winner_b:
            keys = [k for k in {**winner_a, **winner_b} if winner_a.get(k) != winner_b.get(k)]
            yield ConfigDifference(
                " ".join([mine.operation, *mine.shapes]),
                compile_label,
                {k: winner_a.get(k) for k in keys},
                {k: winner_b.get(k) for k in keys},
                _winner_seconds(mine),
                _winner_seconds(theirs),
            )


def _changes(a: Kernel, b: Kernel) -> Iterator[Change]:
    for name in _FIELDS:
        one, other = getattr(a, name), getattr(b, name)
        if one != other and (name in ("backend", "calls") or (one is not None and other is not None)):
            yield Change("kernels", name, one, other)


def _by_kernel(artifacts: list[ArtifactView]) -> dict[str, ArtifactView]:
    """Return the best configs by kernel; the last one saved is the one in use."""
    return {a.kernel.name if a.kernel else a.name: a for a in artifacts}


def _only_config(config: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in config.items() if k not in _NOTES}


def _tuning_seconds(artifact: ArtifactView | None) -> float | None:
    data = artifact.data if artifact is not None else None
    taken = data.get("time_taken_ms") if isinstance(data, dict) else None
    return taken / 1000 if isinstance(taken, (int, float)) else None


def _operation(autotune: Autotune | None) -> Hashable:
    return (autotune.operation, tuple(autotune.shapes)) if autotune else None


def _winner(autotune: Autotune) -> dict[str, Any]:
    choice = next((c for c in autotune.choices if c.name == autotune.winner), None)
    return {"winner": _NUMBER.sub("", autotune.winner or ""), **(choice.config if choice else {})}


def _winner_seconds(autotune: Autotune) -> float | None:
    return next((c.seconds for c in autotune.choices if c.name == autotune.winner), None)
