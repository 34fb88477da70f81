"""One section of a validation: the rows that were scored, their metrics, families and classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.evidence.accuracy import Accuracy, PairAccuracy, scored, scored_by
from core.evidence.coverage import verdict

Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]
Texts = NDArray[np.str_]
Parts = dict[str, dict[str, Accuracy]]  # kind -> label -> metrics

BETWEEN = "\n"  # parts of a joined label; no cell holds a line break


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The values that a section was scored on, as columns aligned with the file."""

    predicted: Numbers
    measured: Numbers  # NaN where it is not scored
    refused: Flags
    family: Texts  # equal for rows of one source, model and accelerator
    configuration: Texts  # equal for rows that repeat one another
    low: Numbers | None = None  # P10
    high: Numbers | None = None  # P90

    def scored(self) -> Flags:
        """Which rows have both a forecast and a measurement."""
        return np.isfinite(self.predicted) & np.isfinite(self.measured) & ~self.refused

    def ratio(self) -> Numbers:
        """Measured over predicted: above 1 the run was faster, or larger, than forecast."""
        return self.measured / self.predicted

    def inside(self) -> Flags:
        """Which measurements lie within P10 to P90."""
        low = self.predicted if self.low is None else self.low
        high = self.predicted if self.high is None else self.high
        return (low <= self.measured) & (self.measured <= high)

    def columns(self, chosen: Flags | slice = slice(None)) -> dict[str, Any]:
        """The arguments of `core.evidence.accuracy.scored` for the chosen rows."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: c[chosen] for name, c in given.items() if c is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Metrics of all rows and of each part, and counts of the rows left out."""

    overall: Accuracy
    by: Parts
    left_out: Mapping[str, int]  # reason -> rows
    rows: Rows
    implausible: NDArray[np.object_]  # why the measurement is implausible; '' if it is not

    def of(self, chosen: Flags) -> Accuracy:
        """Metrics of the chosen rows."""
        return scored(**self.rows.columns(chosen))


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """One set of runs, what they have in common, and the errors of their forecasts."""

    accuracy: Accuracy
    by: str = ""  # the kind of class: accelerator, precision, ...
    label: str = ""
    baseline: Accuracy | None = None  # a constant MFU, on the same rows
    source: str = ""
    model: str = ""
    accelerator: str = ""
    verdict: str = ""  # on the interval, core/evidence/coverage.py


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSection:
    """Metrics of predicted effects, by knob and by the labels of run a."""

    overall: PairAccuracy
    memory: PairAccuracy
    by: dict[str, dict[str, PairAccuracy]]
    left_out: Mapping[str, int]


def section_of(
    labels: Mapping[str, Texts],
    rows: Rows,
    *,
    implausible: NDArray[np.object_],
    left_out: Mapping[str, Flags],
) -> Section:
    """Score some rows, overall and by every kind of label."""
    columns = rows.columns()
    return Section(
        overall=scored(**columns),
        by={name: scored_by(column, **columns) for name, column in labels.items()},
        left_out=counted(left_out),
        rows=rows,
        implausible=implausible,
    )


def counted(left_out: Mapping[str, Flags]) -> dict[str, int]:
    """The number of rows of each reason that has any."""
    return {reason: int(flags.sum()) for reason, flags in left_out.items() if flags.any()}


def families(section: Section) -> list[Errors]:
    """The errors on one publication's runs of one model on one accelerator, worst median first."""
    rows = section.rows
    found = scored_by(
        rows.family, predicted=rows.predicted, measured=rows.measured, refused=rows.refused
    )
    errors = [
        Errors(source=source, model=model, accelerator=chip, accuracy=accuracy)
        for label, accuracy in found.items()
        for source, model, chip in [label.split(BETWEEN)]
        if accuracy.n
    ]
    return sorted(errors, key=lambda f: -(f.accuracy.median_ape or 0.0))


def class_coverages(section: Section) -> list[Errors]:
    """Coverage of each class of each kind, largest class first."""
    found = [
        Errors(
            by=name,
            label=label,
            accuracy=a,
            verdict=verdict(n=a.n, coverage=a.coverage_80, high=a.coverage_high),
        )
        for name, parts in section.by.items()
        for label, a in parts.items()
        if a.coverage_80 is not None and a.coverage_high is not None
    ]
    return sorted(found, key=lambda c: -c.accuracy.n)


def joined(*columns: Texts) -> Texts:
    """One text per row, equal for rows that agree in all columns."""
    return np.array([BETWEEN.join(cells) for cells in zip(*columns, strict=True)], dtype=np.str_)
