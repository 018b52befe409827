"""Extracting a stranger's bundle: whatever its names are, nothing happens outside the directory."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sample_bundles import bundle_of

from structdump.analyze.extract import extract
from structdump.analyze.extract_target import LONGEST, Names, Target, slug
from structdump.errors import UsageError

NAMES = [
    "../../etc/passwd",
    "/etc/passwd",
    "..",
    ".",
    "",
    "a/../../b",
    "..\\..\\b",
    "C:\\Windows\\system32",
    "CON",
    "nul.txt",
    "aux.",
    "x" * 300,
    "é" * 300,
    "日本",
    "\ud800",
    "a\0b",
    "a\nb",
    "\x1b[31mred\x9b2J\u202e",
    "-rf",
    ".hidden",
    "name.",
    "name ",
    "README.md",
    "../README.md",
    "passes/../../README",
]


TEXTS = {"best_config": '{"XBLOCK": 1}'}


def hostile(name):
    """Artifacts of every kind that a file is made of, with `name` wherever a name can be."""
    kernel = {
        "name": name,
        "backend": name,
        "ops": [name],
        "nodes": [name],
        "fragment": name,
        "heuristic": name,
    }
    kernel |= {"grid": name, "size_hints": {name: 1}, "best_config": {name: name}}
    kernel["stack"] = [{"file": name, "line": 1, "name": name}]
    place = {"compile_id": name, "direction": "forward", "subgraph": {"name": name, "range": [1]}}
    kinds = ["graph", "pass", "output_code", "guards", "source", "bytecode", "repro", "ir", "metrics"]
    kinds += ["cache", "event", "trace", "autotune", "best_config"]
    for kind in kinds:
        for language in ("python", name):
            yield {
                "kind": kind,
                "stage": name,
                "name": name,
                **place,
                "language": language,
                "text": TEXTS.get(kind, "x = 1\n"),
            }
    for language in ("python", "cpp"):
        for kind, role in (("kernel", "used"), ("candidate", "candidate")):
            fields = {
                "kind": kind,
                "name": name,
                **place,
                "language": language,
                "kernel": {**kernel, "role": role},
            }
            yield {**fields, "text": "x = 1\n" if language == "python" else "int x;\n"}
            yield {**fields, "text": None}


def hostile_bundle(directory, names):
    compiles = [
        {
            "id": name,
            "function": {"name": name, "file": name, "line": 1},
            "error": {"type": name, "message": name},
            "graph_breaks": [{"reason": name, "resumed_by": name}],
            "recompile": {"reason": name, "guard": name},
        }
        for name in names
    ]
    head = {"run": {"id": "r", "program": names[0]}}
    artifacts = [a for name in names for a in hostile(name)]
    return bundle_of(directory, *artifacts, compiles=compiles, head=head, versions={"torch": names[0]})


def everything_below(directory):
    """All paths below, none of which is a link."""
    found = []
    for folder, folders, names in os.walk(directory):
        for name in (*folders, *names):
            path = Path(folder, name)
            assert not path.is_symlink()
            found.append(path.relative_to(directory).as_posix())
    return sorted(found)


@pytest.mark.parametrize("layout", ["tree", "depyf"])
def test_names_lead_nowhere(tmp_path, layout):
    bundle = hostile_bundle(tmp_path / "b", [n for n in NAMES if "\ud800" not in n])
    before = set(everything_below(tmp_path))
    done = extract(bundle, tmp_path / "out", layout)
    made = {p for p in everything_below(tmp_path) if p not in before and p != "out"}
    assert made
    assert all(p.startswith("out/") for p in made)
    written = [p for p in everything_below(tmp_path / "out") if (tmp_path / "out" / p).is_file()]
    assert sorted(done.files) == written
    assert len({p.lower() for p in written}) == len(written)
    for path in everything_below(tmp_path / "out"):
        for part in path.split("/"):
            assert len(part.encode()) <= 255
            assert part.isprintable()
            assert part not in (".", "..")
            if layout == "tree":
                assert part.isascii()
                assert part == "README.md" or part.partition(".")[0].upper() not in ("CON", "NUL", "AUX")


def test_what_a_kernel_is_called_stays_in_its_comment(tmp_path):
    """No line end, no continuation and no coding of a name's own gets into the code below."""
    names = [
        "a\nimport os",
        "a\rimport os",
        "a\x0cb",
        "a\u2028b",
        "coding: rot13",
        "back\\",
        "a\\\n",
        "*/ x",
        "??/",
    ]
    bundle = hostile_bundle(tmp_path / "b", names)
    extract(bundle, tmp_path / "out")
    for path in (tmp_path / "out/kernels").rglob("*"):
        if path.suffix == ".py":
            (only,) = ast.parse(path.read_bytes()).body
            assert ast.unparse(only) == "x = 1"
        elif path.suffix == ".cpp":
            lines = path.read_text().removesuffix("int x;\n").splitlines()
            assert all(not line or line.startswith("//") for line in lines)
            assert not any(line.rstrip().endswith(("\\", "??/")) for line in lines)


def test_the_index_shows_names_as_they_are(tmp_path):
    names = [
        "<script>alert(1)</script>",
        "a|b",
        "`x` <b>",
        "[a](http://b)",
        "# a\n# b",
        "\x1b[31m",
        "![x](http://c)",
    ]
    extract(hostile_bundle(tmp_path / "b", names), tmp_path / "out")
    text = (tmp_path / "out/README.md").read_text()
    assert "\x1b" not in text
    for line in text.splitlines():
        outside = "".join(line.split("`")[::2])  # of code spans
        assert line.count("`") % 2 == 0
        for mark in ("<", "://", "![", "\\"):
            assert mark not in outside, line


def test_json_is_json_whatever_a_bundle_says(tmp_path):
    extract(hostile_bundle(tmp_path / "b", ['"', "\x7f\x00", "a\\"]), tmp_path / "out")
    for path in (tmp_path / "out").rglob("*.json"):
        if "compiles/" not in str(path) and path.name != "trace.json":
            json.loads(path.read_text())


@settings(max_examples=300, deadline=None)
@given(st.text())
def test_a_slug_is_one_harmless_part(name):
    made = slug(name)
    assert made not in ("", ".", "..")
    assert made.isascii()
    assert made.isprintable()
    assert not set(made) & set('/\\:*?"<>|\0 ')
    assert len(made) <= LONGEST
    assert not made.startswith((".", "-"))
    assert not made.endswith(".")
    assert slug(made) == made or len(name) > LONGEST - 9


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "A", "a_2", "A_3"]), st.sampled_from([".py", ".PY", ""])), max_size=40
    )
)
def test_no_path_is_given_twice(wanted):
    names = Names()
    made = [names.free(*pair).lower() for pair in wanted]
    assert len(set(made)) == len(made)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.text(st.characters(exclude_categories=["Cs"]), max_size=40), n=st.integers(0, 10**9))
def test_any_name_is_extracted(tmp_path, name, n):
    folder = tmp_path / f"{n}-{time.monotonic_ns()}"
    folder.mkdir()
    for layout in ("tree", "depyf"):
        extract(hostile_bundle(folder / "b", [name]), folder / layout, layout, force=True)
    assert {p.split("/")[0] for p in everything_below(folder)} == {"b", "tree", "depyf"}


# --- links ---


def test_no_link_is_followed(tmp_path):
    bundle = hostile_bundle(tmp_path / "b", ["a"])
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "victim").write_text("mine")
    for link, to in (("compiles", outside), ("kernels", outside), ("run", "/nowhere")):
        out = tmp_path / f"out-{link}"
        out.mkdir()
        (out / link).symlink_to(to)
        with pytest.raises(UsageError, match="cannot be written"):
            extract(bundle, out, force=True)
        assert [p.name for p in outside.iterdir()] == ["victim"]


def test_a_link_in_place_of_a_file_is_replaced(tmp_path):
    bundle = hostile_bundle(tmp_path / "b", ["a"])
    victim, out = tmp_path / "victim", tmp_path / "out"
    victim.write_text("mine")
    out.mkdir()
    (out / "README.md").symlink_to(victim)
    os.link(victim, out / "compiles.json")
    extract(bundle, out, force=True)
    assert victim.read_text() == "mine"
    assert not (out / "README.md").is_symlink()
    assert json.loads((out / "compiles.json").read_text())


def test_a_pipe_or_a_directory_in_the_way_is_no_trap(tmp_path):
    bundle = hostile_bundle(tmp_path / "b", ["a"])
    out = tmp_path / "out"
    out.mkdir()
    os.mkfifo(out / "README.md")
    extract(bundle, out, force=True)
    assert (out / "README.md").is_file()
    (out / "environment.json").unlink()
    (out / "environment.json").mkdir()
    with pytest.raises(UsageError, match=r"environment\.json cannot be written"):
        extract(bundle, out, force=True)


def test_a_folder_that_becomes_a_link_meanwhile(tmp_path):
    """A link made at any moment leads no file outside."""
    outside, out = tmp_path / "outside", tmp_path / "out"
    outside.mkdir()
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            folder = out / "sub"
            try:
                folder.rename(tmp_path / f"moved-{time.monotonic_ns()}")
                folder.symlink_to(outside)
                folder.unlink()
            except OSError:
                pass

    thread = threading.Thread(target=swap)
    failed = 0
    with Target(out) as target:
        thread.start()
        try:
            for n in range(2000):
                try:
                    target.write(f"sub/{n}.txt", "x")
                except UsageError:
                    failed += 1
        finally:
            stop.set()
            thread.join()
    assert failed < 2000
    assert list(outside.iterdir()) == []


def test_the_target_itself_may_be_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    extract(hostile_bundle(tmp_path / "b", ["a"]), tmp_path / "link")
    assert (tmp_path / "real/README.md").exists()


@pytest.mark.parametrize("path", ["../a", "a/../b", "/a", "a//b", "", ".", "a/.", "a\0"])
def test_a_path_that_is_none_is_refused(tmp_path, path):
    with Target(tmp_path / "out") as target, pytest.raises(ValueError, match="no path to write to"):
        target.write(path, "x")
    assert everything_below(tmp_path) == ["out"]


# --- size and trouble ---


def test_many_of_one_name_take_linear_time(tmp_path):
    def took(count):
        names = Names()
        begun = time.perf_counter()
        for _ in range(count):
            names.free("a", ".py")
        return time.perf_counter() - begun

    took(1000)
    assert took(100_000) < 50 * max(took(10_000), 0.005)


LIMITED = """
import resource, sys
from structdump.analyze.extract_target import Target
from structdump.errors import UsageError
from pathlib import Path
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with Target(Path(sys.argv[1])) as target:
    try:
        target.write("a.txt", "x" * 5000)
    except UsageError as error:
        print(error)
"""


def test_a_full_disk_is_said(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "out")], capture_output=True, text=True, check=False
    )
    assert "a.txt cannot be written: File too large" in done.stdout, done.stderr


def test_lone_surrogates_in_a_text(tmp_path):
    bundle = bundle_of(tmp_path / "b", {"kind": "event", "name": "e", "text": "x"})
    (digest,) = bundle.texts
    bundle.texts = {digest: "a\ud800b"}
    extract(bundle, tmp_path / "out")
    assert (tmp_path / "out/compiles/no-id/events/e.txt").read_text() == "a\\ud800b"
