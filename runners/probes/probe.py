"""State of one run of the probe: plan, ranks, device, clock and measured rows."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import Tensor

from runners.probes.budget import USED_UP
from runners.probes.device import FAILURES, Device
from runners.probes.numerics import DTYPES, normal
from runners.probes.ranks import Ranks
from runners.probes.rows import Row
from runners.probes.timing import (
    CPU_SAMPLE_S,
    MAX_SAMPLES,
    MIN_SAMPLES,
    WARM_UP_S,
    Call,
    clock_samples,
    event_samples,
    gpu_event,
    summary,
    warm_up,
)


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
        self.rows: list[Row] = []  # of this rank, of the present group
        self.shared: list[Row] = []  # of the present group, equal on all ranks
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
        """Measure one row; a failure or an exhausted budget is recorded instead.

        `weight` is its measuring time over that of other rows.
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
        """Run a preparation, which may fail like the operation itself: out of memory, no such
        kernel."""
        try:
            yield
        except FAILURES as error:
            self.skip(label, error)
            self.device.release()
