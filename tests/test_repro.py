"""Repro scripts: what they hold, what they refuse, and that they run and fail as the bundle says."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import WORKLOADS, Captured, clean_environment, python
from dump_samples import members
from hypothesis import given
from hypothesis import strategies as st
from sample_bundles import KERNEL, bundle_of, write_small

import structdump
from structdump.analyze.repro import repro
from structdump.analyze.repro_graph import runnable
from structdump.analyze.repro_kernel import kernel_repro
from structdump.analyze.repro_run import run
from structdump.analyze.repro_script import comment, settings, sizes
from structdump.bundle.model import Failure
from structdump.cli import main
from structdump.errors import UsageError

GRAPH = """class <lambda>(torch.nn.Module):
    def forward(self, arg0_1: "Sym(s0)", arg1_1: "f32[s0, 4][4, 1]cpu", arg2_1: "i64[]", unused):
        # File: <path-1>/train.py:3 in f, code: y = x.sin()
        _tensor_constant0: "f32[4][1]cpu" = self._tensor_constant0
        sin: "f32[s0, 4][4, 1]cpu" = torch.ops.aten.sin.default(arg1_1);  arg1_1 = None
        return (sin,)
"""
OWN = """
import os
os.environ['TORCHINDUCTOR_CACHE_DIR'] = '<path-3>/cache'
os.environ['TORCHINDUCTOR_MAX_AUTOTUNE'] = '1'
os.environ['TRITON_CACHE_DIR'] = 'cache'
os.environ['MARK'] = '<path-4>'

import torch
import torch._inductor.config
torch._inductor.config.max_autotune = True
torch._inductor.config.cpp.cxx = (None, '<path-1>/g++')

class Repro(torch.nn.Module):
    def forward(self, arg0_1):
        return (torch.ops.mine.twice.default(arg0_1),)

mod = Repro()
"""
FAILURE = {"type": "torch._inductor.exc.InductorError", "message": "LoweringException: ValueError: no\nmore"}


def graph(stage: str, text: str | None = GRAPH, **fields: Any) -> dict[str, Any]:
    return {"kind": "graph", "stage": stage, "name": stage, "compile_id": "0/0", "text": text, **fields}


def test_inputs_have_the_recorded_types() -> None:
    made = runnable(GRAPH)
    assert made.inputs == [
        ("arg0_1", "s0"),
        ("arg1_1", "rand_strided((s0, 4,), (4, 1,), torch.float32, 'cpu')"),
        ("arg2_1", "rand_strided((), contiguous(()), torch.int64, 'cpu')"),
        ("unused", "None"),
    ]
    assert made.constants == [("_tensor_constant0", "rand_strided((4,), (1,), torch.float32, 'cpu')")]
    assert made.symbols == ["s0"]
    assert made.code.startswith("class Repro(torch.nn.Module):")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"Sym(s0)"', '"Sym(exit())"', "size of arg0_1"),
        ('"Sym(s0)"', '"Sym(s0.__class__)"', "size of arg0_1"),
        ('"Sym(s0)"', '"Sym([s0 for s0 in (1,)])"', "size of arg0_1"),
        ('"i64[]"', '"i64[4); import os; (4]"', "size of arg2_1"),
        ('"i64[]"', '"wonder[4]"', "type of arg2_1"),
        (': "i64[]", unused', ", *more", "number of inputs"),
        ("self._tensor_constant0", "self.layer(arg1_1)", "self.layer"),
        ("return (sin,)", "return (sin", "no Python"),
        ("return (sin,)", "return (sin,\0)", "no Python"),
        ("return (sin,)", "return " + "(" * 5000 + ")" * 5000, "no Python"),
        ("class <lambda>", "module <lambda>", "no module"),
        ("def forward", "def backward", "without a forward"),
    ],
)
def test_a_graph_that_cannot_be_rebuilt_says_why(old: str, new: str, says: str) -> None:
    assert old in GRAPH
    with pytest.raises(UsageError, match=says):
        runnable(GRAPH.replace(old, new))


def test_nested_graphs_become_attributes() -> None:
    text = GRAPH.replace("sin: ", "true_graph_0 = self.true_graph_0\n        sin: ") + (
        '    class true_graph_0(torch.nn.Module):\n        def forward(self, x: "f32[4]"):\n'
        '            c: "f32[]" = self.c\n            return (x,)\n'
    )
    made = runnable(text)
    assert made.modules == ["true_graph_0"]
    assert [name for name, _ in made.constants] == ["_tensor_constant0", "true_graph_0.c"]


def test_sizes_come_from_hints_and_ranges() -> None:
    known = {"s0": {"hint": "12"}, "s1": {"range": "[20, int_oo]"}, "s2": 3, "s3": {"hint": "exit()"}}
    lines = list(sizes(["s0", "s1", "s2", "s3", "s4"], known))
    values: dict[str, int] = {}
    exec("\n".join(lines), values)
    assert [values[f"s{n}"] for n in range(5)] == [12, 20, 3, 8, 8]


def test_settings_that_mean_nothing_elsewhere_are_left_out(tmp_path: Path) -> None:
    configs = {
        "torch._inductor.config": {
            "triton.cudagraphs": True,
            "cpp.cxx": [None, "<path-1>/g++"],
            "debug_dir": "/tmp/x",
            "post_pass": "<function f at 0x7f30aa12b0d0>",
            'quote"s\n': 1,
        },
        "os; import this": {"a": 1},
    }
    lines, left_out = settings(bundle_of(tmp_path, configs=configs))
    assert left_out == [f"torch._inductor.config.{n}" for n in ("cpp.cxx", "debug_dir", "post_pass")]
    (call,) = (n for n in ast.parse(lines).body if isinstance(n, ast.Expr))
    assert isinstance(call.value, ast.Call)
    assert [ast.literal_eval(a) for a in call.value.args] == [
        "torch._inductor.config",
        {"triton.cudagraphs": True, 'quote"s\n': 1},
    ]


@given(st.text())
def test_a_comment_stays_one_line(text: str) -> None:
    assert len(f"# {comment(text)}".splitlines()) == 1
    assert ast.parse(f"# {comment(text)}\n").body == []


def test_names_cannot_break_out_of_the_header(tmp_path: Path) -> None:
    evil = "f\nimport os\r\x0cimport os\u2028import os -*- coding: utf-7 -*- '''"
    compiles = [{"id": "0/0", "function": {"name": evil}, "error": {"type": evil, "message": evil}}]
    tame = repro(bundle_of(tmp_path, graph("captured"))).script
    made = repro(
        bundle_of(
            tmp_path, graph("captured"), compiles=compiles, versions={evil: evil}, variables={evil: evil}
        )
    ).script
    assert ast.dump(ast.parse(made)) == ast.dump(ast.parse(tame))
    assert made.splitlines()[0] == "# coding: utf-8"


def test_own_script_loses_what_concerns_another_machine(tmp_path: Path) -> None:
    own = {"kind": "repro", "stage": "fx_graph_runnable", "name": "fx_graph_runnable", "compile_id": "0/0"}
    bundle = bundle_of(tmp_path, graph("captured"), own | {"text": OWN}, graph("post_grad"))
    made = repro(bundle, modules=["mine_ops"])
    assert "<path-" not in made.script
    assert "CACHE_DIR" not in made.script
    assert "TORCHINDUCTOR_MAX_AUTOTUNE" in made.script
    assert "max_autotune = True" in made.script
    lines = made.script.splitlines()
    assert lines.index("load('mine_ops')") < lines.index("needed = [('mine', 'twice')]")
    assert lines.index("needed = [('mine', 'twice')]") < lines.index("class Repro(torch.nn.Module):")


def test_own_script_that_is_damaged_gives_way_to_the_post_grad_graph(tmp_path: Path) -> None:
    own = {"kind": "repro", "stage": "fx_graph_runnable", "name": "fx_graph_runnable", "compile_id": "0/0"}
    made = repro(bundle_of(tmp_path, own | {"text": OWN + "("}, graph("post_grad", phase="after")))
    assert made.what.startswith("post-grad")
    assert "no Python" in made.notes[0]


def test_the_graph_that_failed_is_the_one_rebuilt(tmp_path: Path) -> None:
    failed = [{"id": "0/0", "status": "failed", "error": FAILURE}]
    forward = graph("post_grad", GRAPH, direction="forward", phase="after")
    backward = graph("post_grad", GRAPH + " ", direction="backward", phase="after")
    made = repro(bundle_of(tmp_path, graph("captured"), forward, backward, compiles=failed))
    assert "backward" in made.what
    assert made.expected is not None
    assert [o.split(":")[0] for o in made.others] == ["1"]
    listed = graph("post_grad", None, direction="backward", phase="before")
    made = repro(bundle_of(tmp_path, graph("captured"), forward, listed, compiles=failed))
    assert made.what.startswith("captured")
    assert "TRAINS = True" in made.script
    made = repro(bundle_of(tmp_path, graph("captured"), forward))
    assert made.what.startswith("post-grad")
    assert made.expected is None


def test_the_backend_is_the_recorded_one_if_torch_has_it(tmp_path: Path) -> None:
    def script_of(**fields: Any) -> tuple[str, list[str]]:
        made = repro(bundle_of(tmp_path, graph("captured"), compiles=[{"id": "0/0", **fields}]))
        return made.script, made.notes

    raised = {
        "type": "torch._dynamo.exc.BackendCompilerFailed",
        "message": "backend='{}' raised:\nValueError: no",
    }
    assert "BACKEND = 'inductor'" in script_of()[0]
    assert "BACKEND = 'aot_eager'" in script_of(backend="aot_eager")[0]
    assert "BACKEND = 'eager'" in script_of(error=raised | {"message": raised["message"].format("eager")})[0]
    script, notes = script_of(error=raised | {"message": raised["message"].format("mine")})
    assert "BACKEND = 'inductor'" in script
    assert notes == ["backend 'mine' is the program's own; the script compiles with Inductor"]


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    low = [{"id": "0/0", "status": "failed", "error": FAILURE}]
    with pytest.raises(UsageError, match="no compile '7/0'; there are 0/0"):
        repro(bundle_of(tmp_path, graph("captured")), "7/0")
    with pytest.raises(
        UsageError, match=r"before it had a graph.*InductorError: LoweringException: ValueError: no$"
    ):
        repro(bundle_of(tmp_path, compiles=low))
    with pytest.raises(UsageError, match="no text of a graph"):
        repro(bundle_of(tmp_path, graph("captured", None)))
    with pytest.raises(UsageError, match="STRUCTDUMP_LEVEL=full"):
        repro(bundle_of(tmp_path, graph("captured", None)), graph=0)
    with pytest.raises(UsageError, match="no graph has the number 9"):
        repro(bundle_of(tmp_path, graph("captured")), graph=9)


def kernels_of(directory: Path, code: str, names: list[str], backend: str) -> structdump.Bundle:
    artifacts = [{"kind": "output_code", "name": "code", "compile_id": "0/0", "text": code}]
    for name in names:
        facts = {"name": name, "backend": backend}
        artifacts.append(
            {"kind": "kernel", "name": name, "compile_id": "0/0", "kernel": facts, "text": KERNEL.format(n=0)}
        )
    return bundle_of(directory, *artifacts)


def assigned(code: str) -> dict[str, str]:
    """The kernels that an output code defines, and what their definitions are."""
    return {
        t.id: ast.unparse(n.value)
        for n in ast.parse(code).body
        if isinstance(n, ast.Assign) and ast.unparse(n.value).startswith("async_compile.")
        for t in n.targets
        if isinstance(t, ast.Name)
    }


SAMPLES = {
    **{name: text for name, text in members("output_code").items() if "async_compile.wait" in text},
    "llama": members("llama_h200")["__compiled_fn_1.kernel_118.py"],
}


@pytest.mark.parametrize("name", SAMPLES)
def test_each_kernel_is_called_with_what_its_call_needs_and_nothing_else(tmp_path: Path, name: str) -> None:
    defined = assigned(SAMPLES[name])
    assert defined
    backend = "triton" if name == "llama" else "cpp"
    bundle = kernels_of(tmp_path, SAMPLES[name], list(defined), backend)
    for kernel, definition in defined.items():
        script = kernel_repro(bundle, kernel).script
        assert assigned(script) == {kernel: definition}
        (function,) = (n for n in ast.parse(script).body if isinstance(n, ast.FunctionDef))
        bound = {t.id for n in function.body if isinstance(n, ast.Assign) for t in n.targets}  # type: ignore[attr-defined] # names alone
        (call,) = (
            n.value
            for n in function.body
            if isinstance(n, ast.Expr) and ast.unparse(n).startswith((f"{kernel}(", f"{kernel}.run("))
        )
        assert isinstance(call, ast.Call)
        used = {n.id for n in ast.walk(call) if isinstance(n, ast.Name)} - {kernel, "reinterpret_tensor"}
        assert used <= bound
        devices = {d for d in ("'cpu'", "'cuda:0'") if f", {d})" in script or f"={d}" in script}
        assert devices == {"'cuda:0'" if backend == "triton" else "'cpu'"}


def test_kernels_that_cannot_be_called_say_why(tmp_path: Path) -> None:
    bundle = structdump.load(write_small(tmp_path))
    with pytest.raises(UsageError, match=r"did you mean.* triton_poi_fused_relu_0"):
        kernel_repro(bundle, "triton_poi_fused_relu")
    with pytest.raises(UsageError, match="no output code in the bundle calls"):
        kernel_repro(bundle, "triton_poi_fused_relu_0")
    facts = {"kind": "kernel", "name": "k", "compile_id": "0/0"}
    extern = bundle_of(tmp_path, facts | {"kernel": {"name": "k", "backend": "extern"}, "text": "k"})
    with pytest.raises(UsageError, match="but extern"):
        kernel_repro(extern, "k")
    listed = bundle_of(tmp_path, facts | {"kernel": {"name": "k", "backend": "cpp"}})
    with pytest.raises(UsageError, match="STRUCTDUMP_LEVEL=full"):
        kernel_repro(listed, "k")
    chain = "".join(f"    b{n + 1} = b{n}\n" for n in range(5000))
    code = f"k = async_compile.cpp_pybinding(['float*'], '')\ndef call(args):\n{chain}    k(b5000)\n"
    with pytest.raises(UsageError, match="on one another too deeply"):
        kernel_repro(kernels_of(tmp_path, code, ["k"], "cpp"), "k")
    nested = code.replace("k(b5000)", f"k({'-' * 3000}b1)")
    with pytest.raises(UsageError, match=r"too deeply|no Python"):
        kernel_repro(kernels_of(tmp_path, nested, ["k"], "cpp"), "k")


def test_without_output_code_size_hints_make_the_buffers(tmp_path: Path) -> None:
    source = "triton_meta={'signature': {'in_ptr0': '*bf16', 'xnumel': 'i32', 'XBLOCK': 'constexpr'}}"
    facts = {"name": "k", "backend": "triton", "size_hints": {"x": 32, "y": 2}}
    kernel = {"kind": "kernel", "name": "k", "compile_id": "0/0", "kernel": facts, "text": source}
    script = kernel_repro(bundle_of(tmp_path, kernel), "k").script
    assert "rand_strided((64,), (1,), torch.bfloat16, 'cuda:0'),\n        32,\n        stream=" in script


@pytest.mark.parametrize(
    ("program", "expected", "same", "got"),
    [
        ("pass", None, True, None),
        ("import sys; sys.exit(0)", None, True, None),
        ("raise ValueError('a')", None, False, "ValueError"),
        ("pass", "ValueError: a", False, None),
        ("raise ValueError('b')", "some.where.ValueError: a", True, "ValueError"),
        ("raise TypeError('a')", "ValueError: a", False, "TypeError"),
        ("raise ValueError('LoweringError: a')", "ValueError: OtherError: a", False, "ValueError"),
        ("import sys; sys.exit('no')", "ValueError: a", False, "SystemExit"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "ValueError: a", False, "Crash"),
    ],
)
def test_how_a_script_ends_is_compared(
    tmp_path: Path, program: str, expected: str | None, same: bool, got: str | None
) -> None:
    script = tmp_path / "script.py"
    script.write_text(program)
    kind, _, message = (expected or "").partition(": ")
    found = run(script, Failure(type=kind, message=message, traceback=None) if expected else None)
    assert found.same is same
    assert (found.failure.type if found.failure else None) == got


def test_the_command_writes_once_and_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = tmp_path / "small.json.zst"
    bundle_of(tmp_path, graph("captured"))
    target = tmp_path / "repro.py"
    assert main(["repro", str(bundle), "-o", str(target)]) == 0
    assert capsys.readouterr().out.split() == [str(target)]
    assert main(["repro", str(bundle), "-o", str(target)]) == 2
    assert "cannot be written" in capsys.readouterr().err
    assert main(["repro", str(bundle), "-o", str(target), "--force"]) == 0
    capsys.readouterr()
    assert main(["repro", str(bundle)]) == 0
    assert capsys.readouterr().out.strip() == target.read_text().strip()
    assert main(["repro", str(bundle), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["run"] is None


def command(*args: str | Path, folder: Path, caches: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "structdump", "repro", *map(str, args), "--run"],
        cwd=folder,
        env=clean_environment(caches),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.mark.slow
def test_training_runs_from_torchs_own_script(train_full: Captured, tmp_path: Path) -> None:
    done = command(train_full.path, "-o", "r.py", folder=tmp_path, caches=train_full.caches)
    assert (done.returncode, done.stdout) == (0, "same: no failure\n"), done.stderr
    assert "running the script, which holds code" in done.stderr
    assert "run_repro" in (tmp_path / "r.py").read_text()
    backward = train_full.bundle.artifacts_like(kind="repro", compile_id="0/0")[-1]
    assert backward.direction == "backward"
    done = command(train_full.path, "--graph", str(backward.seq), folder=tmp_path, caches=train_full.caches)
    assert (done.returncode, done.stdout) == (0, "same: no failure\n"), done.stderr


@pytest.mark.slow
def test_dynamic_training_runs_from_post_grad_and_captured_graphs(
    train_low: Captured, tmp_path: Path
) -> None:
    dynamic = next(c.id for c in train_low.bundle.compiles if c.symbols)
    backward = train_low.bundle.graphs(stage="post_grad", compile_id=dynamic, direction="backward")[-1]
    captured = train_low.bundle.graphs(stage="captured", compile_id=dynamic)[-1]
    for which in (("--compile", dynamic), ("--graph", backward.seq), ("--graph", captured.seq)):
        done = command(train_low.path, *map(str, which), folder=tmp_path, caches=train_low.caches)
        assert (done.returncode, done.stdout) == (0, "same: no failure\n"), (which, done.stderr)


@pytest.mark.slow
def test_convolutions_and_their_kernels_run(conv_medium: Captured, tmp_path: Path) -> None:
    done = command(conv_medium.path, folder=tmp_path, caches=conv_medium.caches)
    assert (done.returncode, done.stdout) == (0, "same: no failure\n"), done.stderr
    for kernel in conv_medium.bundle.kernels("cpp_*"):
        done = command(conv_medium.path, "--kernel", kernel.name, folder=tmp_path, caches=conv_medium.caches)
        assert (done.returncode, done.stdout) == (0, "same: no failure\n"), done.stderr
        assert f"called {kernel.name}" in done.stderr


@pytest.mark.slow
def test_a_failure_occurs_again(failing_low: Captured, tmp_path: Path) -> None:
    program = WORKLOADS / "failing.py"
    done = command(failing_low.path, "--import", program, folder=tmp_path, caches=failing_low.caches)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("same: InductorError: LoweringException: ValueError: no lowering")
    done = command(failing_low.path, folder=tmp_path, caches=failing_low.caches)
    assert done.returncode == 1
    assert "operators that torch does not have by itself: workload::twice" in done.stdout


@pytest.mark.slow
def test_a_failure_that_a_setting_causes_occurs_again(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import torch, torch._inductor.config as inductor\n"
        "inductor.cpp.cxx = ('no-such-compiler',)\n"
        "torch.compile(lambda x: x.sin() + 1)(torch.randn(8))\n"
    )
    target = tmp_path / "b.json.zst"
    settings = {"STRUCTDUMP_LEVEL": "low", "STRUCTDUMP_OUTPUT": str(target)}
    assert python(program, caches=tmp_path, cwd=tmp_path, **settings).code == 1
    done = command(target, "-o", "r.py", folder=tmp_path, caches=tmp_path)
    assert (done.returncode, done.stdout.split(":")[:2]) == (0, ["same", " InductorError"]), done.stderr
    script = (tmp_path / "r.py").read_text()
    (tmp_path / "other.py").write_text(script.replace("no-such-compiler", "g++"))
    assert python(tmp_path / "other.py", caches=tmp_path, cwd=tmp_path).code == 0
