"""Reads and checks the JSON of a plan that is to be computed again.

The file is untrusted: its size is capped before it is read, every number must be finite and
bounded, every name known. Unknown keys are ignored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from app.scenario.yaml import read_bytes
from core.errors import ScenarioError, shown
from core.evidence.uncertainty import Circumstances, doublings
from core.layout.layouts import CONTEXT_METHODS, RECOMPUTE, SCHEDULES
from core.layout.precision import PRECISIONS
from core.layout.sharding import INDEX
from core.layout.workload import OFFLOAD, Workload
from core.machine.accelerator import CUSTOM_ARCHITECTURE, Accelerator
from core.machine.calibration import Calibrated
from core.machine.cluster import Cluster
from core.machine.efficiency import Efficiency
from core.machine.rented import Terms
from core.model.transformer import Transformer
from core.scenario import Scenario
from core.search.plan import Layout
from hardware.efficiency import Stack, stacks
from hardware.facts import NUMBERS, accelerators
from hardware.outside.json_text import Bounds, OutsideError, json_value

MAX_BYTES = 32_000_000
MOST_PLANS = 10_000
LARGEST = 1e30  # of any number
BOUNDS = Bounds(
    num_bytes=MAX_BYTES, values=5_000_000, lists=1_000_000, keys=10_000, is_printable=True
)
WORDS = {
    "sharding": tuple(INDEX), "recompute": RECOMPUTE, "schedule": SCHEDULES,
    "context_parallel": CONTEXT_METHODS, "offload_optimizer": tuple(OFFLOAD),
    "offload_params": tuple(OFFLOAD),
}  # fmt: skip
TABLES = ("matmul_at", "matmul_weights")
ONCE_FLAGS = frozenset({"cuda_graphs"})  # numbers that older files have as true and false

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class OfStack:
    """What a plan trains, with the habits and efficiencies of its stack, and in which precision."""

    work: Workload
    stack: Stack
    eff: Efficiency
    precision: str  # '': of the scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPlan:
    """One plan of the file: its numbers, and the inputs they were computed from."""

    id: str
    rank: int
    numbers: Mapping[str, float]  # by key, such as memory_bytes.total; NaN for null
    accelerator: str
    num_gpus: int
    layout: Layout
    cluster: Cluster
    gpus_per_instance: float
    usd_per_hour: float  # of an instance; NaN without a price
    known: Circumstances
    terms: Terms
    startup_hours: float
    least_billed_hours: float
    moved_log: float
    variance_left: float
    of_stack: OfStack


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """The inputs and the plans of one answer."""

    version: str
    tables: str  # hashes
    code: str
    scenario: Scenario
    model: Transformer
    tokens: float
    shared: OfStack  # of the plans that have none of their own
    accelerators: Mapping[str, Accelerator]
    factors: Mapping[str, Calibrated]  # by accelerator
    plans: tuple[WrittenPlan, ...]


def read_plan_file(path: Path) -> PlanFile:
    """Read the JSON of `runcast plan --json`; raises `ScenarioError` if it is invalid."""
    return parse_plan_file(read_bytes(path, MAX_BYTES))


def parse_plan_file(content: bytes) -> PlanFile:
    """Parse the content of such a file; raises `ScenarioError` if it is invalid."""
    if len(content) > MAX_BYTES:
        raise ScenarioError(f"The plan file is larger than {MAX_BYTES / 1e6:.0f} MB.")
    try:
        whole = _Value(json_value(content, BOUNDS), "")
    except OutsideError as e:
        raise ScenarioError(f"The plan file {e.clause}.") from None
    if "inputs" not in whole.mapping():
        raise ScenarioError(
            "The plan file has no `inputs`: it is not of `runcast plan --json`, or of a version "
            "that did not write them; its `link` reopens the scenario."
        )
    plans = whole.get("plans").each()
    if len(plans) > MOST_PLANS:
        raise ScenarioError(f"The plan file has {len(plans):,} plans, more than {MOST_PLANS:,}.")
    made = whole.get("made_with", {})
    inputs = whole.get("inputs")
    transformer = inputs.get("model").get("dims").record(Transformer)
    shared = _of_stack(inputs, transformer)
    # A field that is not given is null in JSON.
    given = {k: v.value for k, v in whole.get("scenario").items() if v.value is not None}
    factors = inputs.get("calibrations", []).each()
    return PlanFile(
        version=made.get("version", "").text(),
        tables=made.get("tables", "").text(),
        code=made.get("code", "").text(),
        scenario=Scenario.parse(given),
        model=transformer,
        tokens=inputs.get("tokens").number(),
        shared=shared,
        accelerators={a.name: a for a in map(_accelerator, inputs.get("accelerators").each())},
        factors={f.get("accelerator").text(): f.get("factors").record(Calibrated) for f in factors},
        plans=tuple(_plan(p, transformer, shared) for p in plans),
    )


def _of_stack(given: _Value, model: Transformer) -> OfStack:
    return OfStack(
        work=given.get("workload").record(Workload, model=model),
        stack=_stack(given.get("stack")),
        eff=given.get("efficiency").record(Efficiency),
        precision=given.get("precision", "").word(("", *PRECISIONS)),
    )


def _plan(plan: _Value, model: Transformer, shared: OfStack) -> WrittenPlan:
    own = plan.get("inputs")
    num_gpus = plan.get("num_gpus").whole()
    return WrittenPlan(
        id=plan.get("id").text(),
        rank=plan.get("rank").whole(),
        numbers=_numbers(plan),
        accelerator=plan.get("accelerator").text(),
        num_gpus=num_gpus,
        layout=_layout(plan.get("layout")),
        cluster=own.get("cluster").record(Cluster),
        gpus_per_instance=own.get("gpus_per_instance").whole(),
        usd_per_hour=plan.get("price").get("usd_per_hour").number(),
        known=Circumstances(
            unmeasured=float(not own.get("matmul_measured").flag()),
            unseen_accelerator=float(not own.get("accelerator_measured").flag()),
            doublings=float(doublings(num_gpus)),
            network_guessed=float(own.get("network_guessed").flag()),
        ),
        terms=own.get("terms").record(Terms),
        **_billing(own.get("billing", {})),
        moved_log=own.get("moved_log").number(),
        variance_left=own.get("variance_left").number(),
        of_stack=_of_stack(own, model) if "workload" in own.mapping() else shared,
    )


def _billing(given: _Value) -> dict[str, float]:
    """The start-up and the least that is billed; 0 in a file that was written before them."""
    return {n: given.get(n, 0.0).number() for n in ("startup_hours", "least_billed_hours")}


def _numbers(plan: _Value) -> dict[str, float]:
    """Every number of a plan in the file, by key; null is NaN."""
    found: dict[str, float] = {}
    for key, value in plan.items():
        if key in ("step_s", "memory_bytes"):
            found |= {f"{key}.{part}": n.number() for part, n in value.items()}
        elif value.value is None or type(value.value) in (int, float):
            found[key] = value.number()
    return found


def _layout(given: _Value) -> Layout:
    values: dict[str, Any] = {}
    for f in fields(Layout):
        value = given.get(f.name)
        if f.name in WORDS:
            values[f.name] = value.word(WORDS[f.name])
        elif f.name == "reshard_after_forward":
            values[f.name] = value.flag()
        else:
            values[f.name] = value.whole()
    return Layout(**values)


def _stack(given: _Value) -> Stack:
    names = ("name", "gradient_dtype", "async_tp_since", "gradient_overlap_since")
    texts = {n: given.get(n).text() for n in names}
    if texts["gradient_dtype"] not in ("", "bf16", "fp32", "bf16_fp32"):
        raise given.get("gradient_dtype").wrong("bf16, fp32 or bf16_fp32")
    texts["chunked_loss"] = given.get("chunked_loss", "").text()
    known = stacks().get(texts["name"])  # habits are those of the installed table, by family, too
    family = "" if known is None else known.family
    return Stack(
        family=family, dp_sharding="", shardings=(), recompute="", attention="", note="", **texts
    )


def _accelerator(given: _Value) -> Accelerator:
    numbers: dict[str, Any] = {
        quantity: fact.get("value").number()
        for quantity, fact in given.get("facts").items()
        if fact.value is not None and quantity in NUMBERS
    }
    name = given.get("name").text()
    known = accelerators().get(name)  # the file has only figures: the table has the architecture
    architecture = CUSTOM_ARCHITECTURE if known is None else known.architecture
    try:
        return Accelerator(
            name=name, vendor=given.get("vendor").text(), architecture=architecture, **numbers
        )
    except TypeError:
        raise ScenarioError(
            f"The plan file's {given.at} lacks numbers of the accelerator."
        ) from None


@dataclass(frozen=True, slots=True)
class _Value:
    """A value of the file and its place there, which errors name."""

    value: Any
    at: str

    def get(self, key: str, default: object = None) -> _Value:
        """A value of this object, or the default."""
        return _Value(self.mapping().get(key, default), f"{self.at}.{key}" if self.at else key)

    def items(self) -> list[tuple[str, _Value]]:
        return [(key, self.get(key)) for key in self.mapping()]

    def each(self) -> list[_Value]:
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        return [_Value(value, f"{self.at}[{n}]") for n, value in enumerate(self.value)]

    def mapping(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        return self.value

    def record(self, kind: type[T], **more: object) -> T:
        """A record of numbers; fields that the file lacks have their defaults."""
        given = self.mapping()
        for f in fields(kind):  # type: ignore[arg-type]
            one = self.get(f.name)
            if f.name in more:
                continue
            if f.name in given:
                if f.name in ONCE_FLAGS and isinstance(one.value, bool):
                    more[f.name] = float(one.value)
                    continue
                read = one.table if f.name in TABLES else one.number
                more[f.name] = one.truth() if f.type == "Bools" else read()
            elif f.default is MISSING:
                raise ScenarioError(f"The plan file has no {one.at}.")
        return kind(**more)

    def table(self) -> tuple[Any, ...]:
        """Rows of a table of measured shapes: single numbers, or triples."""
        return tuple(
            tuple(x.number() for x in row.each()) if isinstance(row.value, list) else row.number()
            for row in self.each()
        )

    def truth(self) -> bool:
        """A flag; any number except 0 is true."""
        return bool(self.number()) if type(self.value) in (int, float) else self.flag()

    def number(self) -> float:
        """A finite number; null is NaN."""
        if self.value is None:
            return math.nan
        if type(self.value) not in (int, float) or abs(self.value) > LARGEST:
            raise self.wrong("a number up to 1e30")
        return float(self.value)

    def whole(self) -> int:
        if type(self.value) is not int or not 0 < self.value <= 1e9:
            raise self.wrong("a whole number above 0, up to 1e9")
        return self.value

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.wrong("true or false")
        return self.value

    def text(self) -> str:
        if not isinstance(self.value, str) or len(self.value) > 1_000:
            raise self.wrong("a text of up to 1,000 characters")
        return self.value

    def word(self, allowed: tuple[str, ...]) -> str:
        if self.value not in allowed:
            raise self.wrong(f"one of {', '.join(allowed)}")
        return str(self.value)

    def wrong(self, allowed: str) -> ScenarioError:
        """What the value is, and what it may be."""
        where = f"The plan file's {self.at}" if self.at else "The plan file"
        return ScenarioError(f"{where} is {shown(self.value)}, not {allowed}.")
