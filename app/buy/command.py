"""`runcast buy`: on demand, spot, reserved, a block or owned, side by side for one plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from app.command.given import Given
from app.command.options import AsJson, Text, print_json, takes_fields, text_option


@takes_fields
def buy(
    given: Given,
    trace: Annotated[
        Text, text_option("--trace", "FILE", "Spot capacity up and down, CSV or JSON: replayed.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare the ways to buy a plan's machines.

    On demand, spot under several policies, reserved, a capacity block, owned: cost, finish, and
    the chance to miss a deadline, with failures and preemptions. With stages, of the whole as well.
    """
    from app.buy.purchases import purchases_of
    from app.buy.trace_file import read_trace_file
    from app.plan.planned import planned

    capacity = None if trace is None else read_trace_file(Path(trace))
    asked, plan = planned(given)
    result = purchases_of(asked, plan, capacity)
    whole = None
    if asked.stages:
        from app.programme.programme import contract_or_error
        from app.programme.ways import ways_to_buy

        whole = ways_to_buy(asked, contract_or_error(asked))
    if as_json:
        from app.buy.as_json import purchases_json
        from app.programme.as_json import contract_json

        more = {} if whole is None else {"programme": [contract_json(c) for c in whole]}
        print_json({**purchases_json(asked, result), **more})
    else:
        from app.buy.document import blocks
        from app.document.terminal import print_document
        from app.programme.document import ways_blocks

        print_document((*blocks(asked, result), *(() if not whole else ways_blocks(whole))))
