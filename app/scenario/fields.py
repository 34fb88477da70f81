"""What the fields of `core.scenario.Scenario` say about their widgets: kind, choices, bounds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, get_args

from pydantic.fields import FieldInfo

from core.scenario import Scenario
from core.units import written_number


@dataclass(frozen=True, slots=True)
class Section:
    """One collapsed part of the form: its title and fields."""

    key: str
    title: str
    fields: tuple[str, ...]


# What moves an answer most, in the order of the form; `first_fields` says what is drawn of it.
FIRST = (
    "task", "model", "num_tokens", "seq_len", "global_batch_size", "gpu", "num_gpus", "cloud",
    "deadline_days", "deadline_confidence", "stack",
)  # fmt: skip
DATA_SET = ("num_examples", "tokens_per_example", "epochs")  # in place of the tokens
DRAWN_ELSEWHERE = frozenset({"rank_by", "continued"})  # above the table it sorts, in the task

# Where the form shows the fields of groups `basic` and `advanced` that are not among the first;
# those not named here are under OTHER.
ADVANCED = (
    Section(
        "prices",
        "Purchase, budget and prices",
        ("purchase", "budget_usd", "price_book", "max_price_age_days"),
    ),
    Section(
        "parallelism",
        "Parallelism",
        ("sharding", "dp_shard", "tp", "tp_across_nodes", "sequence_parallel", "async_tp", "pp",
         "virtual_stages", "schedule", "cp", "context_parallel", "ep", "etp", "moe_dispatcher",
         "moe_overlap", "capacity_factor", "expert_imbalance", "filler_data", "micro_batch_size",
         "reshard_after_forward",
         "gradient_overlap", "param_overlap"),
    ),
    Section(
        "memory",
        "Memory",
        ("recompute", "recompute_share", "remat_policy", "optimizer", "weight_dtype",
         "gradient_dtype", "offload_optimizer", "offload_params", "offload_activations",
         "activation_offload_share"),
    ),
    Section(
        "kernels",
        "Precision and kernels",
        ("precision", "allow_fp8", "software_date", "attention", "compile", "cuda_graphs",
         "cuda_graph_parts", "chunked_loss", "loss_kernel", "norm_kernels"),
    ),
    Section(
        "machine",
        "What you know of the machine",
        ("calibration", "power_cap_watts", "gpus_per_node", "scale_up_domain",
         "network_gbit_per_gpu", "network_kind", "network_reduction",
         "host_slowdown", "most_gpus_on_demand", "startup_minutes"),
    ),
    Section(
        "finetuning",
        "Fine-tuning",
        ("lora_rank", "lora_targets", "double_quantisation", "paged_optimizer"),
    ),
)  # fmt: skip
OTHER = ("other", "Other")
LAST = ("anchor_tokens_per_s_per_gpu",)
GROUPS = (
    ("task_size", "Data set"),
    ("anchor", "Measured anchor"),
    ("failures", "Failures and checkpoints"),
    ("market", "Spot and reservations"),
    ("bill", "What else is on the bill"),
)


def _extra(field: FieldInfo) -> dict[str, Any]:
    return field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}


@cache
def fields_of(group: str) -> Mapping[str, FieldInfo]:
    """The fields of one group of the form, in the order of the table."""
    every = Scenario.model_fields.items()
    return MappingProxyType({n: f for n, f in every if _extra(f).get("group") == group})


def first_fields(scenario: Scenario) -> tuple[str, ...]:
    """The fields that are always visible: the tokens, or the data set if the scenario has one."""
    size = ("num_tokens",) if scenario.num_examples is None else DATA_SET
    named = [n for name in FIRST for n in (size if name == "num_tokens" else (name,))]
    return tuple(n for n in named if n in Scenario.model_fields)


def sections(shown: Collection[str] = FIRST) -> tuple[Section, ...]:
    """The collapsed parts of the form: every field of the groups shown there, each once, without
    those that are `shown` above."""
    advanced = {**fields_of("basic"), **fields_of("advanced")}.keys() - {*FIRST, *DRAWN_ELSEWHERE}
    found = [Section(s.key, s.title, tuple(n for n in s.fields if n in advanced)) for s in ADVANCED]
    placed = {n for s in ADVANCED for n in s.fields}
    rest = tuple(n for n in Scenario.model_fields if n in advanced - placed)
    found += [Section(*OTHER, rest)] if rest else []
    for group, title in GROUPS:
        # A field that needs other fields comes after them.
        names = sorted(fields_of(group).keys() - {*shown}, key=_place)
        found.append(Section(group, title, tuple(names)))
    return tuple(found)


def _place(name: str) -> tuple[bool, int]:
    return name in LAST, list(Scenario.model_fields).index(name)


def changed_fields(scenario: Scenario, names: Iterable[str]) -> list[str]:
    """Those of the named fields that the scenario sets to a value other than the default."""
    table = Scenario.model_fields
    return [n for n in names if getattr(scenario, n) != table[n].default]


def literals(annotation: Any) -> tuple[str, ...]:
    """The names that a Literal allows, also inside a tuple or an Annotated; else empty."""
    given = get_args(annotation)
    if given and all(isinstance(a, str) for a in given):
        return given
    return next((found for a in given if (found := literals(a))), ())


def is_list(field: FieldInfo) -> bool:
    """Whether the field holds several values."""
    return isinstance(field.default, tuple)


def is_switch(field: FieldInfo) -> bool:
    """Whether the field is yes or no."""
    return field.annotation is bool


def is_flag(field: FieldInfo) -> bool:
    """Whether the field is yes, no or not given."""
    return bool in get_args(field.annotation)


def written(value: object) -> str:
    """A value as a user would type it, which reads back equal: 15T, 100B, 8192, 1.5e-05.

    >>> written(1.5e13), written(8192), written((8, 64)), written(None)
    ('15T', '8192', '8, 64', '')
    """
    if value is None:
        return ""
    if isinstance(value, tuple):
        parts = [written(v) for v in value]
        return ("; " if any("," in p for p in parts) else ", ").join(parts)
    if isinstance(value, float):
        for size, suffix in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1.0, "")):
            text = f"{value / size:.15g}{suffix}"
            if value >= size and written_number(text) == value:
                return text
    return str(value)


def bounds(field: FieldInfo) -> str:
    """The bounds in a field's metadata as text for its help: '16 to 16,777,216'."""
    low = next(
        (v for m in field.metadata for a in ("ge", "gt") if (v := getattr(m, a, None))), None
    )
    high = next((v for m in field.metadata if (v := getattr(m, "le", None))), None)
    if low and high:
        return f" {low:,} to {high:,}."
    return f" At most {high:,.12g}." if high else ""
