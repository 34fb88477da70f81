"""Price books in plans: links, owned clusters, credits, the command line."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app.cli import _run
from app.forecast import answer as forecast_answer
from app.forecast import price_book, resolve
from app.plan import words as plan_words
from app.prices.book_file import read_book
from core.errors import ScenarioError
from core.scenario import Scenario
from pricing.book.files import book_names, save_book
from tests.pricing.book.test_price_book import OWNED, RATE, csv_of

ROOT = Path(__file__).parents[3]
ASKED = {
    "model": "llama3.1-8b", "num_tokens": "10B", "gpu": "H100-80GB-SXM", "cloud": "aws",
    "num_gpus": "64",
}  # fmt: skip
STORAGE = {"kind": "storage", "provider": "aws", "usd_per_gb_month": "0.02", "checkpoints": "10"}
EGRESS = {"kind": "egress", "provider": "aws", "usd_per_gb": "0.09", "checkpoints": "1"}


@pytest.fixture(autouse=True)
def _books(monkeypatch, tmp_path):
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path))


def keep(*rows, name="acme"):
    today = price_book.today()
    save_book(read_book(csv_of(*rows), file_name="b.csv", name=name, today=today))


def plans(**more):
    scenario = resolve.resolve_strict(Scenario.parse({**ASKED, **more}))
    return forecast_answer.answer(scenario, top=100).plans


def test_a_rate_moves_the_cost_and_nothing_else():
    keep(RATE)
    listed, booked = plans(), plans(price_book="acme")
    by_id = {p.id: p for p in listed}
    assert {p.id for p in booked} == set(by_id)
    for p in booked:
        assert p.tokens_per_s == by_id[p.id].tokens_per_s
        assert p.usd.p50 == pytest.approx(2.40 * p.gpu_hours)
        assert p.usd_per_gpu_hour == pytest.approx(2.40)
        assert p.offer.source == "price book acme"
        assert "price book acme" in plan_words.badges(p, price_book.today())


def test_an_owned_cluster_is_compared_whatever_cloud_and_purchase_are_chosen():
    keep(OWNED)
    [own] = [p for p in plans(price_book="acme") if p.offer.purchase == "owned"]
    assert own.num_gpus == 64
    assert own.usd_per_gpu_hour == pytest.approx(2.0461, abs=1e-4)
    assert not [p for p in plans() if p.offer.purchase == "owned"]


def test_an_owned_cluster_is_never_larger_than_it_is():
    keep({**OWNED, "num_gpus": "96"})
    scenario = resolve.resolve_strict(Scenario.parse({**ASKED, "price_book": "acme"}))
    free = scenario.model_copy(update={"num_gpus": ()})
    found = forecast_answer.answer(free, top=1000).plans
    owned = {p.num_gpus for p in found if p.offer.purchase == "owned"}
    assert max(owned) <= 96
    assert max(p.num_gpus for p in found) > 96
    large = scenario.model_copy(update={"num_gpus": (128,)})
    answer = forecast_answer.answer(large, top=1000)
    assert not [p for p in answer.plans if p.offer.purchase == "owned"]
    assert {e.reason: e.count for e in answer.excluded}["cluster_size"] == 1
    assert "clusters too small 1" in plan_words.coverage_line(answer)


def test_storage_traffic_and_credits_are_in_the_cost_and_said():
    keep(RATE, STORAGE, EGRESS, {"kind": "credit", "provider": "aws", "usd": "100"})
    for p in plans(price_book="acme"):
        # 8,030,261,248 parameters of 14 bytes.
        checkpoint_gb = 112.42
        storage = 0.02 * 10 * checkpoint_gb * p.hours.p50 / 730
        extra = storage + 0.09 * checkpoint_gb - 100
        assert p.usd.p50 == pytest.approx(2.40 * p.gpu_hours + extra, rel=1e-4)
        assert p.usd.p10 < p.usd.p50 < p.usd.p90
        assert p.usd_per_gpu_hour == pytest.approx(2.40)
        assert any("less $100.00 of credits" in a or "less $100 of credits" in a
                   for a in p.assumptions)  # fmt: skip


def test_a_credit_larger_than_the_bill_leaves_nothing_to_pay():
    keep({"kind": "credit", "provider": "aws", "usd": "900M"})
    for p in plans(price_book="acme"):
        assert (p.usd.p10, p.usd.p50, p.usd.p90) == (0, 0, 0)
        assert p.usd_per_gpu_hour > 0


def test_the_page_of_a_run_that_credits_pay_for_has_no_chart_and_says_why():
    keep({"kind": "credit", "provider": "aws", "usd": "900M"})
    page = AppTest.from_file(str(ROOT / "app/main.py"), default_timeout=60)
    for name, value in {**ASKED, "price_book": "acme"}.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    assert [i.value.split(" ", 1)[1] for i in page.info] == [
        "plans cost nothing, credits taken off: not in the chart, whose axis of dollars has no "
        "zero."
    ]
    assert {m.label: m.value.replace("\\", "") for m in page.metric}["Recommended"] == "$0"


def test_without_a_book_nothing_changes():
    keep(RATE)
    assert [dataclasses.asdict(p) for p in plans()] == [
        dataclasses.asdict(p) for p in plans(price_book="")
    ]


def test_a_changed_book_is_another_answer():
    keep(RATE)
    scenario = Scenario.parse({**ASKED, "price_book": "acme"})
    before, cost = price_book.book_id(scenario), plans(price_book="acme")[0].usd.p50
    keep({**RATE, "usd_per_gpu_hour": "1.20"})
    assert price_book.book_id(scenario) != before
    assert plans(price_book="acme")[0].usd.p50 == pytest.approx(cost / 2)


# --- links ---------------------------------------------------------------------------------------


def test_a_link_holds_the_name_of_a_book_and_none_of_its_prices():
    keep(RATE)
    scenario = resolve.resolve_strict(Scenario.parse({**ASKED, "price_book": "acme"}))
    query = scenario.to_query()
    assert query["price_book"] == "acme"
    assert "2.4" not in json.dumps(query)
    assert Scenario.from_query(query) == (scenario, [])


def test_a_link_whose_book_is_elsewhere_shows_list_prices_and_says_so():
    resolved, notes = resolve.resolve(Scenario.parse({**ASKED, "price_book": "theirs"}))
    assert resolved.price_book == ""
    assert notes == ["The price book 'theirs' is not on this server: list prices are shown."]
    with pytest.raises(ScenarioError, match="'theirs'"):
        resolve.resolve_strict(Scenario.parse({**ASKED, "price_book": "theirs"}))


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", "A", "x" * 41, "a b", "-a"])
def test_no_name_of_a_link_leads_out_of_the_folder(name):
    scenario, notes = Scenario.from_query({"price_book": name})
    assert scenario.price_book == ""
    assert len(notes) == 1
    assert notes[0].startswith("Ignored from the link: price_book=")


# --- the command line ----------------------------------------------------------------------------


def command(capsys, *arguments):
    status = _run([str(a) for a in arguments])
    return (status, *capsys.readouterr())


@pytest.fixture
def book_csv(tmp_path):
    path = tmp_path / "rates.csv"
    path.write_bytes(csv_of(RATE, OWNED, {**RATE, "provider": "nobody"}))
    return path


def test_a_book_is_added_listed_shown_and_removed(capsys, book_csv):
    status, out, _ = command(capsys, "prices", "book", "add", book_csv, "--name", "acme")
    said = " ".join(out.split())
    assert status == 0
    assert "Line 2: $2.40/h a GPU for aws H100-80GB-SXM, on_demand." in said
    assert "Line 3: own cluster cellar: 64 x H100-80GB-SXM at $2.05/h a GPU." in said
    assert "No listed offer is like it" in said
    status, out, _ = command(capsys, "prices", "book", "list")
    assert out.startswith("acme: 3 rows, added ")
    _, out, _ = command(capsys, "prices", "book", "show", "acme", "--json")
    shown = json.loads(out)
    assert [r["kind"] for r in shown["rows"]] == ["rate", "owned", "rate"]
    assert shown["rows"][1]["usd_per_gpu_hour"] == pytest.approx(2.0461, abs=1e-4)
    status, out, _ = command(capsys, "prices", "book", "remove", "acme")
    assert (status, book_names()) == (0, [])


def test_a_bad_file_is_refused_whole(capsys, tmp_path):
    path = tmp_path / "rates.csv"
    path.write_bytes(csv_of(RATE, {**RATE, "usd_per_gpu_hour": "-1"}))
    status, _, err = command(capsys, "prices", "book", "add", path, "--name", "acme")
    assert (status, book_names()) == (2, [])
    assert err.startswith("runcast: Line 3: usd_per_gpu_hour '-1'")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("add", "no-such-file.csv", "--name", "acme"), "There is no file"),
        (("show", "acme"), "this server has none"),
        (("remove", "../x"), "is no name of a price book"),
    ],
)
def test_a_mistake_is_one_sentence(capsys, arguments, says):
    status, _, err = command(capsys, "prices", "book", *arguments)
    assert status == 2
    assert says in err
    assert err.count("\n") == 1


def test_a_plan_takes_the_book_by_its_name(capsys, book_csv):
    command(capsys, "prices", "book", "add", book_csv, "--name", "acme")
    options = [
        "--model", "llama3.1-8b", "--tokens", "10B", "--seq-len", "8k", "--global-batch-size",
        "512", "--gpu", "h100", "--num-gpus", "64", "--cloud", "aws", "--price-book", "acme",
    ]  # fmt: skip
    status, out, _ = command(capsys, "plan", *options, "--json")
    found = json.loads(out)
    assert status == 0
    assert found["scenario"]["price_book"] == "acme"
    assert {p["price"]["source"] for p in found["plans"]} == {"price book acme"}
    command(capsys, "prices", "book", "remove", "acme")
    status, _, err = command(capsys, "plan", *options)
    assert status == 2
    assert "'acme'" in err
    link = found["link"]
    status, out, err = command(capsys, "plan", "--link", link)
    assert status == 0
    assert "The price book 'acme' is not on this server: list prices are shown." in err


def test_no_log_or_listing_of_another_command_shows_negotiated_prices(capsys):
    keep({**RATE, "usd_per_gpu_hour": "2.3456"})
    _, out, _ = command(capsys, "offers", "--gpu", "h100", "--json")
    assert "18.76" not in out
    assert "price book" not in out


def test_the_help_of_the_book_imports_nothing_heavy():
    program = (
        "import sys; from app.cli import _run; _run(['prices', 'book', '--help']); "
        "print({'numpy', 'pandas', 'pyarrow', 'streamlit', 'sqlalchemy'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("set()\n")
