"""What differs between two bundles, and what doesn't count."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from conftest import Captured, capture_workload
from dump_samples import members, unpack
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_bundles import bundle_of, write_small

import structdump
from structdump.analyze.difference import PARTS, Difference
from structdump.analyze.graph_diff import diff_graphs, same_graph
from structdump.analyze.text_diff import CONTEXT, diff_lines
from structdump.bundle.align import align
from structdump.cli import main
from structdump.errors import UsageError
from structdump.report.diff_terminal import lines_of

GRAPH = """class GraphModule(torch.nn.Module):
    def forward(self, arg0_1: "f32[8, 4][4, 1]cpu", arg1_1: "f32[4, 4][4, 1]cpu"):
        # File: /home/alex/run/train.py:12 in forward, code: return (x @ w).relu() * 2
        mm: "f32[8, 4][4, 1]cpu" = torch.ops.aten.mm.default(arg0_1, arg1_1);  arg0_1 = None
        relu: "f32[8, 4][4, 1]cpu" = torch.ops.aten.relu.default(mm);  mm = None
        mul: "f32[8, 4][4, 1]cpu" = torch.ops.aten.mul.Tensor(relu, 2);  relu = None
        return (mul,)
"""
RENAMED = (
    GRAPH.replace("mm:", "mm_7:").replace("(mm)", "(mm_7)").replace("mm = None", "mm_7 = None")
    .replace("/home/alex/run", "/srv/sam")
    .replace("GraphModule", "<lambda>")
)  # fmt: skip
OTHER = GRAPH.replace("relu, 2)", "relu, 3)")
KERNEL = """# kernel path: /tmp/torchinductor_alex/ab/cab{number}.py
@triton.jit
def triton_poi_fused_relu_{number}(in_ptr0, xnumel, XBLOCK: tl.constexpr):
    tmp0 = tl.load(in_ptr0)
    tl.store(in_ptr0, {value})
"""
OUTPUT = """# AOT ID: ['{id}_inference']
async_compile = AsyncCompile()

cpp_fused_{id} = async_compile.cpp_pybinding(['float*'], r'''code {id}''')

async_compile.wait(globals())
def call(args):
    arg0_1, = args
    cpp_fused_{id}(arg0_1)
    return (arg0_1, {id})
"""
ERROR = {"type": "ValueError", "message": "no lowering"}


def graph(stage: str = "captured", text: str | None = GRAPH, **fields: Any) -> dict[str, Any]:
    return {"kind": "graph", "stage": stage, "name": stage, "compile_id": "0/0", "text": text, **fields}


def one_pass(name: str, text: str | None = GRAPH, **fields: Any) -> dict[str, Any]:
    return {"kind": "pass", "stage": "post_grad_passes", "name": name, "phase": "after"} | {
        "compile_id": "0/0", "text": text, **fields
    }  # fmt: skip


def kernel(
    number: int, value: str = "tmp0", name: str = "triton_poi_fused_relu", **facts: Any
) -> dict[str, Any]:
    known = {"name": f"{name}_{number}", "backend": "triton", "ops": ["aten.relu"], **facts}
    text = KERNEL.format(number=number, value=value).replace("triton_poi_fused_relu", name)
    return {"kind": "kernel", "name": known["name"], "compile_id": "0/0", "kernel": known, "text": text}


def config(number: int, **values: Any) -> dict[str, Any]:
    name = f"triton_poi_fused_relu_{number}"
    facts = {"name": name, "backend": "triton"}
    return {
        "kind": "best_config",
        "name": name,
        "compile_id": "0/0",
        "kernel": facts,
        "data": values,
        "text": None,
    }


def output(identity: int, **fields: Any) -> dict[str, Any]:
    text = OUTPUT.format(id=identity)
    return {"kind": "output_code", "stage": "output_code", "name": "inductor_output_code"} | {
        "compile_id": "0/0", "direction": "inference", "text": text, **fields
    }  # fmt: skip


class Two:
    """Builds two bundles side by side and compares them."""

    def __init__(self, directory: Path):
        self.directory = directory

    def __call__(
        self,
        a: Sequence[dict[str, Any]],
        b: Sequence[dict[str, Any]],
        *,
        both: dict[str, Any] | None = None,
        **only_b: Any,
    ) -> Difference:
        left = bundle_of(self.directory / "a", *a, **(both or {}))
        right = bundle_of(self.directory / "b", *b, **{**(both or {}), **only_b})
        return structdump.diff(left, right)


@pytest.fixture
def two(tmp_path: Path) -> Two:
    return Two(tmp_path)


def shown(difference: Difference) -> str:
    return "\n".join(str(line) for line in lines_of(difference))


# What does not count


def test_names_paths_and_numbers_are_no_difference(two: Two) -> None:
    a = [graph(), graph("post_grad", name="__compiled_fn_1_0a1b2c3d"), kernel(0), kernel(1, "tmp0 + 1")]
    b = [graph(text=RENAMED), graph("post_grad", RENAMED), kernel(7), kernel(9, "tmp0 + 1")]
    assert RENAMED != GRAPH
    found = two(a, b)
    assert found.same, shown(found)
    assert shown(found).endswith("no difference")


def test_what_one_left_out_is_no_difference(two: Two) -> None:
    a = [graph(), one_pass("fuse"), graph("post_grad"), kernel(0)]
    b = [graph(), one_pass("fuse", None), graph("post_grad")]
    found = two(a, b, head={"level": "low"})
    assert found.same, shown(found)
    assert "level" in found.notes[0]
    assert "pass fuse" in found.notes[1]
    assert "kernels of 0/0" in found.notes[2]


def test_what_a_directory_does_not_tell_is_no_difference(two: Two) -> None:
    record = {"id": "0/0", "function": {"name": "f", "file": "train.py"}, "symbols": {"s0": {"hint": 3}}}
    bare = {"id": "__compiled_fn_1", "function": None}
    there = {"producer": {"source": "directory"}}
    moved = graph(compile_id="__compiled_fn_1", text=re.sub(r"\]\[[\d, ]*\]cpu", "]", GRAPH))
    assert '"f32[8, 4]"' in moved["text"]
    a = bundle_of(two.directory / "a", graph(), compiles=[record], versions={"torch": "2.13.0"})
    for function in (None, {"name": "f"}):
        bare["function"] = function
        b = bundle_of(two.directory / "b", moved, compiles=[bare], head=there)
        for found in (structdump.diff(a, b), structdump.diff(b, a)):
            assert found.same, shown(found)
    other = bundle_of(two.directory / "b", moved | {"text": OTHER}, compiles=[bare], head=there)
    assert not structdump.diff(a, other).same


def test_a_signature_may_be_printed_over_many_lines() -> None:
    head, parameters, tail = re.split(r"\(self, (.*)\):", GRAPH, maxsplit=1)
    lines = "".join(
        f"        {p},  # PlainAOTInput(idx=0)\n" for p in re.findall(r'\w+: "[^"]*"', parameters)
    )
    wide = f"{head}(\n        self,\n{lines}    ):{tail}"
    assert same_graph(GRAPH, wide)
    assert not same_graph(GRAPH, wide.replace("arg1_1: ", 'more: "f32[]",\n        arg1_1: '))


def test_pieces_that_a_directory_does_not_tell_apart(two: Two) -> None:
    texts = [GRAPH, GRAPH.replace("aten.mm", "aten.bmm")]
    pieces = [{"index": n, "name": f"submod_{n}"} for n in range(2)]
    a = [
        graph(stage, text, subgraph=p)
        for text, p in zip(texts, pieces, strict=True)
        for stage in ("pre_grad", "forward")
    ]
    there = {"head": {"producer": {"source": "directory"}}}
    b = [
        graph("pre_grad", texts[0]),
        graph("pre_grad", texts[1]),
        graph("forward", texts[1].replace("relu", "relu_9")),
    ]
    found = two(a, b, **there)
    assert found.same, shown(found)
    assert "forward" in found.notes[-1]  # two and one: which is which cannot be told
    first = two(a, [b[0], graph("pre_grad", OTHER)], **there).compiles[0].first
    assert first is not None
    assert (first.stage.label, first.stage.seq_b) == ("pre-grad (submod_1)", 1)


def test_output_codes_may_come_in_any_order(two: Two) -> None:
    a = [output(n, graph_id=f"model__{n}_inference") for n in range(3)]
    found = two(a, [a[2], a[0], a[1]])
    assert found.same, shown(found)
    found = two(a, [a[0], a[2]])
    assert [s.seq_a for s in found.compiles[0].only_a] == [1]
    assert found.compiles[0].first is None


@pytest.mark.parametrize("archive", ["llama_h200", "vllm_cold"])
def test_a_real_dump_and_itself_elsewhere_are_the_same(tmp_path: Path, archive: str) -> None:
    unpack(archive, tmp_path / "here")
    unpack(archive, tmp_path / "there")
    assert main(["diff", str(tmp_path / "here"), str(tmp_path / "there")]) == 0


def test_a_warm_start_is_no_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unpack("vllm_cold", tmp_path / "cold")
    unpack("vllm_warm", tmp_path / "warm")
    assert main(["diff", str(tmp_path / "cold"), str(tmp_path / "warm")]) == 0
    assert "A is cold, B is warm" in capsys.readouterr().out


# Where graphs part


def test_the_first_pass_that_differs_is_named(two: Two) -> None:
    a = [graph(), one_pass("one"), one_pass("two"), one_pass("three"), graph("post_grad")]
    b = [
        graph(text=RENAMED),
        one_pass("one"),
        one_pass("two", OTHER),
        one_pass("three", OTHER),
        graph("post_grad", OTHER),
    ]
    (compiled,) = two(a, b).compiles
    assert compiled.first is not None
    assert compiled.first.stage.label == "pass two after (post_grad_passes)"
    assert compiled.first.last_same is not None
    assert compiled.first.last_same.label == "pass one after (post_grad_passes)"
    assert [stage.label for stage in compiled.later] == ["pass three after (post_grad_passes)", "post-grad"]
    assert compiled.first.text is not None
    assert compiled.first.text.lines == [
        "@@ line 4 train.py:12 in forward: return (x @ w).relu() * 2 @@",
        ' mm: "f32[8, 4][4, 1]cpu" = torch.ops.aten.mm.default(arg0_1, arg1_1)',
        ' relu: "f32[8, 4][4, 1]cpu" = torch.ops.aten.relu.default(mm)',
        '-mul: "f32[8, 4][4, 1]cpu" = torch.ops.aten.mul.Tensor(relu, 2)',
        '+mul: "f32[8, 4][4, 1]cpu" = torch.ops.aten.mul.Tensor(relu, 3)',
        " return mul",
    ]


def test_a_pass_that_ran_on_one_side_alone_is_the_reason(two: Two) -> None:
    a = [graph(), one_pass("one"), one_pass("two", changed=False), graph("post_grad")]
    b = [
        graph(),
        one_pass("one"),
        one_pass("mine", OTHER, changed=True),
        one_pass("two", OTHER, changed=False),
    ]
    (compiled,) = two(a, [*b, graph("post_grad", OTHER)]).compiles
    assert compiled.first is not None
    assert compiled.first.stage.label.startswith("pass mine")
    assert compiled.first.shown is not None
    assert compiled.first.shown.label.startswith("pass two")
    assert [s.name for s in compiled.only_b] == ["mine"]


def test_a_pass_that_the_other_side_may_have_left_out_is_no_reason(two: Two) -> None:
    a = [graph(), one_pass("mine", OTHER, changed=True), graph("post_grad", OTHER)]
    (compiled,) = two(a, [graph(), graph("post_grad")], head={"level": "low"}).compiles
    assert compiled.first is not None
    assert compiled.first.stage.label == "post-grad"
    assert compiled.first.between == []


def test_counts_tell_where_texts_were_not_kept(two: Two) -> None:
    a = [graph(), graph("forward", None, nodes=3, ops={"aten.mm": 2}), graph("joint", None, nodes=1, ops={})]
    b = [graph(), graph("forward", None, nodes=3, ops={"aten.mm": 1}), graph("joint", None, nodes=1, ops={})]
    (compiled,) = two(a, b).compiles
    assert compiled.first is not None
    assert compiled.first.stage.stage == "forward"
    assert compiled.first.text is None
    assert compiled.first.ops == {"aten.mm": -1}
    assert compiled.later == []


def test_one_more_op_renames_nothing_else() -> None:
    more = GRAPH.replace(
        "        mul:", '        tanh: "f32[8, 4][4, 1]cpu" = torch.ops.aten.tanh.default(relu)\n        mul:'
    ).replace("Tensor(relu, 2)", "Tensor(tanh, 2)")
    found = diff_graphs(GRAPH, more)
    assert found is not None
    assert found.ops == {"aten.tanh.default": 1}
    assert [line[0] for line in found.changed] == ["+", "-", "+"]


def test_order_and_types_are_told_apart_from_other_changes() -> None:
    lines = GRAPH.split("\n")
    a = "\n".join([*lines[:5], lines[4].replace("relu", "sin"), *lines[5:]])
    b = "\n".join([*lines[:4], lines[4].replace("relu", "sin"), *lines[4:]])
    found = diff_graphs(a, b)
    assert found is not None
    assert found.only_order
    found = diff_graphs(GRAPH, GRAPH.replace("f32[8, 4]", "bf16[8, 4]"))
    assert found is not None
    assert (found.types, found.ops) == (4, {})
    assert [line[0] for line in found.changed] == ["-", "+"] * 3  # the rest is only counted


def test_inputs_unpacked_in_one_line_keep_their_names() -> None:
    head, tail = "def call(self, args):\n    ", "    return (arg1_1, )\n"
    a = f"{head}arg0_1, arg1_1, arg2_1 = args\n    f(arg0_1)\n    g(arg2_1)\n{tail}"
    b = f"{head}arg0_1, arg1_1 = args\n    f(arg0_1)\n{tail}"
    found = diff_graphs(a, b)
    assert found is not None
    assert found.changed == ["-arg0_1, arg1_1, arg2_1 = args", "+arg0_1, arg1_1 = args", "-g(arg2_1)"]


def test_a_tuning_block_before_the_code_is_no_code() -> None:
    inner = "async_compile = AsyncCompile()\nasync_compile.wait(globals())\n"
    block = f'r"""\nCompile-time auto-tuning block: \n{inner}"""\n'
    a, b = block + OUTPUT.format(id=1), OUTPUT.format(id=1)
    assert same_graph(a, b)
    assert not same_graph(a, block + OUTPUT.format(id=2))


# Kernels, configurations, records, environment


def test_kernels_are_paired_by_what_they_do(two: Two) -> None:
    a = [kernel(0), kernel(1, "tmp0 + 1"), kernel(2, "7", name="triton_red_fused_sum", ops=["aten.sum"])]
    b = [kernel(0, "tmp0 + 1"), kernel(1), kernel(2, "8", name="triton_per_fused_mm", ops=["aten.mm"])]
    found = two(a, b).kernels
    assert [(k.how, k.name_a, k.name_b) for k in found] == [
        ("removed", "triton_red_fused_sum_2", None),
        ("added", None, "triton_per_fused_mm_2"),
    ]
    assert two([kernel(0)], [kernel(0, name="triton_poi_fused_other", ops=["aten.sin"])]).same
    (changed,) = two([kernel(0)], [kernel(0, "tmp0 * 2", calls=3)]).kernels
    assert (changed.how, [(c.what, c.a, c.b) for c in changed.changes]) == ("changed", [("calls", 1, 3)])
    assert [line for line in changed.lines if line[0] in "+-"] == [
        "-    tl.store(in_ptr0, tmp0)",
        "+    tl.store(in_ptr0, tmp0 * 2)",
    ]


def test_configurations_are_told_with_their_times(two: Two) -> None:
    a = [kernel(0), config(0, XBLOCK=64, num_warps=4, time_taken_ms=131, configs_hash="a")]
    b = [kernel(5), config(5, XBLOCK=128, num_warps=4, time_taken_ms=90, configs_hash="b")]
    (found,) = two(a, b).configs
    assert (found.a, found.b) == ({"XBLOCK": 64}, {"XBLOCK": 128})
    assert (found.seconds_a, found.seconds_b) == (0.131, 0.09)
    assert two(a, [kernel(5), config(5, XBLOCK=64, num_warps=4, time_taken_ms=7)]).same


def test_winners_of_autotuning(two: Two) -> None:
    def tuned(winner: str, seconds: float) -> dict[str, Any]:
        choices = [{"name": winner, "seconds": seconds, "config": {}}]
        facts = {"operation": "mm", "shapes": ["8x8"], "winner": winner, "choices": choices}
        return {"kind": "autotune", "name": "mm", "compile_id": "0/0", "autotune": facts, "text": None}

    (found,) = two([tuned("triton_mm_3", 2e-6)], [tuned("mm", 1e-6)]).autotune
    assert (found.a, found.b, found.seconds_a) == ({"winner": "triton_mm"}, {"winner": "mm"}, 2e-6)
    assert two([tuned("triton_mm_3", 2e-6)], [tuned("triton_mm_8", 1e-6)]).same


def test_guards_are_sets(two: Two) -> None:
    def guards(*lines: str) -> dict[str, Any]:
        text = "\n".join(f"| +- {line}  # train.py:3" for line in lines)
        return {"kind": "guards", "stage": "cpp_guards", "name": "g", "compile_id": "0/0", "text": text}

    one, other = "TYPE_MATCH: ___check_type_id(L['x'], {})", "LENGTH: len(L['y']) == 2"
    assert two([guards(one.format(139674731777696), other)], [guards(other, one.format(93933319527392))]).same
    (compiled,) = two([guards(one, other)], [guards(one, "LENGTH: len(L['y']) == 3")]).compiles
    assert compiled.guards is not None
    assert (compiled.guards.removed, compiled.guards.added) == ([other], ["LENGTH: len(L['y']) == 3"])


def test_long_guards_show_what_differs_between_them(two: Two) -> None:
    def guards(threads: int, extra: str = "") -> dict[str, Any]:
        state = '"autocast_state":[' + "false," * 60 + f'],"num_threads":{threads},"rest":[' + "0," * 60 + "]"
        text = f"GLOBAL_STATE: ___check_global_state() against {{{state}}}\n{extra}"
        return {"kind": "guards", "stage": "cpp_guards", "name": "g", "compile_id": "0/0", "text": text}

    lines = shown(two([guards(1, "A: only")], [guards(16, "B: only")])).splitlines()
    at = lines.index("  guards: 2 only in A, 2 only in B")
    told = [line.strip() for line in lines[at + 1 : at + 5]]
    assert [line[0] for line in told] == ["-", "-", "+", "+"]
    assert '"num_threads":1,' in told[1]
    assert '"num_threads":16,' in told[2]
    assert max(map(len, told)) < 120


def test_records_and_compiles_of_one_side(two: Two) -> None:
    function = {"name": "f", "file": "/home/alex/train.py"}
    first = {"id": "0/0", "function": function, "status": "ok", "seconds": 1.0}
    again = {"id": "0/1", "function": function, "recompile": {"reason": "0/0: size of 'x'"}}
    failed = first | {
        "status": "failed",
        "error": ERROR,
        "graph_breaks": [{"reason": "print"}],
        "seconds": 9.0,
    }
    a = bundle_of(two.directory / "a", graph(), compiles=[first])
    b = bundle_of(two.directory / "b", graph(), compiles=[failed, again])
    found = structdump.diff(a, b, times=True)
    assert [(c.part, c.what) for c in found.compiles[0].changes] == [
        ("compiles", "status"), ("compiles", "error"), ("breaks", "graph break"), ("times", "seconds"),
    ]  # fmt: skip
    assert found.only_b == ["0/1 f, as 0/0: size of 'x'"]
    assert all(c.part != "times" for c in structdump.diff(a, b).compiles[0].changes)
    assert structdump.diff(a, b, ignore=["compiles", "breaks"]).same


def test_environment_without_what_does_not_concern_compiling(two: Two) -> None:
    here = {
        "versions": {"torch": "2.13.0", "structdump": "0.1.0"},
        "configs": {"torch._inductor.config": {"debug_dir": "/tmp/a/b"}},
        "variables": {"TORCHINDUCTOR_CACHE_DIR": "/tmp/a", "RANK": "0", "PYTHONHASHSEED": "1"},
    }
    there = {
        "versions": {"torch": "2.13.0", "structdump": "0.2.0"},
        "configs": {"torch._inductor.config": {"debug_dir": "/tmp/c/b"}},
        "variables": {"TORCHINDUCTOR_CACHE_DIR": "/tmp/b", "RANK": "1", "PYTHONHASHSEED": "2"},
    }
    assert two([graph()], [graph()], both=here, **there).same
    changed = {
        **there,
        "versions": {"torch": "2.12.0"},
        "configs": {"torch._inductor.config": {"max_autotune": True}},
    }
    found = two([graph()], [graph()], both=here, **changed)
    assert [(c.what, c.b) for c in found.environment] == [
        ("torch", "2.12.0"),
        ("torch._inductor: debug_dir", None),
        ("torch._inductor: max_autotune", True),
    ]


def test_another_torch_gives_a_short_answer(two: Two) -> None:
    """As when one release decomposes an operation that the other keeps, in 40 layers."""
    last = '        x{m}: "f32[8]" = torch.ops.aten.mm.default(y{n}, w)\n'
    layer = '        y{n}: "f32[8]" = torch.ops.aten.silu.default(x{n})\n' + last
    parts = (
        '        s{n}: "f32[8]" = torch.ops.aten.sigmoid.default(x{n})\n'
        '        y{n}: "f32[8]" = torch.ops.aten.mul.Tensor(x{n}, s{n})\n' + last
    )
    head, tail = (
        'class M(Module):\n    def forward(self, x0: "f32[8]", w: "f32[8]"):\n',
        "        return (x40,)\n",
    )
    texts = [head + "".join(each.format(n=n, m=n + 1) for n in range(40)) + tail for each in (layer, parts)]
    found = two(
        [graph(), graph("post_grad", texts[0])], [graph(), graph("post_grad", texts[1])],
        both={"versions": {"torch": "2.13.0"}}, versions={"torch": "2.12.1"},
    )  # fmt: skip
    first = found.compiles[0].first
    assert first is not None
    assert first.text is not None
    assert first.text.ops == {"aten.mul.Tensor": 40, "aten.sigmoid.default": 40, "aten.silu.default": -40}
    text = shown(found)
    assert "torch  2.13.0 → 2.12.1" in text
    assert "the graphs part at post-grad" in text
    assert len(text.splitlines()) < 60


def test_every_part_can_be_ignored(two: Two) -> None:
    a = bundle_of(two.directory / "a", graph(), kernel(0), config(0, XBLOCK=1), versions={"torch": "1"})
    b = bundle_of(
        two.directory / "b", graph(text=OTHER), kernel(0, "0"), config(0, XBLOCK=2), versions={"torch": "2"},
        compiles=[{"id": "0/0", "function": {"name": "f"}, "status": "failed", "error": ERROR}],
    )  # fmt: skip
    found = structdump.diff(a, b)
    told = {
        "env": found.environment,
        "graphs": [c.first for c in found.compiles],
        "kernels": found.kernels,
        "configs": found.configs,
    }
    assert all(told.values())
    assert structdump.diff(a, b, ignore=PARTS).same
    for part in told:
        rest = structdump.diff(a, b, ignore=[part])
        assert not rest.same
        assert rest.ignored == [part]
    with pytest.raises(UsageError, match="nothing called 'graph' to ignore; there are env, compiles, graphs"):
        structdump.diff(a, b, ignore=["graph"])


# The command


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = tmp_path / "a" / "small.json.zst", tmp_path / "b" / "small.json.zst"
    bundle_of(tmp_path / "a", graph(), versions={"torch": "1"})
    bundle_of(tmp_path / "b", graph(text=OTHER.replace("3)", "'\x1b[31m')")), versions={"torch": "\x1b[2J2"})
    assert main(["diff", str(a), str(a)]) == 0
    assert capsys.readouterr().out.rstrip().endswith("no difference")
    assert main(["diff", str(a), str(b)]) == 1
    out = capsys.readouterr().out
    assert "the graphs part at captured" in out
    assert "\x1b" not in out
    assert main(["diff", str(a), str(b), "--ignore", "env, graphs"]) == 0
    assert "(ignored: env, graphs)" in capsys.readouterr().out
    assert main(["diff", str(a), str(b), "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["same"] is False
    assert data["compiles"][0]["first"]["stage"]["label"] == "captured"
    assert main(["diff", str(a), str(b), "--ignore", "wonder"]) == 2
    assert main(["diff", str(a), str(tmp_path / "none.json.zst")]) == 3


# Properties

LINES = st.lists(
    st.sampled_from(["a", "b", "c", "x = f(a)", "  return (x, y)", 'def forward(self, x: "f32[2]"):'])
)


@given(LINES, LINES)
def test_alignment_pairs_equal_items_in_order(a: list[str], b: list[str]) -> None:
    pairs = align(a, b)
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(p[0] < q[0] and p[1] < q[1] for p, q in pairwise(pairs))
    assert align(a, a) == [(i, i) for i in range(len(a))]


@given(LINES, LINES)
def test_a_diff_of_lines_says_how_to_get_from_one_to_the_other(a: list[str], b: list[str]) -> None:
    found = diff_lines(a, b)
    if a == b:
        assert found is None
        return
    assert found is not None
    assert found.added - found.removed == len(b) - len(a)
    if len(a) + len(b) <= CONTEXT:  # all of it is shown
        assert [line[1:] for line in found.lines if line[0] in " -"] == a
        assert [line[1:] for line in found.lines if line[0] in " +"] == b


@given(st.lists(st.sampled_from([*GRAPH.split("\n"), *OUTPUT.split("\n"), '"""', "a: = (", "\0", "é\udcff"])))
@settings(max_examples=200)
def test_any_text_is_the_same_as_itself(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert diff_graphs(text, text) is None
    assert same_graph(text, text)
    other = diff_graphs(text, GRAPH)
    assert (other is None) == same_graph(text, GRAPH)


def test_repetitive_texts_take_no_quadratic_time(two: Two) -> None:
    texts = ["\n".join(["        a = f(a)", "        b = g(a, b)"] * n) for n in (6000, 5999)]
    assert diff_graphs(*texts) is not None


# Real programs


@pytest.fixture(scope="module")
def varied(tmp_path_factory: pytest.TempPathFactory) -> Captured:
    return capture_workload("varied", "full", tmp_path_factory.mktemp("varied"), PYTHONHASHSEED="1")


def change(name: str, folder: Path) -> structdump.Bundle:
    return capture_workload("varied", "full", folder, VARIED=name).bundle


@pytest.mark.slow
def test_two_runs_of_a_program_and_a_warm_one_are_the_same(varied: Captured, tmp_path: Path) -> None:
    again = capture_workload("varied", "full", tmp_path, PYTHONHASHSEED="7")
    found = structdump.diff(varied.bundle, again.bundle)
    assert found.same, shown(found)
    assert found.notes == []
    warm = tmp_path / "warm"
    warm.mkdir()
    shutil.copytree(again.caches, warm / "caches")
    found = structdump.diff(varied.bundle, capture_workload("varied", "full", warm).bundle)
    assert found.same, shown(found)
    assert "A is cold, B is warm" in found.notes[0]


@pytest.mark.slow
def test_levels_are_no_difference(train_full: Captured, train_low: Captured) -> None:
    found = structdump.diff(train_full.bundle, train_low.bundle)
    assert found.same, shown(found)


@pytest.mark.slow
def test_one_more_op_shows_where_it_was_written(varied: Captured, tmp_path: Path) -> None:
    found = structdump.diff(varied.bundle, change("op", tmp_path))
    first = found.compiles[0].first
    assert first is not None
    assert first.stage.label == "captured"
    assert first.text is not None
    assert "y.tanh()" in first.text.lines[0]
    assert {k.how for k in found.kernels} == {"added", "removed"}
    assert found.environment == []


@pytest.mark.slow
def test_a_pass_of_the_user_is_named(varied: Captured, tmp_path: Path) -> None:
    found = structdump.diff(varied.bundle, change("pass", tmp_path))
    first = found.compiles[0].first
    assert first is not None
    assert first.stage.name == "post_grad_custom_pre_pass"
    assert first.text is not None
    assert first.text.ops == {"aten.mul.Tensor": 1}
    assert [c.what for c in found.environment] == ["torch._inductor: post_grad_custom_pre_pass"]


@pytest.mark.slow
def test_a_recompile_is_told_with_its_reason(varied: Captured, tmp_path: Path) -> None:
    found = structdump.diff(varied.bundle, change("recompile", tmp_path))
    assert [only.split(", as ")[0] for only in found.only_b] == ["0/1 forward"]
    assert "size mismatch" in found.only_b[0]
    assert found.compiles == []


def test_a_small_bundle_and_itself_are_the_same(tmp_path: Path) -> None:
    path = write_small(tmp_path)
    assert structdump.diff(path, str(path)).same


def test_output_code_of_a_gpu_parts_where_one_kernel_was_taken_away() -> None:
    text = members("llama_h200")["__compiled_fn_1.kernel_118.py"]
    call = re.search(r"\n +triton_poi_fused__to_copy_expand_unsqueeze_2\.run\([^\n]*", text)
    assert call is not None
    found = diff_graphs(text, text.replace(call[0], "", 1))
    assert found is not None
    assert found.changed == ["-" + re.sub(r"_2\.run", ".run", call[0].strip())]
