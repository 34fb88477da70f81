"""What a line of a log says beside its steps: a start, a checkpoint, a fault, the size of a model.

Each pattern names the program that prints it. A line is one sign at most, the first that matches.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

SignKind: TypeAlias = Literal[
    "start", "checkpoint", "out_of_memory", "collective", "device", "not_finite", "killed",
    "preempted",
]  # fmt: skip

# Words that a line needs before any pattern is tried on it, in lower case.
_HINTS = re.compile(
    r"checkpoint|out of memory|outofmemory|nccl|watchdog|xid|ecc |nan |sigkill|sigterm|signal 9"
    r"|exitcode|preempt|starting job|using world size|running training|from step|deepspeed info"
    r"|parameters",
    re.IGNORECASE,
)
_WORDS: tuple[tuple[SignKind, str], ...] = (
    # torch, CUDA and ROCm
    ("out_of_memory", r"(?:CUDA|HIP)(?: error:)? out of memory|OutOfMemoryError"),
    # torch ProcessGroupNCCL, NCCL
    ("collective", r"caught collective operation timeout|NCCL (?:error|timeout)"
     r"|nccl(?:System|Remote|Internal|UnhandledCuda)Error"),
    # the NVIDIA driver, DCGM
    ("device", r"NVRM: Xid|uncorrectable ECC|GPU has fallen off the bus"),
    # Megatron's rerun machine, torch anomaly mode, Lightning
    ("not_finite", r"(?:found|is|returned|detected) (?:nan|inf)\b"),
    # SLURM
    ("preempted", r"DUE TO PREEMPTION|preempted"),
    # torch elastic, SLURM
    ("killed", r"exitcode\s*: -9|SIGKILL|Signal 9|oom-kill"),
    # torchtitan, Megatron, the Hugging Face Trainer, DeepSpeed, our FSDP2 program
    ("start", r"Starting job:|using world size: \d|\*{5} Running training \*{5}"
     r"|DeepSpeed info: version|^from step \d+: global batch"),
    # Megatron, torchtitan, the Trainer, DeepSpeed, NeMo, our FSDP2 program
    ("checkpoint", r"sav(?:ing|ed) (?:the |model |full )*checkpoint|checkpoint: step \d"
     r"|successfully saved checkpoint|Finished saving the checkpoint"),
)  # fmt: skip
_SIGNS = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _WORDS)
_PARAMETERS = re.compile(
    r"(?:size: ([\d,]{4,20}) total parameters|number of trainable parameters = ([\d,]{4,20})"
    r"|^parameters: (\d{3,15}), device mesh)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class LineSign:
    """What one line says."""

    kind: SignKind
    text: str
    at_s: float = 0.0


def sign_of(line: str) -> LineSign | None:
    """The sign in a line, without its rank; None if there is none.

    >>> sign_of("saved checkpoint at step 100").kind, sign_of("step: 3  loss: 2.1")
    ('checkpoint', None)
    """
    if _HINTS.search(line) is None:
        return None
    for kind, pattern in _SIGNS:
        if pattern.search(line):
            return LineSign(kind, line.strip()[:200])
    return None


def parameters_in(line: str) -> int | None:
    """The parameters of the whole model that a line prints; None if it prints none.

    >>> parameters_in("Model llama3 8B size: 8,030,261,248 total parameters")
    8030261248
    """
    if "arameters" not in line or (match := _PARAMETERS.search(line)) is None:
        return None
    return int(next(g for g in match.groups() if g).replace(",", ""))
