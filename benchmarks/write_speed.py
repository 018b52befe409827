"""How long writing a bundle takes, against `zstd -3` on the same bytes, and what the journal costs.

    python benchmarks/write_speed.py [megabytes of text, default 100] [rounds, default 7]

The text is like Inductor's: graphs of 300 KB (a graph of 1,500 nodes) and kernels of 4 KB, each a
little different from the ones before. Prints a line per step: seconds (best of the rounds), MB/s.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from structdump.bundle import codec, reader
from structdump.bundle.journal import Journal
from structdump.bundle.writer import write_bundle

OPS = (
    "mm.default",
    "add.Tensor",
    "mul.Tensor",
    "relu.default",
    "view.default",
    "permute.default",
    "_to_copy.default",
)


def graph(rng: random.Random, nodes: int = 1500) -> str:
    lines = ["class GraphModule(torch.nn.Module):", '    def forward(self, primals_1: "f32[1024, 4096]"):']
    for n in range(nodes):
        op, a, b = rng.choice(OPS), rng.randrange(n + 1), rng.randrange(n + 1)
        name = op.partition(".")[0]
        lines.append(
            f"         # File: model.py:{rng.randrange(900)} in forward, code: x = self.proj(x) + residual"
        )
        lines.append(
            f'        {name}_{n}: "bf16[8, {rng.randrange(1, 64) * 128}, 4096]" = '
            f"torch.ops.aten.{op}({name}_{a}, {name}_{b});  {name}_{a} = None"
        )
    return "\n".join(lines)


def texts(size: int) -> Iterator[tuple[str, str]]:
    rng = random.Random(0)
    while size > 0:
        big = graph(rng)
        yield "graph", big
        size -= len(big)
        for _ in range(8):
            small = graph(rng, 20)
            yield "kernel", small
            size -= len(small)


def best(rounds: int, *actions: Callable[[], object]) -> list[float]:
    """Run the actions in turn, so that whatever else the machine does meets all; return the best of each."""
    times: list[list[float]] = [[] for _ in actions]
    for _ in range(rounds):
        for action, seconds in zip(actions, times, strict=True):
            start = time.perf_counter()
            action()
            seconds.append(time.perf_counter() - start)
    return [min(seconds) for seconds in times]


def journal_of(path: Path, size: int) -> tuple[int, float]:
    """Write the journal; return the bytes of text and the seconds that `Journal.write` took."""
    journal = Journal.create(path)
    total, spent = 0, 0.0
    for seq, (kind, text) in enumerate(texts(size)):
        digest = codec.digest(text)
        artifact = {"seq": seq, "kind": kind, "name": f"n{seq}", "digest": digest, "bytes": len(text)}
        artifact |= {"stage": "post_grad", "compile_id": "0/0", "nodes": 1500, "ops": dict.fromkeys(OPS, 200)}
        start = time.perf_counter()
        journal.write({"t": "text", "digest": digest, "text": text})
        journal.write({"t": "artifact", "artifact": artifact})
        spent += time.perf_counter() - start
        total += len(text)
    journal.write({"t": "end"})
    journal.close()
    return total, spent


def main() -> None:
    megabytes, rounds = (int(a) for a in (sys.argv[1:] + ["100", "7"][len(sys.argv) - 1 :])[:2])
    with tempfile.TemporaryDirectory() as folder:
        names = ("a.journal", "o.json.zst", "plain.json", "plain.zst")
        journal, target, plain, other = (Path(folder) / name for name in names)
        size, spent = journal_of(journal, megabytes * 10**6)

        def line(what: str, seconds: float, more: str = "") -> None:
            print(f"{what:34} {seconds:7.3f} s {size / seconds / 1e6:8.0f} MB/s  {more}")

        def write(limit: int | None = None) -> None:
            write_bundle(journal, target, max_bytes=limit, overwrite=True)

        def zstd() -> None:
            subprocess.run(["zstd", "-3qf", plain, "-o", other], check=True)

        print(f"{size / 1e6:.0f} MB of text, {os.cpu_count()} CPUs")
        line("journal", spent, f"{journal.stat().st_size / 1e6:.1f} MB")
        write()
        whole = target.stat().st_size
        line("write_bundle, a third of the budget", *best(rounds, lambda: write(whole // 3)))
        write()
        line("load", *best(rounds, lambda: reader.load(target)))
        line("load and read all texts", *best(rounds, lambda: dict(reader.load(target).texts)))
        if shutil.which("zstd") is None:
            line("write_bundle", *best(rounds, write), f"{whole / 1e6:.1f} MB")
            print("the zstd command is not installed: nothing to compare with")
            return
        subprocess.run(["zstd", "-dqf", target, "-o", plain], check=True)
        ours, theirs = best(rounds, write, zstd)
        line("write_bundle", ours, f"{whole / 1e6:.1f} MB")
        line("zstd -3 on the same bytes", theirs, f"{other.stat().st_size / 1e6:.1f} MB")
        print(f"ratio write_bundle / zstd -3: {ours / theirs:.2f}")


if __name__ == "__main__":
    main()
