from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import PurePath

import pytest
from dump_samples import members, unpack
from dump_trees import CANDIDATES, TUNED, best_config, graph, ninety_three, output_code, triton_kernel

import structdump
from structdump.bundle.names import parse_file_name
from structdump.config import DumpConfig
from structdump.errors import SourceError
from structdump.sources.compiles import CompileBook
from structdump.sources.completeness import verdict
from structdump.sources.configs import best_config_keys
from structdump.sources.depyf_dir import find_ranks, read_directory
from structdump.sources.kernels import parse_output_code
from structdump.sources.session import Session


def read(path, **options):
    events: list = []
    book = CompileBook()
    report = read_directory(path, events.append, book, **options)
    assert report.events == len(events) == report.files + report.parts + report.cache_files
    return events, report, book


def of(events, kind, name=None):
    return [e for e in events if e.kind == kind and name in (None, e.name)]


def text(event):
    return event.text() if callable(event.text) else event.text


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return unpack("llama_h200", tmp_path_factory.mktemp("llama") / "dump")


@pytest.fixture(scope="module")
def cold(tmp_path_factory):
    return unpack("vllm_cold", tmp_path_factory.mktemp("vllm") / "rank_0_dp_0")


def test_every_file_is_one_event_or_more(llama):
    events, report, _ = read(llama)
    found = {p.name for p in llama.iterdir()}
    counted = Counter(f for e in events for f in e.files)
    assert set(counted) == found
    assert report.files == len(found) == 151
    parts = Counter(f for e in events for f in e.files if e.kind == "kernel")
    assert sum(counted.values()) == report.files + report.parts
    assert parts["__compiled_fn_1.kernel_118.py"] == report.parts == 8  # six templates, two library calls


def test_what_runs_and_what_was_only_timed(llama):
    events, _, book = read(llama)
    roles = Counter(e.kernel.role for e in events if e.kernel and e.kind in ("kernel", "candidate"))
    assert roles == {"used": 26, "candidate": 114, "benchmark": 4}
    red = of(events, "kernel", "triton_red_fused__to_copy_add_embedding_mean_mul_pow_rsqrt_0")[0]
    assert red.files == ["__compiled_fn_1.kernel_119.py"]
    assert text(red).strip() == members("llama_h200")["__compiled_fn_1.kernel_119.py"].strip()
    assert red.kernel.ops[0] == "aten.embedding"
    lines = [f"{frame.file.rpartition('/')[2]}:{frame.line}" for frame in red.kernel.stack]
    assert lines == [f"modeling_llama.py:{n}" for n in (381, 64, 65, 66, 67)]
    assert red.kernel.stack[2].code == "variance = hidden_states.pow(2).mean(-1, keepdim=True)"
    assert "kernel.stack" in red.inferred
    assert red.direction == "inference"
    timed = next(e for e in of(events, "candidate") if e.files == ["__compiled_fn_1.kernel_114.py"])
    assert timed.kernel.performance == "0.0028800000436604023"
    assert of(events, "metrics")[0].data["milliseconds"] == pytest.approx(0.00288)
    tried = next(e for e in of(events, "candidate") if e.files == ["__compiled_fn_1.kernel_0.py"])
    assert tried.data["BLOCK_M"] == 32
    assert tried.kernel.best_config is None
    assert book.records()[0].function.name == "wrapper"
    assert verdict(book).verdict == "cold"


def test_hashed_configs_are_listed_unmapped_with_who_may_have_them(llama):
    events, report, _ = read(llama)
    configs = of(events, "best_config")
    assert report.unmapped == len(configs) == 2
    assert {e.stage for e in configs} == {"unmapped"}
    assert all(e.kernel is None and e.data["num_stages"] == 1 for e in configs)
    assert all("data.possible_kernels" in e.inferred for e in configs)
    assert all(e.data["possible_kernels"] for e in configs)


def test_with_the_key_of_the_torch_that_dumped_hashed_configs_find_their_kernel(tmp_path):
    key = bytes(range(32))
    root = unpack("llama_h200", tmp_path / "dump")
    for old in root.glob("*.best_config"):
        old.unlink()
    stem = best_config_keys("__compiled_fn_1.kernel_121.py", key)[0]
    (root / f"{stem}.best_config").write_text(best_config(1))
    events, report, _ = read(root, torch_key=key)
    config = of(events, "best_config")[0]
    assert config.name == "triton_poi_fused__to_copy_add_arange_unsqueeze_3"
    assert config.kernel.best_config == {"XBLOCK": 32, "num_warps": 4, "num_stages": 1}
    assert of(events, "kernel", config.name)[0].kernel.best_config == config.kernel.best_config
    assert config.inferred == []
    assert report.unmapped == 0


def test_an_inductor_cache_adds_its_configs(llama, tmp_path):
    key = bytes(32)
    cache = tmp_path / "cache"
    hidden = "cpgk56nfdwvs2tga5f6cczcppj3o2jodwcr224u73vmryvm43xe2"  # the kernel path of triton_red_…_0
    (cache / "pg").mkdir(parents=True)
    (cache / "pg" / f"{best_config_keys(hidden + '.py', key)[0]}.best_config").write_text(
        json.dumps({"XBLOCK": 1, "R0_BLOCK": 1024, "num_warps": 8, "num_stages": 1})
    )
    red = "triton_red_fused__to_copy_add_embedding_mean_mul_pow_rsqrt_0"
    for options, guessed in (({"torch_key": key}, False), ({}, True)):
        events, report, _ = read(llama, inductor_cache=cache, **options)
        assert report.cache_files == 1
        assert report.unmapped == 2
        kernel = of(events, "kernel", red)[0]
        assert kernel.kernel.best_config["R0_BLOCK"] == 1024
        assert ("kernel.best_config" in kernel.inferred) is guessed
        config = of(events, "best_config", red)[0]
        assert config.files[0].startswith("inductor-cache/pg/")
        assert ("kernel" in config.inferred) is guessed
    with pytest.raises(SourceError, match="Inductor cache"):
        read_directory(llama, print, inductor_cache=tmp_path / "missing")


def test_a_folder_of_the_cache_decides_only_where_it_holds_one_kernel(llama, tmp_path):
    code = parse_output_code(members("llama_h200")["__compiled_fn_1.kernel_118.py"])
    item = next(i for i in code.kernels if i.kernel.name == "triton_poi_fused__to_copy_expand_unsqueeze_2")
    folder = tmp_path / PurePath(item.path).parent.name
    folder.mkdir()
    (folder / f"{'c' * 64}.best_config").write_text(best_config(1))  # it fits many kernels
    for modules, unmapped in ((0, 2), (1, 2), (2, 3)):
        if modules:
            (folder / f"cab{modules}.py").write_text(triton_kernel(modules))
        _, report, _ = read(llama, inductor_cache=tmp_path)
        assert report.unmapped == unmapped


def test_passes_are_paired_ordered_and_compared(cold):
    events, report, book = read(cold)
    assert (report.rank, report.dp_rank) == (0, 0)
    assert book.framework["vllm"] == {"rank": 0, "dp_rank": 0}
    passes = of(events, "pass")
    assert len(passes) == 3 * 13 + 2 * 4
    assert all(e.changed is False for e in passes if e.phase == "after")
    assert all(e.changed is None for e in passes if e.phase == "before")
    first_piece = [e for e in passes if e.files[0].endswith(".0.py") and e.data and "position" in e.data]
    assert [(e.data["position"], e.phase) for e in first_piece] == [
        *[(n, phase) for n in range(5) for phase in ("before", "after")],
        (5, "before"), (5, None), (5, "after"),
    ]  # fmt: skip
    files = [e.files[0] for e in events]
    last_pass = files.index("__compiled_fn_1.post_grad.5.FixFunctionalizationPass.after.1.py")
    assert files[last_pass + 1] == "__compiled_fn_1.AFTER_POST_GRAD.1.py"
    split = [e for e in of(events, "graph") if e.stage == "split"]
    assert [(e.phase, e.changed) for e in split] == [("before", None), ("after", True)]
    assert split[0].data["same_as"].startswith("__compiled_fn_1.__compiled_fn_1_")
    assert "data.same_as" in split[0].inferred
    stages = list(dict.fromkeys(e.stage for e in events if e.kind == "graph"))
    assert stages == [
        "captured", "runtime_asserts", "split", "split_module", "pre_grad", "tensorify", "forward",
        "post_grad",
    ]  # fmt: skip
    assert events[0].name == "__compiled_fn_1"
    assert book.records()[0].function.name == "forward"


def test_a_changed_pass_is_told_from_an_unchanged_one(tmp_path):
    root = tmp_path / "rank_0"
    root.mkdir()
    write = lambda name, content: (root / f"__compiled_fn_1.{name}.py").write_text(content)  # noqa: E731 # four short lines
    write("post_grad.0.FusePass.before.0", graph("add", "relu"))
    write("post_grad.0.FusePass.after.0", graph("add_relu"))
    write("post_grad.1.CleanPass.before.0", graph("add_relu"))
    write("post_grad.1.CleanPass.after.0", graph("add_relu"))
    # depyf wrote one file for two graphs that ended the same: the numbers of the sides do not agree
    write("post_grad.2.MergePass.before.0", graph("a"))
    write("post_grad.2.MergePass.before.1", graph("b"))
    write("post_grad.2.MergePass.after.0", graph("b"))
    write("post_grad.3.NewPass.before.0", graph("a"))
    write("post_grad.3.NewPass.before.1", graph("b"))
    write("post_grad.3.NewPass.after.0", graph("c"))
    # where the numbers agree they count: this pass made b of a, and c of b
    write("post_grad.4.ShiftPass.before.0", graph("a"))
    write("post_grad.4.ShiftPass.before.1", graph("b"))
    write("post_grad.4.ShiftPass.after.0", graph("b"))
    write("post_grad.4.ShiftPass.after.1", graph("c"))
    events, _, _ = read(root)
    changed = {e.name: e.changed for e in events if e.phase == "after" and "after.0" in e.files[0]}
    assert changed == {
        "FusePass": True, "CleanPass": False, "MergePass": False, "NewPass": True, "ShiftPass": True,
    }  # fmt: skip
    assert all("changed" in e.inferred for e in events if e.phase == "after")


def test_names_that_differ_by_a_uuid_alone_make_no_change(tmp_path):
    uuids = ("84b539b4_e8c0_4184_8f07_e6311c8a40a9", "c01bb6aa_0f45_4ea0_86c2_9b4babee7059")
    for n, uuid in enumerate(uuids):
        name = f"__compiled_fn_1.{('before', 'after')[n]}_split.0.py"
        (tmp_path / name).write_text(graph("mm") + f"# __compiled_fn_1_{uuid}\n")
    events, _, _ = read(tmp_path)
    assert [e.changed for e in events] == [None, False]


def test_training_directions(tmp_path):
    for name, ops in {
        "Joint_graph.0": ["j"], "Forward_graph.0": ["f"], "Backward_graph.0": ["b"],
        "AFTER_POST_GRAD.0": ["f2"], "AFTER_POST_GRAD.1": ["b2"],
    }.items():  # fmt: skip
        (tmp_path / f"__compiled_fn_3.{name}.py").write_text(graph(*ops))
    (tmp_path / "__compiled_fn_3.kernel_0.py").write_text(
        output_code([1]).replace("0_inference", "0_forward")
    )
    (tmp_path / "__compiled_fn_3.kernel_1.py").write_text(
        output_code([2]).replace("0_inference", "0_backward")
    )
    events, _, _ = read(tmp_path)
    directions = [(e.stage, e.direction) for e in events if e.kind == "graph"]
    assert directions == [
        ("joint", "joint"), ("forward", "forward"), ("backward", "backward"),
        ("post_grad", "forward"), ("post_grad", "backward"),
    ]  # fmt: skip
    kernels = {e.name: e.direction for e in events if e.kind == "kernel" and e.kernel.backend == "triton"}
    assert kernels == {"triton_poi_fused_add_1": "forward", "triton_poi_fused_add_2": "backward"}


def test_warm_vllm_says_so_and_what_to_do(tmp_path):
    root = unpack("vllm_warm", tmp_path / "rank_0_dp_0")
    events, report, book = read(root)
    assert report.warm
    assert report.files == 4
    assert len(of(events, "output_code")) == 4
    found = verdict(book)
    assert found.verdict == "warm"
    assert any("__compiled_fn_-1" in reason for reason in found.reasons)
    assert any("TORCHINDUCTOR_FORCE_DISABLE_CACHES" in hint for hint in found.hints)
    assert any("VLLM_DISABLE_COMPILE_CACHE" in hint for hint in found.hints)


def pack(root, level, target):
    session = Session(DumpConfig(level=level), lambda: target, source="directory")
    report = read_directory(root, session.record, session.book)
    session.finish()
    return structdump.load(target), report


@pytest.mark.parametrize("level", ["low", "medium", "full"])
def test_the_93_files_are_accounted_for_at_every_level(tmp_path, level):
    root = ninety_three(tmp_path / "dump")
    found = {p.name for p in root.iterdir()}
    assert len(found) == 93
    bundle, report = pack(root, level, tmp_path / "out.json.zst")
    c = bundle.completeness
    assert report.files == 93
    assert c.seen == c.kept + c.indexed + c.dropped == report.files + report.parts
    listed = {f for a in bundle.artifacts for f in a.files}
    assert listed <= found
    assert len(found - listed) == c.dropped == (len(CANDIDATES) if level == "low" else 0)
    assert report.parts == 3  # one library call per output code
    assert len(bundle.configs()) == 18
    for config in bundle.configs():
        assert config.name == f"triton_poi_fused_add_{parse_file_name(config.files[0]).index}"
        assert config.kernel is not None
    tuned = {a.name: a.best_config for a in bundle.kernels("triton_*", role="used") if a.kernel.best_config}
    assert set(tuned) == {f"triton_poi_fused_add_{n}" for n in TUNED}
    assert tuned["triton_poi_fused_add_13"] == {"XBLOCK": 128, "num_warps": 4, "num_stages": 1}
    assert all(a.kernel.role == "candidate" for a in bundle.artifacts if a.kind == "candidate")
    assert bundle.compiles[0].function.name == "forward"
    if level == "full":
        texts = {
            f: a.text for a in bundle.artifacts if len(a.files) == 1 for f in a.files if a.kind == "graph"
        }
        assert texts["__compiled_fn_1.AFTER_POST_GRAD.2.py"] == graph("mm", "op2", "add")


def test_same_directory_elsewhere_gives_the_same(tmp_path):
    first = ninety_three(tmp_path / "a")
    second = shutil.copytree(first, tmp_path / "b" / "other")
    for path in sorted(second.iterdir(), reverse=True):
        path.touch()
    one, _, _ = read(first)
    two, _, _ = read(second)

    def strip(events):
        return [(e.kind, e.name, e.stage, e.files, e.changed, e.inferred, text(e)) for e in events]

    assert strip(one) == strip(two)


def test_a_node_that_two_graphs_have_on_different_lines_gives_no_line(tmp_path):
    for n, line in enumerate((3, 3, 5)):
        body = "\n".join(
            f"        # File: m{n * i}.py:{line} in f, code: c\n        n{i} = x\n" for i in range(3)
        )
        (tmp_path / f"__compiled_fn_0.AFTER_POST_GRAD.{n}.py").write_text(body)
    fragment = "# Graph fragment:\n" + "".join(
        f'#   %n{i} : Tensor "f32[2]"[num_users=1] = call_function[target=t](args = ())\n' for i in range(3)
    )
    code = output_code([1]).replace("# Topologically", f"{fragment}# Topologically")
    (tmp_path / "__compiled_fn_0.kernel_0.py").write_text(code)
    events, _, _ = read(tmp_path)
    assert of(events, "kernel", "triton_poi_fused_add_1")[0].kernel.stack == []
    (tmp_path / "__compiled_fn_0.AFTER_POST_GRAD.2.py").unlink()
    events, _, _ = read(tmp_path)
    assert [f.line for f in of(events, "kernel", "triton_poi_fused_add_1")[0].kernel.stack] == [3]


def test_old_depyf_s_names_with_spaces(tmp_path):
    (tmp_path / "__compiled_fn_0 Captured Graph 0.py").write_text(graph("mm"))
    (tmp_path / "__compiled_fn_0 AFTER POST GRAD 0.py").write_text(graph("mm"))
    (tmp_path / "__compiled_fn_0 kernel 0.py").write_text(output_code([1]))
    (tmp_path / "__compiled_fn_0 kernel 1.py").write_text(triton_kernel(1))
    (tmp_path / "__compiled_fn_0 kernel 1.best_config").write_text(best_config(1))
    events, _, _ = read(tmp_path)
    assert [(e.kind, e.stage) for e in events[:3]] == [
        ("graph", "captured"), ("graph", "post_grad"), ("output_code", "output_code"),
    ]  # fmt: skip
    assert of(events, "best_config")[0].kernel.name == "triton_poi_fused_add_1"


def test_without_an_output_code_kernels_count_as_run(tmp_path):
    (tmp_path / "__compiled_fn_0.kernel_0.py").write_text(triton_kernel(0))
    (tmp_path / "__compiled_fn_0.kernel_1.py").write_text(triton_kernel(1, "triton_mm").replace(
        "'kernel_name': 'triton_mm'", "'kernel_name': 'Placeholder.DESCRIPTIVE_NAME'"))  # fmt: skip
    events, _, _ = read(tmp_path)
    assert [(e.kind, e.kernel.role) for e in events] == [("kernel", "used"), ("candidate", "candidate")]
    assert all("kernel.role" in e.inferred for e in events)


def test_a_lone_config_goes_to_the_only_kernel_it_fits(tmp_path):
    (tmp_path / "__compiled_fn_0.kernel_0.py").write_text(output_code([1]))
    (tmp_path / f"{'ab' * 32}.best_config").write_text(best_config(1))
    events, report, _ = read(tmp_path)
    assert of(events, "kernel", "triton_poi_fused_add_1")[0].kernel.best_config["XBLOCK"] == 32
    assert of(events, "best_config")[0].inferred == ["kernel"]
    assert report.unmapped == 0


def test_a_kernel_of_two_output_codes_has_its_file_once(tmp_path):
    (tmp_path / "__compiled_fn_0.kernel_0.py").write_text(output_code([1, 2]))
    (tmp_path / "__compiled_fn_0.kernel_1.py").write_text(output_code([1, 3]))
    (tmp_path / "__compiled_fn_0.kernel_2.py").write_text(triton_kernel(1))
    (tmp_path / "__compiled_fn_0.kernel_2.best_config").write_text(best_config(1))
    events, report, _ = read(tmp_path)
    assert report.parts == 5
    both = of(events, "kernel", "triton_poi_fused_add_1")
    assert [e.files for e in both] == [["__compiled_fn_0.kernel_2.py"], ["__compiled_fn_0.kernel_1.py"]]
    assert all(e.kernel.best_config for e in both)


def test_all_other_files(tmp_path):
    names = {
        "full_code_for_<lambda>_0.py": ("source", "full_code"),
        "__transformed_code_0_for_f.py": ("source", "decompiled"),
        "__transformed_code_0_for_f.py.original_bytecode": ("bytecode", "original"),
        "__transformed_code_0_for_f.py.transformed_bytecode": ("bytecode", "transformed"),
        "__transformed_code_0_for_f.py.decompiled_and_compiled_back_bytecode": ("bytecode", "decompiled"),
        f"fx_graph_code_{'0a' * 16}_0.py": ("graph", "fx_graph_code"),
        "__compiled_fn_0.kernel_%s.py.lock": ("event", "lock"),
        "patterns.FusePass.0.py": ("event", "patterns"),
        "transformed_code.py": ("source", "decompiled"),
        "computation_graph.py": ("graph", "split"),
        "cache_key_factors.json": ("cache", "cache_key_factors"),
        "vllm_compile_cache.py": ("cache", "vllm_compile_cache"),
        "notes.txt": ("event", "other_file"),
    }
    for name in names:
        (tmp_path / name).write_text("x")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "model.bin").write_bytes(b"\x00")
    events, report, book = read(tmp_path)
    assert {e.files[0]: (e.kind, e.stage) for e in events} == {
        **names,
        "more/model.bin": ("event", "other_file"),
    }
    assert report.problems == {"lock file": 1, "not a dump file": 2, "pickled code is never loaded": 3}
    assert "vllm" in book.framework


def test_ranks(tmp_path):
    for name in ("rank_10", "rank_2_dp_1", "rank_2_dp_0", "cache"):
        (tmp_path / name).mkdir()
    (tmp_path / "rank_3").symlink_to(tmp_path / "cache")
    assert [(r.rank, r.dp_rank, r.path.name) for r in find_ranks(tmp_path)] == [
        (2, 0, "rank_2_dp_0"), (2, 1, "rank_2_dp_1"), (10, None, "rank_10"),
    ]  # fmt: skip
    assert [(r.rank, r.path) for r in find_ranks(tmp_path / "rank_10")] == [(10, tmp_path / "rank_10")]
    assert [(r.rank, r.path) for r in find_ranks(tmp_path / "cache")] == [(None, tmp_path / "cache")]
    assert [r.path for r in find_ranks(tmp_path / "missing")] == [tmp_path / "missing"]
