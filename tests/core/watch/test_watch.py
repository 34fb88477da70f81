"""A run held against its forecast: belief, gaps, outlook, and what is found wrong."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import pytest

from core.watch.detectors import Losses, Ranks
from core.watch.outlook import DRIFT, Belief, SpeedSums, outlook, prior, updated
from core.watch.records import Planned, StepRecord
from core.watch.tracker import Tracker
from tests.made_up.watched import BEGIN_S, DAY, SPEED, STEP_S, TOKENS, Faults, moments

DAYS = 6.0
PLAN = Planned(
    p10=0.85 * SPEED, p50=1.05 * SPEED, p90=1.3 * SPEED, tokens=DAYS * DAY / STEP_S * TOKENS,
    step_tokens=TOKENS, lost_share=0.02, usd_per_hour=100.0, deadline_s=7 * DAY, memory_bytes=8e10,
)  # fmt: skip


NONE = Faults()


def tracked(faults: Faults = NONE, *, plan: Planned = PLAN, seed: int = 1) -> Iterator[Tracker]:
    """The tracker after each moment of a made-up run; time in it is counted from its start."""
    tracker = Tracker(planned=plan)
    for m in moments(faults, days=DAYS, seed=seed):
        at = m.at_s - BEGIN_S
        if m.kind == "start":
            tracker.start(at)
        elif m.kind == "checkpoint":
            tracker.checkpoint(at)
        else:
            speed = TOKENS / m.step_s
            step = StepRecord(at_s=at, tokens=m.step * TOKENS, tokens_per_s=speed, loss=m.loss)
            list(tracker.add(step))
        yield tracker


def finished(faults: Faults = NONE, *, plan: Planned = PLAN, seed: int = 1) -> Tracker:
    return list(tracked(faults, plan=plan, seed=seed))[-1]


def test_evidence_narrows_the_forecast_and_then_outweighs_it():
    before = prior(p10=80.0, p50=100.0, p90=125.0)
    draw, seen, widths, middle = random.Random(1), SpeedSums(), [before.sigma], []
    for n in range(1, 3001):
        seen.add(math.log(90.0) + draw.gauss(0, 0.2))
        if n in (4, 100, 3000):
            after = updated(before, seen)
            widths.append(after.sigma)
            middle.append(after.median)
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] == pytest.approx(DRIFT, rel=0.05)
    assert middle[-1] == pytest.approx(90.0, rel=0.01)
    assert updated(before, SpeedSums()) == before


def test_a_forecast_that_the_run_contradicts_hardly_counts():
    """A thousandth of the forecast: an end from both would be 7% wrong."""
    before, seen = prior(p10=80.0, p50=100.0, p90=125.0), SpeedSums()
    for n in range(50):
        seen.add(math.log(0.1) + 0.001 * (n % 2))
    assert updated(before, seen).median == pytest.approx(0.1, rel=0.005)


@pytest.mark.parametrize("r", [0.0, 0.5, 0.8])
def test_correlated_steps_weigh_less(r):
    draw, seen, x = random.Random(2), SpeedSums(), 0.0
    for _ in range(20_000):
        x = r * x + draw.gauss(0, 1)
        seen.add(11.0 + x)
    assert seen.correlation == pytest.approx(r, abs=0.03)
    assert seen.effective_count / seen.count == pytest.approx((1 - r) / (1 + r), abs=0.04)
    assert seen.deviation == pytest.approx(1 / math.sqrt(1 - r * r), rel=0.05)


def test_the_end_is_what_is_left_over_the_speed_with_its_losses():
    plan = Planned(p10=9, p50=10, p90=11, tokens=1e6, step_tokens=1, usd_per_hour=3600.0)
    found = outlook(
        plan, Belief(10.0, 0.01), tokens=4e5, elapsed_s=5e4, trained_s=4e4, lost_s=1e4,
        num_losses=99,
    )  # fmt: skip
    assert found.lost_share == pytest.approx(1e4 / 5e4)  # none forecast, as if for 1e4 seconds
    assert found.end_s.p50 == pytest.approx(5e4 + 6e4 * 1.2)
    assert found.usd.p50 == pytest.approx(found.end_s.p50)
    assert found.end_s.p10 < found.end_s.p50 < found.end_s.p90
    assert found.chance_on_time is None


def test_a_healthy_run_has_no_alert_and_its_end_is_known_early():
    ends, last = {}, None
    for tracker in tracked():
        share = tracker.tokens / PLAN.tokens
        for mark in (0.0, 0.1, 0.5):
            if share > mark:
                ends.setdefault(mark, tracker.outlook.end_s)
        last = tracker
    assert list(last.alerts) == []
    assert ends[0.1].p50 == pytest.approx(last.elapsed_s, rel=0.02)
    width = {mark: end.p90 - end.p10 for mark, end in ends.items()}
    assert width[0.5] < width[0.1] < width[0.0]
    assert last.goodput == pytest.approx(1 - (300 + 72 * 60) / last.elapsed_s, abs=0.002)


def test_what_happens_is_found_once_each_with_its_time():
    faults = Faults(stall=0.1, restarts=(0.2, 0.21, 0.22), slow=(0.4, 0.6), spike=0.7)
    run = finished(faults)
    found = {a.kind: a for a in run.alerts}
    assert [a.kind for a in run.alerts] == ["stall", "repeated_restarts", "slowing", "loss_spike"]
    assert run.num_starts == 4
    assert found["stall"].size == pytest.approx(1500, rel=0.05)
    assert found["slowing"].size == pytest.approx(0.09, abs=0.02)
    slow_from = 0.4 * DAYS * DAY
    assert slow_from < found["slowing"].since_s < slow_from * 1.1
    left = PLAN.tokens * 0.6 / SPEED
    assert found["slowing"].lost_s == pytest.approx(0.09 * left, rel=0.3)
    restart = next(e for e in run.events if e.kind == "restart")
    assert restart.lost_s == pytest.approx(720 + restart.tokens_redone / SPEED, rel=0.05)


@pytest.mark.parametrize("seed", range(2, 5))
def test_noise_alone_is_no_alert(seed):
    assert list(finished(seed=seed).alerts) == []


def test_slower_than_the_forecast_is_said_after_ten_minutes():
    plan = Planned(p10=1.1 * SPEED, p50=1.3 * SPEED, p90=1.5 * SPEED, tokens=PLAN.tokens,
                   step_tokens=TOKENS)  # fmt: skip
    (alert,) = finished(plan=plan).alerts
    assert alert.kind == "slower_than_p10"
    assert 600 <= alert.at_s - alert.since_s < 700
    assert alert.size == pytest.approx(1 - 1 / 1.3, abs=0.03)


def test_a_run_that_says_nothing_is_a_stall_until_it_goes_on():
    tracker = Tracker(planned=PLAN)
    for n in range(1, 60):
        list(tracker.add(StepRecord(at_s=60.0 * n, tokens=3 * n * TOKENS, tokens_per_s=SPEED)))
    last = 60.0 * 59
    assert list(tracker.tick(last + 500)) == []
    (alert,) = tracker.tick(last + 700)
    assert (alert.kind, alert.since_s) == ("stall", last)
    assert list(tracker.tick(last + 900)) == []
    after = StepRecord(at_s=last + 1060, tokens=180 * TOKENS, tokens_per_s=SPEED)
    assert list(tracker.add(after)) == []
    assert tracker.lost_s["stall"] == pytest.approx(1000, abs=1)


def test_memory_within_three_percent_of_the_device_is_said_once():
    tracker = Tracker(planned=PLAN)
    found = [
        alert
        for n, used in enumerate((7.7e10, 7.8e10, 7.9e10), 1)
        for alert in tracker.add(
            StepRecord(at_s=n, tokens=n * TOKENS, tokens_per_s=SPEED, memory_bytes=used)
        )
    ]
    assert [(a.kind, round(a.size, 3)) for a in found] == [("memory", 0.975)]


def test_a_rank_that_is_slow_or_silent_stands_out():
    draw, ranks, found = random.Random(3), Ranks(), []
    for n in range(60):
        for rank in range(4):
            if rank == 3 and n > 40:
                continue
            speed = 100 * math.exp(draw.gauss(0, 0.005)) * (0.93 if rank == 2 else 1.0)
            found.append(ranks.add(60.0 * n, str(rank), speed, is_first=rank == 0))
    slow, silent = (f for f in found if f)
    assert (slow.subject, silent.subject) == ("2", "3")
    assert slow.size == pytest.approx(0.07, abs=0.01)
    assert (silent.since_s, silent.size) == (60.0 * 40, 0.0)


@pytest.mark.parametrize(
    ("losses", "kind", "since"),
    [
        ([3.0 - n / 100 for n in range(99)] + [math.nan, math.nan], "loss_not_finite", 99),
        ([3.0 - n / 100 for n in range(60)] + [9.0] * 5, "loss_spike", 60),
        ([10.4 + 0.001 * (n % 7) for n in range(600)], "loss_flat", 0),
        ([5 - n / 100 for n in range(200)] + [2.5] * 120, "loss_flat", 200),
        ([1.8 + 9 / (1 + n / 50) for n in range(2000)], None, None),
        ([3.0 - n / 100 for n in range(60)] + [9.0, 2.4] * 5, None, None),
    ],
)
def test_a_loss_that_is_wrong(losses, kind, since):
    watched = Losses()
    found = [f for n, x in enumerate(losses) if (f := watched.add(float(n), x, 1.0))]
    assert [(f.kind, f.since_s) for f in found] == ([] if kind is None else [(kind, since)])
