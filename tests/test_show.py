"""The first screen: what it says, in which order, how wide, and that it cannot steer a terminal."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from report_bundles import COMPILES, everything
from rich.cells import cell_len
from sample_bundles import bundle_of, write_journal, write_small

import structdump
from structdump.bundle.loaded import LoadedBundle
from structdump.cli import main
from structdump.report.failure import place
from structdump.report.tree import reason

BUNDLES = Path(__file__).parent / "data" / "bundles"
DETAILS = ("--passes", "--kernels", "--configs", "--breaks", "--timeline")


@pytest.fixture
def show(capsys, monkeypatch):
    """Print the first screen as a pipe gets it, 80 columns wide unless told otherwise; return its lines."""

    def run(path, *options, width=80):
        monkeypatch.setenv("COLUMNS", str(width))
        assert main(["show", str(path), *options]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        return out.splitlines()

    return run


def real(name):
    return BUNDLES / f"{name}_low.json.zst"


def written(directory, *artifacts, **more):
    bundle_of(directory, *artifacts, **more)
    return directory / "small.json.zst"


def at(lines, text):
    """The number of the one line that holds `text`."""
    found = [number for number, line in enumerate(lines) if text in line]
    assert len(found) == 1, (text, lines)
    return found[0]


# --- what it says ---


def test_the_most_important_comes_first(show, tmp_path):
    everything(tmp_path)
    lines = show(tmp_path / "small.json.zst")
    order = [
        "train  level full",
        "torch 2.13.0, triton 3.7.0",
        "NVIDIA H200",
        "cold, everything was compiled",
    ]
    order += [
        "✗ 1/0 resume failed",
        "✓ 0/0 forward",
        "└─ ✗ 1/0 resume",
        "artifacts ",
        "hook error  guards: boom",
    ]
    places = [at(lines, text) for text in order]
    assert places == sorted(places)


def test_a_training_run(show):
    lines = show(real("train"))
    text = "\n".join(lines)
    assert lines[0].split() == ["train", "level", "low", "2026-12-01", "13:55", "UTC"]
    assert "versions    torch 2.13.0+cpu, python 3.11.7, depyf 0.20.0" in lines
    assert "verdict     cold, everything was compiled anew" in lines
    first = at(lines, "✓ 0/0 forward  <path-3>/train.py:23")
    assert lines[first].endswith(" s")
    assert lines[first + 1] == "├─ graphs    captured 20 → pre_grad → joint 81"
    assert lines[first + 2] == "├─ forward   36 nodes → post_grad 36"
    assert lines[first + 3] == "├─ backward  54 nodes → post_grad 54"
    assert lines[first + 4] == "├─ kernels   5 cpp, 4 extern"
    assert "│    cpp_fused_add_view_1                      ← add, view" in lines
    assert text.count("break     Call to `torch._dynamo.graph_break()` at <path-3>/train.py:25 → 1/") == 2
    assert at(lines, "train.py:25 → 1/0") < at(lines, "└─ ✓ 1/0 ") < at(lines, "✓ 0/1 forward")
    again = at(lines, "├─ again     guard of 0/0 failed: tensor 'x' size mismatch at index 1.")
    assert at(lines, "✓ 0/1 forward") + 1 == again
    assert lines[-3:] == [
        "artifacts   1,146 seen: 34 kept, 136 listed, 976 counted",
        "            1,112 without text (level) → STRUCTDUMP_LEVEL=medium or full",
        "redacted    225 paths",
    ]


def test_a_failure_is_told_first_and_in_full(show):
    lines = show(real("failing"))
    error = structdump.load(real("failing")).compiles[0].error
    start = at(lines, "✗ 0/0 scaled failed  <path-3>/failing.py:17")
    assert lines[start + 1] == "  InductorError: LoweringException: ValueError: no lowering for twice today"
    assert start < at(lines, "✗ 0/0 scaled  <path-3>/failing.py:17")
    told = " ".join("\n".join(line.removeprefix("  │") for line in lines[start:]).split())
    for file, line, name in re.findall(r'^  File "(.+)", line (\d+), in (.+)$', error.traceback, re.M):
        assert f"{place(file, int(line))} in {name}" in told
    assert 'failing.py:14 in lower raise ValueError("no lowering for twice today")' in told
    for line in error.message.splitlines():
        assert " ".join(line.split()) in told


def test_an_error_that_comes_again_is_told_once(show, tmp_path):
    failed = COMPILES[1]
    compiles = [{**failed, "id": f"{n}/0", "error": {**failed["error"]}} for n in range(3)]
    lines = show(written(tmp_path, compiles=compiles))
    assert lines.index("  LoweringException: no lowering for twice") < at(lines, "✗ 1/0 resume failed")
    assert lines.count("  with the same error as 0/0") == 2


def test_a_chained_traceback_keeps_both_parts(show, tmp_path):
    traceback = (
        'Traceback (most recent call last):\n  File "/home/alex/a.py", line 1, in f\n    g(x)\n    ^^^^\n'
        "KeyError: 'w'\n\n\nDuring handling of the above exception, another exception occurred:\n\n"
        'Traceback (most recent call last):\n  File "/v/site-packages/torch/b.py", line 2, in h\n    raise\n'
        'BackendError: no w\n  File "kept.py", line 3, as it is\n'
    )
    error = {"type": "t.BackendError", "message": "no w", "traceback": traceback}
    lines = show(written(tmp_path, compiles=[{"id": "0/0", "status": "fell_back", "error": error}]))
    start = at(lines, "↩ 0/0  fell back to eager")
    assert lines[start + 1 : start + 13] == [
        "  BackendError: no w",
        "  │ Traceback (most recent call last):",
        "  │   /home/alex/a.py:1 in f",
        "  │     g(x)",
        "  │ KeyError: 'w'",
        "  │",
        "  │ During handling of the above exception, another exception occurred:",
        "  │",
        "  │ Traceback (most recent call last):",
        "  │   torch/b.py:2 in h",
        "  │ BackendError: no w",
        '  │   File "kept.py", line 3, as it is',
    ]


def test_a_verdict_has_its_reasons_and_cures(show, tmp_path):
    write_journal(tmp_path / "j", end=True)
    path = written(tmp_path / "b", {"kind": "event", "name": "e"}, verdict="warm")
    document = structdump.load(path).head()
    document["completeness"] |= {"reasons": [f"reason {n}" for n in range(6)], "hints": ["set THIS=1"]}
    plain = tmp_path / "plain.json"
    plain.write_text(json.dumps({**document, "texts": {}, "complete": True}))
    lines = show(plain)
    verdict = at(lines, "verdict     warm, caches answered")
    assert [line.strip() for line in lines[verdict + 1 : verdict + 7]] == [
        "reason 0", "reason 1", "reason 2", "reason 3", "… and 2 more (--json)", "cure        set THIS=1",
    ]  # fmt: skip


def test_what_a_killed_process_left_is_called_unfinished(show, tmp_path):
    killed = write_journal(tmp_path / "killed.journal", end=False)
    assert at(show(killed), "unfinished: the program ended before its capture did")
    whole = write_small(tmp_path)
    assert "unfinished" not in "\n".join(show(whole))
    assert show(killed)[0] == show(whole)[0]


def test_what_was_left_out_names_the_setting_that_brings_it_back(show, tmp_path):
    document = structdump.load(write_small(tmp_path)).head()
    document["omitted"] = {
        reason: {"indexed": 1, "dropped": 1, "bytes": 2000}
        for reason in ("level", "filter:passes", "budget", "privacy", "error")
    }
    plain = tmp_path / "plain.json"
    plain.write_text(json.dumps({**document, "texts": {}, "complete": True}))
    lines = show(plain, width=120)
    start = at(lines, "artifacts   ")
    assert [line.strip() for line in lines[start + 1 : start + 6]] == [
        "2 without text (level, 2 kB) → STRUCTDUMP_LEVEL=full",
        "2 without text (filter:passes, 2 kB) → widen passes (STRUCTDUMP_PASSES)",
        "2 without text (budget, 2 kB) → raise max_bytes (STRUCTDUMP_MAX_BYTES)",
        "2 without text (privacy, 2 kB) → capture with privacy=normal",
        "2 without text (error, 2 kB)",
    ]


def test_many_compiles_are_cut_unless_asked_for(show, tmp_path):
    compiles = [{"id": f"{n}/0", "function": {"name": f"f{n}"}, "status": "ok"} for n in range(40)]
    path = written(tmp_path, {"kind": "event", "name": "e"}, compiles=compiles)
    lines = show(path)
    assert sum("✓" in line for line in lines) == 12
    assert at(lines, "… 28 more compiles (--full shows all)")
    assert sum("✓" in line for line in show(path, "--full")) == 40


def test_a_long_chain_of_breaks_goes_on_at_the_left_edge(show, tmp_path):
    compiles = [
        {"id": f"{n}/0", "status": "ok", "graph_breaks": [{"reason": "r", "resumed_by": f"{n + 1}/0"}]}
        for n in range(2000)
    ]
    path = written(tmp_path, {"kind": "event", "name": "e"}, compiles=compiles)
    lines = show(path, "--full")
    assert [line.partition("✓ ")[2] for line in lines if "✓" in line] == [f"{n}/0" for n in range(2000)]
    assert max(line.find("✓") for line in lines) == 21
    assert at(lines, "✓ 7/0") < lines.index("✓ 8/0")


def test_what_caches_answered_is_told_where_it_is_news(show, tmp_path):
    caches = [
        {"fx_graph": "hit", "aot_autograd": "hit"},
        {"fx_graph": "miss", "aot_autograd": "bypass"},
        {"fx_graph": "miss", "aot_autograd": "miss"},
    ]
    compiles = [{"id": f"{n}/0", "status": "ok", "cache": cache} for n, cache in enumerate(caches)]
    lines = show(written(tmp_path, compiles=compiles))
    assert lines[at(lines, "✓ 0/0")].endswith("cache hit")
    assert lines[at(lines, "✓ 1/0")].endswith("fx miss, aot bypass")
    assert lines[at(lines, "✓ 2/0")] == "✓ 2/0"


def test_json_is_the_head(show):
    bundle = structdump.load(real("conv"))
    assert json.loads("\n".join(show(real("conv"), "--json"))) == bundle.head()


def test_the_readme_shows_what_is_printed(show):
    readme = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    assert "<!-- show -->\n```\n" + "\n".join(show(real("quickstart"))) + "\n```\n" in readme


# --- more of one thing ---


def test_details(show, tmp_path):
    everything(tmp_path)
    path = tmp_path / "small.json.zst"
    kernels = show(path, "--kernels")
    assert kernels[0].split() == ["seq", "compile", "backend", "calls", "ld/st/red", "kernel"]
    assert kernels[1].split() == ["10", "0/0", "triton", "×3", "1/1/0", "triton_poi_fused_relu_0"]
    assert kernels[2].split() == ["config", "XBLOCK=64", "num_warps=4"]
    assert kernels[3].split() == ["from", "relu"]
    passes = [line.split() for line in show(path, "--passes")]
    assert ["clamping"] in [line[-1:] for line in passes if "changed" in line]
    assert len(passes) == 6
    configs = "\n".join(show(path, "--configs"))
    assert re.search(r"triton_poi_fused_relu_0 +12 ms  XBLOCK=64 num_warps=4", configs)
    assert re.search(r"12.5 µs +triton_mm_4  ← winner\n25 µs +extern_mm\n50 µs +triton_mm_2", configs)
    timeline = show(path, "--timeline")
    assert [line.split()[-1] for line in timeline[1:4]] == ["dynamo", "inductor", "code_gen"]
    assert re.match(r"0/0 +1.500 s +1 s +█{4} +code_gen$", timeline[3])


def test_breaks_have_their_stack_and_recompiles_their_guard(show):
    lines = show(real("train"), "--breaks")
    assert sum(line.startswith("graph break ") for line in lines) == 2
    first = lines.index("graph break 0/0 forward  resumed by 1/0")
    assert "            <path-3>/train.py:25 in forward" in lines[first:]
    again = lines.index("recompile   0/1 forward")
    assert lines[again + 1 : again + 3] == [
        "guard of    0/0",
        "failed      tensor 'x' size mismatch at index 1. expected 8, actual 12",
    ]


def test_details_of_nothing_say_so(show, tmp_path):
    path = written(tmp_path, {"kind": "event", "name": "e"})
    for option in DETAILS:
        assert len(show(path, option)) == 1


def test_details_can_be_combined(show):
    both = show(real("train"), "--kernels", "--breaks")
    assert both == [*show(real("train"), "--kernels"), "", *show(real("train"), "--breaks")]


# --- how it looks ---


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", ["train", "failing", "conv"])
def test_only_a_word_that_must_stay_whole_is_wider_than_a_pipe(show, name, width):
    for options in [(), ("--full",), ("--kernels",), ("--breaks",)]:
        for line in show(real(name), *options, width=width):
            assert line == line.rstrip()
            room = max(24, width - len(line) + len(line.lstrip("│├└─ ")))
            assert cell_len(line) <= width or max(map(len, line.split())) > room / 2


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("name", ["train", "failing", "conv"])
def test_nothing_is_wider_than_the_terminal(show, name, width, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    for options in [(), ("--full",), ("--kernels",), ("--breaks",), ("--timeline",)]:
        for line in show(real(name), *options, width=width):
            assert cell_len(re.sub(r"\x1b\[[\d;]*m", "", line)) <= width


def test_colour_only_on_a_terminal_that_wants_it(show, monkeypatch):
    colour = re.compile(r"\x1b\[(?:\d;)?3\d")
    assert "\x1b" not in "".join(show(real("train")))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert colour.search("".join(show(real("train"))))
    monkeypatch.setenv("NO_COLOR", "1")
    assert not colour.search("".join(show(real("train"))))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=st.text(st.sampled_from("a \n\t\r\x1b\x9b\x7f\u202e\u2066\u200b\u2028[2J日e\u0301"), max_size=40))
def test_no_text_can_steer_the_terminal(show, tmp_path, text):
    text += "\x1b[2J"
    frame = {"file": text, "line": 1, "name": text, "code": text}
    kernel = {"name": text, "backend": "triton", "ops": [text], "best_config": {text: text}}
    shutil.rmtree(tmp_path / "b", ignore_errors=True)
    path = written(
        tmp_path / "b",
        {"kind": "graph", "stage": text, "name": text, "compile_id": "0/0", "text": "g"},
        {"kind": "pass", "name": text, "compile_id": "0/0", "changed": True, "text": text},
        {"kind": "kernel", "name": text, "compile_id": "0/0", "kernel": kernel},
        {"kind": "best_config", "name": text, "compile_id": "0/0", "kernel": kernel},
        {"kind": "autotune", "name": text, "autotune": {"operation": text, "choices": [{"name": text}]}},
        head={"run": {"id": "r", "program": text, "argv": ["p", text], "started": text}},
        compiles=[
            {"id": "0/0", "function": {"name": text, "file": text, "line": 1}, "status": "failed"}
            | {"error": {"type": text, "message": text, "traceback": text, "user_frame": frame}}
            | {"graph_breaks": [{"reason": text, "stack": [frame]}], "cache": {"fx_graph": text}}
            | {"recompile": {"reason": text, "guard": text, "previous": text}, "phases": {text: 1.0}}
        ],
        versions={"torch": text},
        devices=[{"name": text}],
        drivers={text: text},
        configs={text: {text: text}},
    )
    for options in [(), ("--full",), DETAILS]:
        out = "\n".join(show(path, *options))
        assert "\\x1b[2J" in out
        assert not set("\t\r\x1b\x9b\x7f\u202e\u2066\u200b\u2028") & set(out)
    assert "\x1b" not in "".join(show(path, "--json"))


def test_no_text_is_read_for_the_first_screen(show, monkeypatch):
    def refuse(self, digest):
        raise AssertionError(digest)

    monkeypatch.setattr(LoadedBundle, "text", refuse)
    for options in [(), ("--full",), ("--passes",), ("--kernels",), ("--configs",), ("--breaks",)]:
        assert show(real("train"), *options)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Encountered graph break when x\n\n  Call to print\n  more", "Call to print"),
        ("a call to print\nin full", "a call to print"),
        ("", "no reason given"),
    ],
)
def test_the_telling_part_of_a_reason(text, told):
    assert reason(text) == told
