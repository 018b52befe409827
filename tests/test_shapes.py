"""privacy="shapes": what stays and what goes, part by part; of whole runs see attacks/."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structdump.bundle.privacy import Privacy
from structdump.bundle.redact import Redactor
from structdump.bundle.shapes import Shapes
from structdump.bundle.shapes_graph import graph
from structdump.bundle.shapes_names import Names

GRAPH = """\
class GraphModule(torch.nn.Module):
    def forward(self, L_secret_: "f32[4, 16][16, 1]cpu", s0: "Sym(s0)"):
         # File: /srv/moe/router.py:12 in forward, code: gate = secret * 0.125
        gate: "f32[4, 16][16, 1]cpu" = L_secret_ * 0.125;  L_secret_ = None
        sum_1: "f32[4][1]cpu" = torch.ops.aten.sum.dim_IntList(gate, [-1], True);  gate = None
        routed: "f32[4][1]cpu" = torch.ops.moe_lib.route.default(sum_1, 3.5, "top-secret");  sum_1 = None
        view: "f32[2, 2][2, 1]cpu" = torch.ops.aten.reshape.default(routed, [2, 2]);  routed = None
        return (view,)
"""


def test_a_graph_keeps_its_topology_and_nothing_else():
    text = graph(GRAPH, Names())
    for kept in (
        "torch.ops.aten.sum.dim_IntList(",
        "[-1], True)",
        '"f32[4, 16][16, 1]cpu"',
        "[2, 2]",
        "Sym(s0)",
    ):
        assert kept in text
    for gone in ("secret", "gate", "0.125", "3.5", "moe_lib", "route", "router", "#"):
        assert gone not in text
    assert text.count("torch.ops.") == GRAPH.count("torch.ops.")
    compile(text, "graph", "exec")  # it is still Python


def test_the_same_name_has_the_same_token():
    names = Names()
    first, second = graph("    mine = theirs + 1\n", names), graph("    theirs = mine + 1\n", names)
    assert first == "    local_1 = local_2 + ...\n"
    assert second == "    local_2 = local_1 + ...\n"


def test_a_second_run_changes_nothing():
    once = graph(GRAPH, Names())
    assert graph(once, Names(again=True)) == once
    record = {
        "id": "0/0", "status": "failed", "function": {"name": "route", "file": "/srv/moe.py", "line": 3},
        "error": {"type": "acme.RouteError", "message": "no route for bob", "traceback": "ValueError: bob\n"},
        "recompile": {"reason": "0/0: L['bob'] == 3", "previous": "0/0"},
        "graph_breaks": [{"reason": "bob", "stack": [{"file": "/srv/moe.py", "line": 3, "name": "f"}]}],
    }  # fmt: skip
    once = Shapes().compile(record)
    assert "bob" not in json.dumps(once)
    assert "route" not in json.dumps(once).lower()
    assert Shapes(again=True).compile(once) == once


def test_a_text_that_is_left_out_cannot_be_guessed_by_its_digest():
    one, other = Shapes(), Shapes()
    assert one.same("a") == one.same("a") != one.same("b")
    assert other.same("b") == "<text-1>" == one.same("a")


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("triton_poi_fused__to_copy_add_mul_0", True),
        ("cpp_fused_native_layer_norm_3", True),
        ("extern_kernels.mm", True),
        ("aten.convolution", True),
        ("triton_poi_fused_acme_route_0", False),
        ("acme::route", False),
        ("cpp_fused_mul_bob_0", False),
    ],
)
def test_kernels_are_named_only_after_ops(name, kept):
    artifact = {"seq": 0, "kind": "kernel", "name": name, "kernel": {"name": name, "backend": "cpp"}}
    found = Shapes().artifact(artifact)
    assert (name in json.dumps(found)) == kept


@given(st.text(max_size=200))
def test_no_text_breaks_it_and_words_that_nobody_knows_go(text):
    text = f"{text} = zqxjkv({text})"
    assert "zqxjkv" not in graph(text, Names())


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=8), lambda c: st.lists(c, max_size=3), max_leaves=5
    )
)
def test_any_facts_are_survived(value):
    facts = {"zqxjkv": value, "key": value, "kernel": value, "submod_name": value, "ops_before": value}
    found = Shapes().artifact({"seq": 0, "kind": "event", "name": "x", "data": facts})
    assert "zqxjkv" not in json.dumps(found)


def test_nobody_pays_who_does_not_ask():
    code = "import sys, structdump.bundle.privacy; print([m for m in sys.modules if 'shapes' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_without_it_privacy_is_redaction():
    privacy = Privacy(Redactor(user="alex", home="/home/alex"))
    assert privacy.text("graph", "# /home/alex/x.py") == "# <path-1>/x.py"
    assert not privacy.shapes
    assert privacy.same("x") is None
    assert privacy.config({"redact_patterns": ["acme-.*"]})["redact_patterns"] == ["<pattern-1>"]
