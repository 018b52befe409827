from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_bundles import bundle, everything, from_log

from structdump.report.timeline import Span, _from_events, timeline


def event(name: str, phase: str, ts: float, compile_id: str | None = "0/0") -> dict[str, Any]:
    return {"name": name, "ph": phase, "ts": ts, "pid": 0, "tid": 0, "compile": compile_id}


def test_events_give_starts_and_phases_alone_give_durations(tmp_path: Path) -> None:
    assert timeline(everything(tmp_path)) == [
        Span("0/0", "dynamo", 0.0, 4.0, 0),
        Span("0/0", "inductor", 1.0, 2.0, 1),
        Span("0/0", "code_gen", 1.5, 1.0, 2),
        Span("1/0", "dynamo", None, 0.5, 0),
        Span("1/0", "inductor", None, 0.25, 2),
    ]


def test_phases_of_the_backward_stand_under_their_own_name(tmp_path: Path) -> None:
    phases = {"backward_inductor": 1.0, "dynamo": 3.0, "backward": 1.5, "inductor": 2.0, "new_phase": 0.1}
    found = timeline(bundle([], [{"id": "0/0", "phases": phases}], tmp_path))
    names = [(span.name, span.depth) for span in found]
    assert names == [
        ("dynamo", 0),
        ("inductor", 2),
        ("new_phase", 1),
        ("backward", 0),
        ("backward inductor", 2),
    ]


def test_a_phase_that_never_ended_has_no_duration() -> None:
    events = [event("dynamo", "B", 0), event("inductor", "B", 1e6), event("dynamo", "E", 3e6)]
    assert set(_from_events(events)) == {
        Span("0/0", "inductor", 1.0, None, 1),
        Span("0/0", "dynamo", 0.0, 3.0, 0),
    }
    assert list(_from_events([event("stray", "E", 1), event("mark", "i", 2)])) == []


@pytest.mark.parametrize("text", ["", "[", "[]", "1", '{"ts": "x"}', '{"ph": "B"}', '{"ts": 1, "ph": []}'])
def test_what_is_no_event_is_left_out(text: str, tmp_path: Path) -> None:
    artifacts = [{"kind": "trace", "name": "chromium_event", "text": text}]
    assert timeline(bundle(artifacts, [], tmp_path)) == []


def test_torch_says_none_for_what_is_outside_a_compile(tmp_path: Path) -> None:
    events = [
        {"name": "x", "ph": p, "ts": t, "args": {"compile_id": "None"}} for p, t in (("B", 1), ("E", 2))
    ]
    artifacts = [{"kind": "trace", "name": "chromium_event", "text": json.dumps(e)} for e in events]
    assert [span.compile_id for span in timeline(bundle(artifacts, [], tmp_path))] == [None]


def test_a_real_log_nests(tmp_path: Path) -> None:
    spans = timeline(from_log("llama", tmp_path))
    assert spans
    for span in spans:
        assert span.start is None or span.start >= 0
        assert span.seconds is None or span.seconds >= 0


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("BEi"), st.integers(0, 9)), max_size=40))
def test_every_begin_is_one_span(given_events: list[tuple[str, str, int]]) -> None:
    events = [event(name, phase, ts) for name, phase, ts in given_events]
    spans = list(_from_events(events))
    assert sorted(s.name for s in spans) == sorted(e["name"] for e in events if e["ph"] == "B")
    assert all(s.depth >= 0 and (s.seconds is None or s.seconds >= 0) for s in spans)
