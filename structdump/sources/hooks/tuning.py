"""Tuning: best configs as they are saved and read, and the choices of GEMM and convolution templates."""

from __future__ import annotations

import contextlib
import functools
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

from structdump.bundle.model import Autotune, Choice, Kernel
from structdump.sources.configs import best_config_keys, parse_best_config, split_config
from structdump.sources.event import Event
from structdump.sources.hooks.context import compile_context, graph_context
from structdump.sources.hooks.state import file_of, state_of, stem
from structdump.sources.hub import HUB
from structdump.sources.session import Session


def install_configs() -> Callable[[], None]:
    """Wrap `AutotuneCache.save` and `_read`; return how to undo that.

    From torch/_inductor/runtime/autotune_cache.py (torch 2.9 to 2.13): `save` runs at a kernel's
    first launch, after the compile; `_read` when a kernel is loaded and its file is there already, in
    this process or, unseen, in one that compiles for it.
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
            HUB.each("configs", functools.partial(_config, dict(result), "read", caller))
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
    data = _stored(cache.local_cache[1]) if cache.local_cache else None
    if data is None:  # kept elsewhere, or nowhere: what `save` puts together
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


def _stored(path: str) -> dict[str, Any] | None:
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 # a path from torch
            found = parse_best_config(file.read())
    except (OSError, UnicodeError):
        return None
    return found.as_dict() if found else None


def _config(data: dict[str, Any], how: str, caller: types.FrameType, session: Session) -> None:
    name, path = _kernel_of(caller)
    state = state_of(session)
    key = stem(path) if path else name or "unknown"
    state.tuned.setdefault(key, (name, []))[1].append((how, data))
    for kernel in state.kernels_of(name, path):
        _record(session, kernel, kernel.name, data, how)


def collect_configs(session: Session) -> None:
    """Record what tuning chose for each kernel that runs, as far as no hook has seen it.

    A process that compiles for this one reads files unseen, and a kernel that is shared with an
    earlier graph is not tuned again. What was tuned and runs in no output code is recorded as well.
    """
    state = state_of(session)
    for key, kernels in state.paths.items():
        if kernels[0].stage == "triton" and key not in state.tuned:
            found = [data for path in _files(key, state.folders[key]) if (data := _stored(path))]
            if found:
                state.tuned[key] = (None, [("file", found[0])])
    for key, (name, tuned) in state.tuned.items():
        kernels = state.paths.get(key) or state.kernels_of(name, None)
        for how, data in tuned:
            for kernel in kernels:
                _record(session, kernel, kernel.name, data, how)
            if not kernels:
                _record(session, None, name or key, data, how)


def _files(key: str, folders: set[str]) -> list[str]:
    torch_key = sys.modules["torch._inductor.codecache"].torch_key()
    tag = sys.modules["torch.compiler.config"].cache_key_tag
    stems = best_config_keys(f"{key}.py", torch_key, tag)
    return [f"{folder}/{name}.best_config" for folder in sorted(folders) for name in stems]


def _record(session: Session, kernel: Event | None, name: str, data: Mapping[str, Any], how: str) -> None:
    """Record one best config; the same one again is no news."""
    state = state_of(session)
    place = (kernel.compile_id, kernel.graph_id, kernel.direction) if kernel else None
    key = (name, place, str(sorted(data.items(), key=str)))
    if key in state.configs:
        return
    state.configs.add(key)
    parts = split_config(data)
    session.record(
        Event(
            kind="best_config",
            name=name,
            stage=how,
            compile_id=kernel.compile_id if kernel else None,
            attempt=kernel.attempt if kernel else None,
            graph_id=kernel.graph_id if kernel else None,
            direction=kernel.direction if kernel else None,
            subgraph=kernel.subgraph if kernel else None,
            language="json",
            data=parts.as_dict(),
            kernel=Kernel(
                name=name,
                backend="triton",
                role="used" if kernel else "candidate",
                best_config=parts.config,
            ),
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
            return getattr(function, "__name__", None), file_of(owner)
        meta = frame.f_locals.get("inductor_meta")
        file = frame.f_locals.get("filename")
        if isinstance(meta, dict) and isinstance(file, str):
            name = meta.get("kernel_name")
            return name if isinstance(name, str) else None, file
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
