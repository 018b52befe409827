"""A capture and a TORCH_TRACE log of the same process say the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import structdump
from structdump.config import DumpConfig
from structdump.sources.log_files import find_logs
from structdump.sources.session import Session
from structdump.sources.trace_events import TraceMapper
from structdump.sources.trace_log import read_log

pytestmark = pytest.mark.slow

PROGRAM = """
import torch

def inner(x):
    print("break")
    return x.relu()

@torch.compile
def f(x, k):
    return inner((x * k).sin()) + 1

for k in (2, 3):
    f(torch.randn(5, requires_grad=True), k).sum().backward()
torch.compile(lambda x: x.cos(), fullgraph=True)(torch.randn(3))
try:
    torch.compile(lambda x: inner(x), fullgraph=True)(torch.randn(3))
except Exception as error:
    print(type(error))
ep = torch.export.export(torch.nn.Linear(2, 2), (torch.randn(1, 2),), strict=True)
torch._inductor.aoti_compile_and_package(ep)
"""


def test_live_and_log_agree(run: Callable, script: Callable[[str], Path], tmp_path: Path) -> None:
    done = run(
        script(PROGRAM),
        STRUCTDUMP_LEVEL="full",
        STRUCTDUMP_REDACT="0",
        STRUCTDUMP_OUTPUT=str(tmp_path / "live.json.zst"),
        TORCH_TRACE=str(tmp_path / "trace"),
    )
    assert done.code == 0, done.err
    live = structdump.load(tmp_path / "live.json.zst")
    config = DumpConfig(level="full", redact=False)
    session = Session(config, lambda: tmp_path / "log.json.zst", source="trace_log")
    (log,) = find_logs(tmp_path / "trace")
    report = read_log(log, TraceMapper(session.record, session.book))
    assert report.problems() == []
    session.finish()
    packed = structdump.load(tmp_path / "log.json.zst")

    def described(bundle: structdump.Bundle) -> dict[tuple, set[str | None]]:
        found: dict[tuple, set[str | None]] = {}
        for a in bundle.artifacts:
            if a.kind != "trace":
                # Live, the direction is known; from a log it is inferred: it must be the same one.
                key = (a.compile_id, a.kind, a.stage, a.phase, a.direction, a.name, a.attempt)
                found.setdefault(key, set()).add(a.digest)
        return found

    from_log, from_live = described(packed), described(live)
    assert len(from_log) > 60
    assert {k: v for k, v in from_live.items() if k in from_log} == from_log
    statuses = {c.id: c.status for c in packed.compiles}
    assert statuses["0/0#2"] == "ok"  # strict export resets torch's counters
    assert "failed" in statuses.values()

    def of_stack(compile_: structdump.bundle.model.Compile) -> dict:
        # A log has stacks of compiles without a Dynamo frame; live they would cost a walk per record.
        return compile_.model_dump(exclude={"stack"} if compile_.function is None else set())

    assert [of_stack(c) for c in live.compiles] == [of_stack(c) for c in packed.compiles]
