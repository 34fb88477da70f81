"""The differences of each compared plan from the first, in sentences: the three largest terms each
of time, dollars and memory. Plain text, no markup."""

from __future__ import annotations

import math
from collections.abc import Sequence

from app.document import format as fmt
from app.document import vocabulary
from app.explain import explained
from app.explain.words import difference_sentence, lower, run_sentence, signed
from app.options.side_by_side import Subject
from core.explain.explain import Difference, difference
from core.units import GIB, HOUR_S

ALIKE = 1e-6  # relative difference of tokens per step: below it, steps do the same work
LEAST_GIB = 0.05  # of memory: smaller differences are not mentioned


def sentences(compared: Sequence[Subject]) -> tuple[tuple[str, ...], ...]:
    """For every plan but the first: how it differs from the first, and why."""
    first, *others = compared
    return tuple(_against(first, other) for other in others)


def _against(first: Subject, other: Subject) -> tuple[str, ...]:
    found = explained.against_plan(first.plan, other.plan)
    name = f"{other.letter} ({other.machine})"
    if _same_work(first, other):
        time = difference_sentence(found.step, name)
    else:
        time = run_time_sentence(_over_the_run(first, other), name)
    memory = difference(first.plan.memory_bytes, other.plan.memory_bytes)
    return (time, run_sentence(found), memory_sentence(memory, other.letter))


def _tokens_of_a_step(subject: Subject) -> float:
    return float(subject.scenario.seq_len * subject.scenario.global_batch_size)


def _same_work(first: Subject, other: Subject) -> bool:
    """Whether a step does the same work in both, so that seconds per step can be compared."""
    return first.scenario.model == other.scenario.model and math.isclose(
        _tokens_of_a_step(first), _tokens_of_a_step(other), rel_tol=ALIKE
    )


def _over_the_run(first: Subject, other: Subject) -> Difference:
    """The parts of both runs in seconds, for plans whose steps do different work."""
    parts = [
        {part: s * subject.plan.num_steps for part, s in subject.plan.step_s.items()}
        for subject in (first, other)
    ]
    return difference(*parts)


def run_time_sentence(run: Difference, other: str) -> str:
    """Why a run whose steps do different work takes more or less time: three parts, then the rest.

    >>> run_time_sentence(difference({"matmul": 7200.0}, {"matmul": 14400.0}), "B")
    'B takes 2 h longer over the run, whose steps are other work: matrix multiplications +2 h.'
    """
    direction = "longer" if run.more_s > 0 else "less"
    if not run.terms:
        return f"{other} takes the same {fmt.days(run.first_s / HOUR_S)}."
    parts = ", ".join(f"{lower(vocabulary.step_part(t.part))} {_more(t.more_s)}" for t in run.terms)
    rest = f"; all else {_more(run.rest_s)}" if abs(run.rest_s) >= 1 else ""
    return (
        f"{other} takes {fmt.days(abs(run.more_s) / HOUR_S)} {direction} over the run, whose steps "
        f"are other work: {parts}{rest}."
    )


def _more(seconds: float) -> str:
    return signed(seconds / HOUR_S, fmt.days)


def memory_sentence(memory: Difference, other: str) -> str:
    """Why another plan needs more or less memory on a GPU: three parts, then the rest. The
    difference is in bytes.

    >>> memory_sentence(difference({"optimizer": 2.0 * 2**30}, {"optimizer": 3.0 * 2**30}), "B")
    'B needs 1 GiB more memory on a GPU: optimizer states +1 GiB.'
    """
    least = LEAST_GIB * GIB
    terms = [t for t in memory.terms if abs(t.more_s) >= least]
    if abs(memory.more_s) < least and not terms:
        return f"{other} needs the same {fmt.gib(memory.first_s)} of memory on a GPU."
    parts = ", ".join(
        f"{lower(vocabulary.memory_part(t.part))} {signed(t.more_s, fmt.gib)}" for t in terms
    )
    rest = memory.more_s - sum(t.more_s for t in terms)
    others = f"; all else {signed(rest, fmt.gib)}" if abs(rest) >= least else ""
    direction = "more" if memory.more_s > 0 else "less"
    return (
        f"{other} needs {fmt.gib(abs(memory.more_s))} {direction} memory on a GPU: {parts}{others}."
    )
