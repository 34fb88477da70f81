"""Published programmes: published.csv, one row a stage, and one without a stage for the whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from urllib.parse import parse_qsl

from core.errors import ScenarioError, unknown_sentence
from hardware.tables import check_source, rows

PUBLISHED_CSV = Path(__file__).with_name("published.csv")
_COLUMNS = ("programme", "stage", "text", "gpu_hours", "source", "source_date", "note")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedStage:
    """One stage as its report describes it."""

    part: str  # stages whose GPU-hours are printed together share it
    text: str  # of a scenario's `stages`
    gpu_hours: float | None
    source: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedProgramme:
    """A model's stages, and the scenario that they take the rest from."""

    name: str
    fields: Mapping[str, str]
    stages: tuple[PublishedStage, ...]
    gpu_hours: float | None
    source: str
    note: str

    @property
    def values(self) -> dict[str, str]:
        """Fields of a scenario, its stages among them."""
        return {**self.fields, "stages": ";".join(s.text for s in self.stages)}

    @property
    def gpu_hours_of(self) -> dict[str, float]:
        """Printed GPU-hours by part."""
        return {s.part: s.gpu_hours for s in self.stages if s.gpu_hours is not None}


@cache
def published_programmes() -> Mapping[str, PublishedProgramme]:
    """Every published programme by its name, in the order of the table."""
    whole: dict[str, dict[str, str]] = {}
    stages: dict[str, list[PublishedStage]] = {}
    for where, row in rows(PUBLISHED_CSV, _COLUMNS):
        check_source(where, row["programme"], row)
        if not row["stage"]:
            whole[row["programme"]] = row
            continue
        stages.setdefault(row["programme"], []).append(
            PublishedStage(
                part=row["stage"],
                text=row["text"],
                gpu_hours=_hours(row),
                source=row["source"],
                note=row["note"],
            )
        )
    return MappingProxyType(
        {
            name: PublishedProgramme(
                name=name,
                fields=MappingProxyType(dict(parse_qsl(row["text"]))),
                stages=tuple(stages[name]),
                gpu_hours=_hours(row),
                source=row["source"],
                note=row["note"],
            )
            for name, row in whole.items()
        }
    )


def published_programme(name: str) -> PublishedProgramme:
    """A published programme; ScenarioError for an unknown name."""
    known = published_programmes()
    if name not in known:
        raise ScenarioError(unknown_sentence("published programme", name, known))
    return known[name]


def _hours(row: Mapping[str, str]) -> float | None:
    return float(row["gpu_hours"]) if row["gpu_hours"] else None
