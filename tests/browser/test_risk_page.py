"""The Risk & money page in a real Chromium: edits, a trace, downloads, screens, both themes."""

import pytest
from playwright.sync_api import expect

from tests.app.buy.test_buy_cli import bursts

pytestmark = pytest.mark.browser

JOB = "model=llama3.1-8b&num_tokens=1e12&gpu=H100-80GB-SXM&num_gpus=64&deadline_days=30"
PAGE = f"/risk?{JOB}"


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
