"""Bundles by the thousand, for the benchmarks of merging and scanning."""

from __future__ import annotations

import os
import random
from pathlib import Path

from structdump.bundle import codec
from structdump.bundle.model import Artifact
from structdump.bundle.reader import load
from structdump.bundle.writer import write_document

BASE = Path(__file__).parent.parent / "tests" / "data" / "bundles" / "train_low.json.zst"
GRAPHS = 1500


def one_megabyte(path: Path, rank: int, seed: int) -> Path:
    """Write a bundle of about 1 MB, of 1,600 artifacts, of a rank; `seed` decides on its graphs."""
    dice = random.Random(seed)
    bundle = load(BASE).document()
    bundle.run.rank, bundle.run.id = rank, f"{seed}-{rank}"
    for n in range(GRAPHS):
        lines = [
            f'        mm_{i}: "f32[{dice.randrange(9999)}, {dice.randrange(9999)}]cuda:{rank}" = '
            f"torch.ops.aten.mm.default(arg{dice.randrange(99)}_1, arg{dice.randrange(99)}_1)"
            for i in range(55)
        ]
        text = "\n".join(lines)
        digest = codec.digest(text)
        bundle.texts[digest] = text
        bundle.artifacts.append(
            Artifact(
                seq=10_000 + n,
                kind="graph",
                stage="post_grad",
                name=f"graph {n}",
                phase="after",
                compile_id="0/0",
                direction="forward",
                language="python",
                nodes=55,
                ops={"aten.mm": 55},
                digest=digest,
                bytes=len(text),
            )
        )
    return write_document(bundle, path).path


def many(directory: Path, count: int, distinct: int) -> list[Path]:
    """Return `count` files in a directory, of which `distinct` differ and the others are links to them."""
    made = [one_megabyte(directory / f"made{n}.json.zst", n, n) for n in range(distinct)]
    paths = []
    for n in range(count):
        path = directory / f"bundle{n:05}.json.zst"
        os.link(made[n % distinct], path)
        paths.append(path)
    return paths
