"""What nobody should send, in a real browser: the page says what it left out, and stands."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import pytest

from app.web.form import MAX_UPLOAD_MB
from core.scenario import MOST_UNKNOWN, Scenario
from tests.support.browsing import FEW

pytestmark = pytest.mark.browser

FIELDS = [name for name in Scenario.model_fields if name != "prices"]
HTML = "<img src=x onerror=alert(1)>"
# Each is given to every field at once.
JUNK = {
    "html": HTML,
    "control characters": "\x01\u202e\u0000",
    "long": "9" * 400,
}
LARGE = 3_000_000  # bytes


def stands(user):
    """The page has its answer, or the sentence that says why there is none."""
    assert user.page.get_by_test_id("stException").count() == 0
    assert (
        len(user.headlines()) in (4, 5) or user.page.get_by_test_id("stAlertContentError").count()
    )
    assert user.page.locator('a[href*="evil"], img[src*="evil"], img[src="x"]').count() == 0


def bound(name, which):
    """The least or the most that a number may be, as its field says it; None for other fields."""
    said = re.findall(rf'"{which}": ([-+.\de]+)', str(schema()[name]).replace("'", '"'))
    return said[0] if said else None


def schema():
    return Scenario.model_json_schema()["properties"]


@pytest.mark.parametrize("kind", JUNK)
def test_a_link_with_the_same_junk_in_every_field_is_explained(new_user, kind):
    user = new_user()
    user.open("/?" + urlencode(dict.fromkeys(FIELDS, JUNK[kind])))
    stands(user)
    said = " ".join(user.notes())
    for name in ("num_tokens", "seq_len", "precision", "rank_by", "tp") if kind == "html" else ():
        assert name in said
    assert said


@pytest.mark.parametrize("which", ["minimum", "maximum"])
def test_every_number_at_its_bound_is_taken(new_user, which):
    """Dimensions of a custom model and measured anchors have rules of their own beside bounds."""
    user = new_user()
    at = {n: b for n in FIELDS if (b := bound(n, which)) and _group(n) in ("basic", "advanced")}
    assert len(at) > 10
    user.open("/?" + urlencode(at))
    stands(user)
    assert not [n for n in user.notes() if "Ignored" in n and "should be" in n]


def _group(name):
    return Scenario.model_fields[name].json_schema_extra["group"]


def test_a_link_of_100_kb_opens(new_user):
    user = new_user()
    user.open(f"/{FEW}&" + "&".join(f"k{n}={'x' * 90}" for n in range(1000)))
    stands(user)
    assert len(user.notes()) <= MOST_UNKNOWN + 1  # not a thousand of them
    assert len(user.query()) < 2000


@pytest.mark.parametrize("path", ["/options", "/memory", "/risk", "/launch", "/prices", "/audit"])
def test_the_other_pages_stand_too(new_user, path):
    user = new_user()
    user.open(f"{path}{FEW}&seq_len=-1&tp={HTML}&evil=1&pinned=nobody&show_x={HTML}")
    assert user.page.get_by_test_id("stException").count() == 0
    assert len(user.notes()) >= 3


@pytest.fixture
def typist(new_user):
    user = new_user()
    user.open(f"/{FEW}")
    return user


def test_uploads_that_are_too_large_or_of_the_wrong_kind_change_nothing(typist, tmp_path):
    query, before = typist.query(), typist.headlines()
    typist.unfold("Model from config.json")
    chosen = typist.page.locator('input[type="file"]').first
    for name, body, says in (
        ("large.json", b'{"a": "' + b"x" * LARGE + b'"}', f"{MAX_UPLOAD_MB}"),
        ("picture.png", b"\x89PNG\r\n\x1a\n" + b"\0" * 100, "not allowed"),
        ("lies.json", b"\x89PNG\r\n\x1a\n" + b"\0" * 100, "not text"),
        ("deep.json", b"[" * 100_000, "32 levels"),
        ("html.json", f'{{"model_type": "{HTML}"}}'.encode(), "Unknown model_type"),
    ):
        path = tmp_path / name
        path.write_bytes(body)
        chosen.set_input_files(path)
        typist.settle()
        assert says in typist.page.get_by_test_id("stSidebar").inner_text(), name
        assert (typist.query(), typist.headlines()) == (query, before)
        stands(typist)
