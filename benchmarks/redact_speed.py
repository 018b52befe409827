"""How fast redaction is: MB/s on one core, on real text and on text that gives it the most to do.

Run: python benchmarks/redact_speed.py
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable
from pathlib import Path

from structdump.bundle.redact import Redactor

DATA = Path(__file__).parents[1] / "tests" / "data" / "redact" / "samples.json.gz"
MEGABYTE = 1_000_000
KNOWN = "# File: /home/alex/train/model.py:12 in forward, code: x = a + b\n"
NEW = "open /home/alex/train/run{}/part.py:12\n"
SECRET = "HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz0123456789 at 10.1.2.3\n"
GOAL = 100  # MB/s, on graphs and kernels


def redactor() -> Redactor:
    return Redactor(home="/home/alex", user="alex", hosts=["gpu-07.example.com", "gpu-07"], secrets=[])


def best(work: Callable[[], object], times: int = 5) -> float:
    seconds = []
    for _ in range(times):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


def speed(texts: list[str]) -> float:
    """MB/s over the texts; each redactor is new, so that it learns their paths in the measured time."""
    size = sum(len(text) for text in texts)

    def work() -> None:
        one = redactor()
        for text in texts:
            one.text(text)

    return size / best(work) / MEGABYTE


def main() -> None:
    samples: dict[str, str] = json.loads(gzip.decompress(DATA.read_bytes()))
    graphs = [text for name, text in samples.items() if "GRAD" in name or "split" in name]
    kernels = [text for name, text in samples.items() if "kernel" in name or "output_code" in name]
    rows = {
        "graphs": graphs * 8,
        "kernels and output code": kernels * 5,
        "graphs, kernels, output code": (graphs + kernels) * 5,
        "guards (full code)": [samples["llama/full_code_for_wrapper_0.py"]] * 20,
        "a TORCH_TRACE log": [samples["vllm/trace.log"]] * 8,
        "a known path on every line": [KNOWN * 30_000],
        "a new path on every line": ["".join(NEW.format(n) for n in range(30_000))],
        "a secret on every line": [SECRET * 20_000],
    }
    print(f"{'text':32} {'MB':>7} {'MB/s':>7}")
    for name, texts in rows.items():
        print(f"{name:32} {sum(map(len, texts)) / MEGABYTE:7.1f} {speed(texts):7.0f}")
    print(f"goal on graphs and kernels: {GOAL} MB/s")
    record = {
        "seq": 1,
        "kind": "kernel",
        "name": "triton_red_fused_add_0",
        "language": "python",
        "digest": "0" * 32,
    }
    one = redactor()
    seconds = best(lambda: [one.value(record) for _ in range(1000)])
    print(f"one artifact record: {seconds * 1000:.1f} microseconds")


if __name__ == "__main__":
    main()
