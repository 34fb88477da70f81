"""The machines that an offer rents: node shape, network, and which facts had to be assumed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from core.errors import ScenarioError
from core.machine.accelerator import Accelerator
from core.machine.cluster import Cluster, cluster_of
from core.machine.offer import Offer
from core.scenario import Scenario
from core.units import to_si
from hardware import facts
from hardware.instances import find_instance, instances
from pricing import offers as prices
from pricing.book.offers import NO_TERMS, Terms

CUSTOM = "custom"
ANY = "infiniband"  # latency used for a network whose rate is stated but not its kind
CUSTOM_FIGURES = (
    "custom_tflop_per_s",
    "custom_memory_gib",
    "custom_memory_gb_per_s",
    "custom_scale_up_gb_per_s",
    "custom_scale_out_gbit_per_s",
)
ETHERNET = (
    "The source of this offer does not state its network: 10 Gbit/s of Ethernet per instance is "
    "assumed between instances, a conservative guess."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One offer and the machine it rents."""

    offer: Offer
    accelerator: Accelerator
    cluster: Cluster
    network_known: bool
    largest_num_gpus: int | None = None  # size of a fixed cluster
    terms: Terms = NO_TERMS  # costs besides the machine, and discounts
    calibration: str = ""  # id of the calibration its rates come from
    measured: frozenset[str] = frozenset()  # measured constants of core.machine.calibration


def accelerator_of(name: str, scenario: Scenario) -> Accelerator:
    """An accelerator of the table, or the custom one that the scenario describes."""
    if name != CUSTOM:
        return facts.accelerator(name)
    missing = [f for f in CUSTOM_FIGURES if getattr(scenario, f) is None]
    if missing:
        raise ScenarioError(
            f"A custom GPU needs {', '.join(CUSTOM_FIGURES)}; not given: {', '.join(missing)}."
        )
    return facts.custom_accelerator(
        tflop_per_s=scenario.custom_tflop_per_s or 0.0,
        memory_gib=scenario.custom_memory_gib or 0.0,
        memory_gb_per_s=scenario.custom_memory_gb_per_s or 0.0,
        scale_up_gb_per_s=scenario.custom_scale_up_gb_per_s or 0.0,
        scale_out_gbit_per_s=scenario.custom_scale_out_gbit_per_s,
        gpus_per_node=scenario.custom_gpus_per_node,
    )


def machine(offer: Offer, accelerator: Accelerator) -> Machine:
    """The node shape and network of the offer's instance. The network stated by the offer counts
    first, then the table of instances. The node's link joins at most the rented GPUs."""
    known = find_instance(offer.provider, offer.instance_type)
    gbit = offer.scale_out_gbit_per_s
    if gbit is None and known is not None:
        gbit = known.scale_out_gbit_per_s
    if gbit is None:
        instance_rate = facts.fabric("ethernet_assumed", "instance_bytes_per_s")
    else:
        instance_rate = to_si(gbit, "Gbit/s")
    fabric = known.fabric if known and known.fabric else "ethernet_assumed" if gbit is None else ANY
    spans_nodes = accelerator.scale_up_domain > accelerator.gpus_per_node
    whole = offer.gpu_count >= accelerator.gpus_per_node
    domain = accelerator.scale_up_domain if spans_nodes and whole else min(
        accelerator.scale_up_domain, offer.gpu_count
    )  # fmt: skip
    if known is not None:
        domain = max(known.scale_up_domain, 1)
    return Machine(
        offer=offer,
        accelerator=accelerator,
        cluster=cluster_of(
            accelerator,
            gpus_per_node=offer.gpu_count,
            scale_up_domain=domain,
            scale_out_bytes_per_s=instance_rate / offer.gpu_count,
            scale_up_hop_s=facts.scale_up_hop_s(accelerator),
            scale_out_hop_s=facts.fabric(fabric, "latency_s"),
        ),
        network_known=gbit is not None,
    )


def as_known(m: Machine, scenario: Scenario) -> Machine:
    """The machine with what the scenario knows better: its network and its power limit."""
    known: dict[str, Any] = {}
    gbit, watts = scenario.network_gbit_per_gpu, scenario.power_cap_watts
    if gbit is not None:
        known["scale_out_bytes_per_s"] = to_si(gbit, "Gbit/s")
    if watts is not None and m.accelerator.tdp_watts is not None:
        known["power_share"] = min(watts / m.accelerator.tdp_watts, 1.0)
    if scenario.network_reduction:
        known["network_reduces"] = 1.0
    if not known:
        return m
    return replace(
        m, cluster=replace(m.cluster, **known), network_known=m.network_known or gbit is not None
    )


@lru_cache(maxsize=8)
def _estimable(snapshot_id: str) -> tuple[tuple[Machine, ...], tuple[Offer, ...]]:
    """Machines of a snapshot's newest offers, and the offers whose accelerators lack facts."""
    found, without = [], []
    for offer in prices.newest_per_place(prices.snapshot(snapshot_id).offers):
        if offer.accelerator in facts.accelerators():
            found.append(machine(offer, facts.accelerator(offer.accelerator)))
        else:
            without.append(offer)
    return tuple(found), tuple(without)


def priced_machines(snapshot_id: str) -> tuple[tuple[Machine, ...], tuple[Offer, ...]]:
    """Machines and offers without facts, as of `_estimable`; '' is the installed snapshot."""
    return _estimable(snapshot_id or prices.installed_id())


@lru_cache(maxsize=1)
def unpriced_machines() -> tuple[Machine, ...]:
    """One machine for each accelerator, for plans without dollars."""
    found = []
    for name, accelerator in facts.accelerators().items():
        rented = [i for i in instances() if i.accelerator == name]
        best = max(rented, key=lambda i: (i.gpu_count, i.scale_out_gbit_per_s or 0), default=None)
        gbit = accelerator.scale_out_bytes_per_s
        offer = Offer(
            provider=best.provider if best else "any",
            instance_type=best.instance_type if best else f"{accelerator.gpus_per_node} x {name}",
            accelerator=name,
            gpu_count=best.gpu_count if best else accelerator.gpus_per_node,
            region="*",
            purchase="on_demand",
            usd_per_hour=None,
            scale_out_gbit_per_s=(
                None if gbit is None or best else gbit * accelerator.gpus_per_node * 8 / 1e9
            ),
            observed_at="",
            source=best.source if best else "usual machine of hardware/accelerators.csv",
            quality="",
        )
        found.append(machine(offer, accelerator))
    return tuple(found)


def custom_machine(scenario: Scenario) -> Machine:
    """The machine that the scenario describes, at the price it gives."""
    accelerator = accelerator_of(CUSTOM, scenario)
    per_node = accelerator.gpus_per_node
    usd = scenario.custom_usd_per_gpu_hour
    gbit = scenario.custom_scale_out_gbit_per_s
    return machine(
        Offer(
            provider=CUSTOM,
            instance_type=f"{per_node} x {CUSTOM}",
            accelerator=CUSTOM,
            gpu_count=per_node,
            region="*",
            purchase="owned",
            usd_per_hour=None if usd is None else usd * per_node,
            scale_out_gbit_per_s=None if gbit is None else gbit * per_node,
            observed_at="",
            source="typed in by the user",
            quality="",
        ),
        accelerator,
    )
