"""Absurd but legal numbers: an answer in bounded time whose every number is finite and not below
zero, or a sentence; and whoever pays more an hour never pays less for the run."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from app.forecast import answer as forecast_answer
from app.forecast import resolve
from app.forecast.failure_inputs import given_numbers
from app.plan.as_json import plan_json
from core.errors import RuncastError
from core.scenario import Scenario

MOST_CPU_S = 10.0  # of one answer; estimate.SEARCH_S bounds the search itself
# One machine, so that an example takes milliseconds; every field of it may be replaced.
MACHINE = {
    "gpu": "custom", "custom_tflop_per_s": 989, "custom_memory_gib": 80,
    "custom_memory_gb_per_s": 3350, "custom_scale_up_gb_per_s": 450,
    "custom_scale_out_gbit_per_s": 400, "custom_usd_per_gpu_hour": 2.5, "num_gpus": "64",
}  # fmt: skip
ABSURD = ["-1", "0", "nan", "inf", "1e999", "1e12", "9" * 400, "", "x", "true", ",", "1,1,1"]
KEPT = {"gpu", "cloud", "purchase", "prices", "price_book", "calibration", "model", "v"}
# Differences and corrections have a sign; fitted coefficients that went in may, too.
SIGNED = re.compile(
    r"inputs|change|difference|delta|offset|per_year|slope|log_|moved|margin|residual|weight$"
)


SCHEMA = Scenario.model_json_schema()["properties"]


def ends_of(name: str) -> list[str]:
    """The least and the most that a number of the link may be, as its field says it."""
    text = str(SCHEMA[name])
    found = re.findall(r"'(?:exclusiveM|m)(?:in|ax)imum': ([-+.\de]+)", text)
    return [f"{float(f):.12g}" for f in found]


def values_of(name: str) -> st.SearchStrategy[str]:
    return st.sampled_from([*ends_of(name), *ABSURD])


FIELDS = {n: values_of(n) for n in Scenario.model_fields if n not in KEPT}
queries = st.dictionaries(st.sampled_from(sorted(FIELDS)), st.none(), max_size=8).flatmap(
    lambda some: st.fixed_dictionaries({n: FIELDS[n] for n in some})
)


def numbers(found: object, path: str = "") -> Iterator[tuple[str, float]]:
    """Every number of a JSON document with its place."""
    if isinstance(found, dict):
        for key, value in found.items():
            yield from numbers(value, f"{path}.{key}")
    elif isinstance(found, list | tuple):
        for value in found:
            yield from numbers(value, path)
    elif isinstance(found, int | float) and not isinstance(found, bool):
        yield path, float(found)


@settings(max_examples=40)
@given(queries)
def test_whatever_is_asked_every_number_of_the_answer_is_one(query):
    scenario, _ = Scenario.from_query({**MACHINE, **query})
    began, refusal = time.process_time(), ""
    try:
        resolved = resolve.resolve(scenario)[0]
        given_numbers(resolved)
        answer = forecast_answer.answer(resolved, top=5)
    except RuncastError as e:
        refusal = str(e)
    assert time.process_time() - began < MOST_CPU_S
    if refusal:
        assert refusal.endswith((".", "?"))
        return
    assert answer.plans or answer.nothing_fits
    wrong = {
        path: value
        for path, value in numbers(plan_json(resolved, answer))
        if not math.isfinite(value) or (value < 0 and not SIGNED.search(path))
    }
    assert wrong == {}


@settings(max_examples=15)
@given(
    usd=st.floats(1e-3, 1e5),
    times=st.floats(1.001, 10),
    job=st.fixed_dictionaries(
        {
            "num_gpus": st.sampled_from(["1", "8", "64", "1000", "131072"]),
            "num_tokens": st.sampled_from(["1e3", "1e9", "1e16"]),
            "global_batch_size": st.sampled_from(["1", "512", "4194304"]),
        }
    ),
)
def test_who_pays_more_an_hour_never_pays_less_for_the_run(usd, times, job):
    cheap, dear = (
        forecast_answer.answer(
            resolve.resolve_strict(
                Scenario.parse({**MACHINE, **job, "custom_usd_per_gpu_hour": rate})
            ),
            top=20,
        )
        for rate in (usd, usd * times)
    )
    assert bool(cheap.plans) == bool(dear.plans)
    before = {p.layout: p for p in cheap.plans}
    for plan in dear.plans:
        other = before.get(plan.layout)
        if other is not None:
            assert plan.usd.p50 >= other.usd.p50
            assert plan.tokens_per_s == other.tokens_per_s
    if cheap.plans:
        assert min(p.usd.p50 for p in dear.plans) > min(p.usd.p50 for p in cheap.plans)


def test_the_numbers_that_are_walked_are_those_of_the_whole_answer():
    """A walk that missed a branch would find nothing wrong in it."""
    scenario = resolve.resolve_strict(Scenario.parse(MACHINE))
    found = plan_json(scenario, forecast_answer.answer(scenario, top=2))
    walked = {path for path, _ in numbers(found)}
    assert len(walked) > 60
    assert walked >= {".plans.step_s.total", ".plans.memory_bytes.capacity", ".plans.usd"}
    bad = {"plans": [{"a": 1.0}, {"a": [math.nan]}], "b": -1}
    assert [p for p, v in numbers(bad) if not v >= 0] == [".plans.a", ".b"]
