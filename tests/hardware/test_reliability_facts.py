"""hardware/reliability.csv: every figure with its unit, source and date, one of each in use."""

import pytest

from hardware.reliability import QUANTITIES, load_reliability, published, reliability, used
from hardware.role_facts import COLUMNS
from tests.support.csv_tables import refusal

HEAD = ",".join(COLUMNS) + "\n"
GOOD = "restart_s,5,min,published,a cluster,arXiv:2410.21680,2024-10,\n"


def test_every_figure_in_use_is_one():
    in_use = [f.quantity for f in reliability() if f.role != "published"]
    assert len(in_use) == len(set(in_use))
    assert {*in_use, "checkpoint_s", "upload_s", "goodput"} == set(QUANTITIES)
    for fact in reliability():
        assert fact.scope
        assert fact.role != "assumed" or fact.note.startswith("assumed")


def test_printed_figures_in_units_of_core():
    assert used("failures_per_node_day").value == 5e-3
    assert used("checkpoint_bytes_per_s").value == 2.5e9
    assert used("detection_s").value == 600
    assert [f.value for f in published("failures_per_node_day")] == [
        5e-3, 6.5e-3, 3.79e-3, 4.5e-3, 1.56e-2,
    ]  # fmt: skip
    assert not published("wait_s")  # assumed: nobody printed it


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
