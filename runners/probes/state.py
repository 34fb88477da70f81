"""State of the machine: clocks, power, load, and other processes on the device."""

from __future__ import annotations

import contextlib
import csv
import io
import math
import os
import shutil
import subprocess
import sys
import threading

import torch

from runners.probes.device import FAILURES, MIB, Device

# nvidia-smi's name -> ours and the factor to our unit.
_SMI = {
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
_THROTTLE_FIELD = "clocks_event_reasons.active"
_OLD_THROTTLE_FIELD = "clocks_throttle_reasons.active"
_BUSY_UTILIZATION = 0.05


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
    """One CSV line of nvidia-smi in our units; missing values are left out."""
    state: dict[str, float] = {}
    cells = next(csv.reader(io.StringIO(line)), [])
    for i, (name, factor) in enumerate(_SMI.values()):
        text = cells[i].strip() if i < len(cells) else ""
        with contextlib.suppress(ValueError):
            value = float(int(text, 16)) if text.startswith("0x") else float(text)
            state[name] = value * factor
    return {name: value for name, value in state.items() if math.isfinite(value)}


def _smi_query(device: Device) -> list[str]:
    """The command that prints a device's state; drivers differ in the name of one field."""
    if not device.smi:
        fields = "--query-gpu=" + ",".join(_SMI)
        command = ["nvidia-smi", f"--id={device.visible_id()}", fields]
        device.smi = [*command, "--format=csv,noheader,nounits"]
        if output_of(*device.smi) is None:
            device.smi[2] = fields.replace(_THROTTLE_FIELD, _OLD_THROTTLE_FIELD)
    return device.smi


def machine_state(device: Device) -> dict[str, float]:
    """Clocks, power, temperature and load at this moment, as far as the machine reports them."""
    state: dict[str, float] = {}
    if device.kind == "cuda" and (text := output_of(*_smi_query(device))):
        state = smi_state(text)
    elif device.kind == "rocm":
        state = _rocm_state(device)
    with contextlib.suppress(OSError, AttributeError):
        state["load_1min"] = os.getloadavg()[0]
    return state


def _rocm_state(device: Device) -> dict[str, float]:
    """The state that torch reads through amdsmi, if that is installed."""
    readings = {
        "utilization": (torch.cuda.utilization, 0.01), "temperature_c": (torch.cuda.temperature, 1),
        "power_w": (torch.cuda.power_draw, 1e-3), "clock_sm_mhz": (torch.cuda.clock_rate, 1),
    }  # fmt: skip
    state = {}
    # torch has imported it if it is installed; its errors have no other base than Exception.
    error = getattr(sys.modules.get("amdsmi"), "AmdSmiException", RuntimeError)
    for name, (read, factor) in readings.items():
        with contextlib.suppress(ImportError, error, *FAILURES):
            state[name] = float(read(device.index)) * factor
    return state


def why_busy(device: Device) -> str | None:
    """Other work on the device, checked before this process uses it."""
    if not device.gpu:
        return None
    device_id = device.visible_id()
    state = machine_state(device)
    if state.get("utilization", 0.0) > _BUSY_UTILIZATION:
        return f"device {device_id} is {state['utilization']:.0%} busy"
    if device.kind == "cuda":
        apps = output_of("nvidia-smi", f"--id={device_id}", "--query-compute-apps=pid",
                         "--format=csv,noheader") or ""  # fmt: skip
        pids = [p.strip() for p in apps.splitlines() if p.strip().isdigit()]
        if pids:
            return f"device {device_id} runs {len(pids)} other processes"
    return None


class Monitor:
    """Samples of nvidia-smi twice a second, during the measurements."""

    def __init__(self, device: Device) -> None:
        self._samples: list[dict[str, float]] = []
        self._process: subprocess.Popen[str] | None = None
        if device.kind == "cuda" and shutil.which("nvidia-smi"):
            command = [*_smi_query(device), "--loop-ms=500"]
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            self._reader = threading.Thread(target=self._read, daemon=True)
            self._reader.start()

    def _read(self) -> None:
        if self._process and self._process.stdout:
            self._samples.extend(map(smi_state, self._process.stdout))

    def taken(self) -> dict[str, float]:
        """Extremes since the last call: lowest clock, highest power and temperature, all throttle
        bits."""
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
    """Several states combined: the worst of each value, and all throttle reasons."""
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
