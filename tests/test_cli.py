"""The command line: what it starts, what it says of mistakes, and the commands that list and print."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from dump_trees import ninety_three
from sample_bundles import GRAPH, KERNEL, bundle_of, write_journal, write_small

import structdump
from structdump import cli
from structdump.cli import main
from structdump.cli.cat import MOST

BUNDLES = Path(__file__).parent / "data" / "bundles"
TRAIN = str(BUNDLES / "train_low.json.zst")
HOSTILE = "a\x1b[31mred\x9b2J\u202eb"


@pytest.fixture
def small(tmp_path):
    return str(write_small(tmp_path))


def start(*arguments, **environment):
    """Run the command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "structdump", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        timeout=60,
        check=False,
    )


def seqs(out):
    """The first column of a table."""
    return [int(line.split()[0]) for line in out.splitlines()[1:]]


# --- what is started ---


def test_help_imports_no_command():
    code = (
        "import sys; from structdump.cli import main; main(['--help'])\n"
        "print([m for m in sys.modules if m.startswith(('structdump.', 'pydantic'))], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "['structdump.cli', 'structdump.errors']"
    for name in ("show", "list", "cat", "doctor"):
        assert f"\n  {name} " in done.stdout


def test_every_command_present_explains_itself(capsys):
    for name in cli.COMMANDS:
        if (Path(cli.__file__).parent / f"{name}.py").exists():
            assert main([name, "--help"]) == 0
            assert f"Usage: structdump {name}" in capsys.readouterr().out


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"structdump {structdump.__version__}\n"


@pytest.mark.parametrize(
    ("typed", "said"), [("shwo", "did you mean show?"), ("bogus", "there are run, show, list, cat")]
)
def test_an_unknown_command(typed, said, capsys):
    assert main([typed, "x"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"structdump: no command '{typed}'; {said}")
    assert len(err.splitlines()) == 1


def test_a_missing_module_breaks_only_its_own_command(monkeypatch, capsys, small):
    monkeypatch.setitem(cli.COMMANDS, "gone", ("structdump.cli.gone:gone", "Not there."))
    assert main(["--help"]) == 0
    assert "gone" not in capsys.readouterr().out
    assert main(["list", small]) == 0
    capsys.readouterr()
    assert main(["gone"]) == 2
    assert capsys.readouterr().err == (
        "structdump: structdump gone cannot run: this installation does not have it\n"
    )


def test_a_missing_requirement_is_named(monkeypatch, capsys, tmp_path):
    (tmp_path / "command_with_needs.py").write_text("import no_such_package\ndef go() -> None: ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(cli.COMMANDS, "needy", ("command_with_needs:go", "Needs more."))
    assert main(["needy"]) == 2
    assert capsys.readouterr().err == "structdump: structdump needy cannot run: it needs no_such_package\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["show"], 2),
        (["show", "--bogus", TRAIN], 2),
        (["list", "no/such/file"], 3),
        (["show", __file__], 3),
        (["show", str(BUNDLES / "..")], 3),
    ],
)
def test_mistakes_have_a_code_and_no_traceback(arguments, code, capsys):
    assert main(arguments) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err
    assert "Traceback" not in err


def test_an_error_cannot_steer_the_terminal(capsys):
    assert main(["show", f"/no/{HOSTILE}"]) == 3
    assert main(["cat", TRAIN, HOSTILE]) == 2
    err = capsys.readouterr().err
    assert "\\x1b[31mred\\x9b2J\\u202eb" in err
    assert not set("\x1b\x9b\u202e") & set(err)


def test_a_reader_that_leaves_early_is_no_error(tmp_path):
    path = bundle_file(tmp_path, *[{"kind": "event", "name": "n" * 60, "text": str(n)} for n in range(3000)])
    for command in (["list", path], ["list", path, "--json"], ["show", path, "--json"]):
        child = subprocess.Popen(
            [sys.executable, "-m", "structdump", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert child.stdout
        child.stdout.readline()
        child.stdout.close()
        assert child.stderr
        assert child.stderr.read() == b""
        assert child.wait(30) == 0


@pytest.mark.parametrize("command", ["show", "list"])
def test_an_encoding_without_the_signs_is_no_error(command):
    done = start(command, TRAIN, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.isascii()


# --- list ---


def bundle_file(tmp_path, *artifacts, **more):
    bundle_of(tmp_path / "b", *artifacts, **more)
    return str(tmp_path / "b" / "small.json.zst")


def test_list_begins_with_the_number_that_cat_takes(small, capsys):
    assert main(["list", small]) == 0
    bundle = structdump.load(small)
    listed = seqs(capsys.readouterr().out)
    assert listed == [a.seq for a in bundle.artifacts]
    for artifact in bundle.artifacts:
        code = main(["cat", small, str(artifact.seq)])
        out = capsys.readouterr().out
        if artifact.digest is not None:
            assert (code, out) == (0, artifact.text)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--kind", "kernel"], [8, 10, 12]),
        (["--kind", "best_*"], [9, 11, 13]),
        (["--stage", "post_grad"], [0, 2, 4, 6]),
        (["--pass", "*"], [14, 15]),
        (["--pass", "fu*"], [14]),
        (["--pass", "*", "--kept"], [14]),
        (["--name", "triton_*_2"], [12, 13]),
        (["--function", "forward", "--kind", "pass"], [14, 15]),
        (["--compile", "0/*", "--kind", "pass"], [14, 15]),
    ],
)
def test_list_filters(options, expected, small, capsys):
    assert main(["list", small, *options]) == 0
    assert seqs(capsys.readouterr().out) == expected
    assert main(["list", small, *options, "--json"]) == 0
    assert [a["seq"] for a in json.loads(capsys.readouterr().out)] == expected


def test_list_of_nothing_says_so_beside_the_data(small, capsys):
    for options in (["--function", "other"], ["--compile", "9/9"], ["--kind", "ir"]):
        assert main(["list", small, *options]) == 0
        out, err = capsys.readouterr()
        assert (out, err) == ("", "no artifact matches\n")


def test_list_says_why_a_text_is_not_there(small, capsys):
    assert main(["list", small, "--pass", "noop"]) == 0
    assert capsys.readouterr().out.split()[-2:] == ["level", "noop"]


def test_list_gives_one_line_for_each_artifact_in_a_pipe(tmp_path, capsys, monkeypatch):
    name = "triton_poi_fused_" + "add_" * 40
    path = bundle_file(tmp_path, {"kind": "kernel", "name": name, "text": KERNEL})
    monkeypatch.setenv("COLUMNS", "80")
    main(["list", path])
    assert capsys.readouterr().out.splitlines()[1].endswith(name)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    main(["list", path])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 3


# --- cat ---


def test_cat_prints_to_the_byte_in_a_pipe(tmp_path):
    text = KERNEL.format(n=0) + HOSTILE + "\r\n\t, no end of line"
    path = bundle_file(tmp_path, {"kind": "kernel", "name": "k", "text": text})
    assert start("cat", path, "k").stdout == text.encode()


def test_cat_takes_a_digest_a_name_or_a_kernel(small, capsys):
    bundle = structdump.load(small)
    kernel = bundle.kernels()[1]
    for which in (kernel.digest[:4], kernel.digest, kernel.name):
        assert main(["cat", small, which]) == 0
        out = capsys.readouterr().out
        assert out == kernel.text


def test_cat_of_a_short_digest_finds_nothing(small, capsys):
    digest = structdump.load(small).kernels()[0].digest
    assert main(["cat", small, digest[:3]]) == 2
    assert "no artifact" in capsys.readouterr().err


def test_cat_lists_what_an_ambiguous_name_could_be(small, capsys):
    assert main(["cat", small, "AFTER POST GRAD"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "4 artifacts are called AFTER POST GRAD" in err
    assert seqs(err.partition("\n")[2]) == [0, 2, 4, 6]


def test_cat_of_several_prints_of_one_text_is_not_ambiguous(tmp_path, capsys):
    twice = [
        {"kind": "graph", "stage": "s", "name": "g", "phase": p, "text": GRAPH} for p in ("before", "after")
    ]
    assert main(["cat", bundle_file(tmp_path, *twice), "g"]) == 0
    assert capsys.readouterr().out == GRAPH


@pytest.mark.parametrize(
    ("reason", "cure"),
    [
        ("level", "level low only lists it; to have it, set STRUCTDUMP_LEVEL=medium or full"),
        ("filter:passes", "left out by filter:passes; to have it, widen passes (STRUCTDUMP_PASSES)"),
        ("budget", "size limit left no room for it; to have it, raise max_bytes (STRUCTDUMP_MAX_BYTES)"),
        ("lost", "its text was not written before the process ended"),
    ],
)
def test_cat_says_why_a_text_is_not_there(reason, cure, tmp_path, capsys):
    artifact = {"kind": "pass", "name": "noop", "text": None, "data": {"nodes_before": 3}}
    head = {"level": "low"}
    path = bundle_file(tmp_path, artifact, head=head)
    document = structdump.load(path).head()
    document["artifacts"][0]["omitted"]["reason"] = reason
    plain = tmp_path / "plain.json"
    plain.write_text(json.dumps({**document, "texts": {}, "complete": True}))
    assert main(["cat", str(plain), "noop"]) == 4
    out, err = capsys.readouterr()
    assert out == ""
    assert cure in err


def test_cat_prints_a_best_config_as_json(small, capsys):
    assert main(["cat", small, "11"]) == 0
    assert json.loads(capsys.readouterr().out) == {"XBLOCK": 2}


@pytest.mark.parametrize("length", [1, MOST])
def test_cat_cannot_steer_the_terminal(length, tmp_path, capsys, monkeypatch):
    text = f"def f():\n    return '{HOSTILE}'\n" + "#" * length + "\n"
    path = bundle_file(tmp_path, {"kind": "kernel", "name": "k", "language": "python", "text": text})
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    assert main(["cat", path, "k"]) == 0
    out = capsys.readouterr().out
    assert "\\x1b[31mred\\x9b2J\\u202eb" in out
    assert "\x1b[31m" not in out
    assert not set("\x9b\u202e") & set(out)
    assert out.count("\n") == 3


def test_cat_highlights_on_a_terminal(small, capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert main(["cat", small, "8"]) == 0
    assert "\x1b[" in capsys.readouterr().out


# --- what may stand in a bundle's place ---


def test_a_journal_is_read_as_it_is(tmp_path, capsys):
    path = str(write_journal(tmp_path / "killed.journal", end=False))
    assert main(["list", path, "--kind", "kernel"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4
    assert main(["cat", path, "triton_poi_fused_relu_0"]) == 0
    assert capsys.readouterr().out == KERNEL.format(n=0)


def test_a_dump_directory_is_read_as_it_is(tmp_path, capsys):
    dump = ninety_three(tmp_path / "dump")
    assert main(["list", str(dump), "--kind", "graph"]) == 0
    out, err = capsys.readouterr()
    assert "post_grad" in out
    assert err == ""
