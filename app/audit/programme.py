"""`runcast audit --programme`: a claim over all stages of a link or of a published programme."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from app.audit.numbers import number_of
from app.command.given import Given
from app.command.options import print_json
from app.command.values import plan_scenario
from app.document.terminal import print_document
from app.forecast.resolve import resolve_strict
from app.programme.claim import NAMES, blocks, claim_json, compared
from app.programme.programme import contract_or_error
from core.errors import ScenarioError
from hardware.programmes.published import published_programme


def print_programme(link: str, texts: Mapping[str, str | None], *, as_json: bool) -> None:
    """Print the verdicts. ScenarioError for an option that says nothing of a whole programme."""
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
    found = compared(best, claims)
    if as_json:
        print_json(claim_json(best, found))
    else:
        print_document(blocks(asked, best, found))
