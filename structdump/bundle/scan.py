"""Thousands of bundles in one script; `structdump.scan`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from structdump import errors
from structdump.bundle import codec, table_files, workers
from structdump.bundle.loaded import LoadedBundle, Table
from structdump.bundle.model import Bundle
from structdump.bundle.outline import outline, without_artifacts
from structdump.bundle.places import Place, expand
from structdump.bundle.reader import head, load
from structdump.bundle.tables import Row, named
from structdump.bundle.texts import LateTexts, NoTexts
from structdump.errors import BundleError

if TYPE_CHECKING:
    import pandas
    import pyarrow

_BATCH = 16  # bundles
#: Columns that each table has first: where a row is from.
SOURCE = {"bundle": "text", "program": "text", "rank": "int", "torch": "text"}


def scan(places: Place | Iterable[Place], *, workers: int | None = None) -> Scan:
    """Look through many bundles: paths, URLs, shell globs of either, and directories.

    Iterating yields one `Scanned` per bundle, in order, read by `workers` processes (default: one per
    core, 0: none but this one). Only a bundle's head is read, until a text is asked for. Methods make
    tables of all of them. A bundle that can't be read does not end the scan: it is yielded with its
    `error`, and counts in `errors` after a table was made. Memory is bounded by a few batches of 16
    bundles, however many there are.

    Example::

        for b in structdump.scan("runs/*.json.zst"):
            print(b.path, b.error or b.environment.versions["torch"])
        structdump.scan("runs/*.json.zst").to_arrow("kernels")
    """
    count = len(os.sched_getaffinity(0)) if workers is None else workers
    return Scan(places, count)


class Scan:
    """What `structdump.scan` returns: may be iterated, and made into tables, as often as wanted.

    `count` and `errors` (by path) tell of the last time: how many bundles there were, and which failed.
    """

    def __init__(self, places: Place | Iterable[Place], count: int):
        self._places = [places] if isinstance(places, (str, os.PathLike)) else list(places)
        self._count = count
        self.count = 0
        self.errors: dict[str, BundleError] = {}

    def __iter__(self) -> Iterator[Scanned]:
        for entry in self._entries({"job": "outline"}):
            yield Scanned(entry["path"], entry.get("outline"), self.errors.get(entry["path"]))

    def rows(self, table: Table) -> Iterator[Row]:
        """Yield the rows of a table as dictionaries, bundle by bundle; values are plain data.

        The columns are those of `LoadedBundle.rows`, and before them `bundle` (its path), `program`,
        `rank` and `torch`. Raises UsageError for an unknown table.
        """
        names = list(columns_of(table))
        for batch in self.batches(table):
            yield from (dict(zip(names, row, strict=True)) for row in zip(*batch, strict=True))

    def batches(self, table: Table) -> Iterator[list[list[Any]]]:
        """Yield the columns of a table, as lists of values in the order of `columns_of`, bundle by bundle."""
        named(table)
        for entry in self._entries({"job": "columns", "table": table}):
            if entry.get("columns"):
                yield entry["columns"]

    def to_arrow(self, table: Table) -> pyarrow.Table:
        """Return a table as an Arrow table. Raises UsageError if pyarrow is not installed."""
        return table_files.arrow_table(columns_of(table), self.batches(table))

    def to_dataframe(self, table: Table) -> pandas.DataFrame:
        """Return a table as a pandas data frame. Raises UsageError if pandas is not installed."""
        return table_files.data_frame(columns_of(table), self.batches(table))

    def write(self, table: Table, output: str | os.PathLike[str], *, overwrite: bool = False) -> int:
        """Write a table to a `.parquet`, `.csv` or `.jsonl` file, batch by batch; return the number of rows.

        Raises UsageError for another ending, for an existing file unless `overwrite`, when it can't be
        written, and for Parquet when pyarrow is not installed.
        """
        return table_files.write(columns_of(table), self.batches(table), output, overwrite=overwrite)

    def _entries(self, request: workers.Request) -> Iterator[dict[str, Any]]:
        self.count, self.errors = 0, {}
        paths = expand(self._places)
        requests = iter(lambda: {**request, "paths": list(islice(paths, _BATCH))}, {**request, "paths": []})
        # What lies in memory:// is this process's own.
        alone = self._count == 0 or any(str(place).startswith("memory:") for place in self._places)
        replies = map(answer, requests) if alone else workers.in_order(requests, self._count)
        for reply in replies:
            for entry in reply:
                self.count += 1
                if entry.get("error"):
                    self.errors[entry["path"]] = _error(*entry["error"])
                yield entry


class Scanned:
    """One bundle of a scan: `path`, `error` (None if its head could be read), and all that a bundle has.

    What stands before compiles and artifacts (`run`, `runs`, `level`, `environment`, `completeness`, …) is
    there at once, and so is how many there are (`compile_count`, `artifact_count`). Anything else opens the
    head (`bundle`), and a text the whole file; both may raise what `structdump.load` raises.
    """

    def __init__(self, path: str, outline: dict[str, Any] | None, error: BundleError | None):
        self.path = path
        self.error = error
        self.compile_count = self.artifact_count = 0
        self._bundle: LoadedBundle | None = None
        if outline is not None:
            self.compile_count, self.artifact_count = outline.pop("compiles"), outline.pop("artifacts")
            self._outline: Bundle | None = Bundle.model_validate(outline)
        else:
            self._outline = None

    @property
    def bundle(self) -> LoadedBundle:
        """The bundle with all that its head says; its texts are read when one is asked for."""
        if self.error is not None:
            raise self.error
        if self._bundle is None:
            self._bundle = lazy(self.path)
        return self._bundle

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if self._outline is not None and name in _OUTLINE:
            return getattr(self._outline, name)
        return getattr(self.bundle, name)

    def __repr__(self) -> str:
        return f"<scanned {self.path}{f': {self.error}' if self.error else ''}>"


_OUTLINE = frozenset(Bundle.model_fields) - {"compiles", "artifacts", "texts", "complete"}


def lazy(path: str) -> LoadedBundle:
    """Open a bundle by its head; the rest of the file is read when a text is asked for.

    Example: `lazy("run.json.zst").artifacts[0].text`
    """
    found = head(path)
    if not isinstance(found.texts, NoTexts):
        return found
    return LoadedBundle(found.bare(), LateTexts(lambda: load(path).texts), None)


def columns_of(table: Table) -> dict[str, str]:
    """Return the columns of a scan's table and their types, see `structdump.bundle.tables`.

    Example::

        >>> list(columns_of("breaks"))[:5]
        ['bundle', 'program', 'rank', 'torch', 'compile_id']
    """
    return {**SOURCE, **named(table).columns}


def answer(request: workers.Request) -> workers.Reply:
    """Do one request of a scan, in whichever process: an entry for each path, or its error."""
    return [_entry(path, request) for path in request["paths"]]


def _entry(path: str, request: workers.Request) -> dict[str, Any]:
    try:
        if request["job"] == "outline":
            return {"path": path, "outline": outline(path)}
        return {"path": path, "columns": _columns(path, request["table"])}
    except BundleError as error:
        return {"path": path, "error": [type(error).__name__, str(error)]}
    except Exception as error:  # noqa: BLE001  # one bundle must not end a scan of thousands
        return {"path": path, "error": ["BundleError", f"{path}: {type(error).__name__}: {error}"]}


def _columns(path: str, table: Table) -> list[list[Any]]:
    known = named(table)
    bundle = head(path, kinds=known.kinds) if known.kinds != frozenset() else without_artifacts(path)
    rows = list(known.rows(bundle))
    found: list[list[Any]] = [
        [value] * len(rows)
        for value in (path, bundle.run.program, bundle.run.rank, bundle.environment.versions.get("torch"))
    ]
    for name, type_ in known.columns.items():
        values = [row[name] for row in rows]
        if type_ == "int":
            values = [None if v is None or abs(v) >= 1 << 63 else v for v in values]
        elif type_ == "json":
            values = [None if v is None else codec.dumps(v).decode() for v in values]
        found.append(values)
    return found


def _error(name: str, message: str) -> BundleError:
    kind = getattr(errors, name, BundleError)
    return kind(message) if issubclass(kind, BundleError) else BundleError(message)
