"""Connects graph breaks with the compiles of the resume functions that take over after them. Pure."""

from __future__ import annotations

from structdump.bundle.model import Compile, GraphBreak
from structdump.sources import reasons


def link_breaks(compiles: list[Compile]) -> None:
    """Let each graph break name the resume function's compile that took over.

    That is the first one before the same function is compiled again; if the resume function was
    compiled already for an earlier compile, and still fits, it is the latest of those.
    """
    resumes: dict[tuple[str, int], list[int]] = {}
    starts: dict[tuple[str, str | None], list[int]] = {}
    for index, compile_ in enumerate(compiles):
        if compile_.function is None:
            continue
        starts.setdefault((compile_.function.name, compile_.function.file), []).append(index)
        point = reasons.resume_point(compile_.function.name)
        if point is not None:
            resumes.setdefault(point, []).append(index)
    for index, compile_ in enumerate(compiles):
        function = compile_.function
        if function is None:
            continue
        again = starts[function.name, function.file]
        end = next((i for i in again if i > index), len(compiles))
        for broke in compile_.graph_breaks:
            found = _resumes_of(broke, reasons.plain_name(function.name), resumes)
            after = [i for i in found if index < i < end]
            before = [i for i in found if i < index]
            if after or before:
                broke.resumed_by = compiles[after[0] if after else before[-1]].id


def _resumes_of(broke: GraphBreak, name: str, resumes: dict[tuple[str, int], list[int]]) -> list[int]:
    for frame in reversed(broke.stack):
        if reasons.plain_name(frame.name) == name:
            return resumes.get((name, frame.line or -1), [])
    return []
