"""Bundles of the ranks of an invented job, each on a device of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sample_bundles import records, write_small

from structdump.bundle import codec

GRAPH = """class GraphModule(torch.nn.Module):
    def forward(self, arg0_1: "f32[8, {n}]cuda:{device}"):
        # File: <path-{token}>/train.py:{n} in forward, code: return (x @ w).{op}()
        mm: "f32[8, 4]cuda:{device}" = torch.ops.aten.mm.default(arg0_1, arg0_1);  arg0_1 = None
        out: "f32[8, 4]cuda:{device}" = torch.ops.aten.{op}.default(mm);  mm = None
        return (out,)
"""
CODE = """# kernel path: <path-{token}>/{hash}/c{hash}{rest}.py
triton_{n} = async_compile.triton('triton_{n}', device=DeviceProperties(type='cuda', index={device}))
with torch.cuda._DeviceGuard({device}):
    stream{device} = get_raw_stream({device})
"""


def graph(
    rank: int, n: int = 0, *, compile_id: str = "0/0", op: str = "relu", device: int | None = None
) -> dict[str, Any]:
    """A post-grad graph as a rank prints it."""
    text = GRAPH.format(n=n, op=op, device=rank if device is None else device, token=rank + 1)
    return {
        "kind": "graph", "stage": "post_grad", "name": f"graph {n}", "phase": "after",
        "compile_id": compile_id, "direction": "forward", "language": "python", "nodes": 3,
        "ops": {"aten.mm": 1, f"aten.{op}": 1}, "text": text,
    }  # fmt: skip


def code(rank: int, n: int = 0) -> dict[str, Any]:
    """The output code as a rank has it: with hashes that the device went into."""
    letters = "abcdefghijklmnopqrstuvwxyz234567"
    rest = "".join(letters[(rank * 7 + i * i) % 32] for i in range(48))
    text = CODE.format(n=n, device=rank, token=rank + 1, hash=letters[rank % 8] + "x", rest=rest)
    return {
        "kind": "output_code",
        "name": f"code {n}",
        "compile_id": "0/0",
        "language": "python",
        "text": text,
    }


def metrics(rank: int) -> dict[str, Any]:
    """Compilation metrics, which tell of time."""
    text = f'{{"duration_us": {rank * 17 + 1}, "end_time": {rank}.5}}'
    return {"kind": "metrics", "stage": "compile", "name": "compilation_metrics", "text": text}


def compiled(id_: str = "0/0", name: str = "forward", seconds: float = 1.0) -> dict[str, Any]:
    """A compile's record."""
    return {"id": id_, "function": {"name": name, "file": "train.py", "line": 3}, "status": "ok"} | {
        "seconds": seconds
    }


def rank_bundle(
    directory: Path,
    rank: int | None,
    artifacts: list[dict[str, Any]] | None = None,
    *,
    compiles: list[dict[str, Any]] | None = None,
    world: int = 8,
    verdict: str = "cold",
    end: bool = True,
) -> Path:
    """Write the bundle of a rank; by default of two graphs, their code, and telemetry."""
    number = rank or 0
    if artifacts is None:
        artifacts = [graph(number), graph(number, 1), code(number), metrics(number)]
    items: list[dict[str, Any]] = [records()[0]]
    items[0]["run"] = {"id": f"r{rank}", "program": "train", "pid": 70 + number, "rank": rank}
    items[0]["run"]["world_size"] = world
    variables = {"WORLD_SIZE": str(world), "LOCAL_RANK": str(number)}
    items.append({"t": "state", "environment": {"versions": {"torch": "2.13.0"}, "variables": variables}})
    for seq, artifact in enumerate(artifacts):
        fields = {k: v for k, v in artifact.items() if k != "text"}
        text = artifact["text"]
        fields |= {"seq": seq, "digest": codec.digest(text), "bytes": len(text.encode())}
        items += [
            {"t": "text", "digest": fields["digest"], "text": text},
            {"t": "artifact", "artifact": fields},
        ]
    known = [compiled(seconds=1.0 + number)] if compiles is None else compiles
    items.append({"t": "state", "compiles": known, "completeness": {"verdict": verdict}})
    folder = directory / f"rank-{rank}-{len(list(directory.iterdir()))}"
    folder.mkdir()
    return write_small(folder, items, end=end)
