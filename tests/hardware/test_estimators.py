"""What other estimators print: every figure with its scope, source and date."""

import pytest

from hardware.estimators import COLUMNS, estimators, load_estimators
from tests.support.csv_tables import refusal

HEAD = ",".join(COLUMNS) + "\n"
GOOD = "Lumos,mean error,3.3,%,512 H100,arXiv:2504.09307,2025-04\n"


def test_every_shipped_figure_says_where_it_was_read():
    found = estimators()
    assert len({e.estimator for e in found}) >= 10
    for e in found:
        assert e.measure
        assert e.scope
        assert e.source


def test_a_figure_with_a_known_print():
    """arXiv:2509.22832, abstract: 4.98% on Perlmutter, 9.38% on Vista."""
    assert [e.value for e in estimators() if "2509.22832" in e.source] == [4.98, 9.38]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (GOOD.replace(",%", ",ratio"), "unit 'ratio' is not one of %"),
        (GOOD.replace("3.3", "x"), "could not convert"),
        (GOOD.replace("3.3", "330"), "is not between 0 and 100"),
        (GOOD.replace("arXiv:2504.09307", ""), "Lumos has no source"),
        (GOOD.replace("2025-04", "spring"), "source date 'spring'"),
        (GOOD.replace("512 H100", ""), "has no scope"),
    ],
)
def test_a_figure_that_cannot_be_trusted_is_refused(tmp_path, line, says):
    said = refusal(load_estimators, tmp_path / "estimators.csv", HEAD + GOOD + line)
    assert "estimators.csv:3" in said
    assert says in said
