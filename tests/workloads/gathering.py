"""One rank of a job that compiles, gathers, and goes on: RANK, WORLD_SIZE, and a folder to meet in."""

import json
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist

import structdump

rank, world, folder = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), Path(sys.argv[1])
dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=world)
told: dict[str, object] = {}


def alike(x: torch.Tensor) -> torch.Tensor:
    return (x * 2).relu() + 1


def other(x: torch.Tensor) -> torch.Tensor:
    return (x * 2).tanh() + 1 if dist.get_rank() == 2 else (x * 2).relu() + 1


def path(found: Path | None) -> str | None:
    return None if found is None else found.name


x = torch.ones(8)
with structdump.capture(folder / f"rank{rank}.json.zst", level="medium") as cap:
    torch.compile(alike, backend="aot_eager")(x)
    before = torch.random.get_rng_state()
    told["open"] = path(structdump.gather(output=folder / "open.json.zst"))
    told["same_random_numbers"] = bool((torch.random.get_rng_state() == before).all())
    if rank == 1:  # what it has is gone: it can send nothing, and nobody may wait for it
        (folder / "rank1.json.zst.journal").rename(folder / "gone")
    told["lost"] = path(structdump.gather(dst=3, output=folder / "lost.json.zst"))
    if rank == 1:
        (folder / "gone").rename(folder / "rank1.json.zst.journal")
    told["full"] = path(structdump.gather(output="/proc/none/full.json.zst"))
    told["nobody"] = path(structdump.gather(dst=9))
    torch.compile(other, backend="aot_eager")(x)
half = dist.new_group([0, 2])
told["half"] = path(structdump.gather(half, dst=2, output=folder / "half.json.zst"))
told["closed"] = path(structdump.gather(output=folder / "closed.json.zst"))
total = torch.tensor([float(rank)])
dist.all_reduce(total)  # the job goes on
told["total"] = total.item()
(folder / f"told{rank}.json").write_text(json.dumps(told))
dist.destroy_process_group()
