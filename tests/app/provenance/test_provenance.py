"""Where each number of a plan comes from: it is the plan's own, every input has a kind, and every
source is one that a table holds."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from app.document.chart_files import parquet
from app.document.csv import csv_bytes
from app.document.vocabulary import KINDS
from app.forecast import answer as forecast_answer
from app.forecast import calibrations
from app.forecast.resolve import resolve_strict
from app.plan import document as plan_document
from app.provenance import document as provenance_document
from app.provenance import hints as provenance_hints
from app.provenance import records as found_in
from app.provenance.age import is_old_price, price_age
from app.provenance.record import record, walked
from core.cost.uncertain import certain
from core.errors import ScenarioError
from core.machine.rented import Terms
from core.scenario import Scenario
from hardware import facts
from hardware.efficiency import read_entries
from tests.made_up import plans as made_up
from tests.made_up.results import machine as measured_machine
from tests.made_up.results import result as made_up_result

ROOT = Path(__file__).parents[3]
DOCUMENT = ROOT / "docs/provenance.md"
TODAY = dt.date(2026, 11, 22)
H100 = {"gpu": "H100-80GB-SXM", "cloud": "aws", "num_gpus": "64", "model": "llama3.1-8b"}
CUSTOM = {
    "gpu": "custom", "custom_tflop_per_s": "900", "custom_memory_gib": "80",
    "custom_memory_gb_per_s": "3000", "custom_scale_up_gb_per_s": "400",
    "custom_scale_out_gbit_per_s": "100", "custom_usd_per_gpu_hour": "2", "num_gpus": "16",
    "model": "llama3.1-8b", "cloud": "",
}  # fmt: skip
CASES = {
    "dense": {},
    "experts": {"model": "mixtral-8x7b", "num_gpus": "256", "precision": "fp8"},
    "pipeline": {"model": "llama3.1-70b", "num_gpus": "128", "tp": "4", "pp": "4",
                 "schedule": "zero_bubble", "virtual_stages": "1", "power_cap_watts": "500"},
    "deep": {"model": "llama3.1-70b", "num_gpus": "128", "pp": "8", "recompute": "full"},
    "long": {"seq_len": "131072", "global_batch_size": "64", "async_checkpoint": "1"},
    "adapters": {"model": "llama3.1-70b", "num_gpus": "8", "task": "qlora", "num_tokens": "1e8",
                 "global_batch_size": "64", "epochs": "3"},
    "host": {"model": "llama3.1-70b", "num_gpus": "8", "offload_optimizer": "cpu",
             "offload_params": "cpu", "global_batch_size": "512"},
    "measured": {"num_gpus": "8", "anchor_tokens_per_s_per_gpu": "9000", "anchor_num_gpus": "8",
                 "anchor_gpu": "H100-80GB-SXM", "anchor_layout": "tp=1,pp=1,sharding=fsdp2"},
    "custom": CUSTOM,
    "never fails": {"failures_per_node_day": "0", "job_failures_per_day": "0"},
    "never ends": {"failures_per_node_day": "1000", "job_failures_per_day": "5000"},
    "beyond": {"model": "llama3.1-405b", "num_gpus": "16384", "network_gbit_per_gpu": "400",
               "stack": "megatron-lm"},
}  # fmt: skip


def scenario_of(**given):
    values = {k: v for k, v in {**H100, **given}.items() if v != ""}
    return resolve_strict(Scenario.parse(values))


def best(scenario):
    return forecast_answer.answer(scenario, top=1).plans[0]


def records_of(**given):
    scenario = scenario_of(**given)
    return found_in.provenance_of(scenario, best(scenario))


@pytest.fixture(scope="module")
def plain():
    return records_of()


def check(records):
    """What holds of every record of every plan."""
    for r in walked(records):
        assert r.kind in KINDS, r.key
        assert r.text, r.key
        assert len({i.key for i in r.inputs}) == len(r.inputs), r.key
        if r.kind == "computed":
            assert r.topic or r.note or r.inputs, r.key
        else:
            assert r.source is not None, r.key
            assert r.source.ref, r.key


@pytest.mark.parametrize("name", CASES)
def test_every_number_rests_on_something(name):
    check(records_of(**CASES[name]))


@settings(
    max_examples=6,
    phases=[Phase.explicit, Phase.generate],  # a search each: not shrunk
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    model=st.sampled_from(["llama3.2-1b", "llama3.1-8b", "qwen2.5-7b", "deepseek-v2-lite"]),
    gpu=st.sampled_from(["H100-80GB-SXM", "A100-80GB-SXM", "B200-180GB"]),
    num_gpus=st.sampled_from([8, 16, 64]),
    batch=st.sampled_from([64, 256, 1024]),
    seq_len=st.sampled_from([2048, 8192]),
    tokens=st.floats(1e9, 1e13),
    precision=st.sampled_from(["bf16", "fp8"]),
    optimizer=st.sampled_from(["adamw", "muon", "adafactor"]),
)
def test_random_plans_rest_on_something(
    model, gpu, num_gpus, batch, seq_len, tokens, precision, optimizer
):
    asked = {
        "model": model, "gpu": gpu, "num_gpus": str(num_gpus), "global_batch_size": str(batch),
        "seq_len": str(seq_len), "num_tokens": repr(tokens), "optimizer": optimizer,
        "precision": "bf16" if gpu.startswith("A100") else precision,
    }  # fmt: skip
    scenario = scenario_of(**asked)
    answer = forecast_answer.answer(scenario, top=1)
    for plan in answer.plans:
        check(found_in.provenance_of(scenario, plan))


def test_a_number_without_a_source_would_be_seen(plain):
    price = next(r for r in walked(plain) if r.key == "usd_per_instance_hour")
    with pytest.raises(AssertionError, match="usd_per_instance_hour"):
        check((replace(price, source=None),))


def test_what_is_shown_is_the_plans_own():
    scenario = scenario_of()
    plan = best(scenario)
    found = {r.key: r for r in walked(found_in.provenance_of(scenario, plan))}
    assert found["run_usd"].value == plan.usd.p50
    assert found["expected_usd"].value == plan.expected_usd
    assert found["expected_hours"].value == plan.expected_hours
    assert found["failures_only_usd"].value == plan.cost.failures_only_usd
    assert found["failures_only_hours"].value == plan.cost.failures_only_hours
    assert found["billed_hours"].value == plan.billed_hours
    assert found["throughput_sigma"].value == plan.throughput_sigma
    assert found["usd_per_instance_hour"].value == plan.offer.usd_per_hour
    assert found["run_usd_p10"].value == plan.usd.p10
    assert found["wall_clock_hours"].value == plan.wall_clock_hours
    assert found["mfu"].value == plan.mfu
    assert found["hfu"].value == plan.hfu
    assert found["gpu_hours"].value == plan.gpu_hours
    assert found["probability_oom"].value == plan.probability_oom
    assert found["memory_capacity_bytes"].value == plan.memory_capacity_bytes
    for name, seconds in plan.step_s.items():
        assert found[f"step_{name}_s"].value == seconds
    for name, size in plan.memory_bytes.items():
        assert found[f"memory_{name}_bytes"].value == size
    shown = dict(plan_document.facts(scenario, plan, TODAY))
    assert found["expected_usd"].text in shown["Expected cost"]
    assert found["expected_hours"].text in shown["Expected time"]
    for key in ("run_usd", "wall_clock_hours", "goodput"):
        assert found[key].text in shown["Without failures"]
    assert found["mfu"].text in shown["Utilisation"]
    assert found["network_bytes_per_s"].text in shown["Network"]


def test_sources_are_those_of_the_tables(plain):
    every = {r.key: r for r in walked(plain)}
    chip = facts.accelerator("H100-80GB-SXM")
    assert every["peak_flops_per_s"].source == chip.sources["bf16_flops_per_s"]
    assert every["peak_flops_per_s"].kind == "published"
    assert every["matmul_flops_per_s"].kind == "measured"
    bases = {(e.basis, e.date) for e in read_entries()}
    for r in every.values():
        if r.key.startswith("efficiency_"):
            basis = r.source.ref.removeprefix("hardware/efficiency.csv: ")
            assert (basis, r.source.date) in bases
            assert (r.kind == "fitted") == basis.startswith("fitted")
    assert all(r.source.ref for r in every.values() if r.kind != "computed")


def test_a_source_that_is_not_recorded_says_so():
    bare = record("x", "X", 1.0, "", "published")
    assert provenance_document.source_text(bare) == "not recorded"


def test_typed_in_or_a_default():
    every = {r.key: r for r in walked(records_of(global_batch_size="256"))}
    assert every["global_batch_size"].kind == "given"
    assert every["seq_len"].kind == "assumed"
    typed = {r.key: r for r in walked(records_of(**CUSTOM))}
    assert typed["peak_flops_per_s"].kind == typed["usd_per_instance_hour"].kind == "given"
    assert typed["matmul_ceiling"].kind == "assumed"


def test_your_measurement_is_among_the_inputs():
    every = {r.key: r for r in walked(records_of(**CASES["measured"]))}
    moved = every["measurement_factor"]
    assert moved.kind == "measured"
    assert moved.source.printed == "9000 tokens/s a GPU"
    assert moved in every["step_matmul_s"].inputs


def test_a_calibrated_plan_names_what_was_measured_where(tmp_path, monkeypatch):
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path))
    name = calibrations.keep(made_up_result(measured_machine(matmul=0.9)))
    records = records_of(calibration=name)
    check(records)
    every = {r.key: r for r in walked(records)}
    assert every["matmul_ceiling"].kind == every["measured_matmul"].kind == "measured"
    assert name in every["measured_matmul"].source.ref
    assert every["measured_matmul"] in every["step_matmul_s"].inputs
    assert "measurement_factor" not in every  # the plan's step is the machine's own


def test_a_plan_without_a_price_says_so():
    scenario = scenario_of()
    plan = best(scenario)
    unpriced = replace(
        plan,
        usd_per_gpu_hour=None,
        offer=replace(plan.offer, usd_per_hour=None),
        cost=made_up.cost(plan.cost.hours, None),
    )
    found = {r.key: r for r in found_in.provenance_of(scenario, unpriced)}
    assert (found["run_usd"].value, found["run_usd"].text) == (None, "no price known")
    check(tuple(found.values()))


def test_what_a_price_book_adds_is_among_the_inputs():
    scenario = scenario_of()
    plan = best(scenario)
    terms = Terms(egress_usd=100.0, data_usd_per_hour=2.0, credit_usd=500.0)
    machine = replace(plan.job.machine, terms=terms)
    booked = replace(plan, job=replace(plan.job, machine=machine))
    found = found_in.provenance_of(scenario, booked)
    check(found)
    cost = {r.key: r for r in found}["run_usd"]
    assert {"storage_usd_per_hour", "egress_usd", "credit_usd"} <= {i.key for i in cost.inputs}
    assert next(i for i in cost.inputs if i.key == "credit_usd").kind == "given"


def test_energy_is_worked_out_on_request():
    scenario = scenario_of()
    found = found_in.provenance_of(scenario, best(scenario), with_energy=True)
    energy = next(r for r in found if r.key == "energy_kwh")
    assert {i.key for i in energy.inputs} >= {"machines_kwh", "building_kwh"}
    check(found)


@pytest.mark.parametrize(
    ("seen", "text", "colour"),
    [
        ("2026-11-22", "price of today", "green"),
        ("2026-11-21", "price 1 day old", "green"),
        ("2026-11-19", "price 3 days old: more than a day", "orange"),
        ("2026-11-14", "old price: 8 days old", "red"),
        ("2026-06", "old price: 6 months old", "red"),
        ("last spring", "price of unknown age", "orange"),
    ],
)
def test_the_age_of_a_price(seen, text, colour):
    plan = made_up.plan(offer=made_up.offer(observed_at=seen))
    assert price_age(plan, TODAY) == (text, colour)


def test_what_is_owned_has_no_age_of_a_price():
    assert price_age(made_up.plan(offer=made_up.offer(purchase="owned")), TODAY) is None
    assert price_age(made_up.plan(usd=None), TODAY) is None


def test_an_old_price_is_marked_among_the_inputs(plain):
    price = next(r for r in walked(plain) if r.key == "usd_per_instance_hour")
    aged = replace(price, source=replace(price.source, date="2026-01-01"))
    fresh = replace(price, source=replace(price.source, date="2026-11-22"))
    assert is_old_price(aged, TODAY)
    assert not is_old_price(fresh, TODAY)
    cost = record("c", "C", 1.0, "", "computed", inputs=(aged,))
    assert provenance_document.inputs(cost, TODAY).texts()["Age"][0].endswith("an old price")


def test_hints_fit_and_name_the_source():
    scenario = scenario_of()
    plan = best(scenario)
    for name in provenance_hints.HINTS:
        text = provenance_hints.hint(name, plan, TODAY)
        assert 30 < len(text) <= provenance_hints.MOST, name
    assert "rows of hardware/measured_runs.csv" in provenance_hints.hint("time", plan, TODAY)
    dear = replace(plan, offer=replace(plan.offer, source="x" * 900))
    assert len(provenance_hints.hint("cost", dear, TODAY)) <= provenance_hints.MOST
    unpriced = replace(plan, cost=replace(plan.cost, total=certain(math.nan)))
    assert provenance_hints.hint("price", unpriced, TODAY).startswith("No price")
    with pytest.raises(ScenarioError, match="number 'costs'"):
        provenance_hints.hint("costs", plan)


def test_every_number_column_of_the_ranked_table_has_a_hint():
    plan = made_up.plan(usd=made_up.spread(1.0, 2.0, 3.0))
    plan = replace(plan, cost=replace(plan.cost, paid=made_up.spread(7.0, 8.0, 9.0)))
    table = plan_document.ranked(Scenario(deadline_days=9, budget_usd=9.0), [plan])
    plain_names = {"#", "GPU", "GPUs", "Cloud", "Instance", "Purchase", "Layout", "Stack", "Region"}
    heads = {c.head for c in table.columns} - plain_names - {plan_document.LIMITS}
    assert heads == {*provenance_hints.COLUMNS}


def test_the_table_holds_everything_and_no_cell_is_a_formula(plain):
    frame = provenance_document.whole(plain, TODAY).frame()
    assert len(frame) == len({r.key for r in walked(plain)})
    assert set(frame["Kind"]) <= set(KINDS)
    rows = list(csv.DictReader(io.StringIO(csv_bytes(frame, "?v=1").decode())))
    assert not [c for row in rows for c in row.values() if str(c).startswith(("=", "+", "@"))]
    held = pq.read_table(io.BytesIO(parquet(frame, "?v=1")))
    assert held.column_names == list(frame.columns)
    used = frame.set_index("Number")["Used in"]
    assert "run_usd" in used["usd_per_instance_hour"].split()


def documented(section):
    text = DOCUMENT.read_text(encoding="utf-8").partition(f"\n## {section}\n")[2]
    return set(re.findall(r"^\| `([^`]+)` \|", text.partition("\n## ")[0], re.MULTILINE))


def test_columns_kinds_and_keys_are_documented(plain):
    frame = provenance_document.whole(plain, TODAY).frame()
    assert documented("Columns of the table") == set(frame.columns)
    assert documented("Kinds") == set(KINDS)


JOB = ("--model", "llama3.1-8b", "--tokens", "1T", "--seq-len", "8k",
       "--global-batch-size", "512", "--gpu", "h100", "--num-gpus", "64")  # fmt: skip


def test_the_command_prints_documented_json(run):
    status, out, err = run("where", *JOB, "--json")
    assert (status, err) == (0, "")
    assert "NaN" not in out
    found = json.loads(out)
    emitted = {*found, *(f"plan.{k}" for k in found["plan"])}
    emitted |= {f"numbers[].{k}" for n in found["numbers"] for k in n}
    assert {k.removesuffix("[]") for k in documented("Keys of `--json`")} == emitted
    by_key = {n["key"]: n for n in found["numbers"]}
    assert {*found["shown"]} <= {*by_key}
    assert all(i in by_key for n in found["numbers"] for i in n["inputs"])
    for n in found["numbers"]:
        assert n["kind"] in KINDS


def test_one_number_with_all_that_it_rests_on(run):
    status, out, err = run("where", *JOB, "--number", "usd_per_gpu_hour")
    assert (status, err) == (0, "")
    assert "rests on usd_per_instance_hour, gpus_per_instance" in out
    assert "  from " in out
    status, _, err = run("where", *JOB, "--number", "usd_per_gpu_hours")
    assert status == 2
    assert "Did you mean 'usd_per_gpu_hour'" in err


# --- the section of the page ---------------------------------------------------------------------


def script(query, opened, number_key):
    import streamlit as st

    from app.forecast.answer import answer
    from app.forecast.resolve import resolve
    from app.provenance import page as provenance_page
    from app.web import link
    from core.scenario import Scenario

    if opened:
        st.session_state[provenance_page.OPEN] = True
    if number_key:
        st.session_state[provenance_page.NUMBER] = number_key
    link.edit(resolve(Scenario.from_query(query)[0])[0])
    found = answer(link.scenario(), top=1)
    provenance_page.draw(link.scenario(), found, found.plans[0])


def page(opened=True, number_key=None):
    return AppTest.from_function(
        script, default_timeout=60, args=(H100, opened, number_key)
    ).run()  # fmt: skip


def said(drawn):
    texts = [e.value for kind in ("markdown", "caption", "code") for e in drawn.get(kind)]
    return "\n".join(texts).replace("\\", "").replace("\N{WORD JOINER}", "")


def test_a_closed_section_works_nothing_out():
    drawn = page(opened=False)
    assert not drawn.exception
    assert not drawn.selectbox


def test_the_section_shows_the_number_its_inputs_and_kind():
    drawn = page(number_key="run_usd")
    assert not drawn.exception
    text = said(drawn)
    assert ":gray-badge[computed]" in text
    (inputs,) = [t.value for t in drawn.table]
    assert list(inputs["Kind"]) == ["computed", "computed", "published"]
    assert "numbers: " in text
    drawn = page()
    assert "**Cost of the run, expected: " in said(drawn)  # what the page says first
    drawn.selectbox[0].set_value("mfu").run()
    assert "**MFU: " in said(drawn)


def test_a_source_with_an_address_is_shown_as_text():
    drawn = page(number_key="peak_flops_per_s")
    assert not drawn.exception
    (line,) = [m.value for m in drawn.markdown if m.value.startswith("Source")]
    source = facts.accelerator("H100-80GB-SXM").sources["bf16_flops_per_s"].ref
    assert source in said(drawn)
    assert not re.search(r"https?:(?=//)", line)  # Markdown makes no link of it
