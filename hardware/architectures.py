"""Load what the parts of one architecture share: hardware/architectures.csv."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from core.errors import FactError, shown
from core.machine.accelerator import Architecture
from hardware.tables import check_source, rows

ARCHITECTURES_CSV = Path(__file__).with_name("architectures.csv")
SCALE_UP_FABRICS = ("nvlink", "xgmi", "ici")  # of fabrics.csv
_FLAGS = {"0": 0.0, "1": 1.0, "2": 2.0}
_COLUMNS = (
    "architecture", "generation", "scale_up_fabric", "newer_than_flash2", "fast_exponentials",
    "source", "source_date", "note",
)  # fmt: skip


def load_architectures(path: Path = ARCHITECTURES_CSV) -> dict[str, Architecture]:
    """Read the table; a blank or unknown cell is an error, not a default."""
    found: dict[str, Architecture] = {}
    for where, row in rows(path, _COLUMNS):
        name = row["architecture"]
        check_source(where, name, row)
        if not name or name in found or not row["generation"]:
            raise FactError(f"{where}: {shown(name)} is blank, there twice or of no generation")
        if row["scale_up_fabric"] not in SCALE_UP_FABRICS:
            raise FactError(
                f"{where}: scale_up_fabric {shown(row['scale_up_fabric'])} of {name} is not one of "
                f"{', '.join(SCALE_UP_FABRICS)}"
            )
        numbers = {}
        for column in ("newer_than_flash2", "fast_exponentials"):
            if row[column] not in _FLAGS:
                raise FactError(f"{where}: {column} {shown(row[column])} is not 0, 1 or 2")
            numbers[column] = _FLAGS[row[column]]
        found[name] = Architecture(
            name=name,
            generation=row["generation"],
            scale_up_fabric=row["scale_up_fabric"],
            **numbers,
        )
    return found


@cache
def architectures() -> dict[str, Architecture]:
    """The shipped table, read once."""
    return load_architectures()
