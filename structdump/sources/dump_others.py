"""The files of a dump directory that are neither graphs nor modules: source, bytecode, vLLM's own."""

from __future__ import annotations

from pathlib import PurePath
from typing import NamedTuple

from structdump.bundle.model import Kind
from structdump.bundle.names import DumpName
from structdump.sources.dump_files import DumpFile
from structdump.sources.event import Event


class _As(NamedTuple):
    """What a file is recorded as. `without` says why its text is not to be read."""

    kind: Kind
    stage: str
    name: str
    language: str = "python"
    without: str | None = None


_VLLM: dict[str, _As] = {
    "transformed_code.py": _As("source", "decompiled", "decompiled transformed_code"),
    "computation_graph.py": _As("graph", "split", "computation_graph"),
    "vllm_compile_cache.py": _As("cache", "vllm_compile_cache", "vllm_compile_cache"),
    "cache_key_factors.json": _As("cache", "cache_key_factors", "cache_key_factors", "json"),
}


def other_event(file: DumpFile) -> Event:
    """Return the event of one file; a file of another program is listed without its text.

    Example::

        >>> from pathlib import Path
        >>> other_event(DumpFile("notes.txt", Path("notes.txt"))).unavailable
        'not a dump file'
    """
    what = _what(file.parsed, file.name)
    return Event(
        kind=what.kind,
        name=what.name,
        stage=what.stage,
        language=what.language,
        text=file.read,
        files=[file.name],
        unavailable=file.problem or what.without,
        size=file.size,
    )


def _what(parsed: DumpName | None, name: str) -> _As:
    if parsed is None:
        return _As("event", "other_file", name, "text", "not a dump file")
    match parsed.kind:
        case "full_code":
            return _As("source", "full_code", f"full_code_for_{parsed.function}")
        case "transformed_code":
            return _As("source", "decompiled", f"decompiled {parsed.function}")
        case "bytecode":  # dills are pickles: loading one runs what is in it
            stage = (parsed.suffix or "").partition("_")[0]
            return _As(
                "bytecode", stage, f"{stage} {parsed.function}", "binary", "pickled code is never loaded"
            )
        case "fx_graph_code":
            return _As("graph", "fx_graph_code", f"fx_graph_code_{parsed.name}")
        case "patterns":
            return _As("event", "patterns", f"patterns {parsed.name}")
        case "vllm":
            return _VLLM[PurePath(parsed.name).name]
        case _:
            return _As("event", "lock", name, "text", "lock file")
