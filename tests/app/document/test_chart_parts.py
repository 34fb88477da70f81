"""What the axes of charts name, as drawn by Vega itself."""

import altair as alt
import pandas as pd
import pytest

from app.document import chart_parts
from app.document.on_use import vl_convert


@pytest.mark.parametrize(
    ("ends", "shown", "hidden"),
    [
        ((690, 1_300), {"800", "850", "900"}, set()),
        ((0.08, 300), {"0.1", "0.2", "0.5", "1", "2", "5", "50", "200"}, {"0.3", "4", "70"}),
    ],
)
def test_a_logarithmic_axis_names_what_can_be_read_off(ends, shown, hidden):
    labels = chart_parts.log_labels("x", "format(datum.value, ',~g')")
    chart = (
        alt.Chart(pd.DataFrame({"days": ends}))
        .mark_point()
        .encode(
            x=alt.X(
                "days:Q",
                scale=alt.Scale(type="log", nice=False),
                axis=chart_parts.axis("Days", "light", labelExpr=labels),
            )
        )
        .properties(width=900)
    )
    svg = vl_convert.vegalite_to_svg(chart.to_json())
    named = {part.split("<")[0] for part in svg.split(">")}
    assert shown <= named
    assert not hidden & named
