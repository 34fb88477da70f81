"""A programme in sentences."""

from __future__ import annotations

import math

from app.document import format as fmt
from app.document import vocabulary
from app.programme.contract import Contract, StagePlan
from app.programme.programme import Programme
from app.scenario.model import model_of
from core.programme.tokens import main_stage
from core.scenario import Scenario
from hardware.programmes.published import PublishedProgramme

GATES = {
    "deadline": "the deadline, as surely as asked",
    "budget": "the budget",
    "supply": "as many GPUs as the seller has without asking",
    "price": "a price that is young and good enough",
    "launch": "a launch file for each stage",
    "memory": "95% sure to fit the memory in each stage",
}
ASSUMED = (
    "Runs of one stage follow one another on all machines; nothing is trained beside another run.",
    "An error of the forecast speed is taken to be one for all stages; failures are independent.",
    "A stage reads the checkpoint of the one before; for another layout it is first converted and "
    "written, at the rate of the storage. Ablations and models of their own start from nothing.",
    "Evaluations, data preparation and waiting for capacity between stages are not counted; "
    "gap_hours= adds idle hours, which are paid.",
)
RESERVED = (
    "A reservation counts for the hours that the stages use: the rest of its term is for others."
)


def sentences(scenario: Scenario, found: Programme) -> tuple[str, ...]:
    """The answer, what speaks against it, and where checkpoints are re-sharded."""
    if found.nothing_fits:
        return (found.nothing_fits,)
    best = found.best
    said = [answer_sentence(scenario, best)]
    if found.failed:
        lacking = ", ".join(GATES.get(name, name) for name in found.failed)
        said.append(f"It does not pass: {lacking}. Nothing else is nearer.")
    if len(best.stages) > 1:
        said += [layout_sentence(best)]
    if change := largest_change(best):
        said.append(change)
    if turned := turned_sentence(scenario, best):
        said.append(turned)
    return tuple(said)


def turned_sentence(scenario: Scenario, best: Contract) -> str:
    """How many tokens the main stage may have within the budget and the deadline."""
    if best.most_main_tokens is None:
        return ""
    stages = [s.run.stage for s in best.stages]
    main = best.stages[main_stage(stages, [s.run.tokens for s in best.stages])].run
    limits = []
    if scenario.budget_usd is not None:
        limits.append(fmt.usd(scenario.budget_usd, digits=3))
    if scenario.deadline_days is not None:
        sure = fmt.percent(scenario.deadline_confidence)
        limits.append(f"{fmt.days(scenario.deadline_days * 24)} ({sure} sure)")
    within = f"With {' and '.join(limits)} on these machines"
    if not best.most_main_tokens:
        return f"{within} there is no room for {main.name}: the other stages take more."
    return (
        f"{within} {main.name} can have {fmt.tokens(best.most_main_tokens)} tokens; it has "
        f"{fmt.tokens(main.tokens)}."
    )


def answer_sentence(scenario: Scenario, best: Contract) -> str:
    """What the whole costs and when it ends."""
    tokens = sum(s.run.stage.count * s.run.tokens for s in best.stages)
    first = best.stages[0]
    where = f"{fmt.count(first.num_gpus)} x {first.offer.accelerator} ({_place(first)})"
    if not best.is_one_set:
        where = "machines of its own for each stage"
    stages = "1 stage" if len(best.stages) == 1 else f"{len(best.stages)} stages"
    hours, usd = best.cost.hours, best.paid
    cost = f"{fmt.count(best.gpu_hours)} GPU-hours, without a price"
    if usd is not None:
        cost = (
            f"{fmt.usd(usd.mean, digits=3)} ({fmt.usd(usd.p10, digits=3)} to "
            f"{fmt.usd(usd.p90, digits=3)}), {fmt.count(best.gpu_hours)} GPU-hours"
        )
    chance = ""
    if scenario.deadline_days is not None:
        chance = f"; {fmt.chance(best.chance_on_time)} likely to end by the deadline"
    return (
        f"{model_of(scenario).label}, {stages}, {fmt.tokens(tokens)} tokens in all, on {where}: "
        f"expected {cost}; it ends after {fmt.days(hours.mean)} ({fmt.days(hours.p10)} to "
        f"{fmt.days(hours.p90)}, P10 to P90){chance}."
    )


def published_sentence(found: Programme, known: PublishedProgramme) -> str:
    """What was published of these stages, and how the forecast compares."""
    if not found.contracts:
        return ""
    published, forecast = known.gpu_hours, found.best.gpu_hours
    part = ""
    if published is None:  # only some stages have printed GPU-hours
        published = sum(known.gpu_hours_of.values())
        stages = zip(known.stages, found.best.stages, strict=True)
        forecast = sum(s.gpu_hours for k, s in stages if k.part in known.gpu_hours_of)
        part = f" of {', '.join(known.gpu_hours_of)}"
    over = forecast / published - 1
    return (
        f"Published: {fmt.count(published)} GPU-hours{part} ({known.source}; {known.note}). The "
        f"forecast is {fmt.percent(abs(over))} {'more' if over > 0 else 'less'}."
    )


def _place(stage: StagePlan) -> str:
    return f"{vocabulary.place(stage.offer)}, {vocabulary.purchase(stage.offer.purchase)}"


def layout_sentence(best: Contract) -> str:
    """Which stages keep the layout of the one before, and which re-shard the checkpoint."""
    kept = [s.run.name for s in best.stages if s.keeps_layout]
    after = [
        s.run.name
        for n, s in enumerate(best.stages)
        if n and not s.keeps_layout and not s.run.stage.is_apart
        and any(not e.run.stage.is_apart for e in best.stages[:n])
    ]  # fmt: skip
    parts = []
    if kept:
        parts.append(f"Same layout, no re-sharding: {', '.join(kept)}.")
    if after:
        parts.append(f"The checkpoint is re-sharded before {', '.join(after)}.")
    return " ".join(parts) or "No stage goes on with the weights of another one."


def largest_change(best: Contract) -> str:
    """What dropping the second dearest stage saves: the dearest is the reason for the others."""
    if len(best.stages) < 2:
        return ""
    stage = sorted(best.stages, key=lambda s: -s.gpu_hours)[1]
    usd, hours = stage.without
    saved = f"{fmt.days(max(-hours, 0.0))} less"
    if math.isfinite(usd):
        saved = f"{fmt.usd(max(-usd, 0.0), digits=3)} and {saved}"
    return f"Without {stage.run.name}: {saved}."
