"""Dimensional analysis for free: the pure formulas accept pint quantities unchanged."""

import pint
import pytest

from core.evidence import claimed_speed
from core.failures import reliability as failures_reliability
from core.layout import pipeline
from core.money import cost as money_cost
from core.money import energy as money_energy
from core.time import attention as time_attention
from core.time import collectives as time_collectives
from core.time import gemm
from core.time import overlap as time_overlap

u = pint.UnitRegistry()
# pint takes a byte and a dollar for plain numbers; here they are dimensions.
for line in ("octet = [data]", "flop = [operation]", "usd = [money]", "token = [text]",
             "device = [device]"):  # fmt: skip
    u.define(line)
GB = 1e9 * u.octet
RING = {"size_bytes": GB, "ranks": 8, "bytes_per_s": 450 * GB / u.s, "latency_s": 5e-6 * u.s}
HOPS = {"ranks": 16, "local_ranks": 8, "scale_up_hop_s": 3e-6 * u.s, "scale_out_hop_s": 1e-5 * u.s}


SECONDS = (
    lambda: time_collectives.all_reduce_s(**RING),
    lambda: time_collectives.all_gather_s(**RING),
    lambda: time_collectives.all_to_all_s(
        size_bytes=GB, ranks=16, local_ranks=8, scale_up_bytes_per_s=450 * GB / u.s,
        scale_out_bytes_per_s=50 * GB / u.s, latency_s=1e-6 * u.s,
    ),
    lambda: time_attention.forward_s(
        flops=1e12 * u.flop, flops_per_s=4e14 * u.flop / u.s, head_dim=128, half_head_dim=30,
        unaligned_slowdown=3.9, seq_len=4096 * u.token, half_tokens=500 * u.token,
    ),
    lambda: time_attention.backward_s(forward_s=2 * u.s, relative_rate=0.8),
    lambda: gemm.matmul_s(
        m=4096, n=8192, k=8192, flops_per_s=7e14 / u.s, bytes_per_s=2.7e12 / u.s, unhidden=0.5,
        kernel_s=4e-6 * u.s,
    ),
    lambda: time_collectives.ring_hop_s(**HOPS),
    lambda: time_collectives.tree_hop_s(**HOPS),
    lambda: time_overlap.hidden_s(
        communication_s=2 * u.s, computation_s=3 * u.s, always_exposed=0.1, window=0.8
    ),
    lambda: time_overlap.exposed_s(communication_s=2 * u.s, hidden_s=1 * u.s, slowdown=0.1),
    lambda: failures_reliability.young_interval_s(
        checkpoint_s=60 * u.s, mean_time_to_failure_s=1e5 * u.s
    ),
)  # fmt: skip


@pytest.mark.parametrize(
    ("quantity", "dimension"),
    [
        *((seconds, "[time]") for seconds in SECONDS),
        (
            lambda: money_cost.run_usd(
                wall_clock_hours=3 * u.hour, num_instances=2,
                usd_per_instance_hour=24 * u.usd / u.hour,
            ),
            "[money]",
        ),
        (
            lambda: money_cost.gpu_hours(
                wall_clock_hours=3 * u.hour, num_instances=2, gpus_per_instance=8 * u.device
            ),
            "[device] * [time]",
        ),
        (
            lambda: money_energy.building_kwh(drawn_kwh=9 * u.kilowatt_hour, pue=1.2),
            "[energy]",
        ),
        (
            lambda: claimed_speed.implied_utilisation(
                flops_per_token=6e9 * u.flop / u.token, num_tokens=1e12 * u.token,
                gpu_hours=1e5 * u.s, peak_flops_per_s=1e15 * u.flop / u.s,
            ),
            "[]",
        ),
        (
            lambda: u.Quantity(
                pipeline.bubble_fraction(pp=8, virtual_stages=2, num_microbatches=64), ""
            ),
            "[]",
        ),
    ],
)  # fmt: skip
def test_dimension(quantity, dimension):
    assert quantity().check(dimension)


def test_the_check_can_fail():
    """A size over a rate of FLOPs is not a time."""
    wrong = time_collectives.all_gather_s
    with pytest.raises(pint.DimensionalityError):
        wrong(size_bytes=GB, ranks=8, bytes_per_s=1e9 * u.flop / u.s, latency_s=5e-6 * u.s)
