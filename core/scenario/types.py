"""Types of scenario fields: allowed words, bounds, and parsing of numbers and lists."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, JsonValue

from core.errors import shown
from core.machine.offer import Purchase
from core.scenario.quotes import written_quotes
from core.units import written_number

Precision = Literal["fp16", "bf16", "fp8", "fp8_rowwise", "fp8_blockwise", "mxfp8", "nvfp4", "int8"]
Sharding = Literal["ddp", "zero1", "zero2", "zero3", "fsdp1", "fsdp2", "hsdp", "zeropp"]
Recompute = Literal["none", "selective", "norm_act", "mlp", "full", "offload"]
Task = Literal["pretrain", "sft", "lora", "qlora"]
Optimizer = Literal["adamw", "adamw_8bit", "adamw_bf16", "adafactor", "muon", "sgd"]
Schedule = Literal["naive", "gpipe", "1f1b", "interleaved", "zero_bubble"]
ContextParallel = Literal["ring", "all_gather", "ulysses"]
Offload = Literal["none", "cpu", "nvme", "search"]
Attention = Literal["flash3", "flash2", "unfused"]
Dispatcher = Literal["per_node", "per_expert", "grouped", "masks", "loop"]
AsyncTp = Literal["", "on", "off"]
GradientDtype = Literal["", "bf16", "fp32", "bf16_fp32"]
LoraTargets = Literal["qkv", "attention", "all"]
WeightDtype = Literal["", "bf16", "fp32"]
LossKernel = Literal[
    "", "standard", "standard_16", "parallel", "compiled", "chunked", "fused_linear"
]
NormKernels = Literal["", "eager", "fused"]
NetworkKind = Literal["", "infiniband", "roce", "efa", "ethernet"]
RankBy = Literal["usd", "time"]
ListOrder = Literal["rank", "usd", "time", "failing", "gpus", "price", "speed", "mfu", "memory"]
ListUnit = Literal["run", "mtoken", "gpu_hour"]
ListMeasure = Literal["usd", "mtoken", "price", "days"]


def field(default: Any, label: str, help_text: str, group: str = "basic", **bounds: Any) -> Any:
    """A field of the scenario, with its label and help text for the form."""
    extra: dict[str, JsonValue] = {"label": label, "group": group}
    return Field(default, title=label, description=help_text, json_schema_extra=extra, **bounds)


def listed(value: Any) -> Any:
    """'a,b' or ['a', 'b'] -> ('a', 'b'), each once, in the order given."""
    parts = value.split(",") if isinstance(value, str) else value
    if isinstance(parts, (list, tuple)):
        parts = [p.strip() if isinstance(p, str) else p for p in parts]
        return once(p for p in parts if p != "")
    return (parts,)


def once(parts: Iterable[Any]) -> tuple[Any, ...]:
    """Each part once, in the order given, also for parts that cannot be hashed."""
    found: list[Any] = []
    for part in parts:
        if part not in found:
            found.append(part)
    return tuple(found)


def number(value: Any) -> Any:
    """'15T' -> 1.5e13; other types are returned as they are."""
    return written_number(value) if isinstance(value, str) else value


_UNIT = re.compile(r"(?<=[\dktmbg.])\s*(?:tokens?|sequences?|examples?|gpus?|days?)\s*", re.I)
_WEEKS = re.compile(r"(.*\d)\s*weeks?\s*", re.I)
_DOLLARS = re.compile(r"\s*(?:\$|usd\b)?\s*(.*?)\s*(?:\$|usd|dollars?)?\s*", re.I)
_RANGE = re.compile(r"\s*(\d{1,7})\s*(?:-|\N{EN DASH}|to)\s*(\d{1,7})\s*", re.I)


def amount(value: Any) -> Any:
    """'4M tokens' -> 4e6: a number with the unit of its field, or without."""
    return number(_without_unit(value))


def _without_unit(value: Any) -> Any:
    if not isinstance(value, str) or len(value) > LONGEST_NUMBER:
        return value
    end = next((m for m in _UNIT.finditer(value) if m.end() == len(value)), None)
    return value[: end.start()] if end else value


def days(value: Any) -> Any:
    """'14 days' -> 14, '2 weeks' -> 14."""
    short = value if isinstance(value, str) and len(value) <= LONGEST_NUMBER else ""
    weeks = _WEEKS.fullmatch(short)
    return 7 * written_number(weeks[1]) if weeks else amount(value)


def dollars(value: Any) -> Any:
    """'$1M' -> 1e6, '250k USD' -> 250e3."""
    if isinstance(value, str) and len(value) <= LONGEST_NUMBER:
        found = _DOLLARS.fullmatch(value)
        value = found[1] if found and found[1] else value
    return number(value)


def price_age(value: Any) -> Any:
    """'auto' -> None: the life of each seller's prices."""
    if isinstance(value, str) and value.strip().lower() == "auto":
        return None
    try:
        return number(value)
    except ValueError:
        raise ValueError(f"{shown(value)} is not a number of days, 0 (any age) or auto") from None


def length(value: Any) -> Any:
    """'8k' -> 8192: lengths count in 1024s."""
    value = _without_unit(value)
    return written_number(value, binary=True) if isinstance(value, str) else value


def counts(value: Any) -> Any:
    """'8,64' -> (8, 64), each once; '64-256' -> (64, 128, 256), doubled."""
    return once(n for v in listed(value) for n in _doubled(v))


def _doubled(value: Any) -> Iterable[Any]:
    """A range of GPUs as its first number, doubled up to its last; another text as a number."""
    ends = _RANGE.fullmatch(_without_unit(value)) if isinstance(value, str) else None
    if ends is None:
        return (amount(value),)
    first, last = int(ends[1]), int(ends[2])
    if not 0 < first <= last:
        raise ValueError(f"{shown(value)} is not a range of GPUs like 64-256, the smaller first")
    steps = range((last // first).bit_length())
    return once([*(first * 2**n for n in steps), last])


LONGEST_NUMBER = 64
MOST_VERSION_CHARS = 32
# PEP 440 without a local part: 0.1.0, 1.0rc2, 1.0.post1.dev3.
_VERSION = re.compile(r"([0-9]+!)?[0-9]+(\.[0-9]+)*((a|b|rc)[0-9]+)?(\.post[0-9]+)?(\.dev[0-9]+)?")


def version(value: Any) -> Any:
    """'0.1.0', or nothing; ValueError for other text."""
    if not isinstance(value, str) or not value:
        return value
    if len(value) > MOST_VERSION_CHARS or not _VERSION.fullmatch(value):
        raise ValueError(f"{shown(value)} is not a version like 0.1.0")
    return value


AUTO = "auto"  # of a field: the search decides
NAME = r"^[\w.\-/+:() ]*$"
LAYOUT = r"^[\w.=,\- ]*$"
PLAN = r"^[\w.\-/+:() ~*]*$"
POLICY = r"^[\w :+,=]*$"
BOOK = r"^([a-z0-9][a-z0-9_-]*)?$"
MONTH = r"^(20[0-9]{2}-(0[1-9]|1[0-2]))?$"
SNAPSHOT = r"^[0-9a-f]*$"
CALIBRATION = r"^[0-9a-f]{16}$"
PATTERNS = {  # the rule for the text, by pattern
    NAME: "may hold letters, digits, spaces and . _ - / + : ( ) only",
    LAYOUT: "should be like tp=8,pp=4,micro_batch_size=1",
    PLAN: "is not the id of a plan",
    POLICY: "should be a policy like save_qkv_proj or custom offload:query_proj+out_proj",
    BOOK: "should be lower-case letters, digits, _ and -, with a letter or digit first",
    MONTH: "should be a month like 2025-06",
    SNAPSHOT: "should be the id of a price snapshot, like 418dd4911f7e",
    CALIBRATION: "should be the id of a calibration: 16 of the digits 0-9 and a-f",
}

Name = Annotated[str, Field(min_length=1, max_length=80, pattern=NAME)]
Names = Annotated[tuple[Name, ...], BeforeValidator(listed), Field(max_length=64)]
Kinds = Annotated[tuple[Purchase, ...], BeforeValidator(listed)]
MOST_LISTED = 16
FewNames = Annotated[tuple[Name, ...], BeforeValidator(listed), Field(max_length=MOST_LISTED)]
Count = Annotated[int, BeforeValidator(amount), Field(ge=1)]
Amount = Annotated[float, BeforeValidator(amount), Field(gt=0)]
Length = Annotated[int, BeforeValidator(length)]
GpuCount = Annotated[int, Field(ge=1, le=131_072)]
SomeGpus = Annotated[GpuCount | None, BeforeValidator(amount)]
Days = Annotated[Annotated[float, Field(gt=0, le=36_500)] | None, BeforeValidator(days)]
MostDays = Annotated[Annotated[float, Field(ge=0, le=36_500)] | None, BeforeValidator(days)]
PriceAge = Annotated[Annotated[float, Field(ge=0, le=36_500)] | None, BeforeValidator(price_age)]
Dollars = Annotated[Annotated[float, Field(gt=0, le=1e13)] | None, BeforeValidator(dollars)]
MostDollars = Annotated[Annotated[float, Field(ge=0, le=1e13)] | None, BeforeValidator(dollars)]
Rate = Annotated[Annotated[float, Field(gt=0, le=1e6)] | None, BeforeValidator(number)]
Degree = Annotated[Annotated[int, Field(ge=1, le=65_536)] | None, BeforeValidator(number)]
Small = Annotated[Annotated[int, Field(ge=0, le=16_384)] | None, BeforeValidator(number)]
Large = Annotated[Annotated[int, Field(ge=0, le=16_777_216)] | None, BeforeValidator(number)]
Flag = bool | None
Made = Annotated[str, BeforeValidator(version), Field(max_length=MOST_VERSION_CHARS)]
Calibrations = Annotated[
    tuple[Annotated[str, Field(pattern=CALIBRATION)], ...],
    BeforeValidator(listed),
    Field(max_length=16),
]
Quotes = Annotated[tuple[str, ...], BeforeValidator(written_quotes)]
MOST_PINNED = 4
Pinned = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=200, pattern=PLAN)], ...],
    BeforeValidator(listed),
    Field(max_length=MOST_PINNED),
]
Share = Annotated[Annotated[float, Field(ge=0, le=1)] | None, BeforeValidator(number)]
Frequency = Annotated[Annotated[float, Field(ge=0, le=1e6)] | None, BeforeValidator(number)]
Minutes = Annotated[Annotated[float, Field(ge=0, le=525_600)] | None, BeforeValidator(number)]
Seconds = Annotated[Annotated[float, Field(ge=0, le=1e9)] | None, BeforeValidator(number)]
MinNodes = Annotated[Annotated[int, Field(ge=1, le=1_000_000)] | None, BeforeValidator(number)]
Spares = Annotated[Annotated[int, Field(ge=0, le=10_000)] | None, BeforeValidator(number)]
Zones = Annotated[Annotated[int, Field(ge=1, le=32)] | None, BeforeValidator(number)]
