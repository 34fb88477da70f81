"""Stay or move: what is left of a run on its machines, and on the best offers of today.

What is left here runs at the measured speed. Elsewhere it is a forecast, with the wait for
machines, failures and least billed hours, that what was measured here does not correct. To move
takes one more checkpoint, its copy, a conversion where another stack trains, and a load that shares
it out anew. The old machines are paid until the copy is made, the new ones while they load it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.document import format as fmt
from app.document.vocabulary import machine
from app.forecast.answer import answer
from app.forecast.failure_inputs import given_numbers
from app.forecast.failure_times import (
    Times,
    checkpoint_size_bytes,
    host_link_bytes_per_s,
    times_of,
)
from app.forecast.resolve import current_prices, resolve_strict
from app.scenario.link import changed
from app.watch.run import State
from core.numeric import as_float
from core.scenario import Scenario
from core.search.plan import Plan
from core.units import DAY_S, HOUR_S
from core.watch.moving import break_even_tokens
from hardware.reliability import used

MOST, SEARCHED = 3, 30
# Fields that belong to the machines of now, and are searched anew for others.
OF_MACHINES = (
    "gpu", "num_gpus", "cloud", "purchase", "plan", "pinned", "stages", "num_examples", "sharding",
    "recompute", "tp", "pp", "cp", "ep", "etp", "dp_shard", "virtual_stages", "micro_batch_size",
    "budget_usd", "stack", "compile", "cuda_graphs",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One other way to train what is left. Seconds and dollars are from now on, move included."""

    plan: Plan
    seconds: float
    usd: float
    here_s: float
    here_usd: float
    once_s: Mapping[str, float]  # of the move, by part
    once_usd: float
    until: float | None  # share of the run from which on it saves no dollars; None: never did
    until_s: float | None  # and no time

    @property
    def saves_usd(self) -> float:
        """Dollars that it saves; below 0: it costs more."""
        return self.here_usd - self.usd


def moves_of(state: State) -> tuple[Move, ...]:
    """The best offers of today for what is left, cheapest first; () if there is nothing to move or
    the run has no price."""
    held, per_hour = state.held, state.held.planned.usd_per_hour
    plan, left = held.run.plan, held.planned.tokens - state.tokens
    if plan is None or per_hour is None or left < held.planned.step_tokens or not state.tokens:
        return ()
    here_s = max(state.outlook.end_s.p50 - state.elapsed_s, 0.0)
    asked = _asked(held.scenario, left, state.elapsed_s)
    found: dict[tuple[str, str], Plan] = {}
    for other in answer(asked, top=SEARCHED).plans:
        key = other.offer.provider, other.offer.accelerator
        is_here = key == (plan.offer.provider, plan.offer.accelerator)
        if other.cost.has_price and not (is_here and other.num_gpus == plan.num_gpus):
            found.setdefault(key, other)
    moves = [
        _move(held.scenario, plan, other, left, held.planned.tokens, here_s, per_hour)
        for other in found.values()
    ]
    return tuple(sorted(moves, key=lambda m: m.usd)[:MOST])


def _asked(scenario: Scenario, left: float, elapsed_s: float) -> Scenario:
    """The scenario of what is left, on any machines, at today's prices."""
    free = {name: Scenario.model_fields[name].default for name in OF_MACHINES}
    days = scenario.deadline_days
    if days is not None:
        days = days - elapsed_s / DAY_S
        days = days if days > 0.01 else None
    return resolve_strict(
        changed(
            scenario, **{**free, "num_tokens": max(left, 1.0), "deadline_days": days,
                         "prices": current_prices()},
        )
    )  # fmt: skip


def _move(
    scenario: Scenario, old: Plan, new: Plan, left: float, whole: float, here_s: float,
    per_hour: float,
) -> Move:  # fmt: skip
    saved, loaded = (_times(scenario, p) for p in (old, new))
    rate = new.usd_per_hour or 0.0
    parts = {
        "checkpoint": as_float(saved.checkpoint_s) + as_float(saved.upload_s),
        "conversion": 0.0 if new.stack == old.stack else used("conversion_s").value,
        "load": as_float(loaded.restart_s),
        "start": new.startup_hours * HOUR_S,
    }
    beside_s = sum(parts.values()) - parts["start"]  # the forecast has the start
    usd = new.paid_usd or 0.0
    usd += (parts["checkpoint"] * per_hour + parts["load"] * rate) / HOUR_S
    seconds = new.expected_hours * HOUR_S + beside_s
    there_s = max(new.expected_hours * HOUR_S - parts["start"], 0.0) / left
    there_usd = there_s * rate / HOUR_S
    here_usd = here_s * per_hour / HOUR_S
    once_usd = max(usd - there_usd * left, 0.0)
    needed = break_even_tokens(here=here_usd / left, there=there_usd, once=once_usd)
    needed_s = break_even_tokens(here=here_s / left, there=there_s, once=sum(parts.values()))
    return Move(
        plan=new, seconds=seconds, usd=usd, here_s=here_s, here_usd=here_usd, once_s=parts,
        once_usd=once_usd, until=_share(needed, whole), until_s=_share(needed_s, whole),
    )  # fmt: skip


def _share(needed: float | None, whole: float) -> float | None:
    """The share of the run after which fewer tokens are left than needed."""
    return None if needed is None or needed >= whole else 1 - needed / whole


def _times(scenario: Scenario, plan: Plan) -> Times:
    return times_of(
        scenario.model_copy(update={"stack": plan.stack}),
        given_numbers(scenario),
        num_gpus=float(plan.num_gpus),
        rented_gpus=float(plan.num_nodes * plan.offer.gpu_count),
        link_bytes_per_s=host_link_bytes_per_s(plan.offer.accelerator),
    )


def move_sentences(state: State, moves: tuple[Move, ...]) -> list[str]:
    """Stay or move, in sentences: the verdict first."""
    if not moves:
        return ["Stay: no other offer can be priced for what is left."]
    best = moves[0]
    here = f"{fmt.days(best.here_s / HOUR_S)} and {fmt.usd(best.here_usd)} here"
    verdict = (
        f"Move: it saves {fmt.usd(best.saves_usd)}."
        if best.saves_usd > 0
        else f"Stay: to move costs {fmt.usd(-best.saves_usd)} more at the least."
    )
    size = fmt.gib(checkpoint_size_bytes(state.held.scenario))
    return [
        f"{verdict} What is left takes {here}.",
        *(_sentence(move) for move in moves),
        f"Traffic of the {size} checkpoint out of a cloud is not priced, nor are forecasts "
        "elsewhere corrected by what was measured here.",
    ]


def _sentence(move: Move) -> str:
    once = sum(move.once_s.values())
    text = (
        f"{machine(move.plan)}: {fmt.days(move.seconds / HOUR_S)} and {fmt.usd(move.usd)}, "
        f"of which {fmt.days(once / HOUR_S)} and {fmt.usd(move.once_usd)} are the move"
    )
    if move.until is None:
        return f"{text}; it never saves money."
    return f"{text}; it saves no money after {fmt.percent(move.until)} of the run."
