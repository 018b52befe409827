"""Scripts that compile once more what a bundle says was compiled."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from structdump.analyze.environment_diff import concerns_compiling
from structdump.analyze.repro_graph import FUNCTIONS, Runnable, parsed, runnable
from structdump.analyze.repro_script import environment, header, imports, operators, settings, sizes
from structdump.analyze.stage_diff import label_of
from structdump.analyze.summary import why_not_kept
from structdump.bundle.loaded import ArtifactView, LoadedBundle
from structdump.bundle.model import Compile, Failure
from structdump.errors import UsageError

#: What a compile can be rebuilt from, the best first: torch's own script has the graph as Inductor got it.
_SOURCES = (("repro", "fx_graph_runnable"), ("graph", "post_grad"), ("graph", "captured"))
#: Backends that every torch has (`torch._dynamo.list_backends(None)` of 2.13, those that need no more).
_BACKENDS = frozenset({"inductor", "eager", "aot_eager", "aot_eager_decomp_partition", "cudagraphs"})
_DIRECTIONS = ("forward", "backward", "inference")
_SET_VARIABLE = re.compile(r"^os\.environ\[['\"](\w+)['\"]\] = .*$", re.MULTILINE)
_SET_CONFIG = re.compile(r"^torch\.[\w.]*config\.[\w.]+ = (?P<value>.*)$", re.MULTILINE)
_MODULE = re.compile(r"^class Repro\(", re.MULTILINE)
_TOKEN = re.compile(r"<[a-z]+(?:[_-][a-z]+)*-\d+>")


@dataclass(slots=True)
class Repro:
    """A script, what it rebuilds, and what came of that in the bundle.

    `expected` is the failure of the compile, None if it went well. `notes` say what may differ;
    `others` name what else of the compile could be rebuilt, by the numbers of the artifacts.
    """

    script: str
    what: str
    expected: Failure | None = None
    notes: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


def repro(
    bundle: LoadedBundle,
    compile_id: str | None = None,
    *,
    graph: int | None = None,
    modules: Iterable[str] = (),
) -> Repro:
    """Return a script that compiles one graph of a bundle, with random inputs of the recorded types.

    The graph is that of `compile_id`, or else of the first compile that failed, or else of the first
    one; or the one with the number (`seq`) `graph`. `modules` are modules, or files ending in `.py`,
    that the script imports first, for operators that torch does not have.

    Raises UsageError if there is no such compile, or nothing that a graph can be rebuilt from.

    Example::

        made = repro(structdump.load("run.json.zst"), "0/0")
        Path("repro.py").write_text(made.script, encoding="utf-8")
    """
    record = _compile(bundle, compile_id, graph)
    candidates = _candidates(bundle, record)
    if graph is not None:
        chosen = _numbered(bundle, graph)
    elif not candidates:
        raise UsageError(_nothing(record))
    else:
        # What failed is the last graph that was reached; what went well begins with the forward graph.
        chosen = candidates[-1] if record is not None and record.error else candidates[0]
    failed = record is not None and record.error and (graph is None or candidates[-1:] == [chosen])
    made = Repro("", _what(chosen, record), record.error if record and failed else None)
    made.others = [f"{a.seq}: {_what(a, record)}" for a in candidates if a.seq != chosen.seq]
    try:
        _write(made, bundle, record, chosen, list(modules))
    except UsageError as error:
        if graph is not None or chosen.kind != "repro":
            raise
        made.notes.append(f"torch's own script cannot be used: {error}")
        chosen = next((a for a in _post_grad(bundle, chosen)), chosen)
        made.what = _what(chosen, record)
        _write(made, bundle, record, chosen, list(modules))
    return made


def _compile(bundle: LoadedBundle, compile_id: str | None, graph: int | None) -> Compile | None:
    if compile_id is None and graph is not None:
        compile_id = _numbered(bundle, graph).compile_id
    if compile_id is not None:
        found = next((c for c in bundle.compiles if c.id == compile_id), None)
        if found is None and not any(a.compile_id == compile_id for a in bundle.artifacts):
            known = ", ".join(c.id for c in bundle.compiles[:20])
            raise UsageError(f"no compile {compile_id!r}; there are {known or 'none'}")
        return found
    failed = next((c for c in bundle.compiles if c.error), None)
    if failed is not None:
        return failed
    return next((c for c in bundle.compiles if _candidates(bundle, c)), next(iter(bundle.compiles), None))


def _numbered(bundle: LoadedBundle, seq: int) -> ArtifactView:
    found = next((a for a in bundle.artifacts if a.seq == seq), None)
    if found is None or found.kind not in ("graph", "pass", "repro"):
        raise UsageError(f"no graph has the number {seq}")
    if found.digest is None:
        raise UsageError(f"the text of graph {seq} is not in the bundle: {why_not_kept(found, bundle.level)}")
    return found


def _candidates(bundle: LoadedBundle, record: Compile | None) -> list[ArtifactView]:
    """Return what can be rebuilt of a compile: one artifact per graph, from the best source there is.

    Of a failed compile, the last one is of the graph that failed.
    """
    mine = [a for a in bundle.artifacts if a.compile_id == (record.id if record else None)]
    last = max((a.attempt or 0 for a in mine), default=0)
    mine = [a for a in mine if (a.attempt or 0) == last and a.kind in ("graph", "pass", "repro")]
    reached = next((a.direction for a in reversed(mine) if a.direction in _DIRECTIONS), None)
    for kind, stage in _SOURCES:
        found = [a for a in mine if (a.kind, a.stage) == (kind, stage) and a.phase != "before" and a.digest]
        # The forward graph of a compile whose backward failed would tell nothing; the captured one has both.
        failed_elsewhere = record is not None and record.error and stage != "captured"
        if found and not (failed_elsewhere and found[-1].direction != reached):
            return found
    return []


def _post_grad(bundle: LoadedBundle, chosen: ArtifactView) -> list[ArtifactView]:
    """Return the post-grad graphs that became of what `chosen` is torch's own script of."""
    return [
        a
        for a in bundle.artifacts
        if a.kind == "graph" and a.stage == "post_grad" and a.phase != "before" and a.digest is not None
        if (a.compile_id, a.graph_id, a.direction) == (chosen.compile_id, chosen.graph_id, chosen.direction)
    ]


def _nothing(record: Compile | None) -> str:
    which = f"compile {record.id}" if record else "the bundle"
    if record is not None and record.error:
        return f"{which} failed before it had a graph to rebuild: {first_line(record.error)}"
    return f"{which} holds no text of a graph to rebuild; capture at a higher level or with fewer filters"


def first_line(error: Failure) -> str:
    """Return a failure as one line: its type and the first line of its message."""
    return f"{error.type}: {error.message.strip().splitlines()[0] if error.message.strip() else ''}"


def _what(artifact: ArtifactView, record: Compile | None) -> str:
    label = label_of(artifact)
    if artifact.kind == "repro":
        label = "graph as Inductor got it" + (f" ({artifact.direction})" if artifact.direction else "")
    of = f" of compile {artifact.compile_id}" if artifact.compile_id else ""
    function = f", function {record.function.name}" if record and record.function else ""
    return f"{label}{of}{function}"


def _write(
    made: Repro, bundle: LoadedBundle, record: Compile | None, chosen: ArtifactView, modules: list[str]
) -> None:
    text = chosen.text or ""
    facts = [f"What came of it: {first_line(made.expected)}"] if made.expected else []
    if chosen.kind == "repro":
        body = _own_script(text, modules)
    else:
        configured, left_out = settings(bundle)
        if left_out:
            facts.append(f"Settings that no text gives back: {', '.join(left_out)}")
            made.notes.append(f"not set, as no text gives them back: {', '.join(left_out)}")
        graph = runnable(text)
        captured = chosen.stage == "captured"
        backend = _backend(record)
        if captured and backend not in _BACKENDS:
            made.notes.append(f"backend {backend!r} is the program's own; the script compiles with Inductor")
            backend = "inductor"
        trains = captured and any(a.compile_id == chosen.compile_id and _trains(a) for a in bundle.artifacts)
        body = _preamble(modules, configured, operators(text)) + _module(graph, record)
        body += (
            f"DYNAMIC = {bool(graph.symbols)}\n"
            + (f"TRAINS = {trains}\nBACKEND = {backend!r}\n" if captured else "")
            + "\n"
        )
        body += _COMPILE if captured else _COMPILE_INNER
    made.script = header(made.what, bundle, facts) + "\n" + environment(bundle) + "\n" + body
    parsed(made.script, "the script")


def _backend(record: Compile | None) -> str:
    """Return the backend of a compile; where only its failure tells, from there (torch/_dynamo/exc.py)."""
    told = re.match(r"backend='(\w+)' raised", record.error.message) if record and record.error else None
    return (record.backend if record else None) or (told[1] if told else "inductor")


def _trains(artifact: ArtifactView) -> bool:
    return artifact.direction in ("joint", "backward") or artifact.stage == "joint"


def _own_script(text: str, modules: list[str]) -> str:
    """Return torch's own script without what concerns the machine it was made on."""
    text = _SET_VARIABLE.sub(
        lambda m: m[0] if concerns_compiling(m[1]) and not _TOKEN.search(m[0]) else "", text
    )
    text = _SET_CONFIG.sub(lambda m: "" if _TOKEN.search(m["value"]) else m[0], text)
    at = _MODULE.search(text)
    if at is None:
        raise UsageError("it holds no module Repro")
    parsed(text, "torch's own script")
    extra = imports(modules) + operators(text)
    if extra:
        extra = f"import importlib.util\nimport sys\n\n{extra}\n"
    return text[: at.start()].lstrip("\n") + extra + text[at.start() :]


def _preamble(modules: list[str], *parts: str) -> str:
    lines = [
        "import importlib.util",
        "import sys",
        "from math import inf, nan",
        "",
        "import torch",
        "import torch._inductor.inductor_prims",
        "import torch.utils._pytree as pytree",
        "from torch import device",
        "from torch._dynamo.testing import rand_strided",
        "",
        "",
    ]
    return "\n".join(lines) + "".join(f"{part}\n" for part in (imports(modules), *parts) if part)


def _module(graph: Runnable, record: Compile | None) -> str:
    out = f"\n{graph.code.rstrip()}\n\n\n"
    for line in sizes(graph.symbols, record.symbols if record else {}):
        out += f"{line}\n"
    for name in graph.functions:
        out += f"{name} = {FUNCTIONS[name]}\n"
    values = [value for _, value in (*graph.inputs, *graph.constants)]
    out += _CONTIGUOUS if any("contiguous(" in value for value in values) else ""
    out += "module = Repro()\n"
    for path in graph.modules:
        out += f"module.{path} = Repro.{path}()\n"
    for path, value in graph.constants:
        owner, _, name = path.rpartition(".")
        out += f"module{f'.{owner}' if owner else ''}.register_buffer({name!r}, {value})\n"
    rows = "".join(f"    {value},  # {name}\n" for name, value in graph.inputs)
    return out + f"torch.manual_seed(0)\ninputs = [\n{rows}]\n\n"


_CONTIGUOUS = '''def contiguous(size):
    """Return the strides of a tensor whose text gives none."""
    strides, step = [], 1
    for length in reversed(size):
        strides.insert(0, step)
        step *= max(length, 1)
    return tuple(strides)


'''
# As torch's own scripts do (torch/_dynamo/repro/after_aot.py, `repro_run`).
_COMPILE_INNER = """
def main():
    from torch._inductor.compile_fx import compile_fx_inner
    from torch.fx.experimental.proxy_tensor import make_fx

    with torch.no_grad():
        graph = make_fx(module, tracing_mode="symbolic" if DYNAMIC else "real")(*inputs)
        examples = inputs
        if DYNAMIC:
            places = [node for node in graph.graph.nodes if node.op == "placeholder"]
            examples = [node.meta.get("val", given) for node, given in zip(places, inputs)]
        results = compile_fx_inner(graph, examples)(list(inputs))
    print(f"compiled and ran: {len(results)} results")


if __name__ == "__main__":
    main()
"""
_COMPILE = """
def main():
    if TRAINS:
        for given in inputs:
            if isinstance(given, torch.Tensor) and given.is_floating_point():
                given.requires_grad_()
    with torch.set_grad_enabled(TRAINS):
        results = torch.compile(module, backend=BACKEND, dynamic=DYNAMIC or None)(*inputs)
        found = [r for r in pytree.tree_leaves(results) if isinstance(r, torch.Tensor) and r.requires_grad]
        if found:
            sum(r.sum() for r in found).backward()
    print(f"compiled and ran: {len(pytree.tree_leaves(results))} results")


if __name__ == "__main__":
    main()
"""
