"""The page without a mouse: what Tab reaches, in which order, named and seen."""

from __future__ import annotations

import re

import pytest

from tests.support.browsing import FEW, TABS

pytestmark = pytest.mark.browser

MOST_STOPS = 200
# What has the focus: its kind, its name as a screen reader says it, its place.
FOCUSED = """() => {
  const e = document.activeElement;
  const byId = (e.getAttribute('aria-labelledby') || '').split(' ')
    .map(i => document.getElementById(i)?.innerText || '').join(' ').trim();
  const label = [...(e.labels || [])].map(l => l.innerText).join(' ');
  const name = byId || e.getAttribute('aria-label') || label || e.title || e.innerText || '';
  const own = e.tagName === 'INPUT' ? (e.type === 'text' ? 'textbox' : e.type) : e.tagName;
  const kind = e.getAttribute('role') || own.toLowerCase();
  return [kind, name.trim().replace(/\\s+/g, ' '), e.tagName] }"""
# The table is drawn on a canvas: a hidden grid beside it is what a screen reader gets.
NAMELESS = {"CANVAS", "DIV", "BODY"}


def stops(user, most=MOST_STOPS):
    """Everything that Tab reaches from the top of the page, once around."""
    user.page.evaluate("() => document.activeElement.blur()")
    for _ in range(most):
        user.page.keyboard.press("Tab")
        kind, name, tag = user.page.evaluate(FOCUSED)
        if tag == "BODY":
            return
        yield kind, name, tag


def go_to(user, kind, name, key="Tab"):
    """Press a key until something of that name has the focus."""
    for _ in range(MOST_STOPS):
        user.page.keyboard.press(key)
        found = user.page.evaluate(FOCUSED)
        if found[0] == kind and re.fullmatch(name, found[1]):
            return
    pytest.fail(f"Tab does not reach {kind} {name!r}")


def test_tab_reaches_everything_once_and_everything_has_a_name(new_user):
    user = new_user()
    user.open(f"/{FEW}")
    found = list(stops(user))
    assert len(found) < MOST_STOPS
    assert [f for f in found if not f[1] and f[2] not in NAMELESS] == []
    names = [name for _, name, _ in found]
    assert names[0] == "Skip to main content"
    order = [names.index(n) for n in ("Model", "Training tokens", "GPUs", "Deadline (days)")]
    assert order == sorted(order)
    links = [names.index(n) for n in TABS]
    assert links == sorted(links)
    assert names[links[-1] + 1].startswith("More")
    assert links[0] > order[-1]
    for wanted in ("Cost", "Download CSV", "Plan"):
        assert wanted in names[links[-1] :]


def test_the_form_can_be_skipped(new_user):
    user = new_user()
    user.open(f"/{FEW}")
    go_to(user, "a", "Skip to main content")
    user.page.keyboard.press("Enter")
    user.page.keyboard.press("Tab")
    assert user.page.evaluate(FOCUSED)[1] == "Plan"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_has_the_focus_is_seen(new_user, scheme):
    """A picture around each kind of stop, with the focus and without."""
    user = new_user(color_scheme=scheme)
    user.open(f"/{FEW}")
    seen, unseen = set(), []
    for kind, name, tag in stops(user):
        if kind in seen or tag in NAMELESS | {"MAIN"}:
            continue
        seen.add(kind)
        focused = user.page.evaluate_handle("() => document.activeElement")
        box = focused.as_element().bounding_box()
        clip = {
            "x": max(box["x"] - 12, 0), "y": max(box["y"] - 12, 0),
            "width": box["width"] + 24, "height": box["height"] + 24,
        }  # fmt: skip
        user.page.wait_for_timeout(150)  # rings grow
        with_focus = user.page.screenshot(clip=clip)
        focused.evaluate("e => e.blur()")
        user.page.wait_for_timeout(150)
        if user.page.screenshot(clip=clip) == with_focus:
            unseen.append((kind, name))
        focused.evaluate("e => e.focus()")
    assert unseen == []
    assert {"a", "button", "textbox", "combobox", "summary", "radio"} <= seen


def test_edit_link_page_and_export_without_a_mouse(new_user):
    user = new_user()
    user.open(f"/{FEW}")
    before = user.headlines()
    go_to(user, "textbox", "Training tokens")
    user.page.keyboard.press("Control+A")
    user.page.keyboard.type("2T")
    user.page.keyboard.press("Enter")
    user.settle()
    assert "num_tokens=2e12" in user.query()
    assert user.headlines() != before

    go_to(user, "button", r"(expand_more )?More settings")
    user.page.keyboard.press("Enter")
    user.settle()
    go_to(user, "summary", r"(keyboard_arrow_right )?Parallelism.*")
    user.page.keyboard.press("Enter")
    go_to(user, "textbox", "Tensor parallel")
    user.page.keyboard.type("8")
    user.page.keyboard.press("Enter")
    user.settle()
    assert "tp=8" in user.query()

    go_to(user, "radio", "Cost")
    user.page.keyboard.press("ArrowRight")
    user.settle()
    assert "rank_by=time" in user.query()
    with user.page.expect_download() as download:
        go_to(user, "button", "Download CSV")
        user.page.keyboard.press("Enter")
    assert download.value.suggested_filename.endswith(".csv")

    go_to(user, "a", re.escape("Launch"), key="Shift+Tab")
    user.page.keyboard.press("Enter")
    user.page.wait_for_url("**/launch?**")  # which changes before the page does
    user.page.get_by_role("button", name="Download all as zip").wait_for()
    user.settle()
    assert "tp=8" in user.query()
    with user.page.expect_download() as download:
        go_to(user, "button", r".*Download all as zip")
        user.page.keyboard.press("Enter")
    assert download.value.suggested_filename.endswith(".zip")
