"""`runcast audit`: what it prints, its JSON, and what it refuses."""

import json
import math
import re
from pathlib import Path

import pytest

from app.audit.checks import TITLES
from app.audit.fields import OPTIONS
from tests.support.documented_keys import keys

A = ["audit", "--model", "llama3.1-70b", "--tokens", "1T", "--gpu", "h100", "--num-gpus", "256"]
B = ["audit", "--model", "llama3.1-70b", "--tokens", "1T", "--gpu", "gb200", "--num-gpus", "72"]
DOCUMENT = (Path(__file__).parents[3] / "docs/audit.md").read_text(encoding="utf-8")


@pytest.fixture
def answered(run):
    def _answered(*arguments):
        status, out, err = run(*arguments, "--json")
        assert (status, err) == (0, "")
        assert "NaN" not in out
        assert "Infinity" not in out
        return json.loads(out)

    return _answered


def test_the_first_claim_in_words(run):
    status, out, err = run(*A, "--days", "25", "--usd", "460k", "--usd-per-gpu-hour", "3")
    assert (status, err) == (0, "")
    flat = " ".join(out.split())
    for part in (
        "153,600 GPU-hours, $460,000: 1,808 tokens/s a GPU.",
        "Optimistic in fp8, the mildest of bf16 and fp8: 1.11 times the P90 of our forecast.",
        "not credible", "83.3%", "77.4%", "41.6%", "38.7%", "are $460,800; $460,000 is claimed",
        "not given: Claimed MFU.", "Not given and assumed: Sequences of 8,192",
    ):  # fmt: skip
        assert part in flat


def test_the_second_claim_as_json(answered):
    found = answered(*B, "--days", "14", "--usd-per-gpu-hour", "6")
    assert found["verdict"] == {
        "overall": "not_credible", "bf16": "impossible", "fp8": "impossible",
        "nvfp4": "not_credible",
    }  # fmt: skip
    assert found["implied"]["gpu_hours"] == 24_192
    assert found["implied"]["usd"] == 145_152
    assert found["decides"]["against"] == "best_published"
    assert found["decides"]["ratio"] == pytest.approx(2.344, abs=0.003)
    fp8 = found["precisions"][1]
    assert (fp8["share_of_peak_6pt"], fp8["share_of_peak"]) == (
        pytest.approx(0.972, abs=0.002),
        pytest.approx(1.046, abs=0.002),
    )
    assert "2,500 TFLOP/s" in " ".join(found["precisions"][0]["reasons"])
    assert "Megatron-Bridge" in found["precisions"][2]["best_published"]["source"]


def test_a_given_precision_is_the_overall_verdict(answered):
    found = answered(*A, "--days", "25", "--precision", "mxfp8")
    assert found["verdict"]["overall"] == found["verdict"]["mxfp8"]
    assert found["counted"] == ["mxfp8"]
    assert found["precision"] == "mxfp8"


def test_every_key_and_every_check_is_documented(answered):
    found = answered(*A, "--days", "25", "--gpu-hours", "153600", "--tokens-per-s", "460k",
                     "--mfu", "0.4", "--usd", "460k", "--usd-per-gpu-hour", "3",
                     "--memory-gb", "60")  # fmt: skip
    told = set(re.findall(r"`(?:[\w.\[\]]*\.)?([a-z][a-z0-9_]*)(?:\[\])?`", DOCUMENT))
    assert {*keys(found)} - told <= {"bf16", "fp8"}
    assert {c["name"] for c in found["checks"]} | {*TITLES} <= told
    assert {c["name"] for c in found["checks"]} >= {"gpu_hours", "tokens_per_s", "memory_gb", "mfu"}


def test_no_number_of_the_json_is_rounded_away(answered):
    found = answered(*A, "--days", "25")
    implied = found["implied"]
    assert implied["tokens_per_s_per_gpu"] * 256 * 25 * 86_400 == pytest.approx(1e12)
    rate, flops = implied["tokens_per_s_per_gpu"], implied["flops_per_s_per_gpu"]
    assert math.isclose(
        flops, rate * 6 * implied["active_params"] * (1 + implied["attention_share"])
    )


def test_what_is_not_claimed_is_null(answered):
    found = answered("audit", "--model", "llama3.1-8b", "--gpu", "h100", "--num-gpus", "8",
                     "--tokens-per-s", "80k")  # fmt: skip
    assert found["implied"]["gpu_hours"] is None
    assert found["implied"]["usd"] is None
    assert found["goodput"] is None
    assert next(c for c in found["checks"] if c["name"] == "goodput")["status"] == "not given"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (A, "missing --days"),
        ([*A, "--days", "25d"], "Was 25 meant?"),
        ([*A, "--days", "25", "--precision", "nvfp4"], "It takes fp16, bf16, fp8"),
        ([*A[:-3], "h1000", "--num-gpus", "8", "--days", "3"], "Did you mean"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(run, arguments, words):
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1


def test_the_help_names_every_option(run):
    status, out, _ = run("audit", "--help")
    assert status == 0
    for option in OPTIONS.values():
        assert option in out
