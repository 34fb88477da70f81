"""Results of a probe of a machine whose true rates are known: forecasts of it, as measurements."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson

from core.layout.precision import matmul_speedup
from core.machine.calibration import Calibrated, applied
from core.machine.cluster import Cluster
from core.time import attention as time_attention
from core.time import collectives as time_collectives
from hardware.efficiency import efficiency
from hardware.facts import accelerator
from runners.calibration.fit import forecast, machine_of
from runners.calibration.fit_compute import standalone_s
from runners.calibration.probe_plan import probe_plan
from runners.calibration.result import CalibResult, Row, parse_result

EFF = efficiency("generic")
H100 = "H100-80GB-SXM"
DIGEST = "0" * 64


def machine(**factors: Any) -> Cluster:
    """An H100 machine whose true rates are those factors of what is assumed."""
    return applied(machine_of(accelerator(H100)), Calibrated(**factors))


def times(seconds: float) -> dict[str, float]:
    """The median of a row and how far its samples lie around it."""
    share = {"t_med_s": 1.0, "t_p10_s": 0.998, "t_p90_s": 1.004, "t_min_s": 0.996}
    return {name: seconds * of for name, of in share.items()}


def row(probe: str, label: str, time_s: float, **more: Any) -> dict[str, Any]:
    """One measured row, without any spread unless it is given."""
    spread = more.pop("rel_iqr", 0.004)
    return {
        "probe": probe, "label": label, "params": {}, "mode": "fwd", "cold_cache": True,
        **times(time_s), "rel_iqr": spread, "n": 50, "calls_per_sample": 1, **more,
    }  # fmt: skip


def _matmuls(true: Cluster, plan: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    for shape in plan["shapes"]:
        m, n, k = (int(shape[a]) for a in "mnk")
        for dtype, bits in (("bf16", 16.0), ("fp8", 8.0)):
            given = row("matmul", shape["label"], 1.0, params={"m": m, "n": n, "k": k},
                        dtype=dtype, flops=2.0 * m * n * k, rel_err=1e-3,
                        data_entropy_bits=7.05)  # fmt: skip
            speedup = matmul_speedup(
                matmul_bits=bits, fp8_ratio=true.fp8_ratio, fp4_ratio=true.fp4_ratio,
                fp8_fraction=EFF.fp8_of_peak_ratio, fp4_fraction=EFF.fp4_of_peak_ratio,
            )  # fmt: skip
            seconds = standalone_s(
                Row.model_validate(given), true, EFF, speedup=float(np.asarray(speedup)),
                input_bytes=bits / 8,
            )  # fmt: skip
            found.append({**given, **times(seconds)})
    return found


def _attention(true: Cluster, plan: dict[str, Any]) -> list[dict[str, Any]]:
    (a,) = plan["attention"]
    flops = 2.0 * a["batch"] * a["num_heads"] * a["seq_len"] ** 2 * a["head_dim"]
    forward = time_attention.forward_s(
        flops=flops,
        flops_per_s=true.peak_flops_per_s * EFF.attention_forward * true.attention_factor
        * EFF.flash2**true.newer_than_flash2,
        head_dim=a["head_dim"], half_head_dim=EFF.attention_half_head_dim,
        unaligned_slowdown=EFF.unaligned_slowdown, seq_len=a["seq_len"],
        half_tokens=EFF.attention_half_tokens,
    )  # fmt: skip
    backward = time_attention.backward_s(forward_s=forward, relative_rate=EFF.attention_backward)
    params = {k: v for k, v in a.items() if k != "label"}
    return [
        row("attention", "plan", float(forward), params=params, dtype="bf16", flops=flops),
        row("attention", "plan", float(forward + backward), params=params, dtype="bf16",
            mode="fwdbwd", flops=3.5 * flops),
    ]  # fmt: skip


def _training(true: Cluster, plan: dict[str, Any]) -> list[dict[str, Any]]:
    block = {k: v for k, v in plan["block"].items() if isinstance(v, int)}
    block.pop("holdout_layers")
    found = []
    for probe, count in (("layers", 1), ("layers", 3), ("holdout", 4)):
        params = {**block, "num_layers": count}
        given = row(probe, probe, 1.0, params=params, dtype="bf16", flops=1.0, mode="step",
                    loss_first=11.0, loss_last=9.0)  # fmt: skip
        parts = forecast(Row.model_validate(given), true, EFF).parts
        whole = float(sum(v.item() for v in parts.values()))
        found.append({**given, **times(whole)})
        if probe == "layers":
            both = {"mode": "fwdbwd", "loss_first": None, "loss_last": None}
            found.append({**given, **both, **times(whole - parts["optimizer"].item())})
    return found


def _collectives(true: Cluster, *, nodes: int, bus_bytes_per_s: float, hop_s: float) -> Any:
    ranks = 8 * nodes
    factor = 2 * (ranks - 1) / ranks
    for exponent in range(3, 31, 2):
        seconds = time_collectives.all_reduce_s(
            size_bytes=2.0**exponent, ranks=ranks, bytes_per_s=bus_bytes_per_s, latency_s=hop_s
        )
        yield row(
            "collectives", "all_reduce", float(seconds), dtype="fp32", bytes=2.0**exponent,
            bus_factor=factor, wrong=0,
            params={"op": "all_reduce", "group": f"nodes_{nodes}", "ranks": ranks, "nodes": nodes},
        )  # fmt: skip


def document(true: Cluster, **more: Any) -> dict[str, Any]:
    """A whole result of that machine as JSON values."""
    plan = probe_plan(run_id="made-up", launcher="ssh", planner_version="0", sku_key=H100)
    rows = [
        row("memory_bandwidth", "copy", 2e9 / (true.memory_bytes_per_s * EFF.memory),
            params={"size_bytes": 10**9}, bytes=2e9, dtype="fp32"),
        *_matmuls(true, plan), *_attention(true, plan), *_training(true, plan),
        row("host_device", "host_to_device", 1e9 / (true.host_link_bytes_per_s * EFF.host_link),
            params={"size_bytes": 10**9, "pinned": True}, bytes=1e9),
        row("checkpoint", "write", 4.0, bytes=4e9, params={"size_bytes": 4 * 10**9,
            "fsync": True, "file_system": "xfs", "writers": 8}),
        *_collectives(true, nodes=1, bus_bytes_per_s=EFF.scale_up * true.scale_up_bytes_per_s,
                      hop_s=1e-6),
        *_collectives(true, nodes=2, bus_bytes_per_s=8 * EFF.scale_out * true.scale_out_bytes_per_s,
                      hop_s=4e-6),
    ]  # fmt: skip
    names = list(dict.fromkeys(r["probe"] for r in rows))
    return {
        "schema": "calib-result/1", "probe_version": 1, "run_id": "made-up", "complete": True,
        "wall_s": 400.0, "budget_s": 600.0, "usd": 2.0, "provenance": _provenance(),
        "nodes": [{"index": n, "ranks": 8, "host": f"node{n}", "device_name":
                   "NVIDIA H100 80GB HBM3", "uuid": None} for n in range(2)],
        "groups": [], "skipped": [],
        "control": [{"at_s": float(n), "after_group": name, "t_med_s": 1e-3, "rel_iqr": 0.003,
                     "n": 20} for n, name in enumerate(("start", *names))],
        "results": rows, **more,
    }  # fmt: skip


def _provenance() -> dict[str, Any]:
    return {
        "utc_start": "2026-11-01T10:00:00Z", "utc_end": "2026-11-01T10:07:00Z", "sessions": 1,
        "planner_version": "0", "planner_commit": None, "probe_sha256": DIGEST,
        "plan_sha256": DIGEST, "reduced": False, "argv": ["node.py"], "launcher": "ssh",
        "job_id": None, "told": {}, "host": "node0", "anonymised": False, "python": "3.11.7",
        "torch": "2.13.0", "cuda": "13.0", "hip": None, "cudnn": "9.1", "nccl": "2.28",
        "triton": "3.5", "driver": "580.10", "os": "Linux 6.8", "env": {}, "num_threads": 8,
        "num_cpus": 128, "fp32_matmul_precision": "highest", "world_size": 16, "topology": None,
        "device": {"kind": "cuda", "name": "NVIDIA H100 80GB HBM3", "sku_key": H100,
                   "memory_bytes": 85_000_000_000.0, "num_local": 8},
    }  # fmt: skip


def result(true: Cluster, **more: Any) -> CalibResult:
    """A whole result of that machine, parsed as results from outside are."""
    return parse_result(orjson.dumps(document(true, **more)))


def without(found: CalibResult, *probes: str) -> CalibResult:
    """A result that did not measure some groups."""
    kept = [r for r in found.results if r.probe not in probes]
    return found.model_copy(update={"results": kept})


def noisy(found: CalibResult, sigma: float, seed: int) -> CalibResult:
    """Every time wrong by a few percent."""
    random = np.random.default_rng(seed)
    rows = []
    for r in found.results:
        e = float(np.exp(random.normal(0, sigma)))
        times = {n: getattr(r, n) * e for n in ("t_med_s", "t_p10_s", "t_p90_s", "t_min_s")}
        rows.append(r.model_copy(update=times))
    return found.model_copy(update={"results": rows})
