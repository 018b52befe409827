"""Whether a capture on a GPU holds what Inductor left in its cache directory.

    python benchmarks/gpu_fidelity.py [--keep FOLDER]     on a CUDA device, from a checkout, nothing installed
    python benchmarks/gpu_fidelity.py --cpu               the same flow with C++ kernels and tiny sizes

A small Llama-like model is compiled with max-autotune, for inference and for a training step, three
times, each in a process of its own: `cold` with empty caches, `warm` on the caches that `cold` left, and
`coordesc` with empty caches and coordinate descent tuning. Each bundle is then held against what lies in
the cache directory, read here by other means than the capture's: wrapper modules with Python's own parser,
`.best_config` files by the paths that torch computes, Triton's files by their names, and the tables that
torch prints while it tunes. The result is a table of found/expected, a line for each miss, and exit
status 1 if there is any. `gpu_fidelity.txt` beside this file is what a run on an H200 printed.
"""

from __future__ import annotations

import argparse
import ast
import concurrent.futures
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
NEEDED = ("torch", "depyf", "pydantic", "orjson", "zstandard", "wrapt")
RUNS = ("cold", "warm", "coordesc")
STAGES = ("ttir", "ttgir", "llir", "ptx")
FACTS = {"configs_hash", "found_by_coordesc", "time_taken_ms", "triton_cache_hash"}


def build(layers: int, dim: int, heads: int, hidden: int, vocab: int) -> Any:
    """Return a Llama-like model: RMSNorm, rotary embedding, SwiGLU."""
    import torch
    from torch import nn

    class Norm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(dim))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x.float()
            y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-5)
            return y.to(x.dtype) * self.weight

    def linear(inputs: int, outputs: int) -> nn.Linear:
        return nn.Linear(inputs, outputs, bias=False)

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = Norm(), Norm()
            self.q, self.k, self.v, self.o = (linear(dim, dim) for _ in range(4))
            self.gate, self.up, self.down = linear(dim, hidden), linear(dim, hidden), linear(hidden, dim)

        def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
            h = self.norm1(x)
            q, k, v = (
                f(h).unflatten(-1, (heads, dim // heads)).transpose(1, 2) for f in (self.q, self.k, self.v)
            )
            q, k = (t * cos + torch.cat((-t.chunk(2, -1)[1], t.chunk(2, -1)[0]), -1) * sin for t in (q, k))
            a = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.o(a.transpose(1, 2).flatten(-2))
            h = self.norm2(x)
            return x + self.down(nn.functional.silu(self.gate(h)) * self.up(h))

    class Llama(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(vocab, dim)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.norm, self.head = Norm(), linear(dim, vocab)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            x = self.embed(tokens)
            half = dim // heads // 2
            rate = 10000.0 ** (-torch.arange(half, device=x.device) / half)
            angle = torch.arange(tokens.shape[1], device=x.device)[:, None] * rate
            angle = torch.cat((angle, angle), -1)
            cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
            for block in self.blocks:
                x = block(x, cos, sin)
            return self.head(self.norm(x))

    return Llama()


def child(name: str, folder: Path, cpu: bool) -> None:
    """Compile, capture, and note beside the bundle what only this process can say."""
    import torch
    import torch._inductor.config as inductor

    import structdump

    device = "cpu" if cpu else "cuda"
    inductor.coordinate_descent_tuning = name == "coordesc"
    torch.manual_seed(0)
    sizes = (1, 32, 2, 64, 64) if cpu else (2, 256, 4, 512, 1024)
    dtype = torch.float32 if cpu else torch.bfloat16
    served, trained = (build(*sizes).to(device, dtype) for _ in range(2))
    tokens = torch.randint(0, sizes[-1], (2, 16) if cpu else (4, 64), device=device)
    gemm = {} if cpu else {"max_autotune_gemm_backends": "TRITON"}  # so that templates win and run
    infer = torch.compile(served.eval(), options={"max_autotune": True, **gemm})
    step = torch.compile(trained, options={"max_autotune": True})
    began = time.perf_counter()
    with structdump.capture(folder / f"{name}.json.zst", level="full", redact=False, overwrite=True):
        for _ in range(2):
            with torch.no_grad():
                infer(tokens)
            logits = step(tokens).float()
            torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten()).backward()
        if not cpu:
            torch.cuda.synchronize()
        seconds = time.perf_counter() - began
    note = {
        "seconds": seconds,
        "end": time.perf_counter() - began - seconds,
        "device": "cpu" if cpu else torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "triton": getattr(sys.modules.get("triton"), "__version__", None),
        "best_configs": config_paths(Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])),
    }
    (folder / f"{name}.note.json").write_text(json.dumps(note))


def config_paths(cache: Path) -> dict[str, str]:
    """Return, for each module below `cache`, where torch itself would keep its best config."""
    from torch._inductor.runtime.autotune_cache import AutotuneCache, inductor_meta_from_config

    found = {}
    meta = {**inductor_meta_from_config(), "autotune_local_cache": True, "autotune_remote_cache": False}
    for path in cache.rglob("*.py"):
        one = AutotuneCache.create(meta, str(path), "")
        if one is not None and one.local_cache is not None:
            found[str(one.local_cache[1])] = str(path)
    return found


@dataclass
class Oracle:
    """What lies in a cache directory, and what the process printed."""

    wrappers: dict[Path, str] = field(default_factory=dict)
    kernels: dict[tuple[str, str], str] = field(default_factory=dict)  # (name, source) -> method
    configs: dict[Path, tuple[str, str, dict[str, Any]]] = field(
        default_factory=dict
    )  # name, source, content
    triton: dict[tuple[str, str], list[Path]] = field(default_factory=dict)  # (kernel name, stage)
    tables: Counter[tuple[str, str, int]] = field(default_factory=Counter)  # operation, winner, choices
    orphans: list[Path] = field(default_factory=list)


def look(cache: Path, note: dict[str, Any], stderr: str) -> Oracle:
    """Read the cache directory and the output."""
    seen = Oracle()
    for path in sorted(cache.rglob("*.py")):
        text = path.read_text(errors="replace")
        if "async_compile = AsyncCompile()" in text and "benchmark_all_configs" not in text:
            seen.wrappers[path] = text
            seen.kernels |= dict(kernels_of(text))
    for path in sorted(cache.rglob("*.best_config")):
        owner = note["best_configs"].get(str(path))
        if owner is None:
            seen.orphans.append(path)
            continue
        source = Path(owner).read_text()
        name = re.search(r"^@triton\.jit\s+def (\w+)\(", source, re.MULTILINE)
        seen.configs[path] = (name[1] if name else "", source.strip(), json.loads(path.read_text()))
    for stage in STAGES:
        for path in sorted(cache.rglob(f"*.{stage}")):
            seen.triton.setdefault((path.stem, stage), []).append(path)
    seen.tables.update(tables_of(stderr))
    return seen


def kernels_of(wrapper: str) -> list[tuple[tuple[str, str], str]]:
    """Find `name = async_compile.method('name', source)` at top level."""
    found = []
    for statement in ast.parse(wrapper).body:
        value = getattr(statement, "value", None)
        if not (isinstance(statement, ast.Assign) and isinstance(value, ast.Call)):
            continue
        if not ast.unparse(value.func).startswith("async_compile."):
            continue
        texts = [a.value for a in value.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        name = ast.unparse(statement.targets[0])
        method = ast.unparse(value.func).partition(".")[2]
        if texts and method in ("triton", "cpp_pybinding", "cpp"):
            found.append(((name, max(texts, key=len)), method))
    return found


def tables_of(stderr: str) -> list[tuple[str, str, int]]:
    """Read the tables that torch prints: operation, first choice, number of choices."""
    pattern = (
        r"^AUTOTUNE (\w+)\(.*\n(?:strides: .*\n)?(?:dtypes: .*\n)?"
        r"  (\S+) \S+ ms.*\n(?:  .*\n)*.* AUTOTUNE benchmarking .* for (\d+) choices"
    )
    return [(m[1], m[2], int(m[3])) for m in re.finditer(pattern, stderr, re.MULTILINE)]


class Checks:
    """Rows of one run: how many of how many, and what is missing."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.rows: dict[str, tuple[int, int]] = {}
        self.misses: list[str] = []

    def row(self, name: str, found: int, expected: int, misses: list[str], least: int = 0) -> None:
        self.rows[name] = (found, max(expected, least))
        if found < max(expected, least) and not misses:
            misses = [f"only {found} in all, at least {least} looked for"]
        self.misses += [f"{self.run}: {name}: {miss}" for miss in misses]


def check(run: str, bundle: Any, seen: Oracle, cpu: bool) -> Checks:
    """Hold one bundle against what lies in the cache directory."""
    checks = Checks(run)
    some = 0 if cpu else 1
    check_code(checks, bundle, seen)
    check_configs(checks, bundle, seen, some)
    tables = Counter(
        (a.autotune.operation, a.autotune.winner, len(a.autotune.choices))
        for a in bundle.artifacts
        if a.kind == "autotune" and a.autotune is not None and all(c.name for c in a.autotune.choices)
    )
    lost = seen.tables - tables
    total = seen.tables.total()
    misses = [f"{t} was printed and is not among {sorted(tables, key=str)[:20]}" for t in lost]
    checks.row("autotune tables", total - lost.total(), total, misses, some * (run == "cold"))
    timed = [a for a in bundle.artifacts if a.kind == "autotune" and a.autotune and a.autotune.choices]
    untimed = [a for a in timed if not any(c.seconds for c in a.autotune.choices)]
    checks.row(
        "autotune times", len(timed) - len(untimed), len(timed), [f"no times: {a.name}" for a in untimed]
    )
    check_ir(checks, bundle, seen, some)
    verdict = bundle.completeness.verdict
    right = verdict == ("warm" if run == "warm" else "cold")
    checks.row("verdict", int(right), 1, [] if right else [f"{verdict}: {bundle.completeness.reasons}"])
    errors = [f"{e.hook}: {e.error} (×{e.count})" for e in bundle.hook_errors]
    checks.row("no hook errors", int(not errors), 1, errors)
    return checks


def check_code(checks: Checks, bundle: Any, seen: Oracle) -> None:
    """Compare output codes and kernels, both ways."""
    codes = {a.text for a in bundle.artifacts if a.kind == "output_code"}
    lost = [
        path for path, text in seen.wrappers.items() if text.strip() not in {(c or "").strip() for c in codes}
    ]
    misses = [f"{path} is no output code of the bundle; it has {len(codes)}" for path in lost]
    checks.row("output codes", len(seen.wrappers) - len(lost), len(seen.wrappers), misses, 3)
    used = {(a.kernel.name, a.source) for a in bundle.kernels() if a.kind == "kernel"}
    names = {name for name, _ in used}
    gone = [key for key in seen.kernels if key not in used]
    misses = [
        f"{n}: {'another source' if n in names else 'no kernel artifact with role used'}" for n, _ in gone
    ]
    checks.row("kernels", len(seen.kernels) - len(gone), len(seen.kernels), misses, 1)
    stray = [n for n, source in used if source and (n, source) not in seen.kernels]
    own = [n for n, source in used if source]
    misses = [f"{n} is in the bundle and in no wrapper module" for n in stray]
    checks.row("kernels that exist", len(own) - len(stray), len(own), misses)


def check_configs(checks: Checks, bundle: Any, seen: Oracle, some: int) -> None:
    """Compare best configs: each file, the kernel it is of, and what is known of its tuning."""
    known: dict[str, list[dict[str, Any]]] = {}
    for a in bundle.configs():
        known.setdefault(a.kernel.name if a.kernel else a.name, []).append(a.data)
    misses, wrong = [f"{path} belongs to no module by torch's own reckoning" for path in seen.orphans], []
    kernels = [a for a in bundle.kernels() if a.kind == "kernel"]
    expected = owned = tuned = told = 0
    for path, (name, source, content) in seen.configs.items():
        if content not in known.get(name, []):
            misses.append(
                f"{path.name} of {name}: {content}; the bundle has {known.get(name) or sorted(known)}"
            )
        launch = {k: v for k, v in content.items() if k not in FACTS}
        for kernel in kernels:
            if (kernel.kernel.name, (kernel.source or "").strip()) != (name, source):
                continue
            held = kernel.best_config
            expected += 1
            owned += held == launch
            if held != launch:
                wrong.append(f"{kernel.compile_id} {name}: {path.name} says {launch}, its kernel {held}")
        tuned += bool(content.get("found_by_coordesc"))
        told += any(
            d.get("found_by_coordesc") and d.get("time_taken_ms") is not None for d in known.get(name, [])
        )
    total = len(seen.configs) + len(seen.orphans)
    checks.row("best configs", total - len(misses), total, misses, some)
    checks.row("best config on its kernel", owned, expected, wrong, some)
    misses = [] if told >= tuned else [f"{tuned} files say found_by_coordesc, {told} configs in the bundle"]
    checks.row("found by coordesc", min(told, tuned), tuned, misses, some * (checks.run == "coordesc"))
    times = [a for a in bundle.configs() if isinstance(a.data.get("time_taken_ms"), int)]
    lost = [a.name for a in bundle.configs() if a not in times]
    checks.row("time taken", len(times), len(bundle.configs()), [f"no time: {n}" for n in lost])


def check_ir(checks: Checks, bundle: Any, seen: Oracle, some: int) -> None:
    """Compare TTIR, TTGIR, LLIR and PTX with the files that Triton kept."""
    held: dict[tuple[str, str], list[str]] = {}
    places = set()
    for a in bundle.artifacts:
        if a.kind == "ir" and a.stage in STAGES and a.text:
            held.setdefault((a.name, a.stage), []).append(a.text)
            places.add((a.compile_id, a.graph_id, a.direction, a.name, a.stage))
    wanted = [
        (a.compile_id, a.graph_id, a.direction, a.kernel.name, stage)
        for a in bundle.kernels()
        if a.kind == "kernel" and a.kernel.backend == "triton"
        for stage in STAGES
    ]
    gone = [place for place in wanted if place not in places]
    misses = [
        f"{place}: not in the bundle; Triton has {len(seen.triton.get(place[-2:], []))} files"
        for place in gone
    ]
    checks.row("Triton IR", len(wanted) - len(gone), len(wanted), misses, 4 * some)
    same, misses = 0, []
    for key, texts in held.items():
        files = [path.read_text(errors="replace") for path in seen.triton.get(key, [])]
        if all(text in files for text in texts):
            same += 1
        else:
            misses.append(f"{key}: {len(texts)} texts, of {len(files)} files none is equal to each")
    checks.row("IR as Triton kept it", same, len(held), misses)
    chosen, misses = 0, []
    runs = {(name, source.strip()) for name, source in seen.kernels}
    judged = [
        (name, content["triton_cache_hash"])
        for name, source, content in seen.configs.values()
        if content.get("triton_cache_hash") and (name, source) in runs
    ]
    for name, key in judged:
        files = [p for p in seen.triton.get((name, "ttgir"), []) if p.parent.name == key]
        if files and files[0].read_text() in held.get((name, "ttgir"), []):
            chosen += 1
        else:
            misses.append(f"{name}: the TTGIR is not that of the winner {key} ({len(files)} files)")
    checks.row("IR of the winner", chosen, len(judged), misses)


def start(name: str, folder: Path, cpu: bool) -> tuple[dict[str, Any], str]:
    """Run one child; return its note and what it printed on stderr."""
    cache = folder / ("cache_coordesc" if name == "coordesc" else "cache")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("STRUCTDUMP_", "TORCH_COMPILE_"))}
    clean.pop("TRITON_CACHE_DIR", None)
    environment = {
        **clean,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        "TORCHINDUCTOR_CACHE_DIR": str(cache),
    }
    command = [sys.executable, str(Path(__file__).resolve()), "--child", name, str(folder)]
    done = subprocess.run(
        command + ["--cpu"] * cpu, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    (folder / f"{name}.stderr").write_text(done.stderr)
    if done.returncode:
        sys.exit(f"the {name} run failed ({done.returncode}):\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}")
    return json.loads((folder / f"{name}.note.json").read_text()), done.stderr


def compute(folder: Path, cpu: bool) -> dict[str, Checks]:
    """Start the runs, and check each before the next changes its cache directory."""
    import structdump

    def one(name: str) -> Checks:
        note, stderr = start(name, folder, cpu)
        cache = folder / ("cache_coordesc" if name == "coordesc" else "cache")
        path = folder / f"{name}.json.zst"
        bundle = structdump.load(path)
        checks = check(name, bundle, look(cache, note, stderr), cpu)
        hook = bundle.run.hook_seconds or 0.0
        raw = sum(len(text.encode("utf-8", "surrogatepass")) for text in bundle.texts.values())
        print(
            f"{name}: {note['device']}, torch {note['torch']}, triton {note['triton']},"
            f" Python {sys.version.split()[0]}; {note['seconds']:.1f} s of which hooks {hook:.2f} s"
            f" ({100 * hook / note['seconds']:.1f} %), end {note['end']:.2f} s; bundle"
            f" {path.stat().st_size / 1024:.0f} KiB, texts {raw / 1024:.0f} KiB,"
            f" {bundle.completeness.kept} of {bundle.completeness.seen} artifacts kept",
            flush=True,
        )
        return checks

    side_by_side = (os.cpu_count() or 1) >= 8  # they share nothing but the device
    with concurrent.futures.ThreadPoolExecutor(2 if side_by_side else 1) as pool:
        first = pool.submit(lambda: [one("cold"), one("warm")])
        second = pool.submit(one, "coordesc")
        found = [*first.result(), second.result()]
    return dict(zip(RUNS, found, strict=True))


def report(found: dict[str, Checks]) -> int:
    """Print the table and the misses; return the exit status."""
    print(f"\n{'found/expected':<28}" + "".join(f"{run:>12}" for run in found))
    for name in next(iter(found.values())).rows:
        cells = ("{}/{}".format(*checks.rows[name]) for checks in found.values())
        print(f"{name:<28}" + "".join(f"{cell:>12}" for cell in cells))
    misses = [miss for checks in found.values() for miss in checks.misses]
    print("\n" + ("\n".join(miss[:1500] for miss in misses) or "nothing is missing"), flush=True)
    return 1 if misses else 0


def main() -> None:
    """Run it all, in a folder that goes away unless `--keep` names it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--cpu", action="store_true", help="tiny sizes and C++ kernels, to try the script")
    parser.add_argument("--keep", type=Path, help="folder for bundles, caches and output")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        sys.exit(f"missing: {', '.join(missing)} (pip install {' '.join(missing)})")
    if options.child:
        child(options.child[0], Path(options.child[1]), options.cpu)
        return
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        place = (options.keep or Path(folder)).resolve()
        place.mkdir(parents=True, exist_ok=True)
        status = report(compute(place, options.cpu))
    print(f"{time.perf_counter() - began:.0f} s in all")
    sys.exit(status)


if __name__ == "__main__":
    main()
