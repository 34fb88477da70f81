"""The tables of the Method page, and the dates of the data behind a forecast."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Sequence

from app.document import format as fmt
from app.document.blocks import Row
from app.document.table import Table, plain
from core.evidence.published_claims import ACCOUNTINGS, VERDICTS
from hardware import claims as published
from hardware import facts, measured
from hardware.claims import PublishedClaim
from hardware.tables import UNDATED
from pricing import offers as prices

# The steps of a forecast, in the order of the computation.
STEPS = (
    "A scenario names a model, a number of tokens and a batch. Its dimensions give parameters and "
    "FLOPs, part by part.",
    "Every legal layout of the chosen GPUs is written down; what a stack or a model forbids is "
    "counted with its reason.",
    "Memory of the fullest GPU decides which layouts fit: model states, activations, logits, "
    "buffers and a reserve.",
    "The time of a step is matrix products, attention, elementwise work and collectives, each a "
    "physical rate times a fraction that real software reaches, then what hides behind what, then "
    "the pipeline's bubble.",
    "The fastest layout of each machine is priced with whole instances of dated offers, and the "
    "plans are ranked.",
    "The fractions are fitted on published runs; the spread of what is left is the interval P10 "
    "to P90.",
)


def claims(checked: Sequence[PublishedClaim]) -> Table[Row]:
    """The printed figure of each claim, ours, and the verdict."""
    rows = [(c.topic, c.statement, c.printed, c.ours, c.verdict)
            for c in checked]  # fmt: skip
    heads = ("Topic", "Claim", "Printed", "Ours", "Verdict")
    return plain("Published figures, checked", heads, rows)


def refuted(checked: Sequence[PublishedClaim]) -> Table[Row]:
    """The refuted claims, each with a sentence that gives the reason."""
    rows = [(c.statement, c.printed, c.ours, c.why)
            for c in checked if c.verdict == "refuted"]  # fmt: skip
    return plain("Refuted claims", ("Refuted", "Printed", "Ours", "Why"), rows)


def verdict_sentence(checked: Sequence[PublishedClaim]) -> str:
    """The number of claims by verdict."""
    return f"{len(checked)} printed figures: {_counted(checked)}."


def by_topic(checked: Sequence[PublishedClaim]) -> dict[str, list[PublishedClaim]]:
    """The claims by topic, with the verdicts counted, in the order of the table."""
    found: dict[str, list[PublishedClaim]] = {}
    for c in checked:
        found.setdefault(c.topic, []).append(c)
    return {f"{topic} ({_counted(group)})": group for topic, group in found.items()}


def _counted(checked: Iterable[PublishedClaim]) -> str:
    """The verdicts counted, such as '33 reproduced, 3 refuted'."""
    count = Counter(c.verdict for c in checked)
    return ", ".join(f"{count[v]} {v}" for v in VERDICTS if count[v])


def guide_forecasts() -> Table[Row]:
    """Our forecasts for the cases of the guides, and what makes the first of them fit."""
    heads = ("Case", "A guide prints", "Our forecast")
    rows = [(c.case, c.printed, c.forecast) for c in published.guide_cases()]
    return plain("Forecasts of the cases of the guides", heads, rows)


def accountings() -> Table[Row]:
    """Bytes per parameter by stack, and what they consist of."""
    rows = [
        (
            a.name,
            f"{a.total_bytes:g}",
            f"{a.parameter_bytes:g} + {a.gradient_bytes:g} + {a.optimizer_bytes:g}",
            f"{a.about.rstrip('.')}. After {a.source}.",
        )
        for a in ACCOUNTINGS
    ]
    heads = ("Accounting", "Bytes per parameter", "Weights + gradients + optimizer", "What")
    return plain("Bytes per parameter", heads, rows)


def formulas() -> Table[Row]:
    """What each part of the forecast computes, with its source."""
    rows = [
        (f.topic, f"{f.formula.rstrip('.')}. After {f.source}. Code: {f.module}")
        for f in published.formulas()
    ]
    return plain("Formulas", ("Part", "Formula, in words"), rows)


def modelled() -> Table[Row]:
    """Every modelled technique, and the scenario field that turns it on."""
    rows = [(m.group, m.name, m.setting.replace("&", ", ")) for m in published.modelled()]
    return plain("What is modelled", ("Group", "Name", "Set by"), rows)


def data_lines(today: dt.date) -> list[str]:
    """The data behind the forecasts and its age, one line each."""
    snapshot = prices.snapshot()
    dates = sorted(
        s.date
        for chip in facts.accelerators().values()
        for s in chip.sources.values()
        if s.date != UNDATED
    )
    runs = measured.read_runs(measured.RUNS_CSV)
    newest_run = max(d[:7] for d in runs.inputs.source_date.tolist() if d[:2] == "20")
    return [
        f"Prices: snapshot {snapshot.id}, {fmt.count(len(snapshot.offers))} offers observed "
        f"{snapshot.oldest} to {snapshot.newest} (newest {fmt.age(snapshot.newest, today)}).",
        f"Accelerators: {fmt.count(len(facts.accelerators()))} devices, sources of {dates[0]} to "
        f"{dates[-1]}.",
        f"Published runs: {fmt.count(len(runs))}, newest {newest_run}; the fitted fractions rest "
        "on them.",
    ]
