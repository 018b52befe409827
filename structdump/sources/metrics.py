"""Reads torch's `CompilationMetrics` (torch/_dynamo/utils.py, torch 2.9 to 2.13). Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from structdump.bundle.model import Failure, Function, SourceFrame

CONFIGS = ("dynamo_config", "inductor_config", "compiler_config", "functorch_config")
"""Fields that hold a whole configuration as JSON text: most of the bytes of a record."""

CLOCKS = ("start_time", "start_time_us", "end_time_us")
"""Fields that say when, not how long: a bundle has clocks in `run` alone."""

_ELSEWHERE = frozenset(
    {
        *CONFIGS,
        *CLOCKS,
        "compile_id",
        "frame_key",
        "co_name",
        "co_filename",
        "co_firstlineno",
        "guard_count",
        "fail_type",
        "fail_reason",
        "fail_user_frame_filename",
        "fail_user_frame_lineno",
        "exception_stack_trace",
        "stack_trace",
        "recompile_reason",
        "duration_us",
        "pytorch_version",
        "python_version",
        "triton_version",
        "cuda_version",
        "log_format_version",
        "is_runtime",
        "is_forward",
        "inductor_provenance",
        "feature_usage",
        "graph_node_shapes",
    }
)
_LEGACY_PHASES = {
    "entire_frame_compile_time_s": "dynamo",
    "backend_compile_time_s": "aot_autograd",
    "inductor_compile_time_s": "inductor",
    "code_gen_time_s": "inductor_code_gen",
}
_TIME_SUFFIXES = ("_cumulative_compile_time_us", "_time_us")


@dataclass(slots=True)
class Metrics:
    """What the metrics records of one compile say, in the bundle's own terms; times in seconds."""

    function: Function | None = None
    seconds: float | None = None
    phases: dict[str, float] = field(default_factory=dict)
    guards: int | None = None
    failure: Failure | None = None
    suppressed: bool = False
    backward_failed: bool = False
    guarded: bool | None = None
    restarts: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)


def read_metrics(into: Metrics, record: Mapping[str, Any], backward: bool = False) -> None:
    """Add one record to what is known; fields of the wrong type are left out.

    `backward` says that the record is of the backward's own compile; its phases get a prefix.
    A record of the running program (`is_runtime`) adds phases alone.
    """
    prefix = "backward_" if backward else ""
    for key, value in record.items():
        if not isinstance(key, str) or key in _ELSEWHERE:
            continue
        phase = _phase(key)
        if phase is not None:
            seconds = _number(value, 1e-6)
            if seconds:
                into.phases[phase if phase.startswith("backward") else prefix + phase] = seconds
        elif key in _LEGACY_PHASES:
            seconds = _number(value)
            if seconds and prefix + _LEGACY_PHASES[key] not in into.phases:
                into.phases[prefix + _LEGACY_PHASES[key]] = seconds
        elif value and not key.endswith(("_s", "_ms")) and _small(value):
            into.values[prefix + key] = value
    if not backward and record.get("is_runtime") is not True:
        _read_frame(into, record)
    failure = _failure(record)
    if failure is not None:
        into.failure = into.failure or failure
        into.backward_failed = into.backward_failed or backward


def span(record: Mapping[str, Any]) -> float | None:
    """Return the seconds between start and end of what a record measures, if it states both."""
    start, end = _number(record.get("start_time_us"), 1e-6), _number(record.get("end_time_us"), 1e-6)
    return None if start is None or end is None or end < start else round(end - start, 6)


def _read_frame(into: Metrics, record: Mapping[str, Any]) -> None:
    name = record.get("co_name")
    if isinstance(name, str):
        into.function = Function(
            name=name, file=_string(record.get("co_filename")), line=_int(record.get("co_firstlineno"))
        )
    seconds = _number(record.get("entire_frame_compile_time_s"))
    into.seconds = seconds if seconds is not None else span(record)
    into.guards = _int(record.get("guard_count"))
    into.guarded = record["has_guarded_code"] if isinstance(record.get("has_guarded_code"), bool) else None
    into.suppressed = record.get("config_suppress_errors") is True
    restarts = record.get("restart_reasons")
    into.restarts = [r for r in restarts if isinstance(r, str)] if isinstance(restarts, list) else []


def _failure(record: Mapping[str, Any]) -> Failure | None:
    fail_type = _string(record.get("fail_type"))
    if fail_type is None:
        return None
    trace = record.get("exception_stack_trace")
    lines = [t for t in trace if isinstance(t, str)] if isinstance(trace, list) else []
    return Failure(
        type=fail_type,
        message=_string(record.get("fail_reason")) or "",
        traceback="\n".join(lines) or None,
        user_frame=_user_frame(record),
    )


def _user_frame(record: Mapping[str, Any]) -> SourceFrame | None:
    file, line = _string(record.get("fail_user_frame_filename")), _int(record.get("fail_user_frame_lineno"))
    return SourceFrame(file=file or "", line=line) if file or line else None


def _phase(key: str) -> str | None:
    return next((key[: -len(s)] for s in _TIME_SUFFIXES if key.endswith(s) and len(key) > len(s)), None)


def _number(value: object, unit: float = 1.0) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > 1e18:
        return None
    return round(value * unit, 6) if math.isfinite(value) else None


def _int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53 else None


def _string(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _small(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= 4_000
    if isinstance(value, list):
        return len(value) <= 1_000 and all(isinstance(v, (str, int, float)) and _small(v) for v in value)
    return isinstance(value, bool) or (isinstance(value, (int, float)) and _number(value) is not None)
