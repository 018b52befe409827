"""A bundle as a directory of readable files, for editors, grep and `diff -r`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from structdump.analyze import canon
from structdump.analyze.extract_index import index
from structdump.analyze.extract_kernels import kernel_files
from structdump.analyze.extract_places import Places, place, suffix
from structdump.analyze.extract_target import Names, Target, slug
from structdump.analyze.summary import config
from structdump.bundle.loaded import ArtifactView, LoadedBundle
from structdump.bundle.names import depyf_file_name
from structdump.bundle.rank_view import of_rank
from structdump.errors import UsageError

Layout = Literal["tree", "depyf"]
#: Fields of a compile that differ from run to run.
CLOCKS = frozenset({"seconds", "phases", "metrics"})


class Extracted(NamedTuple):
    """What was written: paths below the directory, in order; `left` counts texts without a place there."""

    files: list[str]
    left: int


def extract(
    bundle: LoadedBundle, directory: str | os.PathLike[str], layout: Layout = "tree", *, force: bool = False
) -> Extracted:
    """Write a bundle's texts below `directory`, which is made if need be; of a merged one its first rank's.

    `layout` is `tree` (an index, compiles and kernels, everything that differs between two runs of a
    program in the folder `run`; object ids in guards are left out) or `depyf` (depyf's file names, in
    one folder, and only what depyf dumps, to the byte). Nothing is written outside, whatever the
    bundle's names are, and no link is followed.
    With `force` the directory may hold something: files of the same name are replaced, others stay.
    Raises UsageError if the directory is not empty or cannot be written, CorruptError if a text is
    missing.

    Example::

        extract(structdump.load("run.json.zst"), "run")
    """
    if layout not in get_args(Layout):
        raise UsageError(f"no layout {layout!r}; there are {', '.join(get_args(Layout))}")
    bundle = of_rank(bundle)
    with Target(Path(directory), force=force) as target:
        left = _tree(bundle, target) if layout == "tree" else _depyf(bundle, target)
        return Extracted(target.files, left)


def as_json(value: Any) -> str:
    """Return a value as JSON to read."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n"


def _tree(bundle: LoadedBundle, target: Target) -> int:
    names = Names()
    places = Places(bundle.artifacts)
    kernels = kernel_files(bundle, names)
    stems = {(k.name, place(user)): k.path.rpartition(".")[0] for k in kernels for user in k.users}
    configured = {(k.name, place(user)) for k in kernels for user in k.users if user.best_config}
    known = {user.seq for file in kernels for user in file.users}
    run = _Run(names)
    written: dict[tuple[str, str], str] = {}  # the same text under the same name is one file
    placed: dict[int, str] = {}
    for a in bundle.artifacts:
        stem, content = places.stem(a), _content(a)
        if content is None or a.seq in known:
            continue
        end = suffix(a) if a.digest else ".json"
        if a.kind == "ir" and stem is None and a.stage != "compile_command":
            stem, end = (
                stems.get((a.name, place(a)), f"kernels/{slug(a.name)}"),
                f".{slug(a.stage or 'ir')[:20]}",
            )
        elif a.kind == "best_config":
            if a.kernel is not None and (a.kernel.name, place(a)) in configured:
                continue  # it stands in the kernel's comment
            stem, end, content = f"kernels/{slug(a.name)}.best_config", ".json", _without_times(content)
        elif a.kind in ("guards", "repro") or a.stage == "full_code":
            content = canon.readable(content)
        if stem is None:
            run.add(a, content)
            continue
        key = stem + end, content
        if key not in written:
            written[key] = names.free(stem, end)
            target.write(written[key], content)
        placed[a.seq] = written[key]
    for file in kernels:
        target.write(file.path, file.content())
    run.write(bundle, target)
    target.write("environment.json", as_json(bundle.environment.model_dump(exclude_defaults=True)))
    records = [c.model_dump(exclude=set(CLOCKS), exclude_defaults=True) for c in bundle.compiles]
    target.write("compiles.json", as_json(records))
    target.write("README.md", index(bundle, placed, kernels))  # the last: a tree with one is whole
    return 0


class _Run:
    """The folder of what differs from run to run."""

    def __init__(self, names: Names):
        self._names = names
        self._lists: dict[str, list[str]] = {}
        self._files: dict[str, str] = {}

    def add(self, a: ArtifactView, content: str) -> None:
        """Take the text of an artifact that has no other place: bulk telemetry is put together."""
        if a.kind in ("trace", "ir"):
            stage = "chromium" if "chromium" in a.name else slug(a.stage or a.name)
            self._lists.setdefault(stage, []).append(content)
        else:
            path = self._names.free(f"run/{slug(f'{place(a)}_{a.name}')}", suffix(a) if a.digest else ".json")
            self._files[path] = content

    def write(self, bundle: LoadedBundle, target: Target) -> None:
        """Write what was taken, and times, clocks and counts."""
        for path, content in self._files.items():
            target.write(path, content)
        for stage, lines in self._lists.items():
            if stage == "chromium":  # one list, as Perfetto and chrome://tracing open it
                body = ",\n".join(line.strip() for line in lines)
                target.write(self._names.free("run/trace", ".json"), f"[\n{body}\n]\n")
            else:
                end = ".txt" if stage == "compile_command" else ".jsonl"
                body = "".join(" ".join(line.split("\n")).strip() + "\n" for line in lines)
                target.write(self._names.free(f"run/{stage}", end), body)
        facts = {
            "run": bundle.run.model_dump(exclude_none=True),
            "producer": bundle.producer.model_dump(),
            "redactions": bundle.redactions,
            "hook_errors": [e.model_dump() for e in bundle.hook_errors],
            "compiles": {c.id: c.model_dump(include=set(CLOCKS)) for c in bundle.compiles},
        }
        target.write(self._names.free("run/run", ".json"), as_json(facts))


def _depyf(bundle: LoadedBundle, target: Target) -> int:
    numbers = {c.id: str(n) for n, c in enumerate(bundle.compiles, 1)}
    functions = {c.id: c.function.name for c in bundle.compiles if c.function}
    counts: dict[str, int] = {}
    indices: dict[tuple[str | None, str], int] = {}
    left = 0
    for a in bundle.artifacts:
        content = _content(a)
        if content is None:
            continue
        own = a.compile_id or ""
        function = functions.get(own, "unknown") if a.kind == "source" else numbers.get(own, "-1")
        first = _depyf_name(a, function, 0)
        if first is None:
            left += 1
            continue
        key = first.lower()
        number = counts.get(key, 0)
        if a.kernel and a.kind == "best_config":
            number = indices.get((a.compile_id, a.kernel.name), number)
        elif a.kernel:
            indices.setdefault((a.compile_id, a.kernel.name), number)
        while (name := str(_depyf_name(a, function, number))).lower() in target.taken:
            number += 1
        counts[key] = number + 1
        target.write(name, content)
    return left


def _depyf_name(a: ArtifactView, function: str, number: int) -> str | None:
    name = depyf_file_name(a.kind, a.name, a.stage, a.phase, function, number)
    return name and "".join(c if c.isprintable() else "_" for c in name)


def _content(a: ArtifactView) -> str | None:
    if a.digest is not None:
        return a.text
    if a.omitted is not None:
        return None
    if a.autotune is not None:
        return as_json(a.autotune.model_dump(exclude_none=True))
    if a.kind == "best_config" and a.kernel is not None and a.kernel.best_config:
        return as_json(a.kernel.best_config)
    return None if a.data is None else as_json(a.data)


def _without_times(content: str) -> str:
    try:
        value = json.loads(content)
    except ValueError:
        return content
    return as_json(config(value)) if isinstance(value, dict) else content
