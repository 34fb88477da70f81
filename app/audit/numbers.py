"""Parses the numbers of a claim as people type them. Other units are an error, never converted."""

from __future__ import annotations

import math
import re

from core.errors import ScenarioError, shown
from core.units import written_number

DAY_H = 24.0

# Each number of a claim: what it is, the largest allowed value, an example.
NUMBERS = {
    "tokens": ("tokens", 1e16, "1e12 or 1T"),
    "num_gpus": ("GPUs", 131_072, "256"),
    "days": ("days", 36_500, "25"),
    "gpu_hours": ("GPU-hours", 1e12, "153600"),
    "tokens_per_s": ("tokens per second of the whole run", 1e13, "460k"),
    "usd": ("dollars", 1e13, "460k"),
    "usd_per_gpu_hour": ("dollars per GPU and hour", 1e6, "2.90"),
    "params": ("parameters", 1e15, "70B"),
    "memory_gb": ("GB of one GPU", 1e6, "64"),
}

_UNIT = re.compile(r"([\d.,_]+)\s*-?\s*([a-z]+)", re.IGNORECASE)
_HOURS = {
    "h": 1.0, "hr": 1.0, "hrs": 1.0, "hour": 1.0, "hours": 1.0, "d": 24.0, "day": 24.0,
    "days": 24.0, "w": 168.0, "week": 168.0, "weeks": 168.0, "month": 730.5, "months": 730.5,
    "year": 8766.0, "years": 8766.0,
}  # fmt: skip
_SIZES = {"thousand": "k", "million": "M", "billion": "B", "trillion": "T", "bn": "B", "tn": "T"}
_SHARE = r"(\d+\.?\d*|\.\d+)\s*(%?)"
_SHARES = re.compile(rf"{_SHARE}(?:\s*(?:-|to|\N{{EN DASH}})\s*{_SHARE})?")


def number_of(text: str, name: str, called: str) -> float:
    """A number above 0 in the unit of its field; any other unit is an error, never converted."""
    what, largest, example = NUMBERS[name]
    bare = text.removeprefix("$").strip() if name.startswith("usd") else text
    try:
        value = written_number(bare)
    except ValueError:
        meant = _meant(bare, name)
        hint = f" Was {meant} meant?" if meant else f" An example: {example}."
        raise ScenarioError(f"{called} {shown(text)} is no number of {what}.{hint}") from None
    if value <= 0:
        raise ScenarioError(f"{called} {shown(text)} is not above 0: {what}, such as {example}.")
    if value > largest:
        raise ScenarioError(f"{called} {shown(text)} is more than {largest:,.0f} {what}.")
    if name == "num_gpus" and value != int(value):
        raise ScenarioError(f"{called} {shown(text)} is not a whole number of GPUs.")
    return value


def _meant(text: str, name: str) -> str:
    """The number in the field's unit that a text with another unit probably means."""
    match = _UNIT.match(text.strip())
    if match is None:
        return ""
    try:
        value = written_number(match[1])
    except ValueError:
        return ""
    unit = match[2].lower()
    if name == "days" and unit in _HOURS:
        return f"{value * _HOURS[unit] / DAY_H:g}"
    if unit in _SIZES:
        return f"{value:g}{_SIZES[unit]}"
    return f"{value:g}" if value > 0 else ""


def shares_of(text: str, called: str) -> tuple[float, float]:
    """A share of the peak, 0.45 or 45%, or a range between two shares."""
    match = _SHARES.fullmatch(text)
    if match is None:
        raise ScenarioError(
            f"{called} {shown(text)} is no share of the peak like 0.45, 45% or 45-50%."
        )
    low, high = float(match[1]), float(match[3] or match[1])
    if "%" in (match[2], match[4]):
        low, high = low / 100, high / 100
    if not (math.isfinite(high) and 0 < low <= high):
        raise ScenarioError(f"{called} {shown(text)} is not a share above 0, the lower one first.")
    if high > 1:
        hint = f" Was {low:g}% meant?" if match[3] is None and 1 < low <= 100 else ""
        raise ScenarioError(
            f"{called} {shown(text)} is more than the whole peak, which is 1 or 100%.{hint}"
        )
    return low, high
