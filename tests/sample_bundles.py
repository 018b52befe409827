"""Small bundles and journals for tests, made through the real journal and writer."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from structdump.bundle import codec
from structdump.bundle.journal import Journal
from structdump.bundle.loaded import LoadedBundle
from structdump.bundle.reader import load
from structdump.bundle.verify import problems
from structdump.bundle.writer import write_bundle
from structdump.errors import BundleError

GRAPH = """class GraphModule(torch.nn.Module):
    def forward(self, arg0_1: "f32[8, {n}]"):
        # File: train.py:{n} in forward, code: return (x @ w).relu()
        mm: "f32[8, 4]" = torch.ops.aten.mm.default(arg0_1, arg0_1);  arg0_1 = None
        return (torch.ops.aten.relu.default(mm),)
"""
KERNEL = """@triton.jit
def triton_poi_fused_relu_{n}(in_ptr0, xnumel, XBLOCK: tl.constexpr):
    pass  # "quoted" \\ and a tab\t, é, 日本, 🎉
"""
COMPILE = {
    "id": "0/0",
    "function": {"name": "forward", "file": "train.py", "line": 12},
    "status": "ok",
    "seconds": 1.5,
    "graph_breaks": [{"reason": "print", "resumed_by": "1/0"}],
}


def records(graphs: int = 4, kernels: int = 3) -> list[dict[str, Any]]:
    """A capture's records, all but the end: graphs that share a text, kernels, an index entry, a drop."""
    out: list[dict[str, Any]] = [
        {
            "t": "head",
            "producer": {"name": "structdump", "version": "0.1.0", "source": "live"},
            "run": {"id": "r1", "program": "train", "argv": ["train.py"], "pid": 7},
            "level": "medium",
            "config": {"level": "medium"},
        },
        {"t": "state", "environment": {"versions": {"torch": "2.13.0"}, "configs": {"m": {"a": None}}}},
    ]
    artifacts: list[dict[str, Any]] = []
    for n in range(graphs):
        for stage in ("post_grad", "forward"):
            text = GRAPH.format(n=n)
            artifacts.append(
                {
                    "kind": "graph",
                    "stage": stage,
                    "name": "AFTER POST GRAD" if stage == "post_grad" else "Forward graph",
                    "phase": "after" if stage == "post_grad" else None,
                    "compile_id": "0/0",
                    "direction": "forward",
                    "language": "python",
                    "nodes": 3,
                    "ops": {"aten.mm": 1, "aten.relu": 1},
                    "text": text,
                }
            )
    for n in range(kernels):
        name = f"triton_poi_fused_relu_{n}"
        kernel = {"name": name, "backend": "triton", "ops": ["aten.relu"], "nodes": ["relu"]}
        artifacts.append(
            {"kind": "kernel", "name": name, "compile_id": "0/0", "language": "python", "kernel": kernel}
            | {"text": KERNEL.format(n=n)}
        )
        artifacts.append(
            {"kind": "best_config", "name": name, "compile_id": "0/0", "kernel": kernel}
            | {"data": {"XBLOCK": 1 << n}}
        )
    artifacts.append(
        {"kind": "pass", "name": "fuse", "compile_id": "0/0", "changed": True, "text": GRAPH.format(n=0)}
    )
    artifacts.append(
        {"kind": "pass", "name": "noop", "compile_id": "0/0", "changed": False}
        | {"omitted": {"reason": "level", "bytes": None}}
    )
    done = set()
    for seq, artifact in enumerate(artifacts):
        text = artifact.pop("text", None)
        artifact = {"seq": seq, **artifact}
        if text is not None:
            digest = codec.digest(text)
            artifact |= {"digest": digest, "bytes": len(text.encode())}
            if digest not in done:
                done.add(digest)
                out.append({"t": "text", "digest": digest, "text": text})
        out.append({"t": "artifact", "artifact": artifact})
    out.append(
        {
            "t": "state",
            "compiles": [COMPILE],
            "completeness": {"verdict": "cold"},
            "omitted": {"level": {"indexed": 1, "dropped": 2, "bytes": 0}},
            "redactions": {"user": 3},
        }
    )
    return out


def write_journal(path: Path, items: list[dict[str, Any]] | None = None, *, end: bool = True) -> Path:
    """Write a journal of `items` (default: `records()`), with its end unless told not to."""
    journal = Journal.create(path)
    for item in records() if items is None else items:
        journal.write(item)
    if end:
        journal.write({"t": "end"})
    journal.close()
    return path


def write_small(directory: Path, items: list[dict[str, Any]] | None = None, *, end: bool = True) -> Path:
    """Write a small bundle and return its path; the journal is gone."""
    journal = write_journal(directory / "small.journal", items, end=end)
    path = write_bundle(journal, directory / "small.json.zst", max_bytes=None).path
    journal.unlink()
    return path


def bundle_of(
    directory: Path,
    *artifacts: dict[str, Any],
    compiles: list[dict[str, Any]] | None = None,
    head: dict[str, Any] | None = None,
    verdict: str = "cold",
    **environment: Any,
) -> LoadedBundle:
    """Write a bundle of these artifacts, with one compile unless told otherwise, and load it.

    `text` is an artifact's text, or None if it is only listed.
    """
    out: list[dict[str, Any]] = [{**records()[0], **(head or {})}]
    directory.mkdir(exist_ok=True)
    if environment:
        out.append({"t": "state", "environment": environment})
    for seq, artifact in enumerate(artifacts):
        text = artifact.get("text")
        fields = {"seq": seq, **{k: v for k, v in artifact.items() if k != "text"}}
        if text is None:
            fields["omitted"] = {"reason": "level", "bytes": None}
        else:
            fields |= {"digest": codec.digest(text), "bytes": len(text.encode())}
            out.append({"t": "text", "digest": fields["digest"], "text": text})
        out.append({"t": "artifact", "artifact": fields})
    known = [{"id": "0/0", "function": {"name": "f"}, "status": "ok"}] if compiles is None else compiles
    out.append({"t": "state", "compiles": known, "completeness": {"verdict": verdict}})
    return load(write_small(directory, out))


def exercise(bundle: LoadedBundle) -> None:
    """Touch everything that a bundle offers; raises only what its texts may raise."""
    repr(bundle)
    for table in ("kernels", "artifacts", "compiles"):
        list(bundle.rows(table))
    for found in (bundle.graphs("*"), bundle.configs(), bundle.passes(), bundle.artifacts_like(function="*")):
        for artifact in found:
            artifact.best_config  # noqa: B018  # reading it is the exercise
            artifact.provenance  # noqa: B018  # the same
    problems(bundle)
    with contextlib.suppress(BundleError):
        for artifact in bundle.artifacts:
            artifact.text  # noqa: B018  # the same
        codec.dumps(bundle.document().model_dump(by_alias=True))
