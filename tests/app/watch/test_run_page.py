"""The Run page without a browser: a log held against its plan, and what is taken over from it."""

from __future__ import annotations

import gzip

import pytest
from streamlit.testing.v1 import AppTest

from app.forecast.answer import answer
from app.forecast.resolve import resolve_strict
from app.watch.plan import plan_of_answer
from app.watch.run import MAX_BYTES, MOST_POINTS, over_time
from core.errors import RuncastError
from core.scenario import Scenario
from tests.made_up.watched import FORMATS, Faults, moments

JOB = {
    "model": "llama3.1-8b", "num_tokens": "9e9", "seq_len": "4096", "global_batch_size": "256",
    "gpu": "H100-80GB-SXM", "num_gpus": "64", "cloud": "aws",
}  # fmt: skip


def megatron(days: float, faults: Faults) -> bytes:
    return "".join(map(FORMATS["megatron"], moments(faults, days=days))).encode()


def script(query, files):
    from types import SimpleNamespace
    from unittest.mock import patch

    import streamlit as st

    from app.forecast.answer import answer
    from app.forecast.resolve import resolve
    from app.watch import page
    from app.web import link
    from core.scenario import Scenario

    if "asked" not in st.session_state:
        st.session_state.asked = True
        link.edit(resolve(Scenario.from_query(query)[0])[0])
    given = [SimpleNamespace(name=n, getvalue=lambda c=c: c) for n, c in files]
    with patch.object(st, "file_uploader", return_value=given):
        page.draw(link.scenario(), answer(link.scenario(), top=3))
    st.text(f"link: {link.scenario().to_query()}")


def drawn(*files):
    page = AppTest.from_function(script, default_timeout=120, args=(JOB, list(files))).run()
    assert not page.exception
    return page


def said(page) -> str:
    parts = (page.markdown, page.warning, page.error, page.caption, page.subheader, page.info)
    return " ".join(p.value for group in parts for p in group).replace("\\", "")


def test_a_run_is_held_against_its_plan_and_taken_over_into_the_link():
    page = drawn(("train.log", megatron(1.0, Faults(stall=0.1, restarts=(0.4,), not_finite=0.9))))
    text = said(page)
    assert "tokens after" in text
    assert "Goodput" in text
    assert "Stall since" in text
    assert "Loss not finite" in text
    assert "restart, " in text
    assert "Measured against forecast" in text
    assert "1 restarts in" in text
    page.button(key="run_use_failures").click().run()
    assert not page.exception
    assert "'failures_per_node_day': " in page.text[-1].value
    assert "'checkpoint_s': '59.9" in page.text[-1].value
    page.button(key="run_use_speed").click().run()
    assert "'anchor_num_gpus': '64'" in page.text[-1].value
    assert "iteration" not in page.text[-1].value


def test_without_a_log_the_command_that_follows_one_is_shown_and_a_bad_one_is_a_sentence():
    assert "runcast watch LOG --offers --link '?v=1&num_tokens=" in drawn().code[0].value
    assert "is a binary file" in said(drawn(("x.log", b"\0\1" * 500)))
    assert "No step was logged yet" in said(drawn(("x.log", b"hello\nworld\n")))


@pytest.fixture(scope="module")
def held():
    scenario = resolve_strict(Scenario.parse(JOB))
    return plan_of_answer(scenario, answer(scenario, top=1).plans[0])


def test_an_upload_is_bounded_and_its_points_are_few(held):
    _, points = over_time(held, [("a.log", megatron(2.0, Faults()))])
    assert MOST_POINTS / 2 <= len(points) <= MOST_POINTS + 1
    widths = [p["end_p90"] - p["end_p10"] for p in points]
    assert widths[-1] < widths[0] / 2
    dmon = b"# gpu pwr sm pclk\n" + b"0 300 55 1980\n" * 9
    beside, _ = over_time(held, [("a.log", megatron(0.2, Faults())), ("dmon.txt", dmon)])
    assert [s.name for s in beside.signs if s.is_seen] == ["idle_gpus"]
    assert beside.num_steps > 100
    bomb = gzip.compress(b"x" * (MAX_BYTES + 1))
    for files in ([("a.log", bomb)], [("a.log", b"x" * MAX_BYTES), ("b.log", b"x")]):
        with pytest.raises(RuncastError, match="At most 16 files of 16 MB"):
            over_time(held, files)
