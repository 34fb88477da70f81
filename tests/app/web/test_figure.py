"""A chart on a page: its words, and its files where somebody asks for them."""

import pytest
from streamlit.testing.v1 import AppTest

KINDS = ["CSV", "Parquet", "PNG", "SVG"]


def script(caption, select):
    import altair as alt
    import pandas as pd

    from app.document import chart_files
    from app.web import figure, link
    from core.scenario import Scenario

    link.edit(Scenario())

    frame = pd.DataFrame({"days": [1.0, 2.0], "usd": [3.0, 4.0]})
    chart = alt.Chart(frame).mark_point().encode(x="days:Q", y="usd:Q")
    if select:
        chart = chart.add_params(alt.selection_point(name="pick", fields=["days"]))
    spec = chart_files.spec_of(alt.layer(chart))
    before = repr(spec)
    figure.draw(
        figure.Figure(
            key="one", spec=spec, alt="Two points.", file="points", data=lambda: frame,
            caption=caption,
        ),
        on_select=(lambda: None) if select else None,
        selection="pick" if select else None,
    )  # fmt: skip
    assert repr(spec) == before, "the page changed what the files are drawn of"


def opened(caption="", *, select=False, is_open=False):
    page = AppTest.from_function(script, args=(caption, select), default_timeout=30)
    if is_open:
        page.session_state["one_files"] = True
    return page.run()


def labels(page):
    return [e.label for e in page.get("download_button")]


@pytest.mark.parametrize("select", [False, True])
def test_a_chart_has_its_words_and_sends_no_file_before_it_is_asked_for(select):
    page = opened("A *caption*.", select=select)
    assert not page.exception
    chart = page.get("vega_lite_chart")[0].proto
    assert chart.alt == "Two points."
    assert [c.value for c in page.caption] == ["A \\*caption\\*."]
    assert labels(page) == []
    assert list(chart.selection_mode) == (["pick"] if select else [])


def test_the_files_are_offered_where_it_is_opened():
    page = opened(is_open=True)
    assert not page.exception
    assert [label.split()[-1] for label in labels(page)] == [k.upper() for k in KINDS]
    assert not page.caption
