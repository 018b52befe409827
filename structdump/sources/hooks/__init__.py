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

from structdump.sources.hooks.assembly import collect_triton, install_triton
from structdump.sources.hooks.bytecode import collect_code, install_bytecode
from structdump.sources.hooks.failures import install_failures
from structdump.sources.hooks.frameworks import collect_vllm
from structdump.sources.hooks.graphs import install_depyf, install_graphs
from structdump.sources.hooks.lowlevel import install_commands, install_ir
from structdump.sources.hooks.modules import install_modules
from structdump.sources.hooks.passes import install_passes
from structdump.sources.hooks.trace import install_trace
from structdump.sources.hooks.tuning import collect_configs, install_choices, install_configs
from structdump.sources.hub import HUB, Point
from structdump.sources.session import Session

HUB.points = (
    Point("trace_structured", "torch._dynamo.convert_frame", install_trace),
    Point("lazy_format_graph_code", "torch._dynamo.convert_frame", install_graphs),
    Point("bytecode", "torch._dynamo.convert_frame", install_bytecode),
    Point("metrics", "torch._dynamo.convert_frame", install_failures),
    Point("passes", "torch.fx.passes.graph_transform_observer", install_passes),
    Point("choices", "torch._inductor.select_algorithm", install_choices),
    Point("configs", "torch._inductor.runtime.autotune_cache", install_configs),
    Point("ir", "torch._inductor.debug", install_ir),
    Point("commands", "torch._inductor.cpp_builder", install_commands),
    Point("triton", "torch._inductor.runtime.triton_heuristics", install_triton),
    Point("load_by_key_path", "torch._inductor.codecache", install_modules),
    Point("depyf", "depyf.explain.enable_debugging", install_depyf),
)


def collect_last(session: Session) -> None:
    """Record in `session` what is only known when a capture ends."""
    for collect in (collect_code, collect_configs, collect_triton, collect_vllm):
        try:
            collect(session)
        except Exception as error:  # noqa: BLE001 # what one cannot find must not cost what the others can
            session.fail(collect.__name__, error)


__all__ = ["HUB", "collect_last"]
