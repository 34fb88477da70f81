"""Names of things on every page, command and report: parts, purchases, places."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from app.document import format as fmt
from core.machine.offer import Offer
from core.search.plan import Plan
from pricing.offers import ANY_REGION

_REMARK = re.compile(r"\s*\([^()]*\)$")  # of a price list, after a product's name

STEP_PARTS = {
    "matmul": "Matrix multiplications",
    "attention": "Attention",
    "experts": "Experts",
    "memory_bound": "Memory-bound operations",
    "head_loss": "LM head and loss",
    "recompute": "Activation recompute",
    "tp_exposed": "Tensor-parallel communication not hidden",
    "cp_exposed": "Context-parallel communication not hidden",
    "ep_exposed": "Expert-parallel communication not hidden",
    "pp_exposed": "Pipeline communication not hidden",
    "dp_exposed": "Data-parallel communication not hidden",
    "offload_exposed": "Host transfer not hidden",
    "bubble": "Pipeline bubble",
    "optimizer": "Optimizer step",
    "overhead": "Overhead",
}


MEMORY_PARTS = {
    "parameters": "Parameters",
    "gradients": "Gradients",
    "optimizer": "Optimizer states",
    "activations": "Activations",
    "logits": "Logits",
    "buffers": "Communication buffers",
    "reserve": "Framework reserve",
}


PURCHASES = {
    "on_demand": "on demand",
    "spot": "spot",
    "reserved_1y": "reserved 1 year",
    "reserved_3y": "reserved 3 years",
    "capacity_block": "capacity block",
    "owned": "owned",
}


# Purchase kinds that a chart draws in the same way.
PURCHASE_FAMILIES = {
    **PURCHASES, "reserved_1y": "reserved", "reserved_3y": "reserved", "owned": "own cluster"
}  # fmt: skip


# The basis of a number about failures or spot markets.
BASES = {
    "default": "published",
    "assumed": "assumed",
    "given": "as given",
    "trace": "of the trace",
}


# Their names; each value is shown in the unit that its name ends with.
FAILURE_INPUTS = {
    "failures_per_node_day": "failures per node-day (8 GPUs)",
    "job_failures_per_day": "further stops of the job a day",
    "detection_s": "failure to restart",
    "restart_s": "restart and reload",
    "wait_s": "wait for a machine",
    "node_start_s": "start of a machine",
    "slow_probability": "chance that a node is slow",
    "slow_fraction": "how much slower",
    "checkpoint_s": "training stopped by a checkpoint",
    "upload_s": "its upload behind training",
    "spares": "spare machines",
    "repair_s": "until a machine is a spare again",
    "min_nodes": "fewest machines that go on",
    "preemptions_per_day": "preemptions a day of an instance that is up",
    "outage_hours": "hours until spot is back",
    "preemption_cv": "deviation over mean of uptimes",
    "spot_zones": "spot markets",
    "common_fraction": "share of preemptions that take every instance",
}


# Where run time goes besides training.
LOST = {
    "training": "training",
    "checkpoint": "writing checkpoints",
    "rework": "work done again",
    "restart": "noticing and restarting",
    "waiting": "waiting for machines",
    "slow_nodes": "slow nodes",
    "preemption": "interruptions of spot",
    "startup": "start-up of the machines",
}

# Terms of the cost of a run: core/cost/run_cost.py.
COST_TERMS = {
    "compute": "Whole instances",
    "checkpoints": "Writing checkpoints",
    "failures": "Failures and restarts",
    "waiting": "Waiting for machines",
    "preemption": "Interruptions of spot",
    "startup": "Start-up and minimum billing",
    "commitment": "Unused commitment",
    "checkpoint_storage": "Storage of checkpoints",
    "data_storage": "Storage of data",
    "egress": "Traffic out of the cloud",
    "experiments": "Experiments",
    "electricity": "Electricity",
    "credits": "Credits",
}

# Strategies of data parallelism, as their authors write them.
SHARDINGS = {
    "ddp": "DDP",
    "zero1": "ZeRO-1",
    "zero2": "ZeRO-2",
    "zero3": "ZeRO-3",
    "fsdp1": "FSDP1",
    "fsdp2": "FSDP2",
    "hsdp": "HSDP",
    "zeropp": "ZeRO++",
}


# What speaks against recommending a plan (app/forecast/standing.py).
NOT_RECOMMENDED = {
    "old_price": "price past its life",
    "weak_price": "price of low quality",
    "reservation": "ask for a reservation",
}


COMMITMENTS = {"reserved_1y": "1 year", "reserved_3y": "3 years"}


# Why an offer at a GPU count has no plan: text that precedes the count.
NO_PLAN = {
    "memory": "does not fit",
    "layout": "no legal layout",
    "too_slow": "too slow",
    "wasteful": "starved by the network",
    "not_a_cluster": "not sold as a cluster",
    "slice": "no such slice",
    "not_searched": "not searched",
}


NO_OFFER = {
    "purchase": "other purchase kinds",
    "precision": "without the precision",
    "no_facts": "accelerators without figures",
    "cluster_size": "clusters too small",
    "stack": "not run by the stacks searched",
    "quote_over": "quotes past their last day",
}


def not_recommended(reasons: Iterable[str]) -> str:
    """What speaks against a plan, in words; '' if nothing does."""
    return ", ".join(NOT_RECOMMENDED.get(reason, _spaced(reason)) for reason in reasons)


def price_faults(reasons: Iterable[str]) -> str:
    """What speaks against a plan's price: past its life and of low quality; '' if nothing does."""
    said = [NOT_RECOMMENDED.get(reason, "") for reason in reasons]
    return " and ".join(t.removeprefix("price ") for t in said if t.startswith("price "))


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def step_part(name: str) -> str:
    """The name of a part of the step time."""
    return STEP_PARTS.get(name, _spaced(name))


def memory_part(name: str) -> str:
    """The name of a part of the memory."""
    return MEMORY_PARTS.get(name, _spaced(name))


def purchase(name: str) -> str:
    """The name of a way to buy capacity."""
    return PURCHASES.get(name, _spaced(name))


def purchase_short(name: str) -> str:
    """How capacity is bought, for a narrow column.

    >>> purchase_short("reserved_1y"), purchase_short("on_demand")
    ('1 year', 'on demand')
    """
    return COMMITMENTS.get(name) or purchase(name)


def seller(offer: Offer) -> str:
    """Who sells which machine: aws p5.48xlarge. Owned machines have no seller."""
    return "" if offer.purchase == "owned" else f"{offer.provider} {offer.instance_type}".strip()


def stated_region(name: str) -> str:
    """A region's name; '' if the price covers every region or its source names none.

    >>> stated_region("us-east-1"), stated_region("*")
    ('us-east-1', '')
    """
    return "" if name == ANY_REGION else name


def region(name: str) -> str:
    """A region's text in a column of its own.

    >>> region("us-east-1"), region("*")
    ('us-east-1', 'not stated')
    """
    return stated_region(name) or "not stated"


def place(offer: Offer) -> str:
    """The seller's machine, and its region if the price is for one."""
    return f"{seller(offer)} {stated_region(offer.region)}".strip() or purchase(offer.purchase)


def seller_short(provider: str, instance_type: str, accelerator: str) -> str:
    """Who sells which machine, in a sentence that has named the accelerator: without a price list's
    remark in brackets, and without the product where it is called as its accelerator is.

    >>> seller_short("aws", "p5.48xlarge", "H100-80GB-SXM")
    'aws p5.48xlarge'
    >>> seller_short("runpod", "B300 (cheapest of secure and community)", "B300")
    'runpod'
    """
    product = _REMARK.sub("", instance_type)
    return provider if product in ("", accelerator) else f"{provider} {product}".strip()


def machine(plan: Plan) -> str:
    """The machines of a plan: 64 x H100-80GB-SXM (aws p5.48xlarge, on demand)."""
    offer = plan.offer
    gpus = f"{fmt.count(plan.num_gpus)} x {offer.accelerator}"
    of = seller_short(offer.provider, offer.instance_type, offer.accelerator)
    sold_by = "" if offer.purchase == "owned" else of
    bought = ", ".join(t for t in (sold_by, purchase(offer.purchase)) if t)
    return f"{gpus} ({bought})"


# Kinds of numbers, each with its meaning.
Kind = Literal["measured", "fitted", "published", "assumed", "computed", "given"]

KINDS: dict[Kind, str] = {
    "measured": "seen on a real machine: a benchmark, a calibration, your own measurement",
    "fitted": "set so that forecasts of published training runs come out right",
    "published": "printed by a source: a data sheet, a price list, a paper",
    "assumed": "stated by no source: a default or a guess",
    "computed": "follows from other numbers by a formula",
    "given": "typed in by the user",
}


MEASURED = {
    "matmul": "matmuls in 16 bits",
    "matmul_fp8": "speed-up of fp8 matmuls",
    "attention": "attention",
    "memory": "memory bandwidth",
    "elementwise": "time of elementwise operators",
    "host_link": "link to the host",
    "scale_up": "link inside the node",
    "scale_up_hop": "latency inside the node",
    "scale_out": "network of a GPU",
    "scale_out_hop": "latency of the network",
}


def measured_constant(name: str) -> str:
    """The name of a constant that a calibration measures."""
    return MEASURED[name]


FACT_WORDS = {
    "memory_bytes": "the memory that a framework can use",
    "memory_bytes_per_s": "the memory bandwidth",
    "scale_up_bytes_per_s": "the link between devices of a machine",
    "scale_up_domain": "the number of devices that it joins",
    "scale_out_bytes_per_s": "the network of the usual machine",
    "gpus_per_node": "the number of devices of a machine",
    "host_link_bytes_per_s": "the link to the host",
    "bf16_flops_per_s": "the 16-bit peak",
    "fp8_flops_per_s": "the 8-bit peak",
    "int8_flops_per_s": "the peak of 8-bit integers",
    "fp4_flops_per_s": "the 4-bit peak",
    "matmul_flops_per_s": "the best measured matmul",
    "tdp_watts": "the full power",
    "multiprocessor_count": "the number of multiprocessors",
    "torus_axes": "the number of axes of its torus",
    "linked_peers": "the number of devices that it has links of its own to",
}


def assumed_fact(quantity: str, printed: str) -> str:
    """A sentence that no source states this number of an accelerator."""
    if quantity == "switch_reduces":
        return "its switches are assumed to add up all-reduces."
    return f"{FACT_WORDS.get(quantity, quantity)} is assumed ({printed})."
