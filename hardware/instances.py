"""Cloud machines: number of accelerators, links and host of each instance type."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from core.errors import FactError, ScenarioError, shown
from hardware import names
from hardware.tables import check_source, rows

INSTANCES_CSV = Path(__file__).with_name("instances.csv")
SCALE_OUT_FABRICS = ("ethernet", "efa", "infiniband", "roce")
_NUMBERS = (
    "gpu_count",
    "scale_out_gbit_per_s",
    "scale_up_domain",
    "vcpus",
    "host_ram_gib",
    "local_nvme_tb",
)
_COLUMNS = (
    "provider",
    "instance_type",
    "accelerator",
    "gpu_count",
    "scale_out_gbit_per_s",
    "fabric",
    "scale_up_domain",
    "vcpus",
    "host_ram_gib",
    "local_nvme_tb",
    "source",
    "source_date",
    "note",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One machine that a provider rents as a whole. None: the source does not print it."""

    provider: str  # as in the price snapshot: aws, gcp, azure, ...
    instance_type: str
    accelerator: str  # canonical id
    gpu_count: int
    scale_out_gbit_per_s: float | None  # of the whole machine, its GPU fabric; 'up to 10' is 10
    fabric: str | None  # network of the machine: a row of fabrics.csv
    scale_up_domain: int  # devices that share the scale-up link, on this machine and others
    vcpus: int | None
    host_ram_gib: float | None
    local_nvme_tb: float | None
    source: str
    source_date: str
    note: str = ""


def load_instances(path: Path = INSTANCES_CSV) -> tuple[Instance, ...]:
    """Read the table; a row without source, date or a known accelerator is an error."""
    found: dict[tuple[str, str], Instance] = {}
    for where, row in rows(path, _COLUMNS):
        what = f"{row['provider']} {row['instance_type']}"
        check_source(where, what, row)
        try:
            accelerator = names.canonical(row["accelerator"])
        except ScenarioError as error:
            raise FactError(f"{where}: {error}") from error
        if accelerator in names.known_without_facts():
            raise FactError(f"{where}: {accelerator} has no facts; list {what} as left out")
        if row["fabric"] not in ("", *SCALE_OUT_FABRICS):
            raise FactError(
                f"{where}: fabric {shown(row['fabric'])} is not one of "
                f"{', '.join(SCALE_OUT_FABRICS)}"
            )
        number = {column: _number(where, column, row[column]) for column in _NUMBERS}
        gpu_count, domain = number["gpu_count"], number["scale_up_domain"]
        if gpu_count is None or domain is None or not gpu_count.is_integer():
            raise FactError(f"{where}: {what} has no whole number of accelerators or no domain")
        vcpus = number["vcpus"]
        instance = Instance(
            provider=row["provider"],
            instance_type=row["instance_type"],
            accelerator=accelerator,
            gpu_count=int(gpu_count),
            scale_out_gbit_per_s=number["scale_out_gbit_per_s"],
            fabric=row["fabric"] or None,
            scale_up_domain=int(domain),
            vcpus=None if vcpus is None else int(vcpus),
            host_ram_gib=number["host_ram_gib"],
            local_nvme_tb=number["local_nvme_tb"],
            source=row["source"],
            source_date=row["source_date"],
            note=row["note"],
        )
        if _key(instance.provider, instance.instance_type) in found:
            raise FactError(f"{where}: {what} is given twice")
        found[_key(instance.provider, instance.instance_type)] = instance
    return tuple(found.values())


@cache
def instances() -> tuple[Instance, ...]:
    """The shipped table, read once."""
    return load_instances()


@cache
def _by_key() -> dict[tuple[str, str], Instance]:
    return {_key(i.provider, i.instance_type): i for i in instances()}


@lru_cache(maxsize=4096)  # asked for every offer of every answer
def find_instance(provider: str, instance_type: str) -> Instance | None:
    """The machine with this provider and type, or None: most marketplaces use other names."""
    return _by_key().get(_key(provider, instance_type))


def _key(provider: str, instance_type: str) -> tuple[str, str]:
    return provider.strip().lower(), instance_type.strip().lower()


def _number(where: str, column: str, cell: str) -> float | None:
    """A number above 0, None where the cell is blank."""
    if not cell:
        return None
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise FactError(f"{where}: {column} is {shown(cell)}, not a number above 0")
    return value
