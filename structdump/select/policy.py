"""Level and filters in, one decision per event out: keep its text, index it, or only count it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fnmatch import translate
from functools import lru_cache
from typing import Literal, NamedTuple

from structdump.config import DumpConfig
from structdump.levels import Level, cell

Action = Literal["keep", "index", "drop"]
PASS_KINDS = frozenset({"graph", "pass"})
KERNEL_KINDS = frozenset({"kernel", "candidate", "ir"})
CONFIG_KINDS = frozenset({"best_config", "autotune"})


class Decision(NamedTuple):
    """What to do with an event, and the reason to report when its text is not kept."""

    action: Action
    reason: str


class Patterns:
    """One list of globs and regular expressions.

    `verdict` is True for a selected name, False for a rejected one, and None where the list has
    no say: it is empty, or it only negates and nothing matched.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._rules = [(_compile(p.removeprefix("!")), not p.startswith("!")) for p in patterns]
        self._default = False if self._rules and self._rules[0][1] else None

    def verdict(self, *names: str | None) -> bool | None:
        """Decide on an artifact that is known by any of `names`."""
        state = self._default
        known = [n for n in names if n]
        for matches, positive in self._rules:
            if any(matches(name) for name in known):
                state = positive
        return state

    def __bool__(self) -> bool:
        return bool(self._rules)


class Policy:
    """The decisions of one configuration.

    Example::

        policy = Policy(DumpConfig(level="low", kernels=["triton_red_*"]))
        policy.decide("kernel", "triton_red_fused_sum_0")  # Decision(action='keep', reason='')
    """

    def __init__(self, config: DumpConfig) -> None:
        self.level: Level = "low" if config.level == "off" else config.level
        self.passes = Patterns(config.passes)
        self.kernels = Patterns(config.kernels)
        self.configs = Patterns(config.configs)
        self.functions = Patterns(config.functions)
        self.kinds = Patterns(config.kinds)
        self.every_pass = self.level == "full" if config.every_pass is None else config.every_pass
        self._decide = lru_cache(maxsize=4096)(self._decide_uncached)

    def decide(
        self,
        kind: str,
        name: str,
        stage: str | None = None,
        phase: str | None = None,
        changed: bool | None = None,
        function: str | None = None,
    ) -> Decision:
        """Decide on one artifact; `function` is the name of the compiled function, if known."""
        return self._decide(kind, name, stage, phase, changed, function)

    def wants_pass(self, name: str) -> bool:
        """Tell whether a run of the Inductor pass `name` is to be recorded."""
        return self.passes.verdict(name) is True if self.passes else self.every_pass

    def trims_choices(self, name: str) -> bool:
        """Tell whether only the winner of an autotuned operation is kept."""
        return cell(self.level, "autotune") == "winner" and self.configs.verdict(name) is not True

    def _decide_uncached(
        self,
        kind: str,
        name: str,
        stage: str | None,
        phase: str | None,
        changed: bool | None,
        function: str | None,
    ) -> Decision:
        base = cell(self.level, kind, stage, phase, changed)
        if function is not None and self.functions.verdict(function) is False:
            return Decision("drop", "filter:functions")
        if self.kinds.verdict(kind) is False:
            return Decision("drop", "filter:kinds")
        field, verdict = self._name_verdict(kind, name, stage, phase)
        if verdict is False:
            return Decision("drop" if base == "drop" else "index", f"filter:{field}")
        if verdict or self.kinds.verdict(kind) or base in ("text", "winner"):
            return Decision("keep", "")
        return Decision("drop" if base == "drop" else "index", "level")

    def _name_verdict(
        self, kind: str, name: str, stage: str | None, phase: str | None
    ) -> tuple[str, bool | None]:
        if kind in PASS_KINDS:
            return "passes", self.passes.verdict(name, stage, f"{phase} {stage}" if phase else None)
        if kind in KERNEL_KINDS:
            return "kernels", self.kernels.verdict(name)
        if kind in CONFIG_KINDS:
            return "configs", self.configs.verdict(name)
        return "", None


def _normal(name: str) -> str:
    return name.lower().replace("_", " ")


def _compile(pattern: str) -> Callable[[str], object]:
    if pattern.startswith("re:"):
        return re.compile(pattern[3:], re.IGNORECASE).search
    glob = re.compile(translate(_normal(pattern)))
    return lambda name: glob.match(_normal(name))
