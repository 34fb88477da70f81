"""Facts of accelerators and fabrics: one row per number, with its source."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from core.errors import FactError, ScenarioError, shown
from core.machine.accelerator import CUSTOM_ARCHITECTURE, Accelerator, Architecture, Source
from core.units import to_si
from hardware import names
from hardware.architectures import architectures
from hardware.nccl_env import FABRICS
from hardware.tables import UNDATED, check_source, rows

ACCELERATORS_CSV = Path(__file__).with_name("accelerators.csv")
FABRICS_CSV = Path(__file__).with_name("fabrics.csv")

VENDORS = ("nvidia", "amd", "intel", "google", "aws")
COUNTS = (
    "scale_up_domain", "gpus_per_node", "fp16_only", "torus_axes", "linked_peers", "switch_reduces",
)  # fmt: skip
NAMES = ("vendor", "architecture", "rack", "device_name")  # quantities whose value is a text
NAME_UNIT = "name"
REQUIRED = (
    "vendor",
    "architecture",
    "bf16_flops_per_s",
    "memory_bytes",
    "memory_bytes_per_s",
    "scale_up_bytes_per_s",
    "scale_up_domain",
    "gpus_per_node",
)
OPTIONAL = (
    "fp8_flops_per_s",
    "fp4_flops_per_s",
    "int8_flops_per_s",
    "scale_out_bytes_per_s",
    "matmul_flops_per_s",
    "tdp_watts",
    "fp16_only",
    "host_link_bytes_per_s",
    "multiprocessor_count",
    "torus_axes",
    "linked_peers",
    "switch_reduces",
    "rack",
    "device_name",
)
QUANTITIES = REQUIRED + OPTIONAL
NUMBERS = tuple(q for q in QUANTITIES if q not in NAMES)
FABRIC_QUANTITIES = ("instance_bytes_per_s", "latency_s", "all_to_all_share")

# A note that starts with this word: the number is derived or assumed, not printed.
ASSUMED = "assumed"

# The unit that a quantity's name ends with, and the units a source may print it in.
# The longest ending comes first: memory_bytes_per_s is no duration.
_UNITS = {
    "_share": ("fraction",),
    "_flops_per_s": ("FLOP/s", "TFLOP/s", "PFLOP/s"),
    "_bytes_per_s": ("B/s", "GB/s", "GiB/s", "TB/s", "Mbit/s", "Gbit/s", "Tbit/s"),
    "_bytes": ("B", "MB", "MiB", "GB", "GiB", "TB"),
    "_watts": ("W",),
    "_s": ("us", "ms", "s"),
}
_ACCELERATOR_COLUMNS = (
    "accelerator",
    "quantity",
    "value",
    "unit",
    "source",
    "source_date",
    "note",
)
_FABRIC_COLUMNS = ("fabric", *_ACCELERATOR_COLUMNS[1:])


def load_accelerators(path: Path = ACCELERATORS_CSV) -> dict[str, Accelerator]:
    """Read the table; a row without unit, source or date is an error."""
    values: dict[str, dict[str, Any]] = defaultdict(dict)
    sources: dict[str, dict[str, Source]] = defaultdict(dict)
    remarks: dict[str, str] = {}
    for where, row in rows(path, _ACCELERATOR_COLUMNS):
        name, quantity = row["accelerator"], row["quantity"]
        if not name:
            raise FactError(f"{where}: the row names no accelerator")
        _check_quantity(where, row, name, QUANTITIES, values[name])
        values[name][quantity] = _name(where, row) if quantity in NAMES else _si(where, row)
        sources[name][quantity] = _source(row)
        if quantity == "vendor":
            remarks[name] = row["note"]
    for name, given in values.items():
        if missing := [q for q in REQUIRED if q not in given]:
            raise FactError(f"{path.name}: {name} lacks {', '.join(missing)}")
        if given["vendor"] == "nvidia" and "device_name" not in given:
            raise FactError(f"{path.name}: {name} lacks device_name, which nvidia-smi prints")
    return {
        name: Accelerator(name=name, sources=sources[name], note=remarks[name], **given)
        for name, given in values.items()
    }


@cache
def accelerators() -> dict[str, Accelerator]:
    """The shipped table, read once; the names are the canonical ones."""
    return load_accelerators()


def accelerator(name: str) -> Accelerator:
    """One accelerator by any of its spellings; an unknown name is an error."""
    canonical = names.canonical(name)
    if why := names.known_without_facts().get(canonical):
        raise ScenarioError(
            f"{canonical} is known by name, but cannot be estimated: {why}. "
            "Choose another GPU, or type its figures in as a custom one."
        )
    return accelerators()[canonical]


def custom_accelerator(
    *,
    tflop_per_s: float,
    memory_gib: float,
    memory_gb_per_s: float,
    scale_up_gb_per_s: float,
    scale_out_gbit_per_s: float | None,
    gpus_per_node: int,
) -> Accelerator:
    """A device that is not in the table, from the numbers of its data sheet.

    Dense 16-bit peak, usable memory, one direction of every link; None: machines of one node
    only. The scale-up link is taken to join the whole node.
    """
    given = {
        "bf16_flops_per_s": ("tflop_per_s", tflop_per_s, "TFLOP/s"),
        "memory_bytes": ("memory_gib", memory_gib, "GiB"),
        "memory_bytes_per_s": ("memory_gb_per_s", memory_gb_per_s, "GB/s"),
        "scale_up_bytes_per_s": ("scale_up_gb_per_s", scale_up_gb_per_s, "GB/s"),
        "scale_up_domain": ("gpus_per_node", gpus_per_node, "count"),
        "gpus_per_node": ("gpus_per_node", gpus_per_node, "count"),
    }
    if scale_out_gbit_per_s is not None:
        given["scale_out_bytes_per_s"] = ("scale_out_gbit_per_s", scale_out_gbit_per_s, "Gbit/s")
    for field, value, unit in given.values():
        if not (math.isfinite(value) and 0 < value <= 1e9):
            raise ScenarioError(f"{field}={shown(value)} is not a number above 0, up to 1e9.")
        if unit == "count" and value != int(value):
            raise ScenarioError(f"{field}={shown(value)} is not a whole number.")
    numbers: dict[str, Any] = {
        quantity: int(value) if unit == "count" else to_si(value, unit)
        for quantity, (_, value, unit) in given.items()
    }
    sources = {
        quantity: Source(ref="typed in by the user", date=UNDATED, printed=f"{value:g} {unit}")
        for quantity, (_, value, unit) in given.items()
    }
    return Accelerator(
        name="custom",
        vendor="custom",
        architecture=CUSTOM_ARCHITECTURE,
        sources=sources,
        **numbers,
    )


def load_fabrics(path: Path = FABRICS_CSV) -> dict[str, dict[str, tuple[float, Source]]]:
    """Read the table of link constants: fabric -> quantity -> number in SI units and its source."""
    fabrics: dict[str, dict[str, tuple[float, Source]]] = defaultdict(dict)
    for where, row in rows(path, _FABRIC_COLUMNS):
        name = row["fabric"]
        _check_quantity(where, row, name, FABRIC_QUANTITIES, fabrics[name])
        fabrics[name][row["quantity"]] = _si(where, row), _source(row)
    return dict(fabrics)


@cache
def fabrics() -> dict[str, dict[str, tuple[float, Source]]]:
    """The shipped table of link constants, read once."""
    return load_fabrics()


def fabric(name: str, quantity: str) -> float:
    """One link constant in SI units: `fabric("infiniband", "latency_s")`."""
    return _fabric_fact(name, quantity)[0]


def all_to_all_share(name: str) -> float:
    """Share of its rate that a network gives to messages to all ranks, beyond what is lost on
    every network; 1 where the table has no row."""
    return fabrics().get(name, {}).get("all_to_all_share", (1.0, None))[0]


def scale_up_hop_s(of: Accelerator) -> float:
    """Latency of a hop between devices of one machine, by what joins them."""
    joined = of.architecture.scale_up_fabric if of.scale_up_domain > 1 else "pcie"
    return fabric(joined, "latency_s")


def fabric_source(name: str, quantity: str) -> Source:
    """Where a link constant was read, and whether it is assumed."""
    return _fabric_fact(name, quantity)[1]


def _fabric_fact(name: str, quantity: str) -> tuple[float, Source]:
    try:
        return fabrics()[name][quantity]
    except KeyError:
        raise FactError(f"fabrics.csv has no {quantity} of {shown(name)}") from None


def _check_quantity(
    where: str,
    row: dict[str, str],
    name: str,
    allowed: tuple[str, ...],
    given: Mapping[str, object],
) -> None:
    quantity = row["quantity"]
    if quantity not in allowed:
        raise FactError(
            f"{where}: quantity {shown(quantity)} is not one of {', '.join(sorted(allowed))}"
        )
    if quantity in given:
        raise FactError(f"{where}: {name} {quantity} is given twice")
    check_source(where, f"{name} {quantity}", row)


def _name(where: str, row: dict[str, str]) -> str | Architecture:
    """The text of a name; one of a known vendor, architecture or fabric of a rack."""
    quantity, value = row["quantity"], row["value"]
    if row["unit"] != NAME_UNIT:
        raise FactError(f"{where}: {quantity} has unit {shown(row['unit'])}, not {NAME_UNIT!r}")
    known = {"vendor": VENDORS, "architecture": tuple(architectures()), "rack": FABRICS}
    if quantity in known and value not in known[quantity]:
        raise FactError(
            f"{where}: {quantity} {shown(value)} is not one of {', '.join(known[quantity])}"
        )
    if not value:
        raise FactError(f"{where}: {quantity} is blank")
    return architectures()[value] if quantity == "architecture" else value


def _si(where: str, row: dict[str, str]) -> float | int:
    """The printed number in the unit with which the quantity's name ends."""
    quantity, unit = row["quantity"], row["unit"]
    is_count = quantity in COUNTS
    units = next((u for end, u in _UNITS.items() if quantity.endswith(end)), ("count",))
    if unit not in units:
        raise FactError(f"{where}: {quantity} has unit {shown(unit)}, not one of {list(units)}")
    try:
        value = float(row["value"])
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0) or (is_count and value != int(value)):
        kind = "a whole number above 0" if is_count else "a number above 0"
        raise FactError(f"{where}: {quantity} is {shown(row['value'])}, not {kind}")
    return int(value) if is_count else to_si(value, unit)


def _source(row: dict[str, str]) -> Source:
    return Source(
        ref=row["source"],
        date=row["source_date"],
        printed=row["value"] if row["unit"] == NAME_UNIT else f"{row['value']} {row['unit']}",
        assumed=row["note"].startswith(ASSUMED),
    )
