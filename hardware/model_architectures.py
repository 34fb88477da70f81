"""Load what published architectures of models add to their dimensions: biases, norms, positions.

`hardware/model_architectures.csv` has one architecture a row; a table of measured models names one
of them for each model. Blank cells of a row: it has no windows, or is no hybrid.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from core.errors import FactError, shown
from hardware.tables import check_source, rows

MODEL_ARCHITECTURES_CSV = Path(__file__).with_name("model_architectures.csv")
_FLAGS = ("linear_bias", "qkv_bias", "norm_bias", "qk_norm", "alibi")
_NUMBERS = ("norms_per_layer", "num_positions")
_PATTERN = ("window_layers", "full_layers")
_HYBRID = ("ssm_layers", "mlp_layers", "all_layers", "ssm_inner_size")
_COLUMNS = (
    "architecture", *_FLAGS, *_NUMBERS, *_PATTERN, *_HYBRID, "source", "source_date", "note",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelArchitecture:
    """One published architecture. None: it has no windows, or is no hybrid."""

    linear_bias: bool
    qkv_bias: bool
    norm_bias: bool
    qk_norm: bool
    alibi: bool  # a bias on the scores instead of rotary positions
    norms_per_layer: float
    num_positions: float  # rows of the table of positions
    pattern: tuple[int, int] | None  # windowed and full layers in a row
    hybrid: tuple[int, int, int, int] | None  # state-space, MLP and all layers; inner size


def load_model_architectures(path: Path = MODEL_ARCHITECTURES_CSV) -> dict[str, ModelArchitecture]:
    """Read the table; a cell that is no number is an error, not a default."""
    found: dict[str, ModelArchitecture] = {}
    for where, row in rows(path, _COLUMNS):
        name = row["architecture"]
        check_source(where, name, row)
        if not name or name in found:
            raise FactError(f"{where}: {shown(name)} is blank or there twice")
        if wrong := [c for c in _FLAGS if row[c] not in ("0", "1")]:
            raise FactError(f"{where}: {wrong[0]} of {name} is not 0 or 1")
        if wrong := [c for c in _NUMBERS if not _is_whole(row[c])]:
            raise FactError(f"{where}: {wrong[0]} of {name} is not a whole number")
        pattern, hybrid = _all_or_none(where, row, _PATTERN), _all_or_none(where, row, _HYBRID)
        found[name] = ModelArchitecture(
            linear_bias=row["linear_bias"] == "1",
            qkv_bias=row["qkv_bias"] == "1",
            norm_bias=row["norm_bias"] == "1",
            qk_norm=row["qk_norm"] == "1",
            alibi=row["alibi"] == "1",
            norms_per_layer=float(row["norms_per_layer"]),
            num_positions=float(row["num_positions"]),
            pattern=(pattern[0], pattern[1]) if pattern else None,
            hybrid=(hybrid[0], hybrid[1], hybrid[2], hybrid[3]) if hybrid else None,
        )
    return found


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _all_or_none(where: str, row: dict[str, str], columns: tuple[str, ...]) -> list[int]:
    cells = [row[c] for c in columns]
    if not any(cells):
        return []
    if not all(map(_is_whole, cells)):
        raise FactError(f"{where}: {', '.join(columns)} are whole numbers, or all blank")
    return [int(c) for c in cells]


@cache
def model_architectures() -> dict[str, ModelArchitecture]:
    """The shipped table, read once."""
    return load_model_architectures()
