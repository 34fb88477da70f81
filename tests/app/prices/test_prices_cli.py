"""`runcast prices`: what it prints of the history, of refreshes and of what is held back."""

import json
from collections import Counter

import pytest

from app import cli
from pricing.disk import prices_folder
from pricing.offers import newest_per_place, snapshot
from pricing.refresh import refresh
from pricing.store import engine
from tests.feeds import shapes
from tests.feeds.refreshing import made
from tests.feeds.server import Feed, as_text, serving


@pytest.fixture
def run(capfd, monkeypatch, tmp_path):
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "120")

    def _run(*arguments):
        with pytest.raises(SystemExit) as end:
            cli.main(["prices", *arguments])
        out, err = capfd.readouterr()
        return end.value.code, out, err

    return _run


def refreshed(usd):
    return refresh([made(usd)], folder=prices_folder(), environ={})


def test_the_history_of_a_machine_is_its_spells(run):
    status, out, err = run("history", "--gpu", "h100", "--instance", "p5.48xlarge", "--region",
                           "us-east-1", "--purchase", "on_demand")  # fmt: skip
    assert (status, err) == (0, "")
    assert "aws p5.48xlarge (8 x H100-80GB-SXM) in us-east-1, on demand" in out
    shown = " ".join(out.split())
    assert "$98.32 2023-08-08 2025-04-28 aws/karpenter-provider-aws" in shown
    assert "$55.04 2025-06-23 2026-07-20 aws/karpenter-provider-aws" in shown


def test_fill_fetches_archived_pages_first_and_says_what_it_found(run, monkeypatch):
    routes = {shapes.ARCHIVE_PATH: as_text(shapes.archive(shapes.ARCHIVE))}
    with serving(Feed(routes)) as base:
        monkeypatch.setenv("RUNCAST_PRICE_URL_GPU_PRICE_INDEX", base)
        status, out, err = run("history", "--cloud", "nebius", "--fill")
        assert (status, err[:30]) == (0, "8 observations of 6 prices fro")
        assert "nebius 1x H100 SXM (1 x H100-80GB-SXM), on demand" in out
        assert "$3.85 2026-07-12" in " ".join(out.split())
        routes.clear()
        assert run("history", "--cloud", "nebius")[:2] == (0, out)  # it stays
    status, _, err = run("history", "--cloud", "nebius", "--fill")
    assert status == 2
    assert err.startswith("runcast: ")


def test_the_json_has_what_refreshes_have_seen(run):
    refreshed(50.0)
    refreshed(48.0)
    status, out, err = run("history", "--region", "region-7", "--json")
    assert (status, err) == (0, "")
    told = json.loads(out)
    assert told["num_series"] == 1
    (one,) = told["history"]
    assert (one["provider"], one["gpu_count"]) == ("aws", 8)
    assert [s["usd_per_hour"] for s in one["spells"]] == [50.0, 48.0]
    assert one["gaps"] == []


def test_what_machines_cost_on_a_day(run):
    given = ("2024-05-01", "--gpu", "H100", "--cloud", "aws", "--machines", "2", "--hours", "10")
    status, out, err = run("on", *given, "--json")
    assert (status, err) == (0, "")
    told = json.loads(out)
    assert (told["day"], told["machine_hours"]) == ("2024-05-01", 20.0)
    (price,) = told["prices"]
    assert (price["usd_per_hour"], price["exact"]) == (98.32, True)
    assert price["usd"] == pytest.approx(1966.4)
    status, out, _ = run("on", *given)
    shown = " ".join(out.split())
    assert "$12.29 $98.32 $1,966 8 x H100-80GB-SXM on demand 2023-08-08" in shown
    assert "Cost: 20 h of a machine." in shown


def test_the_age_of_each_cloud_s_prices_is_of_every_offer_in_use(run):
    status, out, err = run("freshness", "--json")
    assert (status, err) == (0, "")
    told = json.loads(out)
    in_use = newest_per_place(snapshot().offers)
    assert told["snapshot"] == snapshot().id
    assert {c["provider"]: c["num_offers"] for c in told["clouds"]} == Counter(
        o.provider for o in in_use
    )
    shown = " ".join(run("freshness")[1].split())
    assert f"Half of the {len(in_use):,} prices of snapshot {snapshot().id}" in shown
    first = told["clouds"][0]
    assert f"{first['provider']} {first['num_offers']} {first['newest']}" in shown


def test_refreshes_are_listed_with_what_failed(run):
    assert run("runs")[1] == "No refresh has run here yet: `runcast refresh`.\n"
    refreshed(50.0)
    published = refreshed(48.0)
    _, out, _ = run("runs")
    assert out.count("refreshed") == 2
    assert published.snapshot_id in out
    told = json.loads(run("runs", "--top", "1", "--json")[1])["runs"]
    assert [(r["snapshot_id"], r["sources"][0]["changed"]) for r in told] == [
        (published.snapshot_id, 300)
    ]


def test_what_is_held_back_is_listed_and_released(run):
    assert run("quarantine")[1] == "Nothing is held back.\n"
    refreshed(50.0)
    refreshed(10.0)
    _, out, _ = run("quarantine", "--top", "3")
    assert out.count("made, jump, since") == 3
    assert "There may be more" in out
    rows = json.loads(run("quarantine", "--json", "--top", "1000")[1])["quarantine"]
    assert len(rows) == 300
    row = rows[0]
    assert row["releasable"]
    assert row["sku"]["instance_type"] == "p5.48xlarge"
    status, out, err = run("release", row["key"], "--why", "the invoice", "--json")
    assert (status, err) == (0, "")
    given = json.loads(out)["release"]
    assert (given["usd_per_hour"], given["why"], bool(given["by"])) == (10.0, "the invoice", True)
    assert refreshed(10.0).lines[-1].quarantined == 299
    everything = json.loads(run("quarantine", "--all", "--top", "1000", "--json")[1])["quarantine"]
    assert sum(h["until"] is not None for h in everything) == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["history", "--gpu", "h10"], "Did you mean"),
        (["history", "--cloud", "asw"], "Did you mean 'aws'?"),
        (["history", "--since", "May"], "--since 'May' is not a day like 2026-01-31."),
        (["history", "--top", "0"], "--top '0' is not a whole number from 1 to 10,000."),
        (["on", "yesterday"], "DAY 'yesterday' is not a day"),
        (["on", "2024-05-01", "--hours", "nan"], "--hours 'nan' is not a number of hours"),
        (["on", "2024-05-01", "--machines", "-1"], "--machines '-1' is not a whole number from 1"),
        (["release", "0123456789ab"], "Nothing that is held back has the key '0123456789ab'"),
        (["release"], "Missing"),
    ],
)
def test_a_mistake_is_one_sentence(run, arguments, says):
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def test_without_a_store_the_bundled_history_is_there(run, monkeypatch):
    monkeypatch.setenv(engine.DATABASE_URL, "mysql://ada:canary@db/runcast")
    status, out, err = run("on", "2024-05-01", "--gpu", "h100", "--cloud", "aws")
    assert (status, err.count("\n")) == (0, 1)
    assert "names a 'mysql' database" in err
    assert "canary" not in err + out
    assert "$98.32" in out
    assert run("runs")[0] == 2
