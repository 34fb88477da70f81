"""A bill as blocks: its lines as a table, and the rows of its chart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.bill.bill import ADD_UP, Bill, bill_sentences
from app.bill.energy import energy_text, tonnes
from app.bill.line import Line
from app.document import format as fmt
from app.document.blocks import Block, Bullets, Paragraph
from app.document.on_use import pd
from app.document.table import Column, Table
from core.cost.uncertain import Uncertain
from core.numeric import as_float
from core.scenario import Scenario


def _usd(x: float) -> str:
    return fmt.usd(x, digits=3)


WRITE = {"USD": _usd, "kWh": energy_text, "kg CO2e": tonnes}
NO_FIGURE = {"in_price": "in the price", "not_priced": "not priced", "not_known": "not known"}
LEAST = 1e-9  # dollars up to which a line has no bar
READ = ("label", "lower", "expected", "upper")  # columns shown to a reader
CAPTION = f"Everything on the bill. {ADD_UP} A line without a figure is not in the total."


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line with its unit."""

    line: Line
    label: str
    unit: str


def _figure(name: str, head: str, of: Callable[[Uncertain], object]) -> Column[Row]:
    """P10, mean or P90 as text; a missing mean gives the reason."""

    def value(r: Row) -> float | None:
        return None if r.line.figure is None else as_float(of(r.line.figure))

    def cell(r: Row) -> str:
        figure = value(r)
        if figure is not None:
            return WRITE[r.unit](figure)
        return NO_FIGURE[r.line.status] if name == "expected" else ""

    return Column(name=name, head=head, value=value, cell=cell)


COLUMNS: tuple[Column[Row], ...] = (
    Column(name="line", head="Name", value=lambda r: r.line.name, is_text=True),
    Column(name="label", head="Line", value=lambda r: r.label, is_text=True, short=" "),
    Column(name="unit", head="Unit", value=lambda r: r.unit, is_text=True),
    _figure("lower", "P10", lambda f: f.p10),
    _figure("expected", "Mean", lambda f: f.mean),
    _figure("upper", "P90", lambda f: f.p90),
    Column(name="status", head="Status", value=lambda r: r.line.status, is_text=True),
    Column(name="how", head="How", value=lambda r: r.line.how, is_text=True),
)


def lines(bill: Bill) -> Table[Row]:
    """Rows in dollars with their total, then energy, then carbon."""
    rows = [Row(line=x, label=x.label, unit="USD") for x in bill.lines]
    if bill.total is not None:
        total = Line(name="total", figure=bill.total, status="priced", how=ADD_UP)
        rows.append(Row(line=total, label=total.label, unit="USD"))
    energy = bill.energy
    rows += [Row(line=x, label=f"Energy: {x.label.lower()}", unit="kWh") for x in energy.lines]
    rows += [Row(line=x, label=x.label, unit="kg CO2e") for x in (energy.carbon, energy.marginal)]
    return Table(caption=CAPTION, columns=COLUMNS, rows=tuple(rows))


def how(bill: Bill) -> Bullets:
    """How each line is computed."""
    rows = lines(bill).rows
    return Bullets(tuple(f"{r.label}: {r.line.how}" for r in rows if r.line.how), "Worked out")


def blocks(scenario: Scenario, bill: Bill) -> tuple[Block, ...]:
    """The answer, every line with its mean, P10 and P90, and how it is computed."""
    sentences = map(Paragraph, bill_sentences(scenario, bill))
    return (*sentences, lines(bill).only(*READ), how(bill))


def bars(bill: Bill) -> pd.DataFrame:
    """Rows of the chart: every line with an amount in dollars, the largest first."""
    rows = []
    for line in bill.lines:
        if line.figure is None or abs(as_float(line.figure.p90)) <= LEAST:
            continue
        lower, mean, upper = map(as_float, (line.figure.p10, line.figure.mean, line.figure.p90))
        rows.append(
            {
                "line": line.label,
                "lower": lower,
                "expected": mean,
                "upper": upper,
                "text": " to ".join(dict.fromkeys((_usd(lower), _usd(upper)))),
                "mean_text": _usd(mean),
                "label": f"{line.label}: {_usd(mean)}",
            }
        )
    columns = ["line", "lower", "expected", "upper", "text", "mean_text", "label"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.sort_values("expected", ascending=False, ignore_index=True)


def download(bill: Bill) -> pd.DataFrame:
    """Every line with its unit, for a spreadsheet; an empty cell means no figure."""
    return lines(bill).without("label").frame()


def alt(bill: Bill) -> str:
    """Alternative text of the chart."""
    each = "; ".join(f"{r['label']}, {r['text']}" for _, r in bars(bill).iterrows())
    return f"Mean dollars by line of the bill, each with its P10 and P90: {each}."
