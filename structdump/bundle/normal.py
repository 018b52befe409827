"""Names and texts without what differs from run to run: uuids and memory addresses."""

from __future__ import annotations

import re

# Dynamo appends a uuid to the name of each compiled function
# (torch/_dynamo/output_graph.py, `unique_id(..., with_uuid=True)`, since 2.8).
_UUID = re.compile(r"(__compiled_fn_-?\d+)_[0-9a-f]{8}(?:[_-][0-9a-f]{4}){3}[_-][0-9a-f]{12}")
_ADDRESS = re.compile(r"( at )0x[0-9a-fA-F]{6,16}\b")
# `run_pre_grad_passes` appends id(model.graph) (torch/_inductor/compile_fx.py).
_GRAPH_ID = re.compile(r"(# graph id: )\d{6,}")


def normalise(text: str) -> str:
    """Return `text` with uuids dropped and memory addresses replaced by `0x…`.

    Example::

        >>> normalise("<object at 0x7f30aa12b0d0>")
        '<object at 0x…>'
    """
    if "__compiled_fn_" in text:
        text = _UUID.sub(r"\1", text)
    if " at 0x" in text:
        text = _ADDRESS.sub(r"\g<1>0x…", text)
    if "# graph id: " in text:
        text = _GRAPH_ID.sub(r"\g<1>…", text)
    return text
