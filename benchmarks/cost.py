"""What a capture costs: the same compile plain, captured at each level, and dumped by depyf.

    python benchmarks/cost.py [--layers 8 32] [--rounds 3] [--modes plain low medium full depyf]

Each run is a process of its own with Inductor caches of its own; the modes take turns, so that a
machine that slows down slows them all. The time of a compile is that of the first forward and
backward call. Printed are the medians. `hook` is the time spent in structdump's hooks, journal and
environment included (`run.hook_seconds` of the bundle), and for depyf that in its two printing hooks
alone, so at least that. Shares are of the plain compile time. `end` is the time from the last
compile to the bundle on disk. Below, the hook time of level full by what it records.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path
from typing import Any

MODES = ("plain", "low", "medium", "full", "depyf")


def model(layers: int) -> Any:
    """A small transformer: what counts is the number of its nodes, not its width."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(64), nn.LayerNorm(64)
            self.qkv, self.out = nn.Linear(64, 192), nn.Linear(64, 64)
            self.up, self.down = nn.Linear(64, 256), nn.Linear(256, 64)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            q, k, v = (t.unflatten(-1, (4, 16)).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
            a = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(a.transpose(1, 2).flatten(-2))
            return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))

    return nn.Sequential(*(Block() for _ in range(layers)))


def time_depyf() -> list[float]:
    """Put clocks around depyf's printing hooks; return the list that the seconds go to."""
    import builtins

    explain = importlib.import_module("depyf.explain.enable_debugging")
    spent: list[float] = []

    def clocked(function: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                spent.append(time.perf_counter() - began)

        return call

    explain.DebuggableHook.__call__ = clocked(explain.DebuggableHook.__call__)
    # depyf moves the code of its printer into torch's function: it runs with torch's globals, and what
    # stands in for it here may have no free variables.
    namespace = vars(importlib.import_module("torch._dynamo.utils"))
    original = explain.patched_lazy_format_graph_code
    moved = types.FunctionType(original.__code__, namespace, None, original.__defaults__)
    builtins.clocked_printer = clocked(moved)  # type: ignore[attr-defined]

    def printer(name: Any, gm: Any, maybe_id: Any = None, **kwargs: Any) -> Any:
        import builtins

        return builtins.clocked_printer(name, gm, maybe_id, **kwargs)

    explain.patched_lazy_format_graph_code = printer
    return spent


def time_hooks() -> dict[str, float]:
    """Put a clock around each of structdump's hooks; return the table that the seconds go to."""
    from structdump.sources.hub import HUB

    spent: dict[str, float] = {}
    each = HUB.each

    def clocked(hook: str, action: Any) -> None:
        began = time.perf_counter()
        try:
            each(hook, action)
        finally:
            seen = action.args[0] if hook == "trace_structured" else None
            row = f"hook: {hook}" if seen is None else f"hook: trace, {'bulk' if seen.bulk else 'all else'}"
            spent[row] = spent.get(row, 0.0) + time.perf_counter() - began

    HUB.each = clocked  # type: ignore[method-assign]
    return spent


def measure(mode: str, layers: int) -> dict[str, float]:
    """Compile once in this process and return what it took."""
    import torch
    import torch._dynamo
    import torch._inductor.compile_fx  # importing it is not compiling

    torch.manual_seed(0)
    step = torch.compile(model(layers))
    x = torch.randn(2, 32, 64)

    def compute() -> float:
        began = time.perf_counter()
        step(x).square().mean().backward()
        return time.perf_counter() - began

    if mode == "plain":
        return {"compile": compute()}
    if mode == "depyf":
        import warnings

        warnings.simplefilter("ignore")
        spent = time_depyf()
        depyf = importlib.import_module("depyf")
        with depyf.prepare_debug("depyf_dump"):
            seconds = compute()
            ended = time.perf_counter()
        files = [p for p in Path("depyf_dump").rglob("*") if p.is_file()]
        size = sum(p.stat().st_size for p in files)
        return {
            "compile": seconds, "hook": sum(spent), "end": time.perf_counter() - ended,
            "seen": len(files), "kept": len(files), "raw": size, "file": size,
        }  # fmt: skip
    import structdump

    by_hook = time_hooks() if mode == "full" else {}
    with structdump.capture("run.json.zst", level=mode) as capture:
        seconds = compute()
        ended = time.perf_counter()
    end = time.perf_counter() - ended
    assert capture.result is not None
    bundle = structdump.load("run.json.zst")
    raw = sum(len(text.encode()) for text in bundle.texts.values())
    return {
        "compile": seconds, "hook": bundle.run.hook_seconds or 0.0, "end": end,
        "seen": bundle.completeness.seen, "kept": bundle.completeness.kept,
        "raw": raw, "file": capture.result.bytes, **by_hook,
    }  # fmt: skip


def run(mode: str, layers: int) -> dict[str, float]:
    """Measure in a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        clean = {k: v for k, v in os.environ.items() if not k.startswith("STRUCTDUMP_")}
        environment = {**clean, "TORCHINDUCTOR_CACHE_DIR": str(Path(folder) / "cache")}
        command = [sys.executable, str(Path(__file__).resolve()), "--child", mode, str(layers)]
        done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, check=True)
        found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return found


def table(layers: int, found: dict[str, list[dict[str, float]]]) -> None:
    """Print one table of medians."""
    medians = {
        m: {k: statistics.median(r.get(k, 0.0) for r in rows) for k in rows[0]} for m, rows in found.items()
    }
    plain = medians.get("plain", {}).get("compile")
    rounds = len(next(iter(found.values())))
    print(f"\n{layers} layers, forward and backward, medians of {rounds}")
    head = ("mode", "compile s", "ratio", "hook s", "hook %", "end s", "kept/seen", "raw KiB", "file KiB")
    print(("{:>7} {:>9} {:>6} {:>7} {:>7} {:>6} {:>11} {:>8} {:>8}").format(*head))
    for mode, row in medians.items():
        share = f"{row['compile'] / plain:.3f}" if plain else ""
        line = f"{mode:>7} {row['compile']:9.2f} {share:>6}"
        if "hook" in row:
            percent = f"{100 * row['hook'] / (plain or row['compile']):.2f}"
            counts = f"{row['kept']:.0f}/{row['seen']:.0f}"
            line += f" {row['hook']:7.3f} {percent:>7} {row['end']:6.2f} {counts:>11}"
            line += f" {row['raw'] / 1024:8.0f} {row['file'] / 1024:8.1f}"
        print(line, flush=True)
    by_hook = {k: v for k, v in medians.get("full", {}).items() if k.startswith("hook: ")}
    for name, seconds in sorted(by_hook.items(), key=lambda item: -item[1]):
        share = f"{100 * seconds / plain:.2f} %" if plain else ""
        print(f"{name:>32} {seconds:7.3f} s {share:>8}", flush=True)


def main() -> None:
    """Take turns, and print a table per size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--layers", type=int, nargs="+", default=[8, 32])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--modes", nargs="+", default=MODES, choices=MODES)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measure(options.child[0], int(options.child[1]))))
        return
    for layers in options.layers:
        found: dict[str, list[dict[str, float]]] = {mode: [] for mode in options.modes}
        for _ in range(options.rounds):
            for mode in options.modes:
                found[mode].append(run(mode, layers))
        table(layers, found)


if __name__ == "__main__":
    main()
