"""The Prices page without a browser: offers, filters in the address, history, refresh."""

import csv
import datetime as dt
import io
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from app.document.csv import csv_bytes
from app.prices import offers, over_time
from app.prices import refresh_job as job_module
from app.prices.refresh_job import RefreshJob
from pricing.disk import prices_folder
from pricing.history import known_skus
from pricing.lease import lease
from pricing.offers import newest_per_place, snapshot
from pricing.sources import SOURCES
from pricing.store.opening import open_store
from pricing.store.quarantine import releases
from tests.feeds.refreshing import made
from tests.made_up import plans as made_up

TODAY = dt.date(2026, 11, 21)
OFFER = made_up.offer(
    usd_per_hour=40.0, scale_out_gbit_per_s=None, observed_at="2026-11-21", source="AWS price list"
)
SPOT = replace(OFFER, purchase="spot", usd_per_hour=16.0, observed_at="2026-11-18")
A100 = replace(
    OFFER, provider="gcp", accelerator="A100-80GB-SXM", usd_per_hour=24.0, observed_at="2026",
    region="us-central1", quality="low",
)  # fmt: skip
UNPRICED = replace(OFFER, provider="azure", usd_per_hour=None)


def script():
    from app.forecast import answer as forecast_answer
    from app.forecast import resolve
    from app.prices import page as prices_page
    from app.web import link

    link.take_over(resolve.resolve, resolve.current_prices())
    link.write()
    prices_page.draw(lambda scenario: forecast_answer.answer(scenario, top=5))


@pytest.fixture(autouse=True)
def _data(monkeypatch, tmp_path):
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path))


@pytest.fixture
def frame():
    return offers.frame_of([OFFER, SPOT, A100, UNPRICED], TODAY)


def opened(**query):
    page = AppTest.from_function(script, default_timeout=60)
    for name, value in query.items():
        page.query_params[name] = value
    return page.run()


def plain(text):
    return str(text).replace("\\", "").replace("\N{WORD JOINER}", "")


def said(page):
    parts = (page.markdown, page.caption, page.info, page.warning, page.success, page.error)
    return plain("\n".join(e.value for kind in parts for e in kind))


def table(page, column):
    return next(e.value for e in page.dataframe if column in e.value.columns)


# --- tables --------------------------------------------------------------------------------------


def test_a_price_says_how_old_it_is_at_most(frame):
    """'2026' is a price of some day of the year, and not of today."""
    ages = dict(zip(frame["observed_at"], frame["age_days"], strict=True))
    assert ages == {"2026-11-21": 0, "2026-11-18": 3, "2026": 324}
    assert dict(zip(frame["observed_at"], frame["freshness"], strict=True)) == {
        "2026-11-21": offers.FRESH, "2026-11-18": offers.AGING, "2026": offers.STALE,
    }  # fmt: skip
    assert offers.newest(frame, TODAY) == ("newest price of today", "green")
    assert "1 fresh, 1 over a day, 1 over a week" in offers.summary(frame, "abc")


@pytest.mark.parametrize(
    ("unit", "usd"),
    [("gpu_hour", 5), ("gpu_month", 5 * 730), ("instance_hour", 40), ("instance_month", 40 * 730)],
)
def test_a_unit_is_of_a_gpu_or_an_instance_and_an_hour_or_a_month(frame, unit, usd):
    shown = offers.table(frame, unit)
    [row] = shown[(shown["Purchase"] == "on demand") & (shown["Cloud"] == "aws")].index
    assert shown.loc[row, offers.UNITS[unit]] == pytest.approx(usd)


def test_filters_narrow_together_and_an_empty_one_lets_all_through(frame):
    assert len(offers.narrowed(frame, {"gpu": [], "cloud": []})) == 3
    assert len(offers.narrowed(frame, {"cloud": ["aws"], "purchase": ["spot"]})) == 1
    assert offers.narrowed(frame, {"cloud": ["aws"], "quality": ["low"]}).empty


def test_the_heatmap_has_the_cheapest_of_each_pair_and_nothing_for_none(frame):
    cells = offers.heatmap(frame).set_index(["accelerator", "provider"])
    assert cells.loc[("H100-80GB-SXM", "aws"), "usd"] == 2
    assert np.isnan(cells.loc[("H100-80GB-SXM", "gcp"), "usd"])
    assert cells.loc[("H100-80GB-SXM", "aws"), "offers"] == 2
    assert cells.loc[("H100-80GB-SXM", "aws"), "kind"] == "spot"
    sentence = offers.heatmap_sentence(offers.heatmap(frame))
    assert sentence.startswith("2 of 4 pairs")
    assert "H100-80GB-SXM at aws, $2.00/h" in sentence


def test_no_cell_of_a_download_is_a_formula():
    evil = replace(OFFER, instance_type="=cmd()", note="@SUM(1)", source="+1")
    text = csv_bytes(offers.table(offers.frame_of([evil], TODAY), "gpu_hour")).decode()
    [row] = csv.DictReader(io.StringIO(text))
    assert [row[c][0] for c in ("Instance", "Note", "Source")] == ["'", "'", "'"]
    assert float(row["USD per GPU-hour"]) == 5


# --- history -------------------------------------------------------------------------------------


def over_time_sku():
    """A bundled spot price with a gap and an on-demand price beside it."""
    kinds = known_skus(accelerator="H100-80GB-SXM", purchase="spot")
    return next(
        s for s in kinds
        if over_time.prices_of(s, None).chosen.gaps
        and not over_time.ratio_days(over_time.prices_of(s, None)).empty
    )  # fmt: skip


def test_a_history_that_cannot_be_read_is_a_sentence_beside_the_prices():
    prices_folder().mkdir(parents=True)
    (prices_folder() / "history.csv").write_text("no history\n")
    page = AppTest.from_function(script, default_timeout=60).run()
    assert not page.exception
    assert "columns are not provider" in " ".join(w.value for w in page.warning)
    assert page.selectbox(key="prices_history_accelerator").options


def test_a_gap_in_what_was_seen_is_a_gap_in_the_line():
    found = over_time.prices_of(over_time_sku(), None).chosen
    lines = over_time.lines(found)
    assert lines["piece"].nunique() > 1
    for gap in found.gaps:
        of_source = lines[lines["source"] == gap.source]
        pieces = of_source.groupby("piece")["at"].agg(["min", "max"])
        crossing = (pieces["min"] < gap.begins) & (pieces["max"] > gap.begins)
        assert not crossing.any()


def test_a_missing_day_breaks_the_ratio():
    days = over_time.ratio_days(over_time.prices_of(over_time_sku(), None))
    steps = np.diff(days["day"].to_numpy()).astype("timedelta64[D]").astype(int)
    assert ((steps > 1) == (np.diff(days["piece"]) == 1)).all()


# --- the page ------------------------------------------------------------------------------------


def test_the_page_lists_what_the_snapshot_has():
    page = opened()
    newest = newest_per_place(snapshot().offers)
    shown = table(page, "USD per GPU-hour")
    assert len(shown) == min(offers.LISTED, sum(o.usd_per_hour is not None for o in newest))
    assert shown["USD per GPU-hour"].is_monotonic_increasing
    assert not shown["Source"].eq("").any()
    assert table(page, "Median age (days)")["Offers"].sum() == len(newest)
    assert f"0 of {len(SOURCES)} sources have answered on this installation" in said(page)
    assert set(table(page, "Live")["Live"]) == {"never run live"}
    assert "the prices are the bundled ones" in said(page)
    assert "No price is held back." in said(page)
    assert not page.exception


def test_filters_come_from_the_address_and_go_back_into_it():
    page = opened(show_cloud="aws,gcp", show_unit="instance_month", gpu="h100")
    shown = table(page, "USD per instance-month")
    assert set(shown["Cloud"]) == {"aws", "gcp"}
    page.multiselect(key="prices_purchase").select("spot").run()
    assert set(table(page, "USD per instance-month")["Purchase"]) == {"spot"}
    query = dict(page.query_params)
    assert query["show_purchase"] == "spot"
    assert query["show_cloud"] == "aws,gcp"
    assert query["gpu"] == "H100-80GB-SXM"


def test_a_price_of_no_stated_region_is_found_by_those_words_in_list_and_table():
    page = opened(show_region="*")  # links hold the value, as they always did
    shown = table(page, "USD per GPU-hour")
    assert set(shown["Region"]) == {"not stated"}
    offered = page.multiselect(key="prices_region")
    assert "not stated" in offered.options
    assert "*" not in offered.options
    assert page.query_params["show_region"] == "*"


def test_back_takes_a_filter_away():
    page = opened(show_cloud="aws")
    page.multiselect(key="prices_cloud").select("gcp").run()
    assert page.query_params["show_cloud"] == "aws,gcp"
    page.query_params["show_cloud"] = "aws"
    page.run()
    assert page.multiselect(key="prices_cloud").value == ["aws"]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"show_cloud": "awz"}, "Ignored from the link: show_cloud='awz'"),
        ({"show_unit": "euro"}, "show_unit='euro' is no choice here"),
        ({"show_colour": "red"}, "show_colour is no filter of this page"),
        ({"show_gpu": "<img src=x>"}, "is no choice here"),
    ],
)
def test_what_the_address_asks_for_in_vain_is_said(query, says):
    page = opened(**query)
    assert says in said(page)
    assert len(table(page, "USD per GPU-hour")) == offers.LISTED
    assert not page.exception


def test_the_plan_of_the_link_on_another_day():
    page = opened(gpu="h100", cloud="gcp", num_gpus="64", num_tokens="10B")
    page.date_input(key="prices_plan_day").set_value(dt.date(2026, 7, 29))
    page.toggle(key="prices_plan_on").set_value(True).run()
    assert "64 x H100-80GB-SXM" in said(page)
    assert "on 2026-07-29" in said(page)
    page.date_input(key="prices_plan_day").set_value(dt.date(2020, 1, 1)).run()
    assert "nobody's price of 2020-01-01 is at hand" in said(page)


# --- refresh -------------------------------------------------------------------------------------


@pytest.fixture
def sources_of(monkeypatch):
    def use(*wanted):
        monkeypatch.setattr(job_module, "chosen", lambda names: wanted)

    return use


def waiting(go):
    """A source that answers when it is told to."""

    def fetch(session):
        go.wait(20)
        return [replace(o, source="slow") for o in made(44.0).fetch(session)]

    return replace(made(44.0), name="slow", fetch=fetch)


def test_a_refresh_publishes_and_can_be_followed(sources_of):
    go = threading.Event()
    sources_of(made(44.0), waiting(go))
    job = RefreshJob()
    assert job.start() == ""
    assert job.start() == "A refresh is at work already."
    deadline = time.monotonic() + 20
    while not job.progress().ended and time.monotonic() < deadline:
        time.sleep(0.01)
    assert job.progress().running
    assert job.progress().fraction == 0.5
    assert job.progress().ended[0][0] == "made"
    go.set()
    job.wait(60)
    done = job.progress()
    assert (done.running, done.failed) == (False, False)
    assert f"published as price snapshot {snapshot().id}" in done.sentence
    assert job.start().startswith("The last refresh ended less than a minute ago")


def test_a_refresh_elsewhere_is_said(sources_of):
    sources_of(made(44.0))
    job = RefreshJob()
    with lease(prices_folder()):
        assert job.start() == ""
        job.wait(60)
    assert job.progress().failed
    assert job.progress().sentence.startswith("Another refresh works (process ")


def test_a_fault_does_not_leave_the_page_waiting(sources_of, monkeypatch):
    def broken(*_, **__):
        raise KeyError("a bug")

    sources_of(made(44.0))
    monkeypatch.setattr(job_module, "refresh", broken)
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    job = RefreshJob()
    job.start()
    job.wait(60)
    assert (job.progress().running, job.progress().failed) == (False, True)
    assert "a fault of this program" in job.progress().sentence.lower()


def test_a_refresh_that_runs_is_drawn_with_its_progress(sources_of):
    from app.prices import sources_section as view

    go = threading.Event()
    sources_of(made(44.0), waiting(go))
    view.job.clear()
    page = opened()
    page.button(key="prices_refresh").click().run()
    deadline = time.monotonic() + 20
    while not view.job().progress().ended and time.monotonic() < deadline:
        time.sleep(0.01)
    page.run()
    assert "made: refreshed, 300 prices in " in said(page)
    assert page.button(key="prices_refreshed")
    go.set()
    view.job().wait(60)
    page.button(key="prices_refreshed").click().run()
    assert " fresh" in page.markdown[0].value
    assert not page.exception
    view.job.clear()


def test_what_is_held_back_is_shown_and_released_in_a_name(sources_of):
    for usd in (44.0, 4400.0 / 25):  # the second is four times the first: a jump
        sources_of(made(usd))
        job = RefreshJob()
        job.start()
        job.wait(60)
    page = opened()
    held = table(page, "Rule")
    assert set(held["Rule"]) == {"jump"}
    page.button(key="prices_release_submit").click().run()
    assert "A release is recorded under a name: give yours." in said(page)
    page.text_input(key="prices_release_by").input("ada")
    page.button(key="prices_release_submit").click().run()
    assert "is released by ada: the next refresh publishes it." in said(page)


@pytest.fixture
def a_list_that_moved(sources_of):
    """A page on which the list of a source is held back: its prices fell to a half."""
    from app.prices import sources_section as view

    for usd in (44.0, 22.0):
        sources_of(replace(made(usd), name="lambda"))
        job = RefreshJob()
        job.start()
        job.wait(60)
    view.job.clear()
    yield view
    view.job.clear()


def decided(page, how, name="ada"):
    page.text_input(key="prices_list_lambda_by").input(name)
    return page.button(key=f"prices_list_lambda_{how}").click().run()


def live_prices():
    return {o.usd_per_hour for o in snapshot().offers if o.source == "made"}


def test_a_list_that_is_held_back_is_taken_and_published_at_once(a_list_that_moved):
    page = opened()
    assert "lambda: its prices are 0.50 times the last ones" in said(page)
    assert "A decision is recorded under a name" in said(decided(page, "take", name=" "))
    assert "The list of lambda is taken by ada" in said(decided(page, "take"))
    a_list_that_moved.job().wait(60)
    assert live_prices() == {22.0}
    assert "No price is held back." in said(opened())
    (recorded,) = releases(open_store())
    assert (recorded.source, recorded.by, recorded.sku.provider) == ("lambda", "ada", "")


def test_a_list_that_is_left_stays_held_back_by_the_next_refresh(a_list_that_moved):
    assert "The list of lambda is left by ada" in said(decided(opened(), "leave"))
    job = RefreshJob()
    job.start()
    job.wait(60)
    assert live_prices() == {44.0}
    page = opened()
    assert "It is left by ada." in said(page)
    decided(page, "take")
    a_list_that_moved.job().wait(60)
    assert live_prices() == {22.0}


def test_the_page_stands_without_its_store(monkeypatch):
    monkeypatch.setenv("RUNCAST_DATABASE_URL", "nonsense://")
    page = opened()
    assert not page.exception
    assert len(page.warning) >= 1
    assert len(table(page, "USD per GPU-hour")) == offers.LISTED


def test_what_the_store_missed_is_held_back_all_the_same(sources_of, monkeypatch):
    """The file of the last refresh is what counts: a store that was away does not hide it."""
    monkeypatch.setenv("RUNCAST_DATABASE_URL", "nonsense://")
    for usd in (44.0, 176.0):
        sources_of(made(usd))
        job = RefreshJob()
        job.start()
        job.wait(60)
    page = opened()
    assert set(table(page, "Rule")["Rule"]) == {"jump"}
    monkeypatch.delenv("RUNCAST_DATABASE_URL")
    page = opened()
    assert len(table(page, "Rule")) == 300
    assert "prices_release_submit" not in {b.key for b in page.button}


def test_prices_of_a_book_are_listed_with_their_source():
    from app.prices.book_file import read_book
    from pricing.book.files import save_book

    content = b"kind,provider,accelerator,usd_per_gpu_hour\nrate,aws,h100,2.1234\n"
    save_book(read_book(content, file_name="b.csv", name="acme", today=TODAY))
    shown = table(opened(price_book="acme", show_cloud="aws"), "USD per GPU-hour")
    booked = shown[shown["Source"] == "price book acme"]
    assert len(booked) > 0
    assert set(booked["USD per GPU-hour"]) == {2.1234}
    gone = opened(price_book="theirs")
    assert "price book acme" not in set(table(gone, "USD per GPU-hour")["Source"])
