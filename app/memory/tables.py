"""What GPUs hold as rows and columns: what the charts draw, the tables list and the CSV holds."""

from __future__ import annotations

import pandas as pd

from app.document import format as fmt
from app.memory import words
from app.memory.layouts import Bar, Held
from app.scenario.layout import layout_text
from core.memory.memory import PARTS
from core.memory.memory_phases import PARTS as PHASE_PARTS
from core.memory.memory_phases import PHASES
from core.units import GIB

DIGITS = 4  # decimals of GiB in charts


def bars(held: Held) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Every part of every layout, in stacking order; the name and note of every bar."""
    heads = [(words.name(b), words.note(b)) for b in held.bars]
    return _stacked([b.memory_bytes for b in held.bars], PARTS), _heads(heads)


def phases(held: Held) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Every part of every phase, in stacking order; the name and note of every phase."""
    heads = [(words.PHASE_NAMES[p], words.phase_note(held, p)) for p in PHASES]
    return _stacked([held.phases[p] for p in PHASES], PHASE_PARTS), _heads(heads)


def lines(bar: Bar) -> pd.DataFrame:
    """The capacity of the device, and the safe limit for a plan."""
    sizes = (bar.capacity_bytes, bar.usable_bytes)
    texts = (f"Capacity {fmt.gib(sizes[0])}", f"Safe up to {fmt.gib(sizes[1])}")
    return pd.DataFrame({"gib": [round(s / GIB, DIGITS) for s in sizes], "text": texts})


def _stacked(rows: list[dict[str, float]], parts: tuple[str, ...]) -> pd.DataFrame:
    found = [
        (row, words.part(part), round(sizes[part] / GIB, DIGITS), order)
        for row, sizes in enumerate(rows)
        for order, part in enumerate(parts)
        if sizes[part] > 0
    ]
    return pd.DataFrame(found, columns=["row", "part", "gib", "order"])


def _heads(rows: list[tuple[str, str]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["name", "note"]).rename_axis("row").reset_index()


# --- tables on the page --------------------------------------------------------------------------


def layouts_shown(held: Held) -> pd.DataFrame:
    """The bars as text."""
    rows = [
        (
            words.name(b),
            fmt.gib(b.need_bytes),
            words.room(b),
            _largest(b),
            fmt.seconds(b.step_s),
            fmt.usd_short(b.usd),
        )
        for b in held.bars
    ]
    columns = ["Layout", "Peak", "Against the capacity", "Largest part", "Step", "Run"]
    return pd.DataFrame(rows, columns=columns)


def _largest(bar: Bar) -> str:
    part = max(bar.memory_bytes, key=lambda p: bar.memory_bytes[p])
    return f"{words.part(part)}, {fmt.gib(bar.memory_bytes[part])}"


def phases_shown(held: Held) -> pd.DataFrame:
    """The phases as text: a row per part, a column per phase."""
    names = [words.PHASE_NAMES[p].partition(":")[0].partition(",")[0] for p in PHASES]
    kept = [n for n in PHASE_PARTS if any(held.phases[p][n] > 0 for p in PHASES)]
    rows = [(words.part(n), *(fmt.gib(held.phases[p][n]) for p in PHASES)) for n in kept]
    rows.append(("All", *(fmt.gib(sum(held.phases[p].values())) for p in PHASES)))
    return pd.DataFrame(rows, columns=["Part", *names])


# --- tables to download --------------------------------------------------------------------------


def layouts_data(held: Held) -> pd.DataFrame:
    """The bars as numbers, one row per layout."""
    rows = [
        {
            "kind": b.kind,
            "layout": layout_text(b.layout),
            "step_s": b.step_s,
            "run_usd": b.usd,
            **{f"{p}_gib": b.memory_bytes[p] / GIB for p in PARTS},
            "need_gib": b.need_bytes / GIB,
            "usable_gib": b.usable_bytes / GIB,
            "capacity_gib": b.capacity_bytes / GIB,
            "probability_oom": b.probability_oom,
        }
        for b in held.bars
    ]
    return pd.DataFrame(rows)


def phases_data(held: Held) -> pd.DataFrame:
    """The phases as numbers, one row per phase."""
    rows = [
        {
            "phase": phase,
            **{f"{p}_gib": held.phases[phase][p] / GIB for p in PHASE_PARTS},
            "total_gib": sum(held.phases[phase].values()) / GIB,
            "capacity_gib": held.bars[0].capacity_bytes / GIB,
        }
        for phase in PHASES
    ]
    return pd.DataFrame(rows)
