"""Calibration results: calib-result/1, refused with a reason unless everything is sound.

The keys are documented in docs/calibration.md and published as JSON Schema in
docs/calib-result-1.schema.json. validity.py judges whether sound numbers are plausible.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, FailFast, Field, StringConstraints, ValidationError
from pydantic import model_validator as checked_together

from core.errors import RuncastError, shown
from hardware.outside.json_text import Bounds, OutsideError, json_value
from hardware.outside.kept import kept_by_hash

SCHEMA = "calib-result/1"
PROBE_VERSION = 1
MAX_BYTES = 20 * 10**6
MAX_ROWS, MAX_NODES = 5000, 4096
BOUNDS = Bounds(num_bytes=MAX_BYTES, values=2_000_000, lists=50_000, keys=500, is_printable=True)


class ResultError(RuncastError):
    """A calibration result cannot be used; the text is one sentence with the reason."""


Word = Annotated[str, StringConstraints(max_length=100)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=100)]
Sentence = Annotated[str, StringConstraints(max_length=300)]
Time = Annotated[float, Field(ge=0, le=1e7, allow_inf_nan=False)]
Duration = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
Quantity = Annotated[float, Field(ge=0, le=1e24, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=2**53)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Utc = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
RunId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
# An environment variable that affects a measurement, and cannot hold a secret.
Variable = Annotated[
    str,
    StringConstraints(
        pattern=r"^(NCCL|RCCL|GLOO|CUDA|HIP|HSA|ROCR|OMP|MKL|OPENBLAS|TORCH|PYTORCH|TORCHINDUCTOR)"
        r"_\w{1,100}$"
    ),
]
SECRETS = ("TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH")
Params = Annotated[dict[Name, bool | int | Number | Word], Field(max_length=32)]
State = Annotated[dict[Name, Quantity], Field(max_length=16)]

# What the fits need from each kind of row: keys of params, and required fields.
NEEDED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "matmul": (("m", "n", "k"), ("dtype", "flops", "rel_err", "data_entropy_bits")),
    "attention": (("batch", "num_heads", "seq_len", "head_dim", "causal"), ("dtype", "flops")),
    "block": (("hidden_size", "seq_len", "micro_batch_size"), ("dtype", "flops")),
    "compiled_block": (("hidden_size", "seq_len", "micro_batch_size"), ("dtype", "flops")),
    "layers": (("num_layers", "hidden_size", "seq_len", "micro_batch_size"), ("dtype", "flops")),
    "holdout": (
        ("num_layers", "hidden_size", "seq_len", "micro_batch_size"),
        ("dtype", "flops", "loss_first", "loss_last"),
    ),
    "collectives": (
        ("op", "group", "ranks", "nodes"),
        ("dtype", "bytes", "bus_factor", "wrong"),
    ),
    "overlap": (("op", "group", "ranks"), ("bytes", "flops", "t_compute_s", "t_comm_s")),
    "memory_bandwidth": (("size_bytes",), ("bytes",)),
    "memory_bound": (("tokens", "columns"), ("dtype", "bytes")),
    "host_device": (("size_bytes", "pinned"), ("bytes",)),
    "optimizer": (("parameters",), ("bytes",)),
    "checkpoint": (("size_bytes", "fsync", "file_system", "writers"), ("bytes",)),
}


class Record(BaseModel):
    """Base of all records. An unknown key is an error: it may be a typo or a secret."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Device(Record):
    """The device, as it describes itself."""

    kind: Literal["cuda", "rocm", "cpu"]
    name: Name
    sku_key: Name | None
    memory_bytes: Quantity
    num_local: Annotated[int, Field(ge=1, le=1024)]
    multiprocessor_count: Count | None = None
    compute_capability: Word | None = None
    l2_bytes: Quantity | None = None
    uuid: Word | None = None
    pcie_gen: Word | None = None
    pcie_width: Word | None = None
    mig: Word | None = None
    ecc: Word | None = None


class Provenance(Record):
    """Place, time and software of the measurement."""

    utc_start: Utc
    utc_end: Utc
    sessions: Annotated[int, Field(ge=1, le=1000)]
    planner_version: Word | None
    planner_commit: Word | None
    probe_sha256: Digest
    plan_sha256: Digest
    reduced: bool
    argv: Annotated[list[Annotated[str, StringConstraints(max_length=4096)]], Field(max_length=40)]
    launcher: Word | None
    job_id: Word | None
    told: Annotated[dict[Name, Word], Field(max_length=16)]
    host: Annotated[str, StringConstraints(max_length=255)]
    anonymised: bool
    python: Word
    torch: Word
    cuda: Word | None
    hip: Word | None
    cudnn: Word | None
    nccl: Word | None
    triton: Word | None
    driver: Word | None
    os: Annotated[str, StringConstraints(max_length=200)]
    env: Annotated[
        dict[Variable, Annotated[str, StringConstraints(max_length=200)]], Field(max_length=200)
    ]
    num_threads: Count
    num_cpus: Count | None
    fp32_matmul_precision: Word
    world_size: Annotated[int, Field(ge=1, le=2**17)]
    device: Device
    topology: Annotated[str, StringConstraints(max_length=20000)] | None

    @checked_together(mode="after")
    def _is_in_order(self) -> Self:
        if self.utc_end < self.utc_start:
            raise ValueError(f"utc_end {self.utc_end} is before utc_start {self.utc_start}")
        for name in self.env:
            if any(secret in name.upper() for secret in SECRETS):
                raise ValueError(f"the variable {name} may hold a secret")
        return self


class Node(Record):
    """One machine of the run."""

    index: Count
    ranks: Annotated[int, Field(ge=1, le=1024)]
    host: Annotated[str, StringConstraints(max_length=255)]
    device_name: Name
    uuid: Word | None


class Group(Record):
    """One group of measurements, and the device before, during and after it."""

    name: Name
    at_s: Time
    wall_s: Time
    state_before: State
    state_during: State
    state_after: State


class Settling(Record):
    """The first seconds of work, until clock and power of a GPU no longer moved."""

    wall_s: Time
    rel_range: Quantity  # highest over lowest of the last windows, less 1
    from_first: Quantity  # the last rate over the first


class Control(Record):
    """The control operation: one matmul, repeated through the run."""

    at_s: Time
    after_group: Name
    t_med_s: Duration
    rel_iqr: Quantity
    n: Annotated[int, Field(ge=1, le=10**6)]


class Skipped(Record):
    """A row that was not measured, with the reason."""

    group: Name
    label: Word
    reason: Sentence


class Row(Record):
    """One measured operation; times are seconds per call."""

    probe: Literal[
        "matmul", "attention", "block", "compiled_block", "layers", "holdout", "collectives",
        "overlap", "memory_bandwidth", "memory_bound", "host_device", "optimizer", "checkpoint",
    ]  # fmt: skip
    label: Name
    params: Params
    dtype: Literal["bf16", "fp16", "fp32", "fp8"] | None = None
    mode: Literal["fwd", "fwdbwd", "step"]
    compiled: bool = False
    cold_cache: bool
    t_med_s: Duration
    t_p10_s: Duration
    t_p90_s: Duration
    t_min_s: Duration
    rel_iqr: Quantity
    n: Annotated[int, Field(ge=1, le=10**6)]
    calls_per_sample: Annotated[int, Field(ge=1, le=10**9)]
    flops: Quantity | None = None
    flop_convention: Sentence | None = None
    bytes: Quantity | None = None
    byte_convention: Sentence | None = None
    bus_factor: Annotated[float, Field(gt=0, le=2, allow_inf_nan=False)] | None = None
    rel_err: Quantity | None = None
    wrong: Count | None = None
    loss_first: Number | None = None
    loss_last: Number | None = None
    data_entropy_bits: Annotated[float, Field(ge=0, le=8, allow_inf_nan=False)] | None = None
    t_compute_s: Duration | None = None
    t_comm_s: Duration | None = None
    slowest_rank: Count | None = None
    t_med_by_node_s: Annotated[list[Duration], Field(max_length=MAX_NODES)] | None = None

    @checked_together(mode="after")
    def _is_whole(self) -> Self:
        if not self.t_min_s <= self.t_p10_s <= self.t_med_s <= self.t_p90_s:
            raise ValueError("t_min_s, t_p10_s, t_med_s and t_p90_s are not in this order")
        keys, needed = NEEDED[self.probe]
        missing = [k for k in keys if k not in self.params]
        missing += [name for name in needed if getattr(self, name) is None]
        if missing:
            raise ValueError(f"a row of {self.probe} lacks {', '.join(missing)}")
        return self

    @property
    def flops_per_s(self) -> float | None:
        """Achieved rate of the median call."""
        return None if self.flops is None else self.flops / self.t_med_s

    @property
    def bytes_per_s(self) -> float | None:
        """Achieved rate of the median call; of a collective, nccl-tests' algbw."""
        return None if self.bytes is None else self.bytes / self.t_med_s

    @property
    def bus_bytes_per_s(self) -> float | None:
        """nccl-tests' busbw: comparable across operations and numbers of ranks."""
        rate, factor = self.bytes_per_s, self.bus_factor
        return None if rate is None or factor is None else rate * factor


class CalibResult(Record):
    """One run of the probe on one set of nodes."""

    model_config = ConfigDict(title="calib-result/1")

    schema_: Annotated[Literal["calib-result/1"], Field(alias="schema")]
    probe_version: Literal[1]
    run_id: RunId
    complete: bool
    wall_s: Time
    budget_s: Time
    usd: Quantity | None
    provenance: Provenance
    nodes: Annotated[list[Node], Field(min_length=1, max_length=MAX_NODES), FailFast()]
    groups: Annotated[list[Group], Field(max_length=50), FailFast()]
    control: Annotated[list[Control], Field(max_length=200), FailFast()]
    settling: Settling | None = None  # None: of a CPU, or of a probe without it
    results: Annotated[list[Row], Field(min_length=1, max_length=MAX_ROWS), FailFast()]
    skipped: Annotated[list[Skipped], Field(max_length=MAX_ROWS), FailFast()]

    @checked_together(mode="after")
    def _agrees(self) -> Self:
        if sum(node.ranks for node in self.nodes) != self.provenance.world_size:
            raise ValueError("the ranks of the nodes do not add up to world_size")
        for row in self.results:
            if row.t_med_by_node_s is not None and len(row.t_med_by_node_s) != len(self.nodes):
                raise ValueError(
                    f"{row.label} has not one time for each of {len(self.nodes)} nodes"
                )
        return self

    def rows(self, probe: str) -> list[Row]:
        """The rows of one group."""
        return [row for row in self.results if row.probe == probe]


def too_large(num_bytes: int) -> str:
    """The sentence that refuses a file of so many bytes."""
    return f"The result has {num_bytes / 1e6:,.0f} MB; at most {MAX_BYTES / 1e6:.0f} MB are read."


def parse_result(data: bytes | str) -> CalibResult:
    """Parse a result from outside; ResultError, in one sentence, if any part is unsound."""
    return _parsed(data.encode(errors="replace") if isinstance(data, str) else data)


@kept_by_hash
def _parsed(raw: bytes) -> CalibResult:
    if len(raw) > MAX_BYTES:
        raise ResultError(too_large(len(raw)))
    try:
        found = json_value(raw, BOUNDS)
    except OutsideError as e:
        raise ResultError(f"The result {e.clause}.") from None
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        given = found.get("schema") if isinstance(found, dict) else type(found).__name__
        raise ResultError(f"The result is {shown(given)}, not {SCHEMA}.")
    if found.get("probe_version") != PROBE_VERSION:
        raise ResultError(
            f"The result is of probe version {shown(found.get('probe_version'))}, which measures "
            f"otherwise than version {PROBE_VERSION}: measure again."
        )
    _refuse_rows(found)
    try:
        return CalibResult.model_validate(found)
    except ValidationError as e:
        raise ResultError(refusal("The result", e)) from None


def _refuse_rows(found: dict[str, Any]) -> None:
    """Refuse too many rows before any is looked at."""
    most = {"results": MAX_ROWS, "skipped": MAX_ROWS, "nodes": MAX_NODES}
    for name, rows in found.items():
        if isinstance(rows, list) and len(rows) > most.get(name, MAX_ROWS):
            raise ResultError(
                f"The result has {len(rows):,} rows in {shown(name)}, more than "
                f"{most.get(name, MAX_ROWS):,}."
            )


def refusal(subject: str, error: ValidationError) -> str:
    """Sentence on the first mistake, with its place, and the number of further mistakes."""
    errors = error.errors(include_url=False, include_context=False)
    # A misspelt key is also a missing one: the misspelling is more helpful.
    first = next((e for e in errors if e["type"] == "extra_forbidden"), errors[0])
    place = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in first["loc"]).lstrip(".")
    more = len(errors) - 1
    rest = f" ({more} more like it)" if more else ""
    if first["type"] == "extra_forbidden":
        return f"{subject} has the unknown key {shown(place)}{rest}."
    what = _reason(first["msg"].removeprefix("Value error, "))
    value = first["input"]
    given = "" if isinstance(value, dict | list) or first["type"] == "missing" else shown(value)
    where = shown(place or "the top")
    return f"{subject} is refused at {where}: {what}{given and ', not '}{given}{rest}."


def _reason(text: str) -> str:
    line = text.strip().splitlines()[0] if text.strip() else "unknown"
    clean = "".join(c if c.isprintable() else "?" for c in line[:200]).rstrip(".")
    return clean[:1].lower() + clean[1:] if clean[1:2].islower() else clean
