"""Tuning: best configs as they are saved and read, and the choices of GEMM and convolution templates."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

from structdump.bundle.model import Autotune, Choice, Kernel
from structdump.sources.configs import split_config
from structdump.sources.event import Event
from structdump.sources.hooks.context import compile_context, graph_context
from structdump.sources.hooks.state import state_of
from structdump.sources.hub import HUB
from structdump.sources.session import Session


def install_configs() -> Callable[[], None]:
    """Wrap `AutotuneCache.save` and `_read`; return how to undo that.

    From torch/_inductor/runtime/autotune_cache.py (torch 2.9 to 2.13): `save` runs at a kernel's
    first launch, after the compile; `_read` when a kernel is loaded and its file is there already.
    """
    cache = sys.modules["torch._inductor.runtime.autotune_cache"].AutotuneCache
    save, read = cache.save, cache._read

    @functools.wraps(save)
    def saved(self: Any, config: Any, time_taken_ns: int, *args: Any, **kwargs: Any) -> Any:
        result = save(self, config, time_taken_ns, *args, **kwargs)
        caller = sys._getframe(1)
        HUB.each("configs", functools.partial(_saved, self, config, time_taken_ns, (args, kwargs), caller))
        return result

    @functools.wraps(read)
    def was_read(self: Any) -> Any:
        result = read(self)
        if isinstance(result, dict):
            caller = sys._getframe(1)
            HUB.each("configs", functools.partial(_config, result, "read", caller))
        return result

    cache.save, cache._read = saved, was_read

    def undo() -> None:
        if cache.save is saved:
            cache.save, cache._read = save, read

    return undo


def _saved(
    cache: Any,
    config: Any,
    nanoseconds: int,
    rest: tuple[Any, Any],
    caller: types.FrameType,
    session: Session,
) -> None:
    args, kwargs = rest
    names = ("found_by_coordesc", "triton_cache_hash")
    facts = dict(zip(names, args, strict=False)) | {k: v for k, v in kwargs.items() if k in names}
    data = {
        **config.kwargs,
        "num_warps": config.num_warps,
        "num_stages": config.num_stages,
        "configs_hash": cache.configs_hash,
        "found_by_coordesc": False,
        "time_taken_ms": nanoseconds // 1_000_000,
        **facts,
    }
    _config(data, "saved", caller, session)


def _config(data: Mapping[str, Any], how: str, caller: types.FrameType, session: Session) -> None:
    name, path = _kernel_of(caller)
    record_config(session, name, path, data, how)


def record_config(
    session: Session, name: str | None, path: str | None, data: Mapping[str, Any], how: str
) -> None:
    """Record one best config on the kernel of this name or file; the same one again is no news."""
    state = state_of(session)
    kernel = state.paths.get(path or "") or state.kernels.get(name or "")
    label = kernel.name if kernel else name or os.path.basename(path or "unknown").removesuffix(".py")  # noqa: PTH119 # a path from torch
    key = (label, kernel.compile_id if kernel else None, str(sorted(data.items(), key=str)))
    if key in state.configs:
        return
    state.configs.add(key)
    parts = split_config(data)
    session.record(
        Event(
            kind="best_config",
            name=label,
            stage=how,
            compile_id=kernel.compile_id if kernel else compile_context()[0],
            graph_id=kernel.graph_id if kernel else None,
            direction=kernel.direction if kernel else None,
            subgraph=kernel.subgraph if kernel else None,
            language="json",
            data=parts.as_dict(),
            kernel=Kernel(name=label, backend="triton", best_config=parts.config),
        )
    )


def _kernel_of(frame: types.FrameType | None) -> tuple[str | None, str | None]:
    """Find the kernel that a cache call is about: the autotuner, or the loader, a few frames up."""
    for _ in range(6):
        if frame is None:
            break
        owner = frame.f_locals.get("self")
        function = getattr(owner, "fn", None)
        if function is not None and hasattr(owner, "compile_results"):
            return getattr(function, "__name__", None), getattr(owner, "filename", None)
        meta = frame.f_locals.get("inductor_meta")
        if isinstance(meta, dict) and "kernel_name" in meta:
            file = frame.f_locals.get("filename")
            return str(meta["kernel_name"]), file if isinstance(file, str) else None
        frame = frame.f_back
    return None, None


def install_choices() -> Callable[[], None]:
    """Listen as `add_feedback_saver` does (torch/_inductor/select_algorithm.py); return how to undo that.

    That function makes the selector if there is none yet, which asks for the GPU and so starts it. So
    the saver is added to the selector that is there, and to those that torch makes later.
    """
    module = sys.modules["torch._inductor.select_algorithm"]
    selector = module.AlgorithmSelectorCache
    made = selector.__init__

    def make(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        with contextlib.suppress(Exception):
            self.add_feedback_saver(_feedback)

    selector.__init__ = make
    if module._ALGORITHM_SELECTOR_CACHE is not None:
        module._ALGORITHM_SELECTOR_CACHE.add_feedback_saver(_feedback)

    def undo() -> None:
        if selector.__init__ is make:
            selector.__init__ = made
        savers = getattr(module._ALGORITHM_SELECTOR_CACHE, "feedback_saver_fns", [])
        if _feedback in savers:
            savers.remove(_feedback)

    return undo


def _feedback(timings: Mapping[Any, float], name: str, inputs: Any, *_: Any) -> None:
    HUB.each("choices", functools.partial(_choices, timings, name, inputs))


def _choices(timings: Mapping[Any, float], name: str, inputs: Any, session: Session) -> None:
    if not timings:
        return
    compile_id, attempt = compile_context()
    graph_id, direction = graph_context()
    # do_bench gives milliseconds (torch/_inductor/runtime/benchmarking.py).
    ranked = sorted(timings.items(), key=lambda item: item[1])
    choices = [Choice(name=c.name, seconds=_seconds(t), config=_facts(c)) for c, t in ranked]
    session.record(
        Event(
            kind="autotune",
            name=name,
            stage="choices",
            compile_id=compile_id,
            attempt=attempt,
            graph_id=graph_id,
            direction=direction,
            language="json",
            autotune=Autotune(
                operation=name,
                shapes=[_layout(node) for node in inputs],
                winner=choices[0].name,
                choices=choices,
            ),
        )
    )


def _seconds(milliseconds: float) -> float | None:
    return milliseconds / 1000 if milliseconds < float("inf") else None


def _facts(choice: Any) -> dict[str, Any]:
    try:
        found: dict[str, Any] = choice.info_dict()
    except Exception:  # noqa: BLE001 # a template may not describe itself; its time still counts
        return {}
    return {str(k): v if isinstance(v, (int, float, str, bool)) else str(v) for k, v in found.items()}


def _layout(node: Any) -> str:
    """Return dtype, sizes, strides and device of an input, in the notation of printed graphs."""
    try:
        dtype = str(node.get_dtype()).removeprefix("torch.")
        return f"{dtype}{list(node.get_size())}{list(node.get_stride())}{node.get_device()}"
    except Exception:  # noqa: BLE001 # some inputs have no layout yet
        return type(node).__name__
