"""`runcast bill`: everything that the best plan costs, line by line."""

from __future__ import annotations

from app.command.given import Given
from app.command.options import AsJson, print_json, takes_fields


@takes_fields
def bill(
    given: Given,
    as_json: AsJson = False,
) -> None:
    """List everything that a plan costs, with energy and carbon.

    Each line has a lower, an expected and an upper figure. The plan is the best one, or the one
    that the link names.
    """
    from app.bill.bill import bill_of
    from app.plan.planned import planned

    asked, plan = planned(given)
    result = bill_of(asked, plan)
    if as_json:
        from app.bill.as_json import bill_json

        print_json(bill_json(asked, result))
    else:
        from app.bill.document import blocks
        from app.document.terminal import print_document

        print_document(blocks(asked, result))
