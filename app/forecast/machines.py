"""The machines that an offer rents: node shape, network, and which facts had to be assumed."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from core.errors import ScenarioError
from core.machine.accelerator import Accelerator, Source
from core.machine.cluster import Cluster, cluster_of
from core.machine.offer import Offer
from core.machine.rented import Network, Supply
from core.memory.offload import USABLE_SHARE
from core.numeric import Numeric
from core.scenario import Scenario
from core.search.job import Machine
from core.units import GIB, to_si
from hardware import facts
from hardware.instances import Instance, find_instance, instances
from hardware.networks import network_of
from hardware.slices import is_sliced, slice_chips
from hardware.supply import MINUTES, supply_of
from pricing import offers as prices
from pricing.book.offers import is_booked, is_on_no_list, is_quote

CUSTOM = "custom"
ONE_MACHINE_BYTES_PER_S = 1e9  # network rate of a job that uses one machine only
UNCOMMITTED = ("on_demand", "spot")  # bought without a term
GIVEN = Source(ref="typed in by the user", date="", printed="")
CUSTOM_FIGURES = (
    "custom_tflop_per_s",
    "custom_memory_gib",
    "custom_memory_gb_per_s",
    "custom_scale_up_gb_per_s",
    "custom_scale_out_gbit_per_s",
)


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
    """The machine that an offer rents: its shape, and its network as hardware/networks.py finds
    it."""
    known = find_instance(offer.provider, offer.instance_type)
    is_private = is_booked(offer) or offer.provider == CUSTOM or offer.usd_per_hour is None
    network = network_of(
        offer, accelerator, is_private=is_private, is_on_no_list=is_on_no_list(offer)
    )
    if is_quote(offer) and network.basis == "offer":
        network = replace(network, basis="given", source=GIVEN, conflict="")
    per_machine = network.gpus_per_machine
    spans_nodes = accelerator.scale_up_domain > accelerator.gpus_per_node
    whole = per_machine >= accelerator.gpus_per_node
    domain = accelerator.scale_up_domain if spans_nodes and whole else min(
        accelerator.scale_up_domain, per_machine
    )  # fmt: skip
    if known is not None:
        domain = max(known.scale_up_domain, 1)
    rate = ONE_MACHINE_BYTES_PER_S
    if network.gbit_per_s is not None:
        rate = to_si(network.gbit_per_s, "Gbit/s") / per_machine
    return Machine(
        offer=offer,
        accelerator=accelerator,
        cluster=cluster_of(
            accelerator,
            gpus_per_node=per_machine,
            scale_up_domain=domain,
            scale_out_bytes_per_s=rate,
            scale_up_hop_s=facts.scale_up_hop_s(accelerator),
            scale_out_hop_s=facts.fabric(network.fabric, "latency_s"),
            scale_out_all_to_all=facts.all_to_all_share(network.fabric),
        ),
        network=network,
        supply=_supply(offer, network, is_private=is_private),
        unit_gpus=offer.gpu_count,
        unit_usd_per_hour=offer.usd_per_hour,
        host_bytes=_host_bytes(known),
    )


def _host_bytes(known: Instance | None) -> float:
    """Bytes of host memory per GPU that a search may use; 0 if no source states them."""
    if known is None or not known.host_ram_gib:
        return 0.0
    return USABLE_SHARE * known.host_ram_gib * GIB / known.gpu_count


def _supply(offer: Offer, network: Network, *, is_private: bool) -> Supply:
    """What the seller lets a customer have; what a user has agreed or owns has no bound."""
    found = supply_of(offer, gpus_per_machine=network.gpus_per_machine)
    return replace(found, most_gpus=math.inf) if is_private else found


def rented(m: Machine, num_gpus: int) -> Machine:
    """The machine with the offer that this many GPUs rent: of a price of one GPU, the whole machine
    or the part of one that they fill."""
    unit, usd = m.unit_gpus, m.unit_usd_per_hour
    size = max(min(num_gpus, m.network.gpus_per_machine), unit)
    if size == m.offer.gpu_count:
        return m
    usd = None if usd is None else usd * size / unit
    return replace(m, offer=replace(m.offer, gpu_count=size, usd_per_hour=usd))


def chips_of_slice(m: Machine, num_gpus: int) -> int | None:
    """GPUs that the scale-up link joins in a job of this size; None if they are rented in slices
    and no slice has such a size."""
    if m.domain_given or not is_sliced(m.accelerator.name):
        return int(np.asarray(m.cluster.scale_up_domain))
    return slice_chips(m.accelerator.name, num_gpus, m.accelerator.gpus_per_node)


def links_at(m: Machine, num_gpus: int) -> tuple[Numeric, Numeric]:
    """What joins the GPUs of a job of this size: how many the scale-up link, and bytes per second
    between machines. One machine has no network, a slice ends its link."""
    is_one = num_gpus <= m.network.gpus_per_machine
    rate = ONE_MACHINE_BYTES_PER_S if is_one else m.cluster.scale_out_bytes_per_s
    if m.domain_given or not is_sliced(m.accelerator.name):
        return m.cluster.scale_up_domain, rate
    return chips_of_slice(m, num_gpus) or 1, rate


def cluster_at(m: Machine, num_gpus: int) -> Cluster:
    """The cluster of a job of this size."""
    cluster = m.cluster
    if num_gpus <= m.network.gpus_per_machine:
        cluster = replace(cluster, scale_out_bytes_per_s=ONE_MACHINE_BYTES_PER_S)
    if m.domain_given or not is_sliced(m.accelerator.name):
        return cluster
    return replace(cluster, scale_up_domain=chips_of_slice(m, num_gpus) or 1)


def as_known(m: Machine, scenario: Scenario) -> Machine:
    """The machine with what the scenario knows better: its shape, its network, its power limit, how
    many of it can be had, and its start-up."""
    known = _cluster_as_known(m, scenario)
    supply = _supply_as_known(m, scenario)
    if not known:
        return m if supply is m.supply else replace(m, supply=supply)
    network, size = m.network, scenario.gpus_per_node or m.network.gpus_per_machine
    gbit, kind = scenario.network_gbit_per_gpu, scenario.network_kind
    rate = network.gbit_per_s
    if rate is not None:
        rate *= size / network.gpus_per_machine
    network = replace(
        network, gpus_per_machine=size, fabric=kind or network.fabric, gbit_per_s=rate
    )
    if gbit is not None:
        network = replace(network, basis="given", gbit_per_s=gbit * size, source=GIVEN, conflict="")
    return replace(
        m, cluster=replace(m.cluster, **known), network=network, supply=supply,
        domain_given=scenario.scale_up_domain is not None,
    )  # fmt: skip


def _cluster_as_known(m: Machine, scenario: Scenario) -> dict[str, Any]:
    """The fields of the cluster that the scenario gives."""
    known: dict[str, Any] = {}
    chip, watts = m.accelerator, scenario.power_cap_watts
    if scenario.gpus_per_node is not None:
        known["gpus_per_node"] = scenario.gpus_per_node
        if scenario.scale_up_domain is None and chip.scale_up_domain <= chip.gpus_per_node:
            known["scale_up_domain"] = min(chip.scale_up_domain, scenario.gpus_per_node)
    if scenario.scale_up_domain is not None:
        known["scale_up_domain"] = scenario.scale_up_domain
    if scenario.network_gbit_per_gpu is not None:
        known["scale_out_bytes_per_s"] = to_si(scenario.network_gbit_per_gpu, "Gbit/s")
    if scenario.network_kind:
        known["scale_out_hop_s"] = facts.fabric(scenario.network_kind, "latency_s")
        known["scale_out_all_to_all"] = facts.all_to_all_share(scenario.network_kind)
    if watts is not None and chip.tdp_watts is not None:
        known["power_share"] = min(watts / chip.tdp_watts, 1.0)
    if scenario.network_reduction:
        known["network_reduces"] = 1.0
    if scenario.precision == "int8" and chip.int8_flops_per_s is not None:
        known["fp8_ratio"] = chip.int8_flops_per_s / chip.bf16_flops_per_s
    return known


def _supply_as_known(m: Machine, scenario: Scenario) -> Supply:
    supply, most, minutes = m.supply, scenario.most_gpus_on_demand, scenario.startup_minutes
    if most is not None and math.isfinite(supply.most_gpus) and m.offer.purchase in UNCOMMITTED:
        supply = replace(supply, most_gpus=float(most), bound=GIVEN)
    if minutes is not None:
        supply = replace(supply, startup_hours=minutes / MINUTES, startup=GIVEN)
    return supply


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
        sizes = [i for i in instances() if i.accelerator == name]
        best = max(sizes, key=lambda i: (i.gpu_count, i.scale_out_gbit_per_s or 0), default=None)
        offer = Offer(
            provider=best.provider if best else "any",
            instance_type=best.instance_type if best else f"{accelerator.gpus_per_node} x {name}",
            accelerator=name,
            gpu_count=best.gpu_count if best else accelerator.gpus_per_node,
            region="*",
            purchase="on_demand",
            usd_per_hour=None,
            scale_out_gbit_per_s=None,
            observed_at="",
            source=best.source if best else "usual machine of hardware/accelerators.csv",
            quality="",
        )
        found.append(machine(offer, accelerator))
    return tuple(found)


def unpriced_machine(name: str, scenario: Scenario) -> Machine:
    """The machine of an accelerator for plans without dollars, or the one of the scenario."""
    if name == CUSTOM:
        return custom_machine(scenario)
    return next(m for m in unpriced_machines() if m.accelerator.name == name)


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
