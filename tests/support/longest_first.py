"""With `--dist loadfile --no-loadscope-reorder` the longest files begin first, so that no core
waits for one at the end. pytest-xdist by itself begins with the files of the most tests."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Seconds of a file beside three others on two cores; rough. A file that is not named has less.
SECONDS = {
    "tests/app/accuracy/test_fit.py": 310,
    "tests/services/test_recipes_flags.py": 300,
    "tests/services/test_recipes_stacks.py": 260,
    "tests/browser/test_pages.py": 200,
    "tests/threats/test_markup.py": 200,
    "tests/browser/test_axe.py": 200,
    "tests/services/test_deployed.py": 180,
    "tests/services/test_fresh_clone.py": 170,
    "tests/services/test_faults_kill.py": 160,
    "tests/services/test_refresh_end_to_end.py": 150,
    "tests/browser/test_bad_input.py": 140,
    "tests/services/test_launch_ssh.py": 110,
    "tests/services/test_launch_slurm.py": 110,
    "tests/services/test_launch_ray.py": 100,
    "tests/services/test_recipes_launchers.py": 100,
    "tests/whole/test_mutations.py": 90,
    "tests/services/test_faults_store.py": 90,
    "tests/browser/test_phone.py": 90,
    "tests/browser/test_options_page.py": 80,
    "tests/app/calibration/test_calibration_page.py": 76,
    "tests/browser/test_saved.py": 75,
    "tests/browser/test_risk_page.py": 75,
    "tests/browser/test_report.py": 70,
    "tests/pricing/test_refresh_crash.py": 60,
    "tests/services/test_login.py": 60,
    "tests/browser/test_restart.py": 58,
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # An option of pytest-xdist; its processes have it, too, and none knows that it is one of them.
    if not config.getoption("loadscopereorder", default=True):
        items.sort(key=lambda item: -SECONDS.get(item.path.relative_to(ROOT).as_posix(), 0))
