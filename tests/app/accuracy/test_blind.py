"""Scores of forecasts that were made before anybody had seen the runs."""

import numpy as np
import pytest

from app.accuracy import blind
from core.numeric import Z_90
from hardware.residuals.blind import blind_runs


def test_a_set_is_scored_as_it_was_forecast_then():
    runs = blind_runs()
    for one in blind.examinations():
        mine = runs.examination == one.name
        ratio, sigma = runs.log_ratio[mine], runs.sigma[mine]
        a = one.accuracy
        assert a.n == mine.sum()
        assert a.median_ape == pytest.approx(np.median(np.abs(np.exp(-ratio) - 1)))
        assert a.coverage_80 == pytest.approx(np.mean(np.abs(ratio) <= Z_90 * sigma), abs=0.01)
        assert 0 < one.publications < a.n


def test_the_sentence_has_the_newest_set():
    last = blind.examinations()[-1]
    said = blind.sentence()
    assert said.startswith("Folds flatter")
    assert f"{last.accuracy.n} runs" in said
    assert f"{last.publications} publications" in said


def test_folds_flatter():
    """Why intervals weigh these runs: at the widths of folds alone too few were inside."""
    assert all(one.accuracy.coverage_80 < 0.76 for one in blind.examinations())
