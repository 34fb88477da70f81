"""Strategies by the names that practitioners use, each as fields of a scenario.

A name may stand for several settings ("TP x PP x DP"); the fastest setting that fits counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

from app.document import vocabulary
from tests.support.guides.one_case import Fields, Miss, Run, forecast

WITHOUT_RESHARD = "FSDP2 without reshard"
# How much of a run is split up: of equally fast strategies the simplest is recommended.
LEVELS = {
    "ddp": 0, "zero1": 1, "zero2": 2, "fsdp1": 3, "fsdp2": 3, "zero3": 3, "hsdp": 4, "zeropp": 4,
}  # fmt: skip
CUT_LEVEL, PIPELINE_LEVEL, OFFLOAD_LEVEL = 5, 6, 7
TASKS = {"sft": "full fine-tune", "lora": "LoRA", "qlora": "QLoRA", "pretrain": "pretraining"}

ON_GPU: Fields = {"offload_optimizer": "none", "offload_params": "none"}
_DATA: Fields = {"tp": 1, "pp": 1, "cp": 1}
_WHOLE: Fields = {**ON_GPU, **_DATA}
_ZERO1: Fields = {**ON_GPU, "sharding": "zero1,ddp"}  # DDP covers one rank, which shards nothing
_TP_PP = tuple({**_ZERO1, "tp": tp, "pp": pp} for tp, pp in product((2, 4, 8), (2, 4, 8, 16, 32)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """A strategy that a guide names, and the settings that the name may mean."""

    words: str
    tries: tuple[Fields, ...]
    cuts: tuple[str, ...] = ()  # degrees that must exceed 1 for a layout of `wider` to count
    wider: Fields | None = None  # a wider search, run first because it usually suffices


def _sharded(words: str, sharding: str, **more: object) -> Strategy:
    return Strategy(words=words, tries=({**_WHOLE, "sharding": sharding, **more},))


WAYS: Mapping[str, Strategy] = {
    "ddp": _sharded("DDP", "ddp"),
    "zero1": _sharded("ZeRO-1", "zero1"),
    "zero2": _sharded("ZeRO-2", "zero2"),
    "fsdp2_keep": _sharded(WITHOUT_RESHARD, "fsdp2", reshard_after_forward=False),
    "fsdp2": _sharded("FSDP2", "fsdp2"),
    "zero3": _sharded("ZeRO-3", "zero3"),
    "hsdp": _sharded("HSDP", "hsdp"),
    "zero3_tp": _sharded("ZeRO-3 + TP8", "zero3", tp=8),
    "fsdp2_tp": _sharded("FSDP2 + TP8", "fsdp2", tp=8),
    "tp_pp": Strategy(words="TP x PP x DP", tries=_TP_PP, cuts=("tp", "pp"), wider=_ZERO1),
    "tp_pp_ep": Strategy(
        words="TP x PP x DP + EP", tries=_TP_PP, cuts=("tp", "pp", "ep"), wider=_ZERO1
    ),
    "ep": Strategy(
        words="expert parallel",
        cuts=("ep",),
        wider=ON_GPU,
        tries=tuple({**ON_GPU, "ep": ep} for ep in (2, 4, 8, 16, 32, 64, 128)),
    ),
    "no_ep": Strategy(words="without expert parallel", tries=({**ON_GPU, "ep": 1},)),
    "cp": Strategy(
        words="context parallel",
        cuts=("cp",),
        wider=ON_GPU,
        tries=tuple({**ON_GPU, "cp": cp} for cp in (2, 4, 8, 16, 32, 64)),
    ),
    "no_cp": Strategy(words="without context parallel", tries=({**ON_GPU, "cp": 1},)),
    "zero3_cpu": _sharded(
        "ZeRO-3 + CPU offload of the optimizer", "zero3", offload_optimizer="cpu"
    ),
    "zero3_cpu_all": _sharded(
        "ZeRO-3 + CPU offload of optimizer and weights", "zero3", offload_optimizer="cpu",
        offload_params="cpu",
    ),
    "fsdp2_cpu": _sharded(  # CPUOffloadPolicy offloads both
        "FSDP2 + CPU offload of optimizer and weights", "fsdp2", offload_optimizer="cpu",
        offload_params="cpu",
    ),
    "zero3_nvme": _sharded(
        "ZeRO-3 + NVMe offload of optimizer and weights", "zero3", offload_optimizer="nvme",
        offload_params="nvme",
    ),
    "full": Strategy(words="full fine-tune", tries=({**ON_GPU, "task": "sft"},)),
    "lora": Strategy(words="LoRA", tries=({**ON_GPU, "task": "lora"},)),
    "qlora": Strategy(words="QLoRA", tries=({**ON_GPU, "task": "qlora"},)),
}  # fmt: skip
SIMPLE = (("ddp",), ("zero1",), ("zero2", "fsdp2_keep"), ("fsdp2", "zero3"))  # by level
LEANEST = ("zero3",)
OFFLOADED = ("zero3_cpu", "zero3_cpu_all", "zero3_nvme")
TASK_ORDER = ("full", "lora", "qlora")  # the more is trained the better, if it fits


def forecast_of(way: str, case: Fields) -> Run | Miss:
    """The fastest setting of a way that fits a case; otherwise the nearest miss."""
    num_gpus = int(str(case["num_gpus"]))
    wider = WAYS[way].wider
    for search in () if wider is None else ({}, wider):  # the first runs for every case anyway
        widest = forecast({**case, **search})
        if isinstance(widest, Run) and _is_one(widest, WAYS[way]):
            return widest
    tries = [t for t in WAYS[way].tries if prod(_degrees(t)) <= num_gpus]
    found = [forecast({**case, **t}) for t in tries] or [Miss(rule="it needs more GPUs")]
    runs = [f for f in found if isinstance(f, Run)]
    if runs:
        return min(runs, key=lambda r: (r.is_tight, r.step_s))
    misses = [f for f in found if isinstance(f, Miss)]
    return min(misses, key=lambda m: (bool(m.rule), m.host_bytes, m.short_bytes))


def _is_one(run: Run, way: Strategy) -> bool:
    """Whether a layout found by the wider search belongs to the way."""
    among = str((way.wider or {}).get("sharding", run.layout.sharding)).split(",")
    return (
        run.offload == ("none", "none")
        and run.layout.sharding in among
        and all(getattr(run.layout, cut) > 1 for cut in way.cuts)
    )


def _degrees(fields: Fields) -> list[int]:
    return [int(str(fields.get(name, 1))) for name in ("tp", "pp", "cp")]


def level(run: Run) -> int:
    """How much is split up, as an ascending level: replicas, shards, tensors, stages, host
    memory."""
    x = run.layout
    if x.pp > 1:
        cut = PIPELINE_LEVEL
    elif x.tp > 1 or x.cp > 1:
        cut = CUT_LEVEL
    else:
        kept = x.sharding == "fsdp2" and not x.reshard_after_forward
        cut = LEVELS["zero2" if kept else x.sharding]
    return cut if run.offload == ("none", "none") else OFFLOAD_LEVEL + cut


def strategy(run: Run) -> str:
    """A layout in practitioners' words: DDP, FSDP2 + TP2, TP4 x PP8 x DP2 with ZeRO-1."""
    x = run.layout
    ranks = x.dp_replicate * x.dp_shard
    kept = x.sharding == "fsdp2" and not x.reshard_after_forward
    sharding = WITHOUT_RESHARD if kept else vocabulary.SHARDINGS[x.sharding]
    degrees = {"TP": x.tp, "CP": x.cp, "PP": x.pp, "DP": ranks if x.pp > 1 else 1}
    parts = [f"{name}{n}" for name, n in degrees.items() if n > 1]
    if x.pp > 1:
        words = " x ".join(parts) + (f" with {sharding}" if ranks > 1 else "")
    else:
        shards = [sharding] if ranks > 1 or x.cp > 1 else []
        words = " + ".join([*shards, *parts]) or "One GPU"
    words += f" + EP{x.ep}" if x.ep > 1 else ""
    return words + _offload_words(run)


def _offload_words(run: Run) -> str:
    """What is offloaded to the host: ' + CPU offload of the optimizer'."""
    optimizer, weights = run.offload
    where = {"cpu": "CPU", "nvme": "NVMe"}
    if weights in where:
        return f" + {where[weights]} offload of optimizer and weights"
    if optimizer in where:
        return f" + {where[optimizer]} offload of the optimizer"
    return ""
