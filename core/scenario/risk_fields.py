"""Fields of a scenario for failures, spot interruptions and the bill.

Empty means a published or an assumed figure (hardware/reliability.csv, hardware/spot.csv,
hardware/carbon.csv), which every answer shows with its source. Failures, and on spot preemptions,
are in the expected time and cost by which plans are ranked; NOT_SEARCHED names the fields that no
plan depends on, so that a cached answer stays valid when they change.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from core.scenario.list_fields import LIST, ListFields
from core.scenario.types import (
    Flag,
    Frequency,
    MinNodes,
    Rate,
    Seconds,
    Share,
    Spares,
    Zones,
    field,
    number,
)


class RiskFields(ListFields):
    """The field table, with failures, interruptions and the bill."""

    failures_per_node_day: Frequency = field(
        None, "Failures per node-day", "Of 8 GPUs and their host", "failures"
    )
    job_failures_per_day: Frequency = field(
        None, "Further stops a day", "Of the whole job: software, maintenance", "failures"
    )
    checkpoint_s: Seconds = field(
        None, "Checkpoint stops training (s)", "Empty: its bytes over the storage rate",
        "failures",
    )  # fmt: skip
    upload_s: Seconds = field(
        None, "Upload of a checkpoint (s)", "In the background, after training resumed", "failures"
    )
    async_checkpoint: Flag = field(
        None, "Asynchronous checkpoints",
        "Training stops only to copy states to the host; empty: if the stack can", "failures",
    )  # fmt: skip
    interval_s: Annotated[
        Annotated[float, Field(ge=1e-3, le=1e9)] | None, BeforeValidator(number)
    ] = field(None, "Work between checkpoints (s)", "Empty: the best interval", "failures")
    detection_s: Seconds = field(
        None, "Failure to restart (s)", "Until the job is started again", "failures"
    )
    restart_s: Seconds = field(
        None, "Restart and reload (s)", "From the restart until it trains", "failures"
    )
    wait_s: Seconds = field(
        None, "Wait for a machine (s)", "Mean wait for a replacement", "failures"
    )
    node_start_s: Seconds = field(
        None,
        "Start of a machine (s)",
        "Mean; a job starts with its last machine",
        "failures",
    )
    spares: Spares = field(
        None, "Spare machines", "Take over at once; give repair and wait, too", "failures"
    )
    repair_s: Seconds = field(
        None, "Repair (s)", "Until a failed machine is a spare again", "failures"
    )
    min_nodes: MinNodes = field(
        None, "Fewest machines",
        "Elastic: goes on without one while it is waited for; give the wait", "failures",
    )  # fmt: skip
    slow_probability: Share = field(
        None, "Chance that a node is slow", "By a tenth; one slow node slows all", "failures"
    )
    weibull_shape: Annotated[
        Annotated[float, Field(ge=0.2, le=10)] | None, BeforeValidator(number)
    ] = field(None, "Weibull shape of uptimes", "For the simulation; under 1: bursts", "failures")

    preemptions_per_day: Frequency = field(
        None, "Preemptions a day", "Of one spot instance, while it is up", "market"
    )
    outage_hours: Annotated[
        Annotated[float, Field(ge=0, le=8760)] | None, BeforeValidator(number)
    ] = field(None, "Spot outage (hours)", "Mean time until spot capacity is back", "market")
    preemption_cv: Annotated[
        Annotated[float, Field(ge=0.1, le=20)] | None, BeforeValidator(number)
    ] = field(
        None, "Burstiness of preemptions", "Deviation over mean of uptimes; 1: exponential",
        "market",
    )  # fmt: skip
    spot_zones: Zones = field(
        None, "Spot zones", "Independent markets that the job may move between", "market"
    )
    reserved_utilisation: Annotated[
        Annotated[float, Field(gt=0, le=1)] | None, BeforeValidator(number)
    ] = field(
        None, "Use of a reservation", "Share of its term that is used, by this run and others",
        "market",
    )  # fmt: skip
    block_days: Annotated[Annotated[float, Field(gt=0, le=366)] | None, BeforeValidator(number)] = (
        field(None, "Capacity block (days)", "Window, paid whole; empty: the shortest", "market")
    )

    experiment_share: Annotated[
        Annotated[float, Field(ge=0, le=100)] | None, BeforeValidator(number)
    ] = field(
        None, "Experiments", "GPU-hours of failed runs and ablations over those of the run", "bill"
    )
    dataset_tb: Annotated[Annotated[float, Field(ge=0, le=1e6)] | None, BeforeValidator(number)] = (
        field(None, "Data stored (TB)", "Without the checkpoints", "bill")
    )
    kept_checkpoints: Spares = field(None, "Checkpoints kept", "Stored at the same time", "bill")
    pue: Annotated[Annotated[float, Field(ge=1, le=5)] | None, BeforeValidator(number)] = field(
        None, "PUE", "Energy of the data centre over that of its machines", "bill"
    )
    usd_per_kwh: Rate = field(
        None, "Electricity (USD/kWh)", "Paid by an owner; included in cloud prices", "bill"
    )
    grid_g_co2e_per_kwh: Annotated[
        Annotated[float, Field(ge=0, le=5000)] | None, BeforeValidator(number)
    ] = field(None, "Grid (g CO2e/kWh)", "Empty: that of the region, where known", "bill")


NOT_SEARCHED = frozenset(
    {
        "weibull_shape", "preemption_cv", "spot_zones", "reserved_utilisation", "block_days",
        "experiment_share", "dataset_tb", "kept_checkpoints", "pue", "usd_per_kwh",
        "grid_g_co2e_per_kwh",
    }
)  # fmt: skip
NAMED = frozenset({"plan", "pinned"})  # plans that an answer describes at any rank
VIEW = NAMED | LIST | {"made", "continued"}  # what is shown, the version: no figure depends on it
