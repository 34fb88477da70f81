"""The Audit page without a browser: its form, its address, its figures."""

import pytest
from streamlit.testing.v1 import AppTest

from app.audit import charts as audit_charts
from app.audit import document as audit_document
from app.audit import form as audit_form
from app.audit.audit import audit_of
from app.audit.claim import claim_of
from app.audit.document import RULE, verdict_sentence
from core.scenario import Scenario

B = audit_form.EXAMPLES["70B, 1T tokens, 72 GB200, 14 days"]


def script():
    import streamlit as st

    from app.audit import page as audit
    from app.forecast import resolve
    from app.web import link

    link.take_over(resolve.resolve, resolve.current_prices())
    link.write()
    audit.draw()
    st.session_state["drawn"] = True


def opened(**query):
    page = AppTest.from_function(script, default_timeout=60)
    for name, value in query.items():
        page.query_params[name] = value
    return page.run()


def shown(**claim):
    return {f"show_{n}": v for n, v in claim.items()}


def plain(text):
    return str(text).replace("\\", "").replace("\N{WORD JOINER}", "")


def said(page):
    return plain("\n".join(e.value for e in (*page.markdown, *page.caption, *page.warning)))


def field(page, name):
    key = audit_form.key(name)
    return next(w for w in (*page.text_input, *page.selectbox) if w.key == key)


@pytest.fixture(scope="module")
def b():
    return audit_of(claim_of(B))


def test_the_page_says_the_verdict_of_the_claim_in_its_address(b):
    page = opened(**shown(**B))
    assert not page.exception
    assert f"**{verdict_sentence(b)}**" in said(page)
    assert [plain(m.value) for m in page.metric] == ["Not credible", "11,482", "52.3%", "2.34x"]
    words = said(page)
    for status in ("fail", "warn", "pass", "not given"):
        assert status in words  # a word, not a colour alone
    for check in b.checks.values():
        assert check.sentence in words
    assert list(page.table[0].value.loc["Verdict"]) == ["impossible", "impossible", "not credible"]


def test_a_link_without_a_claim_fills_the_form_and_says_what_is_missing():
    page = opened(v="1", model="llama3.1-70b", num_tokens="1e12", gpu="GB200", num_gpus="72")
    assert not page.exception
    assert [field(page, n).value for n in ("model", "tokens", "gpu", "num_gpus")] == [
        "llama3.1-70b", "1T", "GB200", "72",
    ]  # fmt: skip
    assert "missing Days (how long it took; GPU-hours" in said(page)
    assert not [n for n in page.query_params if n.startswith("show_")]


def test_what_is_typed_is_audited_and_goes_into_the_address():
    page = opened(v="1", model="llama3.1-70b", num_tokens="1e12", gpu="GB200", num_gpus="72")
    field(page, "days").set_value("14")
    next(b for b in page.button if b.label == "Audit").click().run()
    assert not page.exception
    assert "2.34 times the best published run" in said(page)
    assert page.query_params["show_days"] == "14"
    assert page.query_params["model"] == "llama3.1-70b"


def test_an_example_fills_the_form():
    page = opened()
    next(b for b in page.button if b.label.startswith("70B, 1T tokens, 256")).click().run()
    assert not page.exception
    assert field(page, "days").value == "25"
    assert "Optimistic in fp8" in said(page)


def test_a_mistake_is_a_sentence_with_the_label_of_the_field():
    page = opened(**shown(**{**B, "days": "14 days"}))
    assert not page.exception
    assert "Days '14 days' is no number of days. Was 14 meant?" in said(page)
    assert not page.metric
    page = opened(**shown(**{**B, "gpu": "GB2000"}))
    assert "Did you mean 'GB200'?" in said(page)


def test_what_the_address_asks_for_in_vain_is_said():
    page = opened(**shown(**B, colour="red"))
    assert "Ignored from the link: show_colour is no field of a claim." in said(page)


def test_hostile_text_stays_text():
    page = opened(**shown(**{**B, "days": "<b>:red[$x$]"}))
    assert not page.exception
    warning = next(w.value for w in page.warning if "no number of days" in plain(w.value))
    assert "\\<b\\>" in warning


def test_a_model_of_the_link_without_a_name_can_be_audited():
    dims = {
        "num_layers": 32, "hidden_size": 4096, "ffn_hidden_size": 14336,
        "num_attention_heads": 32, "num_kv_heads": 8, "head_dim": 128, "vocab_size": 128256,
    }  # fmt: skip
    given = {"model": "custom", "gpu": "h100", "num_gpus": "8", "tokens_per_s": "80k"}
    found = audit_form.audited(given, Scenario(model="custom", **dims))
    assert found.claim.rate == 10_000


def test_the_rule_names_its_margin():
    assert "1.05 times" in RULE


def test_the_rows_of_the_chart(b):
    rows = audit_charts.speed_rows(b)
    assert list(rows[rows["precision"] == "nvfp4"]["mark"])[-1] == audit_charts.CLAIM
    claim = rows[rows["mark"] == audit_charts.CLAIM]["tflop_per_s"]
    assert claim.nunique() == 1
    assert claim.iloc[0] == pytest.approx(5231, abs=1)
    forecast = rows[rows["mark"] == audit_charts.MIDDLE]
    assert (
        (forecast["p10"] < forecast["tflop_per_s"]) & (forecast["tflop_per_s"] < forecast["p90"])
    ).all()
    assert "dense peak of 10,000 TFLOP/s" in audit_charts.speeds_sentence(b)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_chart_draws_in_both_themes(b, theme):
    drawn = audit_charts.speeds(audit_charts.speed_rows(b), theme=theme).to_dict()
    assert "TFLOP/s per GPU" in str(drawn)


def test_the_worst_checks_come_first(b):
    order = [audit_document.ORDER.index(c.status) for _, c in audit_document.checks(b)]
    assert order == sorted(order)
    assert len(order) == len(b.checks)
