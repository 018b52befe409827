from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from structdump.bundle.model import SourceFrame
from structdump.sources import reasons

BREAK = """\
Graph break in user code at /home/alex/a.py:15
Graph Break Reason: Encountered graph break when attempting to trace CALL: f(x):

Unsupported print
  Explanation: cannot trace

User code traceback:
  File "/home/alex/a.py", line 22, in <module>
    c(x).backward()
  File "/home/alex/a.py", line 15, in forward
    print("broken")

Traceback (most recent call last):
  File "/torch/_dynamo/symbolic_convert.py", line 1, in inner
    raise Unsupported
torch._dynamo.exc.Unsupported: Unsupported print
"""
SKIP = """\
Graph break: torch.compile cannot properly resume from this graph break, which results in a skip.
torch.compile will skip tracing the frame g (a.py line 3) and fall back to eager.
The graph break occurred in the following user code:
  File "a.py", line 6, in g
    print("no")

Traceback (most recent call last):
  File "b.py", line 1, in x
E: no
"""
TWICE = """\
Traceback (most recent call last):
  File "a.py", line 1, in f
KeyError: 1

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "b.py", line 2, in g
    x
    ^
a.b.Bad: first
  Explanation: second

Set X=1
"""


def test_a_graph_break_has_reason_and_stack() -> None:
    found = reasons.graph_break(BREAK)
    assert found.reason == (
        "Encountered graph break when attempting to trace CALL: f(x):\n\nUnsupported print\n"
        "  Explanation: cannot trace"
    )
    assert found.stack == [
        SourceFrame(file="/home/alex/a.py", line=22, name="<module>", code="c(x).backward()"),
        SourceFrame(file="/home/alex/a.py", line=15, name="forward", code='print("broken")'),
    ]


def test_a_break_that_skips_the_frame() -> None:
    found = reasons.graph_break(SKIP)
    assert found.reason.startswith("Graph break: torch.compile cannot properly resume")
    assert [(f.name, f.line) for f in found.stack] == [("g", 6)]


def test_a_break_without_stack_has_its_place() -> None:
    found = reasons.graph_break("Graph break in user code at C:\\a b.py:7\nGraph Break Reason: x\n")
    assert (found.reason, found.stack) == ("x", [SourceFrame(file="C:\\a b.py", line=7)])
    assert reasons.graph_break("").reason == "unknown"


def test_recompile_reasons() -> None:
    one = reasons.recompile("3/0: L['k'] == 1     # y = x * k  # a.py:4 in f\nUser stack trace:\n  File …")
    assert one is not None
    assert (one.previous, one.guard) == ("3/0", "L['k'] == 1")
    assert "User stack trace" in one.reason
    many = reasons.recompile(["!0/1/2: a", "!0/1/0: b", 3, ""])
    assert many is not None
    assert (many.previous, many.guard, many.reason) == ("!0/1/2", "a", "!0/1/2: a\n!0/1/0: b")
    bare = reasons.recompile("size mismatch at index 0. expected 1, actual 2")
    assert bare is not None
    assert (bare.previous, bare.guard) == (None, "size mismatch at index 0. expected 1, actual 2")
    assert [reasons.recompile(x) for x in (None, [], {}, "", 5)] == [None] * 5


def test_the_last_exception_of_a_traceback_counts() -> None:
    assert reasons.exception(TWICE) == ("a.b.Bad", "first\n  Explanation: second\n\nSet X=1")
    assert reasons.exception("KeyboardInterrupt\n") == ("KeyboardInterrupt", "")
    assert reasons.exception("  no traceback") == ("Exception", "no traceback")


def test_resume_names() -> None:
    assert reasons.resume_point("torch_dynamo_resume_in_f_at_3") == ("f", 3)
    assert reasons.resume_point("torch_dynamo_resume_in_<lambda>_at_12") == ("<lambda>", 12)
    assert reasons.resume_point("forward") is None
    assert reasons.plain_name("torch_dynamo_resume_in_torch_dynamo_resume_in_f_at_3_at_9") == "f"


@given(st.text() | st.text(alphabet='File ",line 1in\n:Tracebk()most rcx/_[]!0'))
def test_any_text_is_read(text: str) -> None:
    reasons.frames(text)
    reasons.graph_break(text)
    reasons.recompile(text)
    reasons.exception(text)
    reasons.plain_name(text)
