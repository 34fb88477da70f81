"""Tables of speed, with their sentences: the losses between the ideal step and the actual one, and
scaling with GPUs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from app.document import format as fmt
from app.document import vocabulary
from app.explain.words import lower, more
from app.forecast.vary import PlansByCount
from core.money.scaling import efficiency
from core.search.plan import Plan

# The parts that count as model FLOPs: all other time of a step is loss.
ARITHMETIC = ("matmul", "attention", "experts", "head_loss")
MOST_SHOWN = 20  # rows of a table on the page
WORTH_TELLING = 1e-3  # of a step: smaller losses are added up
IDEAL, WHOLE = "Ideal: model FLOPs at the dense peak", "Whole step"
SLOWER, FASTER = "Kernels below the peak", "8-bit or 4-bit kernels above the 16-bit peak"
REST = "All else"

WATERFALL_HELP = (
    "Ideal = model FLOPs of a step / (GPUs x dense 16-bit peak): 6 FLOPs per parameter and token "
    "and causal attention once, recompute not counted (PaLM, arXiv:2204.02311, appendix B). MFU = "
    "ideal / step. Each loss is a part of the step as the plan's formulas have it; they add up."
)
SCALING_HELP = (
    "The best layout on the same machines at each number of GPUs, with the same global batch "
    "(strong scaling). Efficiency = tokens/s of a GPU over that at the fewest GPUs at which a "
    "layout fits: 100% is linear."
)


def losses(plan: Plan) -> tuple[float, list[tuple[str, float]]]:
    """Seconds of the ideal step, and the losses, largest first; they add up to the actual step.
    Kernels faster than the 16-bit peak are a negative loss."""
    total = float(sum(plan.step_s.values()))
    ideal = plan.mfu * total
    kernels = sum(plan.step_s.get(p, 0.0) for p in ARITHMETIC) - ideal
    others = {vocabulary.step_part(p): s for p, s in plan.step_s.items() if p not in ARITHMETIC}
    found = {SLOWER if kernels >= 0 else FASTER: kernels, **others}
    large = {n: s for n, s in found.items() if abs(s) >= WORTH_TELLING * total}
    rest = sum(found.values()) - sum(large.values())
    ranked = sorted(large.items(), key=lambda x: (x[1] > 0, -x[1]))
    return ideal, [*ranked, *([(REST, rest)] if abs(rest) > 1e-9 * total else [])]


def waterfall(plan: Plan) -> pd.DataFrame:
    """The ideal step, each loss starting where the previous one ends, and the actual step."""
    ideal, lost = losses(plan)
    total = float(sum(plan.step_s.values()))
    ends = ideal + np.cumsum([s for _, s in lost])
    rows = [(IDEAL, 0.0, ideal, "ideal", f"{fmt.seconds(ideal)} (MFU {fmt.percent(plan.mfu)})")]
    for (name, seconds), end in zip(lost, ends, strict=True):
        kind = "loss" if seconds >= 0 else "gain"
        rows.append((name, float(end) - seconds, float(end), kind, _more(seconds, total)))
    rows.append((WHOLE, 0.0, total, "whole", fmt.seconds(total)))
    frame = pd.DataFrame(rows, columns=["part", "start_s", "end_s", "kind", "text"])
    return frame.assign(share=(frame["end_s"] - frame["start_s"]) / total)


def _more(seconds: float, total: float) -> str:
    return f"{more(seconds)} ({fmt.percent(abs(seconds) / total)})"


def _rounded(rows: pd.DataFrame, *names: str) -> pd.DataFrame:
    """The rows with the five digits that a chart shows."""
    return rows.assign(**{n: [float(f"{v:.5g}") for v in rows[n]] for n in names})


def waterfall_drawn(plan: Plan) -> pd.DataFrame:
    """The waterfall rounded to the digits that a chart shows."""
    return _rounded(waterfall(plan), "start_s", "end_s").drop(columns="share")


def waterfall_shown(plan: Plan) -> pd.DataFrame:
    """The waterfall as text."""
    rows = waterfall(plan)
    return pd.DataFrame(
        {
            "Part of a step": rows["part"],
            "Time": rows["text"],
            "So far": [fmt.seconds(s) for s in rows["end_s"]],
        }
    )


def waterfall_sentence(plan: Plan) -> str:
    """From the ideal step to the actual one, with the largest losses."""
    ideal, lost = losses(plan)
    total = float(sum(plan.step_s.values()))
    most = [f"{lower(name)} {_more(s, total)}" for name, s in lost if s > 0][:2]
    return (
        f"{fmt.seconds(total)} a step, of which {fmt.seconds(ideal)} are the ideal (MFU "
        f"{fmt.percent(plan.mfu)}, HFU {fmt.percent(plan.hfu)}). The largest losses: "
        f"{', '.join(most)}."
    )


# --- numbers of GPUs -----------------------------------------------------------------------------


def scaling(plans: Sequence[Plan]) -> pd.DataFrame:
    """Throughput and efficiency against the number of GPUs, ascending."""
    gpus = np.array([p.num_gpus for p in plans])
    per_gpu = np.array([p.tokens_per_s_per_gpu for p in plans])
    return pd.DataFrame(
        {
            "num_gpus": gpus,
            "tokens_per_s": gpus * per_gpu,
            "linear_tokens_per_s": gpus * per_gpu[0],
            "efficiency": efficiency(per_gpu),
            "mfu": [p.mfu for p in plans],
            "step_s": [float(sum(p.step_s.values())) for p in plans],
            "layout": [fmt.layout_short(p.layout) for p in plans],
        }
    )


def scaling_drawn(plans: Sequence[Plan]) -> pd.DataFrame:
    """The columns of the scaling table that the charts need."""
    rows = scaling(plans).drop(columns=["step_s", "mfu"])
    return _rounded(rows, "tokens_per_s", "linear_tokens_per_s", "efficiency")


def scaling_shown(plans: Sequence[Plan], *, chosen: int) -> pd.DataFrame:
    """The scaling table as text; if long, only the doublings of the first and the chosen count."""
    rows = scaling(plans)
    if len(rows) > MOST_SHOWN:
        doublings = np.log2(rows["num_gpus"] / rows["num_gpus"].iloc[0]) % 1 == 0
        rows = rows[doublings | (rows["num_gpus"] == chosen)]
    return pd.DataFrame(
        {
            "GPUs": [fmt.count(n) for n in rows["num_gpus"]],
            "Tokens/s": [fmt.tokens(x) for x in rows["tokens_per_s"]],
            "Efficiency": [fmt.percent(x) for x in rows["efficiency"]],
            "MFU": [fmt.percent(x) for x in rows["mfu"]],
            "Step": [fmt.seconds(x) for x in rows["step_s"]],
            "Layout": rows["layout"],
        }
    )


def scaling_sentence(plan: Plan, found: PlansByCount) -> str:
    """The plan's efficiency, the gain from doubling, and the counts without a layout."""
    rows = scaling(found.plans)
    first = rows.iloc[0]
    own = rows[rows["num_gpus"] == plan.num_gpus]
    double = rows[rows["num_gpus"] == 2 * plan.num_gpus]
    parts = []
    if not own.empty:
        parts.append(
            f"{fmt.count(plan.num_gpus)} GPUs reach {fmt.tokens_per_s(own['tokens_per_s'].iloc[0])}"
            f", {fmt.percent(own['efficiency'].iloc[0])} of linear from "
            f"{fmt.count(first['num_gpus'])}"
        )
    if not own.empty and not double.empty:
        times = double["tokens_per_s"].iloc[0] / own["tokens_per_s"].iloc[0]
        parts.append(f"twice as many are {times:.3g} times as fast")
    for counts, why in ((found.no_layout, "nothing fits"), (found.not_searched, "not searched")):
        if counts:
            parts.append(f"{why} on {', '.join(map(fmt.count, counts))} GPUs")
    return f"{'; '.join(parts)}." if parts else "The plan's own count was not searched."
