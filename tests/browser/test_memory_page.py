"""Memory & speed, in a real Chromium: it draws, keeps the choice in the link, fits a phone."""

import csv
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

QUERY = "?model=llama3.1-70b&gpu=H100-80GB-SXM&cloud=aws&num_gpus=256"
CHARTS = 5


def drawn(user):
    """The page's charts, once all of them are there."""
    charts = user.page.get_by_test_id("stVegaLiteChart")
    expect(charts).to_have_count(CHARTS)
    for n in range(CHARTS):
        charts.nth(n).scroll_into_view_if_needed()
        expect(charts.nth(n).locator("svg text").first).to_be_attached()
    return charts


def chooser(user):
    """The list of plans."""
    return user.page.get_by_test_id("stMain").get_by_role("combobox").first


def test_the_answer_is_there_without_a_click(new_user):
    user = new_user()
    user.open(f"/memory{QUERY}")
    charts = drawn(user)
    first, second, third, fourth, fifth = (charts.nth(n) for n in range(CHARTS))
    assert "legal layouts fit here" in first.get_attribute("aria-label")
    expect(first).to_contain_text("Capacity 79.2 GiB")
    expect(first).to_contain_text(re.compile("over the capacity|more than is safe"))
    expect(second).to_contain_text(", the peak; ")
    expect(third).to_contain_text("Ideal: model FLOPs at the dense peak")
    for panel in (fourth, fifth):
        expect(panel).to_contain_text("You are here")
    expect(user.page.get_by_test_id("stMain")).to_contain_text("It lacks ")


def test_a_plan_is_chosen_and_is_in_the_link(new_user):
    user = new_user()
    user.open(f"/memory{QUERY}&purchase=on_demand,spot")
    box = chooser(user)
    expect(box).to_have_value(re.compile("^#1: "))
    box.click()
    user.page.get_by_role("option").nth(1).click()
    user.settle()
    assert "plan=" in user.query()
    user.back()
    assert "plan=" not in user.query()
    user.forward()
    other = new_user()
    other.open(f"/memory?{user.query()}")
    expect(chooser(other)).to_have_value(re.compile("^#2: "))


def test_the_data_of_the_layouts_is_a_csv(new_user):
    user = new_user()
    user.open(f"/memory{QUERY}")
    user.page.get_by_role("button", name="Chart as a file").first.click()
    user.settle()
    with user.page.expect_download() as download:
        user.page.get_by_role("button", name="Data as CSV").press("Enter")
    rows = list(csv.DictReader(Path(download.value.path()).read_text().splitlines()))
    assert [r["kind"] for r in rows[:2]] == ["plan", "fits"]
    assert {"layout", "need_gib", "capacity_gib", "activations_gib", "Link"} <= {*rows[0]}


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (390, 844)])
def test_nothing_is_cut_off_at_the_side(new_user, tmp_path, width, height):
    user = new_user(viewport={"width": width, "height": height})
    user.open(f"/memory{QUERY}")
    main = user.page.get_by_test_id("stMain")
    for chart in drawn(user).all():
        box = chart.bounding_box()
        for text in chart.locator("svg text").all():
            inner = text.bounding_box()
            if inner and inner["width"]:
                assert inner["x"] >= box["x"] - 4
                assert inner["x"] + inner["width"] <= box["x"] + box["width"] + 4
    for title in ("Layouts as a table", "Phases as a table", "Numbers of GPUs as a table"):
        user.page.get_by_test_id("stExpander").filter(has_text=title).locator("summary").click()
        user.settle()
    assert main.evaluate("e => e.scrollWidth <= e.clientWidth + 1")
    assert main.screenshot(path=tmp_path / f"memory_{width}.png")
