"""The page without a browser: links open, mistakes are sentences, edits reach the link."""

import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app.forecast import answer as forecast_answer
from app.forecast import resolve
from app.scenario import fields as scenario_fields
from app.scenario.age import installed
from app.scenario.layout import layout_text
from app.web import form_part, link
from core.scenario import Scenario

ROOT = Path(__file__).parents[2]
MAIN = str(ROOT / "app/main.py")
CONFIGS = Path(__file__).parent.parent / "golden/configs"
QUICK = {"gpu": "H100-80GB-SXM", "cloud": "aws", "num_gpus": "64"}  # few machines: a fast answer


PARTS = [*(s.key for s in scenario_fields.sections()), "config", "custom_gpu", "file"]


def opened(parts=(), /, **query):
    page = AppTest.from_file(MAIN, default_timeout=60)
    page.session_state[form_part.OPEN] = list(parts)  # as if somebody had clicked on them
    for name, value in query.items():
        page.query_params[name] = value
    return page.run()


def link_of(page):
    """The query as one value a key, whatever the test harness wraps it in."""
    return {k: v[-1] if isinstance(v, list) else v for k, v in page.query_params.items()}


def texts(elements):
    return [e.value.replace("\\", "").replace("\N{WORD JOINER}", "") for e in elements]


def headlines(page):
    return {m.label: m.value.replace("\\", "") for m in page.metric}


@pytest.fixture(scope="module", autouse=True)
def _warm():
    """Read the tables of facts once, outside every test's own time."""
    forecast_answer.answer(Scenario.parse(QUICK), top=1)


def test_the_page_is_useful_without_a_click():
    page = opened()
    assert not page.exception
    assert not page.warning
    assert not page.error
    assert list(headlines(page)) == [
        "Recommended", "On time", "Cheapest if you wait", "Fastest", "Peak memory per GPU"
    ]  # fmt: skip
    assert page.header[0].value == "Forecast an LLM training run before you pay for it"
    table = page.dataframe[0].value
    assert 10 <= len(table) <= 200
    first = {"v": "1", **link.FIRST_VISIT, "made": installed(), "prices": resolve.current_prices()}
    assert link_of(page) == first


def test_the_answer_says_how_old_its_price_is_and_the_table_what_speaks_against_a_plan():
    pinned = {**QUICK, "prices": "418dd4911f7e"}
    page = opened(**pinned)
    assert re.search(r"; price \d+ (days|months) old; ", " ".join(texts(page.markdown)))
    assert "Not recommended for" not in page.dataframe[0].value
    page = opened(["prices"], **{**pinned, "cloud": "aws,coreweave", "max_price_age_days": "45"})
    table = page.dataframe[0].value
    against = dict(zip(table["Cloud"], table["Not recommended for"], strict=True))
    assert against["coreweave"] == "price past its life, price of low quality"
    assert table["Cloud"].iloc[0] == "aws"
    assert "plans stand on prices past their life" in " ".join(texts(page.caption))
    page.text_input(key="form_max_price_age_days").set_value("20").run()
    assert link_of(page)["max_price_age_days"] == "20"
    assert ": no plan stands on a better one" in " ".join(texts(page.markdown))


def test_a_link_opens_the_scenario_it_names():
    page = opened(
        ["parallelism", "prices"], **QUICK, model="llama3.1-70b", num_tokens="2T",
        purchase="on_demand,spot", tp="8",
    )  # fmt: skip
    assert not page.exception
    assert not page.warning
    assert page.selectbox(key="form_model").value == "llama3.1-70b"
    assert page.text_input(key="form_num_tokens").value == "2T"
    assert page.text_input(key="form_tp").value == "8"
    assert page.multiselect(key="form_purchase").value == ["on_demand", "spot"]
    assert page.multiselect(key="form_gpu").value == ["H100-80GB-SXM"]
    assert set(page.dataframe[0].value["GPU"]) == {"H100-80GB-SXM"}


def test_editing_a_field_changes_the_link_and_the_answer():
    page = opened(["prices"], **QUICK)
    before = headlines(page)
    page.text_input(key="form_num_tokens").set_value("15T").run()
    assert not page.exception
    assert float(link_of(page)["num_tokens"]) == 15e12
    assert headlines(page) != before
    page.text_input(key="form_seq_len").set_value("16k").run()
    assert link_of(page)["seq_len"] == "16384"
    assert page.text_input(key="form_seq_len").value == "16384"
    page.multiselect(key="form_purchase").set_value(["spot"]).run()
    assert link_of(page)["purchase"] == "spot"
    page.text_input(key="form_num_gpus").set_value("8, 64").run()
    assert link_of(page)["num_gpus"] == "8,64"
    page.text_input(key="form_num_gpus").set_value("").run()
    assert "num_gpus" not in link_of(page)


def test_an_edit_outruns_an_address_that_is_still_the_old_one():
    """A second edit can arrive before the browser shows the address of the first."""
    page = opened(**QUICK)
    old = link_of(page)
    page.text_input(key="form_num_tokens").set_value("15T").run()
    page.query_params.clear()
    for name, value in old.items():
        page.query_params[name] = value
    page.text_input(key="form_seq_len").set_value("4096").run()
    assert link_of(page)["seq_len"] == "4096"
    assert float(link_of(page)["num_tokens"]) == 15e12


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_tokens", "lots"),
        ("num_gpus", "8,x"),
        ("global_batch_size", ""),
        ("budget_usd", "=1+1"),
    ],
)
def test_a_wrong_value_is_a_sentence_and_the_last_valid_answer_stays(name, value):
    page = opened(PARTS, **QUICK)
    before, link = headlines(page), link_of(page)
    page.text_input(key=f"form_{name}").set_value(value).run()
    assert not page.exception
    assert len(page.error) == 1
    assert name in texts(page.error)[0]
    assert headlines(page) == before
    assert link_of(page) == link
    valid = {"seq_len": "4096", "tp": "8"}.get(name, "64")
    page.text_input(key=f"form_{name}").set_value(valid).run()
    assert not page.error


HOSTILE_LINKS = [
    ({"gpu": "H100-80G-SXM"}, "H100-80GB-SXM"),
    ({"seq_len": "NaN"}, "seq_len"),
    ({"num_layers": "1000000000", "model": "custom"}, "num_layers"),
    ({"model": "custom"}, "custom"),
    ({"gpu": "custom"}, "custom"),
    ({"v": "99"}, "v="),
    ({"prices": "0123abcd"}, "0123abcd"),
    ({"plan": "nobody~has~this"}, "nobody~has~this"),
    ({"model": "<script>alert(1)</script>"}, "model"),
    ({"evil": "$x$ :red[a] ![i](http://evil.example/i.png)"}, "evil"),
    ({"model": "x" * 100_000}, "longer than"),
    ({"pinned": "nobody,nothing"}, "nobody"),
    ({"pinned": "a,b,c,d,e"}, "pinned"),
    ({"calibration": "0123456789abcdef"}, "0123456789abcdef"),
    ({"price_book": "nobody"}, "nobody"),
]


@pytest.mark.parametrize(
    ("query", "says"), HOSTILE_LINKS, ids=[str(q)[:40] for q, _ in HOSTILE_LINKS]
)
def test_a_bad_link_is_visible_sentences_and_the_page_stands(query, says):
    page = opened(**{**QUICK, **query})
    assert not page.exception
    notes = texts(page.warning)
    assert notes
    assert any(says in note for note in notes), notes
    assert headlines(page)
    assert "Traceback" not in " ".join(notes)
    # What was bad is gone from the link, which now reads back without a note.
    _, again = Scenario.from_query(link_of(page))
    assert again == []


def test_what_came_from_a_link_is_never_markdown():
    page = opened(**QUICK, evil="<b>$x$ [a](http://evil.example)</b>")
    shown = page.warning[0].value
    for mark in ("<", "$", "["):
        assert all(shown[i - 1] == "\\" for i, c in enumerate(shown) if c == mark)
    assert "http://" not in shown


def test_notes_leave_with_the_next_edit():
    page = opened(**QUICK, seq_len="-1")
    assert len(page.warning) == 1
    page.text_input(key="form_seq_len").set_value("4096").run()
    assert not page.warning


def test_a_link_of_older_prices_offers_the_newest(monkeypatch):
    page = opened(**QUICK)
    assert not [b for b in page.button if b.key == "main_newest"]
    monkeypatch.setattr(resolve, "current_prices", lambda: "0123abcd0123")
    page.run()
    page.button(key="main_newest").click().run()
    assert link_of(page)["prices"] == "0123abcd0123"


def test_nothing_fits_says_by_how_much_and_what_to_do():
    page = opened(model="llama3.1-405b", gpu="L4", num_gpus="1")
    assert not page.exception
    assert not page.metric
    assert "GiB" in texts(page.error)[0]
    assert page.code[0].value.endswith(f"prices={resolve.current_prices()}")


def _plans():
    return forecast_answer.answer(
        Scenario.parse({**QUICK, "prices": resolve.current_prices()})
    ).plans


def test_a_selected_plan_that_an_edit_removes_is_forgotten():
    page = opened(**QUICK, plan=_plans()[1].id)
    assert link_of(page)["plan"]
    page.multiselect(key="form_cloud").set_value(["azure"]).run()
    assert not page.exception
    assert not page.warning
    assert "plan" not in link_of(page)


def test_a_pasted_config_becomes_the_model():
    config = next(p for p in sorted(CONFIGS.glob("*.json")) if "70b" in p.name.lower())
    page = opened(["config"], **QUICK)
    page.text_area(key="form_config_text").set_value(config.read_text()).run()
    page.button(key="form_config_use").click().run()
    assert not page.exception
    assert not page.error
    assert link_of(page)["model"] == "custom"
    assert link_of(page)["num_layers"] == "80"
    assert page.selectbox(key="form_model").value == "custom"
    again = opened(**link_of(page))
    assert not again.warning
    assert headlines(again) == headlines(page)
    page.selectbox(key="form_model").set_value("llama3.1-8b").run()
    assert "num_layers" not in link_of(page)


@pytest.mark.parametrize("config", ["{", '{"hidden_size": -1}', "[" * 100_000])
def test_a_config_that_is_none_is_a_sentence(config):
    page = opened(["config"], **QUICK)
    before = headlines(page)
    page.text_area(key="form_config_text").set_value(config).run()
    page.button(key="form_config_use").click().run()
    assert not page.exception
    assert len(page.error) == 1
    assert headlines(page) == before
    assert "model" not in link_of(page)


def test_a_typed_accelerator_is_planned_with():
    page = opened(["custom_gpu"], num_gpus="64")
    given = {
        "custom_tflop_per_s": "1000",
        "custom_memory_gib": "96",
        "custom_memory_gb_per_s": "4000",
        "custom_scale_up_gb_per_s": "450",
        "custom_scale_out_gbit_per_s": "400",
        "custom_usd_per_gpu_hour": "2.5",
    }
    for name, value in given.items():
        page.text_input(key=f"form_{name}").set_value(value).run()
    page.button(key="form_custom_gpu_use").click().run()
    assert not page.exception
    assert not page.error
    assert not page.warning
    assert link_of(page)["gpu"] == "custom"
    assert headlines(page)["Recommended"].startswith("$")
    without_price = page.text_input(key="form_custom_usd_per_gpu_hour").set_value("").run()
    assert not without_price.exception
    assert "Cheapest if you wait" not in headlines(without_price)


def test_ranking_by_time_puts_the_fastest_first():
    page = opened(**{**QUICK, "num_gpus": "8,64"}, rank_by="time")
    listed = page.dataframe[0].value
    stands = listed["Not recommended for"] == ""
    assert stands.is_monotonic_decreasing
    # The first one is the recommended one: nearly as fast, and cheaper.
    assert listed["Expected time (days)"][stands].iloc[1:].is_monotonic_increasing
    assert link_of(page)["rank_by"] == "time"


def test_another_order_leaves_the_selected_plan_and_an_edit_follows_the_first_again():
    page = opened(**{**QUICK, "num_gpus": "8,64,512"})
    before = page.selectbox(key="plan_list").value
    page.radio(key="form_rank_by").set_value("time").run()
    assert not page.exception
    assert page.selectbox(key="plan_list").value == before
    assert link_of(page)["plan"] == before
    fastest = headlines(opened(**{**QUICK, "num_gpus": "8,64,512"}, rank_by="time"))
    assert headlines(page)["Recommended"] == fastest["Recommended"]
    page.text_input(key="form_num_tokens").set_value("2T").run()
    assert not link_of(page).get("plan")
    assert page.selectbox(key="plan_list").value != before


def test_a_plan_that_was_chosen_stays_chosen_in_any_order_and_after_edits():
    some = {**QUICK, "num_gpus": "8,64,512"}
    chosen = forecast_answer.answer(Scenario.parse(some)).plans[1].id
    page = opened(**some)
    page.selectbox(key="plan_list").set_value(chosen).run()
    for order in ("time", "usd"):
        page.radio(key="form_rank_by").set_value(order).run()
        assert link_of(page)["plan"] == chosen
    page.text_input(key="form_num_tokens").set_value("200B").run()
    assert link_of(page)["plan"] == chosen


def test_every_field_has_one_place_on_the_page():
    drawn = [n for s in scenario_fields.sections() for n in s.fields]
    drawn += [n for n in scenario_fields.FIRST if n in Scenario.model_fields]
    drawn += scenario_fields.DRAWN_ELSEWHERE
    for group in ("quotes", "custom_model", "custom_gpu", "programme", "view"):
        drawn += scenario_fields.fields_of(group)
    assert sorted(drawn) == sorted(Scenario.model_fields)
    shown = {w.key for kind in ("text_input", "selectbox", "multiselect", "checkbox")
             for w in opened(PARTS, **QUICK).get(kind)}  # fmt: skip
    for section in scenario_fields.sections():
        assert {f"form_{n}" for n in section.fields} <= shown


def test_a_new_advanced_field_is_drawn_although_nobody_placed_it(monkeypatch):
    monkeypatch.setattr(scenario_fields, "ADVANCED", scenario_fields.ADVANCED[1:])
    last = scenario_fields.sections()[-len(scenario_fields.GROUPS) - 1]
    assert last.title == "Other"
    assert {"purchase", "budget_usd"} <= set(last.fields)


def test_a_switch_and_a_choice_reach_the_link_and_the_answer():
    page = opened(PARTS, **QUICK)
    before = headlines(page)
    page.selectbox(key="form_compile").set_value(True).run()
    page.selectbox(key="form_task").set_value("lora").run()
    assert not page.exception
    assert (link_of(page)["compile"], link_of(page)["task"]) == ("1", "lora")
    assert headlines(page) != before
    page.selectbox(key="form_compile").set_value(None).run()
    page.selectbox(key="form_task").set_value("pretrain").run()
    assert not {"compile", "task"} & set(link_of(page))
    assert headlines(page) == before


def test_a_measured_plan_moves_the_forecast_and_is_in_the_link():
    page = opened(**QUICK)
    plan = _plans()[0]
    speed = 0.8 * plan.tokens_per_s_per_gpu
    page.text_input(key="plan_measured").set_value(f"{speed:.0f}").run()
    assert not page.exception
    assert not page.error
    kept = link_of(page)
    assert kept["anchor_gpu"] == plan.offer.accelerator
    assert kept["anchor_num_gpus"] == "64"
    assert kept["anchor_layout"] == layout_text(plan.layout)
    anchored = forecast_answer.answer(Scenario.from_query(kept)[0], top=50)
    same = next(p for p in anchored.plans if p.layout == plan.layout)
    assert same.tokens_per_s_per_gpu == pytest.approx(speed, rel=0.02)
    assert same.tokens_per_s.p90 / same.tokens_per_s.p10 < (
        plan.tokens_per_s.p90 / plan.tokens_per_s.p10
    )
    again = opened(**kept)
    assert not again.warning
    assert headlines(again) == headlines(page)
    assert again.button(key="form_more").label == "More settings (4 changed)"


@pytest.mark.parametrize("wrong", ["fast", "9e8"])
def test_a_measurement_that_cannot_be_is_a_sentence(wrong):
    page = opened(**QUICK)
    before = link_of(page)
    page.text_input(key="plan_measured").set_value(wrong).run()
    assert not page.exception
    assert len(page.error) == 1
    assert "Measured tokens/s/GPU" in texts(page.error)[0]
    assert link_of(page) == before


def test_the_runs_that_moved_the_selected_plan_stand_beside_it():
    page = opened(**QUICK)
    rows = page.table[0].value
    weights = [abs(float(str(weight).strip("\u2060"))) for weight in rows["Weight"]]
    assert weights == sorted(weights, reverse=True)
    assert any("](https://github.com/" in str(source) for source in rows["Source"])
    assert any("sum of weight times" in text for text in texts(page.caption))


REDRAWN = ("first_look.py", "form.py", "ordered_section.py", "price_age_section.py",
           "quote_section.py", "stages_section.py")  # fmt: skip


STYLE = 'st.html(Path(__file__).with_name("page.css"))'  # a file of ours, and no markup


def test_the_page_has_no_raw_html_and_no_forced_reruns():
    for source in (ROOT / "app").rglob("*.py"):
        text = source.read_text()
        # What shows that a search or a refresh has ended; parts of the form, drawn alone until an
        # edit.
        if source.name in REDRAWN:
            text = text.replace('st.rerun(scope="app")', "", 1)
        text = text.replace(STYLE, "")
        for forbidden in ("unsafe_allow_html", "st.rerun", "st.html", "components.v1", "st.pyplot"):
            assert forbidden not in text, (source.name, forbidden)
