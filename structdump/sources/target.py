"""Where a bundle goes: the configured directory or template, made concrete and free of private words."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path

SUFFIXES = (".json.zst", ".json")
#: Launchers in the order in which they are believed: rank, world size.
LAUNCHERS = (
    ("RANK", "WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("LOCAL_RANK", "LOCAL_WORLD_SIZE"),
)


def program_name(argv: list[str] | None = None) -> str:
    """Return a short name of the running program: its script without `.py`, or its module.

    Example::

        >>> program_name(["/home/alex/train.py", "--fast"])
        'train'
    """
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if argv is None and spec is not None and spec.name:
        return str(spec.name).removesuffix(".__main__")
    first = (sys.argv if argv is None else argv)[:1]
    stem = Path(first[0]).stem if first and first[0] not in ("", "-c", "-") else ""
    return stem or "python"


def launcher_rank(environ: Mapping[str, str]) -> tuple[int | None, int | None]:
    """Return rank and world size as the launcher's variables give them, or None for each."""
    for rank, size in LAUNCHERS:
        if environ.get(rank, "").isdigit():
            world = environ.get(size, "")
            return int(environ[rank]), int(world) if world.isdigit() else None
    return None, None


def resolve(output: str | os.PathLike[str] | None, *, program: str, level: str, rank: int | None) -> Path:
    """Return the file a capture is to write; its directory may not exist yet.

    A name that ends in `.json.zst` or `.json`, or holds a placeholder, is a file; anything else is a
    directory. In a directory the file is `structdump_{program}_{time}[_rank{rank}]_{pid}.json.zst`.

    Example::

        >>> resolve("out/{program}.json.zst", program="train", level="low", rank=None).as_posix()
        'out/train.json.zst'
    """
    return Path(_filled(output, program, level, rank)).expanduser()


def resolve_url(output: str, *, program: str, level: str, rank: int | None, ranks: int | None) -> str:
    """Return the URL a capture is to be uploaded to; the same rules as with `resolve`.

    A store can't make sure that no two processes write one file, so in a job of several `ranks` each has
    its rank in the name.

    Example::

        >>> resolve_url("s3://bucket/{program}.json.zst", program="train", level="low", rank=3, ranks=8)
        's3://bucket/train_rank3.json.zst'
    """
    filled = _filled(output, program, level, rank)
    name = output.rpartition("/")[2]
    own = "{rank}" in name or "{pid}" in name or not _is_file(output)
    if own or rank is None or ranks == 1:
        return filled
    ending = next(e for e in SUFFIXES if filled.endswith(e))
    return f"{filled.removesuffix(ending)}_rank{rank}{ending}"


def _is_file(output: str) -> bool:
    return output.endswith(SUFFIXES) or "{" in output.rpartition("/")[2]


def _filled(output: str | os.PathLike[str] | None, program: str, level: str, rank: int | None) -> str:
    text = os.fspath(output) if output is not None else "."
    if not _is_file(text):
        part = "" if rank is None else "_rank{rank}"
        text = os.path.join(text, f"structdump_{{program}}_{{time}}{part}_{{pid}}.json.zst")  # noqa: PTH118 # braces are still to be filled
    values = {
        "program": slug(program),
        "time": time.strftime("%Y%m%dT%H%M%S"),
        "rank": "0" if rank is None else str(rank),
        "pid": str(os.getpid()),
        "level": level,
    }
    filled = re.sub(r"\{(\w+)\}", lambda m: values.get(m[1], m[0]), text)
    return filled if filled.endswith(SUFFIXES) else filled + SUFFIXES[0]


def slug(name: str) -> str:
    """Return `name` as one safe part of a file name, at most 80 characters."""
    return re.sub(r"[^\w.+-]+", "-", name).strip("-.")[:80] or "python"
