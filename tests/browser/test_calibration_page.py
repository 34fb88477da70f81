"""The Calibrate page in a real browser: upload, use, link, remove; nothing wider than a phone."""

from __future__ import annotations

import orjson
import pytest

from tests.made_up.results import H100, document, machine
from tests.support.browsing import served

pytestmark = pytest.mark.browser

QUICK = f"v=1&model=llama3.1-8b&num_tokens=1e11&global_batch_size=256&gpu={H100}&num_gpus=16"
TRUE = {"matmul": 0.83, "attention": 0.9, "memory": 0.92, "elementwise": 1.3, "scale_up": 0.8}


@pytest.fixture
def base_url(tmp_path):
    """A server of the test's own: nothing is uploaded yet, in a second run of it, too."""
    with served(tmp_path / "log", RUNCAST_DATA_DIR=str(tmp_path / "data")) as server:
        yield server.url


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "result.json"
    path.write_bytes(orjson.dumps(document(machine(**TRUE))))
    return path


def upload(user, path):
    user.page.locator('input[type="file"]').set_input_files(str(path))
    user.settle()


def text(user):
    return user.page.get_by_test_id("stMain").inner_text()


def test_upload_use_share_and_remove(new_user, written):
    user = new_user()
    user.open(f"/calibration?{QUICK}")
    assert "No calibration is in use." in text(user)
    upload(user, written)
    assert "Switch it on to use it in this plan." in text(user)
    user.page.locator("label", has_text="in this plan").first.click()
    user.settle()
    assert "calibration=" in user.query()
    moved = text(user)
    assert "With the calibration 16 H100-80GB-SXM trains" in moved
    # The link has it: somebody else sees the same, and the plan page says so.
    other = new_user()
    other.open(f"/calibration?{user.query()}")
    assert "With the calibration 16 H100-80GB-SXM trains" in text(other)
    user.follow("Plan", "/")
    assert "calibration=" in user.query()
    assert "calibrated (" in text(user)
    user.back()
    user.page.get_by_test_id("stMain").get_by_role("button", name="Remove").first.click()
    user.page.get_by_role("button", name="Remove it").click()
    user.settle()
    assert "calibration=" not in user.query()
    assert "No calibration is in use." in text(user)
    other.page.reload()
    other.settle()
    assert any("is not on this server" in note for note in other.notes())


def test_a_bad_upload_is_a_sentence(new_user, tmp_path):
    user = new_user()
    user.open(f"/calibration?{QUICK}")
    path = tmp_path / "bad.json"
    path.write_text('{"schema": "calib-result/1"')
    upload(user, path)
    assert any("is not JSON, or is cut off" in note for note in user.notes())
    large = tmp_path / "large.json"
    with large.open("wb") as file:
        file.truncate(30 * 10**6)
    upload(user, large)
    assert "must be" in text(user)  # the uploader says how large it may be
    assert not user.page.get_by_test_id("stException").count()


def test_a_phone_has_room_for_it(new_user, written):
    user = new_user(viewport={"width": 390, "height": 844})
    user.open(f"/calibration?{QUICK}")
    upload(user, written)
    user.page.locator("label", has_text="in this plan").first.click()
    user.settle()
    width = user.page.evaluate("() => document.documentElement.scrollWidth")
    assert width <= 390
    assert user.page.get_by_test_id("stVegaLiteChart").count() >= 2
    user.page.get_by_test_id("stMain").get_by_role("button", name="Remove").first.click()
    user.page.get_by_role("button", name="Remove it").click()
    user.settle()
