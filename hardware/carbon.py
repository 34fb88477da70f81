"""Carbon of a cloud region's grid and the PUE of its buildings: hardware/carbon.csv.

Several sources may print one region: the newest year counts, and each figure keeps its own source.
A region is matched by the seller's own name. A region that is not in the table is not known, and no
neighbouring region takes its place.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from core.errors import FactError
from hardware.tables import check_source, rows

CARBON_CSV = Path(__file__).with_name("carbon.csv")
COLUMNS = (
    "provider", "region", "location", "year", "grid_g_co2e_per_kwh", "marginal_g_co2e_per_kwh",
    "carbon_free_fraction", "pue", "source", "source_date", "note",
)  # fmt: skip
# Figures of a row, each with its lowest and highest possible value.
FIGURES = {
    "grid_g_co2e_per_kwh": (0.0, 2000.0),
    "marginal_g_co2e_per_kwh": (0.0, 2000.0),
    "carbon_free_fraction": (0.0, 1.0),
    "pue": (1.0, 3.0),
}
FLEET = "*"  # the mean of all of a seller's regions


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionFigure:
    """One figure of a region, with its source."""

    value: float
    source: str
    year: str  # year of the figure; empty: the source does not print it
    fleet: bool = False  # the mean of all of the seller's regions
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Figures of one region. None: no source prints it."""

    provider: str
    region: str
    location: str
    grid_g_co2e_per_kwh: RegionFigure | None = None  # mean of the year, by location
    marginal_g_co2e_per_kwh: RegionFigure | None = None  # of one more kWh
    carbon_free_fraction: RegionFigure | None = None  # by the hour, including what the seller buys
    pue: RegionFigure | None = None


def load_carbon(path: Path = CARBON_CSV) -> dict[tuple[str, str], Region]:
    """Regions by seller and name; a row without a figure or a source is an error, and so is a
    figure out of its bounds."""
    found: dict[tuple[str, str], dict[str, RegionFigure]] = defaultdict(dict)
    locations: dict[tuple[str, str], str] = {}
    seen: set[tuple[str, str, str]] = set()
    for where, row in rows(path, COLUMNS):
        place = (row["provider"], row["region"])
        check_source(where, " ".join(place), row)
        if not all(place) or (*place, row["source"]) in seen:
            raise FactError(f"{where}: a seller and a region, once for each source")
        seen.add((*place, row["source"]))
        figures = {
            name: RegionFigure(
                value=_number(where, name, row[name]),
                source=row["source"],
                year=row["year"],
                fleet=row["region"] == FLEET,
                note=row["note"],
            )
            for name in FIGURES
            if row[name]
        }
        if not figures:
            raise FactError(f"{where}: {' '.join(place)} has no figure")
        locations[place] = locations.get(place) or row["location"]
        for name, figure in figures.items():
            before = found[place].get(name)
            if before is None or figure.year > before.year:
                found[place][name] = figure
    return {
        place: Region(provider=place[0], region=place[1], location=locations[place], **figures)
        for place, figures in found.items()
    }


def _number(where: str, name: str, text: str) -> float:
    least, most = FIGURES[name]
    try:
        value = float(text)
    except ValueError as e:
        raise FactError(f"{where}: {e}") from None
    if not (math.isfinite(value) and least <= value <= most):
        raise FactError(f"{where}: {name} {text} is not between {least:g} and {most:g}")
    return value


@cache
def _regions() -> dict[tuple[str, str], Region]:
    return load_carbon()


def region_of(provider: str, region: str) -> Region | None:
    """Figures of a region of a seller; None where there are none."""
    return None if region == FLEET else _regions().get((provider, region))


def fleet_pue(provider: str) -> RegionFigure | None:
    """The mean PUE of all regions of a seller; None where no source prints it."""
    fleet = _regions().get((provider, FLEET))
    return None if fleet is None else fleet.pue
