"""Everything torch.compile did, in one small, structured, safe file.

The public names load when they are first used, so importing structdump imports neither torch nor
depyf, nor anything else of weight.
"""

from __future__ import annotations

# Without `typing`, whose import would take longer than all else here.
TYPE_CHECKING = False
__version__ = "0.1.0"

if TYPE_CHECKING:
    from typing import Any

    from structdump.analyze.diff import diff as diff
    from structdump.analyze.extract import extract as extract
    from structdump.analyze.rank_diff import diff_ranks as diff_ranks
    from structdump.bundle.merge import merge as merge
    from structdump.bundle.reader import LoadedBundle as Bundle
    from structdump.bundle.reader import load as load
    from structdump.bundle.scan import scan as scan
    from structdump.config import DumpConfig as DumpConfig
    from structdump.errors import StructdumpError as StructdumpError
    from structdump.sources.gather import gather as gather
    from structdump.sources.live import capture as capture
    from structdump.sources.pack import pack as pack

_HOMES = {
    "Bundle": ("structdump.bundle.reader", "LoadedBundle"),
    "DumpConfig": ("structdump.config", "DumpConfig"),
    "StructdumpError": ("structdump.errors", "StructdumpError"),
    "diff": ("structdump.analyze.diff", "diff"),
    "diff_ranks": ("structdump.analyze.rank_diff", "diff_ranks"),
    "extract": ("structdump.analyze.extract", "extract"),
    "gather": ("structdump.sources.gather", "gather"),
    "capture": ("structdump.sources.live", "capture"),
    "pack": ("structdump.sources.pack", "pack"),
    "merge": ("structdump.bundle.merge", "merge"),
    "scan": ("structdump.bundle.scan", "scan"),
    "load": ("structdump.bundle.reader", "load"),
}

__all__ = [
    "Bundle",
    "DumpConfig",
    "StructdumpError",
    "__version__",
    "capture",
    "diff",
    "diff_ranks",
    "extract",
    "gather",
    "load",
    "merge",
    "pack",
    "scan",
]


def __getattr__(name: str) -> Any:
    try:
        module, attribute = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module 'structdump' has no attribute {name!r}") from None
    from importlib import import_module

    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
