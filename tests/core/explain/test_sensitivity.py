"""How far an answer moves with each input: every figure, computed again one at a time."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings

from core.evidence import uncertainty
from core.evidence.uncertainty import Circumstances
from core.explain.explain import columns_of
from core.explain.sensitivity import (
    JOB,
    LEAST,
    MACHINE,
    OF_CLUSTER,
    OF_EFFICIENCY,
    PRICE,
    SOFTWARE,
    sensitivities,
    unknowns,
)
from core.machine.efficiency import Efficiency
from core.memory.memory import peak_bytes
from core.time.step import step
from tests.made_up.cases import NUM_GPUS, job, layout, legal, machine
from tests.made_up.jobs import CLUSTER, SHIPPED


def run(found, one, name=None, kind=None, value=0.0):
    """Hours, dollars and chance of out of memory with one input at another value."""
    work, cluster, eff, tokens, usd = found.work, CLUSTER, found.eff, found.num_tokens, 50.0
    rows = columns_of([one], [NUM_GPUS])
    if name == "num_tokens":
        tokens = value
    elif kind == JOB:
        if name == "global_batch_size":
            larger = value / work.global_batch_size
            rows = replace(rows, num_microbatches=np.asarray(rows.num_microbatches) * larger)
        work = replace(work, **{name: value})
    elif kind == MACHINE:
        cluster = replace(cluster, **{name: value})
    elif kind == SOFTWARE:
        eff = replace(eff, **{name: value})
    elif kind == PRICE:
        usd = value
    seconds = float(step(work, rows, cluster, eff).step_s[0])
    steps = math.ceil(tokens / (work.seq_len * work.global_batch_size))
    hours = steps * seconds / 3600
    need = sum(float(v[0]) for v in peak_bytes(work, rows, cluster, eff).values())
    sigma = found.question.memory_sigma
    oom = uncertainty.probability_above(cluster.memory_bytes, p50=need, sigma=sigma)
    return hours, hours * 8 * usd, float(oom)


@settings(max_examples=12, deadline=None)
@given(legal())
def test_every_effect_is_the_forecast_with_that_input(job):
    found, one = job
    effects = sensitivities(found, columns_of([one], [NUM_GPUS]))
    hours, usd, _ = run(found, one)
    assert len(effects) > 5
    for e in effects:
        for at, time, cost, oom in (
            (e.low, e.time_low, e.usd_low, e.oom_low),
            (e.high, e.time_high, e.usd_high, e.oom_high),
        ):
            then = run(found, one, e.name, e.kind, at)
            assert time == pytest.approx(then[0] / hours - 1, abs=1e-9)
            assert cost == pytest.approx(then[1] / usd - 1, abs=1e-9)
            assert oom == pytest.approx(then[2], abs=1e-9)


def test_effects_are_a_tenth_each_way_and_the_largest_comes_first():
    effects = sensitivities(job(), columns_of([layout()], [NUM_GPUS]))
    assert all(
        (e.low, e.high) == pytest.approx((0.9 * e.value, 1.1 * e.value))
        for e in effects
        if e.name not in ("power_share", "expert_imbalance")
    )
    swings = [e.swing for e in effects]
    assert swings == sorted(swings, reverse=True)
    by_name = {e.name: e for e in effects}
    assert by_name["num_tokens"].time_high == pytest.approx(0.1, abs=1e-3)
    price = by_name["usd_per_instance_hour"]
    assert (price.time_low, price.time_high) == (0, 0)
    assert (price.usd_low, price.usd_high) == pytest.approx((-0.1, 0.1))
    assert by_name["peak_flops_per_s"].time_low > 0 > by_name["peak_flops_per_s"].time_high


def test_what_moves_nothing_is_not_told():
    """Full sharding has no pipeline: its exposed share has no part in the step."""
    effects = sensitivities(job(), columns_of([layout()], [NUM_GPUS]))
    names = {e.name for e in effects}
    assert "pp_exposed" not in names
    assert "ep_exposed" not in names
    assert "scale_out_bytes_per_s" in names
    assert all(e.swing >= LEAST or e.oom_low != e.oom_high for e in effects)


def test_memory_moves_the_chance_to_run_out_and_not_the_time():
    found, rows = job(), columns_of([layout()], [NUM_GPUS])
    need = sum(v[0] for v in peak_bytes(found.work, rows, CLUSTER, found.eff).values())
    tight = replace(CLUSTER, memory_bytes=1.1 * float(need))
    found = replace(found, cluster=tight)
    effect = next(e for e in sensitivities(found, rows) if e.name == "memory_bytes")
    assert (effect.time_low, effect.time_high) == (0, 0)
    assert effect.oom_low > effect.oom_high


def test_fractions_stay_where_they_have_a_meaning():
    bounds = {"matmul": (0.6, 0.95)}
    effects = sensitivities(job(), columns_of([layout()], [NUM_GPUS]), bounds=bounds)
    matmul = next(e for e in effects if e.name == "matmul")
    assert matmul.high == 0.95
    power = next(e for e in effects if e.name == "power_share")
    assert (power.high, power.time_high) == (1.0, 0.0)


def test_without_a_price_time_alone_is_told():
    found = job()
    free = replace(found, machine=machine(usd=None))
    effects = sensitivities(free, columns_of([layout()], [NUM_GPUS]))
    assert effects
    assert all(math.isnan(e.usd_low) and e.swing > 0 for e in effects if e.name != "memory_bytes")
    assert "usd_per_instance_hour" not in {e.name for e in effects}


def test_every_fraction_and_every_rate_is_an_input():
    widths = {f.name for f in fields(Efficiency) if f.name.endswith(("_sigma", "_skew"))}
    assert {*OF_EFFICIENCY} | widths == {f.name for f in fields(Efficiency)}
    shape = {"scale_up_domain", "gpus_per_node", "multiprocessors", "newer_than_flash2",
             "fast_exponentials", "torus_axes", "linked_peers", "switch_reduces",
             "network_reduces", "pools_memory"}  # fmt: skip
    # Of the peak and of the network's rate, which are inputs.
    ratios = {"ceiling", "fp8_ratio", "fp4_ratio", "scale_out_all_to_all"}
    # A calibration's corrections of fractions that are inputs themselves.
    measured = {"attention_factor", "elementwise_factor", "matmul_at", "matmul_weights"}
    assert {*OF_CLUSTER} | shape | ratios | measured == {f.name for f in fields(type(CLUSTER))}


def test_the_variances_of_an_interval_add_up():
    eff = SHIPPED["generic"]
    known = Circumstances(unknown_stack=1.0, doublings=2.0, network_guessed=1.0, experts=1.0)
    found = unknowns(eff, known)
    whole = float(np.asarray(uncertainty.throughput_sigma(eff, known)))
    assert math.sqrt(sum(u.sigma**2 for u in found)) == pytest.approx(whole)
    assert sum(u.share for u in found) == pytest.approx(1.0)
    shares = [u.share for u in found]
    assert shares == sorted(shares, reverse=True)
    assert "adapters_sigma" not in {u.name for u in found}


def test_a_measurement_takes_from_what_it_shares():
    eff, known = SHIPPED["generic"], Circumstances(unknown_stack=1.0, doublings=2.0)
    plain = {u.name: u.sigma for u in unknowns(eff, known)}
    left = {u.name: u.sigma for u in unknowns(eff, known, variance_left=0.25)}
    assert left["throughput_sigma"] == pytest.approx(plain["throughput_sigma"] / 2)
    assert left["unknown_stack_sigma"] == pytest.approx(plain["unknown_stack_sigma"] / 2)
    assert left["scale_sigma"] == plain["scale_sigma"]
