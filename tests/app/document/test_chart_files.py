"""Charts as files: a picture of the chart as it is drawn, data with its link, nothing fetched."""

import io
import json
import re
import xml.etree.ElementTree as ET

import altair as alt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from streamlit.dataframe_util import convert_anything_to_arrow_bytes

from app.document import chart_files, chart_parts
from app.document.chart_files import png, sent, spec_of, svg

THEMES = ("light", "dark")
HOSTILE = "<script>alert(1)</script> ]]> & \"x\", 'y'\n=1+1"
NAMES = ("a100 of a long name", "h100 of a long name")


def rows(n=60, **more):
    return pd.DataFrame(
        {
            "days": [1 / 3 + i for i in range(n)],
            "usd": [1e6 / (i + 7) for i in range(n)],
            "gpu": [NAMES[i % 2] for i in range(n)],
            "unread": ["nobody draws this"] * n,
            **more,
        }
    )


def chart(frame, theme="light"):
    """Points of one table in two layers, a line of another."""
    base = alt.Chart(frame).encode(
        x=alt.X("days:Q", axis=chart_parts.axis("Time (days)", theme)), y="usd:Q"
    )
    text = base.mark_text(color=chart_parts.INK[theme]).encode(text="gpu:N")
    rule = chart_parts.rule("x", 5.0, alt.Undefined, chart_parts.LIMIT[theme])
    return alt.layer(base.mark_point().encode(color="gpu:N"), text, rule).properties(height=200)


def texts(drawn):
    return {e.text for e in ET.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")}


# --- the dict ------------------------------------------------------------------------------------


def test_a_chart_draws_the_same_small_as_it_is_made():
    drawn, small = chart(rows()), spec_of(chart(rows()))
    assert svg(drawn.to_dict(), theme="light").count("<path") == svg(small, theme="light").count(
        "<path"
    )
    assert texts(svg(drawn.to_dict(), theme="light")) == texts(svg(small, theme="light"))
    assert len(json.dumps(small)) < len(json.dumps(drawn.to_dict())) / 3
    assert "datasets" not in small


def test_columns_that_nobody_draws_and_digits_that_nobody_sees_are_left_out():
    text = json.dumps(spec_of(chart(rows())))
    assert "nobody draws this" not in text
    assert not re.search(r"\d\.\d{6,}", text)
    assert text.count(NAMES[0]) == 1  # text that repeats is written once


def test_moments_and_what_is_not_known_survive():
    frame = pd.DataFrame(
        {
            "at": pd.to_datetime(["2026-01-01", "2026-02-01", "2026-03-01"]),
            "usd": [1.0, None, 3.0],
            "who": ["", "b", "c"],
        }
    )
    base = alt.Chart(frame).encode(x="at:T", y="usd:Q")
    small = spec_of(alt.layer(base.mark_line(), base.mark_text().encode(text="who:N")))
    said = texts(svg(small, theme="light"))
    assert any("2026" in (t or "") or "February" in (t or "") for t in said)
    assert "null" not in said
    assert "NaN" not in svg(small, theme="light")


def test_a_chart_with_a_selection_keeps_its_tables_and_its_places():
    pick = alt.selection_point(name="pick", fields=["gpu"])
    base = alt.Chart(rows()).encode(x="days:Q", y="usd:Q")
    small = spec_of(alt.layer(base.mark_line(), base.mark_point().add_params(pick)))
    assert [p["name"] for p in small["params"]] == ["pick"]
    assert {x["mark"]["type"] for x in small["layer"]} == {"line", "point"}


def test_what_csv_cannot_hold_stays_as_rows():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [[1], [2]], "c": [True, False]})
    base = alt.Chart(frame).encode(x="a:Q", y="b:Q", color="c:N")
    small = spec_of(alt.layer(base.mark_point(), base.mark_line()))
    assert next(iter(small["datasets"].values()))[0]["c"] is True


def pixels(spec):
    return Image.open(io.BytesIO(png(spec, theme="light"))).tobytes()


def test_an_axis_that_layers_share_is_told_once():
    frame = rows(12, days=list(range(12)), usd=[100 * n for n in range(12)])
    other = chart_parts.axis("Other (days)", "light")
    legend = chart_parts.legend("light")
    base = alt.Chart(frame).encode(
        x=alt.X("days:Q", axis=chart_parts.axis("Time (days)", "light")),
        y=alt.Y("usd:Q", axis=chart_parts.usd_axis("light")),
        color=alt.Color("gpu:N", legend=legend),
    )
    layers = [base.mark_line(), base.mark_point(), base.mark_bar(opacity=0.2)]
    drawn = alt.layer(*layers)
    small, text = spec_of(drawn), json.dumps(spec_of(drawn))
    assert [text.count(t) for t in ("Time (days)", "Cost (USD)")] == [1, 1]
    assert pixels(small) == pixels(drawn.to_dict())
    apart = alt.layer(base.mark_line(), base.mark_point().encode(x=alt.X("days:Q", axis=other)))
    assert "Other (days)" in json.dumps(spec_of(apart))
    own = alt.layer(*layers).resolve_scale(y="independent")
    assert json.dumps(spec_of(own)).count("Cost (USD)") == 3
    assert pixels(spec_of(own)) == pixels(own.to_dict())


def test_the_ends_of_a_scale_lose_digits_and_cut_nothing_off():
    given = alt.Scale(domain=[1 / 3, 1000 / 7], nice=False)
    base = alt.Chart(rows(5)).encode(x=alt.X("days:Q", scale=given), y="usd:Q")
    small = spec_of(alt.layer(base.mark_line(), base.mark_point()))
    (low, high), *others = found = re.findall(
        r'"domain": \[([\d.]+), ([\d.]+)\]', json.dumps(small)
    )
    assert (low, high) == ("0.3333333", "142.8571")
    assert len(set(found)) == 1
    assert others


def test_yes_and_no_are_packed_like_numbers():
    frame = pd.DataFrame({"a": [1.5, 2.0], "c": [True, False]})
    base = alt.Chart(frame).encode(x="a:Q", color="c:N")
    small = spec_of(alt.layer(base.mark_point(), base.mark_line()))
    assert "datasets" not in small
    assert texts(svg(small, theme="light")) >= {"true", "false"}


def test_a_table_is_sent_as_streamlit_would_send_its_rows():
    whole = [{"days": 3, "usd": 0.5, "who": "a"}, {"days": 1.25, "usd": None, "who": "b"}]
    nested = [{"x": [1]}]
    made = {"layer": [], "datasets": {"here": whole, "none": [], "nested": nested}}
    found = sent(made)["datasets"]
    assert (found["none"], found["nested"]) == ([], nested)
    ours = pa.ipc.open_stream(found["here"]).read_pandas()
    theirs = pa.ipc.open_stream(convert_anything_to_arrow_bytes(whole)).read_pandas()
    pd.testing.assert_frame_equal(ours, theirs, check_dtype=False)
    assert made["datasets"]["here"] is whole  # the files are drawn of it


# --- pictures ------------------------------------------------------------------------------------


@pytest.mark.parametrize("theme", THEMES)
def test_the_png_is_a_picture_of_the_chart_on_the_background_of_the_page(theme):
    image = Image.open(io.BytesIO(png(spec_of(chart(rows(), theme)), theme=theme))).convert("RGB")
    assert image.width > chart_files.WIDTH_PX * chart_files.PNG_SCALE
    background = tuple(bytes.fromhex(chart_files.BACKGROUND[theme][1:]))
    assert image.getpixel((2, 2)) == background
    colours = image.getcolors(1 << 22)
    inked = sum(n for n, colour in colours if colour != background)
    assert 0.005 < inked / (image.width * image.height) < 0.5  # neither blank nor filled


@pytest.mark.parametrize("theme", THEMES)
def test_the_svg_has_its_text_as_text_in_the_ink_of_the_theme(theme):
    drawn = svg(spec_of(chart(rows(), theme)), theme=theme)
    assert {"Time (days)", *NAMES} <= texts(drawn)
    assert chart_parts.INK[theme].lower() in drawn.lower()
    assert chart_files.BACKGROUND[theme].lower() in drawn.lower()


def test_a_hostile_name_is_text():
    drawn = svg(spec_of(chart(rows(gpu=[HOSTILE] * 60))), theme="light")
    tags = {e.tag.rpartition("}")[2] for e in ET.fromstring(drawn).iter()}
    assert not tags & {"script", "a", "image", "foreignObject"}
    assert any("<script>alert(1)</script>" in (t or "") for t in texts(drawn))


def test_nothing_is_fetched_to_draw():
    spec = {
        "data": {"url": "http://127.0.0.1:9/rows.csv"},
        "mark": "point",
        "encoding": {"x": {"field": "a", "type": "quantitative"}},
    }
    with pytest.raises(ValueError, match=r"(?i)not allowed|denied|permission|base url"):
        svg(spec, theme="light")


def test_a_chart_in_steps_keeps_its_steps():
    wide = alt.Chart(rows(4)).mark_rect().encode(x="gpu:N").properties(width=alt.Step(31))
    page = alt.Chart(rows(4)).mark_rect().encode(x="gpu:N")
    widths = [
        float(ET.fromstring(svg(spec_of(c), theme="light")).get("width")) for c in (wide, page)
    ]
    assert widths[0] < 200 < chart_files.WIDTH_PX < widths[1]


# --- data ----------------------------------------------------------------------------------------


def test_the_parquet_is_the_table_and_names_its_link():
    made = chart_files.parquet(rows(3), "http://localhost/?v=1&gpu=H100")
    table = pq.read_table(io.BytesIO(made))
    assert table.schema.metadata[b"link"] == b"http://localhost/?v=1&gpu=H100"
    pd.testing.assert_frame_equal(table.to_pandas(), rows(3))
    assert table.schema.field("usd").type == "double"
