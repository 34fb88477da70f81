"""Claims about speed, hours and dollars, worked out from accelerators, prices, published runs."""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from app.document import format as fmt
from core.evidence.claimed_speed import implied_utilisation
from core.layout import pipeline
from core.model.presets import preset
from core.model.transformer import total_params, train_flops_per_token
from core.money.cost import run_usd
from core.numeric import as_float
from core.units import HOUR_S
from hardware import facts, measured, names
from hardware.claims import PublishedClaim
from hardware.claims import claims as published
from tests.support.guides import sums
from tests.support.guides.cases import H100
from tests.support.guides.claim_text import (
    Evaluations,
    Ours,
    billions,
    exactly,
    figure,
    number,
    span,
)

GB200 = "GB200"
TOKENS_1B, TOKENS_1T = 1e9, 1e12
SEQ_LEN = 8192.0  # of the published runs that rates are compared with
PRECISIONS_16 = ("bf16",)
PRECISIONS_8 = ("fp8", "fp8-current", "fp8-blockwise", "mxfp8")


def printed(name: str) -> PublishedClaim:
    """The row of the claims table with this name."""
    return next(c for c in published() if c.id == name)


# --- pipeline bubble -----------------------------------------------------------------------------


def _bubble(virtual_stages: int) -> Ours:
    implied = as_float(
        sums.microbatches_of_bubble(
            pp=8.0, virtual_stages=1.0, bubble_fraction=printed("bubble_8").low
        )
    )
    idle, near = (
        as_float(
            pipeline.bubble_fraction(
                pp=8.0, virtual_stages=float(virtual_stages), num_microbatches=m
            )
        )
        for m in (implied, 56.0)
    )
    return exactly(
        idle,
        f"7 / ({virtual_stages} x {number(implied, 3)}) = {figure(idle, '%')}; with 56 "
        f"micro-batches {figure(near, '%')}",
    )


# --- hours and dollars at a given MFU ------------------------------------------------------------


def _rate(gpus: int, mfu: tuple[float, float], num_params: float) -> Ours:
    peak = facts.accelerator(H100).bf16_flops_per_s
    low, high = (
        as_float(
            sums.tokens_per_s(
                num_gpus=gpus, peak_flops_per_s=peak, mfu=share, flops_per_token=6 * num_params
            )
        )
        for share in mfu
    )
    return Ours(
        low=low,
        high=high,
        arithmetic=f"{gpus} x {figure(peak, 'TFLOP/s')} x {span(*mfu, '%')} / (6 x "
        f"{billions(num_params)}) = {span(low, high, 'tokens/s')}",
    )


def _hours(rate: Ours, num_tokens: float) -> Ours:
    low, high = (
        as_float(sums.run_hours(num_tokens=num_tokens, tokens_per_s=r))
        for r in (rate.high, rate.low)
    )
    return Ours(
        low=low,
        high=high,
        arithmetic=f"{fmt.tokens(num_tokens)} / ({span(rate.low, rate.high, 'tokens/s')}) "
        f"/ 3,600 s = {span(low, high, 'h', 3)}",
    )


def _usd(hours: float, gpus: int, usd_per_gpu_hour: float) -> Ours:
    usd = as_float(
        run_usd(wall_clock_hours=hours, num_instances=gpus, usd_per_instance_hour=usd_per_gpu_hour)
    )
    return exactly(
        usd,
        f"{number(hours)} h x {gpus} x ${usd_per_gpu_hour:.2f} = {figure(usd, 'USD', 6)}",
    )


_70b_8 = partial(_rate, 8, (0.45, 0.50), 70e9)
_405b_32 = partial(_rate, 32, (0.35, 0.40), 405e9)


def _printed_hours(name: str) -> float:
    """The middle of the hours that the guide prints, as input for its dollars."""
    claim = printed(name)
    return (claim.low + claim.high) / 2


# --- days that a number of GPUs takes according to a guide ----------------------------------------


def _gpu_hours(gpus: int, days: float) -> Ours:
    found = as_float(sums.run_gpu_hours(num_gpus=gpus, days=days))
    return exactly(found, f"{gpus} x {number(days)} x 24 = {number(found, 6)}")


@cache
def _published(accelerator: str, precisions: tuple[str, ...]) -> tuple[tuple[float, str], ...]:
    """Tokens/s per GPU of Llama 3 70B in the bundled published runs, and the run, slowest first."""
    runs = measured.read_runs(measured.RUNS_CSV)
    taken = (
        (runs.inputs.model_key == "llama3-70b")
        & (runs.inputs.task == "pretrain")
        & np.isin(runs.inputs.precision, precisions)
        & (runs.inputs.accelerator == names.canonical(accelerator))
        & np.asarray(runs.measured.throughput_ok, dtype=bool)
    )
    rates = runs.measured.tokens_per_s_per_gpu[taken].tolist()
    return tuple(sorted(zip(rates, runs.inputs.run_id[taken].tolist(), strict=True)))


def best_published(accelerator: str, precisions: tuple[str, ...]) -> tuple[float, str]:
    """The fastest bundled run of Llama 3 70B: tokens/s per GPU, and its name."""
    return _published(accelerator, precisions)[-1]


def implied(*, accelerator: str, gpu_hours: float, bits: int) -> tuple[float, float]:
    """Share of the dense peak that 70B on 1T tokens needs: at 6 FLOPs per parameter and token, and
    with attention and the LM head at a sequence of 8,192."""
    chip, model = facts.accelerator(accelerator), preset("llama3.1-70b").transformer
    peak = chip.bf16_flops_per_s if bits == 16 else chip.fp8_flops_per_s
    by_rule, counted = 6 * total_params(model), train_flops_per_token(model, SEQ_LEN)
    low, high = (
        as_float(
            implied_utilisation(
                flops_per_token=flops,
                num_tokens=TOKENS_1T,
                gpu_hours=gpu_hours,
                peak_flops_per_s=float(peak or "nan"),
            )
        )
        for flops in (by_rule, counted)
    )
    return low, high


def _days(gpus: int, rate: float) -> float:
    return as_float(sums.run_hours(num_tokens=TOKENS_1T, tokens_per_s=gpus * rate)) / 24


def _best_days(gpus: int, printed_days: float, accelerator: str, rate: float, run: str) -> Ours:
    """The days at the best published rate, and the rate that the printed days need."""
    hours = as_float(sums.run_gpu_hours(num_gpus=gpus, days=printed_days))
    needed, days = TOKENS_1T / (hours * HOUR_S), _days(gpus, rate)
    shares = [
        f"{span(*implied(accelerator=accelerator, gpu_hours=hours, bits=bits), '%', 3)} of "
        f"the {name} peak"
        for bits, name in ((16, "bf16"), (8, "fp8"))
    ]
    return exactly(
        days,
        f"1T / ({gpus} x {figure(rate, 'tokens/s')}) = {figure(days, 'days')} at "
        f"the best published rate ({run}). {number(printed_days)} days need "
        f"{figure(needed, 'tokens/s')} a GPU, {number(needed / rate)} times that: "
        f"{' and '.join(shares)}",
    )


def _70b_256_fp8_days() -> Ours:
    """The days at the median of the published runs; those of the best are the limit."""
    found = _published(H100, PRECISIONS_8)
    best = _best_days(256, 25, H100, *found[-1])
    middle = float(np.median([rate for rate, _ in found]))
    days = _days(256, middle)
    return exactly(
        days,
        f"{figure(days, 'days')} at {figure(middle, 'tokens/s')}, the median of {len(found)} "
        f"published runs; {best.arithmetic}",
        best.low,
    )


def _nvl72_days() -> Ours:
    best = printed("gb200_best_published")
    return _best_days(72, 14, GB200, best.low, best.source)


EVALUATED: Evaluations = {
    "bubble_8": lambda: _bubble(1),
    "bubble_8_v2": lambda: _bubble(2),
    "70b_8_rate": _70b_8,
    "70b_8_1b_hours": lambda: _hours(_70b_8(), TOKENS_1B),
    "70b_8_1b_usd": lambda: _usd(_printed_hours("70b_8_1b_hours"), 8, 2.90),
    "70b_8_1b_spot": lambda: _usd(_printed_hours("70b_8_1b_hours"), 8, 0.80),
    "70b_8_1t_hours": lambda: _hours(_70b_8(), TOKENS_1T),
    "70b_8_100m_hours": lambda: _hours(_70b_8(), 1e8),
    "405b_32_rate": _405b_32,
    "405b_32_1b_hours": lambda: _hours(_405b_32(), TOKENS_1B),
    "405b_32_1b_usd": lambda: _usd(_printed_hours("405b_32_1b_hours"), 32, 2.90),
    "70b_256_gpu_hours": lambda: _gpu_hours(256, 25),
    "70b_256_usd": lambda: _usd(25 * 24.0, 256, 3.0),
    "70b_256_days_bf16": lambda: _best_days(256, 25, H100, *best_published(H100, PRECISIONS_16)),
    "70b_256_days_fp8": _70b_256_fp8_days,
    "nvl72_gpu_hours": lambda: _gpu_hours(72, 14),
    "nvl72_usd": lambda: _usd(14 * 24.0, 72, 6.0),
    "nvl72_days": _nvl72_days,
}
