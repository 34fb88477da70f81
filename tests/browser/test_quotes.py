"""Quotes in a real Chromium: typed in within seconds, in the link, changed and removed."""

import re
import time

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

ASKED = "/?model=llama3.1-8b&num_tokens=1e11&gpu=H100-80GB-SXM&cloud=aws,lambda&num_gpus=256"
ACTIONS, SECONDS = 6, 20


def test_a_quote_is_entered_in_seconds_and_its_link_has_the_same_numbers(new_user):
    user = new_user()
    user.open(ASKED)
    page, begun = user.page, time.monotonic()
    actions = (
        lambda: page.get_by_role("button", name="Add a quote").click(),
        lambda: page.get_by_label("Who offers it").fill("acme"),
        lambda: page.get_by_label("GPU", exact=True).fill("h100"),
        lambda: page.get_by_label("USD per GPU-hour", exact=True).fill("2.20"),
        lambda: page.get_by_role("button", name="Add", exact=True).click(),
    )
    assert len(actions) <= ACTIONS
    for act in actions:
        act()
    expect(page.get_by_text("Your quote: acme, H100-80GB-SXM, $2.20/h a GPU")).to_be_visible()
    user.settle()
    assert time.monotonic() - begun < SECONDS
    assert "quotes=acme" in user.query()
    mine = user.table()
    assert "your quote" in mine
    assert {"aws", "acme"} <= set(mine)

    other = new_user()
    other.page.goto(user.link())
    other.settle()
    assert other.table() == mine
    assert other.headlines() == user.headlines()
    assert other.notes() == []

    user.press("Edit")
    assert user.value("Who offers it") == "acme"
    user.page.get_by_label("USD per GPU-hour", exact=True).fill("2,10")
    user.press("Change")
    expect(page.get_by_text("has a comma: write 2.10")).to_be_visible()
    user.page.get_by_label("USD per GPU-hour", exact=True).fill("2.10")
    user.press("Change")
    expect(page.get_by_text("$2.10/h a GPU")).to_be_visible()
    user.press("Remove")
    expect(page.get_by_text(re.compile("^. Your quote:"))).to_have_count(0)
    assert "quotes=" not in user.query()
