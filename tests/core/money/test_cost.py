"""Steps, hours and dollars against the arithmetic of published claims."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.money.cost import (
    billed_hours,
    gpu_hours,
    num_instances,
    num_steps,
    run_usd,
    wall_clock_hours,
)

HOURS = st.floats(0, 1e6)


@pytest.mark.parametrize(
    ("usd_per_gpu_hour", "gpus", "hours", "printed_usd"),
    [(2.90, 8, 30, 696), (0.80, 8, 30, 192), (2.90, 32, 55, 5104), (3.00, 256, 600, 460_800)],
)
def test_dollars_of_the_guides(usd_per_gpu_hour, gpus, hours, printed_usd):
    """1B tokens of 70B ($696 on demand, $192 spot), of 405B ($5,104), 1T tokens (~$460k)."""
    instances = num_instances(num_gpus=float(gpus), gpus_per_instance=8.0)
    usd = run_usd(
        wall_clock_hours=float(hours), num_instances=instances,
        usd_per_instance_hour=8 * usd_per_gpu_hour,
    )  # fmt: skip
    assert float(usd) == pytest.approx(printed_usd)


@pytest.mark.parametrize(("num_tokens", "printed_h"), [(1e9, 30), (1e12, 30_000), (1e8, 3)])
def test_hours_of_the_guides(num_tokens, printed_h):
    """70B on 8 H100: 1B tokens ~30 h, 1T ~30,000 h, 100M ~3 h."""
    batch, seq_len = 64.0, 4096.0
    step_s = batch * seq_len / (8 * 989e12 * 0.49 / (6 * 70e9))  # at 49% of the peak
    steps = num_steps(num_tokens=num_tokens, seq_len=seq_len, global_batch_size=batch)
    hours = wall_clock_hours(num_steps=steps, step_s=step_s)
    assert float(hours) == pytest.approx(printed_h, rel=0.02)


@given(tokens=st.integers(1, 10**16), seq=st.integers(16, 1 << 20), batch=st.integers(1, 1 << 22))
def test_the_last_step_is_whole_and_there_is_no_other(tokens, seq, batch):
    steps = float(
        num_steps(num_tokens=float(tokens), seq_len=float(seq), global_batch_size=float(batch))
    )
    assert steps == int(steps) >= 1
    # A float counts 10^16 tokens to within 2: the ceiling to within one step of the exact one.
    assert abs(steps - -(-tokens // (seq * batch))) <= 1
    if tokens < 2**50:
        assert (steps - 1) * seq * batch < tokens <= steps * seq * batch


@given(gpus=st.integers(1, 131_072), per=st.integers(1, 72))
def test_instances_are_whole_and_every_gpu_of_them_is_paid(gpus, per):
    instances = float(num_instances(num_gpus=float(gpus), gpus_per_instance=float(per)))
    assert instances == -(-gpus // per)
    paid = gpu_hours(wall_clock_hours=10.0, num_instances=instances, gpus_per_instance=float(per))
    assert float(paid) >= 10 * gpus
    assert float(paid) - 10 * gpus < 10 * per


def test_nine_gpus_rent_two_nodes_of_eight():
    instances = num_instances(num_gpus=9.0, gpus_per_instance=8.0)
    assert float(instances) == 2
    paid = gpu_hours(wall_clock_hours=1.0, num_instances=instances, gpus_per_instance=8.0)
    assert float(paid) == 16


@given(run=HOURS, startup=HOURS, least=HOURS)
def test_what_is_billed_is_the_whole_time_or_the_least(run, startup, least):
    def paid(hours):
        return float(billed_hours(run_hours=hours, startup_hours=startup, least_hours=least))

    assert paid(run) == (startup + run if startup + run > least else least)
    assert paid(run) <= paid(2 * run) <= 2 * paid(run)  # never less, never more than in proportion
    column = billed_hours(run_hours=np.array([run, 0.0]), startup_hours=startup, least_hours=least)
    assert column.tolist() == [paid(run), paid(0.0)]
