"""Sentences about the list of plans: how much is priced, what is left out, what is shown."""

from __future__ import annotations

from app.document import format as fmt
from app.options.document import LISTED, ORDERS
from app.plan.words import coverage_sentence as coverage_sentence
from app.plan.words import not_compared_sentence as not_compared_sentence


def found_sentence(num_found: int, num_ranked: int, order: str) -> str:
    """How many plans pass the filters, and how many of them are listed."""
    plans = f"{fmt.count(num_found)} of {fmt.count(num_ranked)} ranked plans pass the filters"
    if num_found == num_ranked:
        plans = f"All {fmt.count(num_ranked)} ranked plans"
    by = f"by {ORDERS[order][0]}"
    if num_found > LISTED:
        return f"{plans}; the first {LISTED} {by} are listed, the files have all."
    return f"{plans}, {by}."
