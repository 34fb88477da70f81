"""A bill as tables: what the page shows and draws, and what is downloaded."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from app.bill.bill import Bill
from app.bill.energy import energy_text, tonnes
from app.bill.line import Line
from app.document import format as fmt
from app.forecast.failure_job import as_float

NO_FIGURE = {
    "in_price": "in the price",
    "not_priced": "not priced",
    "not_known": "not known",
}
TOTAL = "Total"
LEAST = 1e-9  # of a bar's length


def _usd(x: float) -> str:
    return fmt.usd(x, digits=3)


def texts(line: Line, write: Callable[[float], str] = _usd) -> tuple[str, str, str]:
    """Lower, expected and upper as text; where there is no figure, why."""
    f = line.figure
    if f is None:
        return ("", NO_FIGURE[line.status], "")
    return write(as_float(f.lower)), write(as_float(f.expected)), write(as_float(f.upper))


Row = tuple[str, str, str, str, str]
COLUMNS = ["Line", "Lower", "Expected", "Upper"]


def rows(found: Bill) -> list[Row]:
    """The bill to be read: dollars, then energy and carbon; a line each."""
    out: list[Row] = [(line.label, *texts(line), line.how) for line in found.lines]
    if found.total is not None:
        out.append((TOTAL, *texts(_total(found)), "the sum of the lines that have a price"))
    out += [
        (f"Energy: {line.label.lower()}", *texts(line, energy_text), line.how)
        for line in found.energy.lines
    ]
    emitted = (found.energy.carbon, found.energy.marginal)
    return out + [(line.label, *texts(line, tonnes), line.how) for line in emitted]


def shown(found: Bill) -> pd.DataFrame:
    """The same as a table of the page, as text."""
    return pd.DataFrame([cells[:-1] for cells in rows(found)], columns=COLUMNS)


def how(found: Bill) -> list[tuple[str, str]]:
    """Each line and how it is worked out."""
    return [(label, said) for label, _, _, _, said in rows(found)]


def _total(found: Bill) -> Line:
    return Line(name="total", label=TOTAL, figure=found.total, status="priced", how="")


def bars(found: Bill) -> pd.DataFrame:
    """Every line with dollars, the largest first: what the chart draws."""
    priced = [line for line in found.lines if line.figure is not None]
    priced = [x for x in priced if x.figure is not None and abs(as_float(x.figure.upper)) > LEAST]
    rows = [
        {
            "line": line.label,
            "lower": as_float(line.figure.lower),
            "expected": as_float(line.figure.expected),
            "upper": as_float(line.figure.upper),
            "text": " to ".join(dict.fromkeys((texts(line)[0], texts(line)[2]))),
            "mean_text": texts(line)[1],
            "label": f"{line.label}: {texts(line)[1]}",
        }
        for line in priced
        if line.figure is not None
    ]
    columns = ["line", "lower", "expected", "upper", "text", "mean_text", "label"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.sort_values("expected", ascending=False, ignore_index=True)


def download(found: Bill) -> pd.DataFrame:
    """Every line with its unit, for a spreadsheet; an empty cell has no figure."""
    of_unit = [
        *((line, "USD") for line in found.lines),
        *([(_total(found), "USD")] if found.total is not None else []),
        *((line, "kWh") for line in found.energy.lines),
        (found.energy.carbon, "kg CO2e"),
        (found.energy.marginal, "kg CO2e"),
    ]
    return pd.DataFrame(
        [
            {
                "line": line.name,
                "unit": unit,
                "lower": None if line.figure is None else as_float(line.figure.lower),
                "expected": None if line.figure is None else as_float(line.figure.expected),
                "upper": None if line.figure is None else as_float(line.figure.upper),
                "status": line.status,
                "how": line.how,
            }
            for line, unit in of_unit
        ]
    )


def alt(found: Bill) -> str:
    """What the chart shows, for who does not see it."""
    rows = bars(found)
    said = "; ".join(f"{r['label']}, {r['text']}" for _, r in rows.iterrows())
    return f"Expected dollars by line of the bill, each with its lower and upper figure: {said}."
