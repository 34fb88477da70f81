"""Parses a claim: the run, how fast or how long, and what it costs.

Values arrive as text from the command line or the page. An error is one sentence that names the
value as the user knows it: `--days`, or the label of a field on the page.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from app.audit.fields import OPTIONS
from app.audit.published import peak_flops_per_s, usual_seq_len
from app.command.values import model_values, parsed
from app.forecast.resolve import resolve_strict
from app.scenario.model import CUSTOM, NamedModel, model_of
from core.errors import ScenarioError, shown, unknown_name
from core.evidence.claimed_speed import (
    FROZEN_FLOPS,
    SAME,
    attention_flops_per_token,
    tokens_per_s_per_gpu_at,
)
from core.layout.precision import PRECISIONS, precision
from core.machine.accelerator import Accelerator, offers_precision
from core.machine.offer import Purchase
from core.model.transformer import active_params
from core.numeric import as_float
from core.scenario import Scenario
from core.units import HOUR_S, written_number
from hardware import facts

USUAL_SEQ_LEN = 8192
STEP_TOKENS = 512 * 8192  # tokens per step if none are given: 4.2M
MOST_STEP_TOKENS = 2.0**24
ALIASES = {"fp4": "nvfp4", "mxfp4": "nvfp4"}  # one 4-bit recipe is modelled
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One resolved claim. `scenario` is the run in 16 bits; None: the claim does not say."""

    scenario: Scenario
    model: NamedModel
    chip: Accelerator
    num_gpus: int
    num_tokens: float | None
    days: float | None
    gpu_hours: float | None
    usd: float | None
    usd_per_gpu_hour: float | None
    precision: str | None
    mfu: tuple[float, float] | None
    tokens_per_s: float | None
    params: float | None
    memory_gb: float | None
    active_params: float  # those that the claim counts, else those of the model
    rate: float  # tokens/s of one GPU, which every check uses
    rate_from: str  # in words: what the rate was computed from
    hours: float | None  # of the run, at that rate
    assumptions: tuple[str, ...]

    @property
    def all_gpu_hours(self) -> float | None:
        """GPU-hours of the run, from its days and GPUs."""
        return None if self.hours is None else self.hours * self.num_gpus

    @property
    def paid_gpu_hours(self) -> float | None:
        """GPU-hours as claimed, else from days and GPUs."""
        return self.all_gpu_hours if self.gpu_hours is None else self.gpu_hours

    @property
    def rule_flops_per_token(self) -> float:
        """FLOPs of one token by 6 P; 4 P where only adapters are trained."""
        return _flops_per_param(self.scenario.task) * self.active_params

    @property
    def flops_per_token(self) -> float:
        """FLOPs of one token: 6 P and causal attention at the sequence length."""
        seq_len = float(self.scenario.seq_len)
        attention = attention_flops_per_token(self.model.transformer, seq_len)
        return self.rule_flops_per_token + as_float(attention)


def claim_of(
    texts: Mapping[str, str | None],
    names: Mapping[str, str] = OPTIONS,
    dimensions: Mapping[str, object] | None = None,
) -> Claim:
    """The claim from typed values; `dimensions` are for the model named custom.

    ScenarioError if a value is missing, unknown or not a number.
    """
    given = {n: t.strip() for n, t in texts.items() if t is not None}
    if empty := [names[n] for n, t in given.items() if not t]:
        raise ScenarioError(f"{', '.join(empty)} without a value: leave it out or give one.")
    _require(given, names)
    numbers = {n: number_of(given[n], n, names[n]) for n in NUMBERS if n in given}
    mfu = shares_of(given["mfu"], names["mfu"]) if "mfu" in given else None
    num_gpus = _num_gpus(numbers, names)
    assumed: list[str] = []
    scenario = _scenario(given, numbers, num_gpus, names, assumed, dimensions or {})
    model, chip = model_of(scenario), facts.accelerator(scenario.gpu[0])
    recipe = _recipe(given.get("precision"), chip, names)
    active = numbers.get("params") or as_float(active_params(model.transformer))
    rate, words, hours = _rate(
        numbers, mfu, num_gpus, chip, recipe, _flops_per_param(scenario.task) * active
    )
    optional = [n for n in NUMBERS if n not in ("num_gpus", "tokens")]
    return Claim(
        scenario=scenario,
        model=model,
        chip=chip,
        num_gpus=num_gpus,
        num_tokens=numbers.get("tokens"),
        precision=recipe,
        mfu=mfu,
        active_params=active,
        rate=rate,
        rate_from=words,
        hours=hours,
        assumptions=tuple(assumed),
        **{name: numbers.get(name) for name in optional},
    )


def _require(given: Mapping[str, str], names: Mapping[str, str]) -> None:
    """Raise if a required value is missing, naming the alternatives to it."""
    if "model" in given and "config" in given:
        raise ScenarioError(f"Give {names['model']} or {names['config']}, not both.")
    lacks = [] if {"model", "config"} & {*given} else [f"{names['model']} (what is trained)"]
    if "gpu" not in given:
        lacks.append(f"{names['gpu']} (on which accelerator)")
    if "num_gpus" not in given and not {"gpu_hours", "days"} <= {*given}:
        lacks.append(
            f"{names['num_gpus']} (or {names['gpu_hours']} and {names['days']}, which give it)"
        )
    timed = [n for n in ("days", "gpu_hours", "usd") if n in given]
    if timed == ["usd"] and "usd_per_gpu_hour" not in given:
        timed = []
    if not timed and not {"tokens_per_s", "mfu"} & {*given}:
        instead = [names[n] for n in ("gpu_hours", "tokens_per_s", "mfu")]
        lacks.append(
            f"{names['days']} (how long it took; {', '.join(instead)}, or {names['usd']} with "
            f"{names['usd_per_gpu_hour']}, would do instead)"
        )
    if "tokens" not in given and (timed or not {"tokens_per_s", "mfu"} & {*given}):
        lacks.append(f"{names['tokens']} (how many tokens were trained on)")
    if lacks:
        raise ScenarioError(f"An audit needs more: missing {', '.join(lacks)}.")


def _num_gpus(numbers: Mapping[str, float], names: Mapping[str, str]) -> int:
    if "num_gpus" in numbers:
        return int(numbers["num_gpus"])
    exact = numbers["gpu_hours"] / (numbers["days"] * DAY_H)
    if not 1 <= round(exact) <= NUMBERS["num_gpus"][1] or abs(exact / round(exact) - 1) > SAME:
        raise ScenarioError(
            f"{names['gpu_hours']} over {names['days']} is {exact:.4g} GPUs all the time, which is "
            f"no whole number: give {names['num_gpus']}."
        )
    return round(exact)


def _scenario(
    given: Mapping[str, str],
    numbers: Mapping[str, float],
    num_gpus: int,
    names: Mapping[str, str],
    assumed: list[str],
    dimensions: Mapping[str, object],
) -> Scenario:
    """The run as a scenario with canonical names; assumptions are added to `assumed`."""
    values: dict[str, Any] = model_values(given.get("model"), given.get("config"))
    if values.get("model") == CUSTOM:
        values |= dimensions
    values |= {n: given[n] for n in ("seq_len", "global_batch_size", "task") if n in given}
    values |= {
        "gpu": (given["gpu"],), "num_gpus": (num_gpus,), "rank_by": "time",
        "purchase": get_args(Purchase),
    }  # fmt: skip
    if "tokens" in numbers:
        values["num_tokens"] = numbers["tokens"]
    if given["gpu"].lower() == CUSTOM:
        raise ScenarioError(
            f"{names['gpu']} must name an accelerator of the table: `runcast gpus`."
        )
    found = resolve_strict(parsed(values, written_as={n: f"{t} " for n, t in names.items()}))
    if "seq_len" not in given:
        model = model_of(found)
        usual = usual_seq_len(model.transformer)
        seq_len = min(usual or USUAL_SEQ_LEN, model.max_seq_len or usual or USUAL_SEQ_LEN)
        found = found.model_copy(update={"seq_len": seq_len})
        why = ", as most published runs of this model have" if usual == seq_len else ""
        assumed.append(f"Sequences of {seq_len:,} tokens{why}.")
    if "global_batch_size" not in given:
        batch = usual_batch(num_gpus, found.seq_len)
        found = found.model_copy(update={"global_batch_size": batch})
        assumed.append(f"{batch:,} sequences a step in the forecast.")
    return found


def _flops_per_param(task: str) -> float:
    return 6.0 * (FROZEN_FLOPS if task in ("lora", "qlora") else 1.0)


def usual_batch(num_gpus: int, seq_len: int) -> int:
    """Sequences per step that suit the GPUs: at least 4.2M tokens, and a multiple of the GPUs or,
    if that exceeds 16.8M tokens, of the GPUs divided by a power of two.

    >>> usual_batch(256, 8192), usual_batch(72, 8192), usual_batch(16_384, 8192)
    (512, 576, 2048)
    """
    unit = num_gpus
    while unit * seq_len > MOST_STEP_TOKENS and unit % 2 == 0:
        unit //= 2
    return max(math.ceil(STEP_TOKENS / seq_len / unit), 1) * unit


def _recipe(given: str | None, chip: Accelerator, names: Mapping[str, str]) -> str | None:
    """The given precision, if the accelerator supports it."""
    if given is None:
        return None
    name = given.lower().replace("-", "_")
    name = ALIASES.get(name, name)
    if name not in PRECISIONS:
        raise unknown_name("precision", given, PRECISIONS)
    takes = precisions_on(chip)
    if name not in takes:
        raise ScenarioError(
            f"{names['precision']} {given}: no source prints a peak of {chip.name} for it. It "
            f"takes {', '.join(takes)}."
        )
    return name


def precisions_on(chip: Accelerator) -> list[str]:
    """The precisions in which this accelerator can train."""
    return [
        name
        for name, p in PRECISIONS.items()
        if offers_precision(chip, name=name, matmul_bits=p.matmul_bits)
    ]


def _rate(
    numbers: Mapping[str, float],
    mfu: tuple[float, float] | None,
    num_gpus: int,
    chip: Accelerator,
    recipe: str | None,
    flops_per_token: float,
) -> tuple[float, str, float | None]:
    """Tokens/s of one GPU, what they were computed from, and hours; the most direct figure wins."""
    tokens = numbers.get("tokens")
    gpu_hours, words = None, ""
    if "days" in numbers:
        gpu_hours, words = numbers["days"] * DAY_H * num_gpus, "tokens, GPUs and days"
    elif "gpu_hours" in numbers:
        gpu_hours, words = numbers["gpu_hours"], "tokens and GPU-hours"
    elif "usd" in numbers and "usd_per_gpu_hour" in numbers and "tokens_per_s" not in numbers:
        gpu_hours = numbers["usd"] / numbers["usd_per_gpu_hour"]
        words = "tokens, dollars and price"
    if gpu_hours is not None and tokens is not None:
        return tokens / (gpu_hours * HOUR_S), words, gpu_hours / num_gpus
    if "tokens_per_s" in numbers:
        rate, words = numbers["tokens_per_s"] / num_gpus, "tokens per second"
    else:
        bits = 16 if recipe is None else precision(recipe).matmul_bits
        share = mfu[1] if mfu else 0.0
        rate = as_float(
            tokens_per_s_per_gpu_at(
                mfu=share,
                peak_flops_per_s=peak_flops_per_s(chip, bits) or math.nan,
                flops_per_token=flops_per_token,
            )
        )
        words = f"an MFU of {share:.3g} of the {bits}-bit peak, by 6 P"
    hours = None if tokens is None else tokens / (rate * num_gpus) / HOUR_S
    return rate, words, hours


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
