"""Why this plan, in a real Chromium: it opens, answers, and fits a narrow screen."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

FEW = "/?model=llama3.1-70b&gpu=H100-80GB-SXM&cloud=aws&num_gpus=256"
LAYOUT = "A layout on these machines"


def section(user):
    """The section, opened."""
    part = user.page.get_by_test_id("stExpander").filter(has_text="why not your layout")
    part.locator("summary").click()
    user.settle()
    return part


def test_the_section_opens_and_says_why(new_user):
    user = new_user()
    user.open(FEW)
    body = user.page.inner_text("body")
    assert "Next bottleneck: " in body
    assert "Why not my layout?" not in body
    part = section(user)
    expect(part).to_contain_text("What would make it faster")
    chart = part.get_by_test_id("stVegaLiteChart")
    expect(chart.locator("canvas, svg").first).to_be_visible()
    assert "The most: Price of an instance-hour +10%" in chart.get_attribute("aria-label")


@pytest.mark.parametrize(("width", "height"), [(390, 844)])
def test_nothing_of_it_is_cut_off_at_the_side(new_user, tmp_path, width, height):
    user = new_user(viewport={"width": width, "height": height})
    user.open(FEW)
    part = section(user)
    user.type(LAYOUT, "tp=1,pp=1,sharding=ddp")
    main = user.page.get_by_test_id("stMain")
    assert main.evaluate("e => e.scrollWidth <= e.clientWidth + 1")
    # The memory bar's legend and the chart of inputs keep their text inside.
    for chart in user.page.get_by_test_id("stVegaLiteChart").all():
        box = chart.bounding_box()
        for text in chart.locator("svg text").all():
            inner = text.bounding_box()
            if inner and inner["width"]:
                assert inner["x"] >= box["x"] - 4
                assert inner["x"] + inner["width"] <= box["x"] + box["width"] + 4
    assert part.screenshot(path=tmp_path / f"why_{width}.png")
