"""The record of blind forecasts."""

import numpy as np
import pytest

from core.errors import FactError
from hardware.measured import RUNS_CSV, read_runs
from hardware.residuals.blind import BLIND_CSV, blind_runs, load_blind

HEAD = "examination,date,run_id,log_ratio,sigma\n"


def test_every_blind_run_ships_and_no_two_are_one():
    runs, shipped = blind_runs(), read_runs(RUNS_CSV).inputs.run_id
    assert {*runs.run_id} <= {*shipped}
    assert len(runs) == len({*runs.run_id}) == len(BLIND_CSV.read_text().splitlines()) - 1
    assert np.all(np.isfinite(runs.log_ratio))
    assert np.all((runs.sigma > 0.02) & (runs.sigma < 1.5))


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ("set,2026-11,a,0.1,0.2\nset,2026-11,a,0.1,0.2\n", "stands twice"),
        ("set,2026-11,a,fast,0.2\n", "could not convert"),
    ],
)
def test_a_bad_row_is_an_error_that_names_the_file(tmp_path, lines, why):
    path = tmp_path / "blind.csv"
    path.write_text(HEAD + lines)
    with pytest.raises(FactError, match=f"blind.csv: .*{why}"):
        load_blind(path)
