"""Quotes as texts: what people write is read, what it says survives, mistakes are one sentence."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ScenarioError
from core.scenario import Scenario
from core.scenario.quotes import KINDS, MOST_QUOTES, Quote, cells_of, quote_from, quote_of, text_of

PLAIN = "abcXYZ019 .:/()+-_"
NAMES = st.text(PLAIN, max_size=30).map(lambda t: f"a{t}".strip())
MACHINES = st.none() | st.integers(1, 64)
QUOTES = st.builds(
    Quote,
    provider=NAMES,
    gpu=NAMES,
    usd_per_gpu_hour=st.floats(0.01, 1000),
    gpus_per_machine=MACHINES,
    most_gpus=st.none() | st.integers(64, 131_072),
    gbit_per_s=st.none() | st.floats(0, 1e6, exclude_min=True, allow_subnormal=False),
    purchase=st.sampled_from(KINDS),
    until=st.dates(min_value=date(2000, 1, 1),
                   max_value=date(2099, 12, 31)).map(str) | st.just(""),
    note=st.just("") | st.text(PLAIN + ",=é", max_size=70).map(lambda t: f"a{t}".strip()),
)  # fmt: skip


@given(quote=QUOTES)
def test_a_quote_is_read_back_from_its_text_and_from_its_cells(quote):
    assert quote_of(text_of(quote)) == quote
    assert quote_from(cells_of(quote)) == quote


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("acme,h100,2.20", "acme,h100,2.2"),
        (" acme , h100 , $2 , gpus = 8 ", "acme,h100,2,gpus=8"),
        ("acme,h100,2.2,network=usual,kind=on demand", "acme,h100,2.2"),
        ("acme,h100,2.2,kind=Reserved-1y,most=1k", "acme,h100,2.2,most=1000,kind=reserved_1y"),
        ("acme,h100,2.2,note=3 months, gpus=8 too", "acme,h100,2.2,note=3 months, gpus=8 too"),
        ("acme,h100,2.2,until=2028-02-29", "acme,h100,2.2,until=2028-02-29"),
    ],
)
def test_a_quote_as_people_write_it(text, written):
    assert text_of(quote_of(text)) == written


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("acme,h100", "needs a seller, a GPU and dollars per GPU-hour (like acme,h100,2.20)"),
        (",h100,2.20", "the seller is not given"),
        ("acme,h100,", "the price is not given"),
        ("acme,h100,2,20", "the price '2,20' has a comma: write 2.20"),
        ("acme,h100,0", "the price '0' is not from 0.01 to 1,000"),
        ("acme,h100,$0", "the price '$0' is not from 0.01 to 1,000"),
        ("acme,h100,-2.20", "the price '-2.20' is not from 0.01 to 1,000"),
        ("acme,h100,1e9", "dollars an hour of one GPU are meant, not those of a machine or a"),
        ("acme,h100,cheap", "the price 'cheap' is not a number of dollars like 2.20"),
        ("acme,h100,nan", "the price 'nan'"),
        ("<b>acme</b>,h100,2.20", "the seller '<b>acme</b>' is not plain text"),
        ("ac\x00me,h100,2.20", "is not plain text"),
        ("a" * 41 + ",h100,2.20", "at most 40 letters"),
        ("acme,=cmd(),2.20", "the GPU '=cmd()' is not plain text"),
        ("acme,h100,2.20,gpu=8", "'gpu=8' is no part like most=512: gpus= is probably"),
        ("acme,h100,2.20,8", "'8' is no part like most=512: there are gpus, most, network"),
        ("acme,h100,2.20,gpus=0", "the GPUs of a machine, '0' is not a whole number from 1 to"),
        ("acme,h100,2.20,gpus=8,gpus=4", "gpus is given twice"),
        ("acme,h100,2.20,gpus=8,most=4", "most 4 is less than one machine of 8 GPUs"),
        ("acme,h100,2.20,network=0", "the network '0' is not a number of Gbit/s a machine above"),
        ("acme,h100,2.20,kind=spott", "capacity_block; spot is probably meant"),
        ("acme,h100,2.20,kind=owned", "the purchase kind 'owned' is not one of"),
        ("acme,h100,2.20,until=2027-02-29", "is not a day like 2027-01-31"),
        ("acme,h100,2.20,until=tomorrow", "is not a day like 2027-01-31"),
        ("acme,h100,2.20,note=<script>", "the note '<script>' is not plain text"),
        ("acme,h100,2.20,note=a\u202eb", "is not plain text"),
        ("x" * 301, "a text of at most 300 characters"),
    ],
)
def test_a_mistake_is_one_sentence_that_says_what_is_allowed(text, says):
    with pytest.raises(ScenarioError) as e:
        Scenario.parse({"quotes": text})
    assert says in str(e.value)
    assert str(e.value).startswith("quotes: '")
    assert str(e.value).isprintable()
    assert len(str(e.value)) < 400


def test_a_link_holds_quotes_one_after_the_other():
    scenario = Scenario.parse({"quotes": ["acme,h100,2.20", "beta, b200, 3.1", "acme,h100,2.2"]})
    assert scenario.to_query()["quotes"] == "acme,h100,2.2;beta,b200,3.1"
    assert Scenario.from_query(scenario.to_query()) == (scenario, [])


def test_six_quotes_are_too_many():
    texts = [f"acme,h100,{n}" for n in range(1, MOST_QUOTES + 2)]
    assert len(Scenario.parse({"quotes": texts[:-1]}).quotes) == MOST_QUOTES
    with pytest.raises(ScenarioError, match="6 quotes are given and at most 5 travel in a link"):
        Scenario.parse({"quotes": texts})
