"""Giving a bundle away: redacted again, lowered, within a size, and the text of the issue."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import structdump
from structdump.bundle.codec import digest
from structdump.bundle.model import Artifact, Bundle, Compile, Failure, Function, GraphBreak, Run
from structdump.bundle.reader import load, verify
from structdump.bundle.share import private_values, reviewed, share
from structdump.bundle.writer import write_document
from structdump.cli import main
from structdump.errors import UsageError
from structdump.report.issue import LIMIT, code, fenced, issue_text

BUNDLES = Path(__file__).parent / "data" / "bundles"
SECRET = "hf_" + "q" * 34
TEXTS = {
    "captured": f"# File: /home/zoe/moe/router.py:3 in forward\ntoken = '{SECRET}'\n",
    "joint": "# /home/zoe/moe/other.py, mail zoe@example.com\n" + "x = 1\n" * 300,
}


@pytest.fixture
def raw(tmp_path):
    """A bundle made with redaction off, at level full."""
    texts = {digest(text): text for text in TEXTS.values()}
    bundle = Bundle(
        level="full",
        config={"redact": False, "level": "full"},
        run=Run(program="train", argv=["/home/zoe/moe/train.py", "--token", SECRET]),
        compiles=[
            Compile(
                id="0/0", status="failed", function=Function(name="f", file="/home/zoe/moe/x.py", line=3),
                error=Failure(type="ValueError", message="no", traceback='  File "/home/zoe/x.py", line 3'),
                graph_breaks=[GraphBreak(reason="print")],
            )
        ],
        artifacts=[
            Artifact(seq=n, kind="graph", stage=stage, name=stage, compile_id="0/0", language="python",
                     digest=digest(text), bytes=len(text))
            for n, (stage, text) in enumerate(TEXTS.items())
        ] + [Artifact(seq=2, kind="trace", name="chromium", digest=digest(TEXTS["joint"]), bytes=9)],
        texts=texts,
    )  # fmt: skip
    return write_document(bundle, tmp_path / "raw.json.zst").path


def inside(path):
    (name,) = zipfile.ZipFile(path).namelist()
    return name, load(path)


def test_what_was_made_without_redaction_is_redacted(raw, tmp_path):
    done = share(load(raw), tmp_path / "out.zip")
    name, bundle = inside(done.path)
    assert name == "out.json.zst"
    assert verify(done.path) == []
    whole = json.dumps(bundle.head()) + "".join(bundle.texts.values())
    assert "zoe" not in whole
    assert SECRET not in whole
    assert bundle.graphs(stage="captured")[0].text.startswith("# File: <path-")
    assert bundle.redactions["path"] > 3
    assert bundle.level == "full"
    assert done.path.stat().st_mode & 0o777 == 0o600
    assert done.bytes == done.path.stat().st_size


def test_sharing_twice_changes_nothing(raw, tmp_path):
    once = share(load(raw), tmp_path / "once.zip")
    twice = share(load(once.path), tmp_path / "twice.zip")
    assert dict(load(once.path).texts) == dict(load(twice.path).texts)
    assert load(once.path).head() == load(twice.path).head()


def test_new_tokens_are_not_those_that_stand_there_already(tmp_path):
    text = "<path-1>/a.py and /home/zoe/b.py"
    bundle = Bundle(
        artifacts=[Artifact(seq=0, kind="graph", name="g", digest=digest(text), bytes=9)],
        texts={digest(text): text},
    )
    path = write_document(bundle, tmp_path / "b.json.zst").path
    (shared,) = reviewed(load(path)).texts.values()
    assert shared == "<path-1>/a.py and <path-2>/b.py"


def test_a_lower_level_leaves_out_what_it_would_not_keep(raw, tmp_path):
    bundle = load(share(load(raw), tmp_path / "low.zip", level="low").path)
    assert bundle.level == "low"
    assert [(a.stage, a.text is not None) for a in bundle.artifacts] == [("captured", True), ("joint", False)]
    assert bundle.artifacts[1].omitted.reason == "level"
    assert (bundle.omitted["level"].dropped, bundle.completeness.seen) == (1, 3)
    with pytest.raises(UsageError, match="level low"):
        share(bundle, tmp_path / "no.zip", level="full")


def test_a_size_is_kept(tmp_path):
    full = structdump.load(BUNDLES / "train_low.json.zst")
    for limit in (60_000, 12_000, 9_000):
        done = share(full, tmp_path / "small.zip", max_bytes=limit)
        assert done.bytes <= limit * 1.02
        assert verify(done.path) == []
    assert load(done.path).omitted["budget"].indexed > 0


def test_shapes_only(raw, tmp_path):
    bundle = load(share(load(raw), tmp_path / "shapes.zip", shapes=True).path)
    assert "router" not in json.dumps(bundle.head()) + "".join(bundle.texts.values())
    assert bundle.compiles[0].function.name == "<function-1>"
    again = load(share(bundle, tmp_path / "again.zip", shapes=True).path)
    assert dict(again.texts) == dict(bundle.texts)


def test_existing_files_are_kept(raw, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["share", "raw.json.zst"]) == 0
    assert main(["share", "raw.json.zst"]) == 0
    assert main(["share", "raw.zip", "-o", "raw.zip"]) == 0
    assert sorted(p.name for p in tmp_path.glob("*.zip")) == ["raw-1.zip", "raw-2.zip", "raw.zip"]
    out = capsys.readouterr().out
    for word in ("raw-1.zip", "graph", "redacted", "path", "email", "token"):
        assert word in out


def test_the_command_in_json_and_its_errors(raw, tmp_path, capsys):
    assert main(["share", str(raw), "-o", str(tmp_path / "x.zip"), "--json", "--level", "low"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["level"] == "low"
    assert told["bytes"] == (tmp_path / "x.zip").stat().st_size
    assert main(["share", str(raw), "--max-size", "much"]) == 2
    assert main(["share", str(raw), "--level", "high"]) == 2
    assert main(["share", str(raw), "--redact-patterns", "("]) == 2
    assert main(["share", str(tmp_path / "none.json.zst")]) != 0
    capsys.readouterr()
    assert main(["share", str(raw), "-o", str(tmp_path / "y.zip"), "--max-size", "200"]) == 1
    assert "without any text" in capsys.readouterr().err
    assert verify(tmp_path / "y.zip") == []


def test_private_values(raw, tmp_path, capsys):
    found = {p.value: p for p in private_values(load(raw))}
    assert found["/home/zoe/moe"].token == "<path-1>"
    assert found["/home/zoe/moe"].times >= 4
    assert found["/home/zoe/moe"].where == "text of 0 captured"
    assert SECRET in found
    assert main(["show", "--private", str(raw)]) == 0
    assert "zoe@example.com" in capsys.readouterr().out
    shared = share(load(raw), tmp_path / "s.zip").path
    assert private_values(load(shared)) == []
    assert main(["show", "--private", str(shared)]) == 0
    assert "nothing" in capsys.readouterr().out


def test_the_text_of_the_issue(raw, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["share", str(raw), "--markdown"]) == 0
    told = capsys.readouterr()
    for word in (
        "`raw.zip`",
        "PyTorch version:",
        "Failed: `0/0` `ValueError`",
        "graph break",
        "| `0/0` | `f` |",
        "Verdict",
    ):
        assert word in told.out
    assert "zoe" not in told.out
    assert "attach raw.zip" in told.err


HOSTILE = st.text(st.sampled_from("`|@<>[]()!#*_~\\\n\r\x1b\u202e&:/ ab"), max_size=60)


@settings(max_examples=200, deadline=None)
@given(HOSTILE, HOSTILE)
def test_nothing_in_a_bundle_comes_to_life(name, reason):
    bundle = Bundle(
        compiles=[
            Compile(
                id=name or "0/0", status="failed", function=Function(name=name, file=reason, line=1),
                error=Failure(type=name or "E", message=reason, traceback=f"{reason}\n```\n@zoe <img>\n````"),
                graph_breaks=[GraphBreak(reason=reason)],
            )
        ]
    )  # fmt: skip
    text = issue_text(_loaded(bundle), name, 3)
    assert "\x1b" not in text
    assert "\u202e" not in text
    outside, fence = [], None
    for line in text.splitlines():
        run = re.match("`{3,}", line)
        if fence is None and run:
            fence = run[0]
        elif fence is not None and line == fence:
            fence = None
        elif fence is None:
            outside.append(re.sub(r"(?<!`)`[^`]*`(?!`)", "", line))
    assert fence is None
    rest = "\n".join(outside)
    for sign in ("@", "<img", "![", "]("):
        assert sign not in rest
    rows = [line for line in outside if line.startswith("|")]
    assert {row.count("|") for row in rows} <= {8, 4}


def _loaded(bundle):
    from structdump.bundle.loaded import LoadedBundle

    return LoadedBundle(bundle, {}, complete=True)


def test_a_huge_bundle_gives_a_text_that_github_takes():
    long = "x" * 5_000
    bundle = Bundle(
        compiles=[
            Compile(
                id=f"{n}/0", status="failed", function=Function(name=long, file=long, line=1),
                error=Failure(type=long, message=f"{n}{long}", traceback="\n".join([long] * 20)),
                graph_breaks=[GraphBreak(reason=long)] * 30,
            )
            for n in range(300)
        ]
    )  # fmt: skip
    bundle.completeness.reasons = [long] * 50
    bundle.redactions = {f"rule{n}": n for n in range(100)}
    bundle.environment.variables = {f"V{n}": long for n in range(500)}
    assert len(issue_text(_loaded(bundle), long, 3)) < LIMIT


def test_code_and_fences():
    assert code("a|b", cell=True) == "`a\\|b`"
    assert code("") == ""
    assert code("x" * 200, 10) == "`" + "x" * 9 + "…`"
    assert fenced("a\n````\nb", 100).splitlines()[0] == "`````text"
    assert len(fenced("x" * 10_000, 100)) < 130
