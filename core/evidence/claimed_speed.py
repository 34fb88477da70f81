"""Claimed speed of a run: its utilisation, and the verdict from peaks, records and a forecast.

[K20] Kaplan et al., arXiv:2001.08361, section 2.1: training takes 6 FLOPs per parameter and token.
[P22] Chowdhery et al., "PaLM", arXiv:2204.02311, appendix B: attention, and MFU against HFU.

A claim is judged by 6 P + causal attention, P the active parameters: what guides and model cards
count. It counts embedding look-ups as the rule does, so models look a few per cent busier than they
are, those with few active parameters and a large vocabulary the most.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isclose
from typing import Literal

import numpy as np

from core.model.transformer import (
    Transformer,
    active_params,
    attention_score_flops_per_token,
    head_flops_per_token,
    matrix_flops_per_token,
)
from core.numeric import Numeric
from core.units import HOUR_S

Verdict = Literal["impossible", "not_credible", "optimistic", "plausible", "conservative"]
VERDICTS: tuple[Verdict, ...] = (
    "impossible", "not_credible", "optimistic", "plausible", "conservative"
)  # fmt: skip
MARGIN = 1.05  # over the best published run: from here on a claim is not credible
WIDER_MARGIN = 1.25  # over a share of the peak that only other accelerators or models reached
FROZEN_FLOPS = 2 / 3  # of 6 P, where only adapters are trained: no gradients of frozen weights
WEIGHT_BYTES = 2.0  # of a parameter at least: all other states may be freed, or wait on the host
QUANTISED_WEIGHT_BYTES = 0.5
# Of frozen weights with adapters: LLM.int8 (tloen/alpaca-lora issue 28: 13B on a card of 24 GB).
EIGHT_BIT_BASE_BYTES = 1.0
ROUNDING = 1.001  # printed figures have three or four digits
SAME = 0.02  # two figures of one claim that should be equal


def implied_utilisation(
    *,
    flops_per_token: Numeric,
    num_tokens: Numeric,
    gpu_hours: Numeric,
    peak_flops_per_s: Numeric,
) -> Numeric:
    """Share of the peak that a claimed token count and GPU-hours need. Above 1: impossible.

    >>> round(implied_utilisation(flops_per_token=6 * 70.6e9, num_tokens=1e12,
    ...     gpu_hours=153_600, peak_flops_per_s=989e12), 2)
    0.77
    """
    return flops_per_token * num_tokens / (gpu_hours * HOUR_S * peak_flops_per_s)


def rule_flops_per_token(model: Transformer) -> Numeric:
    """6 P: forward and backward, without the experts that a token skips. [K20]"""
    return 6 * active_params(model)


def attention_flops_per_token(model: Transformer, seq_len: Numeric) -> Numeric:
    """Causal attention scores and values, forward and backward: 6 L h s for heads of width h. [P22]

    >>> llama = Transformer(num_layers=80, hidden_size=8192, ffn_hidden_size=28672,
    ...     num_attention_heads=64, num_kv_heads=8, head_dim=128, vocab_size=128256)
    >>> round(float(attention_flops_per_token(llama, 8192.0)) / 1e9, 1)
    32.2
    """
    return 3 * attention_score_flops_per_token(model, seq_len)


def low_precision_share(model: Transformer, seq_len: Numeric) -> Numeric:
    """Share of the model FLOPs that 8- and 4-bit recipes run in low precision: the linear layers.
    Attention and the LM head stay in 16 bits (core/layout/precision.py)."""
    linear = matrix_flops_per_token(model)
    rest = attention_score_flops_per_token(model, seq_len) + head_flops_per_token(model)
    return linear / (linear + rest)


def blended_peak(*, share: Numeric, low_flops_per_s: Numeric, flops_per_s: Numeric) -> Numeric:
    """Peak of mixed precisions: `share` of the FLOPs at the low precision, the rest in 16 bits. The
    times add up, so the mean is harmonic.

    >>> round(blended_peak(share=0.9, low_flops_per_s=10_000.0, flops_per_s=2500.0))
    7692
    """
    return 1 / (share / low_flops_per_s + (1 - share) / flops_per_s)


def speed_verdict(
    *,
    share_of_peak: float,
    over_best: float | None,
    over_p10: float | None,
    over_p90: float | None,
    fits: bool = True,
    margin: float = MARGIN,
) -> Verdict:
    """Verdict on a claim, from its speed over the dense peak, the best published run of its class
    and the P10 and P90 of a forecast; None where one of these is not known.

    A claim above every published run is at least optimistic, whatever the forecast, and not
    credible by more than the margin. A claim whose weights do not fit the memory is not credible
    at any speed.

    >>> speed_verdict(share_of_peak=1.04, over_best=2.3, over_p10=3.0, over_p90=2.0)
    'impossible'
    >>> speed_verdict(share_of_peak=0.4, over_best=1.09, over_p10=1.5, over_p90=1.0)
    'not_credible'
    >>> speed_verdict(share_of_peak=0.4, over_best=0.9, over_p10=1.2, over_p90=0.8)
    'plausible'
    """
    if share_of_peak > 1:
        return "impossible"
    if (over_best is not None and over_best > margin) or not fits:
        return "not_credible"
    if (over_p90 is not None and over_p90 > 1) or (over_best is not None and over_best > ROUNDING):
        return "optimistic"
    if over_p10 is not None and over_p10 < 1:
        return "conservative"
    return "plausible"


@dataclass(frozen=True, slots=True)
class Slip:
    """A common mistake, and the factor by which it changes a figure."""

    factor: float
    sentence: str  # "would be consistent if " comes before it


def slips_of(ratio: float, usual: Iterable[Slip], *, tolerance: float = SAME) -> tuple[Slip, ...]:
    """The mistakes that explain why two figures differ by `ratio`, the closest first.

    >>> [s.factor for s in slips_of(8.1, [Slip(8.0, ""), Slip(2.0, "")])]
    [8.0]
    """
    found = [s for s in usual if isclose(ratio, s.factor, rel_tol=tolerance)]
    return tuple(sorted(found, key=lambda s: abs(float(np.log(ratio / s.factor)))))


def tokens_per_s_per_gpu_at(
    *, mfu: Numeric, peak_flops_per_s: Numeric, flops_per_token: Numeric
) -> Numeric:
    """Tokens per second of one GPU at a utilisation of its peak.

    >>> round(8 * tokens_per_s_per_gpu_at(mfu=0.45, peak_flops_per_s=989.4e12,
    ...     flops_per_token=6 * 70e9))
    8481
    """
    return np.multiply(mfu, peak_flops_per_s) / flops_per_token


def power_usd_per_gpu_hour(*, watts: Numeric, usd_per_kwh: Numeric) -> Numeric:
    """Dollars an hour for the electricity of one GPU at its power limit, and nothing else.

    >>> round(float(power_usd_per_gpu_hour(watts=700.0, usd_per_kwh=0.05)), 6)
    0.035
    """
    return np.divide(watts, 1000.0) * usd_per_kwh
