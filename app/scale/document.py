"""When and how big as tables: what the page shows and draws, and what is downloaded."""

from __future__ import annotations

import pandas as pd

from app.document import format as fmt
from app.scale.points import Point, Scale

SHOWN = ["GPUs", "Layout", "Time", "P90 time", "Cost", "P90 cost", "Goodput", "Efficiency",
         "Tokens/s", "GPU-hours / 1T", "Cost / 1T", "Per day saved", "Doubling saves"]  # fmt: skip


def cells(p: Point) -> tuple[str, ...]:
    """One point to be read, as SHOWN names its columns."""
    return (
        fmt.count(p.plan.num_gpus),
        fmt.layout_short(p.plan.layout),
        fmt.days(p.hours_expected),
        fmt.days(p.hours_p90_all),
        fmt.usd_short(p.usd_expected),
        fmt.usd_short(p.usd_p90_all),
        fmt.percent(p.goodput),
        fmt.percent(p.efficiency),
        fmt.tokens(p.plan.tokens_per_s.p50),
        fmt.tokens(p.gpu_hours_per_trillion),
        fmt.usd_short(p.usd_per_trillion),
        fmt.usd_short(p.usd_per_day_saved),
        fmt.percent(p.doubling_saves),
    )


def shown(found: Scale) -> pd.DataFrame:
    """Every count as text."""
    return pd.DataFrame([cells(p) for p in found.points], columns=SHOWN)


def points(found: Scale) -> pd.DataFrame:
    """Every count as numbers, for charts and downloads; empty: not known, or it never ends."""
    return pd.DataFrame(
        [
            {
                "num_gpus": p.plan.num_gpus,
                "days_steady": p.plan.wall_clock_hours / 24,
                "days_expected": p.hours_expected / 24,
                "days_p90": p.hours_p90 / 24,
                "days_p90_all": p.hours_p90_all / 24,
                "usd_steady": p.usd_steady,
                "usd_expected": p.usd_expected,
                "usd_p90": p.usd_p90,
                "usd_p90_all": p.usd_p90_all,
                "goodput": p.goodput,
                "efficiency": p.efficiency,
                "tokens_per_s": p.plan.tokens_per_s.p50,
                "gpu_hours_per_trillion_tokens": p.gpu_hours_per_trillion,
                "usd_per_trillion_tokens": p.usd_per_trillion,
                "usd_per_day_saved": p.usd_per_day_saved,
                "doubling_saves": p.doubling_saves,
                "doubling_usd_per_day_saved": p.doubling_usd_per_day,
                "layout": fmt.layout(p.plan.layout),
            }
            for p in found.points
        ]
    ).replace([float("inf"), float("-inf")], float("nan"))


OPTIMAL_COLUMNS = ["law", "usd", "flops", "parameters", "tokens", "tokens_per_parameter", "loss",
                   "tokens_per_s", "gpu_hours_per_trillion_tokens",
                   "usd_per_trillion_tokens"]  # fmt: skip


OWN_COLUMNS = ["usd", "parameters", "parameters_text", "tokens_text", "name"]


def optimal(found: Scale) -> pd.DataFrame:
    """The compute-optimal curves as numbers."""
    curve = () if found.optimal is None else found.optimal.curve
    rows = [
        (b.law.name, b.usd, b.flops, b.parameters, b.tokens, b.tokens_per_parameter, b.loss,
         b.tokens_per_s, b.gpu_hours_per_trillion, b.usd_per_trillion)
        for b in curve
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=OPTIMAL_COLUMNS)


def optimal_drawn(found: Scale) -> pd.DataFrame:
    """The same for the chart, with the texts of its tooltips."""
    rows = optimal(found)
    return rows.assign(
        parameters_text=[fmt.tokens(x) for x in rows["parameters"]],
        tokens_text=[fmt.tokens(x) for x in rows["tokens"]],
    )


def own_run(found: Scale) -> pd.DataFrame:
    """The scenario's own run on the chart of the curves."""
    if found.optimal is None:
        return pd.DataFrame(columns=OWN_COLUMNS)
    best = found.optimal
    texts = (fmt.tokens(best.parameters), fmt.tokens(best.tokens))
    return pd.DataFrame([(best.usd, best.parameters, *texts, "This run")], columns=OWN_COLUMNS)


OPTIMAL_SHOWN = ["Budget", "Law", "Parameters", "Tokens", "Tokens a parameter", "Loss",
                 "Tokens/s", "GPU-hours / 1T", "Cost / 1T"]  # fmt: skip


def optimal_cells(found: Scale) -> list[tuple[str, ...]]:
    """The curves to be read: one budget in four of the chart's."""
    if found.optimal is None:
        return []
    half = len(found.optimal.curve) // 2
    kept = [b for n, b in enumerate(found.optimal.curve) if (n % half) % 4 == 0]
    return [
        (
            fmt.usd_short(b.usd),
            b.law.name.partition(",")[0],
            fmt.tokens(b.parameters),
            fmt.tokens(b.tokens),
            f"{b.tokens_per_parameter:.3g}",
            f"{b.loss:.3f}",
            fmt.tokens(b.tokens_per_s),
            fmt.tokens(b.gpu_hours_per_trillion),
            fmt.usd_short(b.usd_per_trillion),
        )
        for b in sorted(kept, key=lambda b: b.usd)
    ]


def optimal_shown(found: Scale) -> pd.DataFrame:
    """The same as a table of the page."""
    return pd.DataFrame(optimal_cells(found), columns=OPTIMAL_SHOWN)


def alt(found: Scale, what: str) -> str:
    """What a chart against the number of GPUs shows, for who does not see it."""
    first, last = found.points[0], found.points[-1]
    name = "Days" if what == "days" else "Dollars"

    def at(p: Point) -> str:
        value = fmt.days(p.hours_expected) if what == "days" else fmt.usd_short(p.usd_expected)
        late = fmt.days(p.hours_p90_all) if what == "days" else fmt.usd_short(p.usd_p90_all)
        return f"{value} expected and {late} at P90 with {fmt.count(p.plan.num_gpus)} GPUs"

    return f"{name} of the run against the number of GPUs: {at(first)}, {at(last)}."


def optimal_alt(found: Scale) -> str:
    """What the chart of the curves shows, for who does not see it."""
    said = "; ".join(
        f"by {b.law.name} {fmt.tokens(b.parameters)} parameters on {fmt.tokens(b.tokens)} tokens"
        for b in (found.optimal.same_usd if found.optimal else ())
    )
    return f"Parameters of the compute-optimal model against dollars. For this run's: {said}."
