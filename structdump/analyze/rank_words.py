"""One rank of a merged bundle in words that all share: without the numbers of its device and groups."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from structdump.bundle.loaded import LoadedBundle
from structdump.bundle.model import Compile
from structdump.bundle.rank_text import canonical, first_device
from structdump.bundle.rank_view import of_rank

# torch names process groups by a counter (torch/distributed/distributed_c10d.py, _process_group_name), and
# a rank that is in other groups than its neighbour has other names for the same step.
_GROUP = re.compile(r"(\b(?:_c10d_functional|c10d_functional|symm_mem|_dtensor)\b[^\n]*, ')([^'\n]*)('\))")
_RANK = re.compile(r"(\b(?:\w*_)?rank['\"]?\s*(?:=|:|==)\s*)(\d+)\b")
_PID = re.compile(r"(\bpid\s*[=:]?\s*)\d+\b")


class _Texts(Mapping[str, str]):
    """A rank's texts, each rewritten when it is asked for."""

    def __init__(self, view: LoadedBundle, rank: int, devices: dict[str, str | None], groups: dict[str, str]):
        self._texts, self._rank, self._devices, self._groups = view.texts, rank, devices, groups

    def __getitem__(self, digest: str) -> str:
        text = shared_words(self._texts[digest], self._rank, self._devices.get(digest))
        return _GROUP.sub(lambda m: m[1] + self._groups.get(m[2], m[2]) + m[3], text)

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


def shared_words(text: str, rank: int, device: str | None) -> str:
    """Return `text` without the numbers of the rank, its device and its process.

    Example::

        >>> shared_words("rank=3, world_size=8, x.to('cuda:3')", 3, "cuda:3")
        "rank=@, world_size=8, x.to('cuda:@')"
    """
    text = canonical(text, device)
    text = _RANK.sub(lambda m: m[1] + ("@" if m[2] == str(rank) else m[2]), text)
    return _PID.sub(r"\1@", text)


def in_shared_words(bundle: LoadedBundle, rank: int) -> tuple[LoadedBundle, dict[str, str]]:
    """Return a rank of a merged bundle in words that all ranks share, and its process groups.

    The groups are its names for them, in the order in which its graphs use them, and what they are called
    in the result: `group 0`, `group 1`, ….

    Raises UsageError if there is no such rank, CorruptError if a text is missing.
    """
    view = of_rank(bundle, rank)
    own = {run.rank: run.device for run in bundle.runs or ()}
    devices: dict[str, str | None] = {}
    groups: dict[str, str] = {}
    for artifact in view.artifacts:
        if artifact.digest is None or artifact.digest in devices:
            continue
        devices[artifact.digest] = own.get(rank)
        if artifact.kind not in ("graph", "pass", "output_code") and not artifact.varies:
            continue
        text = artifact.text or ""
        if artifact.varies:  # a text of one of its ranks, which names that one's device first
            named = first_device(text)
            if any(own.get(r) == named for r in artifact.ranks or own):
                devices[artifact.digest] = named
        for found in _GROUP.finditer(text):
            groups.setdefault(found[2], f"group {len(groups)}")
    records = [_record(c, rank, own.get(rank)) for c in view.compiles]
    head = view.bare().model_copy(update={"compiles": records})
    return LoadedBundle(head, _Texts(view, rank, devices, groups), view.complete), groups


def _record(record: Compile, rank: int, device: str | None) -> Compile:
    return Compile.model_validate_json(shared_words(record.model_dump_json(), rank, device))
