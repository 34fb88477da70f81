"""Charts and tables of an answer: what is drawn is what was answered, and it can be read."""

import csv
import datetime as dt
import io
from dataclasses import replace

import altair as alt
import numpy as np
import pandas as pd
import pytest

from app.document import chart_parts
from app.document.csv import csv_bytes
from app.explain import charts as explain_charts
from app.explain import document as explain_document
from app.explain.sensitivity import Sensitivity
from app.plan import cards, chart_tables, part_charts
from app.plan import charts as app_charts
from app.plan import document as app_tables
from core.explain.sensitivity import Effect
from core.scenario import Scenario
from core.units import GIB
from tests.made_up.plans import MEMORY_BYTES, STEP_S, answer, cost, offer, plan, spread

TODAY = dt.date(2026, 11, 21)
THEMES = ("light", "dark")


def many_points(n=3000, accelerators=12):
    """More points than a chart should draw, the frontier among them."""
    at = np.arange(n)
    return {
        "paid_usd": np.where(at == 5, np.nan, 1e3 + at * 10.0),
        "expected_hours": 1e3 / (1 + at),
        "num_gpus": at + 1,
        "accelerator": np.array([f"GPU{i % accelerators}" for i in at]),
        "provider": np.array(["aws"] * n),
        "instance_type": np.array(["x"] * n),
        "purchase": np.array(["on_demand"] * n),
        "frontier": (at % 100 == 0),
        "in_doubt": np.zeros(n, dtype=bool),
        "meets_budget": np.ones(n, dtype=bool),
        "against": np.full(n, "", dtype=object),
        "id": np.array([f"p{i}" for i in at]),
        "rank": at + 1,
        "is_quote": np.zeros(n, dtype=bool),
    }


def pareto(points, theme="light", **changes):
    selected_id = changes.pop("selected_id", "p0")
    given = {
        "budget_usd": 5e4,
        "deadline_days": 30.0,
        "budget_text": "Budget $50k",
        "deadline_text": "Deadline 30 days",
        "theme": theme,
        **changes,
    }
    return chart_tables.here(
        app_charts.pareto(points, **given), chart_tables.places(points).get(selected_id)
    )


def ends(spec, axis):
    """The ends of an axis: marks that nobody sees."""
    return [row[axis] for row in marks_of(spec, chart_tables.END)]


def marks_of(spec, *what):
    """The single marks of some kinds."""
    return [row for row in spec["datasets"][chart_tables.MARKS] if row["what"] in what]


def here(spec):
    """The marker of the selected plan, on whichever side its words stand."""
    return marks_of(spec, chart_tables.HERE_LEFT, chart_tables.HERE_RIGHT)


def layers(spec):
    """The layers of a chart, those of a shared table too."""
    for layer in spec["layer"]:
        yield from layers(layer) if "layer" in layer else [layer]


def marks(spec):
    return [layer["mark"]["type"] for layer in layers(spec)]


def text_colours(spec):
    """Of texts themselves: what has a stroke is the halo behind one."""
    texts = [x["mark"] for x in layers(spec) if x["mark"]["type"] == "text"]
    return [mark["color"] for mark in texts if "stroke" not in mark]


def test_the_whole_frontier_and_a_sample_of_the_rest_is_drawn():
    points = app_tables.points(answer(plan(), points=many_points()))
    assert points["frontier"].sum() == 30
    assert len(points) == 30 + app_tables.DRAWN_DOMINATED
    assert np.isfinite(points["usd"]).all()
    assert points["days"].to_numpy() == pytest.approx(points["hours"].to_numpy() / 24)


def test_the_same_plans_are_the_same_chart_however_they_are_ranked():
    """A browser keeps a chart whose spec and words are the same."""
    plans = many_points()
    ranked_anew = {name: column[::-1] for name, column in plans.items()}
    points, again = (app_tables.points(answer(plan(), points=p)) for p in (plans, ranked_anew))
    pd.testing.assert_frame_equal(points, again)
    said = app_tables.frontier_sentence(points)
    assert said == app_tables.frontier_sentence(again)
    assert said == (
        "Cost against wall clock: 30 plans are the cheapest of their time, from $1k in 41.7 days "
        "on 1 x GPU0 to $30k in 21 min on 2,901 x GPU8."
    )
    one = app_tables.points(answer(plan(), points=many_points(3)))
    assert "the cheapest plan is the fastest, $1k in 41.7 days" in app_tables.frontier_sentence(one)


def test_an_answer_without_prices_has_no_points():
    assert app_tables.points(answer(plan(usd=None), points={})).empty
    unpriced = {**many_points(3), "paid_usd": np.full(3, np.nan)}
    assert app_tables.points(answer(plan(), points=unpriced)).empty


@pytest.mark.parametrize("theme", THEMES)
def test_a_plan_that_costs_nothing_is_told_and_not_drawn(theme):
    """Credits above the bill: a logarithmic axis has no zero."""
    some = many_points(50)
    usd = some["paid_usd"]
    some["paid_usd"] = np.where(np.isin(np.arange(50), [0, 7]), 0.0, usd)
    found = answer(plan(), points=some)
    points = app_tables.points(found)
    assert set(points["id"]) == {f"p{n}" for n in range(50)} - {"p0", "p5", "p7"}
    low, high = ends(pareto(points, theme), "usd")
    assert 0 < low < high
    assert app_tables.free_sentence(found).startswith(
        "2 plans cost nothing, credits taken off: not"
    )
    assert app_tables.free_sentence(answer(plan(), points=many_points(50))) == ""
    assert app_tables.free_sentence(answer(plan(usd=None), points={})) == ""
    nothing = answer(plan(), points={**many_points(1), "paid_usd": np.zeros(1)})
    assert app_tables.points(nothing).empty
    assert app_tables.free_sentence(nothing).startswith("1 plan costs nothing")


@pytest.mark.parametrize("theme", THEMES)
def test_the_frontier_chart_names_its_units_and_its_limits(theme):
    spec = pareto(app_tables.points(answer(plan(), points=many_points())), theme)
    x, y = spec["layer"][0]["encoding"]["x"], spec["layer"][0]["encoding"]["y"]
    assert (x["axis"]["title"], y["axis"]["title"]) == ("Wall clock (days)", "Cost (USD)")
    assert x["scale"]["type"] == y["scale"]["type"] == "log"
    assert marks(spec).count("rule") == 2
    texts = [row["text"] for row in marks_of(spec, chart_tables.BUDGET, chart_tables.DEADLINE)]
    assert texts == ["Budget $50k", "Deadline 30 days"]
    low, high = ends(spec, "days")
    assert low < 1e3 / 3000 / 24
    assert high > 1e3 / 24


def test_without_limits_there_are_no_limit_lines():
    points = app_tables.points(answer(plan(), points=many_points(50)))
    spec = pareto(points, budget_usd=None, deadline_days=None, selected_id="gone")
    assert "rule" not in marks(spec)
    assert here(spec) == []


@pytest.mark.parametrize(
    ("neighbour", "side"),
    [
        (None, chart_tables.HERE_LEFT),
        ((1.1, 1.05), chart_tables.HERE_RIGHT),  # would stand under the word
        ((1.1, 0.9), chart_tables.HERE_LEFT),  # is below it
        ((30.0, 1.05), chart_tables.HERE_LEFT),  # is far
    ],
)
def test_the_word_beside_the_selected_plan_hides_no_neighbour(neighbour, side):
    """To the middle of the plot, or away from it where a plan of the frontier is nearer there."""
    frontier = [(1.0, 100.0), (3.0, 10.0), (1000.0, 1.0)]
    if neighbour is not None:
        frontier.append((3 * neighbour[0], 10 * neighbour[1]))
    days, usd = np.array(frontier).T
    some = many_points(len(frontier))
    some |= {"paid_usd": usd, "expected_hours": 24 * days, "frontier": np.ones(len(days), bool)}
    points = app_tables.points(answer(plan(), points=some))
    (row,) = here(pareto(points, selected_id="p1", budget_usd=None, deadline_days=None))
    assert row["what"] == side


def test_the_marker_is_where_the_selected_plan_is_and_moves_alone():
    points = app_tables.points(answer(plan(), points=many_points(50)))
    first, second = pareto(points, selected_id="p3"), pareto(points, selected_id="p40")
    (row,) = here(second)
    assert row["usd"] == pytest.approx(1e3 + 400)
    assert row["days"] == pytest.approx(1e3 / 41 / 24, rel=1e-3)
    assert {**first, "datasets": None} == {**second, "datasets": None}
    texts = [x for x in layers(second) if x["mark"].get("text") == "Selected"]
    drawn = [
        (x["encoding"]["opacity"]["condition"]["test"], x["mark"]["align"], "stroke" in x["mark"])
        for x in texts
    ]
    # Away from the nearer end of the axis, each over a halo that keeps lines away from it.
    left, right = (
        f"datum.what == '{x}'" for x in (chart_tables.HERE_LEFT, chart_tables.HERE_RIGHT)
    )
    assert drawn == [(left, "left", True), (left, "left", False),
                     (right, "right", True), (right, "right", False)]  # fmt: skip
    assert [here(x)[0]["what"] for x in (first, second)] == ["right", "left"]


def test_a_frontier_of_many_accelerators_keeps_shape_and_colour_apart():
    points = many_points(200, accelerators=12)
    points["frontier"] = np.ones(200, dtype=bool)
    spec = pareto(app_tables.points(answer(plan(), points=points)))
    best = next(x for x in layers(spec) if x["encoding"].get("shape"))
    scale = best["encoding"]["shape"]["scale"]
    assert len(scale["domain"]) == len(scale["range"]) == len(set(scale["range"]))
    assert scale["domain"][-1] == chart_tables.OTHER
    assert best["encoding"]["color"]["scale"]["domain"] == scale["domain"]


@pytest.mark.parametrize("theme", THEMES)
def test_text_is_drawn_in_the_ink_of_the_theme(theme):
    points = app_tables.points(answer(plan(), points=many_points(50)))
    bar = part_charts.memory_bar(
        app_tables.memory(plan()), capacity_gib=80.0, capacity_text="Usable 80 GiB", theme=theme
    )
    waterfall = part_charts.step_waterfall(app_tables.step(plan()), theme=theme)
    readable = {chart_parts.INK[theme], chart_parts.LIMIT[theme]}
    for spec in (pareto(points, theme), bar, waterfall):
        assert text_colours(spec)
        assert set(text_colours(spec)) <= readable


def contrast(one, other):
    """WCAG 2.2 contrast ratio of two hex colours."""

    def luminance(hex_colour):
        parts = [int(hex_colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("theme", "paper"), [("light", "#FFFFFF"), ("dark", "#10151B")])
def test_chart_text_has_the_contrast_of_wcag_aa(theme, paper):
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast(chart_parts.INK[theme], paper) >= 4.5
    assert contrast(chart_parts.LIMIT[theme], paper) >= 4.5


def test_the_memory_bar_stacks_every_part_to_the_peak():
    parts = app_tables.memory(plan())
    assert parts["gib"].sum() == pytest.approx(sum(MEMORY_BYTES.values()) / GIB)
    assert list(parts["order"]) == list(range(len(MEMORY_BYTES)))
    assert parts["part"][0].startswith("Parameters: 7.45 GiB")
    assert app_tables.peak_bytes(plan()) == pytest.approx(64e9)


def test_headroom_says_how_much_is_left_or_missing():
    assert "19.6 GiB of 79.2 GiB left" in app_tables.headroom_sentence(plan())
    over = app_tables.headroom_sentence(plan(memory_capacity_bytes=60 * GIB))
    assert "largest part is Optimizer states" in over
    assert "over" not in over
    assert "9.6 GiB over" in app_tables.headroom_sentence(plan(memory_capacity_bytes=50 * GIB))


def test_the_waterfall_is_gapless_and_ends_at_the_step():
    rows = app_tables.step(plan())
    parts = rows[~rows["total"]]
    assert list(parts["start_s"][1:]) == pytest.approx(list(parts["end_s"][:-1]))
    assert parts["end_s"].iloc[-1] == pytest.approx(sum(STEP_S.values()))
    assert rows["end_s"].iloc[-1] == pytest.approx(sum(STEP_S.values()))
    assert len(parts) == sum(s > 0 for s in STEP_S.values())


def test_a_headline_of_a_plan_that_is_not_listed_comes_from_its_point():
    points = {**many_points(100), "expected_hours": np.full(100, 50.0)}
    points["expected_hours"][70] = 2.0
    found = cards.headlines(Scenario(), answer(plan(), points=points), plan(), TODAY)
    assert [h.label for h in found] == [
        "Recommended", "Cheapest if you wait", "Fastest", "Peak memory per GPU"
    ]  # fmt: skip
    assert found[2].value == "2 h"
    assert "71 x GPU10" in found[2].lines[0]


@pytest.mark.parametrize("theme", THEMES)
def test_plans_on_prices_in_doubt_are_hollow_named_and_no_headline(theme):
    some = many_points(50)
    doubted = np.isin(np.arange(50), [0, 49])  # the cheapest, and the fastest
    some |= {"in_doubt": doubted, "frontier": np.arange(50) == 1,
             "against": np.where(doubted, "old_price weak_price", "")}  # fmt: skip
    found = answer(plan(), points=some)
    spec = pareto(app_tables.points(found), theme)
    (hollow,) = (x for x in layers(spec) if "stroke" in x["encoding"])
    assert len(spec["datasets"][hollow["data"]["name"]]) == 2
    assert hollow["mark"]["filled"] is False
    assert hollow["encoding"]["stroke"]["scale"] == {
        "domain": ["old or low-quality price"], "range": [chart_parts.FAINT[theme]],
    }  # fmt: skip
    _, cheapest, fastest, _ = cards.headlines(Scenario(), found, plan(), TODAY)
    assert cheapest.value == "$1.01k"
    assert "49 x GPU0" in fastest.lines[0]
    every = {**some, "against": np.full(50, "old_price", dtype=object)}
    assert (
        cards.headlines(Scenario(), answer(plan(), points=every), plan(), TODAY)[1].value == "$1k"
    )


def test_headlines_carry_range_unit_and_price_age():
    one = {k: v[:1] for k, v in many_points(3).items()} | {"id": np.array([plan().id])}
    found = cards.headlines(Scenario(), answer(plan(), points=one), plan(), TODAY)
    best, cheap, fast, memory = found
    assert (cheap.value, fast.value, best.value) == ("$12.4k", "3.1 days", "$12.4k")
    assert cheap.lines[0] == "P10-P90: $10.9k-$14.2k"
    assert cheap.lines[-1] == "price 4 months old"
    assert memory.value == "59.6 GiB"
    assert "79.2 GiB usable" in memory.lines[0]


def test_a_deadline_adds_the_chance_of_the_recommended_plan():
    steady = plan()
    late = replace(steady, cost=cost(steady.hours, steady.usd, chance_on_time=0.64))
    one = {k: v[:1] for k, v in many_points(3).items()} | {"id": np.array([late.id])}
    found = cards.headlines(Scenario(deadline_days=3.2), answer(late, points=one), late, TODAY)
    assert [(h.label, h.value) for h in found][1] == ("On time", "64%")
    assert found[1].lines == ("deadline 3.2 days", "asked: 90%")


def test_an_unpriced_answer_has_headlines_without_dollars():
    bare = plan(usd=None, usd_per_gpu_hour=None)
    points = {k: v[:1] for k, v in many_points(3).items()}
    points |= {"id": np.array([bare.id]), "paid_usd": np.array([np.nan])}
    found = cards.headlines(Scenario(), answer(bare, points=points), bare, TODAY)
    assert [h.label for h in found] == ["Recommended", "Fastest", "Peak memory per GPU"]
    assert "no price known" in found[0].lines
    assert ("Price", "no price known") in app_tables.facts(Scenario(), bare, TODAY)


def test_the_ranked_table_keeps_numbers_and_shows_text():
    plans = [plan(), plan(rank=2, usd=None)]
    scenario = Scenario(budget_usd=1e6)
    table = app_tables.ranked(scenario, plans)
    frame = table.frame()
    assert frame[app_tables.COST].tolist()[0] == 12_412.0
    assert np.isnan(frame[app_tables.COST].tolist()[1])
    listed = table.without(*app_tables.IN_FILE).frame()
    assert listed[app_tables.EXPECTED_COST].tolist()[0] == 12_412.0
    numbers = {name for name in listed if pd.api.types.is_float_dtype(listed[name])}
    assert numbers
    assert numbers <= set(app_tables.FORMATS)
    assert frame["Within limits"].tolist() == ["yes", "yes"]


def test_a_plan_that_never_ends_has_no_number_of_days():
    endless = plan(cost=cost(spread(np.inf, np.inf, np.inf), None))
    table = app_tables.ranked(Scenario(), [endless])
    assert table.frame()[app_tables.FAILING_TIME].isna().all()


@pytest.mark.parametrize("start", ["=1+1", "+1", "-1", "@x", "\t=1", "\u00a0=1", "\ufeff=1", " =1"])
def test_no_cell_of_the_csv_starts_a_formula(start):
    hostile = plan(offer=offer(provider=start, instance_type=start), usd=spread(-1.5, -2.5, -3.5))
    frame = app_tables.ranked(Scenario(), [hostile]).frame()
    text = csv_bytes(frame, "/?v=1").decode()
    row = next(csv.DictReader(io.StringIO(text)))
    assert row["Cloud"] == "'" + start
    assert row["Instance"] == "'" + start
    assert row[app_tables.COST] == "-2.5"
    assert row["Link"] == "/?v=1"


def test_what_was_left_out_is_counted_once():
    rows = app_tables.excluded(answer()).texts()
    assert rows["Left out"].tolist() == ["500", "90", "28", "9"]
    assert rows["Why"].tolist()[1] == "offers are of another kind."


def test_charts_are_valid_vega_lite():
    """Altair checks a chart against the schema when it is read."""
    points = app_tables.points(answer(plan(), points=many_points(50)))
    waterfall = part_charts.step_waterfall(app_tables.step(plan()), theme="light")
    bar = part_charts.memory_bar(
        app_tables.memory(plan()), capacity_gib=80.0, capacity_text="Usable", theme="light"
    )
    for spec in (waterfall, bar, pareto(points)):
        alt.LayerChart.from_dict(spec, validate=True)
    texts = [x["encoding"]["text"]["field"] for x in layers(waterfall) if "text" in x["encoding"]]
    assert sorted(texts) == ["part", "text"]  # names are marks: none is left out


@pytest.mark.parametrize("theme", THEMES)
def test_another_plan_of_as_many_parts_changes_only_the_tables(theme):
    """A browser keeps such a chart and moves its marks."""
    other = plan(
        memory_bytes={name: 2 * size for name, size in MEMORY_BYTES.items()},
        step_s={name: 3 * s for name, s in STEP_S.items()},
    )
    for of in (
        lambda p: part_charts.step_waterfall(app_tables.step(p), theme=theme),
        lambda p: part_charts.memory_bar(
            app_tables.memory(p), capacity_gib=80.0, capacity_text="Usable", theme=theme
        ),
    ):
        one, two = of(plan()), of(other)
        assert one["datasets"] != two["datasets"]
        assert {**one, "datasets": None} == {**two, "datasets": None}
    at = [row["end"] for row in one["datasets"][part_charts.PARTS]]
    assert at == pytest.approx(list(np.cumsum(app_tables.memory(plan())["gib"])))
    assert [row["start"] for row in one["datasets"][part_charts.PARTS]][1:] == at[:-1]


def test_dearer_plans_move_the_marks_of_the_frontier_only():
    points = app_tables.points(answer(plan(), points=many_points(50)))
    dearer = points.assign(usd=points["usd"] * 1.7)
    one, two = pareto(points), pareto(dearer)
    assert {**one, "datasets": None} == {**two, "datasets": None}
    assert ends(two, "usd")[1] == pytest.approx(max(dearer["usd"].max(), 5e4) * chart_tables.GAP)


def made_up_effects(priced=True):
    usd = 0.2 if priced else np.nan
    known = {"usd_low": -usd, "usd_high": usd, "oom_low": 0.0, "oom_high": 0.0}
    return Sensitivity(
        change=0.1,
        effects=tuple(
            Effect(name=name, kind="job", value=100.0, low=90.0, high=110.0,
                   time_low=-0.1 / n, time_high=0.1 / n, **known)
            for n, name in enumerate(("num_tokens", "matmul", "scale_up"), start=1)
        ),
        unknowns=(),
        sigma=0.1,
    )  # fmt: skip


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("priced", [True, False])
def test_the_tornado_names_every_input_once_and_both_of_its_sides(theme, priced):
    rows = explain_document.tornado(made_up_effects(priced))
    assert list(rows["moved"])[:2] == ([-0.2, 0.2] if priced else [-0.1, 0.1])
    assert ("cost" in rows["text"].iloc[0]) == priced
    spec = explain_charts.tornado(rows, moved="Change of the cost", theme=theme).to_dict(
        validate=True
    )
    assert set(text_colours(spec)) == {chart_parts.INK[theme]}
    bars = next(x for x in spec["layer"] if x["mark"]["type"] == "bar")
    assert bars["encoding"]["color"]["scale"]["domain"] == ["lower", "higher"]
    assert bars["encoding"]["x"]["axis"]["title"] == "Change of the cost"
    assert bars["encoding"]["y"]["sort"] == list(rows["input"].unique())


def test_the_inputs_that_move_most_are_drawn():
    many = made_up_effects()
    effects = tuple(replace(many.effects[0], name=f"input_{n}") for n in range(30))
    rows = explain_document.tornado(replace(many, effects=effects))
    assert rows["input"].nunique() == explain_document.DRAWN
    assert rows["input"].iloc[0] == "input 0"
