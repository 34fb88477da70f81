"""The rules of measuring, each on the function that keeps it: no timing of this machine matters."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import time

import pytest
import torch

from runners.calibration import probe_plan
from runners.calibration import result as calibration_result
from runners.probes import node
from runners.probes.anonymous import anonymised, digest, kept_environment
from runners.probes.attention import measure_attention
from runners.probes.budget import USED_UP, BudgetUsedUp, allowed_s, cut_off_after
from runners.probes.collectives import OPS, Collective, bus_factor, collective_sizes
from runners.probes.device import Device
from runners.probes.groups import GROUPS
from runners.probes.matmul import measure_matmul
from runners.probes.measuring import merged
from runners.probes.numerics import entropy_bits, normal
from runners.probes.plan import PlanError
from runners.probes.probe import Probe
from runners.probes.ranks import Ranks
from runners.probes.result_file import finished_groups
from runners.probes.rows import PROBE_VERSION, SCHEMA
from runners.probes.settling import settle
from runners.probes.state import Monitor, during, machine_state, smi_state, why_busy
from runners.probes.timing import (
    WARM_UP_CALLS,
    clock_samples,
    event_samples,
    quantile,
    summary,
    warm_up,
)
from runners.probes.training import fitting_layers, measure_holdout
from runners.probes.transformer import Block, block_flops

CPU = torch.device("cpu")
WORKLOAD = probe_plan.DEFAULT
SMI_LINE = "1980, 2619, 1980, 612.50, 700.00, 61, 97, 40960, 0x0000000000000004\n"


def small_plan(**changes):
    plan = probe_plan.probe_plan(
        run_id="method", launcher="local", planner_version="0", reduced=True, row_s=0.01
    )
    return {**plan, **changes}


def small_probe(group="matmul", **changes):
    probe = Probe(small_plan(**changes), Ranks(), Device(0, allow_gpu=False))
    probe.group = group
    return probe


# --- inputs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_inputs_are_normal_and_have_the_entropy_of_it(dtype):
    x = normal(256, 256, dtype=dtype, device=CPU)
    assert entropy_bits(x) == pytest.approx(2.047 + math.log2(256 / 8), abs=0.05)


@pytest.mark.parametrize(
    "x",
    [torch.zeros(10_000), torch.arange(10_000.0), torch.rand(10_000), torch.ones(10_000)],
    ids=["zeros", "integers", "uniform", "constant"],
)
def test_other_inputs_have_less(x):
    assert entropy_bits(x) < 6


def test_a_probe_of_zeros_shows_it_in_its_rows(monkeypatch):
    monkeypatch.setattr(
        "runners.probes.probe.normal",
        lambda *shape, dtype, device: torch.zeros(shape).to(dtype),
    )
    probe = small_probe(shapes=[{"label": "square", "m": 32, "n": 32, "k": 32}])
    measure_matmul(probe)
    assert [row["data_entropy_bits"] for row in probe.rows] == [0.0, 0.0]


# --- samples -------------------------------------------------------------------------------------


class Tape:
    """A device that writes down what it is asked to do, in order."""

    def __init__(self):
        self.log = []

    def event(self):
        tape = self

        class Event:
            def record(self):
                tape.log.append("event")

            def elapsed_time(self, end):
                assert tape.log[-1] == "sync", "an event was read before the device was done"
                return 2.0  # milliseconds

        return Event()

    def __call__(self, word):
        return lambda: self.log.append(word)


def test_on_a_gpu_every_sample_starts_cold_and_all_are_queued_before_one_wait():
    tape = Tape()
    times = event_samples(tape("call"), 3, flush=tape("flush"), sync=tape("sync"), event=tape.event)
    assert times == [0.002] * 3
    assert tape.log == ["flush", "event", "call", "event"] * 3 + ["sync"]


@pytest.mark.parametrize(
    ("rates", "least_s", "most_s", "took"),
    [
        ([100, 90, 85, 84, 84.1, 84.2], 0, 30, 6),  # a boost clock that falls
        ([100, 100.5, 100.9], 0, 30, 3),  # three at the least
        ([100, 100, 100, 100, 97, 94, 94, 94], 6, 30, 8),  # it agrees before heat comes
        ([100 - n for n in range(40)], 0, 30, 30),  # it never settles: the time ends it
        ([100, 90, 80, 70], 20, 3, 3),  # a tenth of a short budget
    ],
)
def test_work_goes_on_until_three_windows_agree_or_the_time_is_up(rates, least_s, most_s, took):
    taken, asked = [], []

    def window():  # of one second
        taken.append(rates[len(taken)])
        return taken[-1]

    found = settle(window, least_s=least_s, most_s=most_s, clock=lambda: len(taken),
                   agreed=lambda done: asked.append(done) or done)  # fmt: skip
    assert len(asked) == took
    assert found["from_first"] == pytest.approx(rates[took - 1] / rates[0])
    assert (found["rel_range"] <= 0.01) is (took < most_s)


def test_warm_up_lasts_for_a_count_and_for_a_time():
    calls = []
    warm_up(lambda: calls.append(time.sleep(0.001)), lambda: None, seconds=0.0)
    assert len(calls) == WARM_UP_CALLS
    begin = time.perf_counter()
    one_s = warm_up(lambda: time.sleep(0.001), lambda: None, seconds=0.05)
    assert time.perf_counter() - begin >= 0.05
    assert one_s >= 0.001


def test_on_a_cpu_a_sample_is_several_calls_and_is_reported_per_call():
    calls = []
    times = clock_samples(lambda: calls.append(0), calls=5, seconds=0.0, least=7, most=9)
    assert (len(times), len(calls)) == (7, 35)
    assert len(clock_samples(lambda: None, calls=1, seconds=60.0, least=1, most=9)) == 9
    assert summary([5.0], calls=5)["t_med_s"] == 1.0


def test_the_median_and_the_spread_are_reported_never_the_best_alone():
    times = [1.0, 2.0, 3.0, 4.0, 100.0]
    found = summary(times)
    assert (found["t_med_s"], found["t_min_s"], found["n"]) == (3.0, 1.0, 5)
    assert found["t_p10_s"] == pytest.approx(1.4)
    assert found["t_p90_s"] == pytest.approx(61.6)
    assert found["rel_iqr"] == pytest.approx((4 - 2) / 3)
    assert quantile([1.0], 0.9) == 1.0


def test_a_row_says_whether_its_caches_were_cold():
    probe = small_probe()
    probe.row("add", lambda: None, params={}, mode="fwd")
    assert probe.rows[0]["cold_cache"] is False
    assert summary([1.0], cold=True)["cold_cache"] is True


# --- budget --------------------------------------------------------------------------------------


def options(**given):
    names = ("budget_s", "max_usd", "usd_per_hour")
    return argparse.Namespace(**{name: given.get(name) for name in names})


def test_dollars_bound_the_seconds():
    assert allowed_s(options(), reduced=True) == 60
    assert allowed_s(options(), reduced=False) == 600
    assert allowed_s(options(budget_s=50.0), reduced=False) == 50
    assert allowed_s(options(budget_s=900.0, max_usd=1.0, usd_per_hour=36.0), reduced=False) == 100
    with pytest.raises(PlanError, match="needs --usd-per-hour"):
        allowed_s(options(max_usd=1.0), reduced=False)
    with pytest.raises(PlanError, match="--budget-s must be above 0"):
        allowed_s(options(budget_s=math.nan), reduced=False)


def test_a_row_after_the_budget_is_named_and_not_measured():
    probe = small_probe()
    probe.budget_s = 0.0
    measure_matmul(probe)
    assert not probe.rows
    assert {one["reason"] for one in probe.left_out} == {USED_UP}
    assert probe.left_out[0]["label"] == "square bf16"


def test_one_call_that_takes_too_long_is_cut_off_and_named():
    probe = small_probe("compiled_block")
    begin = time.perf_counter()
    with probe.attempt("block"), cut_off_after(0.05):
        time.sleep(30)
    assert time.perf_counter() - begin < 10
    assert probe.left_out == [{"group": "compiled_block", "label": "block", "reason": USED_UP}]
    time.sleep(0.02)  # the alarm is off again
    with pytest.raises(BudgetUsedUp), cut_off_after(0.01):
        time.sleep(30)


def test_a_group_that_the_budget_cut_off_is_measured_again():
    earlier = {
        "groups": [{"name": "matmul"}, {"name": "block"}],
        "skipped": [{"group": "block", "reason": USED_UP}],
    }
    assert finished_groups(earlier) == {"matmul"}


def test_what_a_machine_cannot_do_is_named_and_the_next_row_measured():
    shapes = [
        {"label": "odd", "m": 17, "n": 17, "k": 17},
        {"label": "ok", "m": 16, "n": 16, "k": 16},
    ]
    probe = small_probe(shapes=shapes, dtypes=["fp32", "fp8"])
    measure_matmul(probe)
    assert [one["label"] for one in probe.left_out] == ["odd fp8"]
    assert "multiples of 16" in probe.left_out[0]["reason"]
    assert [(r["label"], r["dtype"]) for r in probe.rows] == [
        ("odd", "fp32"), ("ok", "fp32"), ("ok", "fp8"),
    ]  # fmt: skip


# --- operations are what they say ----------------------------------------------------------------


def test_matmuls_of_every_layout_and_dtype_agree_with_float64():
    shapes = [{"label": "a", "m": 48, "n": 32, "k": 64},
              {"label": "t", "m": 48, "n": 32, "k": 64, "transpose_a": True}]  # fmt: skip
    probe = small_probe(shapes=shapes, dtypes=["bf16", "fp8", "fp32"])
    measure_matmul(probe)
    limits = {"bf16": 1e-2, "fp8": 0.1, "fp32": 1e-5}
    assert len(probe.rows) == 6
    for row in probe.rows:
        assert row["rel_err"] < limits[row["dtype"]]
        assert row["flops"] == 2 * 48 * 32 * 64
    assert any(row["rel_err"] > 1e-2 for row in probe.rows)  # fp8 does round


def test_a_wrong_matmul_has_a_large_error(monkeypatch):
    monkeypatch.setattr(torch, "matmul", lambda a, b, out: out.zero_())
    probe = small_probe(shapes=[{"label": "a", "m": 8, "n": 8, "k": 8}], dtypes=["fp32"])
    measure_matmul(probe)
    assert probe.rows[0]["rel_err"] == pytest.approx(1.0)


def test_attention_counts_a_causal_square_once_and_backward_two_and_a_half_times():
    shape = {"label": "a", "batch": 1, "num_heads": 2, "num_kv_heads": 1, "seq_len": 32,
             "head_dim": 16}  # fmt: skip
    probe = small_probe(attention=[{**shape, "causal": True}, {**shape, "causal": False}])
    measure_attention(probe)
    half, half_both, full, _ = (row["flops"] for row in probe.rows)
    assert full == 4 * 2 * 32 * 32 * 16
    assert (half, half_both) == (full / 2, 3.5 * full / 2)
    assert [row["mode"] for row in probe.rows] == ["fwd", "fwdbwd"] * 2
    assert max(row["rel_err"] for row in probe.rows if "rel_err" in row) < 1e-2


def test_attention_that_sees_the_future_has_a_large_error(monkeypatch):
    real = torch.nn.functional.scaled_dot_product_attention
    monkeypatch.setattr(
        "runners.probes.attention.F.scaled_dot_product_attention",
        lambda q, k, v, is_causal: real(q, k, v),
    )
    shape = {"label": "a", "batch": 1, "num_heads": 2, "num_kv_heads": 2, "seq_len": 64,
             "head_dim": 16, "causal": True}  # fmt: skip
    probe = small_probe(attention=[shape])
    measure_attention(probe)
    assert probe.rows[0]["rel_err"] > 0.1


def test_block_flops_are_those_of_its_matrices():
    c = small_plan()["block"]
    block = Block(c)
    weights = sum(w.numel() for w in block.parameters() if w.dim() == 2)
    tokens = c["seq_len"] * c["micro_batch_size"]
    scores = 4 * c["num_attention_heads"] * c["head_dim"] * c["seq_len"] ** 2 / 2
    assert block_flops(c) == pytest.approx(2 * weights * tokens + scores)


def test_a_training_step_trains():
    c = {**small_plan()["block"], "hidden_size": 32, "ffn_hidden_size": 32, "vocab_size": 64}
    c |= {"seq_len": 16, "num_attention_heads": 2, "num_kv_heads": 1, "head_dim": 16}
    probe = small_probe("holdout", block={**c, "holdout_layers": 2})
    measure_holdout(probe)
    (row,) = probe.rows
    assert row["loss_last"] < row["loss_first"] < 1.5 * math.log(64)
    assert row["params"]["num_layers"] == 2


def test_a_model_that_does_not_fit_has_fewer_layers():
    c = probe_plan.local_block(WORKLOAD)
    assert fitting_layers(c, 4, 10**15) == 4
    assert 0 < fitting_layers(c, 4, 60 * 10**9) < 4
    assert fitting_layers(c, 4, 10**9) == 0


# --- collectives ---------------------------------------------------------------------------------


def test_bus_bandwidth_is_as_nccl_tests_defines_it():
    """doc/PERFORMANCE.md of NVIDIA/nccl-tests."""
    assert bus_factor("all_reduce", 8) == 2 * 7 / 8
    assert {bus_factor(op, 8) for op in ("all_gather", "reduce_scatter", "all_to_all")} == {7 / 8}
    assert {bus_factor(op, 8) for op in ("broadcast", "send_recv")} == {1.0}


def test_sizes_go_from_8_bytes_to_the_largest():
    sizes = collective_sizes(2**30)
    assert (sizes[0], sizes[-1], len(sizes)) == (8, 2**30, 15)
    assert collective_sizes(4) == [8]
    assert collective_sizes(100) == [8, 32, 100]


def test_a_collective_that_does_nothing_has_wrong_elements(monkeypatch):
    """The check itself: rank 1 of 4, whose operations return at once."""
    probe = small_probe("collectives")
    probe.ranks.rank = 1
    wrong = {}
    for op in OPS:
        collective = Collective(probe, op, [0, 1, 2, 3], None, 64)
        monkeypatch.setattr(Collective, "__call__", lambda self, async_op=False: None)
        wrong[op] = collective.wrong()
    assert wrong == {op: (4 if op == "reduce_scatter" else 16) for op in OPS}


def test_process_groups_within_and_across_nodes():
    ranks = Ranks()
    ranks.world, ranks.node_of = 4, [0, 0, 1, 1]
    assert ranks.members() == {
        "intra_node": [[0, 1], [2, 3]], "inter_node": [[0, 2], [1, 3]], "world": [[0, 1, 2, 3]],
    }  # fmt: skip
    ranks.node_of = [0, 0, 0, 0]
    assert ranks.members() == {"intra_node": [[0, 1, 2, 3]]}
    ranks.node_of = [0, 1, 2, 3]
    assert ranks.members() == {"inter_node": [[0, 1, 2, 3]]}
    ranks.world, ranks.node_of = 1, [0]
    assert ranks.members() == {}


def test_of_several_ranks_the_slowest_counts_and_every_node_is_kept():
    """Two nodes of two ranks; what one rank could not measure is left out, with its number."""
    probe = small_probe()
    ranks = probe.ranks
    ranks.world, ranks.node_of = 4, [0, 0, 1, 1]

    def rows(time_s, *labels):
        return [{"label": x, "mode": "fwd", "params": {}, "t_med_s": time_s} for x in labels]

    probe.rows = rows(1.0, "a", "b")
    everyone = [probe.rows, rows(2.0, "a", "b"), rows(4.0, "a", "b"), rows(3.0, "a")]
    lost = [{"group": "matmul", "label": "b", "reason": "out of memory"}]
    answers = iter([everyone, [[], [], [], lost]])
    ranks.gather = lambda value: next(answers)
    found, left_out = merged(probe)
    assert [row["label"] for row in found] == ["a"]
    assert found[0]["t_med_s"] == 4.0
    assert found[0]["slowest_rank"] == 2
    assert found[0]["t_med_by_node_s"] == [2.0, 4.0]
    assert left_out[0]["reason"] == "rank 3: out of memory"


# --- the machine ---------------------------------------------------------------------------------


def test_a_line_of_nvidia_smi_in_our_units():
    assert smi_state(SMI_LINE) == {
        "clock_sm_mhz": 1980, "clock_mem_mhz": 2619, "clock_max_sm_mhz": 1980, "power_w": 612.5,
        "power_limit_w": 700, "temperature_c": 61, "utilization": 0.97,
        "memory_used_bytes": 40960 * 2**20, "throttle_bits": 4,
    }  # fmt: skip
    assert smi_state("[N/A], [N/A], 1980") == {"clock_max_sm_mhz": 1980}
    assert smi_state("nan, inf") == {}


def test_states_during_a_group_keep_the_worst_and_every_throttle_reason():
    states = [smi_state(SMI_LINE), smi_state(SMI_LINE.replace("1980, 2619", "1200, 2619"))]
    states.append({"throttle_bits": 0x20, "temperature_c": 88.0})
    found = during(states)
    assert (found["clock_sm_mhz"], found["temperature_c"]) == (1200, 88)
    assert found["throttle_bits"] == 0x24
    assert during([]) == {}


def fake_smi(folder, monkeypatch, *, utilization=0, others=""):
    """An nvidia-smi that answers, and writes down what it was asked."""
    line = SMI_LINE.replace(" 97,", f" {utilization},").strip()
    script = folder / "nvidia-smi"
    script.write_text(
        f'#!/bin/sh\necho "$@" >> "{folder}/asked"\ncase "$*" in\n'
        f"*compute-apps*) printf '%s' '{others}';;\n"
        f"*loop-ms*) while :; do echo '{line}'; sleep 0.02; done;;\n"
        f"*) echo '{line}';;\nesac\n"
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_an_older_driver_is_asked_by_the_older_name(tmp_path, monkeypatch):
    fake_smi(tmp_path, monkeypatch)
    script = tmp_path / "nvidia-smi"
    known = script.read_text()
    script.write_text(known.replace("in\n", "in\n*clocks_event_reasons*) exit 2;;\n", 1))
    device = cuda_device()
    assert machine_state(device)["throttle_bits"] == 4
    assert machine_state(device)["throttle_bits"] == 4
    asked = (tmp_path / "asked").read_text()
    assert asked.count("clocks_event_reasons") == 1  # it learns
    assert asked.count("clocks_throttle_reasons") == 2


def cuda_device():
    """The parts of a CUDA device that ask nvidia-smi; torch is not touched."""
    device = Device(0, allow_gpu=False)
    device.kind, device.gpu = "cuda", True
    return device


def test_a_busy_gpu_is_seen_before_it_is_used(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-7,GPU-8")
    fake_smi(tmp_path, monkeypatch)
    assert why_busy(cuda_device()) is None
    fake_smi(tmp_path, monkeypatch, utilization=97)
    assert why_busy(cuda_device()) == "device GPU-7 is 97% busy"
    fake_smi(tmp_path, monkeypatch, others="4242\n4243\n")
    assert why_busy(cuda_device()) == "device GPU-7 runs 2 other processes"
    assert why_busy(Device(0, allow_gpu=False)) is None


def test_nvidia_smi_is_only_asked_never_told(tmp_path, monkeypatch):
    fake_smi(tmp_path, monkeypatch, utilization=3)
    device = cuda_device()
    assert machine_state(device)["power_w"] == 612.5
    monitor = Monitor(device)
    deadline = time.monotonic() + 10
    seen = {}
    while not seen and time.monotonic() < deadline:
        time.sleep(0.05)
        seen = monitor.taken()
    monitor.stop()
    assert seen["throttle_bits"] == 4
    asked = (tmp_path / "asked").read_text()
    assert "--query-gpu=" in asked
    words = {word.partition("=")[0] for word in asked.split()}
    assert words <= {"--id", "--query-gpu", "--query-compute-apps", "--format", "--loop-ms"}


# --- what is told of a machine -------------------------------------------------------------------


def test_the_environment_is_a_whitelist_without_secrets():
    given = {
        "NCCL_DEBUG": "INFO", "OMP_NUM_THREADS": "1", "PYTORCH_CUDA_ALLOC_CONF": "x" * 999,
        "NCCL_API_TOKEN": "a", "CUDA_SECRET_X": "b", "TORCH_password": "c", "OMP_KEY": "d",
        "HF_HOME": "e", "PATH": "f", "AWS_REGION": "g", "NCCL_PROXY": "http://me:pw@proxy",
    }  # fmt: skip
    kept = kept_environment(given)
    assert sorted(kept) == ["NCCL_DEBUG", "OMP_NUM_THREADS", "PYTORCH_CUDA_ALLOC_CONF"]
    assert len(kept["PYTORCH_CUDA_ALLOC_CONF"]) == 200


def test_anonymised_hosts_and_serial_numbers_are_digests_and_nothing_else_changes():
    shared = {
        "provenance": {
            "host": "alpha.example.com", "argv": ["--out", "x"], "anonymised": False,
            "env": {"NCCL_SOCKET_IFNAME": "eth0", "NCCL_TOPO_FILE": "/data/alice/topo.xml"},
            "device": {"uuid": "GPU-1", "name": "matmul"},
        },
        "nodes": [{"host": "beta", "uuid": "GPU-2"}, {"host": "matmul", "uuid": None}],
        "results": [{"probe": "matmul"}],
        "skipped": [{"group": "matmul", "label": "", "reason": "no room on beta:/data/x, alpha"}],
    }  # fmt: skip
    found = anonymised(shared)
    text = json.dumps(found)
    for name in ("alpha", "beta", "alice", "GPU-1", "GPU-2", "/data"):
        assert name not in text
    assert found["provenance"]["host"] == digest("alpha.example.com")
    assert found["provenance"]["env"]["NCCL_SOCKET_IFNAME"] == "eth0"
    assert found["results"] == shared["results"]
    assert found["provenance"]["device"]["name"] == "matmul"
    assert shared["nodes"][0]["host"] == "beta"


# --- plans ---------------------------------------------------------------------------------------


def test_the_plan_the_probe_and_the_schema_have_the_same_groups():
    assert set(probe_plan.GROUPS) == set(GROUPS) == set(calibration_result.NEEDED)
    assert list(probe_plan.GROUPS) == list(GROUPS)
    assert (SCHEMA, PROBE_VERSION) == (calibration_result.SCHEMA, calibration_result.PROBE_VERSION)


def test_every_plan_has_the_six_anchors_and_the_shapes_of_its_workload():
    plan = probe_plan.probe_plan(run_id="x", launcher="local", planner_version="0")
    labels = [shape["label"] for shape in plan["shapes"]]
    assert labels[:6] == ["square", "tokens_1k", "small_m", "wgrad", "moe_expert", "odd"]
    assert len(labels) == len(set(labels)) == 6 + 5 * 3
    by_label = {s["label"]: (s["m"], s["n"], s["k"], s["transpose_a"]) for s in plan["shapes"]}
    assert by_label["qkv.fwd"] == (8192, 6144, 4096, False)
    assert by_label["qkv.dgrad"] == (8192, 4096, 6144, False)
    assert by_label["qkv.wgrad"] == (6144, 4096, 8192, True)


def test_tensor_parallelism_divides_what_one_rank_computes():
    eight = probe_plan.Workload(
        hidden_size=8192, ffn_hidden_size=28672, num_attention_heads=64, num_kv_heads=4,
        head_dim=128, vocab_size=128256, tp=8, micro_batch_size=2, seq_len=4096,
    )  # fmt: skip
    local = probe_plan.local_block(eight)
    assert (local["num_attention_heads"], local["num_kv_heads"]) == (8, 1)
    assert (local["ffn_hidden_size"], local["vocab_size"]) == (3584, 16032)
    shapes = {s["label"]: s for s in probe_plan.workload_shapes(eight)}
    down = shapes["mlp_down.fwd"]
    assert (down["m"], down["n"], down["k"]) == (8192, 8192, 3584)


def test_reduced_shapes_are_small_and_of_the_same_kind():
    plan = small_plan()
    assert max(max(s["m"], s["n"], s["k"]) for s in plan["shapes"]) <= 2048
    assert plan["block"]["num_attention_heads"] / plan["block"]["num_kv_heads"] == 4
    assert plan["block"]["ffn_hidden_size"] / 256 == pytest.approx(14336 / 4096, abs=0.1)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"run_id": "a b"}, "run id 'a b' is not"),
        ({"run_id": "../x"}, "is not 1 to 64"),
        ({"groups": ["matmull"]}, "no group 'matmull'"),
        ({"told": {"ssh_key": "x"}}, "'ssh_key' is not a fact on a node"),
    ],
)
def test_a_plan_that_cannot_be_made_says_why(change, reason):
    known = {"run_id": "x", "launcher": "local", "planner_version": "0"}
    with pytest.raises(probe_plan.ProbePlanError, match=reason):
        probe_plan.probe_plan(**{**known, **change})


@pytest.mark.parametrize(
    ("name", "value"), [("tp", 0), ("tp", 3), ("seq_len", 1.5), ("num_kv_heads", 5)]
)
def test_a_workload_that_cannot_be_says_why(name, value):
    known = {f.name: getattr(WORKLOAD, f.name) for f in probe_plan.fields(WORKLOAD)}
    with pytest.raises(probe_plan.ProbePlanError, match=f"{name} |attention heads"):
        probe_plan.Workload(**{**known, name: value})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"schema": "calib-plan/2"}, "is not a calib-plan/1 file"),
        ({"run_id": "x; rm"}, "run_id must be"),
        ({"groups": []}, "groups must be"),
        ({"groups": ["matmul", "gemm"]}, "unknown groups gemm; known: matmul"),
        ({"groups": [["matmul"]]}, "unknown groups ['matmul']; known: matmul"),
        ({"dtypes": ["fp8"]}, "dtypes must begin with"),
        ({"dtypes": ["bf16", "int3"]}, "unknown dtypes int3"),
        ({"shapes": [{"m": 1, "n": -1, "k": 1}]}, "shapes: n must be a whole number from 1"),
        ({"block": {}}, "block: hidden_size must be"),
        ({"collective_max_bytes": True}, "collective_max_bytes must be"),
        ({"row_s": -1}, "row_s must be seconds above 0"),
        ({"device": "tpu"}, "the plan is for tpu, and torch sees"),
    ],
)
def test_a_bad_plan_is_refused_on_the_node_with_a_sentence(tmp_path, capfd, change, reason):
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(small_plan(**change)))
    with contextlib.suppress(SystemExit):
        assert node.main(["--plan", str(path), "--out", str(tmp_path / "r.json")]) == 2
    said = capfd.readouterr().err
    assert reason in said
    assert "Traceback" not in said
