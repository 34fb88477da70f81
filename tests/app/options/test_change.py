"""runcast diff: two scenario files, their difference, guardrails and mistakes."""

import json

import pytest

JOB = "v: 1\nmodel: llama3.1-8b\nnum_tokens: 1T\nseq_len: 8k\ngpu: h100\nnum_gpus: 64\n"


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.yaml").write_text(JOB)
    (tmp_path / "new.yaml").write_text(JOB.replace("64", "128"))
    return tmp_path


def test_it_says_what_plan_says_of_each(run, files):
    status, out, _ = run("diff", "old.yaml", "new.yaml", "--json")
    found = json.loads(out)
    assert status == 0
    plans = [json.loads(run("plan", "--scenario", f"{n}.yaml", "--json")[1])["plans"][0]
             for n in ("old", "new")]  # fmt: skip
    assert found["old"]["plan"]["expected_usd"] == plans[0]["expected_usd"]
    assert found["more_usd"] == plans[1]["expected_usd"] - plans[0]["expected_usd"]
    assert found["more_hours"] == plans[1]["expected_hours"] - plans[0]["expected_hours"] < 0


@pytest.mark.parametrize(
    ("words", "wanted", "broken"),
    [
        (["--fail-above-usd", "1M"], 0, ""),
        (["--fail-above-usd", "50k"], 1, "It is expected to cost $"),
        (["--fail-if-late"], 0, ""),
    ],
)
def test_a_guardrail_is_the_status(run, files, words, wanted, broken):
    status, out, _ = run("diff", "old.yaml", "new.yaml", *words, "--json")
    assert status == wanted
    assert "".join(json.loads(out)["broken"]).startswith(broken)


def test_with_stages_it_is_the_whole_that_changes(run, files):
    (files / "more.yaml").write_text(JOB + 'stages: ["main", "long,share=5%,seq_len=32k"]\n')
    status, out, _ = run("diff", "old.yaml", "more.yaml", "--fail-above-usd", "1M", "--json")
    found = json.loads(out)
    assert status == 0
    usd = found["new"]["programme"]["usd"]["expected"]
    assert found["more_usd"] == usd - found["old"]["plan"]["expected_usd"] > 0
    assert "programme" not in found["old"]
    assert "with all stages expected cost" in run("diff", "old.yaml", "more.yaml")[1]


def test_what_does_not_fit_is_neither_cheap_nor_in_time(run, files):
    (files / "big.yaml").write_text(JOB.replace("llama3.1-8b", "llama3.1-405b").replace("64", "1"))
    status, out, _ = run("diff", "old.yaml", "big.yaml", "--fail-above-usd", "9M", "--fail-if-late")
    assert status == 1
    assert "nothing fits" in out
    assert out.count("Guardrail: ") == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["old.yaml", "nosuch.yaml"], "'nosuch.yaml'"),
        (["old.yaml", "bad.yaml"], "'bad.yaml': "),
        (["-", "-"], "OLD and NEW are both missing: one of them is a scenario file."),
        (["old.yaml", "new.yaml", "--json", "--markdown"], "Give --markdown or --json, not both."),
        (["old.yaml", "new.yaml", "--fail-above-usd", "lots"], "--fail-above-usd 'lots'"),
    ],
)
def test_a_mistake_is_one_sentence(run, files, words, sentence):
    (files / "bad.yaml").write_bytes(b"\x00\xff\xfe{{{")
    status, _, err = run("diff", *words)
    assert status == 2
    assert sentence in err
    assert err.count("\n") == 1
