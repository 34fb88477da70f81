"""`runcast gpus` and `runcast offers`: the figures of the tables, with where they come from."""

from __future__ import annotations

import datetime as dt

import orjson
import pytest

from app.catalogue import as_json as catalogue_json
from core.errors import ScenarioError
from core.scenario import Scenario
from core.units import GIB
from hardware import facts
from pricing.offers import Snapshot
from tests.made_up import plans as made_up
from tests.support.documented_keys import documented, paths

TODAY = dt.date(2026, 11, 21)
OFFERS = (
    made_up.offer(),
    made_up.offer(usd_per_hour=20.0, purchase="spot", region="us-west-2", quality="low"),
    made_up.offer(observed_at="2025-01", usd_per_hour=98.32),  # superseded
    made_up.offer(provider="lambda", instance_type="x1", gpu_count=1, usd_per_hour=None),
    made_up.offer(
        provider="lambda", instance_type="x2", scale_out_gbit_per_s=None, usd_per_hour=16.0
    ),
    made_up.offer(accelerator="Gaudi1", provider="vast", instance_type="dl1", gpu_count=1),
)


@pytest.fixture(autouse=True)
def _prices(monkeypatch):
    installed = Snapshot(id="abc123", offers=OFFERS, newest="2026-07-20", oldest="2025-01")
    monkeypatch.setattr("pricing.offers.snapshot", lambda named: installed)


def offers(any_purchase=True, **asked):
    found = catalogue_json.offers_json(Scenario(**asked), any_purchase=any_purchase, today=TODAY)
    return orjson.loads(orjson.dumps(found))


def test_every_figure_of_the_table_is_there_with_its_source():
    found = orjson.loads(orjson.dumps(catalogue_json.gpus_json()))
    assert [g["name"] for g in found["gpus"]] == list(facts.accelerators())
    for gpu in found["gpus"]:
        accelerator = facts.accelerator(gpu["name"])
        assert set(gpu["facts"]) == set(facts.NUMBERS)
        for quantity, fact in gpu["facts"].items():
            value = getattr(accelerator, quantity)
            assert (fact is None) is (value is None)
            if fact is not None:
                assert fact["value"] == value
                assert fact["source"]
                assert fact["source_date"]
                assert fact["assumed"] is accelerator.sources[quantity].assumed
    h100 = next(g for g in found["gpus"] if g["name"] == "H100-80GB-SXM")["facts"]
    assert h100["bf16_flops_per_s"]["value"] == pytest.approx(989e12, rel=1e-3)
    assert h100["memory_bytes"]["value"] == pytest.approx(79.6 * GIB, rel=0.01)


def test_the_keys_are_documented():
    keys = {
        k if not k.startswith("gpus[].facts.") else f"gpus[].facts.*.{k.rpartition('.')[2]}"
        for k in paths(orjson.loads(orjson.dumps(catalogue_json.gpus_json())))
    }
    ends = {f"gpus[].facts.*.{q}" for q in facts.NUMBERS}
    assert keys - ends == set(documented("`runcast gpus --json`"))
    assert set(paths(offers())) == set(documented("`runcast offers --json`"))


def test_the_newest_offers_cheapest_gpu_hour_first():
    found = offers()
    rows = found["offers"]
    assert [r["usd_per_gpu_hour"] for r in rows] == [2.0, 2.5, 55.04 / 8, 55.04, None]
    assert [r["accelerator"] for r in rows][3] == "Gaudi1"
    assert found["num_offers"] == 5
    assert 98.32 not in [r["usd_per_hour"] for r in rows]
    assert rows[0]["age_days"] == 124


def test_the_network_is_the_one_that_plans_take():
    by_type = {r["instance_type"]: r for r in offers()["offers"]}
    known = by_type["p5.48xlarge"]
    assert (known["scale_out_gbit_per_s"], known["network_assumed"]) == (3200, False)
    alone = by_type["x2"]  # of a seller that no table describes: not sold as a cluster
    assert (alone["scale_out_gbit_per_s"], alone["network_assumed"]) == (None, False)
    assert by_type["dl1"]["network_assumed"] is None


def test_offers_of_what_was_asked():
    assert offers(gpu=("gaudi1",))["num_offers"] == 1
    assert offers(cloud=("AWS",))["num_offers"] == 2
    assert offers(any_purchase=False, purchase=("spot",))["num_offers"] == 1
    assert offers(gpu=("B200",))["offers"] == []
    with pytest.raises(ScenarioError, match="Did you mean 'lambda'"):
        offers(cloud=("lamda",))
    with pytest.raises(ScenarioError, match="H100-80GB-SXM"):
        offers(gpu=("H100-80G-SXM",))
