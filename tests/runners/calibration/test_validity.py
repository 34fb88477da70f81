"""The gates: each opens for a sound result and closes for the one thing that is wrong."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from hardware.facts import accelerator
from runners.calibration.result import parse_result
from runners.calibration.validity import (
    MAX_ERROR,
    MIN_ENTROPY_BITS,
    THROTTLE,
    Judged,
    accelerator_of,
    control_drift,
    judged,
    slow_nodes,
)

GOLDEN = Path(__file__).parents[2] / "golden/calib-result-1.json"
PEAK = 989e12
PEAKS = {"bf16": PEAK, "fp8": 2 * PEAK, "fp32": 67e12}
BANDWIDTH = 3.35e12


@pytest.fixture
def found():
    """The stored result as a quiet H100 would have it: steady, at 70% of its peaks."""
    found = json.loads(GOLDEN.read_text())
    found["provenance"] |= {"reduced": False}
    found["provenance"]["device"] |= {
        "kind": "cuda", "name": "NVIDIA H100 80GB HBM3", "sku_key": "H100-80GB-SXM",
        "memory_bytes": 79.6 * 2**30,
    }  # fmt: skip
    for node in found["nodes"]:
        node["device_name"] = "NVIDIA H100 80GB HBM3"
    for control in found["control"]:
        control["t_med_s"] = 2e-4
    for row in found["results"]:
        work = row["flops"] / PEAKS[row["dtype"]] if "flops" in row else row["bytes"] / BANDWIDTH
        at(row, work / 0.7)
        row["rel_iqr"] = 0.01
    return found


def at(row, time_s):
    """A row that took exactly this long."""
    row |= dict.fromkeys(("t_min_s", "t_p10_s", "t_med_s", "t_p90_s"), time_s)
    if "t_med_by_node_s" in row:
        row["t_med_by_node_s"] = [time_s] * len(row["t_med_by_node_s"])


def verdict(found, peaks=PEAKS, bandwidth=BANDWIDTH) -> Judged:
    return judged(
        parse_result(json.dumps(found)), peak_flops_by_dtype=peaks, memory_bandwidth=bandwidth
    )


def codes(found, severity=None):
    return {f.code for f in verdict(found).flags if severity in (None, f.severity)}


def first(found, probe, **fields):
    return next(
        row
        for row in found["results"]
        if row["probe"] == probe and all(row.get(k) == v for k, v in fields.items())
    )


def test_a_steady_result_is_ok(found):
    answer = verdict(found)
    assert (answer.status, answer.flags, answer.drift) == ("ok", (), 0.0)
    assert answer.is_usable
    assert answer.refusal() == ""


def test_the_stored_cpu_result_is_usable():
    found = verdict(json.loads(GOLDEN.read_text()), {}, None)
    assert found.is_usable
    assert {"roof_unchecked", "reduced", "sku_untold"} <= {f.code for f in found.flags}


@pytest.mark.parametrize(
    ("file", "accelerator"), [("h100", "H100-80GB-SXM"), ("h200", "H200-141GB-SXM")]
)
def test_a_real_gpu_is_known_by_its_name_and_stays_below_its_datasheet(file, accelerator):
    """One H100 and one H200 of 2026-11-26, measured with the probe of then, which took its first
    control after 4 s of work: both were 6% faster than 40 s later."""
    text = (GOLDEN.parent / f"calib-result-{file}.json").read_text()
    result = parse_result(text.encode())
    assert accelerator_of(result.provenance.device) == accelerator
    found = verdict(json.loads(text), {"bf16": 989.4e12}, 4.8e12)
    assert found.is_usable
    assert {"sku_by_name", "power_cap", "drift"} <= {f.code for f in found.flags}
    assert 0.05 < found.drift < 0.12


# --- the roof ------------------------------------------------------------------------------------


def test_900_percent_of_peak_is_invalid_and_refused(found):
    row = first(found, "matmul", dtype="bf16")
    at(row, row["flops"] / PEAK / 9)
    answer = verdict(found)
    assert answer.status == "invalid"
    assert not answer.is_usable
    assert answer.refusal() == (
        "matmul square bf16: 900% of the datasheet peak, and at most 102% can be true."
    )
    assert answer.flags[0].rows == (found["results"].index(row),)


@pytest.mark.parametrize("probe", ["matmul", "attention", "block", "layers", "holdout", "overlap"])
@pytest.mark.parametrize(("share", "code"), [(1.01, set()), (1.03, {"roof"})])
def test_the_roof_is_two_percent_above_the_datasheet(found, probe, share, code):
    row = first(found, probe)
    at(row, row["flops"] / PEAKS[row["dtype"]] / share)
    assert codes(found) == code


def test_each_dtype_has_its_own_roof(found):
    """What is possible in fp8 is not in bf16."""
    row = first(found, "matmul", dtype="bf16")
    at(row, row["flops"] / (1.5 * PEAK))
    assert codes(found) == {"roof"}
    row["dtype"] = "fp8"
    assert codes(found) == set()


def test_memory_is_not_read_faster_than_the_datasheet_says(found):
    row = first(found, "memory_bandwidth", label="copy")
    at(row, row["bytes"] / (1.1 * BANDWIDTH))
    assert codes(found, "invalid") == {"roof"}


def test_a_roof_that_is_not_known_is_named(found):
    answer = verdict(found, {"bf16": PEAK}, None)
    assert answer.status == "ok"
    assert [f.sentence for f in answer.flags] == [
        "No peak is known for fp32, memory: those rates are not checked."
    ]


def test_the_peaks_of_the_facts_are_what_it_takes(found):
    h100 = accelerator("H100-80GB-SXM")
    answer = judged(
        parse_result(json.dumps(found)),
        peak_flops_by_dtype={"bf16": h100.bf16_flops_per_s, "fp32": 67e12},
        memory_bandwidth=h100.memory_bytes_per_s,
    )
    assert answer.status == "ok"


# --- disturbed -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("factor", "code"), [(1.049, set()), (1.06, {"drift"})])
def test_drift_is_what_the_control_moved(found, factor, code):
    found["control"][3]["t_med_s"] *= factor
    assert codes(found, "suspect") == code
    assert control_drift(parse_result(json.dumps(found))) == pytest.approx(factor - 1)


@pytest.mark.parametrize("left", [[], ["start"], ["matmul", "layers"]])
def test_a_missing_control_is_invalid(found, left):
    found["control"] = [c for c in found["control"] if c["after_group"] in left]
    assert codes(found, "invalid") == {"control_missing"}


def test_a_control_that_is_missing_after_one_group_names_it(found):
    found["control"] = [c for c in found["control"] if c["after_group"] != "holdout"]
    assert verdict(found).refusal() == "The control operation is missing after holdout."


@pytest.mark.parametrize(
    ("probe", "rel_iqr", "code"),
    [
        ("matmul", 0.049, set()),
        ("matmul", 0.06, {"spread"}),
        ("collectives", 0.2, set()),
        ("collectives", 0.4, {"spread"}),
    ],
)
def test_a_wide_spread_is_suspect(found, probe, rel_iqr, code):
    first(found, probe)["rel_iqr"] = rel_iqr
    assert codes(found, "suspect") == code


def test_a_cpu_may_spread_more_than_a_gpu(found):
    first(found, "matmul")["rel_iqr"] = 0.2
    assert codes(found) == {"spread"}
    found["provenance"]["device"] |= {"kind": "cpu", "sku_key": None}
    assert "spread" not in codes(found)


@pytest.mark.parametrize("moment", ["state_before", "state_during", "state_after"])
@pytest.mark.parametrize("bit", THROTTLE)
def test_a_throttled_device_is_suspect_whenever_it_was(found, moment, bit):
    found["groups"][2][moment]["throttle_bits"] = float(bit | 0x1)
    (flag,) = verdict(found).flags
    assert (flag.code, flag.severity) == ("throttle", "suspect")
    assert THROTTLE[bit] in flag.sentence


def test_the_power_limit_is_a_note(found):
    found["groups"][0]["state_during"]["throttle_bits"] = 4.0
    assert verdict(found).status == "ok"
    assert codes(found) == {"power_cap"}


def test_a_slow_node_is_named(found):
    found["provenance"]["world_size"] = 6
    found["nodes"] = [
        {**found["nodes"][0], "index": i, "host": name}
        for i, name in enumerate(("good", "sick", "fine"))
    ]
    for row in found["results"]:
        if "t_med_by_node_s" in row:
            one = row["t_med_s"]
            row["t_med_by_node_s"] = [one, one * 1.12, one * 1.01]
    assert slow_nodes(parse_result(json.dumps(found))) == {1: pytest.approx(1.12 / 1.01)}
    (flag,) = verdict(found).flags
    assert flag.sentence == "Node 1 ('sick') is 11% slower than the median node."


def test_an_incomplete_run_is_suspect(found):
    found["complete"] = False
    assert codes(found, "suspect") == {"incomplete"}


def test_a_loaded_cpu_is_suspect(found):
    found["provenance"]["device"] |= {"kind": "cpu", "sku_key": None}
    found["groups"][1]["state_before"]["load_1min"] = 9.0
    assert "load" in codes(found, "suspect")


# --- wrong ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", sorted(MAX_ERROR))
def test_an_operation_that_differs_from_float64_is_invalid(found, dtype):
    row = first(found, "matmul")
    at(row, 1.0)
    row |= {"dtype": dtype, "rel_err": 0.9 * MAX_ERROR[dtype]}
    assert verdict(found, {}, None).status == "ok"
    row["rel_err"] = 1.1 * MAX_ERROR[dtype]
    assert codes(found, "invalid") == {"numerics"}


def test_inputs_that_were_not_random_are_invalid(found):
    row = first(found, "matmul")
    row["data_entropy_bits"] = MIN_ENTROPY_BITS + 0.1
    assert codes(found) == set()
    row["data_entropy_bits"] = 0.0
    assert codes(found, "invalid") == {"data_entropy"}


@pytest.mark.parametrize(("probe", "mode"), [("holdout", "step"), ("layers", "step")])
@pytest.mark.parametrize("last", [7.0, 7.1, 1e9])
def test_a_loss_that_does_not_fall_is_invalid(found, probe, mode, last):
    first(found, probe, mode=mode).update(loss_first=7.0, loss_last=last)
    assert codes(found, "invalid") == {"loss"}


def test_a_wrong_collective_is_invalid(found):
    first(found, "collectives", label="all_to_all")["wrong"] = 1
    assert verdict(found).refusal() == (
        "collectives all_to_all fp32: the result of the operation is wrong."
    )


# --- another machine -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "memory_gib", "code"),
    [
        ("NVIDIA H100 80GB HBM3", 79.6, None),
        ("NVIDIA A100-SXM4-80GB", 79.2, "sku"),
        ("NVIDIA H200", 140.4, "sku"),
        ("Mystery Accelerator 9000", 80.0, "sku_unknown"),
    ],
)
def test_the_device_must_be_the_one_that_was_meant(found, name, memory_gib, code):
    found["provenance"]["device"] |= {"name": name, "memory_bytes": memory_gib * 2**30}
    found["nodes"][0]["device_name"] = name
    assert codes(found) == ({code} if code else set())
    assert verdict(found).status == {None: "ok", "sku": "invalid", "sku_unknown": "suspect"}[code]


def test_a_cpu_is_no_accelerator(found):
    found["provenance"]["device"] |= {"kind": "cpu", "name": "AMD EPYC"}
    found["nodes"][0]["device_name"] = "AMD EPYC"
    assert verdict(found).refusal() == (
        "The result is meant for H100-80GB-SXM but was measured on 'AMD EPYC'."
    )


def test_an_unknown_sku_is_invalid_with_a_suggestion(found):
    found["provenance"]["device"]["sku_key"] = "H100-80GB-SMX"
    answer = verdict(found)
    assert answer.status == "invalid"
    assert "Did you mean" in answer.refusal()


def test_nodes_of_different_devices_are_suspect(found):
    found["provenance"]["world_size"] = 4
    found["nodes"].append({**copy.deepcopy(found["nodes"][0]), "index": 1})
    found["nodes"][1]["device_name"] = "NVIDIA A100-SXM4-80GB"
    for row in found["results"]:
        if "t_med_by_node_s" in row:
            row["t_med_by_node_s"] *= 2
    assert codes(found) == {"mixed_devices"}
