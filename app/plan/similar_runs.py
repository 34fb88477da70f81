"""The published runs whose residuals moved a plan's forecast, as a table with their weights."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from app.document import format as fmt
from app.document.table import Column, Table, column, text_column
from core.search.plan import Plan
from hardware.measured import RUNS_CSV, Runs, read_runs

RUNS_SHOWN = 8
_REPOSITORY = re.compile(r"([\w-]+/[\w.-]*\w)(?:@([0-9a-f]{7,40}))?(?=[ ,]|$)", re.ASCII)
_ARXIV = re.compile(r"arXiv[: ](\d{4}\.\d{4,5})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarRun:
    """One published run with its weight in a plan's forecast. Tokens/s are per GPU."""

    run_id: str
    model: str
    num_gpus: int
    accelerator: str  # as published
    details: str  # stack, task, precision, date
    weight: float
    distance: float
    measured: float
    forecast: float  # of the model alone, which knows no measurement
    source: str

    @property
    def ratio(self) -> float:
        """Measured over forecast: above 1 the run was faster than the model says."""
        return self.measured / self.forecast


@cache
def _published() -> tuple[Runs, dict[str, int]]:
    """The measured runs, and the row of each."""
    runs = read_runs(RUNS_CSV)
    return runs, {name: row for row, name in enumerate(runs.inputs.run_id.tolist())}


def similar_runs(plan: Plan) -> tuple[SimilarRun, ...]:
    """The published runs that moved the forecast of a plan, the largest weight first."""
    if plan.nearby is None or not plan.nearby.runs:
        return ()
    published, row_of = _published()
    inputs, measured = published.inputs, published.measured.tokens_per_s_per_gpu
    rows = []
    for run in plan.nearby.runs:
        row = row_of[run.run_id]
        words = (inputs.framework, inputs.task, inputs.precision, inputs.source_date)
        rows.append(
            SimilarRun(
                run_id=run.run_id,
                model=str(inputs.model_key[row]),
                num_gpus=int(inputs.num_gpus[row]),
                accelerator=str(inputs.accelerator[row]),
                details=", ".join(str(word[row]) for word in words if word[row]),
                weight=run.weight,
                distance=run.distance,
                measured=float(measured[row]),
                forecast=float(measured[row]) * math.exp(-run.log_ratio),
                source=str(inputs.source[row]),
            )
        )
    return tuple(rows)


def address(source: str) -> str:
    """The web address of a publication; '' where its text names none.

    >>> address("NVIDIA-NeMo/Megatron-Bridge@067f987d docs/performance-summary.md")
    'https://github.com/NVIDIA-NeMo/Megatron-Bridge/tree/067f987d'
    >>> address("LongLoRA (arXiv 2309.12307) Table 12")
    'https://arxiv.org/abs/2309.12307'
    """
    if repository := _REPOSITORY.match(source):
        name, commit = repository.groups()
        return f"https://github.com/{name}" + (f"/tree/{commit}" if commit else "")
    paper = _ARXIV.search(source)
    return f"https://arxiv.org/abs/{paper[1]}" if paper else ""


def table(runs: Sequence[SimilarRun]) -> Table[SimilarRun]:
    """The runs of the largest weights, one per row."""
    return Table(
        caption="Published runs that moved this forecast",
        columns=COLUMNS,
        rows=tuple(runs[:RUNS_SHOWN]),
    )


def sentence(plan: Plan, runs: Sequence[SimilarRun]) -> str:
    """How far the runs moved the forecast, and how their weights do it."""
    moved = "" if plan.nearby is None else plan.nearby.sentence
    if not runs:
        return moved or "No published run moved this forecast."
    others = len(runs) - RUNS_SHOWN
    more = f" {others} more runs have smaller weights." if others > 0 else ""
    return (
        f"{moved} The correction is the sum of weight times ln(measured / forecast) over these "
        f"runs.{more}"
    ).strip()


COLUMNS: tuple[Column[SimilarRun], ...] = (
    text_column(
        "Published run",
        lambda run: f"{run.model} on {fmt.count(run.num_gpus)} x {run.accelerator}",
        width=4,
    ),
    text_column("What it is", lambda run: run.details, width=4),
    column("Weight", lambda run: run.weight, write=lambda weight: f"{weight:.2f}", width=1),
    column("Distance", lambda run: run.distance, write=lambda apart: f"{apart:.1f}", width=1),
    column("Measured (tokens/s per GPU)", lambda run: run.measured, write=fmt.count, width=2),
    column("Measured / forecast", lambda run: run.ratio, write=lambda x: f"{x:.2f}", width=2),
    text_column(
        "Source",
        lambda run: address(run.source),
        cell=lambda run: run.source,
        is_address=True,
        width=5,
    ),
)
