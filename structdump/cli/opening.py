"""Opening what people have: bundles and journals as they are, dump directories and logs packed first."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from structdump.bundle.loaded import LoadedBundle

#: The option of the commands that show one rank at a time.
WhichRank = Annotated[
    int | None, typer.Option("--rank", help="of a merged bundle, the rank to look at; default: the first")
]


def opened_rank(path: Path, rank: int | None) -> LoadedBundle:
    """Open what `opened` opens; of a merged bundle one rank, and say which.

    Raises UsageError if there is no such rank.
    """
    from structdump.bundle.rank_view import of_rank

    whole = opened(path)
    view = of_rank(whole, rank)
    if whole.runs is not None and rank is None:
        typer.echo(f"structdump: this is rank {view.run.rank} of {len(whole.runs)} (--rank)", err=True)
    return view


def opened(path: Path) -> LoadedBundle:
    """Open a bundle or a journal; pack a directory or a TORCH_TRACE log, at level full, and open that.

    Raises what `structdump.load` raises if it is neither, and SourceError for a directory of several ranks.
    """
    from structdump.bundle.reader import load
    from structdump.errors import NotABundleError, SourceError

    try:
        with _no_collection():
            return load(path)
    except NotABundleError:
        if not path.exists() or (path.is_file() and path.suffix != ".log"):
            raise
    from rich.console import Console

    from structdump.sources.pack import pack

    status = Console(stderr=True).status("Packing")
    with tempfile.TemporaryDirectory(prefix="structdump-") as directory, status:
        packed = pack([path], directory, level="full")
        if len(packed) != 1:
            names = ", ".join(p.name for p in packed)
            raise SourceError(f"{path} holds {len(packed)} ranks; pack it and name two bundles: {names}")
        return load(packed[0].read_bytes())


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep the garbage collector off the records of a bundle, which all live on: a quarter of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
