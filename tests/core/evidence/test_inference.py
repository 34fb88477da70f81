"""What a run does not say is the least that fits its memory."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.evidence.inference import (
    FITS,
    least_recompute,
    smallest_degrees,
    total,
)
from core.layout.layouts import RECOMPUTE, SEARCHED_RECOMPUTE
from core.memory.memory import peak_bytes
from tests.made_up.jobs import CLUSTER, LLAMA_8B, SHIPPED, as_columns, jobs, layout, workload

NAN = float("nan")
GENERIC = SHIPPED["generic"]


@given(rows=st.lists(jobs(), min_size=1, max_size=4))
def test_the_cheapest_recompute_that_fits(rows):
    columns = as_columns(rows)
    chosen = least_recompute(*columns)
    for got, (work, lay, cluster, eff) in zip(chosen, rows, strict=True):
        fitting = [
            kind
            for kind in map(RECOMPUTE.index, SEARCHED_RECOMPUTE)
            if total(peak_bytes(work, replace(lay, recompute=np.float64(kind)), cluster, eff))
            <= FITS * cluster.memory_bytes
        ]
        assert got == min(fitting, default=RECOMPUTE.index("full"))


def test_longer_sequences_recompute_more():
    found = []
    for seq_len in (512.0, 8192.0, 32768.0, 1e6):
        row = (workload(LLAMA_8B, seq_len=seq_len), layout(strategy="fsdp2"), CLUSTER, GENERIC)
        found.append(float(least_recompute(*as_columns([row]))[0]))
    assert found == sorted(found)
    assert [RECOMPUTE[int(found[n])] for n in (0, -1)] == ["none", "full"]


@pytest.mark.parametrize(
    ("allowed", "seq_len", "expected"),
    [
        (("selective", "full"), 512.0, "selective"),  # the least of what it may be
        (("selective", "full"), 1e6, "full"),
        (("none",), 1e6, "none"),  # said, whether it fits or not
        (("full",), 512.0, "full"),
        (("none", "offload"), 1e6, "offload"),
    ],
)
def test_only_what_the_stack_does_is_tried(allowed, seq_len, expected):
    row = (workload(LLAMA_8B, seq_len=seq_len), layout(strategy="fsdp2"), CLUSTER, GENERIC)
    mask = np.array([[kind in allowed for kind in RECOMPUTE]])
    found = least_recompute(*as_columns([row]), allowed=mask)
    assert RECOMPUTE[int(found[0])] == expected


@given(
    heads=st.sampled_from([8, 12, 32, 40, 64, 128]),
    layers=st.integers(1, 130),
    num_gpus=st.integers(1, 2048),
    domain=st.sampled_from([1, 4, 8, 72]),
)
def test_blank_degrees_divide_and_grow(heads, layers, num_gpus, domain):
    tps, pps = smallest_degrees(
        heads=heads, layers=layers, num_gpus=num_gpus, domain=domain, tp=NAN, pp=NAN
    )
    assert (tps[0], pps[0]) == (1, 1)
    for t, p in zip(tps, pps, strict=True):
        assert heads % t == 0
        assert num_gpus % (t * p) == 0
        assert t <= domain
        assert p <= layers
    sizes = [(t * p, p) for t, p in zip(tps, pps, strict=True)]
    assert sizes == sorted(sizes)  # smaller first, and of one size tensor parallel first
    assert len(set(sizes)) == len(sizes)


@pytest.mark.parametrize(("tp", "pp"), [(4.0, NAN), (NAN, 1.0), (1.0, 1.0), (3.0, 5.0)])
def test_a_given_degree_is_kept_even_one_that_fits_nothing(tp, pp):
    tps, pps = smallest_degrees(heads=32, layers=32, num_gpus=64, domain=8, tp=tp, pp=pp)
    assert len(tps)
    assert set(tps) == {tp} if tp == tp else len(set(tps)) > 1
    assert set(pps) == {pp} if pp == pp else len(set(pps)) > 1
