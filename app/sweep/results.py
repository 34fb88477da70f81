"""The results of a sweep as Parquet and CSV: one row per cell, in the order of the cells.

docs/sweeps.md documents the columns. Their names are stable: add, never rename.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pyarrow.parquet as pq  # type: ignore[import-untyped, unused-ignore]

from app.document.escape import safe_cell
from app.sweep.cell import COLUMNS
from app.sweep.cells import Sweep
from app.sweep.folder import SweepFolder, put_in_place

CHUNK_ROWS = 5_000  # rows in memory at a time; also a row group of the Parquet file
ARROW = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}


def write_results(folder: SweepFolder, sweep: Sweep, manifest: Mapping[str, str]) -> list[Path]:
    """Write results.parquet and results.csv of a sweep whose cells are all finished."""
    schema = schema_of(sweep).with_metadata(dict(manifest))
    parquet, table = folder.path / "results.parquet", folder.path / "results.csv"
    new_parquet, new_table = (p.with_name(p.name + ".new") for p in (parquet, table))
    with (
        pq.ParquetWriter(new_parquet, schema) as columns,
        new_table.open("w", encoding="utf-8", newline="") as text,
    ):
        lines = csv.DictWriter(text, schema.names, lineterminator="\n")
        lines.writeheader()
        rows = _rows(folder, sweep)
        while chunk := list(islice(rows, CHUNK_ROWS)):
            columns.write_table(pa.Table.from_pylist(chunk, schema=schema))
            lines.writerows({n: _csv(v) for n, v in row.items()} for row in chunk)
    put_in_place(new_parquet, parquet)
    put_in_place(new_table, table)
    return [parquet, table]


def schema_of(sweep: Sweep) -> pa.Schema:
    """The columns: number of the cell, fields that vary, then the results."""
    varying = {name: ARROW[_kind(values)] for name, values in sweep.varying.items()}
    found = {name: ARROW[kind] for name, kind in COLUMNS.items()}
    return pa.schema({"cell": pa.int64(), **varying, **found})


def _kind(values: tuple[Any, ...]) -> type:
    """The column type of a field's values; a list becomes text as in a link, such as 8,64."""
    kinds = {type(v) for v in values if v is not None}
    return next((k for k in (bool, int, float) if kinds == {k}), str)


def _rows(folder: SweepFolder, sweep: Sweep) -> Iterator[dict[str, Any]]:
    numbers = range(len(sweep))
    for number, row in zip(numbers, folder.rows(numbers), strict=True):
        values = sweep.values(number)
        varying = {name: _plain(values[name]) for name in sweep.varying}
        yield {"cell": number, **varying, **{name: row.get(name) for name in COLUMNS}}


def _plain(value: Any) -> Any:
    return ",".join(str(v) for v in value) if isinstance(value, tuple) else value


def _csv(value: Any) -> Any:
    """A CSV cell: true and false as in JSON, unknown as empty, and no text starts a formula."""
    if isinstance(value, bool):
        return str(value).lower()
    return safe_cell(value) if isinstance(value, str) else value
