"""Purchase policies played on traces: by hand, against closed forms, and what always holds."""

import math
import time
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import ScenarioError
from core.failures import goodput, monte_carlo
from core.failures.availability import Trace, drawn
from core.failures.policies import POLICIES, ROUNDING_S, WITH_NET, PolicyTrials, play

HOUR, DAY = 3600.0, 86400.0
DEADLINE_BLIND = ("on_demand", "spot_only", "switch")


def trace(*spells, length):
    starts, ends = np.array(spells, dtype=float).reshape(-1, 2).T
    return Trace(starts_s=starts, ends_s=ends, length_s=float(length))


# --- by hand: 100 s of work, checkpoints of 2 s every 10 s, restarts of 5 s -----------------------

JOB = {"work_s": 100.0, "interval_s": 10.0, "checkpoint_s": 2.0, "restart_s": 5.0}
GAP = trace((0, 50), (60, 1000), length=2000)  # 50 s hold four intervals; two seconds are lost
SHORT = trace((0, 13), (100, 1000), length=2000)
SOON = trace((0, 13), (30, 1000), length=2000)


def misses(trials, deadline_s):
    """Which trials end after the deadline, by more than rounding."""
    return trials.total_s > deadline_s * (1 + 1e-12) + ROUNDING_S


def one(policy, *traces, start=0.0, **more):
    """Total, spot, on-demand, waiting, rework, restart, checkpoint and preemptions of one trial."""
    t = play(policy, traces=traces, starts_s=np.array([start]), **{**JOB, **more})
    return tuple(float(getattr(t, f.name)[0]) for f in fields(PolicyTrials))


def test_on_demand_takes_its_work_and_its_checkpoints():
    assert one("on_demand", GAP) == (120, 0, 120, 0, 0, 0, 20, 0)


def test_spot_only_waits():
    assert one("spot_only", GAP) == (137, 127, 0, 10, 2, 5, 20, 1)
    # From a start in the gap the first start is no restart, and is waited for.
    assert one("spot_only", GAP, start=55.0) == (125, 120, 0, 5, 0, 0, 20, 0)


def test_a_notice_keeps_what_the_interval_held():
    # Of 50 s, 48 are four intervals and two are work in the fifth: 58 s are left, in six intervals.
    assert one("spot_only", GAP, notice_probability=1.0) == (135, 125, 0, 10, 0, 5, 20, 1)


def test_switch_falls_back_and_returns_with_a_checkpoint():
    # On-demand from 50: restart 5, work 5, spot is back at 60, checkpoint 2; left 55 in six.
    assert one("switch", GAP) == (134, 122, 12, 0, 2, 10, 22, 1)
    # After 4 s of waiting it restarts at 54 and works for one second.
    assert one("switch", GAP, fall_back_after_s=4.0) == (136.0 + 2, 126, 8, 4, 2, 10, 22, 1)
    # Spot returns within the wait, and within the restart: nothing to write.
    assert one("switch", GAP, fall_back_after_s=12.0) == one("spot_only", GAP)
    assert one("switch", GAP, fall_back_after_s=7.0) == (137, 127, 3, 7, 2, 8, 20, 1)


def test_a_checkpoint_that_is_being_written_is_ended_before_a_move():
    # On-demand at 13, working from 18; spot is there 11 s later, when one of 2 s has been written.
    soon = trace((0, 13), (29, 1000), length=2000)
    # Kept 10 + 10; left 80 in 8 from 30: restart 5, 96.
    assert one("switch", soon) == (131, 114, 17, 0, 1, 10, 20, 1)


def test_greedy_waits_until_the_safety_net():
    # At 50, 60 s of work are left, 72 with checkpoints; the net is 2 d + a = 22 s above them.
    assert one("greedy", GAP, deadline_s=150.0) == (133, 50, 77, 6, 2, 5, 20, 1)
    assert one("greedy", GAP, deadline_s=145.0) == (128, 50, 77, 1, 2, 5, 20, 1)
    assert one("greedy", GAP, deadline_s=160.0) == one("spot_only", GAP)
    # No room for one preemption: on-demand from the start.
    assert one("greedy", GAP, deadline_s=140.0) == one("on_demand", GAP)


def test_uniform_progress_catches_up_on_on_demand():
    # 10 s of 100 are done at 13; the line of 200 s is there at 20. On-demand works from 25 on and
    # is 2 d ahead of the line at 44, in its second interval.
    caught_up = one("uniform_progress", SOON, deadline_s=200.0)
    assert caught_up == (140, 13 + 94, 26, 7, 1, 10, 2 + 4 + 16, 1)
    # Where spot is not back by then it goes on until it is, at 100.
    waited = one("uniform_progress", SHORT, deadline_s=200.0)
    assert waited == (140, 13 + 38, 82, 7, 1, 10, 22, 1)
    # It is ahead of the line when spot returns in the other trace: it only waits.
    assert one("uniform_progress", GAP, deadline_s=200.0) == one("spot_only", GAP)


def test_the_safety_net_alone_is_switch_until_it_is_pulled():
    assert one("safety_net", GAP, deadline_s=152.0) == one("switch", GAP)
    # A second more of slack at 50 is what a return would need: it stays.
    assert one("safety_net", GAP, deadline_s=150.0) == (127, 50, 77, 0, 2, 5, 20, 1)


def test_a_preempted_job_moves_to_a_zone_that_is_up():
    other = trace((20, 30), (45, 80), (90, 500), length=2000)
    zone = trace((0, 50), length=2000)
    # At 50 to the other zone: restart, two intervals and a second; at 80 nothing is up until 90.
    assert one("spot_only", zone, other) == (143, 133, 0, 10, 2 + 1, 10, 20, 2)


def test_a_trace_starts_again_at_its_end():
    short = trace((0, 40), (90, 100), length=100)
    # From 90 it is up for 10 + 40 s, then down for 50; restart and 45 s hold three intervals.
    assert one("spot_only", short, start=90.0) == (
        50 + 50 + 50 + 50 + 5 + 36, 50 + 50 + 41, 0, 100, 2 + 9, 10, 20, 2,
    )  # fmt: skip
    assert one("spot_only", short, start=90.0) == one("spot_only", short, start=190.0)


# --- against closed forms and the other simulation ------------------------------------------------


def test_spot_only_is_the_job_that_fails_of_the_closed_form_and_of_the_simulation():
    """Exponential uptimes and waits: from the start of an uptime, mean and P90 within sampling."""
    up_s, wait_s, count = 3 * HOUR, HOUR, 4000
    given_ = {"work_s": 24 * HOUR, "interval_s": 1200.0, "checkpoint_s": 60.0}
    zone = drawn(up_mean_s=up_s, down_mean_s=wait_s, up_cv=1.0, length_s=1e9, seed=21)
    starts = zone.starts_s[:: zone.starts_s.size // count][:count]
    t = play("spot_only", traces=[zone], starts_s=starts, restart_s=300.0, **given_)
    job = goodput.Job(failures_per_s=1 / up_s, wait_s=wait_s, reload_s=300.0, **given_)
    other = monte_carlo.play(
        failures_per_s=1 / up_s, wait_s=wait_s, reload_s=300.0, seed=3, **given_
    )
    error = t.total_s.std() / math.sqrt(count)
    assert t.total_s.mean() == pytest.approx(goodput.expected_s(job), abs=3 * error)
    assert t.total_s.mean() == pytest.approx(other.total_s.mean(), abs=3 * error)
    assert t.total_s.std() == pytest.approx(goodput.variance_s2(job) ** 0.5, rel=0.05)
    p90 = np.quantile(t.total_s, 0.9)
    assert p90 == pytest.approx(np.quantile(other.total_s, 0.9), rel=0.01)
    assert t.preemptions.mean() == pytest.approx(goodput.expected_failures(job), rel=0.02)
    lost = goodput.badput(job)
    assert t.rework_s.mean() == pytest.approx(lost.rework_s, rel=0.03)
    assert t.waiting_s.mean() == pytest.approx(lost.waiting_s, rel=0.04)


def test_notices_agree_with_the_other_simulation():
    """Work goes on from a notice's checkpoint; here a new interval begins there, so that the same
    work has slightly fewer checkpoints."""
    zone = drawn(up_mean_s=2 * HOUR, down_mean_s=600.0, up_cv=1.0, length_s=3e8, seed=8)
    starts = zone.starts_s[:: zone.starts_s.size // 3000]
    given_ = {"work_s": DAY, "interval_s": 2400.0, "checkpoint_s": 10.0, "notice_probability": 0.5}
    t = play("spot_only", traces=[zone], starts_s=starts, restart_s=120.0, seed=1, **given_)
    other = monte_carlo.play(
        failures_per_s=1 / (2 * HOUR), wait_s=600.0, reload_s=120.0, seed=3, **given_
    )
    assert t.total_s.mean() == pytest.approx(other.total_s.mean(), rel=0.01)
    again = play("spot_only", traces=[zone], starts_s=starts, restart_s=120.0, seed=1, **given_)
    assert (t.total_s == again.total_s).all()


@pytest.mark.parametrize("cv", [2.0, 4.0])
def test_bursts_of_the_same_mean_have_a_later_p90(cv):
    def p90(cv, seed):
        zone = drawn(up_mean_s=4 * HOUR, down_mean_s=HOUR, up_cv=cv, length_s=1e9, seed=seed)
        t = play(
            "spot_only", work_s=5 * DAY, interval_s=1800.0, checkpoint_s=60.0, restart_s=600.0,
            traces=[zone], starts_s=np.linspace(0, 1e9, 2000, endpoint=False),
        )  # fmt: skip
        return np.quantile(t.total_s, 0.9)

    assert p90(cv, 5) > 1.02 * p90(1.0, 5)


# --- against a second player, second by second ----------------------------------------------------


def ticked(policy, zones, *, work, interval, checkpoint, restart, deadline, wait):
    """The same rules, second after second, in whole ones: total, spot, on-demand, waiting,
    restart, preemptions. `zones`: for each, which seconds of its lap are up."""
    margin = 2 * restart + interval + checkpoint
    now, left, since, writing, starting, waited = 0, work, 0, 0, 0, 0
    on, started, leaving, bound, may_leave = None, False, False, False, False
    spent = {"spot": 0, "on_demand": 0, "waiting": 0, "restart": 0, "preemptions": 0}

    def needed():
        return left + -(-left // interval) * checkpoint

    def start(what):
        nonlocal on, starting, started
        on, starting, started = what, restart if started else 0, True

    while now < 40 * work:
        up = [i for i, zone in enumerate(zones) if zone[now % len(zone)]]
        if on not in (None, "on_demand") and on not in up:
            spent["preemptions"] += 1
            on, since, writing, waited = None, 0, 0, 0
        if on == "on_demand" and up and may_leave and not leaving:
            leaving = True
            if since and not writing and not starting:
                writing = checkpoint
        if on == "on_demand" and leaving and not writing and not since:
            if up:
                on, leaving, waited = None, False, 0  # and to spot, below
            else:
                leaving = False
                may_leave = deadline - now - needed() >= margin + checkpoint
                bound = deadline - now - needed() < margin
        if on is None:
            slack = deadline - now - needed()
            bound = slack < margin
            patience = {"spot_only": math.inf, "greedy": slack - margin, "on_demand": 0}.get(
                policy, min(wait - waited, slack - margin)
            )
            if policy == "on_demand" or bound or (not up and patience <= 0):
                start("on_demand")
                may_leave = policy in ("switch", "safety_net") and not bound
                may_leave = may_leave and slack - starting >= margin + checkpoint
                continue
            if up:
                start(up[0])
        now += 1
        if on is None:
            spent["waiting"] += 1
            waited += 1
            continue
        spent["on_demand" if on == "on_demand" else "spot"] += 1
        if starting:
            starting -= 1
            spent["restart"] += 1
            continue
        if writing:
            writing -= 1
        else:
            since += 1
            if since in (interval, left) and checkpoint:
                writing = checkpoint
                continue
        if not writing and (since in (interval, left) or leaving):
            left, since = left - since, 0
            if not left:
                return (now, *spent.values())
    return None


@pytest.mark.parametrize("policy", ["on_demand", "spot_only", "switch", "greedy", "safety_net"])
def test_a_player_that_goes_second_by_second_agrees(policy):
    random, ended = np.random.default_rng(17), 0
    for _ in range(60):
        job = {"work": int(random.integers(20, 200)), "interval": int(random.integers(3, 60))}
        job["interval"] = next(i for i in range(job["interval"], 0, -1) if job["work"] % i == 0)
        job |= {"checkpoint": int(random.integers(1, 5)), "restart": int(random.integers(0, 8))}
        zones, traces = [], []
        for _ in range(int(random.integers(1, 3))):
            spells = random.integers(1, 60, 2 * int(random.integers(1, 6)))
            zone = np.repeat(np.arange(spells.size) % 2 == int(random.integers(2)), spells)
            edges = np.flatnonzero(np.diff(np.concatenate([[0], zone.astype(int), [0]])))
            zones.append(zone.tolist())
            traces.append(trace(*edges.reshape(-1, 2), length=zone.size))
        plain = job["work"] + job["work"] // job["interval"] * job["checkpoint"]
        deadline = plain + int(random.integers(0, plain))
        wait = float(random.choice([0, 3, 20, math.inf]))
        blind = policy in DEADLINE_BLIND
        expected = ticked(policy, zones, deadline=10**9 if blind else deadline, wait=wait, **job)
        t = play(
            policy, traces=traces, starts_s=np.zeros(1), deadline_s=deadline,
            fall_back_after_s=wait, **{f"{name}_s": float(x) for name, x in job.items()},
        )  # fmt: skip
        if expected is None:
            assert np.isinf(t.total_s[0]) or t.total_s[0] > 40 * job["work"]
            continue
        ended += 1
        columns = (t.total_s, t.spot_s, t.on_demand_s, t.waiting_s, t.restart_s, t.preemptions)
        assert [float(c[0]) for c in columns] == pytest.approx(expected, abs=1e-5), (job, zones)
    assert ended > 30


# --- what always holds ---------------------------------------------------------------------------

zones = st.builds(
    drawn,
    up_mean_s=st.floats(30, 2000),
    down_mean_s=st.floats(0, 2000),
    up_cv=st.floats(0.2, 4),
    length_s=st.floats(500, 5000),
    seed=st.integers(0, 2**32),
)
cases = st.fixed_dictionaries(
    {
        "work_s": st.floats(50, 1000),
        "interval_s": st.floats(5, 1200),
        "checkpoint_s": st.floats(0, 30),
        "restart_s": st.floats(0, 60),
        "traces": st.lists(zones, min_size=1, max_size=3),
        "fall_back_after_s": st.sampled_from([0.0, 30.0, math.inf]),
        "notice_probability": st.sampled_from([0.0, 0.5, 1.0]),
    }
)
STARTS = np.linspace(0, 30_000, 9)


def on_demand_s(case):
    t = play("on_demand", starts_s=STARTS[:1], **case)
    return float(t.total_s[0])


@settings(max_examples=50)
@given(case=cases, policy=st.sampled_from(POLICIES), slack=st.floats(0, 2))
def test_the_parts_are_the_whole(case, policy, slack):
    deadline = (1 + slack) * on_demand_s(case)
    t = play(policy, starts_s=STARTS, deadline_s=deadline, **case)
    ends = np.isfinite(t.total_s)
    paid = t.spot_s + t.on_demand_s
    parts = case["work_s"] + t.rework_s + t.restart_s + t.checkpoint_s
    assert t.total_s[ends] == pytest.approx((paid + t.waiting_s)[ends], rel=1e-9)
    assert paid[ends] == pytest.approx(parts[ends], rel=1e-9, abs=1e-4)
    for field in fields(PolicyTrials):
        column = getattr(t, field.name)
        assert (column >= 0).all()
        assert not np.isnan(column).any()
        if field.name != "preemptions":
            assert (np.isinf(column) == ~ends).all()
    if policy == "on_demand":
        assert not t.preemptions.any()
        assert not t.spot_s.any()
    if policy == "spot_only":
        assert not t.on_demand_s[ends].any()
    assert ends.all() or policy in ("spot_only", "switch")


@settings(max_examples=80)
@given(case=cases, policy=st.sampled_from(WITH_NET), slack=st.floats(0, 1))
def test_a_deadline_that_on_demand_meets_is_never_missed(case, policy, slack):
    deadline = (1 + slack) * on_demand_s(case)
    t = play(policy, starts_s=STARTS, deadline_s=deadline, **case)
    assert not misses(t, deadline).any()


@settings(max_examples=15)
@given(case=cases)
def test_a_loose_deadline_makes_greedy_spot_only_and_the_net_switch(case):
    case = {**case, "notice_probability": 0.0}
    for policy, blind in (("greedy", "spot_only"), ("safety_net", "switch")):
        free = play(blind, starts_s=STARTS, **case)
        ends = np.isfinite(free.total_s)
        t = play(policy, starts_s=STARTS, deadline_s=1e9, **case)
        assert t.total_s[ends] == pytest.approx(free.total_s[ends], rel=1e-9)


def test_on_a_bursty_trace_spot_only_misses_what_the_others_meet():
    zone = drawn(up_mean_s=2.4 * HOUR, down_mean_s=HOUR, up_cv=2.0, length_s=60 * DAY, seed=3)
    given_ = {"work_s": 3 * DAY, "interval_s": 900.0, "checkpoint_s": 30.0, "restart_s": 300.0}
    missed, paid = {}, {}
    for policy in POLICIES:
        t = play(
            policy, traces=[zone], starts_s=np.linspace(0, 60 * DAY, 500), deadline_s=4 * DAY,
            **given_,
        )  # fmt: skip
        missed[policy] = misses(t, 4 * DAY).mean()
        paid[policy] = (t.spot_s + 3 * t.on_demand_s).mean()
    assert missed["spot_only"] > 0.5
    assert not any(missed[p] for p in WITH_NET)
    assert paid["spot_only"] < min(paid["greedy"], paid["uniform_progress"]) < paid["on_demand"]


# --- what never ends, what is refused, and how fast ----------------------------------------------


def test_what_never_ends_is_infinite_and_found_out_soon():
    begun = time.process_time()
    too_short = trace(*((100 * i, 100 * i + 15) for i in range(100)), length=10_000)
    t = play("spot_only", traces=[too_short], starts_s=np.zeros(3), **{**JOB, "work_s": 1e9})
    for field in fields(PolicyTrials):
        if field.name != "preemptions":
            assert np.isinf(getattr(t, field.name)).all(), field.name
    never = trace(length=100)
    assert one("spot_only", never)[0] == math.inf
    assert one("switch", never) == one("on_demand", never)
    assert one("greedy", never, deadline_s=150.0)[0] == pytest.approx(120 + 8)
    crawls = trace((0, 20), length=100_000)
    assert one("spot_only", crawls)[0] == math.inf  # one interval in 1000 times the work
    assert time.process_time() - begun < 2


def test_always_up_is_the_same_on_spot():
    always = trace((0, 10), length=10)
    for policy in POLICIES:
        expected = (120, 0, 120) if policy == "on_demand" else (120, 120, 0)
        assert one(policy, always, deadline_s=200.0)[:3] == expected


def test_an_interval_longer_than_the_work_is_one_checkpoint():
    assert one("spot_only", GAP, interval_s=math.inf) == (167, 157, 0, 10, 50, 5, 2, 1)


@pytest.mark.parametrize(
    ("given_", "says"),
    [
        ({"policy": "greddy"}, "Unknown policy 'greddy'. Did you mean 'greedy'?"),
        ({"policy": "greedy"}, "The policy greedy plans for a deadline: give one."),
        ({"deadline_s": -3.0}, "A deadline of -3 s is not a time after the start."),
        ({"deadline_s": math.nan}, "A deadline of nan s"),
        ({"traces": []}, "at least one trace"),
        ({"work_s": 0.0}, "work_s is 0: it is above 0."),
        ({"work_s": math.inf}, "work_s is inf"),
        ({"interval_s": math.nan}, "interval_s is nan"),
        ({"restart_s": -1.0}, "restart_s is -1: it is at least 0."),
        ({"notice_probability": 30.0}, "from 0 to 1"),
    ],
)
def test_what_cannot_be_played_is_a_sentence(given_, says):
    fine = {"policy": "spot_only", "traces": [GAP], "starts_s": np.zeros(1), **JOB}
    with pytest.raises(ScenarioError) as e:
        play(**{**fine, **given_})
    assert says in str(e.value)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_thousand_starts_of_a_month_take_less_than_a_second(policy):
    zone = drawn(up_mean_s=2.4 * HOUR, down_mean_s=HOUR, up_cv=2.0, length_s=60 * DAY, seed=3)
    begun = time.process_time()
    t = play(
        policy, work_s=30 * DAY, interval_s=900.0, checkpoint_s=30.0, restart_s=300.0,
        traces=[zone], starts_s=np.linspace(0, 60 * DAY, 1000), deadline_s=45 * DAY,
    )  # fmt: skip
    assert time.process_time() - begun < 1
    assert policy == "on_demand" or t.preemptions.mean() > 100
