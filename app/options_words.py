"""What the Options page says of its list: how much is priced, what is left out, what is shown."""

from __future__ import annotations

from app import format as fmt
from app.options_tables import LISTED, ORDERS
from core.plan import Answer

# Why an offer at a GPU count has no plan: words that stand before its count.
NO_PLAN = {
    "memory": "does not fit",
    "layout": "no legal layout",
    "too_slow": "too slow",
    "wasteful": "starved by the network",
    "not_searched": "not searched",
}
NO_OFFER = {
    "purchase": "other purchase kinds",
    "precision": "without the precision",
    "no_facts": "accelerators without figures",
    "cluster_size": "clusters too small",
}


def coverage_sentence(answer: Answer) -> str:
    """How many options are priced, and why the others are not.

    >>> from core.plan import Exclusion
    >>> left_out = tuple(Exclusion(reason=r, count=n, sentence="")
    ...                  for r, n in (("no_price", 90), ("memory", 28), ("purchase", 7)))
    >>> coverage_sentence(Answer(plans=(), num_plans=502, points={}, num_candidates=0,
    ...                          excluded=left_out, nothing_fits=None))
    '412 of 530 options priced; 118 not: no price 90, does not fit 28.'
    """
    counts = {e.reason: e.count for e in answer.excluded}
    no_price = counts.get("no_price", 0)
    missing = [("no price", no_price), *((t, counts.get(r, 0)) for r, t in NO_PLAN.items())]
    without = sum(n for _, n in missing)
    priced = answer.num_plans - no_price
    head = f"{fmt.count(priced)} of {fmt.count(priced + without)} options priced"
    if not without:
        return f"{head}."
    told = ", ".join(f"{text} {fmt.count(n)}" for text, n in missing if n)
    return f"{head}; {fmt.count(without)} not: {told}."


def not_compared_sentence(answer: Answer) -> str:
    """What an option is, and the offers that were compared at no number of GPUs."""
    counts = {e.reason: e.count for e in answer.excluded}
    told = ", ".join(
        f"{text} {fmt.count(counts[reason])}"
        for reason, text in NO_OFFER.items()
        if counts.get(reason)
    )
    beside = f" Offers that are not compared: {told}." if told else ""
    return f"An option is an offer at one number of GPUs.{beside}"


def found_sentence(num_found: int, num_ranked: int, order: str) -> str:
    """How many plans pass the filters, and how many of them are listed."""
    plans = f"{fmt.count(num_found)} of {fmt.count(num_ranked)} ranked plans pass the filters"
    if num_found == num_ranked:
        plans = f"All {fmt.count(num_ranked)} ranked plans"
    by = f"by {ORDERS[order][0]}"
    if num_found > LISTED:
        return f"{plans}; the first {LISTED} {by} are listed, the files have all."
    return f"{plans}, {by}."
