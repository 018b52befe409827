"""Inductor's IR in the bundle is what torch itself prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import structdump
from structdump.bundle.normal import normalise

PROGRAM = """
import json, sys
import torch, torch._inductor.debug as debug
import structdump

printed = []

def logging(stage, log):
    def logged(nodes):
        log(nodes)
        printed.append([stage, "\\n\\n\\n".join(node.debug_str() for node in nodes)])
    return logged

def changing(log):
    # Fusion seldom changes a node on a CPU, and what has changed must be printed anew.
    def logged(nodes):
        node = nodes[-1].get_nodes()[-1]
        former, node.unmet_dependencies = node.unmet_dependencies, type(node.unmet_dependencies)()
        assert former
        log(nodes)
        node.unmet_dependencies = former
    return logged

debug.log_ir_pre_fusion = logging("pre_fusion", debug.log_ir_pre_fusion)
debug.log_ir_post_fusion = changing(logging("post_fusion", debug.log_ir_post_fusion))

def f(x, w, k):
    y = torch.nn.functional.conv2d(x, w).relu()
    return y.softmax(-1).sum(1) * k, x.argmax(-1), x.cumsum(0), (x @ x.transpose(-1, -2)).mean((-2, -1))

with structdump.capture(sys.argv[1] + "/b.json.zst", level="low", kinds="ir", redact=False):
    compiled = torch.compile(f, dynamic=True)
    compiled(torch.randn(2, 3, 16, 16), torch.randn(4, 3, 3, 3, requires_grad=True), 3)[0].sum().backward()
with open(sys.argv[1] + "/printed.json", "w") as file:
    json.dump(printed, file)
"""


@pytest.mark.slow
def test_ir_is_what_torch_prints(run, script, tmp_path: Path) -> None:
    done = run(script(PROGRAM), str(tmp_path))
    assert done.code == 0, done.err
    bundle = structdump.load(tmp_path / "b.json.zst")
    assert not bundle.hook_errors
    kept = [[a.stage, a.text] for a in bundle.artifacts if a.stage in ("pre_fusion", "post_fusion")]
    assert [stage for stage, _ in kept] == ["pre_fusion", "post_fusion"] * 2
    assert kept == [
        [stage, normalise(text)] for stage, text in json.loads((tmp_path / "printed.json").read_text())
    ]
