"""Everything on the bill: lines that add up, and what is not priced or not known."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest

from app.bill import document as bill_document
from app.bill.as_json import bill_json
from app.bill.bill import bill_of, bill_sentences
from app.document import format as fmt
from app.forecast import answer as forecast_answer
from app.forecast import price_book, resolve
from app.plan.planned import asked_plan
from app.prices.book_file import read_book
from core.errors import ScenarioError
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
CENT = 0.005
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


OWN = {"cloud": "", "purchase": "owned", "usd_per_kwh": "0.1"}
EVERYTHING = {"price_book": "acme", "experiment_share": "0.5"}
CASES = {
    "on demand, with waiting and experiments": {"wait_s": "7200", "experiment_share": "0.5"},
    "spot": {"cloud": "", "purchase": "spot"},
    "a price book": {**EVERYTHING, "wait_s": "7200"},
    "a price book whose credits pay for all": {"price_book": "rich"},
    "a price book on spot": {**EVERYTHING, "purchase": "spot"},
    "a shared reservation": {"cloud": "", "purchase": "reserved_1y", "reserved_utilisation": "0.8"},
    "a reservation of its own": {"cloud": "", "purchase": "reserved_1y"},
    "a capacity block": {"cloud": "", "purchase": "capacity_block"},
    "owned machines with a price": {
        "gpu": "custom", "custom_tflop_per_s": "990", "custom_memory_gib": "80",
        "custom_memory_gb_per_s": "3350", "custom_scale_up_gb_per_s": "450",
        "custom_scale_out_gbit_per_s": "400", "custom_usd_per_gpu_hour": "2", "cloud": "",
        "usd_per_kwh": "0.1",
    },
    "often preempted, slow nodes": {
        "cloud": "", "purchase": "spot", "preemptions_per_day": "2", "slow_probability": "0.1",
    },
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_lines_add_up_to_the_plan_to_the_cent(name, books):
    books(STORAGE, DATA, EGRESS, CREDIT)
    books({**CREDIT, "usd": "1e9"}, name="rich")
    scenario, plan, bill = billed(**CASES[name])
    priced = sum(x.figure.mean for x in bill.lines if x.figure is not None)
    assert priced == pytest.approx(plan.expected_usd, abs=CENT)
    assert bill.total.mean == plan.expected_usd
    document = bill_json(scenario, bill)
    written = sum(x["usd"]["expected"] for x in document["lines"] if x["usd"])
    assert written == pytest.approx(plan.expected_usd, abs=CENT)
    assert document["total_usd"] == {
        "lower": plan.cost.total.p10, "expected": plan.expected_usd, "upper": plan.cost.total.p90,
    }  # fmt: skip
    hours = {part: x["expected"] for part, x in document["hours"].items()}
    assert hours.pop("total") == plan.expected_hours == pytest.approx(sum(hours.values()))
    assert sum(x.figure.mean for x in bill.energy.lines if x.figure) == pytest.approx(
        0.0 if bill.energy.total is None else bill.energy.total.mean
    )
    for x in (*bill.lines, *bill.energy.lines):
        if x.figure is not None and x.name != "credits":
            assert 0 <= x.figure.p10 <= x.figure.p90


def test_hours_of_the_parts_are_in_order_and_within_the_run():
    _, plan, bill = billed(
        cloud="", purchase="spot", wait_s="7200", failures_per_node_day="0.05",
        slow_probability="0.1",
    )  # fmt: skip
    for part, hours in bill.hours.items():
        assert 0 <= hours.p10 <= hours.p50 <= hours.p90, part
    causes = plan.cost.hour_terms
    assert bill.hours["checkpoints"].mean == pytest.approx(
        causes["checkpoint"] + causes["slow_nodes"]
    )
    assert bill.hours["failures"].mean == pytest.approx(causes["rework"] + causes["restart"])
    assert bill.hours["waiting"].mean == pytest.approx(causes["waiting"])
    assert bill.hours["preemption"].mean == pytest.approx(causes["preemption"])


def test_spot_pays_for_its_interruptions():
    _, _, bill = billed(cloud="", purchase="spot", preemptions_per_day="2")
    _, _, calm = billed(cloud="", purchase="spot", preemptions_per_day="0")
    assert line(bill, "preemption").figure.mean > 0
    assert line(calm, "preemption").figure.mean == pytest.approx(0, abs=CENT)
    assert bill.total.mean > calm.total.mean
    assert "preemption" not in {x.name for x in billed()[2].lines}


def test_a_commitment_is_named_before_its_share():
    alone = {"cloud": "", "purchase": "reserved_1y", "budget_usd": "1e6"}
    scenario, plan, bill = billed(**alone)
    first, *others = bill_sentences(scenario, bill)
    paid, used = (fmt.usd(usd, digits=3) for usd in (plan.paid_usd, plan.expected_usd))
    assert f"commits you to {paid}; of it this run uses about {used}" in first
    assert any("The sum committed is over the budget of $1,000,000" in s for s in others)
    assert "commitment" not in {x.name for x in bill.lines}
    _, _, shared = billed(**alone, reserved_utilisation="0.8")
    machines = sum(x.figure.mean for x in shared.lines[:5])
    assert line(shared, "commitment").figure.mean == pytest.approx(machines / 4)
    _, _, block = billed(cloud="", purchase="capacity_block")
    assert line(block, "commitment").figure.mean > 0
    assert "paid whole" in line(block, "commitment").how


def test_what_nobody_priced_is_named_and_in_no_total():
    scenario, _, bill = billed()
    assert [x.name for x in bill.not_priced] == ["checkpoint_storage", "data_storage", "egress"]
    assert all(x.figure is None and "price book" in x.how for x in bill.not_priced)
    assert line(bill, "electricity").status == "in_price"
    said = " ".join(bill_sentences(scenario, bill))
    assert "Not priced, and in no total: storage of checkpoints, storage of data, traffic" in said
    assert "embodied carbon" in said
    experiments = line(bill, "experiments")
    assert (experiments.status, experiments.figure.p90) == ("assumed", 0.0)
    assert "arXiv:2503.05804" in experiments.how


def test_a_price_book_prices_what_is_stored_and_moved(books):
    books(STORAGE, DATA, EGRESS, CREDIT)
    _, plan, bill = billed(price_book="acme")
    size = 8_030_261_248 * 14
    hours = plan.expected_hours
    stored, data = line(bill, "checkpoint_storage"), line(bill, "data_storage")
    assert stored.figure.mean == pytest.approx(10 * size / 1e9 * 0.02 * hours / 730)
    assert data.figure.mean == pytest.approx(1000 * 0.03 * hours / 730)
    assert line(bill, "egress").figure.p90 == pytest.approx(size / 1e9 * 0.09)
    assert line(bill, "credits").figure.mean == -1000
    assert not bill.not_priced


def test_given_sizes_replace_those_of_the_book_at_its_dearest_rate(books):
    books(STORAGE, DATA)
    _, plan, bill = billed(price_book="acme", dataset_tb="40", kept_checkpoints="5")
    hours = plan.expected_hours
    assert line(bill, "data_storage").figure.mean == pytest.approx(40_000 * 0.03 * hours / 730)
    assert line(bill, "checkpoint_storage").figure.mean == pytest.approx(
        5 * 8.030261248 * 14 * 0.03 * hours / 730
    )


def test_idle_gpus_are_named():
    _, _, bill = billed(num_gpus="60")
    assert "4 of their GPUs stay idle and are paid" in line(bill, "instances").how
    _, _, whole = billed()
    assert "no GPU is idle" in line(whole, "instances").how


def test_energy_is_between_a_measured_draw_and_full_power():
    _, plan, bill = billed()
    hours = plan.cost.hours
    watts = 700 * 1.821
    machines = line(bill, "machines").figure
    trains = hours.mean - plan.startup_hours
    drawn = trains * 0.76 + plan.startup_hours * power.used("idle_draw").value
    assert machines.mean == pytest.approx(64 * drawn * watts / 1000)
    assert machines.p90 == pytest.approx(64 * hours.p90 * watts / 1000)
    assert machines.p10 < machines.mean
    assert bill.energy.total.mean == pytest.approx(machines.mean * bill.energy.pue)
    _, limited_plan, limited = billed(power_cap_watts="500")
    per_hour = line(limited, "machines").figure.p90 / limited_plan.cost.hours.p90
    assert per_hour == pytest.approx(64 * (500 + 0.821 * 700) / 1000)
    assert plan.offer.provider == "aws"


def test_idle_and_waiting_gpus_draw_less():
    _, _, busy = billed()
    _, _, waits = billed(wait_s="86400", failures_per_node_day="0.1")
    draw = [line(b, "machines").figure.mean / b.plan.expected_hours for b in (busy, waits)]
    assert draw[1] < 0.8 * draw[0]


def test_spot_that_is_away_draws_nothing():
    often = {"cloud": "", "purchase": "spot", "preemptions_per_day": "2", "outage_hours": "12"}
    _, plan, bill = billed(**often)
    kwh = line(bill, "machines").figure.mean
    full_kw = 64 * 700 * 1.821 / 1000
    assert plan.cost.paid_hours < 0.7 * plan.expected_hours
    assert kwh < full_kw * 0.76 * plan.cost.paid_hours * (1 + 1e-9)
    assert kwh > full_kw * 0.7 * plan.cost.paid_hours


def test_carbon_is_as_given_or_not_known():
    _, _, own = billed(grid_g_co2e_per_kwh="30", pue="1.1")
    assert own.energy.carbon.figure.mean == pytest.approx(own.energy.total.mean * 0.03)
    assert (own.energy.pue, own.energy.pue_basis) == (1.1, "given")
    _, _, elsewhere = billed(cloud="coreweave")
    assert elsewhere.energy.carbon.figure is None
    assert "unknown for the grid at coreweave" in elsewhere.energy.carbon.how
    assert elsewhere.energy.pue == 1.58
    assert elsewhere.energy.pue_basis.startswith("assumed")


def test_a_region_that_is_published_gives_grid_pue_and_marginal():
    scenario = resolve.resolve_strict(Scenario.parse(ASKED))
    plan = forecast_answer.answer(scenario, top=1).plans[0]
    there = dataclasses.replace(plan.offer, region="eu-north-1")
    bill = bill_of(scenario, dataclasses.replace(plan, offer=there))
    assert bill.energy.pue == 1.1
    assert bill.energy.pue_basis.startswith("published for Europe (Stockholm)")
    kwh = bill.energy.total.mean
    assert bill.energy.carbon.figure.mean == pytest.approx(kwh * 0.02471)
    assert bill.energy.marginal.figure.mean == pytest.approx(kwh * 0.79126)


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
    scenario, plan, bill = billed(**OWN, experiment_share="0.5", wait_s="7200")
    usd = line(bill, "electricity").figure
    assert usd.mean == pytest.approx(0.1 * bill.energy.total.mean, rel=1e-9)
    free = scenario.model_copy(update={"usd_per_kwh": None})
    assert "--usd-per-kwh" in line(bill_of(free, plan), "electricity").how


def test_a_plan_without_a_price_keeps_its_energy():
    _, _, bill = billed(purchase="owned", cloud="")
    assert bill.total is None
    assert line(bill, "instances").figure is None
    assert bill.energy.total.mean > 0
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
        "on average, 8 times in 10 between", "within the budget of $1,000,000", "Worked out:",
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
    assert sum(priced) == pytest.approx(mean, abs=CENT)
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
