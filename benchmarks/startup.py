"""What structdump adds to a start: its import, its entry point while it is off, its environment facts.

    python benchmarks/startup.py [--rounds 9]

Each figure is the median of fresh processes. `import torch` is timed with the entry point and, taking
turns, with `TORCH_DEVICE_BACKEND_AUTOLOAD=0`; that difference is mostly noise, so the entry point's own
time is also taken, just before torch would call it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys

CLOCK = "import time; began = time.perf_counter(); {}; print(time.perf_counter() - began)"
#: What torch has imported by then.
ENTRY = "import typing, importlib; " + CLOCK.format("from structdump.activate import autoload; autoload()")
IMPORT = CLOCK.format("import structdump")
LOAD = CLOCK.format("import structdump; structdump.load")
TORCH = CLOCK.format("import torch")
FACTS = "import torch, torch._dynamo; from structdump.sources.environment import collect; "
FACTS += CLOCK.format("collect()")


def seconds(code: str, **extra: str) -> float:
    """Run `code` in a fresh process; return the seconds that it prints."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("STRUCTDUMP_")}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**clean, **extra}, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def main() -> None:
    """Print one line per figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds

    def show(what: str, found: list[float]) -> None:
        print(f"{what:<52} {statistics.median(found) * 1000:9.2f} ms", flush=True)

    seconds(TORCH)  # warms the disk
    show("import structdump", [seconds(IMPORT) for _ in range(rounds)])
    show("import structdump; structdump.load", [seconds(LOAD) for _ in range(rounds)])
    show("the entry point, STRUCTDUMP_LEVEL unset", [seconds(ENTRY) for _ in range(rounds)])
    on, off = [], []
    for _ in range(rounds):
        on.append(seconds(TORCH))
        off.append(seconds(TORCH, TORCH_DEVICE_BACKEND_AUTOLOAD="0"))
    show("import torch, entry point loaded", on)
    show("import torch, no entry points", off)
    show("environment facts of a bundle", [seconds(FACTS) for _ in range(3)])


if __name__ == "__main__":
    main()
