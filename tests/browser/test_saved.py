"""Saved scenarios in a real Chromium: saved by one person, opened by another, found, deleted."""

import pytest

from tests.support.browsing import FEW, served

pytestmark = pytest.mark.browser

SECTION = "Saved scenarios"
HOSTILE = "<img src=x onerror=alert(1)> [a](javascript:alert(2)) =1+1"


@pytest.fixture
def base_url(tmp_path):
    """A server of the test's own: nothing is saved yet, in a second run of it, too."""
    with served(tmp_path / "log", RUNCAST_DATA_DIR=str(tmp_path / "data")) as server:
        yield server.url


def save(user, name):
    user.type("Name", name)
    user.press("Save")


def rows(user):
    which = user.page.get_by_role("radiogroup", name="Which")
    shown = which.locator("label").all_inner_texts()
    return [t.split("\n")[0].replace("\N{WORD JOINER}", "") for t in shown]


def test_what_one_person_saved_another_opens_by_its_short_link(new_user):
    ann = new_user()
    ann.open("/" + FEW)
    ann.type("Training tokens", "2T")
    saved, headlines = ann.query(), ann.headlines()
    ann.unfold(SECTION)
    assert "Nothing is saved yet." in ann.page.inner_text("body")
    save(ann, "Ours, on H100")
    assert "Saved as 'Ours, on H100'." in " ".join(ann.notes())
    assert ann.query() == saved
    short = ann.short_link()
    assert short.startswith(ann.base_url + "/?s=")

    bob = new_user()
    bob.page.goto(short)
    bob.settle()
    assert (bob.query(), bob.headlines(), bob.notes()) == (saved, headlines, [])
    assert "Ours" not in bob.page.inner_text("body")
    bob.page.goto(short + "&num_tokens=3e12")
    bob.settle()
    assert bob.query() == saved.replace("num_tokens=2e12", "num_tokens=3e12")
    bob.page.reload()
    bob.settle()
    assert bob.value("Training tokens") == "3T"

    ann.type("Training tokens", "5T")
    ann.press("Open this scenario")
    assert (ann.query(), ann.headlines()) == (saved, headlines)
    ann.back()
    assert ann.value("Training tokens") == "5T"
    ann.forward()
    assert ann.value("Training tokens") == "2T"


def test_search_rename_delete_and_undo(new_user):
    user = new_user()
    user.open("/" + FEW)
    user.unfold(SECTION)
    for name in ("First", "Second", HOSTILE):
        save(user, name)
    assert rows(user)[0] == HOSTILE
    assert user.page.locator('img[src="x"], a[href^="javascript"]').count() == 0
    user.type("Find", "second LLAMA")
    assert rows(user) == ["Second"]
    user.page.get_by_text("Second", exact=True).click()
    user.settle()
    user.type("New name", "Zweite")
    user.press("Rename")
    assert rows(user)[0] == "Zweite"
    short = user.short_link()
    user.press("Delete")
    assert "Deleted 'Zweite'" in " ".join(user.notes())

    other = new_user()
    other.page.goto(short)
    other.settle()
    (note,) = other.notes()
    assert "is of no scenario on this server" in note
    assert len(other.headlines()) in (4, 5)

    user.press("Undo the deletion")
    other.page.goto(short)
    other.settle()
    assert other.notes() == []
