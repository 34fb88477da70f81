"""Where each number comes from, in a real Chromium: by keyboard, on a phone, as files."""

import csv
from pathlib import Path

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

FEW = "/?model=llama3.1-70b&gpu=H100-80GB-SXM&cloud=aws&num_gpus=256"


def section(user):
    """The section, opened by keyboard."""
    part = user.page.get_by_test_id("stExpander").filter(has_text="Where each number comes from")
    part.locator("summary").focus()
    user.page.keyboard.press("Enter")
    user.settle()
    return part


def test_a_number_is_chosen_by_keyboard_and_explained(new_user):
    user = new_user()
    user.open(FEW)
    assert "Symbol" not in user.page.inner_text("body")
    part = section(user)
    expect(part).to_contain_text("Cost of the run, expected")
    expect(part).to_contain_text("compute_usd")
    part.get_by_role("combobox").first.focus()
    user.page.keyboard.type("MFU")
    user.page.keyboard.press("Enter")
    user.settle()
    expect(part).to_contain_text("model_flops_per_s_per_gpu")
    expect(part).to_contain_text("published")


def test_all_numbers_come_as_a_file(new_user):
    user = new_user()
    user.open(FEW)
    part = section(user)
    with user.page.expect_download() as download:
        part.get_by_role("button", name="All numbers as CSV").click()
    rows = list(csv.DictReader(Path(download.value.path()).read_text().splitlines()))
    assert {"run_usd", "mfu", "usd_per_instance_hour"} <= {r["Number"] for r in rows}
    assert all(r["Kind"] for r in rows)
