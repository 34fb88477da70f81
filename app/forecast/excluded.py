"""What a search left out and why: counted for each accelerator at each cloud, and in total."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from core.machine.offer import Offer
from core.search.best import Best
from core.search.job import Machine
from core.search.plan import Exclusion

LONGEST_DAYS = 365.0  # longer runs are counted but not shown, unless requested
LEAST_MFU = 0.05  # below this more GPUs are a waste: the plan is counted but not shown

Key = tuple[str, str, str]  # a stable word for the reason, an accelerator, a cloud
# Why an offer, or an offer at one GPU count, is not compared.
SENTENCES = {
    "no_facts": "offers are of accelerators whose figures no source prints",
    "purchase": "offers are of a purchase kind that was not chosen",
    "cluster_size": "owned clusters or quotes have fewer GPUs than are asked for",
    "quote_over": "of your quotes are past their last day: ask the seller again",
    "precision": "offers are of accelerators without the chosen precision",
    "stack": "offers are of accelerators on which the software stack does not run, or none that "
    "takes this job",
    "not_a_cluster": "offers at some GPU count: not sold as a cluster, so one machine at most",
    "slice": "offers at some GPU count: no slice of chips has this size",
    "memory": "offers at some GPU count: no layout fits the memory",
    "layout": "offers at some GPU count: no legal layout",
    "too_slow": f"offers at some GPU count: the run would take longer than {LONGEST_DAYS:.0f} days",
    "wasteful": f"offers at some GPU count: the network keeps the MFU under {LEAST_MFU:.0%}",
    "not_searched": "offers at some GPU count: the search was over its budget before it came to "
    "them",
}


def reason_at(reason: str, offer: Offer) -> Key:
    """The key under which an offer is counted."""
    return reason, offer.accelerator, offer.provider


def without_layout(pairs: Iterable[tuple[Machine, int]], best: Best) -> Counter[Key]:
    """Count the machines, each with the number of its job, for which the search found no layout."""
    reasons = {
        "memory": set(best.jobs_out_of_memory),
        "layout": set(best.jobs_without_layout),
        "not_searched": set(best.jobs_cut),
    }
    return Counter(
        reason_at(reason, m.offer)
        for m, job in pairs
        for reason, of in reasons.items()
        if job in of
    )


def sold_apart(chosen: Iterable[Machine]) -> str:
    """The cluster products that sellers of single machines sell apart, in words; '' if none."""
    found = {
        f"{m.offer.provider} sells {m.network.apart}s apart"
        for m in chosen
        if m.network.apart and m.network.basis == "none"
    }
    return ", ".join(sorted(found))


def total(left_out: Mapping[Key, int], reason: str) -> int:
    """How many were left out for one reason."""
    return sum(count for (why, _, _), count in left_out.items() if why == reason)


def by_pair(left_out: Mapping[Key, int]) -> dict[tuple[str, str], dict[str, int]]:
    """The counts by reason, for each accelerator at each cloud."""
    found: dict[tuple[str, str], dict[str, int]] = {}
    for (reason, accelerator, cloud), count in left_out.items():
        found.setdefault((accelerator, cloud), {})[reason] = count
    return found


def exclusions(
    left_out: Mapping[Key, int],
    best: Best,
    *,
    num_without_price: int,
    apart: str = "",
    stacks: Mapping[str, str] | None = None,
) -> tuple[Exclusion, ...]:
    """Every reason that removed something, with its count and a sentence; `apart` as of
    `sold_apart`, `stacks` as of `app.forecast.stack_limits.not_taking`."""
    named = {"not_a_cluster": f" ({apart})"} if apart else {}
    why = "; ".join(f"{stack}: {reason}" for stack, reason in (stacks or {}).items())
    counted = [
        ("no_price", num_without_price,
         "plans are shown without dollars: no price of the chosen kind is known"),
        *(
            (reason, total(left_out, reason), text + named.get(reason, ""))
            for reason, text in SENTENCES.items()
        ),
        ("stacks", len(stacks or {}), f"software stacks do not take this job ({why})"),
        ("candidate_memory", best.counts.pruned_by_memory, "layouts do not fit the memory"),
        ("candidate_time", best.counts.pruned_by_time,
         "layouts are proven to be no faster than another one that fits"),
        ("candidate_cut", best.counts.cut,
         "layouts were not looked at: their GPU counts have too many"),
        *(
            (f"candidate_{reason}", count, f"layouts are not legal: {reason.replace('_', ' ')}")
            for reason, count in sorted(best.removed.items())
        ),
    ]  # fmt: skip
    return tuple(
        Exclusion(reason=reason, count=int(count), sentence=f"{int(count):,} {text}.")
        for reason, count, text in counted
        if count
    )
