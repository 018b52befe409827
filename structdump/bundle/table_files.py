"""Tables as Arrow, pandas, Parquet, CSV and JSON lines; pyarrow and pandas are imported when needed."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from structdump.bundle import codec
from structdump.errors import UsageError

if TYPE_CHECKING:
    import pandas
    import pyarrow

Columns = Mapping[str, str]
Batches = Iterable[list[list[Any]]]
_ROWS = 50_000  # per row group of a Parquet file


def arrow_table(columns: Columns, batches: Batches) -> pyarrow.Table:
    """Return columns with their types as an Arrow table. Raises UsageError if pyarrow is not installed."""
    pa = _pyarrow()
    schema = _schema(pa, columns)
    return pa.Table.from_batches([_record_batch(pa, schema, batch) for batch in batches], schema)


def data_frame(columns: Columns, batches: Batches) -> pandas.DataFrame:
    """Return columns as a pandas data frame. Raises UsageError if pandas is not installed."""
    try:
        import pandas
    except ImportError:
        raise UsageError("to_dataframe needs pandas: pip install pandas; rows() does without") from None
    whole: dict[str, list[Any]] = {name: [] for name in columns}
    for batch in batches:
        for name, values in zip(columns, batch, strict=True):
            whole[name] += values
    kinds = {"int": "Int64", "float": "float64", "bool": "boolean"}
    return pandas.DataFrame(
        {
            name: pandas.Series(values, dtype=kinds.get(columns[name], "object"))
            for name, values in whole.items()
        }
    )


def write(columns: Columns, batches: Batches, output: str | os.PathLike[str], *, overwrite: bool) -> int:
    """Write a table, in the form that the file's ending says; return the number of rows.

    Raises UsageError for another ending, for an existing file unless `overwrite`, and if it can't be written.
    """
    path = Path(output)
    writers = {".parquet": _parquet, ".csv": _csv, ".jsonl": _jsonl}
    if path.suffix not in writers:
        raise UsageError(f"{path.name} must end in {', '.join(writers)}")
    if path.suffix == ".parquet":
        _pyarrow()
    try:
        with path.open("wb" if overwrite else "xb") as file:
            return writers[path.suffix](columns, batches, file)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from None


def _parquet(columns: Columns, batches: Batches, file: IO[bytes]) -> int:
    pa = _pyarrow()
    import pyarrow.parquet

    schema, rows = _schema(pa, columns), 0
    with pyarrow.parquet.ParquetWriter(file, schema, compression="zstd") as out:
        for group in _grouped(batches):
            table = pa.Table.from_batches([_record_batch(pa, schema, batch) for batch in group], schema)
            out.write_table(table)
            rows += table.num_rows
    return rows


def _csv(columns: Columns, batches: Batches, file: IO[bytes]) -> int:
    import io

    rows = 0
    with io.TextIOWrapper(file, encoding="utf-8", newline="", errors="backslashreplace") as text:
        out = csv.writer(text)
        out.writerow(columns)
        for batch in batches:
            for row in zip(*batch, strict=True):
                out.writerow([codec.dumps(v).decode() if isinstance(v, list) else v for v in row])
                rows += 1
    return rows


def _jsonl(columns: Columns, batches: Batches, file: IO[bytes]) -> int:
    rows = 0
    for batch in batches:
        for row in zip(*batch, strict=True):
            file.write(codec.dumps(dict(zip(columns, row, strict=True))) + b"\n")
            rows += 1
    return rows


def _grouped(batches: Batches) -> Iterator[list[list[list[Any]]]]:
    group: list[list[list[Any]]] = []
    count = 0
    for batch in batches:
        group.append(batch)
        count += len(batch[0])
        if count >= _ROWS:
            yield group
            group, count = [], 0
    if group:
        yield group


def _record_batch(pa: Any, schema: Any, batch: list[list[Any]]) -> Any:
    arrays = [pa.array(v, type=field.type) for v, field in zip(batch, schema, strict=True)]
    return pa.record_batch(arrays, schema=schema)


def _schema(pa: Any, columns: Columns) -> Any:
    types = {
        "text": pa.string(),
        "json": pa.string(),
        "int": pa.int64(),
        "float": pa.float64(),
        "bool": pa.bool_(),
        "texts": pa.list_(pa.string()),
        "ints": pa.list_(pa.int64()),
    }
    return pa.schema([(name, types[kind]) for name, kind in columns.items()])


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise UsageError("this needs pyarrow: pip install 'structdump[table]'") from None
    return pyarrow
