"""How fast many bundles are scanned: their heads, and tables of them.

    python benchmarks/scan_speed.py [--count 1000]

Writes bundles of about 1 MB, 20 different ones under many names, and scans them with one process per core.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

from many_bundles import many

import structdump


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    count = parser.parse_args().count
    with tempfile.TemporaryDirectory() as directory:
        paths = many(Path(directory), count, min(20, count))
        size = paths[0].stat().st_size / 1e6
        cores = len(os.sched_getaffinity(0))
        print(f"{count} bundles of {size:.2f} MB, {cores} cores, load {os.getloadavg()[0]:.1f}")
        started = time.perf_counter()
        scan = structdump.scan(paths)
        versions = {b.environment.versions["torch"] for b in scan}
        seconds = time.perf_counter() - started
        print(f"heads: {count / seconds:.0f} bundles/s ({seconds:.2f} s, {len(versions)} version of torch)")
        for table in ("compiles", "kernels", "artifacts"):
            few = structdump.scan(paths[: max(1, count // 10)])
            started = time.perf_counter()
            rows = sum(len(batch[0]) for batch in few.batches(table))
            seconds = time.perf_counter() - started
            print(f"{table}: {few.count / seconds:.0f} bundles/s ({rows:,} rows)")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(f"peak memory: {peak:.0f} MiB, of the largest worker {child:.0f} MiB")


if __name__ == "__main__":
    main()
