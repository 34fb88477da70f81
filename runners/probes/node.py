"""Measure one node, or several at once: one file that needs Python >= 3.9 and torch >= 2.4.

    python node.py --plan plan.json --out result.json [--budget-s S]
    torchrun --nproc-per-node 8 node.py --plan plan.json --out result.json

plan.json is `calib-plan/1` (runners/probe_plan.py writes it), the result is `calib-result/1`
(runners/result.py reads it; docs/calibration-result.md says what every key means). The result is
written to --out and printed on standard output between two marker lines. After each group of
measurements it is written to --out + ".part": a run that was killed goes on from there.
Exit status: 0 measured, 2 bad plan or option, 3 the device is busy, 4 the budget is too small.

How it measures. Inputs are N(0, 1). Every operation is warmed up by count and by time. On a GPU a
sample is one call between two events, all samples are queued before one synchronization, and a
buffer larger than the last-level cache is written before each (`cold_cache`). On a CPU a sample is
enough calls to fill a millisecond, with warm caches. Medians and spreads are reported, never the
best. One fixed matmul, the control, is timed before the first group and after every one: what it
moves is the drift of the session. Nothing of the machine is ever set, no clock and no limit.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import datetime
import hashlib
import io
import json
import math
import os
import platform
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812 - as everybody calls it
from torch import Tensor, nn

SCHEMA = "calib-result/1"
PLAN_SCHEMA = "calib-plan/1"
PROBE_VERSION = 1  # raised when the method changes: results of two methods never mix
OK, BAD_PLAN, BUSY, TOO_LITTLE = 0, 2, 3, 4

Row = dict[str, Any]
Call = Callable[[], Any]
# What an operation that a machine cannot do raises; anything else is a bug and ends the run.
FAILURES = (RuntimeError, NotImplementedError, ValueError, TypeError, AttributeError, OSError)
NOT_A_NUMBER = 1e9  # written for an error or a loss that is not finite: JSON has no NaN

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
WARM_UP_CALLS = 3
WARM_UP_S = {"cpu": 0.02, "gpu": 0.2}
MIN_SAMPLES, MAX_SAMPLES = 7, 200
CPU_SAMPLE_S = 1e-3
MIB, GIB = 2**20, 2**30

FLOP_CONVENTIONS = {
    "matmul": "2 m n k",
    "attention": "4 b h s^2 d forward, half of it where causal; backward 2.5 times forward",
    "block": "2 per weight and token, causal attention once; backward twice forward",
}
BYTE_CONVENTIONS = {
    "memory_bound": "inputs read and outputs written once",
    "copy": "read and written: twice the size of the buffer",
    "transfer": "the size of the buffer",
    "optimizer": "28 per parameter: weight, gradient, two moments read; all but gradient written",
    "collective": "size of the larger of a rank's input and output buffer, as nccl-tests",
}


USED_UP = "the budget was used up"
# A group that would rather not begin than be cut off: what it prepares takes its time.
LEAST_S = {"compiled_block": 20.0}
TOGETHER = ("collectives", "overlap")  # groups in which ranks wait for each other


class PlanError(ValueError):
    """The plan or an option cannot be used; the text is shown to the user."""


# --- the plan ------------------------------------------------------------------------------------

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
SHAPE_KEYS = ("m", "n", "k")
ATTENTION_KEYS = ("batch", "num_heads", "num_kv_heads", "seq_len", "head_dim")
BLOCK_KEYS = (
    "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_kv_heads", "head_dim",
    "vocab_size", "seq_len", "micro_batch_size",
)  # fmt: skip


def read_plan(path: str) -> dict[str, Any]:
    """A calib-plan/1 file; anything else is a PlanError that says what is wrong."""
    try:
        plan = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PlanError(f"the plan {path} cannot be read: {error}") from None
    if not isinstance(plan, dict) or plan.get("schema") != PLAN_SCHEMA:
        raise PlanError(f"the plan {path} is not a {PLAN_SCHEMA} file")
    if not RUN_ID.fullmatch(str(plan.get("run_id"))):
        raise PlanError("run_id must be 1 to 64 letters, digits, '.', '_' or '-'")
    groups = plan.get("groups")
    if not isinstance(groups, list) or not groups or len(set(map(str, groups))) != len(groups):
        raise PlanError("groups must be a list of different names")
    if unknown := [str(g) for g in groups if g not in GROUPS]:
        raise PlanError(f"unknown groups {', '.join(unknown)}; known: {', '.join(GROUPS)}")
    if bad := [str(d) for d in plan.get("dtypes", ()) if d not in (*DTYPES, "fp8")]:
        raise PlanError(f"unknown dtypes {', '.join(bad)}; known: {', '.join(DTYPES)}, fp8")
    if not plan.get("dtypes") or plan["dtypes"][0] not in DTYPES:
        raise PlanError(f"dtypes must begin with one of {', '.join(DTYPES)}")
    for key, names in (("shapes", SHAPE_KEYS), ("attention", ATTENTION_KEYS)):
        for shape in plan.get(key) or ():
            _check_sizes(key, shape, names)
    _check_sizes("block", plan.get("block"), BLOCK_KEYS)
    counts = plan["block"].get("layer_counts", [1, 3])
    if not isinstance(counts, list) or len(counts) != 2 or counts[0] == counts[1]:
        raise PlanError("block: layer_counts must be two different numbers of layers")
    for count in (*counts, plan["block"].get("holdout_layers", 4)):
        _check_sizes("block", {"layers": count}, ("layers",))
    for name in ("row_s", "collective_s"):
        seconds = plan.get(name)
        if seconds is not None and not (isinstance(seconds, (int, float)) and 0 < seconds <= 1e5):
            raise PlanError(f"{name} must be seconds above 0, not {seconds!r}")
    _check_sizes("plan", plan, ("collective_max_bytes",))
    return plan


def _check_sizes(where: str, given: Any, names: tuple[str, ...]) -> None:
    if not isinstance(given, dict):
        raise PlanError(f"{where} must be an object with {', '.join(names)}")
    for name in names:
        value = given.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 2**40:
            raise PlanError(f"{where}: {name} must be a whole number from 1, not {value!r}")


# --- ranks ---------------------------------------------------------------------------------------


class Ranks:
    """The processes of this run. Alone, every method returns what it was given."""

    def __init__(self) -> None:
        env = os.environ
        self.rank = int(env.get("RANK", "0"))
        self.world = int(env.get("WORLD_SIZE", "1"))
        self.local_rank = int(env.get("LOCAL_RANK", "0"))
        self.local_world = int(env.get("LOCAL_WORLD_SIZE", "0") or 0)
        self.distributed = "RANK" in env and "MASTER_ADDR" in env
        self.control: Any = None  # objects and decisions travel over the CPU
        self.node_of = [0]

    def join(self, kind: str) -> None:
        """Meet the other ranks, first over gloo: a busy device is found before it is used."""
        if not self.distributed:
            return
        limit = datetime.timedelta(seconds=300)
        backend = "gloo" if kind == "cpu" else "cpu:gloo,cuda:nccl"
        dist.init_process_group(backend, timeout=limit)
        self.control = dist.new_group(backend="gloo", timeout=limit)
        node = os.environ.get("GROUP_RANK")  # torchrun's number of the node
        if node is None and self.local_world:
            node = str(self.rank // self.local_world)
        names = self.gather(node if node is not None else socket.gethostname())
        order = sorted(set(names), key=names.index)
        self.node_of = [order.index(name) for name in names]

    def gather(self, value: Any) -> list[Any]:
        """One value of each rank, in the order of ranks, on every rank."""
        if not self.distributed:
            return [value]
        values: list[Any] = [None] * self.world
        dist.all_gather_object(values, value, group=self.control)
        return values

    def decided(self, value: Any) -> Any:
        """What rank 0 says: ranks whose clocks differ must not part ways."""
        if not self.distributed:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0, group=self.control)
        return box[0]

    def slowest(self, times: list[float]) -> list[float]:
        """Sample by sample, the maximum over all ranks."""
        if not self.distributed:
            return times
        worst = torch.tensor(times, dtype=torch.float64)
        dist.all_reduce(worst, op=dist.ReduceOp.MAX, group=self.control)
        return worst.tolist()

    def members(self) -> dict[str, list[list[int]]]:
        """Process groups by name: within a node, across nodes (equal local ranks), all."""
        if self.world < 2:
            return {}
        nodes = [
            [r for r in range(self.world) if self.node_of[r] == node]
            for node in sorted(set(self.node_of))
        ]
        if len(nodes) == 1:
            return {"intra_node": nodes}
        width = min(map(len, nodes))
        across = [[ranks[i] for ranks in nodes] for i in range(width)]
        if width == 1:
            return {"inter_node": across}
        return {"intra_node": nodes, "inter_node": across, "world": [list(range(self.world))]}


# --- the device ----------------------------------------------------------------------------------


class Device:
    """cuda, rocm or cpu: where tensors live, how calls are timed, what the device says."""

    def __init__(self, local_rank: int, *, allow_gpu: bool = True) -> None:
        gpu = allow_gpu and torch.cuda.is_available()
        self.kind = ("rocm" if torch.version.hip else "cuda") if gpu else "cpu"
        self.gpu = gpu
        self.index = local_rank % torch.cuda.device_count() if gpu else 0
        self.torch = torch.device("cuda", self.index) if gpu else torch.device("cpu")
        self.smi: list[str] = []
        self._cache: Tensor | None = None

    def visible_id(self) -> str:
        """This device as nvidia-smi knows it: an index, or what CUDA_VISIBLE_DEVICES names."""
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
        named = [v.strip() for v in visible if v.strip()]
        return named[self.index] if self.index < len(named) else str(self.index)

    def start(self) -> None:
        """Claim the device; only after it was seen to be idle."""
        if self.gpu:
            torch.cuda.set_device(self.index)
        torch.manual_seed(0)

    def sync(self) -> None:
        if self.gpu:
            torch.cuda.synchronize()

    def flush(self) -> None:
        """Write a buffer of at least twice the last-level cache, so that a sample starts cold."""
        if self._cache is None:
            # ROCm reports the L2 of one die; the cache behind it has 256 MiB on MI300X.
            cache = int(getattr(torch.cuda.get_device_properties(self.index), "L2_cache_size", 0))
            least = 512 * MIB if self.kind == "rocm" else 256 * MIB
            self._cache = torch.empty(max(2 * cache, least), dtype=torch.int8, device=self.torch)
        self._cache.zero_()

    def free_bytes(self) -> int:
        if self.gpu:
            return int(torch.cuda.mem_get_info(self.index)[0])
        with contextlib.suppress(OSError, ValueError, AttributeError):
            return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return 4 * GIB

    def release(self) -> None:
        if self.gpu:
            torch.cuda.empty_cache()


# nvidia-smi's name -> ours and the factor to our unit.
SMI = {
    "clocks.sm": ("clock_sm_mhz", 1.0),
    "clocks.mem": ("clock_mem_mhz", 1.0),
    "clocks.max.sm": ("clock_max_sm_mhz", 1.0),
    "power.draw": ("power_w", 1.0),
    "power.limit": ("power_limit_w", 1.0),
    "temperature.gpu": ("temperature_c", 1.0),
    "utilization.gpu": ("utilization", 0.01),
    "memory.used": ("memory_used_bytes", float(MIB)),
    "clocks_event_reasons.active": ("throttle_bits", 1.0),
}
THROTTLE_FIELD, OLD_THROTTLE_FIELD = "clocks_event_reasons.active", "clocks_throttle_reasons.active"
SMI_IDENTITY = ("pcie.link.gen.current", "pcie.link.width.current", "mig.mode.current",
                "ecc.mode.current", "uuid", "driver_version")  # fmt: skip
BUSY_UTILIZATION = 0.05


def output_of(*command: str, timeout_s: float = 10.0) -> str | None:
    """Standard output of a command that may not exist, or None."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout_s, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def smi_state(line: str) -> dict[str, float]:
    """One CSV line of nvidia-smi in our units; what a device does not report is left out."""
    state: dict[str, float] = {}
    cells = next(csv.reader(io.StringIO(line)), [])
    for i, (name, factor) in enumerate(SMI.values()):
        text = cells[i].strip() if i < len(cells) else ""
        with contextlib.suppress(ValueError):
            value = float(int(text, 16)) if text.startswith("0x") else float(text)
            state[name] = value * factor
    return {name: value for name, value in state.items() if math.isfinite(value)}


def smi_query(device: Device) -> list[str]:
    """The command that prints a device's state; drivers differ in the name of one field."""
    if not device.smi:
        fields = "--query-gpu=" + ",".join(SMI)
        command = ["nvidia-smi", f"--id={device.visible_id()}", fields]
        device.smi = [*command, "--format=csv,noheader,nounits"]
        if output_of(*device.smi) is None:
            device.smi[2] = fields.replace(THROTTLE_FIELD, OLD_THROTTLE_FIELD)
    return device.smi


def machine_state(device: Device) -> dict[str, float]:
    """Clocks, power, temperature and load of this moment, as far as the machine tells."""
    state: dict[str, float] = {}
    if device.kind == "cuda" and (text := output_of(*smi_query(device))):
        state = smi_state(text)
    elif device.kind == "rocm":
        state = rocm_state(device)
    with contextlib.suppress(OSError, AttributeError):
        state["load_1min"] = os.getloadavg()[0]
    return state


def rocm_state(device: Device) -> dict[str, float]:
    """What torch reads through amdsmi, where that is installed."""
    readings = {
        "utilization": (torch.cuda.utilization, 0.01), "temperature_c": (torch.cuda.temperature, 1),
        "power_w": (torch.cuda.power_draw, 1e-3), "clock_sm_mhz": (torch.cuda.clock_rate, 1),
    }  # fmt: skip
    state = {}
    # torch has imported it where it is installed; its errors have no base but Exception.
    error = getattr(sys.modules.get("amdsmi"), "AmdSmiException", RuntimeError)
    for name, (read, factor) in readings.items():
        with contextlib.suppress(ImportError, error, *FAILURES):
            state[name] = float(read(device.index)) * factor
    return state


def why_busy(device: Device) -> str | None:
    """Who else is on the device, asked before this process is on it itself."""
    if not device.gpu:
        return None
    device_id = device.visible_id()
    state = machine_state(device)
    if state.get("utilization", 0.0) > BUSY_UTILIZATION:
        return f"device {device_id} is {state['utilization']:.0%} busy"
    if device.kind == "cuda":
        apps = output_of("nvidia-smi", f"--id={device_id}", "--query-compute-apps=pid",
                         "--format=csv,noheader") or ""  # fmt: skip
        pids = [p.strip() for p in apps.splitlines() if p.strip().isdigit()]
        if pids:
            return f"device {device_id} runs {len(pids)} other processes"
    return None


class Monitor:
    """Samples of nvidia-smi twice a second, beside the measurements."""

    def __init__(self, device: Device) -> None:
        self._samples: list[dict[str, float]] = []
        self._process: subprocess.Popen[str] | None = None
        if device.kind == "cuda" and shutil.which("nvidia-smi"):
            command = [*smi_query(device), "--loop-ms=500"]
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            self._reader = threading.Thread(target=self._read, daemon=True)
            self._reader.start()

    def _read(self) -> None:
        if self._process and self._process.stdout:
            self._samples.extend(map(smi_state, self._process.stdout))

    def taken(self) -> dict[str, float]:
        """Since the last call: lowest clock, highest power and temperature, all throttle bits."""
        samples, self._samples[:] = list(self._samples), []
        return during(samples)

    def stop(self) -> None:
        if self._process:
            self._process.terminate()
            self._process.wait(timeout=10)
            self._reader.join(timeout=10)
            if self._process.stdout:
                self._process.stdout.close()


def during(samples: list[dict[str, float]]) -> dict[str, float]:
    """Several states as one: the worst of each, throttle reasons of any."""
    state: dict[str, float] = {}
    for name in sorted(set().union(*samples)) if samples else []:
        values = [s[name] for s in samples if name in s]
        if name == "throttle_bits":
            bits = 0
            for value in values:
                bits |= int(value)
            state[name] = float(bits)
        else:
            state[name] = min(values) if name == "clock_sm_mhz" else max(values)
    return state


# --- sampling ------------------------------------------------------------------------------------


def gpu_event() -> Any:
    event: Any = torch.cuda.Event  # torch does not type it
    return event(enable_timing=True)


def normal(*shape: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """N(0, 1): zeros and small integers switch fewer transistors and run faster than training."""
    return torch.randn(shape, dtype=torch.float32, device=device).to(dtype)


def entropy_bits(x: Tensor) -> float:
    """Entropy of a histogram of 256 bins on [-4, 4]: 7.05 for N(0, 1), 0 for a constant.

    Another distribution has less: a uniform one on [0, 1) 5, integers from 0 next to none.
    """
    values = x.detach().flatten()[:65536].float().cpu()
    counts = torch.histc(values.clamp(-4.0, 4.0), bins=256, min=-4.0, max=4.0)
    shares = counts[counts > 0] / max(values.numel(), 1)
    return float(-(shares * shares.log2()).sum())


def quantile(ordered: list[float], share: float) -> float:
    """By linear interpolation between the two nearest of ordered values."""
    at = share * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def summary(times: list[float], *, calls: int = 1, cold: bool = False) -> Row:
    """What is reported of samples: median and spread, never the best alone."""
    ordered = sorted(t / calls for t in times)
    median = statistics.median(ordered)
    iqr = quantile(ordered, 0.75) - quantile(ordered, 0.25)
    return {
        "t_med_s": median,
        "t_p10_s": quantile(ordered, 0.1),
        "t_p90_s": quantile(ordered, 0.9),
        "t_min_s": ordered[0],
        "rel_iqr": iqr / median if median > 0 else 0.0,
        "n": len(ordered),
        "calls_per_sample": calls,
        "cold_cache": cold,
    }


def event_samples(call: Call, n: int, *, flush: Call, sync: Call, event: Call) -> list[float]:
    """Seconds of n calls: each between two events, after a flush; one wait at the end."""
    pairs = [(event(), event()) for _ in range(n)]
    for start, end in pairs:
        flush()
        start.record()
        call()
        end.record()
    sync()
    return [start.elapsed_time(end) * 1e-3 for start, end in pairs]


def clock_samples(call: Call, *, calls: int, seconds: float, least: int, most: int) -> list[float]:
    """Seconds of samples of `calls` calls each, until the time is used up."""
    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < least or (len(times) < most and time.perf_counter() - begin < seconds):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        times.append(time.perf_counter() - start)
    return times


def warm_up(call: Call, sync: Call, *, seconds: float) -> float:
    """Call until both a count and a time are reached; seconds of one call of the last round."""
    begin = time.perf_counter()
    while True:
        start = time.perf_counter()
        for _ in range(WARM_UP_CALLS):
            call()
        sync()
        now = time.perf_counter()
        if now - begin >= seconds:
            return max((now - start) / WARM_UP_CALLS, 1e-9)


def relative_error(got: Tensor, wanted: Tensor) -> float:
    """Norm of the difference over the norm, in float64; never NaN."""
    difference = (got.double() - wanted).norm() / wanted.norm().clamp_min(1e-300)
    return finite(float(difference))


def finite(value: float) -> float:
    return value if math.isfinite(value) else NOT_A_NUMBER


# --- one run -------------------------------------------------------------------------------------


class Probe:
    """The plan, the ranks, the device, the clock, and what was measured so far."""

    def __init__(self, plan: dict[str, Any], ranks: Ranks, device: Device) -> None:
        self.plan, self.ranks, self.device = plan, ranks, device
        self.reduced = bool(plan.get("reduced"))
        self.main = str(plan["dtypes"][0])  # the dtype of blocks and training steps
        self.begin = time.time()
        self.budget_s: float | None = None
        self.row_s = float(plan.get("row_s") or (0.15 if self.reduced else 0.5))
        self.group = ""
        self.rows: list[Row] = []  # of this rank, of the group at hand
        self.shared: list[Row] = []  # of the group at hand, the same on all ranks
        self.left_out: list[Row] = []
        self.out = Path("result.json")

    def elapsed_s(self) -> float:
        return time.time() - self.begin

    def left_s(self) -> float:
        return math.inf if self.budget_s is None else self.budget_s - self.elapsed_s()

    def tensor(self, *shape: int, dtype: str | None = None) -> Tensor:
        return normal(*shape, dtype=DTYPES[dtype or self.main], device=self.device.torch)

    def skip(self, label: str, reason: object) -> None:
        text = str(reason).strip().splitlines()
        line = text[0][:200] if text else type(reason).__name__
        self.left_out.append({"group": self.group, "label": label, "reason": line})

    def times(self, call: Call, *, weight: float = 1.0) -> Row:
        """Warm up, sample, summarize."""
        wanted = min(weight * self.row_s, max(self.left_s() / 4, 0.01))
        warm_s = weight * WARM_UP_S["gpu" if self.device.gpu else "cpu"]
        one = warm_up(call, self.device.sync, seconds=min(warm_s, wanted))
        if not self.device.gpu:
            calls = max(1, math.ceil(CPU_SAMPLE_S / one))
            times = clock_samples(
                call, calls=calls, seconds=wanted, least=MIN_SAMPLES, most=MAX_SAMPLES
            )
            return summary(times, calls=calls)
        n = min(MAX_SAMPLES, max(MIN_SAMPLES, int(wanted / one)))
        times = event_samples(
            call, n, flush=self.device.flush, sync=self.device.sync,
            event=gpu_event,
        )  # fmt: skip
        return summary(times, cold=True)

    def row(
        self, label: str, call: Call, *, params: Row, weight: float = 1.0, **known: Any
    ) -> Row | None:
        """Measure one row; a failure, or a budget that is used up, is named instead.

        `weight` is how much longer than others it is measured.
        """
        if self.left_s() <= 0:
            self.skip(label, USED_UP)
            return None
        try:
            measured = self.times(call, weight=weight)
        except FAILURES as error:
            self.skip(label, error)
            self.device.release()
            return None
        row = {"probe": self.group, "label": label, "params": params, **measured, **known}
        self.rows.append(row)
        return row

    @contextlib.contextmanager
    def attempt(self, label: str) -> Iterator[None]:
        """Preparing an operation may fail as running it may: out of memory, no such kernel."""
        try:
            yield
        except FAILURES as error:
            self.skip(label, error)
            self.device.release()


class BudgetUsedUp(RuntimeError):  # noqa: N818 - it says what happened
    """Raised by the alarm in the middle of whatever takes too long."""


@contextlib.contextmanager
def cut_off_after(seconds: float) -> Iterator[None]:
    """The hard end of the budget, also of one long call such as a compilation."""

    def ring(number: int, frame: Any) -> None:
        raise BudgetUsedUp(USED_UP)

    if not math.isfinite(seconds) or not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.01), 1.0)  # again: it may be swallowed
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# --- matmul, attention ---------------------------------------------------------------------------


def measure_matmul(p: Probe) -> None:
    """(m, k) x (k, n) in every dtype, the second factor stored as a weight, (n, k)."""
    for shape in p.plan["shapes"]:
        for dtype in p.plan["dtypes"]:
            label = str(shape["label"])
            if p.left_s() <= 0:
                p.skip(f"{label} {dtype}", USED_UP)
                continue
            with p.attempt(f"{label} {dtype}"):
                one_matmul(p, shape, dtype)


def one_matmul(p: Probe, shape: Row, dtype: str) -> None:
    m, n, k = (int(shape[key]) for key in SHAPE_KEYS)
    transposed = bool(shape.get("transpose_a")) and dtype != "fp8"
    source = "bf16" if dtype == "fp8" else dtype
    a = p.tensor(k, m, dtype=source).t() if transposed else p.tensor(m, k, dtype=source)
    b = p.tensor(n, k, dtype=source).t()
    entropy = min(entropy_bits(a), entropy_bits(b))
    if dtype == "fp8":
        if k % 16 or n % 16:
            raise ValueError("fp8 needs n and k to be multiples of 16")
        kind = fp8_dtype(p.device)
        a8, b8 = a.to(kind), b.t().to(kind).t()
        one = torch.ones((), dtype=torch.float32, device=p.device.torch)

        def call() -> Tensor:
            return torch._scaled_mm(a8, b8, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    else:
        out = torch.empty(m, n, dtype=DTYPES[dtype], device=p.device.torch)

        def call() -> Tensor:
            return torch.matmul(a, b, out=out)

    rows, columns = min(m, 64), min(n, 64)
    wanted = a[-rows:].double() @ b[:, -columns:].double()
    error = relative_error(call()[-rows:, -columns:], wanted)
    width = 1 if dtype == "fp8" else DTYPES[dtype].itemsize
    p.row(
        str(shape["label"]), call, params={"m": m, "n": n, "k": k, "transpose_a": transposed},
        dtype=dtype, mode="fwd", flops=2.0 * m * n * k, flop_convention=FLOP_CONVENTIONS["matmul"],
        bytes=float(width * (m * k + k * n) + max(width, 2) * m * n),
        byte_convention=BYTE_CONVENTIONS["memory_bound"], rel_err=error, data_entropy_bits=entropy,
    )  # fmt: skip


def fp8_dtype(device: Device) -> torch.dtype:
    """e4m3, in the encoding of the device: MI300X has one of its own."""
    if device.kind == "rocm":
        name = getattr(torch.cuda.get_device_properties(device.index), "gcnArchName", "")
        if str(name).startswith("gfx94"):
            return torch.float8_e4m3fnuz
    return torch.float8_e4m3fn


def measure_attention(p: Probe) -> None:
    """Scaled-dot-product attention, forward and forward + backward."""
    for shape in p.plan["attention"]:
        label = str(shape["label"])
        with p.attempt(label):
            one_attention(p, shape)
        p.device.release()


def one_attention(p: Probe, shape: Row) -> None:
    b, h, kv, s, d = (int(shape[key]) for key in ATTENTION_KEYS)
    causal = bool(shape.get("causal", True))
    if h % kv:
        raise ValueError(f"{h} heads cannot share {kv} key heads")
    q = p.tensor(b, h, s, d)
    # Keys are repeated for their query heads beforehand: torch 2.4 knows no grouped queries.
    k, v = (p.tensor(b, kv, s, d).repeat_interleave(h // kv, dim=1) for _ in range(2))
    params = {"batch": b, "num_heads": h, "num_kv_heads": kv, "seq_len": s, "head_dim": d,
              "causal": causal}  # fmt: skip
    flops = 4.0 * b * h * s * s * d * (0.5 if causal else 1.0)
    known: Row = {"dtype": p.main, "flop_convention": FLOP_CONVENTIONS["attention"],
             "data_entropy_bits": entropy_bits(q)}  # fmt: skip

    def forward() -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    label = str(shape["label"])
    with torch.no_grad():
        error = relative_error(forward()[0, 0, -64:], exact_attention(q, k, v, causal))
        p.row(label, forward, params=params, mode="fwd", flops=flops, rel_err=error, **known)
    inputs = [x.requires_grad_() for x in (q, k, v)]
    gradient = p.tensor(b, h, s, d)

    def both() -> Any:
        return torch.autograd.grad(forward(), inputs, gradient)

    p.row(label, both, params=params, mode="fwdbwd", flops=3.5 * flops, **known)


def exact_attention(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
    """The last 64 queries of the first head in float64, by the definition."""
    rows, s = min(64, q.shape[2]), q.shape[2]
    scores = q[0, 0, -rows:].double() @ k[0, 0].double().t() / math.sqrt(q.shape[3])
    if causal:
        at = torch.arange(s, device=q.device)
        scores = scores.masked_fill(at[None, :] > at[s - rows :, None], -math.inf)
    return scores.softmax(-1) @ v[0, 0].double()


# --- memory --------------------------------------------------------------------------------------


def measure_memory_bound(p: Probe) -> None:
    """Operators that move more than they compute, at the sizes of the block."""
    c = p.plan["block"]
    tokens = int(c["seq_len"]) * int(c["micro_batch_size"])
    hidden, ffn, vocab = (int(c[key]) for key in ("hidden_size", "ffn_hidden_size", "vocab_size"))
    width = DTYPES[p.main].itemsize

    def run(label: str, call: Call, *, columns: int, moved: float, mode: str = "fwd") -> None:
        p.row(label, call, params={"tokens": tokens, "columns": columns}, dtype=p.main, mode=mode,
              bytes=moved, byte_convention=BYTE_CONVENTIONS["memory_bound"])  # fmt: skip

    with p.attempt("rms_norm, add"):
        x, y = p.tensor(tokens, hidden), p.tensor(tokens, hidden)
        weight = torch.ones(hidden, dtype=x.dtype, device=x.device)
        size = float(width * tokens * hidden)
        run("rms_norm", lambda: F.rms_norm(x, (hidden,), weight), columns=hidden, moved=2 * size)
        run("add", lambda: x + y, columns=hidden, moved=3 * size)
        leaf = x.clone().requires_grad_()
        run("rms_norm", lambda: torch.autograd.grad(F.rms_norm(leaf, (hidden,), weight), leaf, y),
            columns=hidden, moved=5 * size, mode="fwdbwd")  # fmt: skip
    with p.attempt("silu_mul"):
        gate, up, grad = (p.tensor(tokens, ffn) for _ in range(3))
        size = float(width * tokens * ffn)
        run("silu_mul", lambda: F.silu(gate) * up, columns=ffn, moved=3 * size)
        leaves = [gate.clone().requires_grad_(), up.clone().requires_grad_()]
        run("silu_mul", lambda: torch.autograd.grad(F.silu(leaves[0]) * leaves[1], leaves, grad),
            columns=ffn, moved=8 * size, mode="fwdbwd")  # fmt: skip
    with p.attempt("softmax, cross_entropy"):
        logits = p.tensor(tokens, vocab)
        target = torch.randint(vocab, (tokens,), device=p.device.torch)
        size = float(width * tokens * vocab)
        run("softmax", lambda: logits.softmax(-1), columns=vocab, moved=2 * size)
        leaf_logits = logits.clone().requires_grad_()
        run("cross_entropy",
            lambda: torch.autograd.grad(F.cross_entropy(leaf_logits.float(), target), leaf_logits),
            columns=vocab, moved=2 * size, mode="fwdbwd")  # fmt: skip
    p.device.release()


def measure_memory_bandwidth(p: Probe) -> None:
    """Copy, write and read of a buffer that no cache holds."""
    size = 128 * MIB if p.reduced else (GIB if p.device.gpu else 512 * MIB)
    with p.attempt("copy"):
        x = torch.randn(size // 4, device=p.device.torch)
        y = torch.empty_like(x)
        params = {"size_bytes": size}
        known: Row = {"dtype": "fp32", "mode": "fwd"}
        p.row("copy", lambda: y.copy_(x), params=params, bytes=2.0 * size,
              byte_convention=BYTE_CONVENTIONS["copy"], **known)  # fmt: skip
        for label, call in (("write", lambda: y.fill_(1.0)), ("read", x.sum)):
            p.row(label, call, params=params, bytes=float(size),
                  byte_convention=BYTE_CONVENTIONS["memory_bound"], **known)  # fmt: skip
    p.device.release()


def measure_host_device(p: Probe) -> None:
    """Pinned copies to the device and back; on a CPU, a copy within its memory."""
    size = (64 if p.reduced else 256) * MIB
    with p.attempt("host_device"):
        host = torch.randn(size // 4)
        known: Row = {"params": {"size_bytes": size, "pinned": p.device.gpu}, "dtype": "fp32",
                 "mode": "fwd", "bytes": float(size),
                 "byte_convention": BYTE_CONVENTIONS["transfer"]}  # fmt: skip
        if not p.device.gpu:
            other = torch.empty_like(host)
            p.row("memcpy", lambda: other.copy_(host), **known)
            return
        pinned = host.pin_memory()
        there = torch.empty_like(host, device=p.device.torch)
        p.row("host_to_device", lambda: there.copy_(pinned, non_blocking=True), **known)
        p.row("device_to_host", lambda: pinned.copy_(there, non_blocking=True), **known)


# --- a transformer -------------------------------------------------------------------------------


class Block(nn.Module):
    """RMSNorm, attention with rotary embeddings and grouped keys, RMSNorm, gated MLP."""

    def __init__(self, c: Row) -> None:
        super().__init__()
        self.heads, self.kv, self.d = (
            int(c[k]) for k in ("num_attention_heads", "num_kv_heads", "head_dim")
        )
        hidden, ffn = int(c["hidden_size"]), int(c["ffn_hidden_size"])
        self.hidden = hidden
        self.norm1 = nn.Parameter(torch.ones(hidden))
        self.norm2 = nn.Parameter(torch.ones(hidden))
        self.qkv = nn.Linear(hidden, (self.heads + 2 * self.kv) * self.d, bias=False)
        self.out = nn.Linear(self.heads * self.d, hidden, bias=False)
        self.up = nn.Linear(hidden, 2 * ffn, bias=False)
        self.down = nn.Linear(ffn, hidden, bias=False)
        turn = torch.arange(int(c["seq_len"]))[:, None] / 10000 ** (
            torch.arange(0, self.d, 2)[None] / self.d
        )
        self.cos: Tensor
        self.sin: Tensor
        self.register_buffer("cos", turn.cos(), persistent=False)
        self.register_buffer("sin", turn.sin(), persistent=False)

    def rotated(self, x: Tensor) -> Tensor:
        left, right = x.chunk(2, dim=-1)
        cos, sin = self.cos[: x.shape[2]], self.sin[: x.shape[2]]
        return torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        batch, s, _ = x.shape
        y = self.qkv(F.rms_norm(x, (self.hidden,), self.norm1))
        y = y.view(batch, s, self.heads + 2 * self.kv, self.d).transpose(1, 2)
        q, k, v = y.split((self.heads, self.kv, self.kv), dim=1)
        q, k = self.rotated(q), self.rotated(k)
        k, v = (t.repeat_interleave(self.heads // self.kv, dim=1) for t in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, s, self.heads * self.d))
        gate, up = self.up(F.rms_norm(x, (self.hidden,), self.norm2)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Model(nn.Module):
    """Embedding, blocks, norm and head; forward returns the loss of a batch."""

    def __init__(self, c: Row, num_layers: int) -> None:
        super().__init__()
        hidden, vocab = int(c["hidden_size"]), int(c["vocab_size"])
        self.hidden = hidden
        self.embedding = nn.Embedding(vocab, hidden)
        self.blocks = nn.ModuleList(Block(c) for _ in range(num_layers))
        self.norm = nn.Parameter(torch.ones(hidden))
        self.head = nn.Linear(hidden, vocab, bias=False)

    def forward(self, tokens: Tensor, target: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        logits = self.head(F.rms_norm(x, (self.hidden,), self.norm))
        return F.cross_entropy(logits.float().flatten(0, 1), target.flatten())


def block_weights(c: Row) -> int:
    """Weights of one block's matrices."""
    hidden, ffn, d = int(c["hidden_size"]), int(c["ffn_hidden_size"]), int(c["head_dim"])
    heads, kv = int(c["num_attention_heads"]), int(c["num_kv_heads"])
    return hidden * d * (2 * heads + 2 * kv) + 3 * hidden * ffn


def block_flops(c: Row) -> float:
    """Forward FLOPs of one block over the micro-batch."""
    s, b = int(c["seq_len"]), int(c["micro_batch_size"])
    scores = 2.0 * b * int(c["num_attention_heads"]) * s * s * int(c["head_dim"])
    return 2.0 * block_weights(c) * s * b + scores


def model_flops(c: Row, num_layers: int) -> float:
    head = 2.0 * int(c["hidden_size"]) * int(c["vocab_size"])
    return num_layers * block_flops(c) + head * int(c["seq_len"]) * int(c["micro_batch_size"])


def block_params(c: Row, **more: Any) -> Row:
    return {**{key: int(c[key]) for key in BLOCK_KEYS}, **more}


def measure_block(p: Probe) -> None:
    """One block as written."""
    with p.attempt("block"):
        run_block(p, p.plan["block"], compiled=False)
    p.device.release()


def measure_compiled_block(p: Probe) -> None:
    """One block through torch.compile; a group of its own, because compiling takes its time."""
    with p.attempt("compiled block"):
        run_block(p, p.plan["block"], compiled=True)
    p.device.release()


def run_block(p: Probe, c: Row, *, compiled: bool) -> None:
    block: Any = Block(c).to(device=p.device.torch, dtype=DTYPES[p.main])
    if compiled:
        block = torch.compile(block)
    x = p.tensor(int(c["micro_batch_size"]), int(c["seq_len"]), int(c["hidden_size"]))
    gradient = torch.randn_like(x)
    leaves = [x.clone().requires_grad_(), *block.parameters()]
    known: Row = {"params": block_params(c), "dtype": p.main, "compiled": compiled,
             "flop_convention": FLOP_CONVENTIONS["block"]}  # fmt: skip

    def forward() -> None:
        with torch.no_grad():
            block(x)

    known["weight"] = 2.0
    p.row("block", forward, mode="fwd", flops=block_flops(c), **known)
    p.row("block", lambda: torch.autograd.grad(block(leaves[0]), leaves, gradient),
          mode="fwdbwd", flops=3 * block_flops(c), **known)  # fmt: skip


class Training:
    """A model on one batch: 16-bit weights, AdamW on a master copy in fp32."""

    def __init__(self, p: Probe, c: Row, num_layers: int) -> None:
        dtype, device = DTYPES[p.main], p.device.torch
        self.model = Model(c, num_layers).to(device=device, dtype=dtype)
        self.weights: list[Tensor] = list(self.model.parameters())
        self.master = [w.detach().float().clone() for w in self.weights]
        self.optimizer = torch.optim.AdamW(self.master, lr=1e-3, fused=p.device.gpu or None)
        shape = (int(c["micro_batch_size"]), int(c["seq_len"]))
        vocab = int(c["vocab_size"])
        self.batch = [torch.randint(vocab, shape, device=device) for _ in range(2)]
        self.loss = torch.zeros((), device=device)

    def forward_backward(self) -> None:
        for w in self.weights:
            w.grad = None
        self.loss = self.model(*self.batch)
        torch.autograd.backward(self.loss)

    def step(self) -> None:
        self.forward_backward()
        for master, w in zip(self.master, self.weights):  # noqa: B905 - Python 3.9
            master.grad = None if w.grad is None else w.grad.float()
        self.optimizer.step()
        with torch.no_grad():
            torch._foreach_copy_(self.weights, self.master)

    def measured(self, p: Probe, label: str, *, params: Row, flops: float) -> None:
        """Steps on the same batch: the loss must fall, or they do not train."""
        self.step()
        first = finite(float(self.loss.detach()))
        row = p.row(label, self.step, params=params, dtype=p.main, mode="step", flops=flops,
                    flop_convention=FLOP_CONVENTIONS["block"], loss_first=first,
                    weight=6.0)  # fmt: skip
        if row is not None:
            row["loss_last"] = finite(float(self.loss.detach()))


def fitting_layers(c: Row, wanted: int, free_bytes: int) -> int:
    """How many layers of a model fit: 18 bytes per weight, and activations beside them."""
    tokens = int(c["seq_len"]) * int(c["micro_batch_size"])
    hidden, vocab = int(c["hidden_size"]), int(c["vocab_size"])
    outside = 36.0 * hidden * vocab + 12.0 * tokens * vocab
    layer = 18.0 * block_weights(c) + tokens * (40.0 * hidden + 16.0 * int(c["ffn_hidden_size"]))
    return max(0, min(wanted, int((0.8 * free_bytes - outside) / layer)))


def measure_layers(p: Probe) -> None:
    """Models that differ in their number of layers: the slope is a layer, the rest the ends."""
    c = p.plan["block"]
    wanted = [int(n) for n in c.get("layer_counts") or (1, 3)]
    most = fitting_layers(c, max(wanted), p.device.free_bytes())
    counts = wanted if most >= max(wanted) else [1, most]
    if most < 2:
        p.skip("layers", "two layers of this block do not fit in the device's memory")
        return
    for num_layers in counts:
        with p.attempt(f"{num_layers} layers"):
            training = Training(p, c, num_layers)
            params = block_params(c, num_layers=num_layers)
            flops = 3 * model_flops(c, num_layers)
            p.row("layers", training.forward_backward, params=params, dtype=p.main, mode="fwdbwd",
                  flops=flops, flop_convention=FLOP_CONVENTIONS["block"],
                  weight=6.0)  # fmt: skip
            training.measured(p, "layers", params=params, flops=flops)
        p.device.release()


def measure_holdout(p: Probe) -> None:
    """A whole training step that no fit ever sees: predicted over measured is the error."""
    c = p.plan["block"]
    wanted = int(c.get("holdout_layers") or 4)
    num_layers = fitting_layers(c, wanted, p.device.free_bytes())
    if not num_layers:
        p.skip("holdout", "one layer of this block does not fit in the device's memory")
        return
    with p.attempt("holdout"):
        Training(p, c, num_layers).measured(
            p, "training_step", params=block_params(c, num_layers=num_layers),
            flops=3 * model_flops(c, num_layers),
        )  # fmt: skip
    p.device.release()


def measure_optimizer(p: Probe) -> None:
    """AdamW on fp32 weights, gradients and moments."""
    params = 2**21 if p.reduced else (2**28 if p.device.gpu else 2**24)
    with p.attempt("adamw"):
        weights = [torch.randn(params // 8, device=p.device.torch) for _ in range(8)]
        for w in weights:
            w.grad = torch.randn_like(w)
        optimizer = torch.optim.AdamW(weights, lr=1e-4, fused=p.device.gpu or None)
        p.row("adamw", optimizer.step, params={"parameters": params, "fused": p.device.gpu},
              dtype="fp32", mode="step", bytes=28.0 * params,
              byte_convention=BYTE_CONVENTIONS["optimizer"])  # fmt: skip
    p.device.release()


# --- checkpoint ----------------------------------------------------------------------------------


def file_system_of(path: Path) -> str:
    """Type of the file system that holds a path, by the longest mount point above it."""
    best, kind = "", "unknown"
    with contextlib.suppress(OSError):
        for line in Path("/proc/mounts").read_text().splitlines():
            _, mount, fs, *_ = line.split()
            inside = str(path) == mount or str(path).startswith(mount.rstrip("/") + "/")
            if inside and len(mount) >= len(best):
                best, kind = mount, fs
    return kind


def measure_checkpoint(p: Probe) -> None:
    """Random bytes to a file beside the result, with fsync; every rank writes at once."""
    folder = p.out.resolve().parent
    size = 32 * MIB if p.reduced else 4 * GIB
    path = folder / f".runcast-{p.plan['run_id']}-{p.ranks.rank}.checkpoint"
    piece = os.urandom(min(size, 64 * MIB))
    ranks_here = p.ranks.node_of.count(p.ranks.node_of[p.ranks.rank])
    times: list[float] = []
    with p.attempt("checkpoint"):
        if shutil.disk_usage(folder).free < 2 * size * ranks_here:
            raise OSError(f"{size // MIB} MiB for each rank are not free where the result goes")
        begin = time.perf_counter()
        try:
            while len(times) < 3 or (len(times) < 8 and time.perf_counter() - begin < 2 * p.row_s):
                start = time.perf_counter()
                with path.open("wb") as file:
                    for _ in range(size // len(piece)):
                        file.write(piece)
                    file.flush()
                    os.fsync(file.fileno())
                times.append(time.perf_counter() - start)
                if p.left_s() <= 0:
                    break
        finally:
            path.unlink(missing_ok=True)
        p.rows.append({
            "probe": p.group, "label": "write", "mode": "fwd", "bytes": float(size),
            "byte_convention": BYTE_CONVENTIONS["transfer"], **summary(times),
            "params": {"size_bytes": size, "fsync": True, "file_system": file_system_of(folder),
                       "writers": ranks_here},
        })  # fmt: skip


# --- collectives ---------------------------------------------------------------------------------


def bus_factor(op: str, ranks: int) -> float:
    """Bytes over the busiest link per byte of the buffer, as nccl-tests defines bus bandwidth."""
    if op == "all_reduce":
        return 2.0 * (ranks - 1) / ranks
    if op in ("all_gather", "reduce_scatter", "all_to_all"):
        return (ranks - 1) / ranks
    return 1.0  # broadcast, send_recv


OPS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv", "broadcast")
# Renamed in torch 2.13, which warns about the old names.
gather_into = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
scatter_into = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


class Collective:
    """One operation on one process group at one size, with buffers and a check of its result."""

    def __init__(self, p: Probe, op: str, ranks: list[int], group: Any, size_bytes: int) -> None:
        n = len(ranks)
        self.op, self.group, self.ranks, self.n = op, group, ranks, n
        self.me = ranks.index(p.ranks.rank)
        count = max(1, size_bytes // (4 * n)) * n  # a whole number of fp32 for each rank
        self.size_bytes = 4 * count
        part = count // n
        inputs = part if op == "all_gather" else count
        outputs = part if op == "reduce_scatter" else count
        self.source = torch.empty(inputs, device=p.device.torch)
        self.target = torch.empty(outputs, device=p.device.torch)
        self.fill()

    def fill(self) -> None:
        """Every rank another number, small enough that sums of them are exact."""
        self.source.fill_(self.me + 1.0)
        self.target.fill_(self.me + 1.0 if self.op in ("all_reduce", "broadcast") else -1.0)

    def __call__(self, async_op: bool = False) -> Any:
        if self.op == "all_reduce":
            return dist.all_reduce(self.target, group=self.group, async_op=async_op)
        if self.op == "broadcast":
            return dist.broadcast(self.target, self.ranks[0], group=self.group, async_op=async_op)
        if self.op == "all_gather":
            return gather_into(self.target, self.source, group=self.group, async_op=async_op)
        if self.op == "reduce_scatter":
            return scatter_into(self.target, self.source, group=self.group, async_op=async_op)
        if self.op == "all_to_all":
            return dist.all_to_all_single(
                self.target, self.source, group=self.group, async_op=async_op
            )
        following, before = self.ranks[(self.me + 1) % self.n], self.ranks[self.me - 1]
        works = dist.batch_isend_irecv([
            dist.P2POp(dist.isend, self.source, following, group=self.group),
            dist.P2POp(dist.irecv, self.target, before, group=self.group),
        ])  # fmt: skip
        for work in works:
            work.wait()
        return None

    def wrong(self) -> int:
        """Elements of this rank that are not what the operation promises, of one fresh call."""
        self.fill()
        self()
        n, numbers = self.n, torch.arange(1.0, self.n + 1, device=self.target.device)
        if self.op in ("all_reduce", "reduce_scatter"):
            wanted = torch.full_like(self.target, n * (n + 1) / 2)
        elif self.op in ("all_gather", "all_to_all"):
            wanted = numbers.repeat_interleave(self.target.numel() // n)
        else:
            number = 1.0 if self.op == "broadcast" else (self.me - 1) % n + 1.0
            wanted = torch.full_like(self.target, number)
        return int((self.target != wanted).sum())


def own_groups(p: Probe) -> dict[str, tuple[list[int], Any, int]]:
    """Process groups of this rank by name: its members, the handle, how many run at once."""
    own: dict[str, tuple[list[int], Any, int]] = {}
    for name, groups in p.ranks.members().items():
        for members in groups:
            handle = dist.new_group(members)  # every rank makes every group
            if p.ranks.rank in members:
                own[name] = (members, handle, len(groups))
    return own


def shared_names(p: Probe, groups: dict[str, Any]) -> list[str]:
    """Names of which every rank has a group: nodes of different sizes leave some ranks over."""
    return [name for name in p.ranks.members() if all(p.ranks.gather(name in groups))]


def collective_sizes(most: int) -> list[int]:
    """8 bytes to the largest by factors of 4, and the largest."""
    sizes = [8]
    while sizes[-1] * 4 <= most:
        sizes.append(sizes[-1] * 4)
    return sizes if sizes[-1] == most or most < 8 else [*sizes, most]


def sampled_together(p: Probe, call: Call, meet: Call, seconds: float) -> list[float]:
    """The same number of samples on every rank; each sample's time is that of the slowest."""
    one = max(p.ranks.slowest([warm_up(call, p.device.sync, seconds=0.0)]))
    n = p.ranks.decided(min(50, max(5, int(seconds / one))))
    if p.device.gpu:

        def ready() -> None:
            p.device.flush()
            meet()

        return p.ranks.slowest(event_samples(
            call, n, flush=ready, sync=p.device.sync,
            event=gpu_event,
        ))  # fmt: skip
    times = []
    for _ in range(n):
        meet()
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return p.ranks.slowest(times)


def meeting(p: Probe, group: Any) -> Call:
    """Ranks start a sample together: a barrier on a CPU, a tiny all_reduce on the stream."""
    if not p.device.gpu:
        return lambda: dist.barrier(group=group)
    token = torch.zeros(1, device=p.device.torch)
    return lambda: dist.all_reduce(token, group=group)


def measure_collectives(p: Probe) -> None:
    """Six operations on each process group, from 8 bytes up."""
    if p.ranks.world < 2:
        p.skip("collectives", "one process has nobody to talk to")
        return
    groups = own_groups(p)
    names = shared_names(p, groups)
    total_s = float(p.plan.get("collective_s") or (12.0 if p.reduced else 90.0))
    share_s = total_s / (len(names) * len(OPS))
    for name in names:
        for op in OPS:
            with p.attempt(f"{op} {name}"):
                sweep(p, op, name, groups[name], share_s)
            p.device.release()


def sweep(p: Probe, op: str, name: str, group: tuple[list[int], Any, int], share_s: float) -> None:
    """One operation over sizes; the next size is left out when it would take too long."""
    members, handle, at_once = group
    meet = meeting(p, handle)
    sizes = collective_sizes(int(p.plan["collective_max_bytes"]))
    begin, last = time.perf_counter(), 0.0
    for size in sizes:
        used = time.perf_counter() - begin
        # Five samples, three warm-up calls and the check, of four times the last time.
        if p.ranks.decided(min(share_s, p.left_s()) < used + 9 * 4 * last and size > 8):
            p.skip(f"{op} {name}", f"{size} bytes and more: the time for it was used up")
            return
        collective = Collective(p, op, members, handle, size)
        wrong = sum(p.ranks.gather(collective.wrong()))
        times = sampled_together(p, collective, meet, share_s / (2 * len(sizes)))
        measured = summary(times, cold=p.device.gpu)
        last = measured["t_min_s"]  # a spike is not the size's doing
        p.shared.append({
            "probe": p.group, "label": op, "dtype": "fp32", "mode": "fwd", "wrong": wrong,
            "bytes": float(collective.size_bytes), "bus_factor": bus_factor(op, len(members)),
            "byte_convention": BYTE_CONVENTIONS["collective"], **measured,
            "params": {"op": op, "group": name, "ranks": len(members),
                       "concurrent_groups": at_once, "nodes": len({p.ranks.node_of[r]
                                                                   for r in members})},
        })  # fmt: skip


def measure_overlap(p: Probe) -> None:
    """Matmuls alone, an all_reduce alone, and both at once."""
    if p.ranks.world < 2:
        p.skip("overlap", "one process has nobody to talk to")
        return
    groups = own_groups(p)
    for name in shared_names(p, groups):
        with p.attempt(f"overlap {name}"):
            overlap(p, name, groups[name])
        p.device.release()


def overlap(p: Probe, name: str, group: tuple[list[int], Any, int]) -> None:
    """As many matmuls as take the time of the all_reduce, and then both at once."""
    members, handle, at_once = group
    largest = min(int(p.plan["collective_max_bytes"]), MIB if p.reduced else 64 * MIB)
    collective = Collective(p, "all_reduce", members, handle, largest)
    meet = meeting(p, handle)
    seconds = p.row_s / 2
    alone = statistics.median(sampled_together(p, collective, meet, seconds))
    width = 256 if p.reduced else 4096
    a, b = p.tensor(width, width), p.tensor(width, width)
    out = torch.empty_like(a)
    one = statistics.median(sampled_together(p, lambda: torch.matmul(a, b, out=out), meet, seconds))
    calls = p.ranks.decided(max(1, min(1000, round(alone / one))))

    def compute() -> None:
        for _ in range(calls):
            torch.matmul(a, b, out=out)

    def both() -> None:
        work = collective(async_op=True)
        compute()
        work.wait()

    computing = statistics.median(sampled_together(p, compute, meet, seconds))
    times = sampled_together(p, both, meet, seconds)
    p.shared.append({
        "probe": p.group, "label": "all_reduce and matmul", "dtype": p.main, "mode": "fwd",
        "bytes": float(collective.size_bytes), "flops": calls * 2.0 * width**3,
        "flop_convention": FLOP_CONVENTIONS["matmul"],
        "byte_convention": BYTE_CONVENTIONS["collective"],
        "bus_factor": bus_factor("all_reduce", len(members)),
        "t_compute_s": computing, "t_comm_s": alone, **summary(times, cold=p.device.gpu),
        "params": {"op": "all_reduce", "group": name, "ranks": len(members), "m": width,
                   "n": width, "k": width, "calls": calls, "concurrent_groups": at_once},
    })  # fmt: skip


GROUPS: dict[str, Callable[[Probe], None]] = {
    "matmul": measure_matmul,
    "layers": measure_layers,
    "holdout": measure_holdout,
    "attention": measure_attention,
    "collectives": measure_collectives,
    "block": measure_block,
    "memory_bandwidth": measure_memory_bandwidth,
    "memory_bound": measure_memory_bound,
    "overlap": measure_overlap,
    "optimizer": measure_optimizer,
    "host_device": measure_host_device,
    "checkpoint": measure_checkpoint,
    "compiled_block": measure_compiled_block,
}


# --- provenance ----------------------------------------------------------------------------------

ENV_KEPT = re.compile(
    r"(NCCL|RCCL|GLOO|CUDA|HIP|HSA|ROCR|OMP|MKL|OPENBLAS|TORCH|PYTORCH|TORCHINDUCTOR)_\w+"
)
ENV_SECRET = re.compile(r"TOKEN|KEY|SECRET|PASSWORD|PASSWD|CREDENTIAL|AUTH", re.IGNORECASE)


def kept_environment(environment: dict[str, str]) -> dict[str, str]:
    """Variables that steer a measurement; never one whose name or value may hold a secret."""
    return {
        name: value[:200]
        for name, value in sorted(environment.items())
        if ENV_KEPT.fullmatch(name) and not ENV_SECRET.search(name) and "@" not in value
    }


def digest(text: str) -> str:
    """8 hexadecimal digits that stand for a name."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def anonymised(result: Row) -> Row:
    """A result without names of hosts, serial numbers, paths and command lines."""
    made = result["provenance"]
    hosts = {made["host"], *(node["host"] for node in result["nodes"])}
    hosts |= {host.partition(".")[0] for host in hosts}
    named = re.compile(r"\b(" + "|".join(sorted(map(re.escape, hosts), key=len)[::-1]) + r")\b")

    def hidden(text: str) -> str:
        return re.sub(r"/[^\s'\":,]+", "(path)", named.sub(lambda m: digest(m[0]), text))

    def unless_none(text: str | None) -> str | None:
        return text and digest(text)

    device = {**made["device"], "uuid": unless_none(made["device"].get("uuid"))}
    return {
        **result,
        "provenance": {
            **made, "anonymised": True, "argv": [], "host": digest(made["host"]), "device": device,
            "env": {name: hidden(value) for name, value in made["env"].items()},
        },
        "nodes": [
            {**node, "host": digest(node["host"]), "uuid": unless_none(node["uuid"])}
            for node in result["nodes"]
        ],
        "skipped": [{**one, "reason": hidden(one["reason"])} for one in result["skipped"]],
    }  # fmt: skip


def device_record(device: Device, sku_key: str | None) -> Row:
    """What the device says that it is."""
    record: Row = {"kind": device.kind, "sku_key": sku_key}
    if not device.gpu:
        name = platform.processor() or platform.machine()
        with contextlib.suppress(OSError, StopIteration):
            lines = Path("/proc/cpuinfo").read_text().splitlines()
            name = next(x for x in lines if x.startswith("model name")).partition(":")[2].strip()
        memory = 0
        with contextlib.suppress(OSError, ValueError):
            memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return {**record, "name": name, "memory_bytes": float(memory), "num_local": 1}
    props = torch.cuda.get_device_properties(device.index)
    record |= {
        "name": props.name, "memory_bytes": float(props.total_memory),
        "num_local": torch.cuda.device_count(),
        "multiprocessor_count": props.multi_processor_count,
        "compute_capability": f"{props.major}.{props.minor}",
        "l2_bytes": float(getattr(props, "L2_cache_size", 0)),
        "uuid": str(getattr(props, "uuid", "")) or None,
    }  # fmt: skip
    fields = ",".join(SMI_IDENTITY)
    text = output_of("nvidia-smi", f"--id={device.visible_id()}", f"--query-gpu={fields}",
                     "--format=csv,noheader,nounits")  # fmt: skip
    if device.kind == "cuda" and text:
        cells = [c.strip() for c in text.splitlines()[0].split(",")]
        names = ("pcie_gen", "pcie_width", "mig", "ecc", "uuid", "driver")
        record |= {name: cell[:64] for name, cell in zip(names, cells)}  # noqa: B905
    return record


def provenance(p: Probe, device: Row, argv: list[str]) -> Row:
    """Where, when and with what this was measured."""
    plan = p.plan
    nccl, triton = None, None
    nccl_version: Any = torch.cuda.nccl.version
    cudnn_version: Any = torch.backends.cudnn.version
    if p.device.gpu:
        with contextlib.suppress(*FAILURES):
            nccl = ".".join(map(str, nccl_version()))
    with contextlib.suppress(ImportError):
        from importlib.metadata import version

        triton = version("triton")
    topology = output_of("nvidia-smi", "topo", "-m") if p.device.kind == "cuda" else None
    cudnn = cudnn_version() if p.device.kind == "cuda" else None
    return {
        "utc_start": utc(p.begin), "utc_end": utc(time.time()), "sessions": 1,
        "planner_version": plan.get("planner_version"),
        "planner_commit": plan.get("planner_commit"),
        "probe_sha256": hashlib.sha256(Path(__file__).read_bytes()).hexdigest(),
        "plan_sha256": plan_digest(plan), "reduced": p.reduced, "argv": argv,
        "launcher": plan.get("launcher"), "job_id": plan.get("job_id"),
        "told": plan.get("told") or {}, "host": socket.gethostname(), "anonymised": False,
        "python": platform.python_version(), "torch": torch.__version__,
        "cuda": torch.version.cuda, "hip": torch.version.hip,
        "cudnn": str(cudnn) if cudnn else None, "nccl": nccl, "triton": triton,
        "driver": device.pop("driver", None), "os": platform.platform()[:200],
        "env": kept_environment(dict(os.environ)),
        "num_threads": torch.get_num_threads(), "num_cpus": os.cpu_count(),
        "fp32_matmul_precision": torch.get_float32_matmul_precision(),
        "world_size": p.ranks.world, "device": device,
        "topology": topology[:20000] if topology else None,
    }  # fmt: skip


def utc(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def plan_digest(plan: dict[str, Any]) -> str:
    """Of what is measured: a job id or a launcher may change between two tries of a run."""
    kept = {k: v for k, v in plan.items() if k not in ("job_id", "launcher")}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


# --- all of it -----------------------------------------------------------------------------------


def control_call(p: Probe) -> Call:
    """The operation whose time should not move: one matmul with inputs of its own."""
    width, dtype = (4096, "bf16") if p.device.gpu else (320, "fp32")
    a, b = p.tensor(width, width, dtype=dtype), p.tensor(width, width, dtype=dtype)
    out = torch.empty_like(a)
    return lambda: torch.matmul(a, b, out=out)


def control_sample(p: Probe, call: Call, after: str) -> Row:
    """The control now, on the slowest rank."""
    measured = p.times(call)
    worst = max(p.ranks.gather(measured), key=lambda one: one["t_med_s"])
    return {"at_s": p.elapsed_s(), "after_group": after, "t_med_s": worst["t_med_s"],
            "rel_iqr": worst["rel_iqr"], "n": worst["n"]}  # fmt: skip


def row_key(row: Row) -> tuple[Any, ...]:
    named = tuple(sorted(row["params"].items()))
    return (row["label"], row.get("dtype"), row["mode"], row.get("compiled"), named)


def merged(p: Probe) -> tuple[list[Row], list[Row]]:
    """Rows and omissions of all ranks: of each row the slowest rank's, with every node's time."""
    all_rows = p.ranks.gather(p.rows)
    left_out = list(p.left_out)
    for rank, others in enumerate(p.ranks.gather(p.left_out)):
        named = {(one["group"], one["label"]) for one in left_out}
        left_out += [
            {**one, "reason": f"rank {rank}: {one['reason']}"[:200]}
            for one in others
            if (one["group"], one["label"]) not in named
        ]
    by_rank = [{row_key(row): row for row in rows} for rows in all_rows]
    rows = []
    for key in (row_key(row) for row in p.rows):
        if not all(key in one for one in by_rank):
            continue
        medians = [one[key]["t_med_s"] for one in by_rank]
        slowest = max(range(len(medians)), key=medians.__getitem__)
        row = dict(by_rank[slowest][key])
        if p.ranks.world > 1:
            row["slowest_rank"] = slowest
            row["t_med_by_node_s"] = [
                max(medians[r] for r in range(p.ranks.world) if p.ranks.node_of[r] == node)
                for node in sorted(set(p.ranks.node_of))
            ]
        rows.append(row)
    return rows + p.shared, left_out


def write_whole(path: Path, text: str) -> None:
    """Under another name first: a reader sees the old file or the new one."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with draft.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)


def as_text(result: Row, anonymise: bool) -> str:
    """One line of JSON."""
    shared = anonymised(result) if anonymise else result
    return json.dumps(shared, allow_nan=False, separators=(",", ":"))


def earlier_result(p: Probe, part: Path) -> Row | None:
    """What an earlier try of this run left, if it measured the same plan in the same way."""
    try:
        earlier = json.loads(part.read_text(encoding="utf-8"))
        same = (
            earlier["run_id"] == p.plan["run_id"]
            and earlier["probe_version"] == PROBE_VERSION
            and earlier["provenance"]["plan_sha256"] == plan_digest(p.plan)
            and earlier["provenance"]["world_size"] == p.ranks.world
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return earlier if same else None


def finished_groups(earlier: Row) -> set[str]:
    """Groups that need no second try: all but those that the budget cut off."""
    cut = {one["group"] for one in earlier["skipped"] if USED_UP in one["reason"]}
    return {group["name"] for group in earlier["groups"]} - cut


def say(p: Probe, text: str) -> None:
    if p.ranks.rank == 0:
        print(f"runcast: {text}", file=sys.stderr, flush=True)


def measure_all(p: Probe, result: Row, save: Callable[[Row], None], monitor: Monitor) -> None:
    """The groups of the plan in their order, as long as the budget lasts."""
    names = list(p.plan["groups"])
    done = {group["name"] for group in result["groups"]}
    call = control_call(p)
    if p.ranks.decided(p.left_s() > 0 and not done.issuperset(names)):
        result["control"].append(control_sample(p, call, "start"))
    for i, name in enumerate(names, start=1):
        if name in done:
            say(p, f"group {name} {i}/{len(names)} {p.elapsed_s():.1f} s (measured before)")
            continue
        say(p, f"group {name} {i}/{len(names)} {p.elapsed_s():.1f} s")
        if not p.ranks.decided(p.left_s() > LEAST_S.get(name, 0.0)):
            result["skipped"].append({"group": name, "label": "", "reason": f"{USED_UP} before it"})
            continue
        p.group, p.rows, p.shared, p.left_out = name, [], [], []
        before, start = machine_state(p.device), p.elapsed_s()
        monitor.taken()
        # Ranks that wait for each other decide together instead of being cut off one by one.
        with p.attempt(""), cut_off_after(math.inf if name in TOGETHER else p.left_s()):
            GROUPS[name](p)
        p.device.release()
        rows, left_out = merged(p)
        loaded = during(p.ranks.gather(monitor.taken()))
        after = machine_state(p.device)
        if rows:
            result["control"].append(control_sample(p, call, name))
        result["results"] += rows
        result["skipped"] += left_out
        result["groups"].append({
            "name": name, "at_s": start, "wall_s": p.elapsed_s() - start, "state_before": before,
            "state_during": loaded, "state_after": after,
        })  # fmt: skip
        save(result)


def run(options: argparse.Namespace, argv: list[str]) -> int:
    """Everything from a plan to a result; the exit status."""
    plan = read_plan(options.plan)
    if options.run_id and options.run_id != plan["run_id"]:
        if not RUN_ID.fullmatch(options.run_id):
            raise PlanError("--run-id must be 1 to 64 letters, digits, '.', '_' or '-'")
        plan["run_id"] = options.run_id
    budget_s = allowed_s(options, bool(plan.get("reduced")))
    ranks = Ranks()
    device = Device(ranks.local_rank, allow_gpu=plan.get("device") != "cpu")
    if plan.get("device") not in (None, device.kind):
        raise PlanError(f"the plan is for {plan['device']}, and torch sees {device.kind} only")
    busy = None if options.force else why_busy(device)
    ranks.join(device.kind)
    try:
        if found := [text for text in ranks.gather(busy) if text]:
            print(f"runcast probe: {found[0]}; --force measures all the same", file=sys.stderr)
            return BUSY
        device.start()
        p = Probe(plan, ranks, device)
        p.out = Path(options.out)
        return measured(p, options, argv, budget_s)
    finally:
        if ranks.distributed:
            dist.destroy_process_group()


def measured(p: Probe, options: argparse.Namespace, argv: list[str], budget_s: float) -> int:
    part = p.out.with_name(p.out.name + ".part")
    record = device_record(p.device, p.plan.get("sku_key"))
    made = provenance(p, record, argv)
    own = {"host": made["host"], "device_name": record["name"], "uuid": record.get("uuid")}
    hosts = p.ranks.gather(own)
    node_of = p.ranks.node_of
    result: Row = {
        "schema": SCHEMA, "probe_version": PROBE_VERSION, "run_id": p.plan["run_id"],
        "complete": False, "wall_s": 0.0, "budget_s": budget_s,
        "usd": None, "provenance": made,
        "nodes": [
            {"index": node, "ranks": node_of.count(node), **hosts[node_of.index(node)]}
            for node in sorted(set(node_of))
        ],
        "groups": [], "control": [], "results": [], "skipped": [],
    }  # fmt: skip
    earlier = None
    if p.ranks.rank == 0:
        earlier = earlier_result(p, part) or earlier_result(p, p.out)
    earlier = p.ranks.decided(earlier)
    if earlier:
        names = finished_groups(earlier)
        result["control"] = earlier["control"]
        for key, name in (("groups", "name"), ("results", "probe"), ("skipped", "group")):
            result[key] = [one for one in earlier[key] if one[name] in names]
        p.begin -= float(earlier["wall_s"])
        made |= {"utc_start": earlier["provenance"]["utc_start"],
                 "sessions": int(earlier["provenance"]["sessions"]) + 1}  # fmt: skip
        say(p, f"going on after {len(names)} groups that were measured before")
    p.budget_s = budget_s

    def save(so_far: Row) -> None:
        so_far["wall_s"] = p.elapsed_s()
        if options.usd_per_hour is not None:
            so_far["usd"] = p.elapsed_s() / 3600 * options.usd_per_hour
        made["utc_end"] = utc(time.time())
        if p.ranks.rank == 0:
            write_whole(part, as_text(so_far, options.anonymise))

    monitor = Monitor(p.device)
    try:
        measure_all(p, result, save, monitor)
    finally:
        monitor.stop()
    if p.ranks.rank:
        return OK
    if not result["results"]:
        print(f"runcast probe: nothing could be measured within {budget_s:g} s", file=sys.stderr)
        return TOO_LITTLE
    result["complete"] = len(result["groups"]) == len(p.plan["groups"])
    save(result)
    text = as_text(result, options.anonymise)
    write_whole(p.out, text)
    part.unlink(missing_ok=True)
    say(p, f"done {len(result['groups'])}/{len(p.plan['groups'])} {p.elapsed_s():.1f} s")
    mark = f"RUNCAST RESULT {p.plan['run_id']}-----"
    sys.stdout.write(f"-----BEGIN {mark}\n{text}\n-----END {mark}\n")
    sys.stdout.flush()
    return OK


def allowed_s(options: argparse.Namespace, reduced: bool) -> float:
    """Seconds that may be used: the least of the budget and what the dollars buy."""
    for name in ("budget_s", "max_usd", "usd_per_hour"):
        value = getattr(options, name)
        if value is not None and not (math.isfinite(value) and value > 0):
            raise PlanError(f"--{name.replace('_', '-')} must be above 0, not {value!r}")
    budget = options.budget_s if options.budget_s is not None else (60.0 if reduced else 600.0)
    if options.max_usd is None:
        return float(budget)
    if options.usd_per_hour is None:
        raise PlanError("--max-usd needs --usd-per-hour, the price of all nodes together")
    return float(min(budget, options.max_usd / options.usd_per_hour * 3600))


def terminated(number: int, frame: Any) -> None:
    """A cancelled job removes its checkpoint file and its monitor on the way out."""
    raise SystemExit(128 + number)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Measure this node for a Runcast calibration.")
    parser.add_argument("--plan", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--budget-s", type=float)
    parser.add_argument("--max-usd", type=float)
    parser.add_argument("--usd-per-hour", type=float)
    parser.add_argument("--run-id")
    parser.add_argument("--anonymise", action="store_true")
    parser.add_argument("--force", action="store_true")
    options = parser.parse_args(argv)
    try:
        return run(options, argv)
    except PlanError as error:
        print(f"runcast probe: {error}", file=sys.stderr)
        return BAD_PLAN


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, terminated)
    sys.exit(main(sys.argv[1:]))
