"""What tuning chose and what Triton made of it, collected live: from torch's own cache, without a GPU."""

from __future__ import annotations

import functools
import json
import types
from pathlib import Path

import pytest
from dump_trees import triton_kernel

import structdump

pytest.importorskip("torch")
from torch._guards import CompileContext, CompileId, compile_context
from torch._inductor import codecache
from torch._inductor.runtime import autotune_cache, triton_heuristics  # the hooks wait for it
from torch._logging._internal import trace_structured

from structdump.sources.hooks.assembly import _seen as seen
from structdump.sources.hooks.state import state_of

NAME = "triton_poi_fused_add_0"
META = {"autotune_local_cache": True, "autotune_remote_cache": False, "kernel_name": NAME}


def emit(frame, *kernels):
    """Tell torch's trace of an output code that runs these kernels: (name, source, file)."""
    text = "async_compile = AsyncCompile()\n"
    for name, source, path in kernels:
        text += f"# kernel path: {path}\n{name} = async_compile.triton('{name}', '''{source}''')\n"
    text += "def call(args):\n" + "".join(f"    {name}.run(x, stream=s)\n" for name, _, _ in kernels)
    with compile_context(CompileContext(CompileId(frame_id=frame, frame_compile_id=0))):
        trace_structured("inductor_output_code", lambda: {"filename": f"{frame}.py"}, payload_fn=lambda: text)


def chosen(xblock=64):
    return types.SimpleNamespace(kwargs={"XBLOCK": xblock}, num_warps=4, num_stages=1)


class Autotuner:
    """The frame from which torch saves: CachingAutotuner needs a GPU."""

    def __init__(self, path, name=NAME):
        self.filename = str(path)
        self.fn = types.SimpleNamespace(__name__=name)
        self.compile_results = []
        self.launchers = []
        self.triton_meta = {"device": 0}

    def tune(self, config, **facts):
        cache = autotune_cache.AutotuneCache.create(META, self.filename, "hash")
        cache.save(config, 7_000_000, **facts)
        return Path(cache.local_cache[1])


@pytest.fixture
def lies(tmp_path):
    """A kernel's file, as Inductor lays it down."""
    path = tmp_path / "cache" / "ab" / "cabc.py"
    path.parent.mkdir(parents=True)
    path.write_text(triton_kernel(1))
    return path


def captured(tmp_path):
    return structdump.capture(tmp_path / "run.json.zst", level="full", redact=False)


def configs(capture):
    return [(a.compile_id, a.name, a.stage, a.data) for a in structdump.load(capture.path).configs()]


def test_what_is_saved_is_what_the_file_says(tmp_path, lies):
    with captured(tmp_path) as capture:
        emit(0, (NAME, triton_kernel(1), lies))
        stored = Autotuner(lies).tune(chosen(), found_by_coordesc=True, triton_cache_hash="ABC")
    assert configs(capture) == [("0/0", NAME, "saved", json.loads(stored.read_text()))]
    kernel = structdump.load(capture.path).kernels(NAME)[0]
    assert kernel.best_config == {"XBLOCK": 64, "num_warps": 4, "num_stages": 1}


def test_without_a_local_cache_it_is_put_together(tmp_path, lies):
    cache = autotune_cache.AutotuneCache("hash")
    autotuner = Autotuner(lies)

    def tune(self):
        cache.save(chosen(), 7_000_000, found_by_coordesc=True)

    with captured(tmp_path) as capture:
        emit(0, (NAME, triton_kernel(1), lies))
        tune(autotuner)
    (found,) = configs(capture)
    assert found[3]["time_taken_ms"] == 7
    assert found[3]["found_by_coordesc"] is True
    assert found[3]["XBLOCK"] == 64


def test_what_is_read_when_a_kernel_is_loaded(tmp_path, lies):
    stored = Autotuner(lies).tune(chosen())
    content = json.loads(stored.read_text())
    with captured(tmp_path) as capture:
        triton_heuristics.check_autotune_cache(
            [chosen(), chosen(8)], str(lies), META
        )  # before its output code
        emit(3, (NAME, triton_kernel(1), lies))
    assert configs(capture) == [("3/0", NAME, "read", content)]


def test_what_another_process_read(tmp_path, lies):
    content = json.loads(Autotuner(lies).tune(chosen()).read_text())
    with captured(tmp_path) as capture:
        emit(0, (NAME, triton_kernel(1), lies))
    assert configs(capture) == [("0/0", NAME, "file", content)]


def test_a_cache_that_has_moved(tmp_path, lies):
    content = json.loads(Autotuner(lies).tune(chosen()).read_text())
    with captured(tmp_path) as capture:
        emit(0, (NAME, triton_kernel(1), "/home/alex/cache/ab/cabc.py"))
        (session,) = structdump.sources.hooks.HUB.sessions
        state_of(session).lies_in(str(lies))
    assert configs(capture) == [("0/0", NAME, "file", content)]


def test_a_kernel_that_two_graphs_share_is_tuned_once(tmp_path, lies):
    with captured(tmp_path) as capture:
        emit(0, (NAME, triton_kernel(1), lies))
        Autotuner(lies).tune(chosen())
        emit(1, (NAME, triton_kernel(1), lies))
    assert [c[:2] for c in configs(capture)] == [("0/0", NAME), ("1/0", NAME)]


def test_one_name_of_two_kernels(tmp_path, lies):
    other = lies.with_name("cother.py")
    other.write_text(triton_kernel(2))
    with captured(tmp_path) as capture:
        emit(0, (NAME, triton_kernel(1), lies))
        emit(1, (NAME, triton_kernel(2), other))
        Autotuner(lies).tune(chosen(1))
        candidate = lies.with_name("cthird.py")
        candidate.write_text(triton_kernel(3))
        Autotuner(candidate).tune(chosen(3))
    assert [(c[0], c[3]["XBLOCK"]) for c in configs(capture)] == [("0/0", 1), (None, 3)]
    bundle = structdump.load(capture.path)
    assert {k.compile_id: k.best_config and k.best_config["XBLOCK"] for k in bundle.kernels(NAME)} == {
        "0/0": 1,
        "1/0": None,
    }
    assert [a.kernel.role for a in bundle.configs()] == ["used", "candidate"]


@pytest.fixture
def triton_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    for key in ("WON", "LOST"):
        folder = tmp_path / "triton" / key
        folder.mkdir(parents=True)
        for stage in ("ttir", "ttgir", "llir", "ptx", "json", "source"):
            (folder / f"{NAME}.{stage}").write_text(f"{stage} of {key}")
        (folder / f"{NAME}.cubin").write_bytes(b"\x7fELF\xff")


def result(config, key):
    return types.SimpleNamespace(config=config, kernel=types.SimpleNamespace(hash=key))


def assembly(tmp_path, lies, autotuner, reload_kernel=None):
    with captured(tmp_path) as capture:
        emit(0, (NAME, triton_kernel(1), lies))
        emit(1, (NAME, triton_kernel(2), lies.with_name("cdef.py")))
        (session,) = structdump.sources.hooks.HUB.sessions
        seen(autotuner, reload_kernel, session)
    bundle = structdump.load(capture.path)
    assert bundle.hook_errors == []
    return {a.stage: a.text for a in bundle.artifacts if a.kind == "ir"}


STAGES = ("ttir", "ttgir", "llir", "ptx")


@pytest.mark.usefixtures("triton_cache")
def test_a_static_kernel_has_its_text_in_tritons_cache(tmp_path, lies):
    autotuner = Autotuner(lies)
    won, lost = chosen(), chosen(8)
    autotuner.compile_results = [result(lost, "LOST"), result(won, "WON")]
    autotuner.launchers = [types.SimpleNamespace(config=won, cache_hash="WON")]
    assert assembly(tmp_path, lies, autotuner) == {s: f"{s} of WON" for s in STAGES}


@pytest.mark.usefixtures("triton_cache")
def test_a_kernel_that_coordinate_descent_found(tmp_path, lies):
    autotuner = Autotuner(lies)
    autotuner.compile_results = [result(chosen(8), "LOST")]
    autotuner.compile_results[0].kernel.asm = {"ttir": "of the start"}
    autotuner.launchers = [types.SimpleNamespace(config=chosen(), cache_hash="WON")]
    assert assembly(tmp_path, lies, autotuner) == {s: f"{s} of WON" for s in STAGES}


def test_text_in_memory(tmp_path, lies):
    autotuner = Autotuner(lies)
    won = chosen()
    autotuner.compile_results = [result(chosen(8), "LOST"), result(won, "WON")]
    autotuner.compile_results[1].kernel.asm = {"ttir": "in memory", "cubin": b"\x7fELF"}
    autotuner.launchers = [types.SimpleNamespace(config=won, cache_hash="WON")]
    assert assembly(tmp_path, lies, autotuner) == {"ttir": "in memory"}


@pytest.mark.usefixtures("triton_cache")
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_template_that_another_process_compiled_is_known_by_its_source(tmp_path, lies, number):
    load_kernel = functools.partial(codecache.PyCodeCache.load, NAME, triton_kernel(number))

    def reload_kernel_in_parent():
        return load_kernel()

    autotuner = Autotuner(lies)
    autotuner.filename = autotuner.fn.fn = None
    autotuner.launchers = [types.SimpleNamespace(config=chosen(), cache_hash="WON")]
    runs = number < 3
    found = assembly(tmp_path, lies, autotuner, reload_kernel_in_parent)
    assert found == ({s: f"{s} of WON" for s in STAGES} if runs else {})


@pytest.mark.usefixtures("triton_cache")
def test_a_candidate_has_none(tmp_path, lies):
    autotuner = Autotuner(lies.with_name("cother.py"))
    autotuner.launchers = [types.SimpleNamespace(config=chosen(), cache_hash="WON")]
    assert assembly(tmp_path, lies, autotuner) == {}
