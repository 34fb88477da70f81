"""`runcast sweep`: read the file, compute the cells that are not finished, write the results."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from app.document.progress import Console, cells_bar, error_console
from app.forecast import price_book
from app.scenario.version import made_with
from app.sweep.cell import cell
from app.sweep.cells import MAX_CELLS, Sweep, read_sweep_file, sweep_of
from app.sweep.folder import SCHEMA, SweepFolder, opened
from app.sweep.results import write_results
from core.errors import ScenarioError, shown
from core.units import whole_number
from pricing.book.files import load_book
from pricing.offers import installed_id, snapshot_ids
from runners.sweeps import WorkerError, on_processes, on_ray

MAX_WORKERS = 4_096
SAY_EVERY_S = 30.0  # progress lines, without a terminal for a bar


def run_sweep(
    file: Path,
    *,
    out: str | None = None,
    workers: str | None = None,
    ray: str | None = None,
    max_cells: str | None = None,
) -> list[str]:
    """Run or resume the sweep of a file; return the lines to print at its end."""
    asked = None if workers is None else whole_number(workers, "--workers", MAX_WORKERS)
    limit = MAX_CELLS if max_cells is None else whole_number(max_cells, "--max-cells", 10**9)
    sweep = sweep_of(read_sweep_file(file), max_cells=limit)
    console = error_console()
    books = _books(sweep)
    manifest = {
        "schema": SCHEMA,
        "sweep": sweep.content_id(),
        **made_with(),
        "prices": installed_id(),
        "price_books": books,
        "num_cells": len(sweep),
        "fields": sweep.written(),
    }
    with opened(file.with_suffix(".sweep") if out is None else Path(out), manifest) as folder:
        before = len(folder.finished)
        begun = f"; {before:,} are finished" if before else ""
        if folder.num_torn:  # at most one per kill, unless the disk lost more
            begun += f"; {folder.num_torn:,} line(s) cut short: computed again"
        console.print(sweep.shape() + begun, soft_wrap=True)
        if before < len(sweep):
            _compute(sweep, folder, console, books, workers=asked, ray=ray)
        kept = {f"runcast_{n}": str(manifest[n]) for n in ("schema", "sweep", "tables", "code")}
        kept["runcast_prices"] = folder.prices
        written = write_results(folder, sweep, kept)
        without = sum(row["no_plan"] is not None for row in folder.rows(range(len(sweep))))
    return [
        f"{sweep.count()}, {before:,} finished before, {without:,} without a plan (column no_plan "
        "says why).",
        *map(str, written),
    ]


def _books(sweep: Sweep) -> dict[str, str]:
    """The content of every price book of the sweep, by name; a missing one is an error."""
    names = [str(n) for n in sweep.fields.get("price_book", ()) if n]
    for name in names:
        load_book(name)
    return {name: price_book.content_id(name) for name in names}


def _compute(
    sweep: Sweep,
    folder: SweepFolder,
    console: Console,
    books: Mapping[str, str],
    *,
    workers: int | None,
    ray: str | None,
) -> None:
    """Compute the unfinished cells; each result is on disk before waiting for the next."""
    if folder.prices not in snapshot_ids():
        raise ScenarioError(
            f"The sweep in {shown(str(folder.path))} was begun with price snapshot "
            f"{shown(folder.prices)}, which is not here any more: give another --out."
        )
    unfinished = [n for n in range(len(sweep)) if n not in folder.finished]
    tasks = ((n, {"prices": folder.prices, **sweep.scenario(n).to_query()}) for n in unfinished)
    if ray is None:
        cores = len(os.sched_getaffinity(0))
        results = on_processes(cell, tasks, workers=min(workers or cores, len(unfinished)))
    else:
        results = on_ray(cell, tasks, address=ray, workers=workers)
    try:
        with closing(results) as batches, cells_bar(console) as bar:
            shown_bar = bar.add_task(
                "cells", total=len(sweep), completed=len(folder.finished), rate=""
            )
            begun = last_line = time.monotonic()
            first = len(folder.finished)
            for batch in batches:
                folder.append(_checked(batch, sweep, books))
                now, done = time.monotonic(), len(folder.finished)
                bar.update(
                    shown_bar, completed=done, rate=f"{(done - first) / (now - begun):.1f} cells/s"
                )
                if not console.is_terminal and now - last_line > SAY_EVERY_S:
                    last_line = now
                    console.print(f"{done:,} of {len(sweep):,} cells are finished")
    except WorkerError as e:
        where = "" if e.number is None else f" at {sweep.described(e.number)}"
        raise ScenarioError(f"The sweep stopped{where}: {e}. {_kept(sweep, folder)}") from None
    except KeyboardInterrupt:
        console.print(f"Interrupted. {_kept(sweep, folder)}", soft_wrap=True)
        raise


def _kept(sweep: Sweep, folder: SweepFolder) -> str:
    return (
        f"{len(folder.finished):,} of {len(sweep):,} cells are finished in "
        f"{shown(str(folder.path))}: the same command goes on from there."
    )


def _checked(
    batch: list[tuple[int, dict[str, Any]]], sweep: Sweep, books: Mapping[str, str]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The workers' rows, after a check that they used this process's inputs."""
    for number, result in batch:
        for key, ours in made_with().items():
            if result["made_with"][key] != ours:
                what = "other tables" if key == "tables" else "another version of Runcast or numpy"
                raise WorkerError(f"its worker has {what} than this machine", number)
        if result["row"] is None:
            raise WorkerError("its worker does not have the price snapshot of this machine", number)
        name = str(sweep.values(number).get("price_book") or "")
        if result["price_book"] != books.get(name, ""):
            raise WorkerError(
                f"its worker's price book {name!r} is not what it was when the sweep began", number
            )
        yield number, result["row"]
