"""Quotes on the Plan page: a mistake keeps what was typed, a quote can be kept and removed."""

import pytest

from app.plan import quote_section
from pricing.book.files import load_book
from tests.app.test_app import QUICK, link_of, opened, texts


@pytest.fixture(autouse=True)
def _books(monkeypatch, tmp_path):
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path))


def quotes(page):
    return [t for t in texts(page.markdown) if "Your quote:" in t]


def typed(page, **cells):
    """Type into the open form and press its button."""
    page.session_state[quote_section.OPEN] = True
    page.run()
    for name, text in cells.items():
        page.text_input(key=f"quote_{name}").set_value(text)
    return page.button(key="quote_submit").click().run()


def test_a_quote_is_added_and_a_wrong_one_stays_for_correction():
    page = typed(opened(**QUICK), provider="acme", gpu="h100", usd="2,20")
    assert not page.exception
    assert texts(page.error) == ["The price '2,20' has a comma: write 2.20."]
    assert page.text_input(key="quote_provider").value == "acme"
    assert "quotes" not in link_of(page)
    page = typed(page, usd="2.20")
    assert not page.exception
    assert not page.error
    assert link_of(page)["quotes"] == "acme,H100-80GB-SXM,2.2"
    assert quotes(page) == [
        "\N{BLACK STAR} Your quote: acme, H100-80GB-SXM, $2.20/h a GPU, machines of 8."
    ]
    assert "your quote" in set(page.dataframe[0].value["Instance"])
    page = typed(page, provider="beta", gpu="h900", usd="2.20")
    assert "Unknown accelerator 'h900'" in texts(page.error)[0]


def test_a_quote_is_kept_in_a_price_book_and_leaves_the_link():
    page = opened(**QUICK, quotes="acme,h100,2.20;beta,h100,2.30,most=128")
    page = page.button(key="quote_keep_0").click().run()
    assert not page.exception
    assert [r.provider for r in load_book("quotes").rows] == ["acme"]
    found = link_of(page)
    assert (found["quotes"], found["price_book"]) == ("beta,H100-80GB-SXM,2.3,most=128", "quotes")
    assert {"acme", "beta"} <= set(page.dataframe[0].value["Cloud"])
    page = page.button(key="quote_remove_0").click().run()
    assert "quotes" not in link_of(page)
    assert quotes(page) == []


def test_a_removed_quote_takes_its_cloud_out_of_the_choice():
    page = opened(**{**QUICK, "cloud": "aws,acme"}, quotes="acme,h100,2.20")
    assert not page.warning
    page = page.button(key="quote_remove_0").click().run()
    assert not page.error
    assert (link_of(page)["cloud"], "quotes" in link_of(page)) == ("aws", False)


def test_five_quotes_are_all_there_can_be():
    five = ";".join(f"acme,h100,2.{n}" for n in range(1, 6))
    page = opened(**QUICK, quotes=five)
    assert len(quotes(page)) == 5
    page = opened(**QUICK, quotes=f"{five};acme,h100,3")
    assert "6 quotes are given" in texts(page.warning)[0]
