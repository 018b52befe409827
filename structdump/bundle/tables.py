"""What a bundle holds as tables: their columns, with types, and their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from structdump.errors import UsageError

if TYPE_CHECKING:
    from structdump.bundle.loaded import ArtifactView, LoadedBundle

Row = dict[str, Any]
#: Types of columns. `json` holds what has no fixed shape, written as JSON in a file.
Type = Literal["text", "int", "float", "bool", "texts", "ints", "json"]


class Table(NamedTuple):
    """A table: its columns, the kinds of artifacts that its rows need (None: all), and what yields them."""

    columns: dict[str, Type]
    kinds: frozenset[str] | None
    rows: Callable[[LoadedBundle], Iterator[Row]]


def named(name: str) -> Table:
    """Return a table by name. Raises UsageError if there is none.

    Example::

        >>> list(named("breaks").columns)[:3]
        ['compile_id', 'function', 'reason']
    """
    try:
        return TABLES[name]
    except KeyError:
        raise UsageError(f"no table {name!r}; there are {', '.join(TABLES)}") from None


def _kernels(bundle: LoadedBundle) -> Iterator[Row]:
    for a in bundle.kernels(role=None):
        assert a.kernel is not None  # noqa: S101  # kernels() returns no others
        fields = a.kernel.model_dump(exclude={"best_config", "stack", "size_hints"})
        yield {
            "seq": a.seq,
            "compile_id": a.compile_id,
            "direction": a.direction,
            **fields,
            "best_config": a.best_config,
            **_content(a),
        }


def _artifacts(bundle: LoadedBundle) -> Iterator[Row]:
    for a in bundle.artifacts:
        yield {column: getattr(a, column) for column in _PLACE} | {
            "subgraph": a.subgraph and a.subgraph.name,
            "language": a.language,
            "nodes": a.nodes,
            "ops": a.ops,
            "changed": a.changed,
            **_content(a),
        }


def _compiles(bundle: LoadedBundle) -> Iterator[Row]:
    for c in bundle.compiles:
        yield {
            "id": c.id,
            "function": c.function and c.function.name,
            "file": c.function and c.function.file,
            "line": c.function and c.function.line,
            "status": c.status,
            "seconds": c.seconds,
            "phases": c.phases,
            "backend": c.backend,
            "guards": c.guards,
            "graph_breaks": len(c.graph_breaks),
            "recompile": c.recompile and c.recompile.reason,
            "error": c.error and c.error.type,
            "message": c.error and c.error.message,
            "fx_graph_cache": c.cache.fx_graph,
            "aot_autograd_cache": c.cache.aot_autograd,
            "ranks": c.ranks,
        }


def _configs(bundle: LoadedBundle) -> Iterator[Row]:
    for a in bundle.configs():
        value = (a.kernel and a.kernel.best_config) or (a.data if isinstance(a.data, dict) else None) or {}
        yield {
            "seq": a.seq,
            "compile_id": a.compile_id,
            "kernel": a.kernel.name if a.kernel else a.name,
            "backend": a.kernel and a.kernel.backend,
            "role": a.kernel and a.kernel.role,
            "heuristic": a.kernel and a.kernel.heuristic,
            "num_warps": _number(value.get("num_warps")),
            "num_stages": _number(value.get("num_stages")),
            "config": value,
            "ranks": a.ranks,
        }


def _passes(bundle: LoadedBundle) -> Iterator[Row]:
    for a in bundle.passes():
        yield {
            "seq": a.seq,
            "compile_id": a.compile_id,
            "stage": a.stage,
            "name": a.name,
            "phase": a.phase,
            "direction": a.direction,
            "changed": a.changed,
            "nodes": a.nodes,
            **_content(a),
        }


def _breaks(bundle: LoadedBundle) -> Iterator[Row]:
    for c in bundle.compiles:
        for found in c.graph_breaks:
            frame = found.stack[-1] if found.stack else None
            yield {
                "compile_id": c.id,
                "function": c.function and c.function.name,
                "reason": found.reason,
                "file": frame and frame.file,
                "line": frame and frame.line,
                "name": frame and frame.name,
                "code": frame and frame.code,
                "resumed_by": found.resumed_by,
                "ranks": c.ranks,
            }


def _content(a: ArtifactView) -> Row:
    return {
        "bytes": a.bytes,
        "digest": a.digest,
        "omitted": a.omitted and a.omitted.reason,
        "ranks": a.ranks,
    }


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


_CONTENT: dict[str, Type] = {"bytes": "int", "digest": "text", "omitted": "text", "ranks": "ints"}
_PLACE: dict[str, Type] = {
    "seq": "int", "kind": "text", "stage": "text", "name": "text", "phase": "text", "compile_id": "text",
    "graph_id": "text", "direction": "text",
}  # fmt: skip

TABLES: dict[str, Table] = {
    "kernels": Table(
        {
            "seq": "int", "compile_id": "text", "direction": "text", "name": "text", "backend": "text",
            "role": "text", "ops": "texts", "nodes": "texts", "fragment": "text", "heuristic": "text",
            "loads": "int", "stores": "int", "reductions": "int", "grid": "text", "calls": "int",
            "performance": "text", "best_config": "json", **_CONTENT,
        },
        frozenset({"kernel", "candidate", "best_config"}),
        _kernels,
    ),
    "artifacts": Table(
        {
            **_PLACE, "subgraph": "text", "language": "text", "nodes": "int", "ops": "json",
            "changed": "bool", **_CONTENT,
        },
        None,
        _artifacts,
    ),
    "compiles": Table(
        {
            "id": "text", "function": "text", "file": "text", "line": "int", "status": "text",
            "seconds": "float", "phases": "json", "backend": "text", "guards": "int", "graph_breaks": "int",
            "recompile": "text", "error": "text", "message": "text", "fx_graph_cache": "text",
            "aot_autograd_cache": "text", "ranks": "ints",
        },
        frozenset(),
        _compiles,
    ),
    "configs": Table(
        {
            "seq": "int", "compile_id": "text", "kernel": "text", "backend": "text", "role": "text",
            "heuristic": "text", "num_warps": "int", "num_stages": "int", "config": "json", "ranks": "ints",
        },
        frozenset({"best_config"}),
        _configs,
    ),
    "passes": Table(
        {
            "seq": "int", "compile_id": "text", "stage": "text", "name": "text", "phase": "text",
            "direction": "text", "changed": "bool", "nodes": "int", **_CONTENT,
        },
        frozenset({"pass"}),
        _passes,
    ),
    "breaks": Table(
        {
            "compile_id": "text", "function": "text", "reason": "text", "file": "text", "line": "int",
            "name": "text", "code": "text", "resumed_by": "text", "ranks": "ints",
        },
        frozenset(),
        _breaks,
    ),
}  # fmt: skip
