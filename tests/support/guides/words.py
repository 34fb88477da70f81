"""Write a decision in sentences: the case, the recommendation, and what the others lack."""

from __future__ import annotations

from app.document import format as fmt
from app.scenario.model import model_of
from core.scenario import Scenario
from tests.support.guides.one_case import Miss, Run, longest_differences
from tests.support.guides.strategies import TASKS, strategy

SAME = 0.005  # below this difference two steps count as equally long
TWICE = 1.0  # from here on written as a multiple instead of a percentage


def job(scenario: Scenario, *, with_task: bool = True) -> str:
    """The concrete case: Llama 2 7B, LoRA, 8 x H100-80GB-SXM, 128 sequences of 4,096 a step."""
    slow = scenario.network_gbit_per_gpu
    parts = [
        model_of(scenario).label,
        TASKS[scenario.task] if with_task else "",
        f"{fmt.count(scenario.num_gpus[0])} x {', '.join(scenario.gpu)}",
        f"{fmt.count(scenario.global_batch_size)} sequences of {fmt.count(scenario.seq_len)} "
        "tokens a step",
        "" if slow is None else f"a network of only {slow:g} Gbit/s a GPU",
    ]
    return ", ".join(p for p in parts if p)


def memory(run: Run) -> str:
    """The memory in words: 56.1 of 79.2 GiB a GPU, 23.1 GiB free."""
    free = f"{fmt.gib(run.free_bytes)} free"
    if run.is_tight:
        free = f"{fmt.chance(run.probability_oom)} chance to run out of memory"
    host = f", and {fmt.gib(run.host_bytes)} a GPU in the host's memory" if run.host_bytes else ""
    return f"{_number(run.need_bytes)} of {fmt.gib(run.limit_bytes)} a GPU, {free}{host}"


def _number(num_bytes: float) -> str:
    return fmt.gib(num_bytes).removesuffix(" GiB")


def details(run: Run) -> str:
    """The rest of the layout, its speed and its memory."""
    recompute = "no" if run.layout.recompute == "none" else run.layout.recompute
    return (
        f"micro-batch {run.layout.micro_batch_size}, {recompute} recompute, "
        f"{fmt.tokens_per_s(run.tokens_per_s)}"
    )


def recommended(run: Run | None) -> str:
    """The strategy, and whether it is tight; or that nothing fits."""
    if run is None:
        return "More GPUs: nothing fits these"
    return f"{strategy(run)}{', which is tight' if run.is_tight else ''}"


def is_as_fast(one: Run, other: Run) -> bool:
    """Whether two steps count as equally long."""
    return abs(one.step_s / other.step_s - 1) < SAME


def times(slow: Run, fast: Run, than: str = "") -> str:
    """Compare one step with another: as fast, 4.1% slower, 5.3 times as long."""
    more = slow.step_s / fast.step_s - 1
    if is_as_fast(slow, fast):
        return f"is as fast{f' as {than}' if than else ''}"
    if more >= TWICE:
        return f"takes {more + 1:.2g} times as long{f' as {than}' if than else ''}"
    word = "slower" if more > 0 else "faster"
    return f"is {fmt.percent(abs(more))} {word}{f' than {than}' if than else ''}"


def compared(name: str, found: Run | Miss, chosen: Run | None) -> str:
    """Compare one way with the chosen one: how much slower it is, or by how much it does not
    fit."""
    if isinstance(found, Miss):
        if found.rule:
            return f"{name} is out: {found.rule}"
        if found.host_bytes:
            return (
                f"{name} does not fit the host, which has {_number(found.host_limit_bytes)} of the "
                f"{fmt.gib(found.host_bytes)} a GPU that it needs"
            )
        return f"{name} does not fit: it lacks {fmt.gib(found.short_bytes)} a GPU"
    speed = f" and {times(found, chosen)}" if chosen and chosen is not found else ""
    if found.is_tight:
        return f"{name} is tight ({memory(found)}){speed}"
    return f"{name} {times(found, chosen)}" if chosen else f"{name} fits"


def longest_difference(slow: Run, fast: Run) -> str:
    """The part of a step that differs most: ', mostly X (+1.2 s a step)'."""
    for part, more in longest_differences(slow, fast)[:1]:
        return f", mostly {part.lower()} ({more} a step)"
    return ""


def sentence(text: str) -> str:
    """Add a capital letter and a full stop.

    >>> sentence("it fits")
    'It fits.'
    """
    return text[:1].upper() + text[1:].rstrip(".") + "."


def joined(parts: list[str]) -> str:
    """Join words: 'a', 'a and b', 'a, b and c'.

    >>> joined(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def named(words_of_way: str, found: Run | Miss) -> str:
    """The words of a way; if it stands for several layouts, they name the one meant here."""
    if isinstance(found, Run) and (" x " in words_of_way or "parallel" in words_of_way):
        return f"{words_of_way} ({strategy(found)})"
    return words_of_way
