"""`runcast programme`: what several runs after one another cost on one contract of machines."""

from __future__ import annotations

from typing import Annotated

from app.command.given import Given
from app.command.options import AsJson, Save, Text, print_json, takes_fields, text_option


@takes_fields
def programme(
    given: Given,
    save: Save = None,
    published: Annotated[
        Text, text_option("--published", "NAME", "Stages as published: deepseek-v3, olmo3-7b, ...")
    ] = None,
    top: Annotated[Text, text_option("--top", "K", "Contracts to compare (10).")] = None,
    as_json: AsJson = False,
) -> None:
    """Plan stages that follow one another, on one contract.

    The stages are those of --stage (repeated), a link or a file; each takes from the scenario what
    it does not say.
    """
    from dataclasses import replace
    from pathlib import Path
    from urllib.parse import urlencode

    from app.command.values import STAGES_NOTE, plan_scenario, plans_to_show
    from app.document.echo import echo
    from app.forecast.failure_inputs import given_numbers
    from app.forecast.resolve import resolve_strict
    from app.programme.programme import TOP, programme_of
    from core.errors import ScenarioError
    from hardware.programmes.published import published_programme

    shown = plans_to_show(top, TOP)
    known = None
    if published is not None:
        if not given.is_new:
            raise ScenarioError("Give --published, --link or --scenario, not two of them.")
        known = published_programme(published)
        given = replace(given, link=urlencode(known.values))
    asked, notes = plan_scenario(given)
    asked = resolve_strict(asked)
    given_numbers(asked)  # reports mistakes before the search
    for note in notes:
        if note != STAGES_NOTE:
            echo(note, err=True)
    if save is not None:
        from app.scenario.file import write_scenario_file

        write_scenario_file(asked, Path(save))
    found = programme_of(asked, top=shown)
    if as_json:
        from app.programme.as_json import programme_json

        print_json(programme_json(asked, found))
    else:
        from app.document.blocks import Copied, Paragraph
        from app.document.terminal import print_document
        from app.plan.answer_document import PAGE
        from app.programme.document import blocks
        from app.programme.words import published_sentence
        from app.scenario.link_query import link_query
        from pricing.offers import snapshot

        print_document(blocks(asked, found))
        if known is not None and (sentence := published_sentence(found, known)):
            print_document((Paragraph(sentence),))
        query = link_query(asked, snapshot(asked.prices).id)
        print_document((Copied(label="Link", text=f"{PAGE}?{query}"),))
