"""Compare in a real Chromium: pins go through the link, and nothing is cut off."""

import csv
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

FEW = "/options?model=llama3.1-8b&num_tokens=1e11&gpu=H100-80GB-SXM&cloud=aws,lambda&num_gpus=32,64"
PINS = re.compile(r"^Pinned plans")


def pin(user, rank):
    """Pin a plan with the keyboard alone, from the list under the table."""
    box = user.page.get_by_role("combobox", name=PINS)
    box.focus()
    box.press("ArrowDown")
    user.page.keyboard.type(f"#{rank}:")
    user.page.get_by_role("option").first.wait_for()
    user.page.keyboard.press("Enter")
    user.page.keyboard.press("Escape")
    user.settle()


def compared(user):
    """Every cell of the comparison."""
    return [t.inner_text() for t in user.page.get_by_test_id("stTable").all()]


def test_a_comparison_is_in_the_link(new_user):
    user = new_user()
    user.open(FEW)
    expect(user.page.get_by_text("Pin two to four plans")).to_be_visible()
    pin(user, 1)
    pin(user, 9)
    (mine,) = compared(user)
    assert "A: " in mine
    assert "B: " in mine
    expect(user.page.get_by_text("Over the run, without failures:").first).to_be_visible()
    assert user.page.url.count("~on_demand~") == 2
    rights = ["clipboard-read", "clipboard-write"]
    user.page.context.grant_permissions(rights, origin=user.base_url)
    user.page.get_by_role("button", name="Copy link to this comparison").click()
    expect(user.page.get_by_text("Copied")).to_be_visible()

    other = new_user()
    other.page.goto(user.page.evaluate("navigator.clipboard.readText()"))
    other.settle()
    assert compared(other) == [mine]

    user.back()
    expect(user.page.get_by_text("Pin two to four plans")).to_be_visible()
    user.forward()
    assert compared(user) == [mine]
    user.page.reload()
    user.settle()
    assert compared(user) == [mine]


def test_rows_are_pinned_with_the_mouse_and_a_fifth_is_refused(new_user):
    user = new_user(viewport={"width": 1440, "height": 1400})
    user.open(FEW.replace("&gpu=", "&gpu=A100-80GB-SXM,"))  # more than four products

    def click(row):
        box = user.page.get_by_test_id("stDataFrame").first.bounding_box()
        user.page.mouse.click(box["x"] + 17, box["y"] + 37 + 35 * row + 17)

    for row in range(4):
        click(row)
        user.page.wait_for_url(lambda url, n=row + 1: url.count("~on_demand~") == n)
        user.settle()
    click(4)
    expect(user.page.get_by_text("4 plans are pinned, the most there can be")).to_be_visible()
    assert user.page.url.count("~on_demand~") == 4
    user.settle()
    click(0)
    user.page.wait_for_url(lambda url: url.count("~on_demand~") == 3)


def test_filters_narrow_the_list_and_the_file(new_user):
    user = new_user()
    user.open(FEW)
    user.type("GPUs, at most", "32")
    expect(user.page.get_by_text("ranked plans pass the filters")).to_be_visible()
    with user.page.expect_download() as download:
        user.page.get_by_role("button", name="All as CSV").click()
    rows = list(csv.DictReader(Path(download.value.path()).read_text().splitlines()))
    assert {r["GPUs"] for r in rows} == {"32"}
    user.type("Time, at most (days)", "0.001")
    expect(user.page.get_by_text("No ranked plan is all of this")).to_be_visible()
    user.page.get_by_role("button", name="Clear filters").click()
    user.settle()
    expect(user.page.get_by_text(re.compile(r"^All \d+ ranked plans"))).to_be_visible()


def test_filters_are_in_the_link_and_each_is_a_step_of_the_history(new_user):
    user = new_user()
    user.open(FEW)
    user.type("GPUs, at most", "32")
    user.page.get_by_text("Per million tokens", exact=True).first.click()
    user.page.wait_for_url(re.compile("list_unit=mtoken"))
    user.settle()
    assert "list_max_gpus=32&list_unit=mtoken" in user.query()
    mine = user.table()
    assert "64" not in mine

    other = new_user()
    other.page.goto(user.page.url)
    other.settle()
    assert other.table() == mine
    assert other.value("GPUs, at most") == "32"
    assert other.notes() == user.notes()
    other.follow("Launch", "/launch")  # and back: links carry it to every page
    assert "list_max_gpus=32&list_unit=mtoken" in other.query()
    other.follow("Compare", "/options")
    assert other.table() == mine

    user.back()
    assert "list_unit" not in user.query()
    assert user.value("GPUs, at most") == "32"
    user.back()
    assert "list_" not in user.query()
    assert user.value("GPUs, at most") == ""
    user.forward()
    assert user.value("GPUs, at most") == "32"


@pytest.mark.parametrize(
    ("pasted", "says"),
    [
        ("x=" + "y" * 100_000, "100,002 characters"),
        ("<img src=x onerror=alert(1)>", "no scenario in it"),
        ("v=7&model=%3Cscript%3Ealert(1)%3C/script%3E", "model='<script>alert(1)</script>'"),
        ("model=llama3.1-8b&gpu=H100-80GB-SXM&cloud=aws&num_gpus=64&=1+1=2&$x$=:red[y]", "field"),
    ],
)
def test_a_pasted_link_is_hostile_until_it_is_read(new_user, pasted, says):
    user = new_user()
    user.open(FEW)
    before = user.query()
    area = user.page.get_by_label(re.compile("^Another link"))
    area.fill(pasted)
    area.press("Control+Enter")
    user.settle()
    assert says in " ".join(user.notes())
    assert user.query() == before  # it is looked at, not opened
    assert user.page.get_by_test_id("stException").count() == 0
