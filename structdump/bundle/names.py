"""Names of graphs and of depyf's and vLLM's dump files, both ways. Pure.

`stage_of` reads the name that a graph is logged under; `parse_file_name` and `DumpName.file_name` go
between a dump file's name and what it says; `depyf_file_name` gives an artifact of a bundle depyf's name.

The graph names are those of every `lazy_format_graph_code` call in torch 2.9 to 2.13 and of vLLM;
the file names are those of depyf 0.13 to 0.20 (before 0.18 with spaces) and of vLLM's debug dump.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Literal, NamedTuple

from structdump.bundle.model import Direction, Phase

FileKind = Literal[
    "graph",
    "kernel",
    "best_config",
    "kernel_perf",
    "full_code",
    "transformed_code",
    "bytecode",
    "fx_graph_code",
    "patterns",
    "vllm",
    "lock",
]


class Stage(NamedTuple):
    """What a graph's name says. `order` is the place of a pass in its pipeline, where one is stated."""

    stage: str
    phase: Phase | None = None
    pass_name: str | None = None
    direction: Direction | None = None
    order: int | None = None
    label: str = ""


# name as torch gives it: stage, phase, direction. "Forward graph" stands for inference graphs as well.
GRAPHS: dict[str, tuple[str, Phase | None, Direction | None]] = {
    "Captured Graph": ("captured", None, None),  # depyf's word for __compiled_fn_N
    "BEFORE PRE GRAD": ("pre_grad", "before", None),  # _inductor/compile_fx.py
    "Joint graph": ("joint", None, "joint"),  # _functorch/_aot_autograd/graph_compile.py
    "Forward graph": ("forward", None, None),
    "Backward graph": ("backward", None, "backward"),
    "AFTER POST GRAD": ("post_grad", "after", None),  # _inductor/compile_fx.py
    "FROZEN GRAPH": ("frozen", None, "inference"),  # _inductor/freezing.py
    "tensorify_python_scalars": ("tensorify", None, None),  # fx/passes/_tensorify_python_scalars.py
    "pre split_module": ("split_module", "before", None),  # fx/passes/split_module.py
    "post split_module": ("split_module", "after", None),
    "Compiled autograd graph": ("compiled_autograd", None, "backward"),  # _dynamo/compiled_autograd.py
    "Forward graph before unlifting tokens": ("unlift_tokens", "before", "forward"),  # _aot_autograd/utils.py
    "Backward graph before unlifting tokens": ("unlift_tokens", "before", "backward"),
    "Forward graph pre saved_tensors_hooks inlining": ("saved_tensors_hooks", "before", "forward"),
    "Backward graph pre saved_tensors_hooks inlining": ("saved_tensors_hooks", "before", "backward"),
    "Forward graph after transform pre-assert": ("saved_tensors_hooks", "after", "forward"),
    "Backward graph after transform pre-assert": ("saved_tensors_hooks", "after", "backward"),
    "before split": ("split", "before", None),  # vllm/compilation/backends.py
    "after split": ("split", "after", None),
}
# The same for names that go on: a pattern over the name with spaces.
_PREFIXES: tuple[tuple[re.Pattern[str], tuple[str, Phase | None, Direction | None]], ...] = (
    (re.compile(r"compiled fn -?\d+( [0-9a-f-]+)*"), ("captured", None, None)),
    (re.compile(r"pre insert deferred runtime asserts .+"), ("runtime_asserts", "before", None)),
    (re.compile(r"saved tensors (un)?pack hook .+"), ("saved_tensors_hooks", None, None)),
)
_ASSERTS = re.compile(r"^pre[_ ]insert[_ ]deferred[_ ]runtime[_ ]asserts[_ ]")
_PASS = re.compile(r"(?P<stage>post[_ ]grad|pre[_ ]grad)(?:\.(?P<order>\d+))?\.(?P<pass>.+)", re.DOTALL)


def _plain(name: str) -> str:
    return re.sub(r"[_ ]+", " ", name).strip().lower()


_BY_NAME = {_plain(name): (name, found) for name, found in GRAPHS.items()}


@lru_cache(maxsize=4096)
def stage_of(name: str) -> Stage:
    """Return stage, phase, pass and direction of a graph that is logged under `name`.

    Takes torch's names and the file forms of them, where depyf puts underscores for spaces. What comes
    after a colon (export puts a module stack there) does not count. An unknown name is its own stage.

    Example::

        >>> stage_of("AFTER POST GRAD")[:2]
        ('post_grad', 'after')
        >>> stage_of("post_grad.0.NoOpEliminationPass.before")[:3]
        ('post_grad', 'before', 'NoOpEliminationPass')
    """
    name = name.split(":")[0]
    if match := _PASS.fullmatch(name):
        pass_name, _, last = match["pass"].rpartition(".")
        phase: Phase | None = "before" if last == "before" else "after" if last == "after" else None
        if phase is None or not pass_name:
            phase, pass_name = None, match["pass"]
        order = int(match["order"]) if match["order"] and len(match["order"]) < 10 else None
        return Stage(_slug(match["stage"]), phase, pass_name, None, order, pass_name)
    plain = _plain(name)
    if known := _BY_NAME.get(plain):
        label, (stage, phase, direction) = known
        return Stage(stage, phase, None, direction, None, label)
    for pattern, (stage, phase, direction) in _PREFIXES:
        if pattern.fullmatch(plain):
            return Stage(
                stage,
                phase,
                None,
                direction,
                None,
                _ASSERTS.sub(r"pre insert_deferred_runtime_asserts ", name),
            )
    return Stage(_slug(name), label=name)


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:80] or "unnamed"


@dataclass(frozen=True, slots=True)
class DumpName:
    """What the name of a dump file says.

    `function` is depyf's `__compiled_fn_N` or the Python function's name; `name` the graph's name, the
    hash, or the stem; `index` the number that depyf counts up; `suffix` what a bytecode file holds
    (original, transformed, decompiled_and_compiled_back). `spaced` marks the form of depyf before 0.18.
    """

    kind: FileKind
    function: str | None = None
    name: str = ""
    index: int | None = None
    suffix: str | None = None
    spaced: bool = False

    @property
    def stage(self) -> Stage:
        """Stage, phase and pass of a graph file."""
        return stage_of(self.name)

    @property
    def file_name(self) -> str:
        """Return the name that this was parsed from, or that depyf or vLLM would give.

        Only a graph's own name can hold a slash here: see `depyf_file_name` for names to write under.
        """
        space = " " if self.spaced else "."
        kernel = f"{self.function}{space}kernel{' ' if self.spaced else '_'}{self.index}"
        code = f"__transformed_code_{self.index}_for_{self.function}.py"
        return {
            "graph": f"{self.function}{space}{self.name}{space}{self.index}.py",
            "kernel": f"{kernel}.py",
            "best_config": f"{kernel if self.function else self.name}.best_config",
            "kernel_perf": f"{kernel if self.function else self.name}.kernel_perf",
            "full_code": f"full_code_for_{self.function}_{self.index}.py",
            "transformed_code": code,
            "bytecode": f"{code}.{self.suffix}_bytecode",
            "fx_graph_code": f"fx_graph_code_{self.name}_{self.index}.py",
            "patterns": f"patterns.{self.name}.{self.index}.py",
            "vllm": self.name,
            "lock": f"{self.name}.lock",
        }[self.kind]


VLLM_FILES = (
    "transformed_code.py",
    "computation_graph.py",
    "vllm_compile_cache.py",
    "cache_key_factors.json",
)
_INT = r"(?:0|[1-9]\d{0,8})"
_FILES: tuple[tuple[FileKind, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.DOTALL))  # type: ignore[misc] # mypy takes the literals below for str
    for kind, pattern in (
        ("lock", r"(?P<name>.+)\.lock"),
        ("kernel", rf"(?P<function>__compiled_fn_-?\d+)(?P<sep>[. ])kernel[_ ](?P<index>{_INT})\.py"),
        (
            "best_config",
            rf"(?P<function>__compiled_fn_-?\d+)(?P<sep>[. ])kernel[_ ](?P<index>{_INT})\.best_config",
        ),
        (
            "kernel_perf",
            rf"(?P<function>__compiled_fn_-?\d+)(?P<sep>[. ])kernel[_ ](?P<index>{_INT})\.kernel_perf",
        ),
        (
            "graph",
            rf"(?P<function>__compiled_fn_-?\d+)(?P<sep>[. ])(?P<name>.+)(?P=sep)(?P<index>{_INT})\.py",
        ),
        ("full_code", rf"full_code_for_(?P<function>.+)_(?P<index>{_INT})\.py"),
        (
            "bytecode",
            rf"__transformed_code_(?P<index>{_INT})_for_(?P<function>.+)\.py\.(?P<suffix>\w+)_bytecode",
        ),
        ("transformed_code", rf"__transformed_code_(?P<index>{_INT})_for_(?P<function>.+)\.py"),
        ("fx_graph_code", rf"fx_graph_code_(?P<name>[0-9a-f]{{32}})_(?P<index>{_INT})\.py"),
        ("patterns", rf"patterns\.(?P<name>.+)\.(?P<index>{_INT})\.py"),
        ("best_config", r"(?P<name>[^/]+)\.best_config"),
        ("kernel_perf", r"(?P<name>[^/]+)\.kernel_perf"),
        ("vllm", "(?P<name>" + "|".join(map(re.escape, VLLM_FILES)) + ")"),
    )
)


def parse_file_name(path: str) -> DumpName | None:
    """Read the name of a dump file, given relative to the dump directory; None if it is not one.

    A graph's name may hold slashes, which then look like folders. Bytes that are no UTF-8 may stand
    in `path` as surrogates, as `os.fsdecode` gives them.

    Example::

        >>> parse_file_name("__compiled_fn_1.post_grad.0.NoOpPass.after.2.py").stage.pass_name
        'NoOpPass'
        >>> parse_file_name("__compiled_fn_1.kernel_13.best_config").index
        13
    """
    for kind, pattern in _FILES:
        if match := pattern.fullmatch(path):
            found = match.groupdict()
            index = found.get("index")
            parsed = DumpName(
                kind,
                found.get("function"),
                found.get("name") or "",
                None if index is None else int(index),
                found.get("suffix"),
                found.get("sep") == " ",
            )
            return parsed if parsed.file_name == path else None
    return None


@lru_cache(maxsize=4096)
def depyf_file_name(
    kind: str,
    name: str,
    stage: str | None = None,
    phase: Phase | None = None,
    function: str = "0",
    index: int = 0,
    order: int | None = None,
) -> str | None:
    """Return the file name that depyf gives such an artifact; None for what depyf does not dump.

    `function` is the number of the compiled function for graphs and kernels and the Python function's
    name for source; `index` counts the artifacts of one name up from 0. The result is one safe path
    component of at most 200 bytes: slashes and control characters become underscores.

    Example::

        >>> depyf_file_name("graph", "inductor_post_grad_graph", "post_grad", "after", "1", 2)
        '__compiled_fn_1.AFTER_POST_GRAD.2.py'
        >>> depyf_file_name("pass", "NoOpPass", "post_grad", "before", "1", 0, order=3)
        '__compiled_fn_1.post_grad.3.NoOpPass.before.0.py'
    """
    compiled = f"__compiled_fn_{function}"
    if kind == "graph":
        label = next((n for n, found in GRAPHS.items() if found[:2] == (stage, phase)), name.split(":")[0])
        found = DumpName("graph", compiled, label.replace(" ", "_"), index)
    elif kind == "pass":
        parts = [stage or "pass", str(order) if order is not None else None, name, phase]
        found = DumpName("graph", compiled, ".".join(p for p in parts if p).replace(" ", "_"), index)
    elif kind in ("output_code", "kernel", "candidate"):
        found = DumpName("kernel", compiled, index=index)
    elif kind == "best_config":
        found = DumpName("best_config", compiled, index=index)
    elif kind == "source" and stage in ("full_code", "decompiled"):
        found = DumpName(
            "full_code" if stage == "full_code" else "transformed_code", _flat(function), index=index
        )
    else:
        return None
    return _safe(found.file_name)


def _safe(name: str) -> str:
    name = re.sub(r"[/\\\x00-\x1f\x7f\ud800-\udfff]", "_", name)
    if len(name.encode()) <= 200:
        return name
    head, _, tail = name.rpartition(".")  # file systems take 255 bytes; a cut name needs its hash
    return (
        f"{head.encode()[:150].decode(errors='ignore')}~{sha256(name.encode()).hexdigest()[:12]}.{tail[:20]}"
    )


def _flat(function: str) -> str:
    return re.sub(r"[.<> ]", "_", function)


_RANK = re.compile(r"rank_(?P<rank>\d{1,6})(?:_dp_(?P<dp>\d{1,6})|_(?P<second>\d{1,6}))?")


def parse_rank(directory: str) -> tuple[int, int | None] | None:
    """Read rank and data-parallel rank out of the name of one of vLLM's folders; None if it is another.

    Example::

        >>> parse_rank("rank_3_dp_1"), parse_rank("rank_3"), parse_rank("cache")
        ((3, 1), (3, None), None)
    """
    match = _RANK.fullmatch(directory)
    if match is None:
        return None
    second = match["dp"] or match["second"]
    return int(match["rank"]), None if second is None else int(second)
