"""Directories that a stranger sent: nothing in them is run, nothing outside them is read."""

from __future__ import annotations

import os
import pickle
import socket
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structdump.errors import SourceError
from structdump.sources import dump_files
from structdump.sources.compiles import CompileBook
from structdump.sources.depyf_dir import read_directory
from structdump.sources.dump_files import MAX_BYTES

GRAPH = "__compiled_fn_1.Captured_Graph.0.py"


def read(path):
    events: list = []
    report = read_directory(path, events.append, CompileBook())
    for event in events:  # what a recorder does
        if event.unavailable is None and callable(event.text):
            event.text()
        if event.measure is not None:
            event.measure()
    assert {f for e in events for f in e.files} == set(names(path))
    return {f: e for e in events for f in e.files}, report


def names(path):
    return [
        os.path.relpath(os.path.join(folder, f), path)  # noqa: PTH118 # surrogates stay as they are
        for folder, folders, files in os.walk(path)
        for f in files + [d for d in folders if os.path.islink(os.path.join(folder, d))]  # noqa: PTH114, PTH118 # same
    ]


@pytest.fixture
def dump(tmp_path):
    root = tmp_path / "dump"
    root.mkdir()
    (root / GRAPH).write_text("class G: pass\n")
    return root


def test_links_that_lead_outside_are_not_followed(dump, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("canary-7731")
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "__compiled_fn_1.a.0.py").write_text("canary-7731")
    (dump / "__compiled_fn_1.link.0.py").symlink_to(secret)
    (dump / "__compiled_fn_1.relative.0.py").symlink_to("../secret.txt")
    (dump / "__compiled_fn_1.broken.0.py").symlink_to("nowhere")
    (dump / "folder").symlink_to(tmp_path / "secrets")
    (dump / "__compiled_fn_1.loop.0.py").symlink_to("__compiled_fn_1.loop.0.py")
    (dump / "__compiled_fn_1.inside.0.py").symlink_to(GRAPH)
    events, report = read(dump)
    assert events["__compiled_fn_1.link.0.py"].unavailable == "link outside the directory"
    assert events["__compiled_fn_1.inside.0.py"].text() == "class G: pass\n"
    assert sum(report.problems.values()) == 5
    assert not any(callable(e.text) and "canary" in (e.text() or "") for e in events.values())


def test_a_file_that_becomes_a_link_after_the_listing_is_not_followed(dump, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("canary-7731")
    file = next(f for f in dump_files.list_files(dump) if f.name == GRAPH)
    (dump / GRAPH).unlink()
    (dump / GRAPH).symlink_to(secret)
    assert file.read() is None
    assert file.problem.startswith("unreadable")


def test_special_files_are_listed_and_never_opened_for_long(dump):
    os.mkfifo(dump / "__compiled_fn_1.fifo.0.py")
    server = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(dump)  # the path of a socket may have 107 bytes
    try:
        server.bind("__compiled_fn_1.kernel_0.py")
    finally:
        os.chdir(here)
    events, report = read(dump)
    server.close()
    assert report.problems == {"not a regular file": 2}
    assert events["__compiled_fn_1.fifo.0.py"].unavailable == "not a regular file"


def test_a_sparse_file_of_10_gb_is_listed_with_its_size(dump):
    with (dump / "__compiled_fn_1.AFTER_POST_GRAD.0.py").open("wb") as file:
        file.truncate(10 << 30)
    with (dump / "__compiled_fn_1.kernel_0.py").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    events, report = read(dump)
    event = events["__compiled_fn_1.AFTER_POST_GRAD.0.py"]
    assert (event.unavailable, event.size) == ("too large", 10 << 30)
    assert report.problems == {"too large": 2}


@contextmanager
def as_nobody():
    """Drop root's right to read everything, where the tests run as root."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_unreadable_files_are_counted(tmp_path, monkeypatch):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # noqa: PTH101 # before it is where we are
        monkeypatch.chdir(folder)  # nobody else may look into the folders above it
        dump = Path()
        for name in (GRAPH, "__compiled_fn_1.Joint_graph.0.py", "closed/notes"):
            (dump / name).parent.mkdir(exist_ok=True)
            (dump / name).write_text("x")
        (dump / "__compiled_fn_1.Joint_graph.0.py").chmod(0)
        (dump / "closed").chmod(0)
        with as_nobody():
            report = read_directory(dump, lambda event: None)
            assert (report.files, report.problems) == (3, {"unreadable": 2})
            with pytest.raises(SourceError, match="cannot list"):
                read_directory(dump / "closed", lambda event: None)
            with pytest.raises(SourceError, match="cannot list"):
                read_directory(Path("closed/in/it"), lambda event: None)
        (dump / "closed").chmod(0o755)
        monkeypatch.chdir(tmp_path)


def test_pickles_are_never_loaded(dump, tmp_path):
    mark = tmp_path / "ran"

    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(mark),)

    for suffix in ("original_bytecode", "transformed_bytecode", "decompiled_and_compiled_back_bytecode"):
        (dump / f"__transformed_code_0_for_f.py.{suffix}").write_bytes(pickle.dumps(Evil()))
    events, _ = read(dump)
    assert not mark.exists()
    assert [e.unavailable for e in events.values() if e.kind == "bytecode"] == [
        "pickled code is never loaded"
    ] * 3


def test_code_in_the_dump_is_never_run(dump, tmp_path):
    mark = tmp_path / "ran"
    code = f"import os; os.mkdir({str(mark)!r})\n"
    for name in (
        "__compiled_fn_1.kernel_0.py",
        "full_code_for_f_0.py",
        "__init__.py",
        "conftest.py",
        "torch.py",
    ):
        (dump / name).write_text(code)
    read(dump)
    assert not mark.exists()


def test_names_of_all_kinds(dump):
    odd = [
        b"__compiled_fn_1.gr\xff\xfeph.0.py",
        b"__compiled_fn_1.\x1b[31mred.0.py",
        b"__compiled_fn_1.line\nbreak.0.py",
        b"full_code_for_<lambda>_0.py",
        b"full_code_for_a b_0.py",
        b"\xff",
        b"-rf",
        b"__compiled_fn_99999999999999999999.X.0.py",
        b"__compiled_fn_1.X." + b"9" * 200 + b".py",
        b"__compiled_fn_1." + b"n" * 230 + b".0.py",
    ]
    for name in odd:
        Path(os.fsdecode(os.path.join(os.fsencode(dump), name))).write_text("x")  # noqa: PTH118 # bytes
    (dump / "__compiled_fn_1.a").mkdir()
    (dump / "__compiled_fn_1.a" / "b.0.py").write_text("x")
    events, report = read(dump)
    assert report.files == len(odd) + 2
    assert events["__compiled_fn_1.a/b.0.py"].kind == "graph"
    assert events[os.fsdecode(odd[0])].stage == "gr_ph"


def test_files_that_are_no_utf8(dump):
    (dump / GRAPH).write_bytes(b"\xff\xfe\x00class\r\n")
    events, _ = read(dump)
    assert events[GRAPH].text() == "\\xff\\xfe\x00class\r\n"


def test_folders_nested_too_deep(dump):
    folder = dump.joinpath(*["d"] * 40)
    folder.mkdir(parents=True)
    (folder / "x").write_text("x")
    events: list = []
    report = read_directory(dump, events.append)
    assert report.problems == {"folders nested too deep": 1}


def test_a_dump_that_vanishes_while_it_is_read(dump):
    for number in range(5):
        (dump / f"__compiled_fn_1.Forward_graph.{number}.py").write_text("x")
    events: list = []

    def record(event):
        events.append(event)
        for path in dump.iterdir():
            path.unlink()

    assert read_directory(dump, record).files == 6
    assert events[-1].text() is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: None, "does not exist"),
        (lambda p: p.mkdir(), "is empty"),
        (lambda p: p.write_text("x"), "is not a directory"),
        (lambda p: (p.mkdir(), (p / "notes.txt").write_text("x")), "holds no dump"),
        (lambda p: (p.mkdir(), (p / "a.lock").write_text("x")), "holds no dump"),
        (
            lambda p: (p.mkdir(), (p / "src").mkdir(), (p / "src" / "\x1b[2J").write_text("x")),
            "holds no dump",
        ),
    ],
)
def test_what_is_no_dump_gives_one_clear_error(tmp_path, make, message):
    make(tmp_path / "it")
    with pytest.raises(SourceError, match=message) as caught:
        read_directory(tmp_path / "it", print)
    assert str(caught.value).isprintable()


def test_too_many_files(dump, monkeypatch):
    monkeypatch.setattr(dump_files, "MAX_FILES", 3)
    for number in range(5):
        (dump / f"{number}").write_text("x")
    with pytest.raises(SourceError, match="more than 3 files"):
        read_directory(dump, print)


KINDS = ["Captured_Graph.0", "post_grad.0.P.before.0", "post_grad.0.P.after.1", "kernel_0", "kernel_1"]


@settings(max_examples=80, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(KINDS)
        | st.text(
            st.characters(exclude_characters="/\x00", exclude_categories=["Cs"]), min_size=1, max_size=20
        ),
        st.binary(max_size=200) | st.sampled_from([b"async_compile = 1\n", b"@triton.jit\ndef x(", b"{"]),
        min_size=1,
        max_size=8,
    )
)
def test_any_content_under_any_name(files):
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files.items():
            for suffix in (".py", ".best_config", ".kernel_perf"):
                (Path(folder) / f"__compiled_fn_1.{name}{suffix}").write_bytes(data)
        read(folder)
