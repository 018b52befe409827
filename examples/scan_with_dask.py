"""A table of many bundles, made by a Dask cluster: each worker reads some of them, from wherever they lie.

    python examples/scan_with_dask.py kernels 'runs/*.json.zst' kernels/
    python examples/scan_with_dask.py kernels 's3://bucket/*.json.zst' s3://bucket/kernels/ tcp://scheduler:8786

Writes a Parquet file per part; DuckDB, polars and Spark read the folder as one table.
"""

from __future__ import annotations

import sys

import dask
import fsspec
import pyarrow.parquet

import structdump

PART = 200  # bundles per task


def part(table: str, paths: list[str], target: str) -> int:
    """Read some bundles, write their rows as one file, and return how many there are."""
    # One process: Dask has its own, and each of them does this.
    rows = structdump.scan(paths, workers=0).to_arrow(table)
    with fsspec.open(target, "wb", auto_mkdir=True) as file:
        pyarrow.parquet.write_table(rows, file)
    return int(rows.num_rows)


def main(table: str, places: str, folder: str, scheduler: str | None = None) -> None:
    if scheduler is not None:
        from dask.distributed import Client

        Client(scheduler)
    files = fsspec.open_files(places)
    paths = sorted(f.full_name if "://" in places else f.path for f in files)
    parts = [paths[n : n + PART] for n in range(0, len(paths), PART)]
    tasks = [
        dask.delayed(part)(table, some, f"{folder.rstrip('/')}/part{n:05}.parquet")
        for n, some in enumerate(parts)
    ]
    # Without a cluster, as many processes as there are cores.
    counts = dask.compute(*tasks, **({} if scheduler else {"scheduler": "processes"}))
    print(f"{sum(counts)} rows of {len(paths)} bundles in {len(parts)} files")


if __name__ == "__main__":
    main(*sys.argv[1:])
