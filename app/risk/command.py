"""`runcast risk`: when the best plan ends and what it costs if machines fail."""

from __future__ import annotations

from app.command.given import Given
from app.command.options import AsJson, print_json, takes_fields


@takes_fields
def risk(
    given: Given,
    as_json: AsJson = False,
) -> None:
    """Say when a plan ends and what it costs if machines fail.

    And to what the time is lost: checkpoints, repeated steps, restarts, waiting. With stages, of
    the whole as well.
    """
    from app.plan.planned import planned
    from app.risk.risk import risk_of

    asked, plan = planned(given)
    result = risk_of(asked, plan)
    whole = None
    if asked.stages:
        from app.programme.programme import contract_or_error

        whole = contract_or_error(asked)
    if as_json:
        from app.programme.as_json import contract_json
        from app.risk.as_json import risk_json

        more = {} if whole is None else {"programme": contract_json(whole)}
        print_json({**risk_json(asked, result), **more})
    else:
        from app.document.terminal import print_document
        from app.programme.document import risk_blocks
        from app.risk.document import blocks

        more_blocks = () if whole is None else risk_blocks(asked, whole)
        print_document((*blocks(asked, result), *more_blocks))
