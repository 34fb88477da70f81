"""Every page on a phone: nothing hangs over, everything can be hit, in both themes."""

from __future__ import annotations

import pytest

from tests.support.browsing import FEW, MORE, PAGES, TABS

pytestmark = pytest.mark.browser

PHONE = {"width": 390, "height": 844}
LEAST = 24  # CSS pixels of a target: WCAG 2.2, 2.5.8


@pytest.fixture
def phone(new_user):
    def make():
        return new_user(viewport=PHONE, is_mobile=True, has_touch=True)

    return make


def test_every_page_fits_a_phone(phone, keep_picture):
    user = phone()
    user.open("/method" + FEW)
    found = {}
    for name in user.walk():
        for theme in user.themes():
            keep_picture(user, f"{name}_{theme}_390")
            wide = user.page.evaluate("() => document.documentElement.scrollWidth")
            wrong = user.overhang() + ([f"{wide} px"] if wide > PHONE["width"] else [])
            for chart in user.page.get_by_test_id("stVegaLiteChart").all():
                box = chart.bounding_box()
                # A wide one may scroll within itself: `overhang` has looked at that.
                if box["x"] < 0 or box["width"] < PHONE["width"] / 4:
                    wrong.append(f"{chart.get_attribute('aria-label')}: {box}")
            found[name, theme] = wrong
    assert {page: wrong for page, wrong in found.items() if wrong} == {}
    assert len(found) == 2 * len(PAGES)


def test_the_tabs_and_what_is_under_more_can_be_tapped(phone):
    user = phone()
    user.open("/method" + FEW)
    links = user.page.get_by_test_id("stPageLink-NavLink")
    assert [text.strip() for text in links.all_inner_texts()] == list(TABS)
    user.page.get_by_role("button", name="More: Method").tap()
    links.nth(len(TABS)).wait_for()
    assert [text.strip() for text in links.all_inner_texts()] == [*TABS, *MORE]
    boxes = [link.bounding_box() for link in links.all()]
    assert all(b["height"] >= LEAST and b["width"] >= LEAST for b in boxes)
    assert all(b["x"] >= 0 and b["x"] + b["width"] <= PHONE["width"] for b in boxes)
    links.filter(has_text="Audit").tap()
    user.page.wait_for_url("**/audit?**")
    user.settle()
    assert user.page.title() == "Runcast: Audit"


def test_the_form_opens_edits_and_closes(phone):
    user = phone()
    user.open(f"/{FEW}")
    before = user.headlines()
    user.page.get_by_test_id("stExpandSidebarButton").tap()
    user.type("Training tokens", "2T")
    assert "num_tokens=2e12" in user.query()
    user.page.get_by_test_id("stSidebarCollapseButton").get_by_role("button").tap()
    user.settle()
    assert user.headlines() != before
