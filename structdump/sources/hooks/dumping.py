"""depyf.prepare_debug as vLLM enters it: the bundle goes to the debug dump path, raw files on request."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from structdump.sources import live
from structdump.sources.hooks.frameworks import collect_vllm, identify
from structdump.sources.hub import HUB
from structdump.sources.spool import warn

Context = Callable[..., AbstractContextManager[Any]]


def divert() -> None:
    """Replace `depyf.prepare_debug` in this process, once."""
    module: Any = sys.modules["depyf.explain.enable_debugging"]
    theirs = module.prepare_debug
    if getattr(theirs, "__structdump__", False):
        return
    ours = _diverted(theirs)
    module.prepare_debug = ours
    package = sys.modules["depyf"]
    if getattr(package, "prepare_debug", None) is theirs:  # else depyf is about to take ours
        vars(package)["prepare_debug"] = ours


def _diverted(theirs: Context) -> Context:
    @functools.wraps(theirs)
    @contextlib.contextmanager
    def prepare_debug(dump_src_dir: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
        process = live.PROCESSES[0] if live.PROCESSES else None
        raw = process is None or process.config.keep_raw or not isinstance(dump_src_dir, str)
        depyf: AbstractContextManager[Any] = (
            theirs(dump_src_dir, *args, **kwargs) if raw else contextlib.nullcontext()
        )
        if process is not None and isinstance(dump_src_dir, str):
            _quietly(_enter, process, dump_src_dir)
        try:
            with depyf as value:
                yield value
        finally:
            if process is not None and isinstance(dump_src_dir, str):
                _quietly(_leave, process, dump_src_dir)

    prepare_debug.__structdump__ = True  # type: ignore[attr-defined] # how `divert` knows its own work
    return prepare_debug


def _enter(process: live.Process, directory: str) -> None:
    process.dump_to(directory)
    HUB.each("vllm", lambda s: identify(s, None, walk=True) if s is process.session else None)


def _leave(process: live.Process, directory: str) -> None:
    HUB.each("vllm", lambda s: collect_vllm(s, directory) if s is process.session else None)
    live.checkpoint(process.session)


def _quietly(step: Callable[..., None], *args: Any) -> None:
    try:
        step(*args)
    except Exception as error:  # noqa: BLE001 # the compile that vLLM is about to begin must not fail by it
        warn(f"debug dump path: {type(error).__name__}: {error}")
