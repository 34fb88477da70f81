"""Cases of a claim, on bare nodes: how much slower one case is than another, and the text for
it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from app.document import format as fmt
from app.document import vocabulary
from core.errors import ScenarioError
from tests.support.guides.claim_text import FORECAST_DIGITS, Ours, span
from tests.support.guides.one_case import Fields, Run, forecast

H100 = "H100-80GB-SXM"
# Data parallelism only: the basis for comparing DDP, ZeRO and FSDP.
DATA_PARALLEL: Fields = {"tp": 1, "pp": 1, "cp": 1}


def timed(fields: Fields, *, even_odds: bool = False) -> Run | None:
    """The fastest layout that fits as safely as a plan must, on H100 unless the fields say
    otherwise. With `even_odds`, if there is none, one that more likely fits than not."""
    found = forecast({"gpu": H100, **fields}, node="bare", even_odds=even_odds)
    return found if isinstance(found, Run) else None


def timed_if_it_fitted(fields: Fields) -> Run:
    """The fastest layout with unlimited memory: the time of DDP for a model that it cannot hold.

    ScenarioError if a rule leaves no layout.
    """
    found = forecast({"gpu": H100, **fields}, node="bare", roomy=True)
    if isinstance(found, Run):
        return found
    raise ScenarioError(f"A case of a guide runs with no layout: {found.rule}.")


def text_of(run: Run) -> str:
    """The layout, its step time and utilisation, and the chance of running out of memory if that is
    a risk."""
    chance = f" ({fmt.chance(run.probability_oom)} chance to run out of memory)"
    return (
        f"{fmt.layout(run.layout)}: {fmt.seconds(run.step_s)} a step, "
        f"{fmt.percent(run.mfu)} MFU, {fmt.gib(run.need_bytes)} a GPU"
        + (chance if run.is_tight else "")
    )


def slowdown(slow: Run | None, fast: Run | None) -> float:
    """Slow step time over fast step time; infinite if the slow case does not run.

    >>> slowdown(None, None)
    inf
    """
    return slow.step_s / fast.step_s if slow and fast else math.inf


def range_of(ratios: Iterable[float], arithmetic: str) -> Ours:
    """The range over the cases that run. If none runs the figure is infinite, which no claim
    prints."""
    found = [r for r in ratios if math.isfinite(r)] or [math.inf]
    return Ours(low=min(found), high=max(found), arithmetic=arithmetic, digits=FORECAST_DIGITS)


def listed(cases: Mapping[str, float], unit: str = "x") -> str:
    """Each case with its figure: '8 sequences a step: 3.7x; 64: 1.8x'."""
    return "; ".join(
        f"{case}: {span(x, x, unit, FORECAST_DIGITS) if math.isfinite(x) else 'does not fit'}"
        for case, x in cases.items()
    )


def longest_differences(slow: Run, fast: Run) -> list[tuple[str, str]]:
    """The parts of a step that take longer, the most first: a name, and how much: '+1.2 s'."""
    more_s = {p: s - fast.parts_s.get(p, 0.0) for p, s in slow.parts_s.items()}
    return [
        (vocabulary.step_part(p), f"+{fmt.seconds(more_s[p])}")
        for p in sorted(more_s, key=lambda p: -more_s[p])
        if more_s[p] > 0
    ]
