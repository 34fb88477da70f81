"""The JSON of an answer: what it promises, and that the document documents all of it."""

from __future__ import annotations

import math
from types import SimpleNamespace
from urllib.parse import parse_qsl

import orjson
import pytest

from app.catalogue.as_json import model_json
from app.forecast import price_book
from app.plan import as_json as pj
from app.scenario.age import stamped
from app.scenario.model import model_of
from core.machine.calibration import Calibrated
from core.scenario import Scenario
from pricing.offers import Snapshot
from tests.made_up import plans as made_up
from tests.support.documented_keys import DOCUMENT, documented, documented_plan_keys, paths

PRICES = "abc123"


@pytest.fixture(autouse=True)
def _prices(monkeypatch):
    installed = Snapshot(id=PRICES, offers=(), newest="2026-07-30", oldest="2025")
    monkeypatch.setattr(pj, "snapshot", lambda named: installed)


def written(*plans, scenario=None, **answer):
    """What a reader of the JSON gets."""
    found = pj.plan_json(scenario or Scenario(), made_up.answer(*plans, **answer))
    return orjson.loads(orjson.dumps(found))


def test_the_document_lists_exactly_the_keys(monkeypatch):
    one = SimpleNamespace(
        id="a", accelerator="H100-80GB-SXM", factors_for=lambda _: Calibrated(),
        constants_for=lambda _: (), origin=SimpleNamespace(measured_with=""),
    )  # fmt: skip
    monkeypatch.setattr(
        "app.plan.inputs_json.calibrations.chosen", lambda _: {"H100-80GB-SXM": one}
    )
    assumed = {
        "network": made_up.network(), "at_half_network": made_up.at_half_network(),
        "supply": made_up.supply(), "nearby": made_up.nearby(),
        "chosen_correction": made_up.chosen_correction(),
    }  # fmt: skip
    emitted = set(paths(written(made_up.plan(**assumed))))
    assert emitted == documented_plan_keys()


def test_every_key_has_a_type_and_a_meaning():
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            key, kind, _, meaning = (cell.strip() for cell in line.strip("|").split("|"))
            assert kind, key
            assert meaning, key


def test_the_keys_of_a_model_are_documented():
    scenario = Scenario(model="mistral-7b", seq_len=4096)
    facts = model_json(model_of(scenario), seq_len=scenario.seq_len)
    emitted = {key for key in paths(facts) if not key.startswith("dims.")}
    assert emitted == set(documented("`runcast models --json`"))


def test_parts_add_up_to_their_total():
    (plan,) = written(made_up.plan())["plans"]
    for whole, parts in (("step_s", made_up.STEP_S), ("memory_bytes", made_up.MEMORY_BYTES)):
        given = plan[whole]
        assert given["total"] == pytest.approx(sum(given[n] for n in parts))
        assert list(given)[: len(parts)] == list(parts)
    assert plan["memory_bytes"]["capacity"] == 85e9


def test_a_part_that_a_plan_has_not_is_zero():
    (plan,) = written(made_up.plan(step_s={"matmul": 1.0}))["plans"]
    assert list(plan["step_s"]) == [*made_up.STEP_S, "total"]
    assert plan["step_s"]["bubble"] == 0
    assert plan["step_s"]["total"] == 1.0


def test_the_median_stands_alone_and_the_interval_beside_it():
    (plan,) = written(made_up.plan())["plans"]
    assert (plan["usd_p10"], plan["usd"], plan["usd_p90"]) == (10_912.0, 12_412.0, 14_170.0)
    speeds = (plan["tokens_per_s_p10"], plan["tokens_per_s"], plan["tokens_per_s_p90"])
    assert speeds == (320_000.0, 373_357.0, 426_000.0)


def test_no_price_is_null():
    (plan,) = written(made_up.plan(usd=None, usd_per_gpu_hour=None))["plans"]
    names = ("usd", "usd_p10", "usd_p90", "usd_per_gpu_hour")
    assert [plan[n] for n in names] == [None] * 4


def test_what_is_no_number_is_null():
    broken = made_up.plan(
        mfu=math.nan,
        tokens_per_s=made_up.spread(math.nan, math.inf, 1.0),
        step_s={**made_up.STEP_S, "bubble": math.nan},
    )
    found = pj.plan_json(Scenario(), made_up.answer(broken))
    (plan,) = found["plans"]
    assert plan["mfu"] is None
    assert (plan["tokens_per_s"], plan["tokens_per_s_p10"]) == (None, None)
    assert (plan["step_s"]["bubble"], plan["step_s"]["total"]) == (None, None)


def test_the_link_reopens_the_scenario_and_names_the_prices():
    scenario = Scenario(
        model="llama3.1-70b", gpu=("H100-80GB-SXM", "B200"), num_gpus=(8, 64), budget_usd=1e5
    )
    link = written(scenario=scenario)["link"]
    assert link.startswith("v=1&model=llama3.1-70b&")
    assert "gpu=H100-80GB-SXM,B200" in link
    reopened, notes = Scenario.from_query(dict(parse_qsl(link)))
    assert notes == []
    assert reopened == stamped(scenario).model_copy(update={"prices": PRICES})


def test_the_scenario_is_whole_and_reads_back():
    scenario = Scenario(num_gpus=(8, 64), purchase=("spot", "on_demand"), seq_len=4096)
    found = written(scenario=scenario)
    assert found["scenario"]["num_gpus"] == [8, 64]
    assert Scenario.parse(found["scenario"]) == scenario
    assert found["price_snapshot"] == {
        "id": PRICES,
        "newest": "2026-07-30",
        "oldest": "2025",
        "judged_on": price_book.today().isoformat(),
    }


def test_an_answer_without_plans_says_why():
    found = written(nothing_fits="Nothing fits: 12 GiB too much.")
    assert found["plans"] == []
    assert found["nothing_fits"] == "Nothing fits: 12 GiB too much."
    assert found["excluded"][0] == {
        "reason": "no_price",
        "count": 9,
        "sentence": "9 plans are without dollars.",
    }
