"""How much memory and time it takes to merge the bundles of many ranks.

    python benchmarks/merge_memory.py [--count 1000] [--distinct 1]

Writes bundles of about 1 MB each: of `--distinct` different compiles, each on the devices of 8 ranks.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from many_bundles import one_megabyte

MERGE = """
import resource, sys, time
from pathlib import Path
import structdump
started = time.perf_counter()
folder = Path(sys.argv[1])
done = structdump.merge(sorted(folder.glob("bundle*.json.zst")), folder / "job.json.zst")
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
seconds = time.perf_counter() - started
print(f"merged into {done.bytes / 1e6:.2f} MB in {seconds:.0f} s, peak memory {peak:.0f} MiB")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--distinct", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        made = [
            one_megabyte(folder / f"made{seed}-{rank}.json.zst", rank, seed)
            for seed in range(options.distinct)
            for rank in range(8)
        ]
        for n in range(options.count):
            (folder / f"bundle{n:05}.json.zst").hardlink_to(made[n % len(made)])
        print(f"{options.count} bundles of {made[0].stat().st_size / 1e6:.2f} MB")
        subprocess.run([sys.executable, "-c", MERGE, directory], check=True)


if __name__ == "__main__":
    main()
