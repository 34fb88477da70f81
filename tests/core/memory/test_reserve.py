"""Memory of a device that holds no tensor."""

from dataclasses import replace

import pytest

from core.machine.cluster import cluster_of
from core.memory.counters import unreported_bytes
from core.memory.memory import peak_bytes
from core.memory.reserve import reserve_bytes, reserve_of
from core.units import GIB
from hardware.facts import accelerator
from tests.made_up.jobs import CLUSTER, IDEAL, layout, workload

POOL = replace(IDEAL, memory_pool=0.92, reserve_bytes=2 * GIB)


@pytest.mark.parametrize(
    ("memory", "pooled", "held"), [(80, 1.0, 6.4), (80, 0.0, 2.0), (16, 1.0, 1.6), (10, 0.0, 1.0)]
)
def test_a_pool_leaves_the_rest_of_the_device_to_contexts(memory, pooled, held):
    """8% of it, or the context where that is more: a tenth of a small device at most."""
    found = reserve_bytes(live=0.0, memory_bytes=memory * GIB, pooled=pooled, eff=POOL)
    assert float(found) == pytest.approx(held * GIB)


def test_what_a_pool_leaves_decides_whether_a_run_fits_and_is_in_no_counter():
    pooled = replace(CLUSTER, pools_memory=1.0)
    lay = layout(strategy="fsdp2")
    with_pool, without = (
        sum(v.item() for v in peak_bytes(workload(), lay, c, POOL).values())
        for c in (pooled, CLUSTER)
    )
    left = 0.08 * CLUSTER.memory_bytes
    assert with_pool - without == pytest.approx(left - 2 * GIB)
    eff = replace(POOL, reserve_reported=0.0)
    reserve = reserve_of(pooled, eff, live=0.0)
    hidden = float(unreported_bytes(lay, pooled, eff, reserve=reserve))
    assert hidden == pytest.approx(left)


@pytest.mark.parametrize(("name", "pools"), [("H100-80GB-SXM", 1), ("MI355X", 1), ("TPU-v6e", 0)])
def test_jax_takes_a_pool_on_gpus_alone(name, pools):
    chip = accelerator(name)
    made = cluster_of(chip, gpus_per_node=8, scale_up_domain=8, scale_out_bytes_per_s=50e9)
    assert made.pools_memory == pools
