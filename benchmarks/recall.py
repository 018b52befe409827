"""How much of what torch reports is in a full bundle, on cold and on warm caches.

    python benchmarks/recall.py [workload ...]

Each workload runs twice in fresh processes on the same caches, under TORCH_TRACE and structdump at once.
The log, read by other means than structdump's (tests/recall.py), says what existed; a cell is found/existed.
Below stands what torch itself reports on cold caches and no longer on warm ones.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from recall import existing, recall  # noqa: E402 # found by the path above
from trace_logs import oracle  # noqa: E402 # the same

import structdump  # noqa: E402 # the same

PROGRAMS = {
    "training transformer": ["train.py"],
    "convolution net": ["conv.py"],
    "breaks and recompiles": ["scenarios.py", "breaks_and_recompiles"],
    "two models, backwards interleaved": ["scenarios.py", "two_models_backwards_interleaved"],
    "dynamic shapes": ["scenarios.py", "dynamic_shapes"],
    "compiled autograd": ["scenarios.py", "compiled_autograd"],
    "max-autotune": ["scenarios.py", "max_autotune"],
    "freezing": ["scenarios.py", "freezing"],
}


def run(program: list[str], folder: Path, state: str) -> structdump.Bundle:
    """Run a workload in `folder`, its log in `folder/state`."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("STRUCTDUMP_", "TORCH"))}
    settings = {
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "caches"), "TORCH_TRACE": str(folder / state),
        "STRUCTDUMP_LEVEL": "full", "STRUCTDUMP_REDACT": "0", "STRUCTDUMP_OUTPUT": f"{state}.json.zst",
    }  # fmt: skip
    command = [sys.executable, str(ROOT / "tests" / "workloads" / program[0]), *program[1:]]
    subprocess.run(command, cwd=folder, env={**clean, **settings}, check=True, capture_output=True)
    return structdump.load(folder / f"{state}.json.zst")


def main() -> None:
    """Print the table."""
    sorts = list(existing(b""))
    print(f"{'workload':<34}{'caches':<8}" + "".join(f"{sort:>13}" for sort in sorts))
    silent: set[str] = set()
    for name in sys.argv[1:] or PROGRAMS:
        with tempfile.TemporaryDirectory() as directory:
            folder = Path(directory)
            told = {}
            for state in ("cold", "warm"):
                bundle = run(PROGRAMS[name], folder, state)
                row = recall(folder / state, bundle).row()
                print(f"{name:<34}{state:<8}" + "".join(f"{row[sort]:>13}" for sort in sorts), flush=True)
                (log,) = (folder / state).iterdir()
                records = oracle(log.read_bytes())
                told[state] = {r.values.get("name", "") if r.name == "artifact" else r.name for r in records}
            silent |= {n for n in told["cold"] - told["warm"] if n.endswith(("_graph", "_code", "_runnable"))}
    print(f"\nnot reported by torch itself on warm caches: {', '.join(sorted(silent)) or 'nothing'}")


if __name__ == "__main__":
    main()
