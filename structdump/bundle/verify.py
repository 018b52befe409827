"""Whether a bundle is what it says: digests, references, counts."""

from __future__ import annotations

from collections import Counter

from structdump.bundle import codec
from structdump.bundle.loaded import LoadedBundle
from structdump.bundle.model import OmittedCount
from structdump.errors import BundleError


def problems(bundle: LoadedBundle) -> list[str]:
    """Return what is wrong with an opened bundle, a sentence each. Reads all texts, one at a time."""
    found = [*_identity(bundle), *_counts(bundle)]
    try:
        found += _texts(bundle)
    except BundleError as e:
        found.append(str(e))
    return found


def _identity(bundle: LoadedBundle) -> list[str]:
    found = []
    numbers = Counter(a.seq for a in bundle.artifacts)
    found += [f"{n} artifacts have the number {seq}" for seq, n in numbers.items() if n > 1]
    if list(numbers) != sorted(numbers):
        found.append("the artifacts are not in the order of their numbers")
    compiles = {c.id for c in bundle.compiles}
    # Ranks that compiled the same frame in different ways each have a record of it.
    ranks = [run.rank for run in bundle.runs] if bundle.runs is not None else [0]
    each = Counter((c.id, r) for c in bundle.compiles for r in (ranks if c.ranks is None else c.ranks))
    alike = {name: n for (name, _), n in each.items() if n > 1}
    found += [f"{n} compiles have the id {name}" for name, n in alike.items()]
    if bundle.runs is not None:
        found += [f"{n} runs have the rank {rank}" for rank, n in Counter(ranks).items() if n > 1]
        lists = [*(c.ranks for c in bundle.compiles), *(a.ranks for a in bundle.artifacts)]
        named = {rank for one in lists for rank in one or ()}
        found += [f"rank {r} has compiles or artifacts, and no run" for r in sorted(named - set(ranks))]
    unknown = {a.compile_id for a in bundle.artifacts if a.compile_id is not None} - compiles
    found += [f"artifacts belong to compile {name}, which is not listed" for name in sorted(unknown)]
    return found


def _counts(bundle: LoadedBundle) -> list[str]:
    found = []
    facts = bundle.completeness
    if facts.kept + facts.indexed + facts.dropped != facts.seen:
        found.append(
            f"kept {facts.kept} + indexed {facts.indexed} + dropped {facts.dropped} is not seen {facts.seen}"
        )
    listed = Counter(a.omitted.reason for a in bundle.artifacts if a.omitted)
    for reason in sorted({*listed, *bundle.omitted}):
        counted = bundle.omitted.get(reason, OmittedCount()).indexed
        if counted != listed[reason]:
            found.append(f"{listed[reason]} artifacts are omitted as {reason!r}, and {counted} are counted")
    if len(bundle.artifacts) - listed.total() != facts.kept:
        found.append(
            f"{len(bundle.artifacts) - listed.total()} artifacts are kept, and {facts.kept} are counted"
        )
    dropped = sum(o.dropped for o in bundle.omitted.values())
    if dropped != facts.dropped:
        found.append(f"{dropped} artifacts were dropped by reason, and {facts.dropped} in all")
    return found


def _texts(bundle: LoadedBundle) -> list[str]:
    found = []
    sizes: dict[str, int] = {}
    for digest in bundle.texts:
        data = bundle.texts[digest].encode()
        sizes[digest] = len(data)
        if codec.digest_bytes(data) != digest:
            found.append(f"the text {digest} has another digest")
    used = set()
    for a in bundle.artifacts:
        if a.digest is None:
            continue
        used.add(a.digest)
        if a.omitted is not None:
            found.append(f"artifact {a.seq} ({a.name}) is omitted, yet has a text")
        if a.digest not in sizes:
            found.append(f"artifact {a.seq} ({a.name}) refers to text {a.digest}, which is not there")
        elif a.bytes is not None and a.bytes != sizes[a.digest]:
            found.append(f"artifact {a.seq} ({a.name}) says {a.bytes} bytes; its text has {sizes[a.digest]}")
    found += [f"no artifact uses the text {digest}" for digest in sizes.keys() - used]
    return found
