"""A price source that lies within the bands of its rows changes no answer by one refresh."""

import pytest

from app.forecast import answer as forecast_answer
from core.scenario import Scenario
from pricing import offers as snapshots
from pricing.refresh import refresh
from pricing.sources import chosen
from tests.feeds.server import Feed, serving
from tests.servers.price_attacks import ATTACKS, GOOD, PATH, routes

QUESTION = {
    "gpu": "H100-80GB-SXM,H200-141GB-SXM,B200-180GB",
    "cloud": "verda",
    "num_gpus": "8",
    "num_tokens": "1B",
}


def best_plan(snapshot_id):
    """The recommended plan of prices, with its cost."""
    found = forecast_answer.answer(Scenario.parse(QUESTION | {"prices": snapshot_id}), top=1)
    return found.plans[0].id, found.plans[0].usd


@pytest.fixture
def attacked(monkeypatch, tmp_path):
    """Refresh Verda from a server that tells the truth, and then from one that does not."""
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path))
    feed = Feed(routes(GOOD))
    with serving(feed) as base:
        monkeypatch.setenv("RUNCAST_PRICE_URL_VERDA", base)
        for _ in range(2):  # what is new and cheapest waits for the second
            refresh(chosen(["verda"]))

        def attack(rows, **more):
            feed.routes[PATH] = routes(rows)[PATH]
            return refresh(chosen(["verda"]), **more)

        yield attack


@pytest.mark.parametrize("name", list(ATTACKS))
def test_an_attack_changes_no_answer_and_is_held_back(attacked, name):
    before = snapshots.snapshot()
    plan = best_plan(before.id)
    report = attacked(ATTACKS[name])
    assert report.quarantined
    assert snapshots.snapshot().offers == before.offers
    assert best_plan(snapshots.snapshot().id) == plan
    # Believed, it would have changed the prices: the test can fail.
    believed = attacked(ATTACKS[name], accepted=["verda"])
    assert believed.snapshot_id != before.id


def test_the_end_of_an_attack_leaves_nothing_behind(attacked):
    before = snapshots.snapshot()
    for rows in ATTACKS.values():
        attacked(rows)
    report = attacked(GOOD)
    assert (report.snapshot_id, report.quarantined) == (before.id, ())
