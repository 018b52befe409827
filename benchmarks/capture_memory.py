"""How much memory a capture takes beside the program's own.

    python benchmarks/capture_memory.py [--megabytes 500] [--text-kib 64]

Records that many megabytes of graph text, all of it different, as a live capture does: redacted,
journalled, and written as a bundle at the end. Printed is the growth of the peak of resident memory.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

LINE = (
    '        mul_{n}: "f32[{m}, 64][64, 1]cpu" = torch.ops.aten.mul.Tensor(add_{n}, {m});  add_{n} = None\n'
)


def peak() -> float:
    """Return the peak of resident memory so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def graph(number: int, size: int) -> str:
    """Return a graph's text of about `size` bytes, unlike any other."""
    lines = (LINE.format(n=number * 7919 + n, m=(number * 31 + n) % 9973) for n in range(size // 96))
    return "class GraphModule(torch.nn.Module):\n    def forward(self):\n" + "".join(lines)


def main() -> None:
    """Record, write, and print one line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--text-kib", type=int, default=64)
    options = parser.parse_args()
    from structdump.config import DumpConfig
    from structdump.sources.event import Event
    from structdump.sources.session import Session

    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "run.json.zst"
        config = DumpConfig(level="full", max_bytes=None)
        session = Session(config, lambda: target, environment=dict)
        graph(0, options.text_kib << 10)
        before, began = peak(), time.perf_counter()
        total = number = 0
        while total < options.megabytes << 20:
            text = graph(number, options.text_kib << 10)
            session.record(
                Event("graph", f"g{number}", stage="post_grad", phase="after", language="python", text=text)
            )
            total += len(text)
            number += 1
        recorded = peak()
        result = session.finish()
        assert result is not None
        print(
            f"{total / 2**20:.0f} MiB of text in {number:,} graphs: {recorded - before:.0f} MiB more while it"
            f" was recorded, {peak() - before:.0f} MiB with the writing of the bundle of"
            f" {result.bytes / 2**20:.1f} MiB; {time.perf_counter() - began:.0f} s"
        )


if __name__ == "__main__":
    main()
