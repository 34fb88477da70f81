"""import-result/1: figures from the output of another tool, with their origin.

It is not a calib-result/1, because it has no control samples, clocks or spreads. It has the figures
as printed, the hash of their file, and what the user stated about the machine; constants of the
machine are computed from it each time (constants.py).
"""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    ConfigDict,
    FailFast,
    Field,
    StringConstraints,
    ValidationError,
)
from pydantic import model_validator as checked_together

from hardware.outside.json_text import Bounds, OutsideError, json_value
from hardware.outside.kept import kept_by_hash
from runners.calibration.result import Digest, Record, refusal
from runners.imports.text import ImportFileError

SCHEMA = "import-result/1"
MAX_BYTES = 5 * 10**6
MAX_MATMULS, MAX_TABLES, MAX_POINTS = 2_000, 100, 500
BOUNDS = Bounds(num_bytes=MAX_BYTES, values=300_000, lists=60_000, keys=100, is_printable=True)


def _day(text: str) -> str:
    """Check that a date exists."""
    dt.date.fromisoformat(text)
    return text


Name = Annotated[str, StringConstraints(min_length=1, max_length=80, pattern=r"^[\w.\-/+:() ]*$")]
Word = Annotated[str, StringConstraints(max_length=100, pattern=r"^[\w.\-/+:() ]*$")]
Date = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\d$"), AfterValidator(_day)]
Positive = Annotated[float, Field(gt=0, le=1e24, allow_inf_nan=False)]
Degree = Annotated[int, Field(ge=1, le=2**17)]
Axis = Annotated[int, Field(ge=1, le=10**7)]
Operation = Literal[
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "send_recv",
]  # fmt: skip
MatmulKind = Literal["median", "best_median", "best_mean", "best_max", "sustained", "boost"]


def bus_factor(op: str, ranks: int) -> float:
    """busbw over algbw of an operation: doc/PERFORMANCE.md of nccl-tests.

    >>> bus_factor("all_reduce", 8)
    1.75
    """
    if op in ("broadcast", "reduce", "send_recv"):
        return 1.0
    return (2 if op == "all_reduce" else 1) * (ranks - 1) / ranks


class CollectivePoint(Record):
    """One message size."""

    size_bytes: Positive
    time_s: Positive
    wrong: Annotated[int, Field(ge=0)] | None  # elements; None: not checked


class Collective(Record):
    """One operation over one group of ranks."""

    op: Operation
    ranks: Annotated[int, Field(ge=2, le=2**17)]
    nodes: Degree
    points: Annotated[list[CollectivePoint], Field(min_length=1, max_length=MAX_POINTS), FailFast()]

    @checked_together(mode="after")
    def _is_one_group(self) -> Self:
        sizes = [p.size_bytes for p in self.points]
        if self.ranks % self.nodes:
            raise ValueError(f"{self.ranks} ranks are not on {self.nodes} nodes alike")
        if sizes != sorted(set(sizes)):
            raise ValueError("the sizes are not each once and increasing")
        return self

    @property
    def bus_factor(self) -> float:
        """busbw over algbw."""
        return bus_factor(self.op, self.ranks)


class MatmulRate(Record):
    """One shape of matrices."""

    m: Axis
    n: Axis
    k: Axis
    flops_per_s: Positive
    kind: MatmulKind


class ImportResult(Record):
    """The figures of one file."""

    model_config = ConfigDict(title="import-result/1")

    schema_: Annotated[Literal["import-result/1"], Field(alias="schema")]
    format: Literal["nccl-tests", "mamf-finder"]
    source_sha256: Digest
    source_bytes: Annotated[int, Field(ge=1, le=10**9)]
    accelerator: Name  # canonical, as given by the user
    device: Word  # as the file prints it; '' if it does not
    measured_on: Date | None  # from the file or the user
    software: Annotated[dict[Name, Word], Field(max_length=10)]
    collectives: Annotated[list[Collective], Field(max_length=MAX_TABLES), FailFast()] = Field(
        default_factory=list
    )
    matmul_dtype: Literal["bf16", "fp16", "fp8"] | None = None
    matmuls: Annotated[list[MatmulRate], Field(max_length=MAX_MATMULS), FailFast()] = Field(
        default_factory=list
    )

    @checked_together(mode="after")
    def _says_something(self) -> Self:
        if not self.collectives and not self.matmuls:
            raise ValueError("there is neither a collective nor a matmul")
        if self.matmuls and self.matmul_dtype is None:
            raise ValueError("matmul_dtype is not given")
        return self


def import_result(*, device: str, software: dict[str, str], **values: Any) -> ImportResult:
    """The document of a file; ImportFileError if it is not usable."""
    software = {name: _word(value) for name, value in software.items()}
    try:
        return ImportResult.model_validate(
            {"schema": SCHEMA, "device": _word(device), "software": software, **values}
        )
    except ValidationError as e:
        raise ImportFileError(refusal(f"The {SCHEMA}", e)) from None


@kept_by_hash
def parse_import(content: bytes) -> ImportResult:
    """Parse a document from outside; ImportFileError, in one sentence, if any part is unsound."""
    if len(content) > MAX_BYTES:
        raise ImportFileError(f"An {SCHEMA} has at most {MAX_BYTES // 10**6} MB.")
    try:
        found = json_value(content, BOUNDS)
        if isinstance(found, dict):
            for name, most in (("collectives", MAX_TABLES), ("matmuls", MAX_MATMULS)):
                if isinstance(rows := found.get(name), list) and len(rows) > most:
                    raise OutsideError(f"has {len(rows):,} rows in {name}, more than {most:,}")
        return ImportResult.model_validate(found)
    except OutsideError as e:
        raise ImportFileError(f"The {SCHEMA} {e.clause}.") from None
    except ValidationError as e:
        raise ImportFileError(refusal(f"The {SCHEMA}", e)) from None


def _word(text: str) -> str:
    """A name from outside, reduced to the characters of a name."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "_.-/+:() ") else "_" for c in text)[
        :100
    ]
