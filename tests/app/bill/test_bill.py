"""Everything on the bill: lines that add up, and what is not priced or not known."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.bill import document as bill_document
from app.bill.as_json import bill_json
from app.bill.bill import bill_of, bill_sentences
from app.forecast import answer as forecast_answer
from app.forecast import price_book, resolve
from app.plan.planned import asked_plan
from app.prices.book_file import read_book
from app.risk.risk import risk_of
from core.errors import ScenarioError
from core.money import bill as lines
from core.money.bill import Figure, credit, hours_of
from core.scenario import Scenario
from hardware import power
from pricing.book.files import save_book
from tests.pricing.book.test_price_book import OWNED, csv_of
from tests.support.documented_keys import keys

DOCUMENT = Path(__file__).parents[3] / "docs/bill.md"
ASKED = {
    "model": "llama3.1-8b", "num_tokens": "1e12", "gpu": "H100-80GB-SXM", "cloud": "aws",
    "num_gpus": "64",
}  # fmt: skip
JOB = ["bill", "--model", "llama3.1-8b", "--tokens", "1e12", "--seq-len", "8k"]
JOB += ["--global-batch-size", "512", "--gpu", "h100", "--cloud", "aws", "--num-gpus", "64"]
STORAGE = {"kind": "storage", "provider": "aws", "usd_per_gb_month": "0.02", "checkpoints": "10"}
DATA = {"kind": "storage", "provider": "aws", "usd_per_gb_month": "0.03", "data_gb": "1000"}
EGRESS = {"kind": "egress", "provider": "aws", "usd_per_gb": "0.09", "checkpoints": "1"}
CREDIT = {"kind": "credit", "usd": "1000"}
CUSTOM = {
    "gpu": "custom", "custom_tflop_per_s": "990", "custom_memory_gib": "80",
    "custom_memory_gb_per_s": "3350", "custom_scale_up_gb_per_s": "450",
    "custom_scale_out_gbit_per_s": "400", "custom_usd_per_gpu_hour": "2",
}  # fmt: skip


@pytest.fixture
def books(monkeypatch, tmp_path):
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path))

    def keep(*rows, name="acme"):
        today = price_book.today()
        save_book(read_book(csv_of(*rows), file_name="b.csv", name=name, today=today))

    return keep


def billed(**more):
    scenario = resolve.resolve_strict(Scenario.parse({**ASKED, **more}))
    plan = asked_plan(scenario, forecast_answer.answer(scenario, top=1))
    return scenario, plan, bill_of(scenario, plan)


def line(bill, name):
    return next(x for x in (*bill.lines, *bill.energy.lines) if x.name == name)


def columns(figure):
    return figure.lower, figure.expected, figure.upper


amounts = st.floats(0, 1e9)
figures = st.builds(Figure, lower=amounts, expected=amounts, upper=amounts)


@given(
    figures, amounts, st.floats(0, 1), st.floats(0, 1), st.floats(0, 1e4), st.floats(0, 1e4)
)  # fmt: skip
def test_hours_of_every_column_sum_and_none_is_negative(
    training, written, less, more, failing, waiting
):
    free = training.expected + written
    run = Figure(
        lower=free * (1 + less / 2), expected=free + failing + waiting, upper=free * (2 + more)
    )
    found = hours_of(
        training=training, failure_free=free, run=run, failing=failing, waiting=waiting
    )
    parts = (found.training, found.checkpoints, found.failures, found.waiting)
    for n, whole in enumerate(columns(found.total)):
        assert whole == pytest.approx(sum(columns(p)[n] for p in parts))
        assert all(columns(p)[n] >= 0 for p in parts)
    assert found.total.expected == pytest.approx(run.expected, rel=1e-9, abs=1e-6)
    if failing + waiting > 1e-3:
        assert found.waiting.expected == pytest.approx(waiting, abs=1e-6 * free + 1e-6)


@given(st.lists(figures, max_size=6), amounts)
def test_a_total_is_the_sum_of_its_lines_and_a_credit_never_pays_out(found, usd):
    whole = lines.total(found)
    assert whole.expected == pytest.approx(sum(f.expected for f in found))
    taken = credit(others=whole, credit_usd=usd)
    left = lines.total([whole, taken])
    assert all(x >= 0 for x in columns(left))
    assert left.upper == pytest.approx(max(whole.upper - usd, 0.0), abs=1e-3)


def test_the_machines_are_those_of_the_risk_and_everything_adds_up():
    scenario, plan, bill = billed(wait_s="7200", experiment_share="0.5")
    risk = risk_of(scenario, plan)
    names = ("instances", "checkpoints", "failures", "waiting", "startup")
    machines = [line(bill, n).figure for n in names]
    assert lines.total(machines).expected == pytest.approx(risk.usd.expected)
    waited = risk.lost_hours["waiting"]
    per_hour = plan.usd.p50 / plan.billed_hours
    assert machines[4].expected == pytest.approx(plan.startup_hours * per_hour)
    assert machines[3].expected == pytest.approx(waited * per_hour)
    assert waited > 0
    assert machines[2].upper + machines[3].upper == pytest.approx(
        risk.usd.p90 - plan.usd.p50 - machines[1].upper
    )
    for n in range(3):
        whole = sum(columns(x.figure)[n] for x in bill.lines if x.figure is not None)
        assert columns(bill.total)[n] == pytest.approx(whole)
        energy = sum(columns(x.figure)[n] for x in bill.energy.lines)
        assert columns(bill.energy.total)[n] == pytest.approx(energy)
    of_run = lines.total(machines)
    assert line(bill, "experiments").figure.expected == pytest.approx(of_run.expected / 2)
    assert bill.total.lower < bill.total.expected < bill.total.upper
    assert bill.total.expected == pytest.approx(1.5 * risk.usd.expected)


def test_what_nobody_priced_is_named_and_in_no_total():
    scenario, _, bill = billed()
    assert [x.name for x in bill.not_priced] == ["checkpoint_storage", "data_storage", "egress"]
    assert all(x.figure is None and "price book" in x.how for x in bill.not_priced)
    assert line(bill, "electricity").status == "in_price"
    said = " ".join(bill_sentences(scenario, bill))
    assert "Not priced, and in no total: storage of checkpoints, storage of data, traffic" in said
    assert "embodied carbon" in said
    experiments = line(bill, "experiments")
    assert (experiments.status, experiments.figure.upper) == ("assumed", 0.0)
    assert "arXiv:2503.05804" in experiments.how


def test_a_price_book_prices_what_is_stored_and_moved(books):
    books(STORAGE, DATA, EGRESS, CREDIT)
    _, plan, bill = billed(price_book="acme")
    size = 8_030_261_248 * 14
    hours = bill.hours.total.expected
    kept, data = line(bill, "checkpoint_storage"), line(bill, "data_storage")
    assert kept.figure.expected == pytest.approx(10 * size / 1e9 * 0.02 * hours / 730)
    assert data.figure.expected == pytest.approx(1000 * 0.03 * hours / 730)
    assert line(bill, "egress").figure.upper == pytest.approx(size / 1e9 * 0.09)
    assert line(bill, "credits").figure.expected == -1000
    assert not bill.not_priced
    whole = sum(x.figure.expected for x in bill.lines if x.figure is not None)
    assert bill.total.expected == pytest.approx(whole)
    # Without failures it is the plan.
    lost = [line(bill, n).figure.expected for n in ("checkpoints", "failures", "waiting")]
    stored = (kept.figure.expected + data.figure.expected) * (1 - plan.hours.p50 / hours)
    assert bill.total.expected - sum(lost) - stored == pytest.approx(plan.usd.p50)


def test_sizes_that_are_given_replace_those_of_the_book_at_its_dearest_rate(books):
    books(STORAGE, DATA)
    _, _, bill = billed(price_book="acme", dataset_tb="40", kept_checkpoints="5")
    hours = bill.hours.total.expected
    assert line(bill, "data_storage").figure.expected == pytest.approx(40_000 * 0.03 * hours / 730)
    assert line(bill, "checkpoint_storage").figure.expected == pytest.approx(
        5 * 8.030261248 * 14 * 0.03 * hours / 730
    )


def test_idle_gpus_are_named():
    _, _, bill = billed(num_gpus="60")
    assert "4 of their GPUs stay idle and are paid" in line(bill, "instances").how
    _, _, whole = billed()
    assert "no GPU is idle" in line(whole, "instances").how


def test_energy_is_between_a_measured_draw_and_full_power():
    _, plan, bill = billed()
    hours = bill.hours.total
    watts = 700 * 1.821
    machines = line(bill, "machines").figure
    trains = hours.expected - plan.startup_hours
    drawn = trains * 0.76 + plan.startup_hours * power.used("idle_draw").value
    assert machines.expected == pytest.approx(64 * drawn * watts / 1000)
    assert machines.upper == pytest.approx(64 * hours.upper * watts / 1000)
    assert machines.lower < machines.expected
    assert bill.energy.total.expected == pytest.approx(machines.expected * bill.energy.pue)
    _, _, capped = billed(power_cap_watts="500")
    per_hour = line(capped, "machines").figure.upper / capped.hours.total.upper
    assert per_hour == pytest.approx(64 * (500 + 0.821 * 700) / 1000)
    assert plan.offer.provider == "aws"


def test_idle_and_waiting_gpus_draw_less():
    _, _, busy = billed()
    _, _, waits = billed(wait_s="86400", failures_per_node_day="0.1")
    draw = [line(b, "machines").figure.expected / b.hours.total.expected for b in (busy, waits)]
    assert draw[1] < 0.8 * draw[0]


def test_carbon_is_as_given_or_not_known():
    _, _, own = billed(grid_g_co2e_per_kwh="30", pue="1.1")
    assert own.energy.carbon.figure.expected == pytest.approx(own.energy.total.expected * 0.03)
    assert (own.energy.pue, own.energy.pue_basis) == (1.1, "given")
    _, _, elsewhere = billed(cloud="coreweave")
    assert elsewhere.energy.carbon.figure is None
    assert "nobody's figure of the grid at coreweave" in elsewhere.energy.carbon.how
    assert elsewhere.energy.pue == 1.58
    assert elsewhere.energy.pue_basis.startswith("assumed")


def test_a_region_that_is_published_gives_grid_pue_and_marginal():
    scenario = resolve.resolve_strict(Scenario.parse(ASKED))
    plan = forecast_answer.answer(scenario, top=1).plans[0]
    there = dataclasses.replace(plan.offer, region="eu-north-1")
    bill = bill_of(scenario, dataclasses.replace(plan, offer=there))
    assert bill.energy.pue == 1.1
    assert bill.energy.pue_basis.startswith("published for Europe (Stockholm)")
    kwh = bill.energy.total.expected
    assert bill.energy.carbon.figure.expected == pytest.approx(kwh * 0.02471)
    assert bill.energy.marginal.figure.expected == pytest.approx(kwh * 0.79126)


def test_an_owner_pays_for_power_where_no_price_holds_it(books):
    books(OWNED)
    scenario = resolve.resolve_strict(Scenario.parse({**ASKED, "price_book": "acme"}))
    own = next(
        p for p in forecast_answer.answer(scenario, top=500).plans if p.offer.purchase == "owned"
    )
    found = bill_of(scenario, own)
    assert line(found, "electricity").status == "in_price"
    assert found.energy.pue == pytest.approx(float(OWNED["pue"]))
    assert found.energy.pue_basis == "given by the price book acme"


def test_owned_machines_without_a_published_power_say_so():
    _, _, bill = billed(**{**CUSTOM, "cloud": "", "usd_per_kwh": "0.1"})
    assert bill.energy.total is None
    assert bill.energy.carbon.figure is None
    assert line(bill, "electricity").status == "not_priced"
    assert "no source prints the full power of custom" in line(bill, "machines").how


def test_electricity_of_owned_machines_is_energy_times_its_price():
    scenario = resolve.resolve_strict(Scenario.parse({**ASKED, "usd_per_kwh": "0.1"}))
    plan = forecast_answer.answer(scenario, top=1).plans[0]
    owned = dataclasses.replace(plan, offer=dataclasses.replace(plan.offer, purchase="owned"))
    bill = bill_of(scenario, owned)
    usd = line(bill, "electricity").figure
    assert usd.expected == pytest.approx(0.1 * bill.energy.total.expected)
    free = scenario.model_copy(update={"usd_per_kwh": None})
    assert "--usd-per-kwh" in line(bill_of(free, owned), "electricity").how


def test_a_plan_without_a_price_keeps_its_energy():
    _, _, bill = billed(purchase="owned", cloud="")
    assert bill.total is None
    assert line(bill, "instances").figure is None
    assert bill.energy.total.expected > 0
    assert bill_document.bars(bill).empty


def test_a_run_that_never_ends_has_no_bill():
    with pytest.raises(ScenarioError, match="does not end, so that it has no bill"):
        billed(failures_per_node_day="50", checkpoint_s="7200")


def test_a_plan_that_is_not_in_the_answer_is_a_mistake():
    with pytest.raises(ScenarioError, match="is not among the ranked plans"):
        billed(plan="nowhere")


def test_the_command_prints_every_line(run):
    status, out, err = run(*JOB, "--budget-usd", "1e6", "--experiment-share", "0.5")
    assert (status, err) == (0, "")
    flat = " ".join(out.split())
    for part in (
        "Whole instances", "not priced", "in the price", "Total", "cooling and losses",
        "in the mean, between", "within the budget of $1,000,000", "Worked out:",
    ):  # fmt: skip
        assert part in flat
    assert "nan" not in flat.lower()
    assert max(map(len, out.splitlines())) <= 100


def test_every_key_is_documented_and_the_json_adds_up(run):
    status, out, err = run(*JOB, "--json")
    assert (status, err) == (0, "")
    found = json.loads(out)
    lower, mean, upper = (found["total_usd"][k] for k in ("lower", "expected", "upper"))
    assert lower < mean < upper
    priced = [x["usd"]["expected"] for x in found["lines"] if x["usd"]]
    assert sum(priced) == pytest.approx(mean)
    named = set(re.findall(r"`(\w+)`", DOCUMENT.read_text(encoding="utf-8")))
    assert set(keys(found)) <= named


def test_tables_and_json_say_the_same():
    scenario, _, bill = billed(experiment_share="1")
    document = bill_json(scenario, bill)
    table = bill_document.download(bill)
    usd = table[(table["unit"] == "USD") & (table["line"] != "total")]
    assert usd["expected"].sum() == pytest.approx(document["total_usd"]["expected"])
    total = table[table["line"] == "total"]
    assert float(total["upper"].iloc[0]) == pytest.approx(document["total_usd"]["upper"])
    bars = bill_document.bars(bill)
    assert list(bars["expected"]) == sorted(bars["expected"], reverse=True)
    assert "Whole instances" in bill_document.alt(bill)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--pue", "0.5"), "--pue"),
        (("--experiment-share", "-1"), "--experiment-share"),
        (("--grid-g-co2e-per-kwh", "lots"), "is not a number like"),
    ],
)
def test_a_mistake_is_a_sentence(run, arguments, says):
    status, out, err = run(*JOB, *arguments)
    assert (status, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1
