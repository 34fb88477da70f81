"""The data of one answered row of a published decision table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from app.forecast.one_case import Miss, Run
from core.scenario import Scenario
from hardware.decision_tables import Advice

Verdict = Literal["agrees", "agrees in part", "disagrees", "no opinion"]
VERDICTS: tuple[Verdict, ...] = ("agrees", "agrees in part", "disagrees", "no opinion")
CHOSEN = ("task", "stack")


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """One of the ways compared."""

    way: str  # a key of decision_ways.WAYS, or a stack
    words: str
    published: bool
    found: Run | Miss


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One concrete case of one published row, answered."""

    advice: Advice
    job: str
    recommends: str
    details: str
    reasons: tuple[str, ...]  # sentences
    verdict: Verdict
    disagreement: str  # one sentence; empty if it agrees or there is no opinion
    run: Run | None = None  # run of the recommendation
    alternatives: tuple[Alternative, ...] = ()
    link: Mapping[str, str] = field(default_factory=dict)  # fields of a scenario; empty: no page

    @property
    def other_reasons(self) -> tuple[str, ...]:
        """The reasons that the disagreement does not already give."""
        said = self.disagreement.casefold()
        return tuple(r for r in self.reasons if r.rstrip(".").casefold() not in said)


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
