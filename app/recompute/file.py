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

import orjson

from app.scenario.yaml import read_bytes
from core.errors import ScenarioError, shown
from core.evidence.uncertainty import Circumstances, doublings
from core.layout.layouts import CONTEXT_METHODS, RECOMPUTE, SCHEDULES
from core.layout.sharding import INDEX
from core.layout.workload import OFFLOAD, Workload
from core.machine.accelerator import CUSTOM_ARCHITECTURE, Accelerator, Architecture
from core.machine.calibration import Calibrated
from core.machine.cluster import Cluster
from core.machine.efficiency import Efficiency
from core.model.transformer import Transformer
from core.scenario import Scenario
from core.search.plan import Layout
from hardware.efficiency import Stack
from hardware.facts import NUMBERS, accelerators
from pricing.book.offers import Terms

MAX_BYTES = 32_000_000
MOST_PLANS = 10_000
LARGEST = 1e30  # of any number
WORDS = {
    "sharding": tuple(INDEX), "recompute": RECOMPUTE, "schedule": SCHEDULES,
    "context_parallel": CONTEXT_METHODS, "offload_optimizer": tuple(OFFLOAD),
    "offload_params": tuple(OFFLOAD),
}  # fmt: skip
TABLES = ("matmul_at", "matmul_weights")

T = TypeVar("T")


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
    moved_log: float
    variance_left: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """The inputs and the plans of one answer."""

    version: str
    tables: str  # hashes
    code: str
    scenario: Scenario
    model: Transformer
    tokens: float
    work: Workload
    stack: Stack
    eff: Efficiency
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
        found = orjson.loads(content)
    except orjson.JSONDecodeError as e:
        raise ScenarioError(f"The plan file is not JSON: {shown(str(e))[1:-1]}.") from None
    whole = _object(found, "")
    if "inputs" not in whole:
        raise ScenarioError(
            "The plan file has no `inputs`: it is not of `runcast plan --json`, or of a version "
            "that did not write them; its `link` reopens the scenario."
        )
    plans = _list(whole.get("plans"), "plans")
    if len(plans) > MOST_PLANS:
        raise ScenarioError(f"The plan file has {len(plans):,} plans, more than {MOST_PLANS:,}.")
    made = _object(whole.get("made_with", {}), "made_with")
    inputs = _object(whole["inputs"], "inputs")
    model = _object(inputs.get("model"), "inputs.model")
    transformer = _record(Transformer, model.get("dims"), "inputs.model.dims")
    return PlanFile(
        version=_text(made.get("version", ""), "made_with.version"),
        tables=_text(made.get("tables", ""), "made_with.tables"),
        code=_text(made.get("code", ""), "made_with.code"),
        scenario=_scenario(whole.get("scenario")),
        model=transformer,
        tokens=_number(inputs.get("tokens"), "inputs.tokens"),
        work=_record(Workload, inputs.get("workload"), "inputs.workload", model=transformer),
        stack=_stack(inputs.get("stack"), "inputs.stack"),
        eff=_record(Efficiency, inputs.get("efficiency"), "inputs.efficiency"),
        accelerators=_accelerators(inputs.get("accelerators")),
        factors=_factors(inputs.get("calibrations", [])),
        plans=tuple(_plan(p, f"plans[{n}]") for n, p in enumerate(plans)),
    )


def _scenario(value: object) -> Scenario:
    given = _object(value, "scenario")
    # A field that is not given is null in JSON; it is left out here.
    return Scenario.parse({k: v for k, v in given.items() if v is not None})


def _plan(value: object, at: str) -> WrittenPlan:
    plan = _object(value, at)
    own = _object(plan.get("inputs"), f"{at}.inputs")
    price = _object(plan.get("price"), f"{at}.price")
    num_gpus = _whole(plan.get("num_gpus"), f"{at}.num_gpus")

    def flag(name: str) -> bool:
        return _flag(own.get(name), f"{at}.inputs.{name}")

    return WrittenPlan(
        id=_text(plan.get("id"), f"{at}.id"),
        rank=_whole(plan.get("rank"), f"{at}.rank"),
        numbers=_numbers(plan, at),
        accelerator=_text(plan.get("accelerator"), f"{at}.accelerator"),
        num_gpus=num_gpus,
        layout=_layout(plan.get("layout"), f"{at}.layout"),
        cluster=_record(Cluster, own.get("cluster"), f"{at}.inputs.cluster"),
        gpus_per_instance=_whole(own.get("gpus_per_instance"), f"{at}.inputs.gpus_per_instance"),
        usd_per_hour=_number(price.get("usd_per_hour"), f"{at}.price.usd_per_hour"),
        known=Circumstances(
            unmeasured=float(not flag("matmul_measured")),
            unseen_accelerator=float(not flag("accelerator_measured")),
            doublings=float(doublings(num_gpus)),
            network_guessed=float(flag("network_guessed")),
        ),
        terms=_record(Terms, own.get("terms"), f"{at}.inputs.terms"),
        moved_log=_number(own.get("moved_log"), f"{at}.inputs.moved_log"),
        variance_left=_number(own.get("variance_left"), f"{at}.inputs.variance_left"),
    )


def _numbers(plan: Mapping[str, Any], at: str) -> dict[str, float]:
    """Every number of a plan in the file, by key; null is NaN."""
    found: dict[str, float] = {}
    for key, value in plan.items():
        if key in ("step_s", "memory_bytes"):
            for part, number in _object(value, f"{at}.{key}").items():
                found[f"{key}.{part}"] = _number(number, f"{at}.{key}.{part}")
        elif value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            found[key] = _number(value, f"{at}.{key}")
    return found


def _layout(value: object, at: str) -> Layout:
    given = _object(value, at)
    values: dict[str, Any] = {}
    for f in fields(Layout):
        inner, name = given.get(f.name), f"{at}.{f.name}"
        if f.name in WORDS:
            if inner not in WORDS[f.name]:
                raise _wrong(name, inner, f"one of {', '.join(WORDS[f.name])}")
            values[f.name] = inner
        elif f.name == "reshard_after_forward":
            values[f.name] = _flag(inner, name)
        else:
            values[f.name] = _whole(inner, name)
    return Layout(**values)


def _stack(value: object, at: str) -> Stack:
    given = _object(value, at)
    said = {
        n: _text(given.get(n), f"{at}.{n}")
        for n in ("name", "gradient_dtype", "async_tp_since", "gradient_overlap_since")
    }
    if said["gradient_dtype"] not in ("", "bf16", "fp32", "bf16_fp32"):
        raise _wrong(f"{at}.gradient_dtype", said["gradient_dtype"], "bf16, fp32 or bf16_fp32")
    return Stack(
        family="", dp_sharding="", shardings=(), recompute="", attention="", note="", **said
    )


def _accelerators(value: object) -> dict[str, Accelerator]:
    found: dict[str, Accelerator] = {}
    for n, item in enumerate(_list(value, "inputs.accelerators")):
        at = f"inputs.accelerators[{n}]"
        given = _object(item, at)
        facts = _object(given.get("facts"), f"{at}.facts")
        numbers: dict[str, Any] = {
            q: _number(_object(fact, f"{at}.facts.{q}").get("value"), f"{at}.facts.{q}.value")
            for q, fact in facts.items()
            if fact is not None and q in NUMBERS
        }
        name = _text(given.get("name"), f"{at}.name")
        try:
            found[name] = Accelerator(
                name=name,
                vendor=_text(given.get("vendor"), f"{at}.vendor"),
                architecture=_architecture(name),
                **numbers,
            )
        except TypeError:
            raise ScenarioError(f"The plan file's {at} lacks numbers of the accelerator.") from None
    return found


def _architecture(name: str) -> Architecture:
    """The accelerator's architecture from the table: the file has only its figures."""
    known = accelerators().get(name)
    return CUSTOM_ARCHITECTURE if known is None else known.architecture


def _factors(value: object) -> dict[str, Calibrated]:
    found: dict[str, Calibrated] = {}
    for n, item in enumerate(_list(value, "inputs.calibrations")):
        at = f"inputs.calibrations[{n}]"
        given = _object(item, at)
        name = _text(given.get("accelerator"), f"{at}.accelerator")
        found[name] = _record(Calibrated, given.get("factors"), f"{at}.factors")
    return found


# --- one value -----------------------------------------------------------------------------------


def _record(kind: type[T], value: object, at: str, **more: object) -> T:
    """A record of numbers; fields that the file lacks have their defaults."""
    given = _object(value, at)
    values: dict[str, Any] = dict(more)
    for f in fields(kind):  # type: ignore[arg-type]
        if f.name in more:
            continue
        if f.name not in given:
            if f.default is MISSING:
                raise ScenarioError(f"The plan file has no {at}.{f.name}.")
            continue
        read = _table if f.name in TABLES else _truth if f.type == "Bools" else _number
        values[f.name] = read(given[f.name], f"{at}.{f.name}")
    return kind(**values)


def _table(value: object, at: str) -> tuple[Any, ...]:
    """Rows of a table of measured shapes: single numbers, or triples."""
    return tuple(
        tuple(_number(x, at) for x in row) if isinstance(row, list) else _number(row, at)
        for row in _list(value, at)
    )


def _truth(value: object, at: str) -> bool:
    """A flag; any number except 0 is true."""
    if value is None:
        raise _wrong(at, value, "true or false")
    return bool(value if isinstance(value, bool) else _number(value, at))


def _number(value: object, at: str) -> float:
    """A finite number; null is NaN."""
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > LARGEST:
        raise _wrong(at, value, "a number up to 1e30")
    return float(value)


def _whole(value: object, at: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= 1e9:
        raise _wrong(at, value, "a whole number above 0, up to 1e9")
    return value


def _flag(value: object, at: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong(at, value, "true or false")
    return value


def _text(value: object, at: str) -> str:
    if not isinstance(value, str) or len(value) > 1_000:
        raise _wrong(at, value, "a text of up to 1,000 characters")
    return value


def _object(value: object, at: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(at, value, "an object")
    return value


def _list(value: object, at: str) -> list[Any]:
    if not isinstance(value, list):
        raise _wrong(at, value, "a list")
    return value


def _wrong(at: str, value: object, allowed: str) -> ScenarioError:
    where = f"The plan file's {at}" if at else "The plan file"
    return ScenarioError(f"{where} is {shown(value)}, not {allowed}.")
