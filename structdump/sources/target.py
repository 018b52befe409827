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
    text = os.fspath(output) if output is not None else "."
    is_file = text.endswith(SUFFIXES) or "{" in Path(text).name
    if not is_file:
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
    return Path(filled if filled.endswith(SUFFIXES) else filled + SUFFIXES[0]).expanduser()


def slug(name: str) -> str:
    """Return `name` as one safe part of a file name, at most 80 characters."""
    return re.sub(r"[^\w.+-]+", "-", name).strip("-.")[:80] or "python"
