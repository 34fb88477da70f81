"""The data of one answered row of a published decision table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from core.scenario import Scenario
from hardware.decision_tables import Advice
from tests.support.guides import words
from tests.support.guides.one_case import Miss, Run
from tests.support.guides.strategies import WAYS

Verdict = Literal["agrees", "agrees in part", "disagrees", "no opinion"]
CHOSEN = ("task", "stack")


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """One of the ways compared."""

    way: str  # a key of WAYS, or a stack
    words: str
    published: bool
    found: Run | Miss


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One concrete case of one published row, answered."""

    advice: Advice
    recommends: str
    reasons: tuple[str, ...]  # sentences
    verdict: Verdict
    disagreement: str = ""  # one sentence; empty if it agrees or there is no opinion
    job: str = ""
    details: str = ""
    run: Run | None = None  # run of the recommendation
    alternatives: tuple[Alternative, ...] = ()
    link: Mapping[str, str] = field(default_factory=dict)  # fields of a scenario; empty: no page


def alternatives_of(advice: Advice, found: Mapping[str, Run | Miss]) -> tuple[Alternative, ...]:
    """The ways compared, in words; a stack goes by its name."""
    return tuple(
        Alternative(
            way=way,
            words=words.named(WAYS[way].words if way in WAYS else way, f),
            published=way in advice.ways,
            found=f,
        )
        for way, f in found.items()
    )


def answered(
    advice: Advice,
    verdict: Verdict,
    disagreement: str,
    *,
    run: Run | None,
    recommends: str,
    reasons: Iterable[str],
    alternatives: tuple[Alternative, ...],
) -> Decision:
    """The decision that forecasts lead to; `run` is that of the recommendation."""
    return Decision(
        advice=advice,
        job=words.job(Scenario.parse(advice.scenario), with_task=advice.kind != "task"),
        recommends=recommends,
        details=words.details(run) if run else "",
        reasons=tuple(map(words.sentence, reasons)),
        verdict=verdict,
        disagreement=disagreement,
        run=run,
        alternatives=alternatives,
        link=link_of(advice, run),
    )


def link_of(advice: Advice, run: Run | None) -> dict[str, str]:
    """The fields of a link to the Plan page: the case with every layout, the fastest first; and the
    task and stack chosen, without which the page would answer another question."""
    fields: dict[str, object] = {**advice.scenario, "rank_by": "time"}
    if run is not None:
        fields |= {name: getattr(run.scenario, name) for name in CHOSEN}
        if "nvme" in run.offload:  # the search does not try nvme
            fields |= dict(zip(("offload_optimizer", "offload_params"), run.offload, strict=True))
    return Scenario.parse(fields).to_query()


def together(verdicts: Iterable[Verdict]) -> Verdict:
    """Combine several verdicts about one row: differing verdicts agree in part.

    >>> together(["agrees", "disagrees"]), together(["agrees", "agrees"])
    ('agrees in part', 'agrees')
    """
    found = set(verdicts)
    return found.pop() if len(found) == 1 else "agrees in part"
