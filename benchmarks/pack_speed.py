"""How long packing a TORCH_TRACE log takes, and how much memory, beside tlparse.

    python benchmarks/pack_speed.py [LOG] [--times 1 10 100] [--rounds 3]

The log (default: one of the tests' own) is repeated with other compile ids. Each run is a process of
its own, interpreter start included; the best of the rounds is printed, with the peak of resident
memory. CPU seconds are those of all threads, which other work on the machine disturbs less. structdump's
bytecode is cached by a run before, as it is after an installation. tlparse (pip install tlparse) is left
out where it is not installed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_FRAME = re.compile(rb'"frame_id": (\d+)')


def own_log() -> bytes:
    """Return the largest of the logs that the tests use."""
    sys.path.insert(0, str(ROOT / "tests"))
    from trace_logs import logs

    return max(logs().values(), key=len)


def repeated(data: bytes, times: int) -> Iterator[bytes]:
    """Yield the log as often as asked for, its frames numbered on."""
    last = max((int(n) for n in _FRAME.findall(data)), default=0) + 1
    for number in range(times):
        yield (
            _FRAME.sub(lambda m, n=number: b'"frame_id": %d' % (int(m[1]) + n * last), data)
            if number
            else data
        )


def measure(command: list[str], cwd: Path) -> tuple[float, float, float]:
    """Run a command; return wall seconds, CPU seconds and peak resident MiB."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(cwd / "bytecode")
    began = time.perf_counter()
    with subprocess.Popen(
        command, cwd=cwd, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        said = process.stderr.read() if process.stderr else b""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - began
    if process.returncode:
        sys.exit(f"{command[0]} failed: {said.decode(errors='replace')[-2000:]}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    """Print one row per size and tool."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("log", type=Path, nargs="?", help="a TORCH_TRACE log")
    parser.add_argument("--times", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    data = options.log.read_bytes() if options.log else own_log()
    pack = [sys.executable, "-m", "structdump", "pack"]
    if not (ROOT / "structdump" / "__main__.py").exists():
        pack = [sys.executable, "-c", "import sys; from structdump.cli import main; sys.exit(main())", "pack"]
    tlparse = shutil.which("tlparse") or shutil.which("tlparse", path=str(Path(sys.executable).parent))
    print(f"{'log MiB':>8} {'tool':>22} {'seconds':>8} {'CPU s':>7} {'MiB/s':>7} {'peak MiB':>9}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = folder / "dedicated_log_torch_trace_bench.log"
        measure([*pack, "--help"], folder)
        for times in options.times:
            with log.open("wb") as file:
                file.writelines(repeated(data, times))
            size = log.stat().st_size / 2**20
            rows = {f"pack --level {level}": [*pack, str(log), "-o", str(folder / "out.json.zst"), "--force",
                    "--level", level] for level in ("low", "full")}  # fmt: skip
            if tlparse:
                rows["tlparse"] = [tlparse, str(log), "-o", str(folder / "tl"), "--overwrite", "--no-browser"]
            for tool, command in rows.items():
                found = [measure(command, folder) for _ in range(options.rounds if times < 50 else 1)]
                seconds, cpu, peak = min(found)[0], min(f[1] for f in found), max(f[2] for f in found)
                print(
                    f"{size:8.1f} {tool:>22} {seconds:8.2f} {cpu:7.2f} {size / seconds:7.1f} {peak:9.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
