"""Quotes in answers: they compete with every other offer, in a link, a command, a price book."""

import json
from datetime import timedelta

import pytest

from app.forecast import answer as forecast_answer
from app.forecast import price_book, resolve
from app.plan import charts, document, words
from app.plan.as_json import plan_json
from core.errors import ScenarioError
from core.scenario import Scenario
from core.scenario.quotes import quote_of
from pricing.book.files import load_book
from pricing.book.quotes import INSTANCE, keep
from tests.app.forecast.test_price_book import RATE, command
from tests.app.forecast.test_price_book import keep as keep_book
from tests.pricing.book.test_price_book import csv_of

ASKED = {
    "model": "llama3.1-8b", "num_tokens": "10B", "gpu": "H100-80GB-SXM", "cloud": "aws,lambda",
    "num_gpus": "256",
}  # fmt: skip
OPTIONS = [
    "--model", "llama3.1-8b", "--tokens", "10B", "--seq-len", "8k", "--global-batch-size", "512",
    "--gpu", "h100", "--num-gpus", "64", "--top", "1000",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _books(monkeypatch, tmp_path):
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path))


def answered(*quotes, **more):
    scenario = resolve.resolve_strict(Scenario.parse({**ASKED, **more, "quotes": quotes}))
    return scenario, forecast_answer.answer(scenario, top=1000)


def quoted(answer):
    return [p for p in answer.plans if p.offer.source == "quote"]


def test_a_quote_is_ranked_among_all_and_nothing_else_disappears():
    _, without = answered()
    scenario, found = answered("acme,h100,$2.20")
    [mine] = quoted(found)
    assert {p.id for p in found.plans} == {p.id for p in without.plans} | {mine.id}
    assert found.left_out_at == without.left_out_at
    assert mine.usd_per_gpu_hour == pytest.approx(2.20)
    assert mine.usd.p50 == pytest.approx(2.20 * mine.gpu_hours)
    order = [(bool(p.against), p.usd.p50) for p in found.plans]
    assert order == sorted(order)
    assert (mine.offer.instance_type, mine.num_nodes) == (INSTANCE, 32)
    assert (mine.network.basis, mine.network.is_assumed) == ("usual", True)
    shown = plan_json(scenario, found, with_inputs=False)["plans"]
    assert [p["id"] for p in shown if p["is_quote"]] == [mine.id]
    assert "quote" in words.badges(mine, price_book.today())


def test_its_link_reopens_with_equal_numbers():
    scenario, found = answered("acme,h100,2.20,most=256,network=1600", "beta,h100,1.9,kind=spot")
    again, notes = Scenario.from_query(scenario.to_query())
    assert notes == []
    assert again == scenario
    assert forecast_answer.answer(again, top=1000).plans == found.plans


def test_a_stated_network_is_given_and_a_faster_one_is_faster():
    slow, fast = (quoted(answered(f"acme,h100,2.20,network={gbit}")[1])[0] for gbit in (100, 3200))
    assert (fast.network.basis, fast.network.gbit_per_s) == ("given", 3200)
    assert not fast.network.is_assumed
    assert fast.tokens_per_s.p50 > slow.tokens_per_s.p50


def test_a_quote_of_a_seller_of_single_machines_is_of_a_cluster():
    [mine] = quoted(answered("Lambda,h100,2.20")[1])
    assert (mine.offer.provider, mine.num_gpus) == ("lambda", 256)


def test_the_most_gpus_of_a_quote_are_its_largest_job():
    quote = "acme,h100,1.00,most=96"
    assert max(p.num_gpus for p in quoted(answered(quote, num_gpus=())[1])) == 96
    _, found = answered(quote)
    assert quoted(found) == []
    assert {e.reason: e.count for e in found.excluded}["cluster_size"] == 1


def test_a_quote_is_left_out_after_its_last_day_and_counted():
    last = price_book.today()
    assert quoted(answered(f"acme,h100,2.20,until={last}")[1])
    _, found = answered(f"acme,h100,2.20,until={last - timedelta(1)}")
    assert quoted(found) == []
    [over] = [e for e in found.excluded if e.reason == "quote_over"]
    assert over.sentence == "1 of your quotes are past their last day: ask the seller again."
    assert "quotes past their last day 1" in words.coverage_line(found)


def test_two_quotes_of_one_machine_are_two_plans():
    _, found = answered("acme,h100,2.20", "acme,h100,2.10,most=256")
    assert len({p.id for p in quoted(found)}) == 2


def test_an_unknown_gpu_names_the_nearest_and_leaves_the_others():
    asked = Scenario.parse({**ASKED, "quotes": "acme,h900,2.20;beta,h100,2.20"})
    resolved, notes = resolve.resolve(asked)
    assert resolved.quotes == ("beta,H100-80GB-SXM,2.2",)
    assert len(notes) == 1
    assert notes[0].startswith("Left out of quotes: Unknown accelerator 'h900'. Did you mean ")
    with pytest.raises(ScenarioError, match="'h900'"):
        resolve.resolve_strict(asked)


def test_a_price_outside_the_band_is_compared_with_a_warning():
    [mine] = quoted(answered("acme,h100,0.02")[1])
    assert any("is not believable" in a for a in mine.assumptions)


def test_a_quote_is_a_star_in_the_chart_and_says_so_in_its_legend():
    _, found = answered("acme,h100,40")  # dear: beaten by every other plan
    points = document.points(found)
    assert list(points[points["is_quote"]]["provider"]) == ["acme"]
    limits = {"budget_usd": None, "deadline_days": None, "budget_text": "", "deadline_text": ""}
    for theme in ("light", "dark"):
        spec = charts.pareto(points, **limits, theme=theme)
        [stars] = [s for s in spec["layer"] if "shape" in s["encoding"] and
                   s["encoding"]["shape"]["field"] == "kind"]  # fmt: skip
        assert stars["encoding"]["shape"]["scale"]["domain"] == ["your quote"]
        assert [r["machine"] for r in spec["datasets"][stars["data"]["name"]]] == [
            "256 x H100-80GB-SXM, acme, on demand, your quote"
        ]


def test_a_kept_quote_is_a_rate_that_the_book_compares():
    scenario, before = answered("acme,h100,2.20,most=256,note=with storage")
    today = price_book.today()
    keep(quote_of(scenario.quotes[0]), "mine", today)
    _, after = answered(price_book="mine", cloud="acme")
    [mine], [kept] = quoted(before), [p for p in after.plans if p.offer.provider == "acme"]
    assert (kept.usd, kept.tokens_per_s) == (mine.usd, mine.tokens_per_s)
    assert kept.offer.source == "price book mine"
    assert (kept.offer.observed_at, load_book("mine").rows[0].most_gpus) == (str(today), 256)
    keep(quote_of("beta,H100-80GB-SXM,2.10"), "mine", today)
    assert [r.provider for r in load_book("mine").rows] == ["acme", "beta"]


def test_the_command_line_takes_quotes_and_the_clouds_of_a_book(capsys):
    keep_book({**RATE, "provider": "nimbus", "instance_type": "n1", "gpu_count": "8"})
    quotes = ["--quote", "acme,h100,2.20", "--quote", "beta,h100,1.90,network=3200"]
    more = [*quotes, "--price-book", "acme", "--cloud", "nimbus"]
    status, out, err = command(capsys, "plan", *OPTIONS, *more, "--json")
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert found["scenario"]["quotes"] == [
        "acme,H100-80GB-SXM,2.2", "beta,H100-80GB-SXM,1.9,network=3200"
    ]  # fmt: skip
    assert {p["provider"]: p["is_quote"] for p in found["plans"]} == {
        "acme": True, "beta": True, "nimbus": False
    }  # fmt: skip
    status, out, _ = command(capsys, "plan", *OPTIONS, *quotes)
    assert "beta your quote" in out
    status, _, err = command(capsys, "plan", *OPTIONS, "--quote", "acme,h100,2,20")
    assert status == 2
    assert err == ("runcast: --quote 'acme,h100,2,20': the price '2,20' has a comma: write 2.20.\n")


def test_a_book_row_without_a_network_warns(capsys, tmp_path):
    path = tmp_path / "rates.csv"
    row = {**RATE, "provider": "nimbus", "instance_type": "n1", "gpu_count": "8"}
    path.write_bytes(csv_of(row, {**row, "instance_type": "n2", "scale_out_gbit_per_s": "3200"}))
    _, out, _ = command(capsys, "prices", "book", "add", path, "--name", "acme")
    lines = " ".join(out.split()).split("Line ")
    assert "It states no network" in lines[1]
    assert "It states no network" not in lines[2]
