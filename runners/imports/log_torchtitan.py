"""Logs of TorchTitan: `step: 10  loss: ...  memory: 40.1GiB(50.7%)  tps: 7,284  mfu: 42.6%`.

pytorch/torchtitan torchtitan/components/metrics.py (read at 00fbaafa) and train.py: tps is tokens
per second and device, called wps before 2025. Validation lines also have a tps, and are left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from runners.imports.steps import Log, Step
from runners.imports.text import positive, whose

NAME = "torchtitan"
_STEP = re.compile(
    r"\bstep:\s{0,8}(\d{1,9})\s.{0,400}?\b(?:tps|wps):\s{0,8}(\d[\d,]{0,14}(?:\.\d{1,6})?)(?=\s)"
)
_MEMORY = re.compile(r"\bmemory:\s{0,8}(\d{1,5}(?:\.\d{1,4})?)GiB")
_TRAINER = re.compile(r"global batch size (\d{1,9}),.{0,80}?sequence length (\d{1,9})")
_MESH = re.compile(
    r"device mesh with parallelism: ([a-z_]{2,12}=\d{1,6}(?:, [a-z_]{2,12}=\d{1,6})*)"
)
_OLD_MESH = re.compile(r"Building \d-D device mesh with \[([^\]]{1,100})\], \[([\d, ]{1,60})\]")
_DEVICE = re.compile(r"[A-Z]{2,5} capacity: (.{2,80}?) with \d")
DEGREES = ("pp", "dp_replicate", "dp_shard", "cp", "tp")


def read(lines: Sequence[str]) -> Log | None:
    """The steps of a log; None if it has no line of this format."""
    steps: list[Step] = []
    facts: dict[str, int] = {}
    device = ""
    for whole in lines:
        rank, line = whose(whole)
        if "step:" in line and "validate" not in line and (match := _STEP.search(line)):
            rate = positive(match[2])
            memory = _MEMORY.search(line)
            if rate is not None:
                steps.append(
                    Step(
                        number=int(match[1]),
                        rank=rank,
                        tokens_per_s_per_gpu=rate,
                        memory_gib=None if memory is None else float(memory[1]),
                    )
                )
        elif match := _TRAINER.search(line):
            facts |= {"global_batch_size": int(match[1]), "seq_len": int(match[2])}
        elif match := _MESH.search(line):
            facts |= _degrees([pair.split("=") for pair in match[1].split(", ")])
        elif match := _OLD_MESH.search(line):
            names = [n.strip(" '\"") for n in match[1].split(",")]
            facts |= _degrees(list(zip(names, match[2].split(","), strict=False)))
        elif match := _DEVICE.search(line):
            device = match[1]
    if not steps:
        return None
    return Log(
        format=NAME,
        steps=tuple(steps),
        unit="tokens/s per GPU (tps)",
        facts={name: n for name, n in facts.items() if n > 0},
        device=device,
    )


def _degrees(pairs: Sequence[Sequence[str]]) -> dict[str, int]:
    """The degrees of a mesh, and its number of GPUs, which is their product."""
    found = {name: int(size) for name, size in pairs if size.strip().isdigit()}
    known = {name: found[name] for name in DEGREES if name in found}
    return {**known, "num_gpus": math.prod(known.values())} if known else {}
