"""How much of what torch reports of a process is in its bundle: the log read by means of its own."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from trace_logs import oracle

import structdump

_UUID = re.compile(r"(__compiled_fn_-?\d+)_[0-9a-f]{8}(?:[_-][0-9a-f]{4}){3}[_-][0-9a-f]{12}")
_DEFINED = re.compile(r"^(\w+) = async_compile\.\w+\(", re.MULTILINE)
Thing = tuple[str, str]  # compile id, and a text or a name


class Recall(NamedTuple):
    """What existed, by sort, and what of that is missing in the bundle."""

    existed: dict[str, Counter[Thing]]
    missing: dict[str, Counter[Thing]]

    def row(self) -> dict[str, str]:
        """`found/existed` of each sort."""
        return {
            sort: f"{sum(things.values()) - sum(self.missing[sort].values())}/{sum(things.values())}"
            for sort, things in self.existed.items()
        }


def plain(text: str) -> str:
    """Without what is random in a run: uuids and addresses."""
    text = re.sub(r"( at )0x[0-9a-f]{6,16}\b", r"\g<1>0x…", _UUID.sub(r"\1", text))
    return re.sub(r"(# graph id: )\d{6,}", r"\g<1>…", text)


def existing(log: bytes) -> dict[str, Counter[Thing]]:
    """What the log of a process says there was: compiles, graphs, output codes, kernels."""
    found: dict[str, Counter[Thing]] = {
        "compiles": Counter(), "graphs": Counter(), "output code": Counter(), "kernels": Counter()
    }  # fmt: skip
    for record in oracle(log):
        if record.compile_id is None:
            continue
        where = record.compile_id
        found["compiles"][where, ""] = 1
        name = record.values.get("name", "") if record.name == "artifact" else record.name
        if name.endswith("_graph") and record.payload:
            found["graphs"][where, plain(record.payload)] += 1
        if record.name == "inductor_output_code" and record.payload:
            found["output code"][where, plain(record.payload)] += 1
            for kernel in set(_DEFINED.findall(record.payload)):
                found["kernels"][where, kernel] += 1
    return found


def held(bundle: structdump.Bundle) -> dict[str, Counter[Thing]]:
    """What the bundle holds of the same sorts."""
    found: dict[str, Counter[Thing]] = {
        "compiles": Counter({(c.id, ""): 1 for c in bundle.compiles}),
        "graphs": Counter(), "output code": Counter(), "kernels": Counter()
    }  # fmt: skip
    codes = {}
    for a in bundle.artifacts:
        where = a.compile_id or ""
        if a.kind == "graph" and a.text is not None:
            found["graphs"][where, a.text] += 1
        elif a.kind == "output_code" and a.text is not None:
            found["output code"][where, a.text] += 1
            codes.setdefault(where, []).append(a.text)
    for k in bundle.kernels():
        # A kernel's text must stand in an output code of its compile, to the byte.
        if k.kernel.backend != "extern" and any(
            (k.text or "\0") in code for code in codes[k.compile_id or ""]
        ):
            found["kernels"][k.compile_id or "", k.name] += 1
    return found


def recall(trace: Path, bundle: structdump.Bundle) -> Recall:
    """Compare the one log in the directory `trace` with the bundle of the same process."""
    (log,) = trace.iterdir()
    there = existing(log.read_bytes())
    here = held(bundle)
    return Recall(there, {sort: things - here[sort] for sort, things in there.items()})
