"""Peaks, and what guides print as inputs: networks, power, failures. Each is compared with ours."""

from __future__ import annotations

from functools import partial

from core.numeric import as_float
from core.units import to_si
from hardware import facts
from hardware.instances import find_instance
from tests.support.guides import claim_text, sums
from tests.support.guides.cases import H100
from tests.support.guides.claim_text import FORECAST_DIGITS, Ours, exactly, figure, number
from tests.support.guides.runs import GB200, PRECISIONS_8, best_published, printed

_DAYS, _GPUS = 54.0, 16_384.0  # of Llama 3 405B; source in claims.csv


def _peak(accelerator: str, quantity: str, unit: str, devices: int = 1) -> Ours:
    chip = facts.accelerator(accelerator)
    one = getattr(chip, quantity)
    source = chip.sources[quantity]
    many = f"{devices} x " if devices > 1 else ""
    return exactly(
        devices * one,
        f"{many}{figure(one, 'PFLOP/s')} dense ({source.ref}) = {figure(devices * one, unit)}",
    )


def _v6e_vs_h100() -> Ours:
    v6e, h100, v5e = (facts.accelerator(n).bf16_flops_per_s for n in ("TPU-v6e", H100, "TPU-v5e"))
    return exactly(
        v6e / h100,
        f"{figure(v6e, 'TFLOP/s')} / {figure(h100, 'TFLOP/s')} = {number(v6e / h100, 2)}x; "
        f"against the v5e: / {figure(v5e, 'TFLOP/s')} = {number(v6e / v5e, 2)}x",
    )


def _gb200_best() -> Ours:
    rate, run = best_published(GB200, PRECISIONS_8)
    return exactly(
        rate, f"{figure(rate, 'tokens/s')} is the best of the shipped runs, in fp8 ({run})"
    )


def _nvl72_power() -> Ours:
    watts = facts.accelerator(GB200).tdp_watts or float("nan")
    return exactly(72 * watts, f"72 x {figure(watts, 'W')} = {figure(72 * watts, 'kW')}")


def _network(provider: str, instance: str, gpus: int = 1) -> Ours:
    found = find_instance(provider, instance)
    gbit = float((found and found.scale_out_gbit_per_s) or "nan")
    share = to_si(gbit, "Gbit/s") / gpus
    over = f" / {gpus}" if gpus > 1 else ""
    source = "" if found is None else f" ({found.source}, {found.source_date})"
    return exactly(share, f"{number(gbit)} Gbit/s{over} = {figure(share, 'Gbit/s')}{source}")


def _incidents() -> Ours:
    count = printed("llama3_interruptions").low
    share = printed("llama3_hardware_share").low
    every = as_float(sums.interruptions_per_week(count=count, days=_DAYS, gpus=_GPUS))
    return Ours(
        low=share * every,
        high=every,
        arithmetic=f"{number(count)} / 54 days x 7 / 16.384 thousand H100 = "
        f"{figure(every, 'per week', FORECAST_DIGITS)}, {figure(share, '%')} of them GPU or "
        f"network: {claim_text.span(share * every, every, 'per week', FORECAST_DIGITS)}",
        digits=FORECAST_DIGITS,
    )


EVALUATED: claim_text.Evaluations = {
    "b200_fp8": partial(_peak, "B200-180GB", "fp8_flops_per_s", "PFLOP/s"),
    "b200_fp4": partial(_peak, "B200-180GB", "fp4_flops_per_s", "PFLOP/s"),
    "nvl72_fp4": partial(_peak, GB200, "fp4_flops_per_s", "EFLOP/s", 72),
    "v6e_vs_h100": _v6e_vs_h100,
    "gb200_best_published": _gb200_best,
    "nvl72_power": _nvl72_power,
    "efa_p5": partial(_network, "aws", "p5.48xlarge"),
    "ndr_nd_h100": partial(_network, "azure", "Standard_ND96isr_H100_v5"),
    "tcpx_a3": partial(_network, "gcp", "a3-highgpu-8g", 8),
    "llama3_interruptions": partial(
        claim_text.nothing, "466 interruptions in all, less 47 that were planned = 419"
    ),
    "llama3_hardware_share": partial(
        claim_text.nothing, "58.7% GPUs and their memory + 8.4% network switches and cables"
    ),
    "incidents_per_1000": _incidents,
}
