"""Old prices on the Plan page: the banner, its refresh, and what that changed."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app.prices import price_age, price_age_section
from app.prices import refresh_job as job_module
from app.prices.price_age import Changed, Recommended
from pricing.offers import SNAPSHOTS, installed_id, snapshot
from pricing.refresh import refresh
from tests.feeds.refreshing import made

MAIN = str(Path(__file__).parents[3] / "app/main.py")
QUICK = {"gpu": "H100-80GB-SXM", "cloud": "aws", "num_gpus": "64"}
A = Recommended(usd=4796.0, machine="4 x B200-180GB (verda)")


def test_what_changed_is_counted_by_place(tmp_path, monkeypatch):
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path))
    ids = [refresh([made(usd)]).snapshot_id for usd in (44.0, 45.0)]
    assert price_age.changed(*ids) == Changed(moved=300, new=0, gone=0)
    bundled = installed_id(folder=SNAPSHOTS)
    assert price_age.changed(bundled, ids[0]).new == 300


# --- the page ------------------------------------------------------------------------------------


@pytest.fixture
def old(monkeypatch, tmp_path):
    """A page whose prices are old, whatever day the bundled ones are of."""
    from app.prices import sources_section

    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(price_age_section, "OLD_DAYS", -1)
    monkeypatch.setattr(job_module, "chosen", lambda names: (made(20.0),))
    sources_section.job.clear()
    yield sources_section.job
    sources_section.job.clear()


def opened(**query):
    page = AppTest.from_file(MAIN, default_timeout=60)
    for name, value in {**QUICK, **query}.items():
        page.query_params[name] = value
    return page.run()


def said(page):
    text = "\n".join(e.value for e in (*page.markdown, *page.caption, *page.warning))
    return text.replace("\\", "").replace("\N{WORD JOINER}", "")


def test_the_banner_refreshes_and_shows_the_new_answer_with_the_old_one(old):
    page = opened()
    assert "days old" in said(page)
    about = page.button(key="price_age_refresh").help.replace("\\", "")
    assert "sources without a key (gpuhunt, " in about
    assert price_age.NOTHING_SENT in about
    before = snapshot().id
    page.button(key="price_age_refresh").click().run()
    old().wait(60)
    page.run()
    assert not page.exception
    assert snapshot().id != before
    assert snapshot().id in page.query_params["prices"]
    (line,) = (x for x in said(page).split("\n") if " -> $" in x)
    assert "300 new" in line
    assert "recommended is now" in line or "recommended is still" in line
    page.text_input(key="form_num_gpus").set_value("32").run()
    assert " -> $" not in said(page)  # it was about another question


def test_a_refresh_that_publishes_nothing_is_said_and_can_be_tried_again(old, monkeypatch):
    monkeypatch.setattr(job_module, "refresh", _down)
    page = opened()
    page.button(key="price_age_refresh").click().run()
    old().wait(60)
    page.run()
    assert "The prices cannot be written: No space left" in said(page)
    assert page.button(key="price_age_refresh")


def _down(*_, **__):
    raise OSError(28, "No space left on device")


def test_the_banner_is_dismissed_for_the_session_and_other_prices_get_a_sentence(old):
    page = opened()
    page.button(key="price_age_dismiss").click().run()
    assert "price_age_refresh" not in {b.key for b in page.button}
    bundled = snapshot().id
    refresh([made(20.0)])
    page = opened(prices=bundled)
    assert "The newest of these prices is" in said(page)
    assert "price_age_refresh" not in {b.key for b in page.button}


def test_young_prices_have_no_banner(old, monkeypatch):
    monkeypatch.setattr(price_age_section, "OLD_DAYS", 100_000)
    page = opened()
    assert "The newest of these prices" not in said(page)
