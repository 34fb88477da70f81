"""Logs of many days in five formats: every fault that was put in is found, and nothing else."""

from __future__ import annotations

import pytest

from app.watch.run import WatchedRun
from core.watch.records import Planned
from runners.watch.job import JobLogs
from tests.made_up.watched import (
    BATCH,
    BEGIN_S,
    DAY,
    FORMATS,
    GPUS,
    SEQ_LEN,
    SPEED,
    STEP_S,
    TOKENS,
    Faults,
    moments,
)

DAYS = {"megatron": 30.0}  # the others 5: only their lines differ
RESTARTS_S = 15_900  # lost in them


def planned(days: float) -> Planned:
    return Planned(
        p10=0.85 * SPEED, p50=1.05 * SPEED, p90=1.3 * SPEED, tokens=days * DAY / STEP_S * TOKENS,
        step_tokens=TOKENS, lost_share=0.03,
    )  # fmt: skip


FAULTS = Faults(
    stall=0.1, restarts=(0.2, 0.203, 0.206, 0.6), slow=(0.3, 0.35), spike=0.5, straggler=0.8,
    not_finite=0.95,
)  # fmt: skip
FOUND = {  # what each format can show: DeepSpeed prints no loss, and only TorchTitan every rank
    "stall": set(FORMATS),
    "repeated_restarts": set(FORMATS),
    "slowing": set(FORMATS),
    "loss_spike": set(FORMATS) - {"deepspeed"},
    "loss_not_finite": set(FORMATS) - {"deepspeed"},
    "rank_behind": {"torchtitan"},
}
WHEN = {"stall": 0.1, "repeated_restarts": 0.2, "slowing": 0.3, "loss_spike": 0.5,
        "rank_behind": 0.8, "loss_not_finite": 0.95}  # fmt: skip


def replayed(tmp_path, name: str, faults: Faults):
    """The alerts, the tracker, and the end that was expected at a tenth of the run."""
    path, days = tmp_path / "run.log", DAYS.get(name, 5.0)
    plan = planned(days)
    with path.open("w") as file:
        file.writelines(FORMATS[name](m) for m in moments(faults, days=days))
    facts = {"seq_len": SEQ_LEN, "global_batch_size": BATCH, "num_gpus": GPUS}
    with JobLogs(path, facts) as logs:
        state, alerts, expected = WatchedRun(planned=plan, plan=None, logs=logs), [], None
        for _, more in state.take(logs.found(is_last=True)):
            alerts += more
            if expected is None and state.tokens > 0.1 * plan.tokens:
                expected = state.outlook.end_s.p50
    return alerts, state, expected, days


@pytest.mark.parametrize("name", FORMATS)
def test_every_fault_is_found_once_with_its_time(tmp_path, name):
    alerts, tracker, _, days = replayed(tmp_path, name, FAULTS)
    planted = {kind for kind, formats in FOUND.items() if name in formats}
    assert planted <= {a.kind for a in alerts}
    assert len(alerts) <= len(planted) + 1
    for kind in planted:
        alert = next(a for a in alerts if a.kind == kind)
        down = RESTARTS_S * sum(at < WHEN[kind] for at in FAULTS.restarts) / 4
        share = (alert.since_s - BEGIN_S - down) / (days * DAY)
        assert share == pytest.approx(WHEN[kind], abs=0.03), kind
    assert tracker.num_starts == 5
    assert tracker.lost_s["restart"] == pytest.approx(RESTARTS_S, rel=0.05)


@pytest.mark.parametrize("name", FORMATS)
def test_a_healthy_run_has_no_alert_and_its_end_is_known_from_a_tenth_on(tmp_path, name):
    alerts, tracker, expected, _ = replayed(tmp_path, name, Faults())
    assert len(alerts) <= 1
    assert expected == pytest.approx(tracker.elapsed_s, rel=0.05)
