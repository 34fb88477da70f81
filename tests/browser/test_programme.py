"""Stages in a real Chromium: from one run to three stages in two actions, and the link reopens."""

import re
import time

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

ASKED = "/?model=llama3.1-8b&num_tokens=1e11&gpu=H100-80GB-SXM&cloud=aws&num_gpus=64"
SECONDS = 60


def test_a_new_user_gets_three_stages_and_whoever_opens_the_link_the_same(new_user):
    user = new_user()
    user.open(ASKED)
    begun = time.monotonic()
    user.page.locator("summary").filter(has_text="Programme of runs").click()
    user.settle()
    user.press("Use these stages")
    answer = re.compile("3 stages, 107B tokens in all")
    expect(user.page.get_by_text(answer)).to_be_visible(timeout=SECONDS * 1000)
    user.settle()
    assert time.monotonic() - begun < SECONDS
    assert "s3.name=annealing" in user.query()

    other = new_user()
    other.page.goto(user.link())
    expect(other.page.get_by_text(answer)).to_be_visible(timeout=SECONDS * 1000)
    other.settle()
    tables = [u.page.locator('[data-testid="stTable"]').all_inner_texts() for u in (user, other)]
    assert tables[0] == tables[1]
    assert len(tables[0]) >= 2
    assert other.page.get_by_text(answer).inner_text() == user.page.get_by_text(answer).inner_text()
    assert other.notes() == []
