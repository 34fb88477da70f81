"""A claim over all stages of a link or of a published programme, from typed values."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from app.audit.claim import number_of
from app.command.given import Given
from app.command.values import plan_scenario
from app.forecast.resolve import resolve_strict
from app.programme.claim import NAMES, Compared, compared
from app.programme.contract import Contract
from app.programme.programme import contract_or_error
from core.errors import ScenarioError
from core.scenario import Scenario
from hardware.programmes.published import published_programme


def programme_claim(
    link: str, texts: Mapping[str, str | None]
) -> tuple[Scenario, Contract, tuple[Compared, ...]]:
    """The scenario, its recommended contract, and each figure against it. ScenarioError for an
    option that says nothing of a whole programme."""
    given = {name: text for name, text in texts.items() if text is not None}
    if others := [f"--{n.replace('_', '-')}" for n in given if n not in NAMES]:
        raise ScenarioError(
            f"{', '.join(others)} with --programme: its link has the stages, and --gpu-hours, "
            "--days and --usd are claimed of all of them."
        )
    claims = {n: number_of(text, n, f"--{n.replace('_', '-')}") for n, text in given.items()}
    query = link if "=" in link else urlencode(published_programme(link).values)
    asked, _ = plan_scenario(Given(options={}, link=query))
    asked = resolve_strict(asked)
    best = contract_or_error(asked)
    return asked, best, compared(best, claims)
