"""The software stack that a guide names for a job, and forecasts for the stacks with a profile.

Stacks differ here in their fitted fractions and in their habits (recompute, strategies); ease of
use is not counted. A difference within the spread of two forecasts counts as none.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

from app.document import format as fmt
from core.evidence.uncertainty import p90, quadrature
from core.numeric import as_float
from hardware.decision_tables import Advice
from hardware.efficiency import stack_of
from hardware.measured import RUNS_CSV, read_runs
from tests.support.guides import words
from tests.support.guides.decision import Decision, Verdict, alternatives_of, answered
from tests.support.guides.one_case import Miss, Run, forecast
from tests.support.guides.strategies import ON_GPU, strategy
from tests.support.guides.strategy import ALIKE


@cache
def published_runs() -> Counter[str]:
    """The number of published runs of each stack that has a profile."""
    stacks = [stack_of(str(name)) for name in read_runs(RUNS_CSV).inputs.framework]
    return Counter(s.name for s in stacks if s is not None)


def spread(one: Run, other: Run) -> float:
    """The throughput ratio that stays within the noise: nine of ten pairs of equal stacks stay
    under it."""
    return as_float(p90(1.0, quadrature(one.throughput_sigma, other.throughput_sigma)))


def decide_stack(advice: Advice) -> Decision:
    """Of the stacks that are equally fast, recommend the one whose profile has the most published
    runs."""
    asked = dict.fromkeys((*advice.ways, *advice.beside))
    found = {name: forecast({**advice.scenario, **ON_GPU, "stack": name}) for name in asked}
    runs = {name: f for name, f in found.items() if isinstance(f, Run)}
    alternatives = alternatives_of(advice, found)
    if not runs:
        return answered(
            advice,
            "disagrees",
            "None of these stacks fits the job.",
            run=None,
            recommends=words.recommended(None),
            reasons=[words.compared(n, f, None) for n, f in found.items()],
            alternatives=alternatives,
        )
    fastest = min(runs.values(), key=lambda r: r.step_s)
    alike = [n for n, r in runs.items() if r.step_s <= fastest.step_s * (1 + ALIKE)]
    name = max(alike, key=lambda n: published_runs()[n])
    chosen = runs[name]
    others = [
        f"{words.compared(n, f, chosen)}{_mostly(f, chosen)} ({_runs(n)})"
        for n, f in found.items()
        if n != name
    ]
    return answered(
        advice,
        *_verdict(advice, runs, found, name),
        run=chosen,
        recommends=name,
        reasons=[
            f"{strategy(chosen)}, {words.memory(chosen)}; {_runs(name)}",
            f"of the others, {'; '.join(others)}",
        ],
        alternatives=alternatives,
    )


def _mostly(found: Run | Miss, chosen: Run) -> str:
    """What takes most of the extra time of a slower stack."""
    if isinstance(found, Run) and found.step_s > chosen.step_s * (1 + ALIKE):
        return words.longest_difference(found, chosen)
    return ""


def _runs(name: str) -> str:
    """The runs a profile is based on; one without runs of its own uses those of its family."""
    n = published_runs()[name]
    return f"{fmt.count(n) if n else 'no'} published run{'' if n == 1 else 's'} of its own"


def _verdict(
    advice: Advice, runs: dict[str, Run], found: dict[str, Run | Miss], name: str
) -> tuple[Verdict, str]:
    """Whether the forecasts can distinguish the published stacks from the recommended one."""
    chosen = runs[name]
    slow = [
        n for n in advice.ways
        if n not in runs or runs[n].step_s > chosen.step_s * spread(runs[n], chosen)
    ]  # fmt: skip
    if not slow:
        return "agrees", ""
    why = [
        f"{n} {words.times(runs[n], chosen, name)}{words.longest_difference(runs[n], chosen)}"
        if n in runs else words.compared(n, found[n], chosen)
        for n in slow
    ]  # fmt: skip
    verdict: Verdict = "disagrees" if len(slow) == len(advice.ways) else "agrees in part"
    return verdict, f"{'; '.join(why)}: more than the spread of the two forecasts."
