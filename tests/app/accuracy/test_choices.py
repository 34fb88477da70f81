"""Choices by forecast among measured runs, and how near a forecast comes by what is known."""

import numpy as np
import pytest

from app.accuracy import fit_columns
from app.accuracy.choices import GROUPINGS, parts, regrets, regrets_of
from app.accuracy.closeness import closeness
from app.accuracy.fit_left_out import Outcome
from app.accuracy.validate import validate
from core.evidence.fitting import Fit
from core.time.software import decimal_year
from hardware.cross_validation import SPLITS
from hardware.efficiency import profiles, read_entries
from hardware.measured import MODELS_CSV, RUNS_CSV, read_runs
from tests.support.csv_tables import written_table

RUN = {
    "source": "lab/bench@1 README", "source_date": "2026-01", "framework": "nemo",
    "model_key": "llama2-7b", "task": "pretrain", "accelerator": "H100-80GB-SXM", "num_gpus": "8",
    "seq_len": "4096", "micro_batch": "1", "global_batch": "64", "precision": "bf16",
    "throughput_ok": "1",
}  # fmt: skip


def regrets_in(rows, forecasts, tmp_path):
    """The regrets of these rows (changed cells, measured speed) with these forecasts."""
    file = [{**RUN, "run_id": f"r{i}", **changed, "tokens_per_s_per_gpu": str(speed)}
            for i, (changed, speed) in enumerate(rows)]  # fmt: skip
    runs = read_runs(written_table(file, tmp_path / "runs.csv"))
    return regrets(
        runs.inputs,
        accelerator=runs.inputs.accelerator,
        predicted=np.array(forecasts, dtype=float),
        measured=runs.measured.tokens_per_s_per_gpu,
    )


def test_layouts_of_one_job_are_one_choice_and_another_batch_is_only_one_of_counts(tmp_path):
    layouts = [({"tp": "1"}, 9000), ({"tp": "2"}, 10000), ({"tp": "4"}, 8000)]
    found = regrets_in(
        [*layouts, ({"tp": "8", "global_batch": "128"}, 12000)], [10000, 9500, 9000, 9100], tmp_path
    )
    assert found["layout"].found.regret == pytest.approx([0.9])
    assert found["count"].found.regret == pytest.approx([0.75])
    assert found["layout"].configurations == 3
    assert parts(found["layout"].found.group[0], "layout")["model_key"] == "llama2-7b"
    another = regrets_in(
        [*layouts[:2], ({"tp": "4", "precision": "fp8"}, 8000)], [3, 2, 1], tmp_path
    )
    assert all(len(one.found) == 0 for one in another.values())


def test_among_machines_the_share_of_the_peak_decides(tmp_path):
    """The B200 is twice as fast and forecast at 0.35 of its peak, the H100 at 0.4 of its own."""
    other = {"source": "other", "accelerator": "B200-180GB"}
    chips = [({}, 9000), ({"framework": "torchtitan"}, 8000), (other, 20000)]
    found = regrets_in(chips, [10000, 8500, 20000], tmp_path)["machine"].found
    assert found.chosen[0].startswith("H100-80GB-SXM")
    share = {"H100": 9000 / 989.5e12, "B200": 20000 / 2.25e15}
    assert found.regret == pytest.approx([share["H100"] / max(share.values())], rel=0.01)


def test_the_shipped_rows_give_groups_of_every_grouping():
    report = validate(RUNS_CSV, MODELS_CSV)
    found = regrets_of(report)
    assert tuple(found) == tuple(GROUPINGS)
    assert all(len(one.found) >= 20 for one in found.values())
    scored = report.throughput.overall.configurations
    assert all(one.configurations <= scored for one in found.values())


@pytest.fixture(scope="module")
def outcome():
    """Forecasts of the shipped rows that are right but for one error for each machine."""
    sample, _ = fit_columns.samples(profiles(read_entries()))
    runs = read_runs(RUNS_CSV).inputs.rows(sample.rows)
    off = np.where(runs.accelerator == "H100-80GB-SXM", 0.2, -0.1)
    unseen = sample.log_measured + off
    whole, of = (dict.fromkeys(SPLITS, x) for x in (np.ones(len(unseen)), unseen))
    nothing = Fit(value=np.empty(0), sigma=np.empty(0), objective=0.0, iterations=0)
    return Outcome(sample=sample, found=nothing, left=whole, **of), runs


def test_one_measured_run_takes_away_what_a_machine_is_off_by(outcome):
    found = {name: (accuracy, rows) for name, accuracy, rows in closeness(*outcome)}
    known, rows = found["known_stack"]
    assert 100 < rows == known.n < len(outcome[1])
    assert known.weighted_median_ape >= (1 - np.exp(-0.1)) * (1 - 1e-9)
    once, rows = found["measured_once"]
    assert 100 < rows < once.n
    assert once.weighted_median_ape < 0.6 * known.weighted_median_ape


def test_the_newest_months_are_the_last_half_year_of_all_dates(outcome):
    sample, runs = outcome[0].sample, outcome[1]
    years = np.array([decimal_year(str(date)) for date in runs.source_date])
    assert 0.05 < sample.newest.mean() < 0.5
    assert years[~sample.newest].max() < years[sample.newest].min() > years.max() - 0.5
