"""A bundle as a directory: what is written where, and that two runs of a program give the same."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from conftest import capture_workload
from dump_trees import ninety_three
from report_bundles import everything
from sample_bundles import GRAPH, bundle_of, write_small
from sample_bundles import KERNEL as TEMPLATE

from structdump.analyze.extract import extract
from structdump.analyze.extract_places import STAGES, Places
from structdump.analyze.extract_target import Names, slug
from structdump.bundle.names import parse_file_name
from structdump.bundle.reader import load
from structdump.cli import main
from structdump.errors import CorruptError, UsageError

BUNDLES = Path(__file__).parent / "data" / "bundles"
KERNEL = TEMPLATE.replace("{n}", "0")
PLACE = {"compile_id": "0/0", "direction": "forward"}


def kernel(name, text=KERNEL, *, language="python", place=PLACE, **facts):
    facts = {"name": name, "backend": "triton", "ops": ["aten.relu"], **facts}
    return {"kind": "kernel", "name": name, **place, "language": language, "kernel": facts, "text": text}


def graph(stage, text=GRAPH, **fields):
    fields = {"kind": "graph", "stage": stage, "name": stage, **PLACE, "language": "python", **fields}
    return {**fields, "text": text}


def files(directory):
    return sorted(p.relative_to(directory).as_posix() for p in directory.rglob("*") if p.is_file())


# --- the tree ---


def test_a_tree_has_what_was_compiled_in_order(tmp_path):
    bundle = bundle_of(
        tmp_path / "b",
        graph("captured", direction=None),
        graph("joint", direction="joint"),
        graph("post_grad", phase="before"),
        graph("post_grad", GRAPH + "#", phase="after"),
        {**graph("output_code"), "kind": "output_code"},
        graph("backward", direction="backward"),
    )
    done = extract(bundle, tmp_path / "out")
    made = files(tmp_path / "out")
    assert sorted(done.files) == made
    assert done.files[-1] == "README.md"
    assert [f for f in made if f.startswith("compiles/")] == [
        "compiles/0-0/02_captured.py",
        "compiles/0-0/05_joint.py",
        "compiles/0-0_backward/08_backward.py",
        "compiles/0-0_forward/09_post_grad.before.py",
        "compiles/0-0_forward/09_post_grad.py",
        "compiles/0-0_forward/12_output_code.py",
    ]
    assert (tmp_path / "out/compiles/0-0_forward/09_post_grad.py").read_text() == GRAPH + "#"
    readme = (tmp_path / "out/README.md").read_text()
    for path in made:
        if path.startswith("compiles/"):
            assert f"]({path})" in readme


def test_an_unknown_stage_stands_where_it_happened(tmp_path):
    bundle = bundle_of(tmp_path / "b", graph("forward"), graph("my_pass"), graph("post_grad"))
    extract(bundle, tmp_path / "out")
    names = sorted(p.name for p in (tmp_path / "out/compiles/0-0_forward").iterdir())
    assert names == ["08_forward.py", "08_my_pass.py", "09_post_grad.py"]


def test_names_are_the_same_whatever_the_level_kept(tmp_path):
    def bundle(name, *texts):
        passes = [{**graph(p, t), "kind": "pass"} for p, t in zip("abc", texts, strict=True)]
        return bundle_of(tmp_path / name, graph("captured", texts[0]), *passes, graph("post_grad"))

    extract(bundle("low", None, None, GRAPH), tmp_path / "one")
    extract(bundle("full", GRAPH, GRAPH, GRAPH), tmp_path / "two")
    one, two = (set(files(tmp_path / n)) for n in ("one", "two"))
    assert one < two
    assert "compiles/0-0_forward/passes/003_c.py" in one


def test_before_and_after_of_a_pass_share_a_number(tmp_path):
    runs = [("fuse", "before"), ("fuse", "after"), ("noop", "after"), ("fuse", "before"), ("fuse", "after")]
    passes = [{**graph(name, phase=phase), "kind": "pass"} for name, phase in runs]
    extract(bundle_of(tmp_path / "b", *passes), tmp_path / "out")
    names = sorted(p.name for p in (tmp_path / "out/compiles/0-0_forward/passes").iterdir())
    assert names == ["001_fuse.before.py", "001_fuse.py", "002_noop.py", "003_fuse.before.py", "003_fuse.py"]


def test_an_earlier_attempt_has_another_name(tmp_path):
    bundle = bundle_of(tmp_path / "b", graph("captured"), graph("captured", GRAPH + "#2", attempt=1))
    extract(bundle, tmp_path / "out")
    at = tmp_path / "out/compiles/0-0_forward"
    assert (at / "02_captured.py").read_text().endswith("#2")
    assert (at / "02_captured.attempt0.py").read_text() == GRAPH


def test_pieces_have_folders_of_their_own(tmp_path):
    piece = {"index": 1, "name": "submod_2", "range": [1, 2048]}
    extract(bundle_of(tmp_path / "b", graph("post_grad", subgraph=piece)), tmp_path / "out")
    assert (tmp_path / "out/compiles/0-0_submod_2_1-2048_forward/09_post_grad.py").exists()


def test_what_differs_from_run_to_run_stands_in_one_folder(tmp_path):
    bundle = everything(tmp_path)
    extract(bundle, tmp_path / "out")
    events = json.loads((tmp_path / "out/run/trace.json").read_text())
    assert [e["ph"] for e in events] == ["B", "B", "B", "E", "E", "E"]
    run = json.loads((tmp_path / "out/run/run.json").read_text())
    assert run["compiles"]["0/0"]["seconds"] == 4.0
    for path in ("compiles.json", "README.md", "environment.json"):
        assert "4.0" not in (tmp_path / "out" / path).read_text()
    everywhere = "".join(
        p.read_text() for p in (tmp_path / "out").rglob("*") if p.is_file() and "run" not in p.parts
    )
    assert "time_taken_ms" not in everywhere
    assert "no lowering for twice" in everywhere


def test_every_text_is_somewhere(tmp_path):
    bundle = load(BUNDLES / "train_low.json.zst")
    extract(bundle, tmp_path / "out")
    written = "\n".join(p.read_text() for p in (tmp_path / "out").rglob("*") if p.is_file())
    for artifact in bundle.artifacts:
        if artifact.text and artifact.kind in ("graph", "event", "output_code"):
            assert artifact.text in written


# --- kernels ---


def test_a_kernel_says_where_it_comes_from(tmp_path):
    facts = {
        "nodes": ["relu"],
        "fragment": "%a = relu(%b)\n%c = neg(%a)",
        "calls": 2,
        "heuristic": "pointwise",
    }
    facts |= {"best_config": {"XBLOCK": 64, "num_warps": 4, "time_taken_ms": 7}, "loads": 1, "stores": 2}
    extract(bundle_of(tmp_path / "b", kernel("triton_poi", **facts)), tmp_path / "out")
    text = (tmp_path / "out/kernels/triton_poi.py").read_text()
    assert text.endswith(KERNEL)
    ast.parse(text)
    header = text.removesuffix(KERNEL)
    assert all(line.startswith("#") for line in header.splitlines() if line)
    for said in (
        "# config     XBLOCK=64 num_warps=4\n",
        "# run by     0-0_forward ×2\n",
        "# memory     1 loads, 2 stores\n",
        "#     %a = relu(%b)\n#     %c = neg(%a)\n",
    ):
        assert said in header


def test_the_config_may_stand_beside_the_kernel(tmp_path):
    config = {"kind": "best_config", "name": "k", **PLACE, "data": {"XBLOCK": 32, "time_taken_ms": 3}}
    config["kernel"] = {"name": "k", "backend": "triton"}
    extract(bundle_of(tmp_path / "b", kernel("k"), config), tmp_path / "out")
    assert "XBLOCK=32" in (tmp_path / "out/kernels/k.py").read_text()


def test_a_config_of_no_known_kernel_is_a_file(tmp_path):
    config = {"kind": "best_config", "name": "5f3a", "text": '{"XBLOCK": 32, "time_taken_ms": 3}'}
    extract(bundle_of(tmp_path / "b", config), tmp_path / "out")
    assert json.loads((tmp_path / "out/kernels/5f3a.best_config.json").read_text()) == {"XBLOCK": 32}


def test_kernels_of_one_name(tmp_path):
    other = {"compile_id": "1/0", "direction": "backward"}
    bundle = bundle_of(
        tmp_path / "b",
        kernel("k_0"),
        kernel("k_0", place=other),
        kernel("k_0", KERNEL + "#", place=other),
        {"kind": "ir", "stage": "ttir", "name": "k_0", **PLACE, "text": "module {}"},
    )
    extract(bundle, tmp_path / "out")
    assert sorted(p.name for p in (tmp_path / "out/kernels").iterdir()) == [
        "k_0.1-0_backward.py",
        "k_0.py",
        "k_0.ttir",
    ]
    assert "0-0_forward ×1, 1-0_backward ×1" in (tmp_path / "out/kernels/k_0.py").read_text()


def test_a_kernel_without_source_keeps_its_facts(tmp_path):
    extract(bundle_of(tmp_path / "b", kernel("extern_kernels.mm", None)), tmp_path / "out")
    (found,) = json.loads((tmp_path / "out/kernels/extern_kernels.mm.json").read_text())
    assert found["ops"] == ["aten.relu"]
    assert "time" not in str(found)


def test_candidates_stand_apart(tmp_path):
    lost = {**kernel("triton_mm_2", role="candidate"), "kind": "candidate"}
    extract(bundle_of(tmp_path / "b", kernel("k"), lost), tmp_path / "out")
    assert (tmp_path / "out/kernels/candidate/triton_mm_2.py").exists()
    assert "triton_mm_2" not in (tmp_path / "out/README.md").read_text()


# --- twice the same ---


def test_what_has_no_meaning_is_left_out(tmp_path):
    def guards(number, latency):
        text = f"| +- ___check_type_id(L['x'], {number}), type=<class 'dict'>\nGuard latency = {latency} us"
        return bundle_of(
            tmp_path / latency, {"kind": "guards", "stage": "cpp_guards", "name": "g", **PLACE, "text": text}
        )

    extract(guards(139674731777696, "1.5"), tmp_path / "one")
    extract(guards(140278013747872, "2.5"), tmp_path / "two")
    same(tmp_path / "one", tmp_path / "two")


def same(one, two):
    assert files(one) == files(two)
    for path in files(one):
        if not path.startswith("run/"):
            assert (one / path).read_text() == (two / path).read_text(), path


@pytest.mark.slow
def test_two_runs_of_a_program_give_the_same_tree(tmp_path):
    """In two processes with other hash seeds and empty caches."""
    for seed in ("1", "2"):
        folder = tmp_path / seed
        folder.mkdir()
        captured = capture_workload("conv", "full", folder, PYTHONHASHSEED=seed)
        extract(captured.bundle, tmp_path / f"out{seed}")
    one, two = tmp_path / "out1", tmp_path / "out2"
    (one / "environment.json").unlink()  # the hash seeds and the directories are settings
    (two / "environment.json").unlink()
    assert len(files(one)) > 40
    same(one, two)


# --- depyf's names ---


def test_depyf_names(tmp_path):
    bundle = bundle_of(
        tmp_path / "b",
        graph("captured", name="dynamo_output_graph", direction=None),
        graph("forward", name="aot_forward_graph"),
        graph("post_grad", phase="after", name="inductor_post_grad_graph"),
        graph("post_grad", GRAPH + "#", phase="after", name="inductor_post_grad_graph", direction="backward"),
        kernel("triton_poi"),
        {
            "kind": "best_config",
            "name": "triton_poi",
            **PLACE,
            "kernel": {"name": "triton_poi"},
            "text": "{}",
        },
        {"kind": "source", "stage": "full_code", "name": "full_code", "compile_id": "0/0", "text": "pass\n"},
        {"kind": "guards", "name": "guards", "text": "g"},
    )
    done = extract(bundle, tmp_path / "out", "depyf")
    assert done.left == 1
    assert sorted(done.files) == [
        "__compiled_fn_1.AFTER_POST_GRAD.0.py",
        "__compiled_fn_1.AFTER_POST_GRAD.1.py",
        "__compiled_fn_1.Captured_Graph.0.py",
        "__compiled_fn_1.Forward_graph.0.py",
        "__compiled_fn_1.kernel_0.best_config",
        "__compiled_fn_1.kernel_0.py",
        "full_code_for_f_0.py",
    ]
    assert (tmp_path / "out/__compiled_fn_1.kernel_0.py").read_text() == KERNEL


def test_depyf_layout_of_a_real_bundle_parses_as_depyfs(tmp_path):
    for path in sorted(BUNDLES.glob("*.json.zst")):
        done = extract(load(path), tmp_path / path.name, "depyf")
        assert done.files
        assert all(parse_file_name(name) for name in done.files), done.files


def test_a_dump_directory_goes_there_and_back(tmp_path, capsys):
    dump = ninety_three(tmp_path / "dump")
    assert main(["extract", str(dump), "-o", str(tmp_path / "out"), "--layout", "depyf"]) == 0
    texts = {p.read_bytes() for p in dump.iterdir() if parse_file_name(p.name) and p.suffix == ".py"}
    back = {p.read_bytes() for p in (tmp_path / "out").iterdir()}
    assert len(texts & back) > 60


# --- the command ---


def test_the_command(tmp_path, capsys):
    bundle = str(write_small(tmp_path))
    assert main(["extract", bundle, "-o", str(tmp_path / "out")]) == 0
    out, err = capsys.readouterr()
    assert out == f"{tmp_path}/out/README.md\n"
    assert err.endswith(" files\n")
    assert main(["extract", bundle, "-o", str(tmp_path / "out")]) == 2
    assert "is not empty; --force writes into it" in capsys.readouterr().err
    kept = tmp_path / "out/notes.txt"
    kept.write_text("mine")
    assert main(["extract", bundle, "-o", str(tmp_path / "out"), "--force", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert sorted([*found["files"], "notes.txt"]) == files(tmp_path / "out")
    assert kept.read_text() == "mine"


def test_bad_calls(tmp_path):
    bundle = bundle_of(tmp_path / "b", graph("captured"))
    with pytest.raises(UsageError, match="no layout 'tar'; there are tree, depyf"):
        extract(bundle, tmp_path / "out", "tar")
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be used"):
        extract(bundle, tmp_path / "file")
    with pytest.raises(UsageError, match="cannot be used"):
        extract(bundle, tmp_path / "file/below")


def test_a_missing_text_is_an_error_and_leaves_no_index(tmp_path):
    bundle = bundle_of(tmp_path / "b", graph("captured"))
    bundle.artifacts[0].digest = "0" * 32
    with pytest.raises(CorruptError):
        extract(bundle, tmp_path / "out")
    assert not (tmp_path / "out/README.md").exists()


# --- names ---


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("triton_red_fused_0", "triton_red_fused_0"),
        ("torch.ops.aten.mm.default", "torch.ops.aten.mm.default"),
        ("a b/c", "a_b_c"),
        ("", "unnamed"),
        ("..", "unnamed"),
        ("NUL", "_NUL"),
        ("com1.txt", "_com1.txt"),
        ("console", "console"),
    ],
)
def test_slugs(name, made):
    assert slug(name) == made


def test_names_differ_where_case_does_not_count():
    names = Names()
    assert [
        names.free("a", ".py"),
        names.free("A", ".py"),
        names.free("a_2", ".py"),
        names.free("a", ".py"),
    ] == [
        "a.py",
        "A_2.py",
        "a_2_2.py",
        "a_3.py",
    ]


def test_stages_are_numbered_once():
    every = [stage for names in STAGES for stage in names]
    assert len(every) == len(set(every))
    assert Places([]).__dict__
