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

    On the machines of the best plan, or of the one that the link names. With stages and a budget or
    a deadline: how many tokens the main stage can have.
    """
    from app.plan.planned import planned
    from app.scale.points import scale_of
    from app.scale.words import value_of_a_day

    worth = value_of_a_day(usd_per_day)
    asked, plan = planned(given)
    result = scale_of(asked, plan)
    whole = None
    if asked.stages:
        from app.programme.programme import contract_or_error

        whole = contract_or_error(asked)
    if as_json:
        from app.programme.as_json import contract_json
        from app.scale.as_json import scale_json

        more = {} if whole is None else {"programme": contract_json(whole)}
        print_json({**scale_json(asked, result, worth), **more})
    else:
        from app.document.blocks import Paragraph
        from app.document.terminal import print_document
        from app.programme.words import turned_sentence
        from app.scale.document import blocks

        turned = "" if whole is None else turned_sentence(asked, whole)
        print_document((*blocks(asked, result, worth), *((Paragraph(turned),) if turned else ())))
