"""The results of a sweep as Parquet and CSV: one row per cell, in the order of the cells.

docs/sweeps.md documents the columns. Their names are stable: add, never rename.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from arro3.core import Array, DataType, Field, RecordBatch, RecordBatchReader, Schema
from arro3.io import write_parquet

from app.document.escape import safe_cell
from app.sweep.cell import COLUMNS
from app.sweep.cells import Sweep
from app.sweep.folder import SweepFolder, put_in_place

CHUNK_ROWS = 5_000  # rows as Python values at a time; also a row group of the Parquet file
ARROW = {
    str: DataType.string(),
    int: DataType.int64(),
    float: DataType.float64(),
    bool: DataType.bool(),
}


def write_results(folder: SweepFolder, sweep: Sweep, manifest: Mapping[str, str]) -> list[Path]:
    """Write results.parquet and results.csv of a sweep whose cells are all finished."""
    schema, chunks = schema_of(sweep).with_metadata(dict(manifest)), []
    parquet, table = folder.path / "results.parquet", folder.path / "results.csv"
    new_parquet, new_table = (p.with_name(p.name + ".new") for p in (parquet, table))
    with new_table.open("w", encoding="utf-8", newline="") as text:
        lines = csv.DictWriter(text, schema.names, lineterminator="\n")
        lines.writeheader()
        rows = _rows(folder, sweep)
        while chunk := list(islice(rows, CHUNK_ROWS)):
            columns = [
                Array([row[name] for row in chunk], type=kind)
                for name, kind in zip(schema.names, schema.types, strict=True)
            ]
            chunks.append(RecordBatch.from_arrays(columns, schema=schema))
            lines.writerows({n: _csv(v) for n, v in row.items()} for row in chunk)
    write_parquet(
        RecordBatchReader.from_batches(schema, chunks),
        new_parquet,
        compression="snappy",
        max_row_group_size=CHUNK_ROWS,
    )
    put_in_place(new_parquet, parquet)
    put_in_place(new_table, table)
    return [parquet, table]


def schema_of(sweep: Sweep) -> Schema:
    """The columns: number of the cell, fields that vary, then the results."""
    varying = {name: ARROW[_kind(values)] for name, values in sweep.varying.items()}
    found = {name: ARROW[kind] for name, kind in COLUMNS.items()}
    kinds = {"cell": DataType.int64(), **varying, **found}
    return Schema([Field(name, kind) for name, kind in kinds.items()])


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
