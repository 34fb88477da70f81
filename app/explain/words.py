"""Sentences of explanations: differences, obstacles, bottlenecks, changes. Plain text, no markup.

The page and the command line both take their words from this module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from app.document import format as fmt
from app.document import vocabulary
from app.explain.explained import Against, Figures, Named
from app.plan.input_words import UNKNOWNS, input_name, input_value, number
from core.explain.bottleneck import BATCH, HIDDEN, LAUNCH, WORK, Bottleneck, Faster, Remedy
from core.explain.changes import Change, Changes
from core.explain.explain import Difference
from core.explain.obstacles import Obstacle, Shortage
from core.explain.sensitivity import Unknown

LEAST_S = 5e-4  # seconds of a step: smaller differences are not mentioned
LEAST_H = 1 / 60  # hours of a run: smaller differences are not mentioned

# Bottlenecks that are more than one part of the step, or have more to name.
GROUPS = {
    "compute": "Computing",
    "overhead": "Overhead: launches, synchronisation, stragglers",
}
KNOBS = {
    "virtual_stages": "virtual stages",
    "micro_batch_size": "micro-batch",
    "num_gpus": "GPUs",
    "accelerator": "GPU",
}


def group(name: str) -> str:
    """The name of a bottleneck."""
    return GROUPS.get(name, vocabulary.step_part(name))


def lower(text: str) -> str:
    """A name inside a sentence: its first letter is small, unless it starts an abbreviation."""
    return text if text[:2].isupper() else text[0].lower() + text[1:]


def signed(difference: float, text: Callable[[float], str]) -> str:
    """A difference with its sign: +1.2 s, -$35, ±0%."""
    sign = "+" if difference > 0 else "-" if difference < 0 else "±"
    return f"{sign}{text(abs(difference))}"


def more(seconds: float) -> str:
    """A time difference with its sign: +1.2 s, -35 ms, ±0 s."""
    return signed(seconds, fmt.seconds)


def more_usd(usd: float) -> str:
    """A cost difference with its sign; less than a cent is rounding."""
    return signed(0.0 if abs(usd) < 0.005 else usd, fmt.usd_short)


# --- two plans or layouts ------------------------------------------------------------------------


def difference_sentence(step: Difference, other: str) -> str:
    """Why another step is slower or faster: the three largest parts, then the rest."""
    if abs(step.more_s) < LEAST_S and all(abs(t.more_s) < LEAST_S for t in step.terms):
        return f"{other} takes the same {fmt.seconds(step.first_s)} a step."
    terms = [
        f"{lower(vocabulary.step_part(t.part))} {more(t.more_s)}{_from_to(t.first_s, t.second_s)}"
        for t in step.terms
    ]
    direction = "longer" if step.more_s > 0 else "less"
    rest = f"; all else {more(step.rest_s)}" if abs(step.rest_s) >= LEAST_S else ""
    return (
        f"{other} takes {fmt.seconds(abs(step.more_s))} {direction} a step"
        f"{_from_to(step.first_s, step.second_s)}: {', '.join(terms)}{rest}."
    )


def _from_to(first_s: float, second_s: float) -> str:
    """The two times in brackets, if they differ when rounded."""
    both = fmt.seconds_from_to(first_s, second_s)
    return f" ({both})" if both else ""


def run_sentence(against: Against) -> str:
    """The difference for the whole run, in time and dollars."""
    time = "the same time"
    if abs(against.hours) >= LEAST_H:
        time = f"{fmt.days(abs(against.hours))} {'more' if against.hours > 0 else 'less'}"
    if against.cost is None:
        return (
            f"Over the run, without failures: {time}; without a price of both there are no dollars "
            "to compare."
        )
    c = against.cost
    return (
        f"Over the run, without failures: {time} and {more_usd(c.more_usd)}, of which "
        f"{more_usd(c.by_gpu_hours_usd)} for GPU-hours and {more_usd(c.by_price_usd)} for the "
        "price of a GPU-hour."
    )


# --- one layout ----------------------------------------------------------------------------------


def obstacle_sentence(obstacle: Obstacle) -> str:
    """A broken rule with its figures."""
    figures = ", ".join(f"{name} = {number(value)}" for name, value in obstacle.figures)
    return f"{obstacle.sentence}{f' ({figures})' if figures else ''}."


def shortage_sentence(lacks: Shortage) -> str:
    """By how much the layout exceeds the memory, and the largest part of its memory."""
    return (
        f"It lacks {fmt.gib(lacks.over_bytes)} a GPU: it needs {fmt.gib(lacks.need_bytes)}, and "
        f"{fmt.gib(lacks.usable_bytes)} of {fmt.gib(lacks.capacity_bytes)} can be planned with, "
        "given the forecast's error. The largest part is "
        f"{lower(vocabulary.memory_part(lacks.largest_part))}, {fmt.gib(lacks.largest_bytes)}."
    )


def figures_sentence(figures: Figures) -> str:
    """Step time, run time, dollars and memory of one layout."""
    cost = "" if figures.usd is None else f" and {fmt.usd_short(figures.usd)}"
    return (
        f"{fmt.seconds(figures.step_s)} a step, {fmt.days(figures.hours)}{cost} without "
        f"failures, {fmt.gib(sum(figures.memory_bytes.values()))} of "
        f"{fmt.gib(figures.capacity_bytes)} a GPU ({fmt.chance(figures.probability_oom)} "
        "chance of out of memory)."
    )


def named_sentences(named: Named) -> list[str]:
    """The verdict on a named layout, and why."""
    if named.figures is None:
        count = len(named.obstacles)
        rules = f"{count} rule{'s are' if count > 1 else ' is'}"
        broken = (_upper(obstacle_sentence(o)) for o in named.obstacles)
        return [f"{named.text} is not possible: {rules} broken.", *broken]
    if named.shortage is not None:
        return [f"{named.text} does not fit the memory.", shortage_sentence(named.shortage)]
    return [f"{named.text} fits.", figures_sentence(named.figures)]


def _upper(text: str) -> str:
    # Names of degrees are lower case, even at the start of a sentence.
    is_degree = text.startswith(("tp ", "ep ", "etp ", "cp ", "pp "))
    return text if is_degree else text[0].upper() + text[1:]


def changed(change: Change) -> str:
    """What a change modifies: tp 1 to 4, sharding ddp to zero1."""
    return ", ".join(
        to if knob == "offload" else f"{KNOBS.get(knob, knob)} {of} to {to}"
        for knob, (of, to) in change.changed.items()
    )


def changes_sentence(changes: Changes, *, fits: bool) -> str:
    """How many changes were tried."""
    looked = (
        f"{fmt.count(changes.num_tried)} changes of one or two knobs were tried: "
        f"{fmt.count(changes.num_legal)} are legal, {fmt.count(changes.num_fit)} fit"
    )
    if changes.ranked:
        return f"{looked}. The best, " + ("that improve on it:" if fits else "the cheapest first:")
    return f"{looked}, {'none is better' if fits else 'none of them helps'}."


# --- faster --------------------------------------------------------------------------------------


def next_sentence(faster: Faster) -> str:
    """The next bottleneck, how much of it is exposed, and what would hide it."""
    found = faster.next
    if found is None:
        return (
            "Nothing but computing takes more than "
            f"{fmt.percent(HIDDEN)} of the step: only faster GPUs, or more of them, are faster."
        )
    return (
        f"Next bottleneck: {lower(group(found.group))}, {fmt.seconds(found.exposed_s)} or "
        f"{fmt.percent(found.share)} of the step. {remedy_sentence(found, faster)}"
    )


def remedy_sentence(found: Bottleneck, faster: Faster) -> str:
    """What would hide one part, or how much the best resource helps."""
    if found.hidden:
        hidden = "" if found.group in WORK else ": hidden"
        return f"At most {fmt.percent(HIDDEN)} of the step{hidden}."
    if not found.remedies:
        return "No bandwidth, latency or batch changes it."
    best = found.remedies[0]
    saved = f"{fmt.seconds(best.saved_s)} ({fmt.percent(best.saved_s / faster.step_s)}) less a step"
    if best.needed is not None:
        verb = "would do with less of it" if best.resource == "memory_bytes" else "would hide it"
        return f"{_upper(needed(best))} {verb}: {saved}."
    if found.group in WORK:
        return f"Twice the {lower(input_name(best.resource))}: {saved}."
    return (
        f"Twice the {lower(twice_of(best))}: {saved}. No amount hides it: "
        f"{fmt.seconds(best.left_s)} are latency, or what the software never hides."
    )


def twice_of(remedy: Remedy) -> str:
    """The resource that is doubled, or halved if less is better."""
    name = input_name(remedy.resource)
    if remedy.resource == LAUNCH or remedy.resource.endswith("_hop_s"):
        return f"speed of what is now {lower(name)}"
    return name


def needed(remedy: Remedy) -> str:
    """What would hide a part: 1,920 GB/s of link inside the node (4.3 times today's 450 GB/s)."""
    if remedy.needed is None:
        return fmt.MISSING
    name, value = lower(input_name(remedy.resource)), remedy.needed
    if remedy.resource == BATCH:
        return f"a global batch {number(value / remedy.now)} times as large"
    if remedy.resource == LAUNCH:
        return f"kernels launched {number(remedy.now / value)} times as fast (or CUDA graphs)"
    if remedy.resource.endswith("_hop_s"):
        return (
            f"a {name} of {input_value(remedy.resource, value)} instead of "
            f"{input_value(remedy.resource, remedy.now)}"
        )
    now = input_value(remedy.resource, remedy.now)
    return (
        f"{name} {input_value(remedy.resource, value)} "
        f"({number(value / remedy.now)} times today's {now})"
    )


# --- the interval --------------------------------------------------------------------------------


def unknowns_sentence(unknowns: Sequence[Unknown]) -> str:
    """The unknowns that make up the interval, the largest first."""
    if not unknowns:
        return "The forecast has no interval."
    most, *others = (f"{UNKNOWNS.get(u.name, u.name)} ({fmt.percent(u.share)})" for u in unknowns)
    rest = f"; then {', '.join(others)}" if others else ""
    return f"Most of the interval's variance is {most}{rest}."
