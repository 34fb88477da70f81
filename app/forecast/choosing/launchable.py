"""Why no launch file takes a plan: asked of the recipes of its stack, as the Launch page asks
them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from app.forecast import stack_limits
from app.forecast.failure_times import saves_behind_training
from app.forecast.search import Found
from app.forecast.training import workload_of
from app.scenario.model import model_of
from core.layout.sharding import INDEX, reduced_gradient_bytes
from core.numeric import as_float
from core.scenario import Scenario
from core.search.job import Machine
from core.search.plan import Layout
from hardware.efficiency import GENERIC
from hardware.stack_support import support_of
from runners.recipes.job import Habits
from runners.recipes.registry import target

ATTENTION = ("flash2", "flash3", "newest")


def refusals(found: Found, rows: Sequence[tuple[int, Machine]]) -> list[str]:
    """Why no launch file takes the layout of each row of the search on its machine, in a few words;
    '' where one does. What several rows share is asked once."""
    jobs = cache(lambda n: stack_limits.made_up(found.variants[n], found.variants[n].stack))
    names = cache(stack_limits.targets_of)
    habits = cache(lambda number, *of: recipe_habits(found.variants[number], *of))

    @cache
    def why(
        number: int, layout: Layout, node: int, vendor: str, newer: float, domain: float
    ) -> str:
        stack = found.variants[number].stack
        if support_of(stack) is None:
            return f"{stack} is no particular stack" if stack == GENERIC else f"{stack} has none"
        gpus = layout.tp * layout.pp * layout.cp * layout.dp_replicate * layout.dp_shard
        job = replace(
            jobs(number), layout=layout, num_gpus=gpus, num_nodes=-(-gpus // node),
            gpus_per_node=node, vendor=vendor, habits=habits(number, layout.sharding, newer),
            global_batch_size=found.variants[number].global_batch_size,
            slice_gpus=int(domain) if vendor == "google" else None,
        )  # fmt: skip
        reasons = [target(name).refuses(job) for name in names(stack)]
        return "" if "" in reasons else reasons[0]

    layouts = found.layouts_of(n for n, _ in rows)
    known: dict[tuple[int, int], str] = {}  # by row of the search and GPUs of an instance
    for n, m in rows:
        if (at := (n, m.offer.gpu_count)) not in known:
            chip = m.accelerator
            newer = as_float(chip.architecture.newer_than_flash2)
            known[at] = why(
                int(found.best.asked[n]), layouts[n], m.offer.gpu_count, chip.vendor, newer,
                float(chip.scale_up_domain),
            )  # fmt: skip
    return [known[n, m.offer.gpu_count] for n, m in rows]


def recipe_habits(scenario: Scenario, sharding: str, newer_than_flash2: float) -> Habits:
    """What the forecast of a plan assumes of the software, on a device with matrix units of so many
    generations that FlashAttention 2 lacks."""
    work = workload_of(scenario, model_of(scenario))
    reduced = reduced_gradient_bytes(strategy=INDEX[sharding], gradient_bytes=work.gradient_bytes)
    newest = ATTENTION[min(2, 0 if work.flash2 else int(newer_than_flash2))]
    return Habits(
        overlaps_gradients=bool(work.overlaps_gradients),
        overlaps_weights=bool(work.overlaps_weights),
        async_tp=bool(work.async_tp),
        reduces_in_fp32=bool(reduced > 2),
        cuda_graphs=bool(work.cuda_graphs),
        chunked_loss=bool(work.chunked_loss),
        attention="unfused" if work.unfused_attention else newest,
        packed=stack_limits.is_packed(scenario),
        async_checkpoint=saves_behind_training(scenario),
        sends_once_per_node=bool(work.deduplicates),
    )
