"""The Risk & money page in a real Chromium: edits, a trace, downloads, screens, both themes."""

import csv
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.app.buy.test_buy_cli import bursts

pytestmark = pytest.mark.browser

JOB = "model=llama3.1-8b&num_tokens=1e12&gpu=H100-80GB-SXM&num_gpus=64&deadline_days=30"
PAGE = f"/risk?{JOB}"


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (390, 844)])
def test_nothing_of_the_risk_page_is_cut_off_at_the_side(new_user, width, height):
    user = new_user(viewport={"width": width, "height": height})
    user.open(PAGE)
    assert user.page.title() == "Runcast: Risk & money"
    assert user.notes() == []
    main = user.page.get_by_test_id("stMain")
    assert main.evaluate("m => m.scrollWidth <= m.clientWidth + 1")
    charts = user.page.get_by_test_id("stVegaLiteChart").all()
    assert len(charts) >= 6
    for chart in charts:
        expect(chart.locator("canvas, svg").first).to_be_visible()


def test_a_field_of_risk_is_edited_here_and_in_the_link(new_user):
    user, page = new_user(), f"{PAGE}&max_price_age_days=0"  # the bundled prices of spot are old
    user.open(page)
    before = user.headlines()
    user.unfold("Spot and reservations")
    user.type("Preemptions a day", "0.01")
    assert "preemptions_per_day=0.01" in user.query()
    assert user.headlines()[0] != before[0]
    user.type("Preemptions a day", "often")
    assert "'often' is not a number" in " ".join(user.notes())
    user.back()
    assert user.headlines() == before
    other = new_user()
    other.open(f"{page}&preemptions_per_day=0.01")
    assert other.headlines()[0] != before[0]


def test_the_form_and_the_plan_are_those_of_the_plan_page(new_user):
    user = new_user()
    user.open(f"/?{JOB}&tp=8")
    user.type("Deadline (days)", "25")
    user.follow("Risk & money", "/risk")
    assert user.value("Deadline (days)") == "25"
    user.unfold("Parallelism")
    assert user.value("Tensor parallel") == "8"
    user.type("Deadline (days)", "21")
    user.follow("Plan", "/")
    assert user.value("Deadline (days)") == "21"
    assert "deadline_days=21" in user.query()


def test_an_uploaded_trace_with_bursts_has_a_higher_p90_and_the_page_says_why(new_user, tmp_path):
    user = new_user()
    user.open(PAGE)
    trace = user.page.get_by_test_id("stFileUploader").filter(has_text="trace of spot capacity")
    trace.locator('input[type="file"]').set_input_files(bursts(tmp_path / "mine.csv"))
    expect(user.page.get_by_text("your trace gives").first).to_be_visible(timeout=30_000)
    user.settle()
    text = " ".join(user.page.inner_text("body").split())
    assert "Replayed from 240 starts, your trace gives spot only a P90 of" in text
    assert "times more than exponential ones" in text
    assert user.notes() == []
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("start_hours,end_hours\n0,5\n4,9\n")
    trace.get_by_role("button", name="Remove").first.click()
    user.settle()
    trace.locator('input[type="file"]').set_input_files(wrong)
    user.settle()
    assert "wrong.csv" in " ".join(user.notes())
    assert "your trace gives" not in user.page.inner_text("body")


def test_the_csv_holds_the_ways_and_the_link(new_user):
    user = new_user()
    user.open(PAGE)
    user.page.get_by_role("button", name="Chart as a file").first.click()
    user.settle()
    with user.page.expect_download() as download:
        user.page.get_by_role("button", name="Data as CSV").press("Enter")
    rows = list(csv.DictReader(Path(download.value.path()).read_text().splitlines()))
    assert "on demand" in {r["way"] for r in rows}
    assert "deadline_days=30" in rows[0]["Link"]
