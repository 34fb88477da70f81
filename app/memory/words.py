"""Memory in words: names of phases, notes on bars, sentences, tooltips."""

from __future__ import annotations

from app.document import format as fmt
from app.document import vocabulary
from app.explain.words import lower
from app.memory.layouts import Bar, Held
from core.memory.memory_phases import PHASES

PHASE_NAMES = {
    "start": "Start: weights and optimizer states",
    "forward": "Forward, at the loss",
    "backward": "Backward of one layer",
    "accumulation": "Between two micro-batches",
    "optimizer_step": "Optimizer step",
    "checkpoint": "Between steps: checkpoint",
}
KINDS = {"plan": "Plan", "fits": "Next", "too_large": "Too large"}
SAME = 5e-4  # of a peak: phases closer than this count as equal

PEAK_HELP = (
    "The sum of the parts of one GPU: weights, gradients and optimizer states after sharding "
    "(ZeRO, arXiv:1910.02054, figure 1), activations that wait for backward (Korthikanti et al., "
    "arXiv:2205.05198, section 4) of the micro-batches in flight (Narayanan et al., "
    "arXiv:2104.04473, section 2.2), logits, gathered weights and buffers, and what the framework "
    "keeps for itself. Computed, with constants fitted on published runs."
)
HEADROOM_HELP = (
    "Capacity less the peak. Capacity is what a framework can use of the device. Safe is less: so "
    "much that the chance of out of memory is at most 20%, given how far forecasts of memory were "
    "off on published runs."
)
LAYOUTS_HELP = (
    "Every legal layout on the plan's machines is evaluated with the plan's own formulas. Drawn: "
    "the plan's, the fastest others that fit, and the fastest that do not; each has other degrees "
    "or shards other states than those above it of its kind."
)
PHASES_HELP = (
    "Start and checkpoint = weights + optimizer states. Forward = + gradients + gathered weights "
    "(PyTorch FSDP, arXiv:2304.11277, section 3) + activations in flight + logits. Backward = the "
    "same without logits, with one layer recomputed (Korthikanti et al., arXiv:2205.05198, section "
    "5) and its gradients. Optimizer step = states + its temporaries. The peak is the largest."
)
FIX_HELP = (
    "What is lacking is the peak less what is safe. Every legal layout that differs in one or two "
    "knobs, and every accelerator with more memory that is sold alike, is evaluated; those that "
    "fit are listed with what the run would then take, the cheapest first."
)


def part(name: str) -> str:
    """A part of the memory, in words."""
    return "Temporaries" if name == "temporaries" else vocabulary.memory_part(name)


def name(bar: Bar) -> str:
    """The name of a bar, such as 'Plan: TP8 DP8 fsdp2 mb1'."""
    return f"{KINDS[bar.kind]}: {fmt.layout_short(bar.layout)}"


def room(bar: Bar) -> str:
    """The memory free on the device, or missing."""
    if bar.left_bytes < 0:
        return f"{fmt.gib(-bar.left_bytes)} over the capacity"
    if bar.kind == "too_large":
        beyond = bar.need_bytes - bar.usable_bytes
        return f"{fmt.gib(beyond)} more than is safe"
    return f"{fmt.gib(bar.left_bytes)} left"


def note(bar: Bar) -> str:
    """The note under a bar's name."""
    return f"{fmt.gib(bar.need_bytes)}, {room(bar)}; {fmt.seconds(bar.step_s)} a step"


def layouts_sentence(held: Held) -> str:
    """The bars in a sentence: how many layouts there are, and how much memory is missing."""
    fit = f"{fmt.count(held.num_fit)} of {fmt.count(held.num_legal)} legal layouts fit here"
    if held.same:
        fit += f" (with {', '.join(held.same)} as the plan has them: there are too many others)"
    plan = held.bars[0]
    out = held.of("too_large")
    if not out:
        return f"{fit}."
    least = min(out, key=lambda b: b.step_s)
    if least.step_s >= plan.step_s:
        return f"{fit}; of those that do not, none would be faster than the plan."
    saved = 1 - least.step_s / plan.step_s
    return (
        f"{fit}. {fmt.layout_short(least.layout)} would take {fmt.percent(saved)} less a step, "
        f"but is {room(least)}."
    )


def misses_sentence(held: Held) -> str:
    """The nearest misses, if nothing fits."""
    nearest = min(held.bars, key=lambda b: b.need_bytes)
    return (
        f"None of {fmt.count(held.num_legal)} legal layouts fits. The least that one needs is "
        f"{fmt.gib(nearest.need_bytes)} ({fmt.layout_short(nearest.layout)}), {room(nearest)}."
    )


def fullest(phases: dict[str, dict[str, float]]) -> str:
    """The phase with the peak memory."""
    return max(PHASES, key=lambda p: sum(phases[p].values()))


def phase_note(held: Held, phase: str) -> str:
    """The note under the name of a phase."""
    total = sum(held.phases[phase].values())
    most = sum(held.phases[fullest(held.phases)].values())
    left = held.bars[0].capacity_bytes - total
    peak = ", the peak" if total >= most * (1 - SAME) else ""
    where = f"{fmt.gib(left)} left" if left >= 0 else f"{fmt.gib(-left)} over the capacity"
    return f"{fmt.gib(total)}{peak}; {where}"


def phases_sentence(held: Held) -> str:
    """When the peak occurs, which parts come and go, and where the peak may be too high."""
    peak = fullest(held.phases)
    most = sum(held.phases[peak].values())
    idle = sum(held.phases["checkpoint"].values())
    found = (
        f"The peak is in {lower(PHASE_NAMES[peak]).split(':')[0]}, {fmt.gib(most)}; "
        f"{fmt.gib(idle)} stay between steps."
    )
    if held.late_gradient_bytes > SAME * most:
        found += (
            " With one micro-batch a stack that frees its gradients after each step needs "
            f"{fmt.gib(held.late_gradient_bytes)} less: they are counted in full before they are "
            "made."
        )
    return found
