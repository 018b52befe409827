"""How the ranks of a job compare, as lines for a terminal or a pipe."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from structdump.analyze.rank_diff import RankDifference, RanksReport
from structdump.bundle.rank_view import spelled
from structdump.report.diff_terminal import compile_lines, kernel_lines
from structdump.report.printable import printable

_OTHERS = 20


def lines_of_ranks(report: RanksReport) -> Iterator[Text]:
    """Yield whether the ranks agree, which differs first and where, then the other ranks in short.

    Example: `[str(line) for line in lines_of_ranks(structdump.diff_ranks(job))][-1]`
    """
    count = len(report.ranks)
    if report.first is None:
        yield Text(f"{count} ranks ({spelled(report.ranks)})", style="bold")
    else:
        yield Text(f"{count} ranks: {_who(report.groups[0])} agree" + _ending(report.groups[0]), style="bold")
        for number, difference in enumerate(report.differences[:_OTHERS]):
            word = "first" if number == 0 else "then"
            yield from _difference(difference, report.reference, word, whole=number == 0)
        if len(report.differences) > _OTHERS:
            yield Text(f"… and {len(report.differences) - _OTHERS} more groups of ranks", style="dim")
    for note in report.notes:
        yield Text(printable(f"note: {note}"), style="dim")
    yield Text("")
    if report.same:
        yield Text("all ranks compiled the same graphs in the same order", style="bold green")
    else:
        yield Text("the ranks differ", style="bold red")


def _who(ranks: list[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {spelled(ranks)}"


def _ending(ranks: list[int]) -> str:
    return " with itself alone" if len(ranks) == 1 else ""


def _difference(found: RankDifference, reference: int, word: str, *, whole: bool) -> Iterator[Text]:
    yield Text("")
    verb = "differs" if len(found.ranks) == 1 else "differ"
    yield Text(f"{_who(found.ranks)} {verb} {word}, at compile {found.position + 1}: ", style="bold") + Text(
        printable(_sentence(found, reference)), style="bold yellow"
    )
    if not whole:
        return
    if found.compile is not None:
        yield Text(f"  A is rank {reference}, B is rank {found.ranks[0]}", style="dim")
        yield from compile_lines(found.compile)
    elif found.how == "kernels" and found.difference is not None:
        yield Text(f"  A is rank {reference}, B is rank {found.ranks[0]}", style="dim")
        yield from kernel_lines(found.difference.kernels)


def _sentence(found: RankDifference, reference: int) -> str:
    mine = f"{found.compile_id} {found.function or ''}".strip()
    its = f"{found.reference_compile_id} {found.reference_function or ''}".strip()
    if found.how == "order":
        return f"it compiled {mine}, rank {reference} compiled {its}"
    if found.how == "missing":
        return f"it compiled nothing more, rank {reference} compiled {its}"
    if found.how == "extra":
        return f"it compiled {mine}, rank {reference} nothing more"
    what = {"graph": "the graph of {} is another", "kernels": "the kernels of {} are others"}
    return what.get(found.how, "{} went otherwise").format(mine)
