"""What is assumed of a row of an answer, as sentences."""

from __future__ import annotations

from app.document import format as fmt
from app.document import vocabulary
from app.forecast.machines import GIVEN
from app.forecast.rows.row import Row
from core.cost.run_cost import RunCost
from core.machine.cluster import ASSUMED_CEILING
from core.machine.rented import NO_TERMS
from core.numeric import as_float
from core.search.job import Machine
from core.search.plan import Layout
from core.units import GIB
from pricing.book.offers import is_booked

STEADY = (
    "Steady state: failures, checkpoints, restarts and start-up are in expected time and cost, "
    "not in a step or its speed; `runcast risk` takes them apart."
)
UNCALIBRATED = (
    "Uncalibrated: the efficiencies were set on published runs of other people, not measured on "
    "these machines."
)
NETWORK_ASSUMED = (
    "No source states the network of this offer. Assumed are"  # how the sentence begins
)
CAPACITY = "Whether the provider has this many instances free was not checked."


def assumptions(row: Row, cost: RunCost, *, moved: str) -> tuple[str, ...]:
    """What a row assumes. `moved`: what the user's measurement did, in a sentence; '' without."""
    m, crosses = row.machine, row.num_nodes > 1
    found = [STEADY, moved or _calibrated(m)]
    if is_booked(m.offer):
        found.append(f"The price is of the {m.offer.source}: {m.offer.note}.")
    if m.terms != NO_TERMS and cost.terms is not None and cost.has_price:
        means = {name: as_float(term.mean) for name, term in cost.terms.items()}
        stored = means["checkpoint_storage"] + means["data_storage"]
        found.append(
            f"The price book adds {fmt.usd(stored)} of storage and {fmt.usd(means['egress'])} of "
            f"traffic to the machines, less {fmt.usd(abs(means['credits']))} of credits."
        )
    found += _of_supply(m)
    if crosses:
        found += _of_network(m)
    if crosses and "unverified" in m.offer.note:
        found.append("The network figure of this offer was quoted from memory by its source.")
    if m.network.is_size_assumed and row.num_gpus > m.unit_gpus:
        found.append(
            f"The price is of one GPU; a machine of {m.network.gpus_per_machine}, as usual for "
            f"{m.accelerator.name}, is assumed to cost as many times that."
        )
    if m.accelerator.matmul_flops_per_s is None and "matmul" not in m.measured:
        found.append(
            f"Nobody's matmul measurement of {m.accelerator.name} is at hand: "
            f"{ASSUMED_CEILING:.0%} of its peak is assumed."
        )
    found += [
        f"{m.accelerator.name}: {vocabulary.assumed_fact(quantity, source.printed)}"
        for quantity, source in m.accelerator.sources.items()
        if source.assumed
    ]
    if crosses:
        found.append(CAPACITY)
    if row.num_gpus < row.num_nodes * m.offer.gpu_count:
        idle = row.num_nodes * m.offer.gpu_count - row.num_gpus
        found.append(f"{idle} rented GPUs stay idle: instances are rented whole.")
    return tuple(found)


def _of_supply(m: Machine) -> list[str]:
    """How long the start takes and the least that is billed, each with its source."""
    found, of = [], m.supply
    if of.startup_hours:
        basis = "as given" if of.startup.ref == GIVEN.ref else f"usual ({of.startup.ref})"
        found.append(
            f"Training begins {fmt.days(of.startup_hours)} after the machines are asked "
            f"for, {basis}: counted in time and cost."
        )
    if of.least_billed_hours > of.startup_hours:
        basis = "assumed" if of.billing.assumed else of.billing.ref
        found.append(f"At least {fmt.days(of.least_billed_hours)} are billed ({basis}).")
    return found


def _of_network(m: Machine) -> list[str]:
    """What is assumed of the network between machines, or contradicts it."""
    of = m.network
    found = [of.conflict] if of.conflict else []
    if not m.network_known and of.gbit_per_s is not None:
        why = f"as clusters of {m.accelerator.name} usually have"
        if of.basis == "product":
            why = of.source.printed
        found.append(
            f"{NETWORK_ASSUMED} {of.gbit_per_s:,.4g} Gbit/s a machine: {why} ({of.source.ref})."
        )
    return found


def _calibrated(m: Machine) -> str:
    """Whether the rates of the machine were measured, where, and with which stack."""
    if not m.calibration:
        return UNCALIBRATED
    whose = f", measured with {m.calibrated_with}" if m.calibrated_with else ""
    return (
        f"Rates of {m.accelerator.name} are those of calibration {m.calibration}{whose}: "
        f"{', '.join(vocabulary.measured_constant(n) for n in sorted(m.measured))}."
    )


def on_the_host(m: Machine, layout: Layout, needed: float) -> tuple[str, ...]:
    """How much host memory an offloading plan needs, as a sentence."""
    if layout.offload_optimizer == layout.offload_params == "none":
        return ()
    what = "Optimizer states and weights" if layout.offload_params != "none" else "Optimizer states"
    usable = m.host_bytes
    room = f", of {usable / GIB:,.0f} GiB that can be used" if usable else ""
    return (f"{what} wait in the host's memory: {needed / GIB:,.0f} GiB a GPU{room}.",)
