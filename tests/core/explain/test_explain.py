"""Layouts evaluated one beside another, and differences that add up."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.explain.explain import (
    TERMS,
    columns_of,
    cost_difference,
    difference,
    evaluate,
    record_of,
)
from core.memory.memory import peak_bytes
from core.money import cost as money_cost
from core.search.best import MAX_PROBABILITY_OOM
from core.search.plan import Layout
from core.time.step import PARTS, step
from tests.made_up.cases import job, layout, machine
from tests.made_up.jobs import CLUSTER, layouts

JOB = replace(job(seq_len=4096.0, global_batch_size=64.0, on=machine(usd=55.0)), num_tokens=1e10)
SECONDS = st.dictionaries(st.sampled_from(PARTS), st.floats(0, 1e4), min_size=1)


def test_a_layout_goes_into_columns_and_back():
    one = Layout(
        tp=4, pp=2, virtual_stages=3, cp=1, ep=1, etp=1, dp_replicate=2, dp_shard=4,
        sharding="hsdp", micro_batch_size=2, num_microbatches=8, recompute="selective",
        schedule="interleaved", context_parallel="ulysses", reshard_after_forward=False,
    )  # fmt: skip
    columns = columns_of([one, one], [64, 128])
    assert record_of(columns, 1) == one
    assert np.asarray(columns.num_gpus).tolist() == [64, 128]
    assert np.asarray(columns.sequence_parallel).tolist() == [1, 1]


@given(layouts())
def test_what_is_evaluated_is_the_step_and_the_memory_of_the_core(one):
    rows = replace(one, **{f.name: np.atleast_1d(getattr(one, f.name)) for f in fields(one)})
    found = evaluate(JOB, rows)
    times = step(JOB.work, rows, CLUSTER, JOB.eff)
    memory = peak_bytes(JOB.work, rows, CLUSTER, JOB.eff)
    assert found.step_s[0] == times.step_s[0]
    assert sum(v[0] for v in found.parts_s.values()) == pytest.approx(found.step_s[0])
    assert found.need_bytes[0] == pytest.approx(sum(v[0] for v in memory.values()))
    instances = math.ceil(float(np.asarray(rows.num_gpus)[0]) / 8)
    hours = money_cost.num_steps(num_tokens=1e10, seq_len=4096.0, global_batch_size=64.0)
    hours = float(hours) * found.step_s[0] / 3600
    assert found.hours[0] == pytest.approx(hours)
    assert found.gpu_hours[0] == pytest.approx(hours * instances * 8)
    assert found.usd[0] == pytest.approx(hours * instances * 55)
    assert found.fits[0] == (found.probability_oom[0] <= MAX_PROBABILITY_OOM)


def test_a_measurement_moves_seconds_hours_and_dollars_alike():
    rows = columns_of([layout(num_microbatches=1)], [64])
    plain, moved = evaluate(JOB, rows), evaluate(replace(JOB, measured_factor=1.25), rows)
    for name in ("step_s", "hours", "usd", "gpu_hours"):
        assert getattr(moved, name)[0] == pytest.approx(1.25 * getattr(plain, name)[0])
    assert moved.parts_s["matmul"][0] == pytest.approx(1.25 * plain.parts_s["matmul"][0])
    assert moved.need_bytes[0] == plain.need_bytes[0]


@given(SECONDS, SECONDS)
def test_three_terms_and_the_rest_are_the_difference(first, second):
    found = difference(first, second)
    assert len(found.terms) <= TERMS
    whole = sum(second.values()) - sum(first.values())
    assert found.more_s == pytest.approx(whole, abs=1e-6)
    told = sum(t.more_s for t in found.terms) + found.rest_s
    assert told == pytest.approx(whole, abs=1e-6)
    sizes = [abs(t.more_s) for t in found.terms]
    assert sizes == sorted(sizes, reverse=True)
    others = {*first, *second} - {t.part for t in found.terms}
    least = min(sizes, default=0.0) if len(sizes) == TERMS else 0.0
    assert all(abs(second.get(n, 0) - first.get(n, 0)) <= least for n in others)


def test_equal_steps_have_no_terms():
    found = difference({"matmul": 2.0}, {"matmul": 2.0})
    assert (found.terms, found.rest_s, found.more_s) == ((), 0.0, 0.0)


@given(*[st.floats(1, 1e7)] * 4, st.floats(0, 1e7))
def test_dollars_are_gpu_hours_and_their_price(first_hours, second_hours, first, second, other):
    more = second * second_hours - first * first_hours + other
    found = cost_difference(
        first_gpu_hours=first_hours,
        second_gpu_hours=second_hours,
        first_usd_per_gpu_hour=first,
        second_usd_per_gpu_hour=second,
        more_usd=more,
    )
    assert found.more_usd == more
    by_price = (second - first) * (first_hours + second_hours) / 2 + other
    scale = max(first, second) * max(first_hours, second_hours)
    assert found.by_price_usd == pytest.approx(by_price, abs=1e-9 * scale)
    told = found.by_gpu_hours_usd + found.by_price_usd
    assert told == pytest.approx(found.more_usd, abs=1e-9 * scale)


def test_an_equal_price_is_no_reason_for_another_cost():
    found = cost_difference(
        first_gpu_hours=100, second_gpu_hours=150, first_usd_per_gpu_hour=2,
        second_usd_per_gpu_hour=2, more_usd=100,
    )  # fmt: skip
    assert (found.by_gpu_hours_usd, found.by_price_usd) == (100, 0)
