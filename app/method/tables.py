"""The tables of the Method page, as rows of text, and the dates of the data behind a forecast."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable

import pandas as pd

from app.document import format as fmt
from app.guides import claims as guides_claims
from app.guides import fixes as claimed_fixes
from app.guides import forecasts
from core.evidence.published_claims import ACCOUNTINGS, VERDICTS
from hardware import facts, measured
from hardware.claims import formulas, modelled, not_modelled
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


def claims_frame(checked: tuple[guides_claims.Checked, ...]) -> pd.DataFrame:
    """One row per claim: the printed figure, ours, and the verdict."""
    return pd.DataFrame(
        {
            "Topic": [c.claim.topic for c in checked],
            "Claim": [c.claim.statement for c in checked],
            "Printed": [c.printed_text for c in checked],
            "Ours": [c.ours_text for c in checked],
            "Verdict": [c.verdict for c in checked],
        }
    )


def refuted_frame(checked: tuple[guides_claims.Checked, ...]) -> pd.DataFrame:
    """The refuted claims, each with a sentence that gives the reason."""
    found = [c for c in checked if c.verdict == "refuted"]
    return pd.DataFrame(
        {
            "Refuted": [c.claim.statement for c in found],
            "Printed": [c.printed_text for c in found],
            "Ours": [c.ours_text for c in found],
            "Why": [c.claim.why for c in found],
        }
    )


def verdict_sentence(checked: tuple[guides_claims.Checked, ...]) -> str:
    """The number of claims by verdict."""
    return f"{len(checked)} printed figures: {_counted(checked)}."


def by_topic(checked: tuple[guides_claims.Checked, ...]) -> dict[str, list[guides_claims.Checked]]:
    """The claims by topic, with the verdicts counted, in the order of the table."""
    found: dict[str, list[guides_claims.Checked]] = {}
    for c in checked:
        found.setdefault(c.claim.topic, []).append(c)
    return {f"{topic} ({_counted(group)})": group for topic, group in found.items()}


def _counted(checked: Iterable[guides_claims.Checked]) -> str:
    """The verdicts counted, such as '33 reproduced, 3 refuted'."""
    count = Counter(c.verdict for c in checked)
    return ", ".join(f"{count[v]} {v}" for v in VERDICTS if count[v])


def forecasts_frame() -> pd.DataFrame:
    """Our forecasts for the cases of the guides, and what makes the first of them fit."""
    found = forecasts.forecasts()
    fixes = claimed_fixes.fixes()
    return pd.DataFrame(
        {
            "Case": [
                *(f.case for f in found),
                *(
                    f"70B on 8 H100, {f'fix {n}' if f.plan else 'no fix'}: {f.change}"
                    for n, f in enumerate(fixes, start=1)
                ),
            ],
            "A guide prints": [
                *(f.printed for f in found),
                *("the fix" if f.change == claimed_fixes.OFFLOAD else fmt.MISSING for f in fixes),
            ],
            "Our forecast": [*(f.text for f in found), *(f.text for f in fixes)],
        }
    )


def accountings_frame() -> pd.DataFrame:
    """Bytes per parameter by stack, and the memory of a 7B and a 70B model."""
    return pd.DataFrame(
        {
            "Accounting": [a.name for a in ACCOUNTINGS],
            "Bytes per parameter": [f"{a.total_bytes:g}" for a in ACCOUNTINGS],
            "Weights + gradients + optimizer": [
                f"{a.parameter_bytes:g} + {a.gradient_bytes:g} + {a.optimizer_bytes:g}"
                for a in ACCOUNTINGS
            ],
            "What": [f"{a.about.rstrip('.')}. After {a.source}." for a in ACCOUNTINGS],
        }
    )


def formulas_frame() -> pd.DataFrame:
    """What each part of the forecast computes, with its source."""
    found = formulas()
    return pd.DataFrame(
        {
            "Part": [f.topic for f in found],
            "Formula, in words": [
                f"{f.formula.rstrip('.')}. After {f.source}. Code: {f.module}" for f in found
            ],
        }
    )


def modelled_frame() -> pd.DataFrame:
    """Every modelled technique, and the scenario field that turns it on."""
    found = modelled()
    return pd.DataFrame(
        {
            "Group": [m.group for m in found],
            "Name": [m.name for m in found],
            "Set by": [m.setting.replace("&", ", ") for m in found],
        }
    )


def not_modelled_frame() -> pd.DataFrame:
    """Every technique that is not modelled, and why."""
    found = not_modelled()
    return pd.DataFrame(
        {
            "Group": [m.group for m in found],
            "Name": [m.name for m in found],
            "Why": [m.why for m in found],
        }
    )


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
