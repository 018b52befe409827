"""One bundle of all ranks, made within the job: `structdump.gather`."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from structdump.bundle.merge import merge
from structdump.bundle.places import opened
from structdump.bundle.privacy import Privacy
from structdump.bundle.redact import Redactor
from structdump.bundle.writer import write_document
from structdump.errors import BundleError
from structdump.sources.spool import warn
from structdump.sources.target import program_name, resolve

_HELD = 256 << 20  # bytes that the destination holds of all ranks at a time
_NAME = "structdump_{program}_{time}_{pid}_ranks.json.zst"


def gather(group: Any = None, dst: int = 0, *, output: str | os.PathLike[str] | None = None) -> Path | None:
    """Bring together what the ranks of a torch.distributed job have captured so far, in one bundle.

    Every rank of `group` (default: all) must call it, as with any collective. Each sends the capture
    that is open in it, or else the bundle that it wrote last; captures go on. The rank `dst` (a global
    rank) writes the merged bundle, see `structdump.merge`, and returns its path; the others return
    None, as does a process outside `group`. `output` is a file; by default it gets a name of its own in
    the working directory. Without torch.distributed it is the bundle of this process alone.

    It raises nothing: what goes wrong is a warning on stderr. A rank that has nothing, or can't send it,
    takes part in every step all the same, so that no other rank waits for it; one that never calls this is
    waited for until the group's timeout, as in any collective. With NCCL the data passes
    through the memory of the current device, 256 MiB at most.

    Example::

        path = structdump.gather()
        if path:
            print(structdump.diff_ranks(path).same)
    """
    try:
        return _gather(group, dst, output)
    except Exception as error:  # noqa: BLE001 # the program must go on whatever happens to its bundle
        warn(f"gather failed: {type(error).__name__}: {error}")
        return None


def _gather(group: Any, dst: int, output: str | os.PathLike[str] | None) -> Path | None:
    dist = sys.modules.get("torch.distributed")
    if dist is None or not dist.is_available() or not dist.is_initialized():
        dist = None
    elif dist.get_rank(group) < 0:
        return None
    elif dst not in dist.get_process_group_ranks(group or dist.group.WORLD):
        raise ValueError(f"rank {dst} is not in the group")  # in all its ranks, so none of them waits
    data, problem = b"", None
    try:
        data = _own(None if dist is None else int(dist.get_rank()))
    except Exception as error:  # noqa: BLE001 # the others wait in the next step
        problem = f"{type(error).__name__}: {error}"
        warn(f"gather: this process has nothing to send: {problem}")
    if dist is None:
        return _write([data], [0], output, set())
    sizes: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(sizes, len(data), group=group)
    ranks = dist.get_process_group_ranks(group or dist.group.WORLD)
    if dist.get_rank() != dst:
        for part in _parts(data, sizes):
            dist.gather_object(part, None, dst=dst, group=group)
        return None
    return _receive(dist, group, dst, data, sizes, ranks, output)


def _receive(
    dist: Any,
    group: Any,
    dst: int,
    data: bytes,
    sizes: Sequence[int],
    ranks: Sequence[int],
    output: str | os.PathLike[str] | None,
) -> Path | None:
    failed: Exception | None = None
    with tempfile.TemporaryDirectory(prefix="structdump-") as directory:
        files = [Path(directory, f"{rank}.json.zst") for rank in ranks]
        for part in _parts(data, sizes):
            pieces: list[Any] = [None] * len(sizes)
            dist.gather_object(part, pieces, dst=dst, group=group)
            try:  # a full disk must not keep the others waiting
                for file, piece in zip(files, pieces, strict=True):
                    if piece and failed is None:
                        with file.open("ab") as out:
                            out.write(piece)
            except OSError as error:
                failed = error
        if failed is not None:
            raise failed
        sent = [file for file, size in zip(files, sizes, strict=True) if size]
        silent = {rank for rank, size in zip(ranks, sizes, strict=True) if not size}
        return _write(sent, ranks, output, silent)


def _parts(data: bytes, sizes: Sequence[int]) -> list[bytes]:
    """Cut data into as many pieces as every rank sends: some may be empty."""
    length = max(64 << 10, _HELD // len(sizes))
    count = -(-max(sizes) // length)
    return [data[n * length : (n + 1) * length] for n in range(count)]


def _own(rank: int | None) -> bytes:
    """Return the bundle of what this process has captured: of its open capture, else the one written last."""
    from structdump.sources.hooks import HUB
    from structdump.sources.live import WRITTEN

    for session in reversed(HUB.sessions):
        bundle = session.snapshot()
        if bundle is None:
            continue
        if rank is not None:
            bundle.run.rank = rank
        with tempfile.TemporaryDirectory(prefix="structdump-") as directory:
            path = write_document(
                bundle, Path(directory, "own.json.zst"), max_bytes=session.config.max_bytes
            ).path
            return path.read_bytes()
    if not WRITTEN:
        return b""
    with opened(WRITTEN[0]) as file:
        return file.read()


def _privacy() -> Privacy:
    from structdump.sources.hooks import HUB

    return next((session.privacy for session in reversed(HUB.sessions)), Privacy(Redactor()))


def _write(
    sources: Sequence[Path | bytes], ranks: Sequence[int], output: Any, silent: set[int]
) -> Path | None:
    sources = [source for source in sources if source]
    if not sources:
        warn("gather: no rank has captured anything")
        return None
    privacy = _privacy()
    program = privacy.program(program_name())
    target = Path(output) if output is not None else resolve(_NAME, program=program, level="", rank=None)
    target.parent.mkdir(parents=True, exist_ok=True)

    def left_out(name: str, error: BundleError) -> None:
        warn(f"gather: left out what rank {Path(name).name.split('.')[0]} sent: {error}")

    path = merge(sources, target, on_error=left_out).path
    missing = f", nothing of rank {', '.join(map(str, sorted(silent)))}" if silent else ""
    warn(f"wrote {privacy.place(path)} ({len(sources)} of {len(ranks)} ranks{missing})")
    return path
