"""Figures that decision tables print: cost against DDP, rules of thumb, savings of sharding.

The printed figures and their verdicts come from hardware/claims.csv, so this page and the Method
page always agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from core.model.presets import preset
from core.model.transformer import total_params
from core.numeric import as_float
from core.scenario import Scenario
from hardware.decision_tables import Advice
from tests.support.guides import words
from tests.support.guides.cases import timed_if_it_fitted
from tests.support.guides.claim_text import FORECAST_DIGITS, figure, number
from tests.support.guides.claims import checked, printed, verdict
from tests.support.guides.decision import Decision, Verdict, link_of, together
from tests.support.guides.strategies import WAYS, forecast_of

GB = 1e9
MEANS: Mapping[str, Verdict] = {
    "reproduced": "agrees",
    "reproduced as a limit": "agrees in part",
    "refuted": "disagrees",
    "input": "no opinion",
}
# One fixed layout, so that bytes compare: micro-batch and recompute are the same in all.
_LEAST = {"tp": 1, "pp": 1, "cp": 1, "micro_batch_size": 1, "recompute": "full"}


def with_printed_figures(decision: Decision) -> Decision:
    """A decision whose advice also prints a figure; the verdict on the figure counts equally."""
    found = [checked(printed(name)) for name in decision.advice.claims]
    costs = (f"Cost against DDP, if DDP fitted: printed {c.printed}, ours {c.ours}." for c in found)
    off = (
        f"the printed {c.printed} is {c.ours} here: {c.why.rstrip('.')}"
        for c in found
        if MEANS[c.verdict] != "agrees"
    )
    why = "; ".join(text for text in (decision.disagreement.rstrip("."), *off) if text)
    return replace(
        decision,
        reasons=(*decision.reasons, *costs),
        verdict=together([decision.verdict, *(MEANS[c.verdict] for c in found)]),
        disagreement=words.sentence(why) if why else "",
    )


def decide_memory(advice: Advice) -> Decision:
    """Compare a rule of thumb with our memory forecast, model by model."""
    claim = printed(advice.claims[0])
    slope, more = advice.gb_per_billion or 0.0, advice.gb_more or 0.0
    sizes: dict[float, float] = {}
    ratios: list[float] = []
    verdicts: dict[str, Verdict] = {}  # by the text of each comparison
    for name in advice.ways:
        run = timed_if_it_fitted({**advice.scenario, **_LEAST, "model": name})
        billions = as_float(total_params(preset(name).transformer)) / GB
        ours, rule = run.need_bytes * run.scenario.num_gpus[0], (slope * billions + more) * GB
        sizes[billions] = ours
        ratios.append(ours / rule)
        text = (
            f"{number(billions, FORECAST_DIGITS)}B: {figure(ours, 'GB', FORECAST_DIGITS)} against "
            f"{figure(rule, 'GB', FORECAST_DIGITS)}"
        )
        verdicts[text] = MEANS[
            verdict(rule=claim.rule, ours_low=ours, ours_high=ours, printed_low=rule,
                    printed_high=rule, tolerance=claim.tolerance)
        ]  # fmt: skip
    off = [text for text, v in verdicts.items() if v != "agrees"]
    scenario = Scenario.parse(advice.scenario)
    return Decision(
        advice=advice,
        job=f"One sequence of {scenario.seq_len:,} tokens a GPU, full recompute, "
        f"{scenario.num_gpus[0]} GPU{'s' if scenario.num_gpus[0] > 1 else ''}, "
        f"{len(verdicts)} models",
        recommends=f"{number(min(ratios), 2)} to {number(max(ratios), 2)} times the rule",
        details=f"holds for {len(verdicts) - len(off)} of {len(verdicts)} models",
        reasons=tuple(map(words.sentence, verdicts)),
        verdict=together(verdicts.values()),
        disagreement=words.sentence(f"off for {words.joined(off)}; {_line(sizes)}") if off else "",
    )


def _line(sizes: Mapping[float, float]) -> str:
    """The slope and the intercept of our memory forecast between the two ends."""
    least, most = min(sizes), max(sizes)
    slope = (sizes[most] - sizes[least]) / (most - least)
    return (
        f"from {number(least, FORECAST_DIGITS)}B to {number(most, FORECAST_DIGITS)}B ours grows by "
        f"{figure(slope, 'GB', FORECAST_DIGITS)} per billion, on top of "
        f"{figure(sizes[least] - slope * least, 'GB', FORECAST_DIGITS)}"
    )


def decide_saving(advice: Advice) -> Decision:
    """Compare a printed saving of model states with the saving of a whole GPU's memory in our
    forecast."""
    c, way = checked(printed(advice.claims[0])), advice.ways[0]
    ddp, sharded = (forecast_of(w, advice.scenario).need_bytes for w in ("ddp", way))
    whole = (
        f"A whole GPU, activations and buffers included: {figure(ddp, 'GB', 3)} with DDP, "
        f"{figure(sharded, 'GB', 3)} with {WAYS[way].words}, {number(ddp / sharded, 2)}x."
    )
    return Decision(
        advice=advice,
        job=words.job(Scenario.parse(advice.scenario)),
        recommends=c.ours,
        details="of the model states it shards",
        reasons=(words.sentence(c.arithmetic), whole),
        verdict=MEANS[c.verdict],
        disagreement="" if c.verdict == "reproduced" else c.why,
        link=link_of(advice, None),
    )
