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

    And to what the time is lost: checkpoints, repeated steps, restarts, waiting.
    """
    from app.plan.planned import planned
    from app.risk.risk import risk_of

    asked, plan = planned(given)
    result = risk_of(asked, plan)
    if as_json:
        from app.risk.as_json import risk_json

        print_json(risk_json(asked, result))
    else:
        from app.document.terminal import print_document
        from app.risk.document import blocks

        print_document(blocks(asked, result))
