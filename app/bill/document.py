"""A bill as blocks: its lines as a table, and the rows of its chart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

from app.bill.bill import Bill, bill_sentences
from app.bill.energy import energy_text, tonnes
from app.bill.line import Line
from app.document import format as fmt
from app.document.blocks import Block, Bullets, Paragraph
from app.document.on_use import pd
from app.document.table import Column, Table
from core.money.bill import Figure
from core.numeric import as_float
from core.scenario import Scenario


def _usd(x: float) -> str:
    return fmt.usd(x, digits=3)


WRITE = {"USD": _usd, "kWh": energy_text, "kg CO2e": tonnes}
NO_FIGURE = {"in_price": "in the price", "not_priced": "not priced", "not_known": "not known"}
LEAST = 1e-9  # dollars up to which a line has no bar
READ = ("label", "lower", "expected", "upper")  # columns shown to a reader
CAPTION = (
    "Everything on the bill. Lower and upper are what each line comes to if all goes well or badly "
    "at once; a line without a figure is not in the total."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line with its unit."""

    line: Line
    label: str
    unit: str


def _end(name: str, of: Callable[[Figure], object]) -> Column[Row]:
    """The lower, expected or upper figure as text; a missing expected figure gives the reason."""

    def value(r: Row) -> float | None:
        return None if r.line.figure is None else as_float(of(r.line.figure))

    def cell(r: Row) -> str:
        found = value(r)
        if found is not None:
            return WRITE[r.unit](found)
        return NO_FIGURE[r.line.status] if name == "expected" else ""

    head = "Mean" if name == "expected" else name.capitalize()
    return Column(name=name, head=head, value=value, cell=cell)


COLUMNS: tuple[Column[Row], ...] = (
    Column(name="line", head="Name", value=lambda r: r.line.name, is_text=True),
    Column(name="label", head="Line", value=lambda r: r.label, is_text=True, short=" "),
    Column(name="unit", head="Unit", value=lambda r: r.unit, is_text=True),
    _end("lower", lambda f: f.lower),
    _end("expected", lambda f: f.expected),
    _end("upper", lambda f: f.upper),
    Column(name="status", head="Status", value=lambda r: r.line.status, is_text=True),
    Column(name="how", head="How", value=lambda r: r.line.how, is_text=True),
)


def lines(found: Bill) -> Table[Row]:
    """Rows in dollars with their total, then energy, then carbon."""
    rows = [Row(line=x, label=x.label, unit="USD") for x in found.lines]
    if found.total is not None:
        of = "the sum of the lines that have a price"
        total = Line(name="total", figure=found.total, status="priced", how=of)
        rows.append(Row(line=total, label=total.label, unit="USD"))
    energy = found.energy
    rows += [Row(line=x, label=f"Energy: {x.label.lower()}", unit="kWh") for x in energy.lines]
    rows += [Row(line=x, label=x.label, unit="kg CO2e") for x in (energy.carbon, energy.marginal)]
    return Table(caption=CAPTION, columns=COLUMNS, rows=tuple(rows))


def how(found: Bill) -> Bullets:
    """How each line is computed."""
    rows = lines(found).rows
    return Bullets(tuple(f"{r.label}: {r.line.how}" for r in rows if r.line.how), "Worked out")


def blocks(scenario: Scenario, found: Bill) -> tuple[Block, ...]:
    """The answer, every line with its lower, expected and upper figure, and how it is computed."""
    sentences = map(Paragraph, bill_sentences(scenario, found))
    return (*sentences, lines(found).only(*READ), how(found))


def bars(found: Bill) -> pd.DataFrame:
    """Rows of the chart: every line with an amount in dollars, the largest first."""
    rows = []
    for line in found.lines:
        if line.figure is None or abs(as_float(line.figure.upper)) <= LEAST:
            continue
        ends = {name: as_float(usd) for name, usd in asdict(line.figure).items()}
        lower, mean, upper = map(_usd, ends.values())
        rows.append(
            {
                "line": line.label,
                **ends,
                "text": " to ".join(dict.fromkeys((lower, upper))),
                "mean_text": mean,
                "label": f"{line.label}: {mean}",
            }
        )
    columns = ["line", "lower", "expected", "upper", "text", "mean_text", "label"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.sort_values("expected", ascending=False, ignore_index=True)


def download(found: Bill) -> pd.DataFrame:
    """Every line with its unit, for a spreadsheet; an empty cell means no figure."""
    return lines(found).without("label").frame()


def alt(found: Bill) -> str:
    """Alternative text of the chart."""
    each = "; ".join(f"{r['label']}, {r['text']}" for _, r in bars(found).iterrows())
    return f"Mean dollars by line of the bill, each with its lower and upper figure: {each}."
