"""The Audit page in a real Chromium: a typed claim, its address, small screens, both themes."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

CLAIM = (
    "show_model=llama3.1-70b&show_tokens=1T&show_gpu=GB200&show_num_gpus=72&show_days=14"
    "&show_usd=145k"
)
VERDICT = "Not credible in nvfp4, the mildest of bf16, fp8 and nvfp4: 2.34 times the best published"


def test_a_typed_claim_is_audited_and_back_undoes_it(new_user):
    user = new_user()
    user.open("/audit?model=llama3.1-70b&num_tokens=1e12&gpu=GB200&num_gpus=72")
    main = user.page.get_by_test_id("stMain")  # the sidebar has a field of that name, too
    assert main.get_by_label("Training tokens", exact=True).input_value() == "1T"
    assert "missing Days" in " ".join(user.notes())
    user.page.get_by_label("Days", exact=True).fill("14")
    user.page.get_by_role("button", name="Audit", exact=True).click()
    user.settle()
    expect(user.page.get_by_text(VERDICT)).to_be_visible()
    typed = user.query()
    assert "show_days=14" in typed
    user.page.get_by_label("Days", exact=True).fill("140")
    user.page.get_by_role("button", name="Audit", exact=True).click()
    user.settle()
    user.back()
    assert (user.query(), user.value("Days")) == (typed, "14")
    assert not user.wrong


def test_the_address_reopens_the_claim(new_user):
    user = new_user()
    user.open(f"/audit?{CLAIM}")
    again = new_user()
    again.open(f"/audit?{user.query()}")
    expect(again.page.get_by_text(VERDICT)).to_be_visible()
    assert again.value("Dollars") == "145k"
