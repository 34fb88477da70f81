"""Stages as rows of a table that a person edits, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.programme.stage import SEPARATOR, cells_of, stage_from, stage_of, text_of

# Column of the table -> part of a stage; what has no column stands in the last one.
COLUMNS = {
    "Stage": "name",
    "Tokens": "num_tokens",
    "Share of main": "share",
    "Sequence": "seq_len",
    "Batch or ramp": "global_batch_size",
    "Runs": "count",
    "Scale": "scale",
    "Idle hours before": "gap_hours",
}
MORE = "More"
HELP = {
    "Stage": "Its name, up to 40 characters",
    "Tokens": "15T, 800B; empty: those of the form",
    "Share of main": "5%: instead of tokens, of the largest stage",
    "Sequence": "128k; empty: that of the form",
    "Batch or ramp": "2048, or 0:512/252M:1024: from which token on, how many sequences",
    "Runs": "Repeats, one after the other",
    "Scale": "Parameters of its model over those of the form's: 0.125",
    "Idle hours before": "The machines wait, paid",
    MORE: "Other parts: cp=16, tp=8, precision=fp8, task=sft, of=main",
}


def rows_of(stages: Sequence[str]) -> list[dict[str, str]]:
    """One row a stage, every cell as text."""
    found = []
    for text in stages:
        cells = cells_of(stage_of(text))
        if "share" in cells:
            cells["share"] = f"{100 * float(cells['share']):.12g}%"
        row = {head: cells.pop(part, "") for head, part in COLUMNS.items()}
        found.append({**row, MORE: ",".join(f"{n}={v}" for n, v in cells.items())})
    return found


def stages_of(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The stages in edited rows; blank ones are left out. Raises ValueError for a cell that cannot
    be read.

    >>> stages_of([{"Stage": "long", "Sequence": "128k", "More": "cp=16"}])
    ('name=long,seq_len=128k,cp=16',)
    """
    found = []
    for row in rows:
        cells = {
            part: str(row[head]).strip()
            for head, part in COLUMNS.items()
            if row.get(head) is not None and str(row[head]).strip() not in ("", "nan")
        }
        more = str(row.get(MORE) or "").strip()
        if SEPARATOR in more:
            raise ValueError(f"{MORE}: parts are separated by commas, not by {SEPARATOR}")
        if more and more != "nan":
            further = stage_of(f"name=x,{more}" if not more.startswith("name=") else more)
            cells |= {n: v for n, v in cells_of(further).items() if n != "name"}
        if cells:
            found.append(text_of(stage_from(cells)))
    return tuple(found)


def starting_rows(tokens: str, seq_len: int) -> list[dict[str, str]]:
    """What a programme of three stages may look like: the run of the form, a longer context, and a
    short stage at the end."""
    first = f"main,tokens={tokens}"
    longer = f"long context,share=5%,seq_len={4 * seq_len}"
    return rows_of([first, longer, "annealing,share=2%"])
