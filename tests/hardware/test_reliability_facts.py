"""hardware/reliability.csv: every figure with its unit, source and date, one of each in use."""

import pytest

from hardware import facts
from hardware.reliability import (
    QUANTITIES,
    failure_rate,
    load_failure_rates,
    load_reliability,
    published,
    reliability,
    used,
)
from hardware.role_facts import COLUMNS
from hardware.stack_support import async_checkpoint, load_async_checkpoints
from tests.support.csv_tables import refusal

HEAD = ",".join(COLUMNS) + "\n"
GOOD = "restart_s,5,min,published,a cluster,arXiv:2410.21680,2024-10,\n"


def test_every_figure_in_use_is_one():
    in_use = [f.quantity for f in reliability() if f.role != "published"]
    assert len(in_use) == len(set(in_use))
    assert {*in_use, "checkpoint_s", "upload_s", "load_s", "goodput"} == set(QUANTITIES)
    for fact in reliability():
        assert fact.scope
        assert fact.role != "assumed" or fact.note.startswith("assumed")


def test_printed_figures_in_units_of_core():
    assert used("failures_per_node_day").value == 5e-3
    assert used("machine_write_bytes_per_s").value == 0.98e9
    assert used("storage_bytes_per_s").value == 2e12
    assert used("detection_s").value == 600
    assert [f.value for f in published("failures_per_node_day")] == [
        5e-3, 6.5e-3, 2.34e-3, 3.79e-3, 4.5e-3, 1.56e-2,
    ]  # fmt: skip
    assert not published("wait_s")  # assumed: nobody printed it


def test_an_accelerator_has_its_own_rate_or_one_that_says_whose_it_is():
    """0.08% of TPU v4 machines of four chips a day; 419 interruptions of 2048 nodes in 54 days."""
    assert failure_rate("TPU-v4").value == pytest.approx(2 * 0.0008)
    assert failure_rate("H100-80GB-SXM").value == pytest.approx(419 / 54 / 2048, rel=1e-3)
    assert failure_rate("GB200").note.startswith("assumed: as H100-80GB-SXM")
    for name in facts.accelerators():
        fact = failure_rate(name)
        assert 1e-3 < fact.value < 2e-2
        assert fact.role == "default" or fact.note.startswith("assumed: as ")
    assert failure_rate("Gaudi2").role == failure_rate("custom").role == "assumed"


def test_stacks_that_save_behind_training_say_since_when_and_for_how_long_they_stop(tmp_path):
    assert async_checkpoint("megatron-lm").since == "2024-06"
    assert async_checkpoint("gpt-neox").since == ""
    head = "stack,since,blocked_s,blocked_source,source,source_date,note\n"
    path = tmp_path / "async_checkpoints.csv"
    for line, says in (
        ("nosuch,always,1,a paper,a page,2024,", "is no stack"),
        ("nemo,soon,1,a paper,a page,2024,", "not YYYY-MM or always"),
        ("nemo,always,one,a paper,a page,2024,", "could not convert"),
        ("nemo,always,1,,a page,2024,", "no source of its seconds"),
        ("nemo,always,1,a paper,,2024,", "has no source"),
    ):
        assert says in refusal(load_async_checkpoints, path, head + line)


def test_a_rate_of_an_unknown_accelerator_is_refused(tmp_path):
    head = ",".join(("accelerator", *COLUMNS[1:])) + "\n"
    line = "H900,4e-3,per node-day,published,a cluster,arXiv:2410.21680,2024-10,\n"
    assert "H900" in refusal(load_failure_rates, tmp_path / "failure_rates.csv", head + line)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (GOOD.replace("restart_s", "restrt_s"), "'restrt_s' is not one of"),
        (GOOD.replace(",min", ",weeks"), "unknown unit 'weeks'"),
        (GOOD.replace("published", "guess"), "as role"),
        (GOOD.replace("a cluster", ""), "needs a scope"),
        (GOOD.replace("arXiv:2410.21680", ""), "has no source"),
        (GOOD.replace("2024-10", "autumn"), "source date 'autumn'"),
        (GOOD.replace(",5,", ",-5,"), "not a number of at least 0"),
        (GOOD.replace(",5,", ",nan,"), "not a number of at least 0"),
        (GOOD.replace(",5,", ",five,"), "could not convert"),
        (GOOD.replace("published", "assumed"), "does not say what"),
        (GOOD.replace("published", "default") * 2, "already has a value"),
    ],
)
def test_a_figure_that_cannot_be_trusted_is_refused(tmp_path, line, says):
    said = refusal(load_reliability, tmp_path / "reliability.csv", HEAD + GOOD + line)
    assert "reliability.csv:" in said
    assert says in said
