"""The Memory & speed page without a browser: its layouts, its waterfall, its scaling, its words."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from app.forecast.answer import answer
from app.forecast.by_count import plans_by_count
from app.forecast.machines import accelerator_of
from app.forecast.resolve import resolve_strict
from app.memory import layouts as memory_layouts
from app.memory import speed_tables
from app.memory import tables as memory_tables
from app.memory import words as memory_words
from app.memory.layouts import held_of, misses_of
from app.memory.layouts_section import MINE, WHICH
from app.scenario.model import model_of
from core.memory.memory_phases import PHASES
from core.model.transformer import train_flops_per_token
from core.scenario import Scenario
from tests.made_up.plans import plan as made_up_plan

JOB = {
    "model": "llama3.1-70b", "num_tokens": "1T", "global_batch_size": "512",
    "gpu": "H100-80GB-SXM", "num_gpus": "256", "cloud": "aws",
    "stack": "generic",
}  # fmt: skip
NOTHING = {**JOB, "model": "llama3.1-405b", "num_gpus": "8", "stack": "auto"}
TABLES = ("layouts", "phases", "step", "faster", "scaling")


def script(query):
    import streamlit as st

    from app.forecast.resolve import resolve
    from app.memory import page as memory_page
    from app.web import link
    from app.web.answers import answer_of
    from core.scenario import Scenario

    if "link_scenario" not in st.session_state:
        link.edit(resolve(Scenario.from_query(query)[0])[0])
    answer = answer_of(link.scenario())
    memory_page.draw(link.scenario(), answer)


def page(query=JOB, **state):
    drawn = AppTest.from_function(script, default_timeout=120, args=(query,))
    for name, value in state.items():
        drawn.session_state[name] = value
    return drawn.run()


def charts(drawn):
    return [c.proto for c in drawn.get("vega_lite_chart") or drawn.get("arrow_vega_lite_chart")]


def plain(text):
    return str(text).replace("\\", "").replace("\N{WORD JOINER}", "")


def said(drawn):
    return plain(" ".join(m.value for m in (*drawn.markdown, *drawn.caption, *drawn.error)))


@pytest.fixture(scope="module")
def scenario():
    return resolve_strict(Scenario.parse(JOB))


@pytest.fixture(scope="module")
def plan(scenario):
    return answer(scenario, top=1).plans[0]


@pytest.fixture(scope="module")
def held(plan):
    return held_of(plan)


@pytest.fixture(scope="module")
def found(plan):
    return plans_by_count(plan)


class TestLayouts:
    def test_the_first_bar_is_the_plan(self, held, plan):
        first = held.bars[0]
        assert (first.kind, first.layout) == ("plan", plan.layout)
        assert first.memory_bytes == pytest.approx(dict(plan.memory_bytes))
        assert first.step_s == pytest.approx(sum(plan.step_s.values()))
        assert first.usd == pytest.approx(plan.usd.p50)
        assert first.probability_oom == pytest.approx(plan.probability_oom)

    def test_the_largest_phase_is_the_plan_s_peak(self, held, plan):
        totals = [sum(held.phases[p].values()) for p in PHASES]
        assert max(totals) == pytest.approx(sum(plan.memory_bytes.values()))

    def test_no_other_that_fits_is_faster_than_the_best(self, held):
        others = held.of("fits")
        assert len(others) == memory_layouts.NEXT
        times = [held.bars[0].step_s, *(b.step_s for b in others)]
        assert times == sorted(times)
        assert all(b.need_bytes <= b.usable_bytes for b in others)

    def test_what_does_not_fit_is_faster_and_lacks_memory(self, held):
        out = held.of("too_large")
        assert len(out) == memory_layouts.TOO_LARGE
        assert all(b.usable_bytes < b.need_bytes for b in out)
        assert all(b.need_bytes <= memory_layouts.WORTH_DRAWING * b.capacity_bytes for b in out)
        assert all(b.step_s < held.bars[0].step_s for b in out)

    def test_bars_of_a_kind_differ_in_degrees_or_sharded_states(self, held):
        for kind in ("fits", "too_large"):
            cuts = [(b.layout.tp, b.layout.pp, b.layout.cp, b.layout.ep, b.layout.sharding)
                    for b in held.of(kind)]  # fmt: skip
            assert len(set(cuts)) == len(cuts)

    def test_of_too_many_layouts_some_degrees_stay(self, plan, monkeypatch):
        monkeypatch.setattr(memory_layouts, "MOST_ROWS", 2000)
        few = held_of(plan)
        assert few.same[0] == "cp"
        assert 0 < few.num_legal <= 2000
        assert "as the plan has them" in memory_words.layouts_sentence(few)
        assert {b.layout.ep for b in few.bars} == {plan.layout.ep}

    def test_a_measured_plan_moves_all_layouts_alike(self, plan, held):
        slow = replace(plan.job, measured_factor=2 * plan.job.measured_factor)
        for before, after in zip(held.bars, held_of(replace(plan, job=slow)).bars, strict=True):
            assert after.step_s == pytest.approx(2 * before.step_s)

    def test_the_nearest_miss_is_that_of_the_answer(self):
        nothing = resolve_strict(Scenario.parse(NOTHING))
        told = answer(nothing, top=1).nothing_fits
        misses = misses_of(nothing)
        assert misses is not None
        least = min(b.need_bytes for b in misses.bars) / 2**30
        assert f"needs {least:.1f} GiB per GPU" in told
        assert "None of 35 legal layouts fits" in memory_words.misses_sentence(misses)

    @pytest.mark.parametrize("query", [{"tp": "3", "num_gpus": "8"}, {}])
    def test_without_a_legal_layout_or_a_count_there_is_no_nearest_miss(self, query):
        free = {k: v for k, v in JOB.items() if k != "num_gpus"}
        assert misses_of(resolve_strict(Scenario.parse({**free, **query}))) is None


class TestWords:
    def test_the_tables_add_up(self, held, plan):
        numbers = memory_tables.layouts_data(held)
        parts = [c for c in numbers if c.endswith("_gib")][:7]
        assert np.allclose(numbers[parts].sum(axis=1), numbers["need_gib"])
        phases = memory_tables.phases_data(held)
        assert phases["total_gib"].max() == pytest.approx(numbers["need_gib"][0])
        assert memory_tables.phases_shown(held).iloc[-1]["Part"] == "All"


class TestWaterfall:
    def test_the_ideal_is_model_flops_at_the_dense_peak(self, scenario, plan):
        ideal, _ = speed_tables.losses(plan)
        flops = train_flops_per_token(model_of(scenario).transformer, float(scenario.seq_len))
        tokens = scenario.global_batch_size * scenario.seq_len
        peak = accelerator_of(plan.offer.accelerator, scenario).bf16_flops_per_s
        assert ideal == pytest.approx(float(flops) * tokens / (256 * peak))

    def test_each_loss_begins_where_the_one_before_ends(self, plan):
        rows = speed_tables.waterfall(plan)
        *steps, whole = rows.to_dict("records")
        for before, after in pairwise(steps):
            assert after["start_s"] == pytest.approx(before["end_s"])
        assert steps[-1]["end_s"] == pytest.approx(whole["end_s"])
        assert whole["end_s"] == pytest.approx(sum(plan.step_s.values()))
        assert rows["share"][:-1].sum() == pytest.approx(1)

    def test_kernels_that_outdo_the_16_bit_peak_come_off(self):
        fast = made_up_plan(mfu=0.9)
        rows = speed_tables.waterfall(fast)
        gain = rows[rows["kind"] == "gain"].iloc[0]
        assert gain["part"] == speed_tables.FASTER
        assert gain["end_s"] < gain["start_s"]
        assert gain["text"].startswith("-")
        assert rows["end_s"].iloc[-2] == pytest.approx(sum(fast.step_s.values()))


class TestScaling:
    def test_tokens_and_efficiency(self, found, plan):
        rows = speed_tables.scaling(found.plans)
        assert rows["efficiency"].iloc[0] == 1
        assert np.allclose(rows["tokens_per_s"], rows["linear_tokens_per_s"] * rows["efficiency"])
        own = rows[rows["num_gpus"] == plan.num_gpus]
        assert own["tokens_per_s"].iloc[0] == pytest.approx(plan.tokens_per_s.p50, rel=1e-6)


class TestPage:
    def test_a_layout_that_does_not_fit_gets_fixes_with_their_cost(self, held):
        drawn = page()
        box = drawn.selectbox(key=WHICH)
        assert len(box.options) == len(held.of("too_large"))
        assert all("over the capacity" in o or "more than is safe" in o for o in box.options)
        fixes = drawn.table[-1].value
        assert list(fixes.columns) == ["Change", "Without failures", "Step", "Memory per GPU"]
        assert len(fixes)
        box.select_index(1).run()
        assert not drawn.exception
        assert "does not fit the memory" in said(drawn)

    @pytest.mark.parametrize("text", ["<img src=x onerror=alert(1)>", "=" * 599, "tp=1e9"])
    def test_hostile_text_is_one_sentence(self, text):
        drawn = page()
        drawn.text_input(key=MINE).set_value(text).run()
        assert not drawn.exception
        assert len(drawn.error) == 1
        assert "<" not in drawn.error[0].value.replace("\\<", "")

    def test_the_numbers_are_tables_too(self):
        closed = page()
        opened = page(**{f"memory_{name}_table": True for name in TABLES})
        assert not opened.exception
        assert len(opened.table) == len(closed.table) + len(TABLES)
        assert all(len(t.value) <= 20 for t in opened.table)

    def test_nothing_fits_says_which_limit_and_the_nearest_change(self):
        drawn = page(NOTHING)
        assert not drawn.exception
        assert "The largest part is optimizer states" in said(drawn)
        assert "It fits on " in said(drawn)
        assert "over the capacity" in said(drawn)
        assert len(charts(drawn)) == 1

    def test_no_legal_layout_is_a_sentence(self):
        drawn = page({**JOB, "tp": "3", "num_gpus": "7"})
        assert not drawn.exception
        assert "Nearest legal value" in said(drawn)
        assert not charts(drawn)
