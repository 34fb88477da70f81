"""The Prices page in a real Chromium: filters, Back, downloads, small screens, themes."""

import csv
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

PAGE = "/prices?gpu=H100-80GB-SXM&cloud=aws&num_gpus=64"


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
