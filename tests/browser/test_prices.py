"""The Prices page in a real Chromium: filters, Back, downloads, small screens, themes."""

import csv
from pathlib import Path

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

PAGE = "/prices?gpu=H100-80GB-SXM&cloud=aws&num_gpus=64"


def chips(user, label):
    """What a filter is set to."""
    box = user.page.get_by_test_id("stMain").get_by_test_id("stMultiSelect").filter(has_text=label)
    return box.locator(".react-aria-ComboBox [data-tag]").all_inner_texts()


def choose(user, label, option):
    box = user.page.get_by_test_id("stMain").get_by_role("combobox", name=label)
    box.scroll_into_view_if_needed()
    box.fill(option)  # the list is drawn as far as it is seen
    user.page.get_by_role("option", name=option, exact=True).click()
    user.page.keyboard.press("Escape")
    user.settle()


def test_filters_are_in_the_address_and_back_undoes_one(new_user):
    user = new_user()
    user.open(PAGE)
    scenario = user.query()
    choose(user, "Cloud", "lambda")
    assert "show_cloud=lambda" in user.query()
    choose(user, "Cloud", "vast")
    assert "show_cloud=lambda%2Cvast" in user.query()
    assert chips(user, "Cloud") == ["lambda", "vast"]
    user.back()
    assert chips(user, "Cloud") == ["lambda"]
    user.back()
    assert (user.query(), chips(user, "Cloud")) == (scenario, [])


def test_a_link_with_filters_reopens_and_the_plan_keeps_the_scenario(new_user):
    user = new_user()
    user.open(PAGE + "&show_cloud=lambda&show_unit=instance_hour")
    assert chips(user, "Cloud") == ["lambda"]
    expect(user.page.get_by_role("radio", name="USD per instance-hour")).to_be_checked()
    user.follow("Plan", "/")
    assert "show_" not in user.query()
    assert user.query().startswith("v=1&gpu=H100-80GB-SXM&num_gpus=64&cloud=aws")
    assert not user.notes()


def test_the_offers_download_as_they_are_filtered(new_user, tmp_path):
    user = new_user()
    user.open(PAGE + "&show_cloud=lambda")
    buttons = user.page.get_by_role("button", name="Download CSV")
    with user.page.expect_download() as started:
        buttons.first.click()
    path = Path(tmp_path / "offers.csv")
    started.value.save_as(path)
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert rows
    assert {row["Cloud"] for row in rows} == {"lambda"}
    assert all(float(row["USD per GPU-hour"]) > 0 and row["Source"] for row in rows)
