"""vLLM, as far as a capture wants to know it: whose compile this is, and the files that it writes itself."""

from __future__ import annotations

import dataclasses
import enum
import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from structdump.bundle.model import Function
from structdump.bundle.names import parse_file_name, parse_rank
from structdump.sources.dump_files import DumpFile
from structdump.sources.dump_others import other_event
from structdump.sources.event import Event
from structdump.sources.hooks.state import state_of
from structdump.sources.session import Session

#: Fields of a CompilationConfig that are its memory: layers by name, traced sources, and clocks.
_NOT_SETTINGS = frozenset(
    {
        "static_forward_context",
        "static_all_moe_layers",
        "traced_files",
        "compilation_time",
        "encoder_compilation_time",
    }
)
FACTORS = "cache_key_factors.json"
#: Attributes of a VllmConfig's parts (vllm/config, vLLM 0.32) that tell one deployment from another.
FACTS = {
    "model_config": ("model", "revision", "dtype", "quantization", "max_model_len", "enforce_eager"),
    "parallel_config": ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"),
}


def identify(session: Session, compile_id: str | None, *, walk: bool) -> None:
    """Note whose compile this is: model, ranks, parallel sizes, compilation config; once.

    vLLM keeps the current config while a model is built and compiled (vllm/config/vllm.py). With `walk`
    the callers are searched for it as well: vLLM's own functions hold it as `vllm_config`. A compile that
    vLLM starts outside of Dynamo's frame, ahead of time, gets the function's name from there.
    """
    module = sys.modules.get("vllm.config")
    state = state_of(session)
    if module is None or (state.vllm is not None and not walk):
        return
    callers = list(_callers()) if walk else []
    if compile_id is not None:
        _name_function(session, compile_id, callers)
    if state.vllm is not None:
        return
    current = getattr(module, "get_current_vllm_config_or_none", lambda: None)()
    state.vllm = current or next((c for c in map(_config_of, callers) if c is not None), None)
    if state.vllm is None:
        return
    facts = facts_of(state.vllm)
    book = session.book.framework
    book["vllm"] = {**facts, **book.get("vllm", {})}
    if session.run.rank is None:
        session.run.rank = facts.get("rank")
    if facts.get("dp_rank") is not None:
        session.run.launcher["dp_rank"] = str(facts["dp_rank"])


def _callers() -> Iterator[dict[str, Any]]:
    """Yield the local variables of vLLM's own functions that called, the innermost first."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith("vllm."):
            yield frame.f_locals
        frame = frame.f_back


def _config_of(local: dict[str, Any]) -> Any:
    for held in (local.get("vllm_config"), getattr(local.get("self"), "vllm_config", None)):
        if type(held).__name__ == "VllmConfig":
            return held
    return None


def _name_function(session: Session, compile_id: str, callers: list[dict[str, Any]]) -> None:
    for local in callers:
        original = getattr(local.get("self"), "original_code_object", None)  # vllm/compilation/wrapper.py
        code = original() if callable(original) else None
        if isinstance(code, types.CodeType):
            function = Function(name=code.co_name, file=code.co_filename, line=code.co_firstlineno)
            session.book.started(compile_id, function=function)
            return


def facts_of(config: Any) -> dict[str, Any]:
    """Return what a VllmConfig says of model, ranks and compilation, as plain data."""
    parallel = getattr(config, "parallel_config", None)
    dp_rank = getattr(parallel, "data_parallel_index", getattr(parallel, "data_parallel_rank", None))
    found: dict[str, Any] = {
        "version": getattr(sys.modules.get("vllm"), "__version__", None),
        "rank": _number(getattr(parallel, "rank", None)),
        "dp_rank": _number(dp_rank),
    }
    for part, names in FACTS.items():
        for name in names:
            value = getattr(getattr(config, part, None), name, None)
            if value is not None:
                found[name] = value if isinstance(value, (bool, int, float)) else str(value)
    compilation = getattr(config, "compilation_config", None)
    if compilation is not None:
        found["compilation_config"] = _plain(compilation)
    return {key: value for key, value in found.items() if value is not None}


def collect_vllm(session: Session, directory: str | None = None) -> None:
    """Record the files that vLLM wrote beside its caches and, if given, into its debug dump `directory`.

    Those of an earlier start are left out: a directory may be used again.
    """
    state = state_of(session)
    for path in [*_factors(state.vllm), *_own_files(directory, state.since)]:
        if path not in state.files and path.is_file():
            state.files.add(path)
            parsed = parse_file_name(path.name)
            event = other_event(DumpFile(path.name, path, path.stat().st_size, parsed=parsed))
            session.record(_factors_event(session, path, event) if path.name == FACTORS else event)


def _factors_event(session: Session, path: Path, event: Event) -> Event:
    # Variables whose names say secret lose their values, for which text alone gives no sure sign.
    def text() -> str:
        facts = json.loads(path.read_bytes())
        known = facts.get("env", {})
        said = {name: value for name, value in known.items() if isinstance(value, str)}
        facts["env"] = {**known, **session.privacy.environment({"variables": said})["variables"]}
        return json.dumps(facts, indent=2)

    event.text = text
    return event


def _factors(config: Any) -> Iterator[Path]:
    """Yield the file of cache key factors of each part of the model (vllm/compilation/backends.py)."""
    local = getattr(getattr(config, "compilation_config", None), "local_cache_dir", None)
    if isinstance(local, str) and local:
        folder = Path(local)
        yield from sorted(folder.parent.glob(f"*/{FACTORS}")) if parse_rank(folder.parent.name) else ()


def _own_files(directory: str | None, since: float) -> Iterator[Path]:
    for path in sorted(Path(directory).glob("*.py")) if directory else ():
        parsed = parse_file_name(path.name)
        if parsed is not None and parsed.kind in ("patterns", "vllm") and path.stat().st_mtime >= since:
            yield path


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _plain(value: Any) -> Any:
    """Return settings as plain data; what is none (modules, passes, layers) is left out, as `...`."""
    if isinstance(value, enum.Enum):  # first: some are numbers as well
        return value.name
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        items = [_plain(item) for item in value]
        return items if ... not in items else ...
    if dataclasses.is_dataclass(value):
        value = {f.name: getattr(value, f.name, ...) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        plain = {str(k): _plain(v) for k, v in value.items()}
        return {k: v for k, v in sorted(plain.items()) if v is not ... and k not in _NOT_SETTINGS}
    return ...
