"""Explanations as rows and columns: what the page lists and draws, and its CSV holds."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from app.document import format as fmt
from app.document import vocabulary
from app.explain import words as told
from app.explain.explained import Named
from app.explain.sensitivity import Again, Sensitivity
from app.plan.input_words import input_name, input_value
from core.explain.bottleneck import Faster
from core.explain.explain import Difference
from core.explain.sensitivity import SOFTWARE

DRAWN = 10  # inputs of the tornado chart: the others move less than the least of them
LISTED = 12  # bottlenecks and changes that a table lists


def terms(step: Difference) -> pd.DataFrame:
    """Two steps side by side: the parts that differ most, all else, the whole."""
    rows = [
        (vocabulary.step_part(t.part), fmt.seconds(t.first_s), fmt.seconds(t.second_s),
         told.more(t.more_s))
        for t in step.terms
    ]  # fmt: skip
    others = [
        whole - sum(getattr(t, which) for t in step.terms)
        for which, whole in (("first_s", step.first_s), ("second_s", step.second_s))
    ]
    rows += [
        ("All else", fmt.seconds(max(others[0], 0.0)), fmt.seconds(max(others[1], 0.0)),
         told.more(step.rest_s)),
        ("Whole step", fmt.seconds(step.first_s), fmt.seconds(step.second_s),
         told.more(step.more_s)),
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["Part of a step", "This", "Other", "More"])


def bottlenecks(faster: Faster) -> pd.DataFrame:
    """Every part of the step, its share, and what would hide it."""
    rows = [
        (told.group(b.group), f"{fmt.seconds(b.exposed_s)} ({fmt.percent(b.share)})",
         told.remedy_sentence(b, faster))
        for b in faster.bottlenecks
    ][:LISTED]  # fmt: skip
    return pd.DataFrame(rows, columns=["Part of a step", "Time", "What would shorten it"])


def changes(named: Named) -> pd.DataFrame:
    """What was changed of a named layout, and what that takes."""
    rows = [
        (
            told.changed(c),
            fmt.usd_short(c.usd) if math.isfinite(c.usd) else fmt.days(c.hours),
            fmt.seconds(c.step_s),
            f"{fmt.gib(c.need_bytes)} of {fmt.gib(c.capacity_bytes)}",
        )
        for c in named.changes.ranked[:LISTED]
    ]
    return pd.DataFrame(rows, columns=["Change", "Run", "Step", "Memory per GPU"])


def effects(found: Sensitivity) -> pd.DataFrame:
    """Every input with what time and dollars become: numbers, fractions of the plan's own."""
    return pd.DataFrame(
        {
            "input": [input_name(e.name) for e in found.effects],
            "name": [e.name for e in found.effects],
            "kind": [e.kind for e in found.effects],
            "value": [e.value for e in found.effects],
            "low": [e.low for e in found.effects],
            "high": [e.high for e in found.effects],
            "time_low": [e.time_low for e in found.effects],
            "time_high": [e.time_high for e in found.effects],
            "usd_low": [e.usd_low for e in found.effects],
            "usd_high": [e.usd_high for e in found.effects],
            "oom_low": [e.oom_low for e in found.effects],
            "oom_high": [e.oom_high for e in found.effects],
        }
    )


def tornado(found: Sensitivity) -> pd.DataFrame:
    """The inputs that move the answer most, two rows each: lower and higher."""
    shown = [e for e in found.effects if e.swing > 0][:DRAWN]
    priced = any(np.isfinite(e.usd_low) for e in shown)
    rows = []
    for order, e in enumerate(shown):
        sides = ((e.low, e.usd_low, e.time_low), (e.high, e.usd_high, e.time_high))
        for side, (value, usd, time) in zip(("lower", "higher"), sides, strict=True):
            change = value / e.value - 1
            rows.append(
                {
                    "input": input_name(e.name),
                    "order": order,
                    "side": side,
                    "at": input_value(e.name, value),
                    "moved": usd if priced else time,
                    "text": f"{input_name(e.name)} {_signed(change)} "
                    f"({input_value(e.name, value)}): "
                    f"time {_signed(time)}" + (f", cost {_signed(usd)}" if priced else ""),
                }
            )
    columns = ["input", "order", "side", "at", "moved", "text"]
    return pd.DataFrame(rows, columns=columns)


def sensitivity(found: Sensitivity, *, software: bool = True) -> pd.DataFrame:
    """The same as text, for a table: what a tenth less and more of each input does."""
    rows = [
        (
            input_name(e.name),
            input_value(e.name, e.value),
            *(f"{_signed(t)} / {_signed(u)}" if np.isfinite(u) else _signed(t)
              for t, u in ((e.time_low, e.usd_low), (e.time_high, e.usd_high))),
        )
        for e in found.effects
        if software or e.kind != SOFTWARE
    ]  # fmt: skip
    percent = fmt.percent(found.change)
    columns = ["Input", "Now", f"-{percent}: time / cost", f"+{percent}: time / cost"]
    return pd.DataFrame(rows, columns=columns)


def again(found: tuple[Again, ...]) -> pd.DataFrame:
    """What a change does where the best layout is searched again."""
    rows = [
        (
            input_name(a.name),
            f"{input_value(a.name, a.value)} to {input_value(a.name, a.to)}",
            "nothing fits" if a.time is None else _signed(a.time),
            "" if a.layout is None else fmt.layout_short(a.layout) if a.changed else "the same",
        )
        for a in found
    ]
    return pd.DataFrame(rows, columns=["Input", "From, to", "Time", "Best layout then"])


def _signed(fraction: float) -> str:
    if not np.isfinite(fraction):
        return fmt.MISSING
    if abs(fraction) < 5e-5:
        return "±0%"
    return f"{'+' if fraction > 0 else '-'}{fmt.percent(abs(fraction))}"
