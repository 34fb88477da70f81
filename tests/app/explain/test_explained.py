"""Explanations of real plans: they say what the plans say, and what the formulas say."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pytest

from app.document import vocabulary
from app.explain import document, explained
from app.explain import words as explain_words
from app.explain.as_json import explanation_json
from app.explain.question import explanation
from app.explain.sensitivity import searched_again, sensitivity_of
from app.forecast import answer as forecast_answer
from app.plan import input_words
from app.scenario.layout import layout_text
from core.errors import ScenarioError
from core.evidence.uncertainty import throughput_terms
from core.explain.bottleneck import GROUPS, RESOURCES
from core.explain.explain import columns_of, difference
from core.explain.sensitivity import OF_CLUSTER, OF_WORK
from core.layout.workload import OFFLOAD
from core.memory.memory import peak_bytes
from core.numeric import Z_90
from core.scenario import Scenario
from core.time.step import step
from tests.support.documented_keys import paths

DOCUMENT = Path(__file__).parents[3] / "docs/explanations.md"
AWS = {"gpu": "H100-80GB-SXM", "cloud": "aws", "num_tokens": "1e12"}
SCENARIOS = (
    {**AWS, "num_gpus": "64"},
    {**AWS, "model": "llama3.1-70b", "num_gpus": "256"},
    {**AWS, "model": "mixtral-8x7b", "num_gpus": "64"},
    {**AWS, "num_gpus": "8", "task": "lora", "num_tokens": "1e9"},
    {**AWS, "num_gpus": "64", "anchor_tokens_per_s_per_gpu": "7000", "anchor_num_gpus": "64",
     "anchor_layout": "tp=2,sharding=zero1"},
    {**AWS, "model": "llama3.1-70b", "num_gpus": "8", "num_tokens": "1e10"},  # with offload
    {"gpu": "A100-80GB-SXM,H100-80GB-SXM", "num_gpus": "8,32", "purchase": "on_demand,spot"},
)  # fmt: skip


@pytest.fixture(scope="module", params=SCENARIOS, ids=lambda s: ",".join(map(str, s.values())))
def answered(request):
    scenario = Scenario.parse(request.param)
    return scenario, forecast_answer.answer(scenario, top=20)


def test_a_plan_evaluated_again_is_itself(answered):
    _, answer = answered
    for plan in answer.plans:
        job = plan.job
        # Offers share a search only if nothing of their machines differs, latency included: what
        # is left is what was measured.
        assert job.measured_factor == pytest.approx(np.exp(-plan.nearby.moved_log), abs=1e-9)
        rows = columns_of([plan.layout], [plan.num_gpus])
        own = explained.figures_of(explained.evaluate(job, rows))
        assert own.step_s == pytest.approx(sum(plan.step_s.values()))
        if plan.chosen_correction is None:  # a correction belongs to the choice, not the layout
            assert own.hours == pytest.approx(plan.hours.p50)
            assert own.usd == pytest.approx(plan.usd.p50)
        assert own.probability_oom == pytest.approx(plan.probability_oom)
        work = replace(
            job.work,
            offload_optimizer=OFFLOAD[plan.layout.offload_optimizer],
            offload_params=OFFLOAD[plan.layout.offload_params],
        )
        peak = peak_bytes(work, rows, job.cluster, job.eff)
        assert own.memory_bytes == pytest.approx({k: float(v[0]) for k, v in peak.items()})
        times = step(work, rows, job.cluster, job.eff)
        assert own.step_s == pytest.approx(float(times.step_s[0]) * job.measured_factor)


def test_two_plans_differ_by_their_parts_and_their_dollars(answered):
    _, answer = answered
    plan = answer.plans[0]
    for other in answer.plans[1:]:
        found = explained.against_plan(plan, other)
        more = sum(other.step_s.values()) - sum(plan.step_s.values())
        assert sum(t.more_s for t in found.step.terms) + found.step.rest_s == pytest.approx(
            more, abs=1e-9
        )
        assert found.hours == other.hours.p50 - plan.hours.p50
        assert found.cost.by_gpu_hours_usd + found.cost.by_price_usd == pytest.approx(
            other.usd.p50 - plan.usd.p50, abs=1e-6
        )


def test_the_other_plan_is_one_that_can_be_told_apart(answered):
    _, answer = answered
    other = explained.other_of(answer, answer.plans[0])
    if other is not None and any(p.usd.p50 != answer.plans[0].usd.p50 for p in answer.plans):
        first = answer.plans[0]
        assert other.rank > 1
        assert not (
            math.isclose(other.usd.p50, first.usd.p50, rel_tol=1e-3)
            and math.isclose(other.hours.p50, first.hours.p50, rel_tol=1e-3)
        )
    for plan in answer.plans[1:3]:
        assert explained.other_of(answer, plan).rank == 1


def test_the_winner_has_no_better_neighbour(answered):
    _, answer = answered
    why = explained.why(answer.plans[0], None)
    assert why.runner_up is None
    # A layout that repeats less is taken for the faster one: norms alone may beat attention by a
    # thousandth.
    assert why.next_layout.step.more_s >= -0.002 * why.next_layout.step.first_s
    assert why.next_changes.num_fit > 0


def test_the_causes_of_an_interval_are_the_interval(answered):
    _, answer = answered
    for plan in answer.plans[:4]:
        found = sensitivity_of(plan)
        at = plan.tokens_per_s
        assert found.sigma == pytest.approx(math.log(at.p90 / at.p10) / (2 * Z_90), rel=1e-6)
        assert sum(u.share for u in found.unknowns) == pytest.approx(1.0)


def test_a_layout_searched_again_is_what_the_answer_finds():
    """Sequence length is a field of the scenario: its search is a scenario of its own."""
    scenario = Scenario.parse({**AWS, "num_gpus": "64"})
    plan = forecast_answer.answer(scenario, top=1).plans[0]
    found = searched_again(plan)
    assert {a.name for a in found} >= {"seq_len", "global_batch_size", "memory_bytes"}
    for a in found:
        if a.name in ("seq_len", "global_batch_size"):
            changed = Scenario.parse({**AWS, "num_gpus": "64", a.name: str(int(a.to))})
            best = forecast_answer.answer(changed, top=1).plans[0]
            assert a.layout == best.layout
            more = best.wall_clock_hours / plan.wall_clock_hours - 1
            assert a.time == pytest.approx(more, abs=1e-12)


def test_more_memory_never_makes_the_best_layout_slower(answered):
    _, answer = answered
    found = {(a.name, a.to > a.value): a for a in searched_again(answer.plans[0])}
    assert found["memory_bytes", True].time <= 1e-9
    less = found["memory_bytes", False].time
    assert less is None or less >= -1e-2  # runs near the other layout may say a little else


def test_larger_accelerators_have_more_memory_and_a_price():
    scenario = Scenario.parse({**AWS, "num_gpus": "64"})
    job = forecast_answer.answer(scenario, top=1).plans[0].job
    machines = explained.larger_machines(job)
    assert 1 <= len(machines) <= explained.MOST_MACHINES
    for machine in machines:
        assert machine.cluster.memory_bytes > job.cluster.memory_bytes
        assert machine.offer.usd_per_hour > 0
    assert len({m.accelerator.name for m in machines}) == len(machines)


def test_what_waits_on_the_host_is_part_of_a_plan_and_of_a_named_layout():
    scenario = Scenario.parse({**AWS, "model": "llama3.1-70b", "num_gpus": "8"})
    plan = forecast_answer.answer(scenario, top=1).plans[0]
    assert plan.layout.offload_optimizer == "cpu"
    found = explained.named(plan.job, layout_text(plan.layout), like=plan.layout)
    assert found.layout == plan.layout
    assert found.figures.step_s == pytest.approx(sum(plan.step_s.values()))
    # A layout that does not speak of the host keeps all it has on the device.
    silent = explained.named(plan.job, "tp=8", like=plan.layout)
    assert silent.layout.offload_optimizer == "none"
    assert silent.verdict == "does_not_fit"
    assert any("on the host" in c.offload for c in silent.changes.ranked)


def test_what_fits_is_only_told_what_is_better():
    scenario = Scenario.parse({**AWS, "num_gpus": "64"})
    plan = forecast_answer.answer(scenario, top=1).plans[0]
    for text in ("tp=8,pp=4", layout_text(plan.layout)):
        found = explained.named(plan.job, text, like=plan.layout, most=99)
        assert found.verdict == "fits"
        assert found.changes.num_fit > len(found.changes.ranked) > 0
        assert all(c.usd < found.figures.usd for c in found.changes.ranked)


# --- what is asked on the command line -----------------------------------------------------------


def explain(query, **asked):
    scenario = Scenario.parse(query)
    return explanation(scenario, forecast_answer.answer(scenario, top=20), **asked)


@pytest.fixture(scope="module")
def documents():
    """Every kind of explanation as its JSON."""
    small = {**AWS, "num_gpus": "64"}
    found = (
        explain(small),
        explain(small, layout="tp=8"),
        explain(small, layout="tp=3"),
        explain(small, layout="tp=8", against="tp=4,pp=2"),
        explain({**small, "model": "llama3.1-405b"}, layout="tp=8"),
        explain({**AWS, "num_gpus": "8", "model": "llama3.1-405b", "stack": "generic"}),
    )
    return [orjson.loads(orjson.dumps(explanation_json(f))) for f in found]


def test_the_document_lists_exactly_the_keys(documents):
    """Layouts, parts and figures have names of their own; a difference and what makes faster are
    documented once."""
    told = set(re.findall(r"^\| `([^`]+)` \|", DOCUMENT.read_text("utf-8"), re.MULTILINE))
    emitted = set()
    for path in (p for d in documents for p in paths(d)):
        inner = re.sub(r"^(difference|why\.next_layout)\.", "why.runner_up.", path)
        inner = re.sub(r"^why\.faster\.", "faster.", inner)
        inner = re.sub(r"^why\.layouts_tried\.", "layouts[].changes_tried.", inner)
        if not re.search(
            r"(layout|figures|changed|parts_s|memory_bytes)\.(?!step_s|parts_s$|hours|usd|gpu_hours"
            r"|memory_bytes$|capacity_bytes|probability_oom)", inner
        ):  # fmt: skip
            emitted.add(inner)
    assert emitted == told


def test_a_difference_in_json_adds_up(documents):
    found = [d["difference"] for d in documents if d["difference"]]
    assert len(found) >= 2
    for d in found:
        terms = sum(t["more_s"] for t in d["step"]["terms"]) + d["step"]["rest_s"]
        assert terms == pytest.approx(d["step"]["more_s"], abs=1e-9)


def test_what_was_not_asked_for_is_null(documents):
    plan, one, illegal, two, *_ = documents
    assert plan["why"]
    assert plan["sensitivity"]["searched_again"]
    assert (plan["layouts"], plan["difference"], plan["faster"]) == ([], None, None)
    assert (one["why"], one["sensitivity"]) == (None, None)
    assert one["faster"]["step_s"] == pytest.approx(one["layouts"][0]["figures"]["step_s"])
    assert illegal["layouts"][0]["figures"] is None
    assert (illegal["difference"], illegal["faster"]) == (None, None)
    step_s = two["layouts"][0]["figures"]["step_s"]
    assert two["difference"]["step"]["first_s"] == pytest.approx(step_s)
    step_s = two["layouts"][1]["figures"]["step_s"]
    assert two["difference"]["step"]["second_s"] == pytest.approx(step_s)


def test_where_nothing_fits_the_nearest_miss_is_explained(documents):
    found = documents[-1]
    assert found["nothing_fits"]
    assert found["plan"] is None
    (missed,) = found["layouts"]
    assert missed["verdict"] == "does_not_fit"
    assert missed["shortage"]["over_bytes"] > 0
    assert missed["changes"]


def test_where_nothing_is_offered_a_named_layout_is_a_sentence():
    query = {"gpu": "V100-32GB-SXM", "precision": "fp8", "num_gpus": "8"}
    assert explain(query).named == ()
    with pytest.raises(ScenarioError, match="only be explained with"):
        explain(query, layout="tp=8")


def test_a_rank_beyond_the_plans_is_a_sentence():
    with pytest.raises(ScenarioError, match="--rank 900"):
        explain({**AWS, "num_gpus": "64"}, rank=900)


# --- words ---------------------------------------------------------------------------------------


def test_every_resource_and_group_has_words():
    for name in (*RESOURCES, *OF_WORK, *OF_CLUSTER, "num_tokens", "usd_per_instance_hour"):
        assert name in input_words.INPUTS, name
    assert set(GROUPS) <= {*explain_words.GROUPS, *vocabulary.STEP_PARTS}
    assert set(throughput_terms(estimate_known())) == set(input_words.UNKNOWNS)


def estimate_known():
    from core.evidence.uncertainty import Circumstances

    return Circumstances()


def test_sentences_hold_the_figures(answered):
    _, answer = answered
    plan = answer.plans[0]
    why = explained.why(plan, explained.other_of(answer, plan))
    sentence = explain_words.next_sentence(why.faster)
    if why.faster.next is not None:
        assert explain_words.fmt.seconds(why.faster.next.exposed_s) in sentence
        assert explain_words.fmt.percent(why.faster.next.share) in sentence
    found = sensitivity_of(plan)
    rows = document.tornado(found)
    assert set(rows["side"]) == {"lower", "higher"}
    assert rows["order"].max() < document.DRAWN
    frame = document.effects(found).only(*document.FILE).frame()
    assert list(frame) == [
        "input", "name", "kind", "value", "low", "high", "time_low", "time_high", "usd_low",
        "usd_high", "oom_low", "oom_high",
    ]  # fmt: skip
    assert list(frame["input"]) == [input_words.input_name(e.name) for e in found.effects]
    assert np.array_equal(frame["time_low"], [e.time_low for e in found.effects])
    terms = document.terms(why.next_layout.step).frame()
    assert list(terms["part"][-2:]) == ["All else", "Whole step"]
    for of in ("first_s", "second_s", "more_s"):
        *parts, whole = terms[of]
        assert sum(parts) == pytest.approx(whole)
    assert len(document.bottlenecks(why.faster).rows) == len(why.faster.bottlenecks)


def test_a_layout_of_a_plan_with_another_written_layout_is_the_same_text(answered):
    _, answer = answered
    plan = answer.plans[0]
    text = layout_text(plan.layout)
    assert explained.named(plan.job, text, like=plan.layout).text == text


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("scale_out_bytes_per_s", 50e9, "400 Gbit/s"),
        ("scale_up_bytes_per_s", 450e9, "450 GB/s"),
        ("memory_bytes", 2.0**36, "64 GiB"),
        ("seq_len", 8192.0, "8,192"),
        ("num_tokens", 1e12, "1T"),
        ("scale_up_hop_s", 3.1e-6, "3.1 µs"),
        ("usd_per_instance_hour", 55.04, "$55.04/h"),
        ("peak_flops_per_s", 989e12, "989 TFLOP/s"),
        ("matmul", 0.9121, "0.912"),
        ("host_slowdown", 1.0, "1 times the usual"),
    ],
)
def test_inputs_are_shown_with_their_unit(name, value, text):
    assert input_words.input_value(name, value) == text


@pytest.mark.parametrize(
    ("more_s", "said"),
    [
        (0.4, "takes 400 ms longer a step (15.6 s to 16 s): "),
        (0.00839, "takes 8.39 ms longer a step (15.601 s to 15.609 s): "),
        (-0.00839, "takes 8.39 ms less a step (15.601 s to 15.593 s): "),
        (6e-5, "takes 60 µs longer a step: "),  # in 15.60 s: no reader would find it
    ],
)
def test_two_steps_have_the_digits_that_tell_them_apart(more_s, said):
    # The parts move far, the whole hardly does.
    first = {"matmul": 15.6009, "bubble": 0.0}
    second = {"matmul": 15.1009, "bubble": 0.5 + more_s}
    sentence = explain_words.difference_sentence(difference(first, second), "The other")
    assert sentence.startswith(f"The other {said}")
