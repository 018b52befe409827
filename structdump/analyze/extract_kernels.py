"""The kernels of an extracted tree: each source once, under a comment that says where it comes from."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from structdump.analyze.extract_places import place, suffix
from structdump.analyze.extract_target import Names, slug
from structdump.analyze.repro_script import comment
from structdump.analyze.summary import config
from structdump.bundle.loaded import ArtifactView, LoadedBundle
from structdump.bundle.model import Kernel

_WIDTH = 100
#: Fields of a kernel that differ from run to run.
CLOCKS = frozenset({"performance", "best_config"})


@dataclass
class KernelFile:
    """One file: a kernel's source, or what is known of a kernel without one, and every graph that runs it."""

    path: str
    artifact: ArtifactView
    users: list[ArtifactView] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The kernel's own name."""
        return self.kernel.name

    @property
    def kernel(self) -> Kernel:
        """What the kernel is, as its first user has it."""
        assert self.artifact.kernel is not None  # noqa: S101 # made of kernels only
        return self.artifact.kernel

    @property
    def config(self) -> dict[str, Any]:
        """The launch configuration that tuning chose, without how long that took."""
        return next((config(user.best_config) for user in self.users if user.best_config), {})

    def content(self) -> str:
        """Return the file: a comment and the source, to the byte, or JSON."""
        text = self.artifact.text
        if text is None:
            return _json_of(self)
        cpp = suffix(self.artifact) in (".cpp", ".cu")
        mark = "//" if cpp else "#"
        lines = [f"{mark} {line}".rstrip() for line in _header(self)]
        if cpp:
            # A backslash, or its trigraph, at the end of a comment would take in the line after it.
            lines = [f"{line} |" if line.endswith(("\\", "??/")) else line for line in lines]
        else:
            lines.insert(0, "# coding: utf-8")  # else Python takes one from a name in the first two lines
        return "\n".join(lines) + "\n\n" + text


def kernel_files(bundle: LoadedBundle, names: Names) -> list[KernelFile]:
    """Return the files of all kernels in order; candidates have a folder of their own."""
    found: dict[tuple[str, str, str | None], KernelFile] = {}
    named: set[tuple[str, str]] = set()
    for a in bundle.kernels(role=None):
        assert a.kernel is not None  # noqa: S101 # kernels() returns no others
        used = a.kernel.role == "used"
        if a.digest is None and not used:
            continue
        folder = "kernels" if used else f"kernels/{a.kernel.role}"
        key = folder, a.kernel.name, a.digest
        if key not in found:
            stem, end = f"{folder}/{slug(a.kernel.name)}", suffix(a) if a.digest else ".json"
            if a.digest and key[:2] in named:  # names begin anew in each graph: another graph's kernel has it
                stem = f"{folder}/{slug(f'{a.kernel.name}.{place(a)}')}"
            if a.digest:
                named.add(key[:2])
            found[key] = KernelFile(names.free(stem, end), a)
        found[key].users.append(a)
    return list(found.values())


def _header(file: KernelFile) -> Iterator[str]:
    k = file.kernel
    yield f"Kernel {comment(k.name)}"
    yield "of a structdump bundle; below this comment its source, as the compiler wrote it."
    yield ""
    counts = {"loads": k.loads, "stores": k.stores, "reductions": k.reductions}
    hints = k.size_hints or {}
    facts = {
        "backend": k.backend if k.role == "used" else f"{k.backend}, {k.role}",
        "run by": ", ".join(f"{place(user)} ×{user.kernel.calls}" for user in file.users if user.kernel),
        "config": settings(file.config),
        "heuristic": k.heuristic or "",
        "sizes": settings(hints),
        "memory": ", ".join(f"{count} {name}" for name, count in counts.items() if count is not None),
        "grid": k.grid or "",
        "ops": ", ".join(k.ops),
        "nodes": ", ".join(k.nodes),
        "source": ", ".join(dict.fromkeys(f"{f.file}:{f.line} in {f.name}" for f in k.stack)),
    }
    for label, value in facts.items():
        if value:
            lead = f"{label:<10} "
            yield from textwrap.wrap(
                lead + comment(value), _WIDTH, subsequent_indent=" " * len(lead), break_long_words=False
            )
    if k.fragment:
        yield ""
        yield "graph"
        yield from (f"    {comment(line)}" for line in k.fragment.splitlines())


def settings(values: dict[str, Any]) -> str:
    """Write settings on one line, such as `XBLOCK=64 num_warps=4`."""
    return " ".join(f"{name}={value}" for name, value in values.items())


def _json_of(file: KernelFile) -> str:
    from structdump.analyze.extract import as_json

    users = [
        {
            "compile": user.compile_id,
            "direction": user.direction,
            "omitted": user.omitted and user.omitted.reason,
            **user.kernel.model_dump(exclude=set(CLOCKS), exclude_none=True),
            "best_config": config(user.best_config),
        }
        for user in file.users
        if user.kernel
    ]
    return as_json(users)
