"""What Triton made of the kernels that run: TTIR, TTGIR, LLIR and PTX, from memory or from its cache."""

from __future__ import annotations

import functools
import os
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from structdump.sources.event import Event
from structdump.sources.hooks.state import file_of, state_of
from structdump.sources.hub import HUB
from structdump.sources.session import Session

#: What a Triton compile holds in `asm`, as text (triton/compiler/compiler.py); cubins are binary.
ASSEMBLIES = ("ttir", "ttgir", "llir", "ptx", "amdgcn")


def install_triton() -> Callable[[], None]:
    """Wrap `CachingAutotuner.precompile`, to know the autotuners whose kernels will run.

    From torch/_inductor/runtime/triton_heuristics.py (torch 2.9 to 2.13): each Triton kernel of an
    output code is one, and its `compile_results` hold what Triton compiled.
    """
    owner = sys.modules["torch._inductor.runtime.triton_heuristics"].CachingAutotuner
    former = owner.precompile

    @functools.wraps(former)
    def precompile(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = former(self, *args, **kwargs)
        HUB.each("triton", functools.partial(_seen, self, kwargs.get("reload_kernel")))
        return result

    owner.precompile = precompile

    def undo() -> None:
        if owner.precompile is precompile:
            owner.precompile = former

    return undo


def _seen(autotuner: Any, reload_kernel: Any, session: Session) -> None:
    state = state_of(session)
    path = file_of(autotuner, reload_kernel)
    state.autotuners.append((weakref.ref(autotuner), path))
    if path is not None and os.path.isabs(path):  # noqa: PTH117 # a path from torch
        state.lies_in(path)


def collect_triton(session: Session) -> None:
    """Record TTIR, TTGIR, LLIR and PTX of each kernel that runs, for the configuration that it runs with.

    A kernel that torch launches statically holds its binary and no text; the text lies in Triton's cache.
    """
    state = state_of(session)
    autotuners, state.autotuners = state.autotuners, []
    done: set[tuple[Any, ...]] = set()
    for reference, path in reversed(autotuners):  # the last one made of a kernel is the one that runs
        autotuner = reference()
        if autotuner is None:
            continue
        name = getattr(autotuner.fn, "__name__", None)
        kernels = state.kernels_of(name, path)
        if not kernels:
            continue  # a candidate: it was benchmarked and does not run
        texts = _assembly(autotuner)
        for kernel in kernels:
            key = (kernel.name, kernel.compile_id, kernel.graph_id, kernel.direction)
            if texts and key not in done:
                done.add(key)
                for stage, text in texts.items():
                    session.record(
                        Event(
                            kind="ir",
                            name=kernel.name,
                            stage=stage,
                            compile_id=kernel.compile_id,
                            attempt=kernel.attempt,
                            graph_id=kernel.graph_id,
                            direction=kernel.direction,
                            subgraph=kernel.subgraph,
                            text=text,
                        )
                    )


def _assembly(autotuner: Any) -> dict[str, str]:
    """Return what Triton compiled for the launcher that tuning left, or for the first one if none ran."""
    launchers = getattr(autotuner, "launchers", None) or []
    launcher = launchers[0] if len(launchers) == 1 else None
    results = list(autotuner.compile_results or [])
    if launcher is not None:
        results = [r for r in results if r.config is launcher.config]  # none if descent found it
    held = (getattr(getattr(results[0], "kernel", None), "asm", None) if results else None) or {}
    texts = {stage: held[stage] for stage in ASSEMBLIES if isinstance(held.get(stage), str)}
    if texts:
        return texts
    folder = _folder(autotuner, launcher, results)
    if folder is None:
        return {}
    files = {path.suffix[1:]: path for path in sorted(folder.glob("*.*"))}
    return {s: files[s].read_text(encoding="utf-8", errors="replace") for s in ASSEMBLIES if s in files}


def _folder(autotuner: Any, launcher: Any, results: list[Any]) -> Path | None:
    """Return where Triton's cache keeps a kernel, as torch/_inductor/runtime/triton_heuristics.py has it."""
    heuristics = sys.modules["torch._inductor.runtime.triton_heuristics"]
    key = getattr(launcher, "cache_hash", None)
    if key is None:
        name = getattr(getattr(results[0], "kernel", None), "hash", None) if results else None
        key = None if name is None else heuristics.triton_hash_to_path_key(name)
    if key is None:
        return None
    cache: str = heuristics.triton_cache_dir(autotuner.triton_meta.get("device", 0))
    return Path(cache, key)
