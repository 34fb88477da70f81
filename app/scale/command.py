"""`runcast scale`: when a run ends and what it costs at other numbers of GPUs."""

from __future__ import annotations

from typing import Annotated

from app.command.given import Given
from app.command.options import AsJson, Text, print_json, takes_fields, text_option


@takes_fields
def scale(
    given: Given,
    usd_per_day: Annotated[
        Text, text_option("--usd-per-day", "U", "What a day less is worth: where doubling pays.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say when and how big: GPU counts, waiting, the best model.

    On the machines of the best plan, or of the one that the link names.
    """
    from app.plan.planned import planned
    from app.scale.points import scale_of
    from app.scale.words import value_of_a_day

    worth = value_of_a_day(usd_per_day)
    asked, plan = planned(given)
    result = scale_of(asked, plan)
    if as_json:
        from app.scale.as_json import scale_json

        print_json(scale_json(asked, result, worth))
    else:
        from app.document.terminal import print_document
        from app.scale.document import blocks

        print_document(blocks(asked, result, worth))
