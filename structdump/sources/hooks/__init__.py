"""The live hooks: the only room that knows the names of PyTorch's and depyf's internals.

structdump listens where depyf does (`depyf.prepare_debug`, depyf 0.20): at
`lazy_format_graph_code`, whose code object is swapped because the function has been imported in
many places; at `PyCodeCache.load_by_key_path`; and at Dynamo's bytecode hooks. It adds
`torch._logging._internal.trace_structured`, through which torch also sends, on a warm cache too,
what the other points no longer see (torch 2.9 to 2.13). It does not enter `prepare_debug` itself,
which replaces the bytecode that the user's program runs; a program that enters it gets depyf's
files as ever and passes through structdump's filter as well.

Every hook passes on to what was there before and returns what that returned. Each checks the
signature it expects, and is left out, and recorded, when a release of torch has another.
"""

from __future__ import annotations

from structdump.sources.hooks.bytecode import collect_code, install_bytecode
from structdump.sources.hooks.failures import install_failures
from structdump.sources.hooks.graphs import install_depyf, install_graphs
from structdump.sources.hooks.modules import install_modules
from structdump.sources.hooks.trace import install_trace
from structdump.sources.hub import HUB, Point
from structdump.sources.session import Session

HUB.points = (
    Point("trace_structured", "torch._dynamo.convert_frame", install_trace),
    Point("lazy_format_graph_code", "torch._dynamo.convert_frame", install_graphs),
    Point("bytecode", "torch._dynamo.convert_frame", install_bytecode),
    Point("metrics", "torch._dynamo.convert_frame", install_failures),
    Point("load_by_key_path", "torch._inductor.codecache", install_modules),
    Point("depyf", "depyf.explain.enable_debugging", install_depyf),
)


def collect_last(session: Session) -> None:
    """Record in `session` what is only known when a capture ends."""
    collect_code(session)


__all__ = ["HUB", "collect_last"]
