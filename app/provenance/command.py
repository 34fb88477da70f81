"""`runcast where`: where each number of a plan comes from."""

from __future__ import annotations

from typing import Annotated

from app.command.given import Given
from app.command.options import AsJson, Text, print_json, takes_fields, text_option


@takes_fields
def where(
    given: Given,
    number: Annotated[
        Text, text_option("--number", "KEY", "Only this number, with all that it rests on.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say where each number of a plan comes from.

    What it rests on, and what of that is measured, fitted or assumed.
    """
    from app.forecast.price_book import today
    from app.plan.planned import planned
    from app.provenance.records import provenance_of, record_named

    asked, plan = planned(given)
    records = provenance_of(asked, plan, with_energy=True)
    if number is not None:
        records = (record_named(records, number),)
    if as_json:
        from app.provenance.as_json import provenance_json

        print_json(provenance_json(asked, plan, records, today()))
    else:
        from app.document.terminal import print_document
        from app.provenance.document import blocks

        print_document(blocks(records, today(), is_one=number is not None))
