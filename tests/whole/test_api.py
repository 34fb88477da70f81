"""The Python API: the answers and sentences of everywhere else, results that stay as they are."""

import dataclasses
import datetime as dt
import doctest
import html
import json
import subprocess
import sys

import numpy as np
import pytest

import runcast
from runcast import api

JOB = {"model": "llama3.1-8b", "num_tokens": 1e11, "seq_len": 8192, "global_batch_size": 512}
HERE = {**JOB, "gpu": "H100-80GB-SXM", "num_gpus": [32, 64], "deadline_days": 3.0}
TYPED = ("--model", "llama3.1-8b", "--tokens", "100B", "--seq-len", "8k", "--global-batch-size",
         "512", "--gpu", "h100", "--num-gpus", "32,64", "--deadline-days", "3")  # fmt: skip
CONFIG = {
    "model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16, "vocab_size": 128256,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 8192,
    "tie_word_embeddings": True,
}  # fmt: skip
TOO_SMALL = {**JOB, "model": "llama3.1-405b", "gpu": "A10G", "num_gpus": 1}


@pytest.fixture(scope="module")
def answer():
    return runcast.plan(**HERE)


def sentence_of(call, *args, **fields):
    with pytest.raises(runcast.RuncastError) as e:
        call(*args, **fields)
    return str(e.value)


# --- the same answers ----------------------------------------------------------------------------


def test_the_examples_of_the_docstrings():
    failed, attempted = doctest.testmod(api)
    assert attempted > 5
    assert not failed


def test_an_answer_is_that_of_the_command_line(answer, run):
    status, out, _ = run("plan", *TYPED, "--json")
    assert status == 0
    assert json.loads(json.dumps(answer.to_json())) == json.loads(out)


def test_a_report_is_that_of_the_command_line(answer, run):
    status, out, _ = run("report", *TYPED, "--to", "md", "--date", "2026-12-01", "--name", "A")
    assert status == 0
    made = answer.report("md", name="A", date=dt.date(2026, 12, 1))
    assert made.decode() == out


def test_a_link_reopens_the_answer(answer):
    again = runcast.open_link(f"https://host/?{answer.link}")
    assert again.scenario.prices  # a link says which prices it was made with
    assert again.link == answer.link
    assert again.to_json()["plans"] == answer.to_json()["plans"]
    assert again.notes == ()


def test_keywords_override_a_link(answer):
    assert {p.num_gpus for p in runcast.open_link(answer.link, num_gpus=64).plans} == {64}
    other = runcast.open_link(answer.link, model="llama3.2-1b")
    assert other.best.usd.p50 < answer.best.usd.p50


def test_what_a_link_names_and_is_not_here_is_said(answer):
    again = runcast.open_link(answer.link.partition("&prices=")[0] + "&prices=0000000000000000")
    assert len(again.notes) == 1
    assert "price snapshot '0000000000000000', which is not here" in again.notes[0]


def test_a_file_reopens_the_answer(answer, tmp_path):
    path = tmp_path / "scenario.yaml"
    answer.save(path)
    assert runcast.open_file(path).to_json() == answer.to_json()
    assert runcast.open_file(str(path), deadline_days=9).scenario.deadline_days == 9


def test_a_config_is_a_model(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG))
    job = {n: v for n, v in JOB.items() if n != "model"}
    found = runcast.plan(**job, config=path, gpu="h100", num_gpus=8)
    assert found.scenario.model == "custom"
    assert found.scenario.hidden_size == 2048


def test_numbers_may_be_text_and_none_is_not_given(answer):
    texts = {**HERE, "num_tokens": "100B", "seq_len": "8k", "num_gpus": "32,64", "gpu": ["h100"]}
    assert runcast.plan(**texts, budget_usd=None, tp=None).scenario == answer.scenario
    columns = {**HERE, "num_gpus": np.array([32, 64]), "seq_len": np.int64(8192)}
    assert runcast.plan(**columns).scenario == answer.scenario
    assert runcast.plan(**{**HERE, "num_gpus": range(32, 65, 32)}).scenario == answer.scenario


def test_names_are_those_that_keywords_take():
    assert len(runcast.models()) > 10
    job = {**JOB, "model": runcast.models()[0]}
    taken = runcast.plan(**job, gpu=runcast.gpus()[0], cloud=runcast.clouds())
    assert taken.scenario.gpu == (runcast.gpus()[0],)


# --- other plans ---------------------------------------------------------------------------------


def test_a_plan_is_selected_by_rank_by_name_or_itself(answer):
    second = answer.plans[1]
    for named in (2, answer.to_pandas()["rank"][1], second.id, second):
        chosen = answer.select(named)
        assert chosen.best == second
        assert "plan=" in chosen.link
    assert answer.best.rank == 1  # what it was selected from stays


def test_a_plan_that_is_not_described_can_be_selected(answer):
    few = runcast.plan(**HERE, top=1)
    assert len(few.plans) == 1
    last = few.select(answer.num_plans)
    assert last.best.rank == answer.num_plans
    assert last.best.id == answer.to_pandas()["id"].iloc[-1]
    assert last.risk().plan is last.best


def test_no_such_plan(answer):
    assert sentence_of(answer.select, 10_000) == (
        f"There is no plan of rank 10000: there are {answer.num_plans}."
    )
    assert sentence_of(answer.select, 0).startswith("There is no plan of rank 0")
    assert "'nowhere' is not among" in sentence_of(answer.select, "nowhere")


def test_plans_stand_side_by_side(answer):
    other = answer.select(2)
    found = runcast.side_by_side(answer, other).set_index("quantity")
    a, b = answer.best, other.best
    assert found.columns[0] == "unit"
    assert found.columns[1].startswith("A: ")
    cost = found.loc["Expected cost"]
    assert cost["unit"] == "USD"
    assert cost["B minus A"] == pytest.approx(b.expected_usd - a.expected_usd)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_not_any_number_stands_side_by_side(answer, count):
    said = sentence_of(runcast.side_by_side, *[answer] * count)
    assert said == f"side_by_side takes 2 to 4 answers, not {count}."


# --- nothing fits --------------------------------------------------------------------------------


def test_nothing_fits_is_an_answer_without_a_best_plan():
    found = runcast.plan(**TOO_SMALL)
    assert found.plans == ()
    assert found.to_pandas().empty
    assert found.nothing_fits in found.sentence
    assert sentence_of(lambda: found.best) == found.sentence
    assert sentence_of(found.risk) == found.sentence
    assert sentence_of(runcast.side_by_side, found, found) == found.sentence
    assert found.report("md").startswith(b"# Training plan")


# --- mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"gpu": "h1000"}, "Unknown accelerator 'h1000'. Did you mean"),
        ({"cloud": "awz"}, "Unknown cloud 'awz'. Did you mean 'aws'?"),
        ({"model": "llama3.1-7b"}, "Unknown model 'llama3.1-7b'. Did you mean"),
        ({"num_examples": 1e6}, "Give num_tokens or num_examples, not both."),
        ({"config": "x.json"}, "Give model or config, not both."),
        ({"top": 0}, "top=0 is not a whole number from 1 to 1000."),
        ({"top": 2.5}, "top=2.5 is not a whole number from 1 to 1000."),
    ],
)
def test_a_mistake_is_one_sentence(fields, said):
    given = sentence_of(runcast.plan, **{**HERE, **fields})
    assert given.startswith(said)
    assert "--" not in given  # nobody typed an option
    assert "\n" not in given


@pytest.mark.parametrize("name", sorted(JOB))
def test_what_is_needed_has_no_default(name):
    said = sentence_of(runcast.plan, **{n: v for n, v in JOB.items() if n != name})
    wanted = "model or config" if name == "model" else name
    assert said == f"Missing {wanted}: help(runcast.plan) says what they are."


def test_examples_stand_for_tokens():
    job = {n: v for n, v in HERE.items() if n != "num_tokens"}
    found = runcast.plan(**job, num_examples=1e5, tokens_per_example=1000)
    assert found.scenario.num_examples == 1e5


def test_a_file_that_is_not_there(answer, tmp_path):
    assert "There is no file" in sentence_of(runcast.open_file, tmp_path / "no.yaml")
    assert "no.json" in sentence_of(runcast.plan, **{**JOB, "model": None}, config="no.json")
    assert "Cannot write" in sentence_of(answer.save, tmp_path / "no" / "scenario.yaml")


def test_what_is_no_link():
    assert sentence_of(runcast.open_link, "hello") == (
        "'hello' is no link: it has no field=value in it."
    )


def test_an_unknown_kind_of_report(answer):
    assert sentence_of(answer.report, "docx").startswith("Unknown kind of report 'docx'.")


# --- what is promised ----------------------------------------------------------------------------


def test_an_answer_stays_as_it_is(answer):
    with pytest.raises(dataclasses.FrozenInstanceError):
        answer.scenario = None
    with pytest.raises(dataclasses.FrozenInstanceError):
        answer.best.mfu = 1.0
    with pytest.raises(ValueError, match="read-only"):
        answer.found.points["usd"][0] = 0.0
    frame = answer.to_pandas()
    frame.loc[0, "usd"] = 0.0  # a table is the caller's own
    assert answer.to_pandas()["usd"].iloc[0] > 0


def test_a_table_has_every_plan_with_its_units(answer):
    frame = answer.to_pandas()
    assert len(frame) == answer.num_plans
    assert frame["rank"].tolist() == list(range(1, answer.num_plans + 1))
    assert frame["usd"].iloc[0] == answer.best.usd.p50
    assert frame["wall_clock_hours"].iloc[0] == answer.best.wall_clock_hours
    assert frame["peak_memory_bytes"].iloc[0] == pytest.approx(
        sum(answer.best.memory_bytes.values())
    )
    assert ((frame["mfu"] > 0) & (frame["mfu"] < 1)).all()
    assert np.isfinite(frame["tokens_per_s"]).all()


def test_importing_it_brings_no_page_and_no_torch():
    program = "import runcast.api, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "runcast" in done.stdout.split()
    loaded = {*done.stdout.split()}
    assert loaded & {"streamlit", "altair", "torch", "sqlalchemy", "httpx", "pandas"} == set()


def test_a_notebook_shows_the_sentence_the_first_plans_and_the_link(answer):
    shown = answer._repr_html_()
    assert html.escape(answer.sentence.partition(";")[0]) in shown
    assert answer.link.replace("&", "&amp;") in shown
    assert 0 < shown.count("<tr>") - 1 <= runcast.api.SHOWN
    assert "<script" not in shown


def test_a_chart_is_an_altair_chart_of_every_priced_plan(answer):
    drawn = json.dumps(answer.chart(theme="dark").to_dict())
    assert answer.best.offer.accelerator in drawn
