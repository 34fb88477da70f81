"""Memory & speed, in a real Chromium: it draws, keeps the choice in the link, fits a phone."""

import re

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
