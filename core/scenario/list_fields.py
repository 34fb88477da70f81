"""Fields of a scenario for the list of plans of the page Compare.

They are in the link and in the file, so that whoever opens it sees the same rows. None of them
changes an answer.
"""

from __future__ import annotations

from core.scenario.fields import ScenarioFields
from core.scenario.types import (
    FewNames,
    Kinds,
    ListMeasure,
    ListOrder,
    ListUnit,
    MostDays,
    MostDollars,
    SomeGpus,
    field,
)


class ListFields(ScenarioFields):
    """The field table, with the filters, order and units of the list of plans."""

    list_gpu: FewNames = field((), "Listed GPUs", "Only plans on these; none: every one", "view")
    list_cloud: FewNames = field(
        (), "Listed clouds", "Only plans at these; none: every one", "view"
    )
    list_purchase: Kinds = field(
        (), "Listed purchases", "Only plans bought this way; none: every one", "view"
    )
    list_min_gpus: SomeGpus = field(
        None, "GPUs, at least", "Only plans with at least this many", "view"
    )
    list_max_gpus: SomeGpus = field(
        None, "GPUs, at most", "Only plans with at most this many", "view"
    )
    list_max_usd: MostDollars = field(
        None, "Cost of the run, at most (USD)", "Leaves out plans without a price", "view"
    )
    list_max_days: MostDays = field(
        None, "Time, at most (days)", "Median, without failures", "view"
    )
    list_within_limits: bool = field(
        False, "Within deadline and budget", "Only plans within both", "view"
    )
    list_frontier: bool = field(
        False, "Fastest or cheapest only", "No other priced plan is both cheaper and faster", "view"
    )
    list_order: ListOrder = field("rank", "Sort by", "Order of the list", "view")
    list_unit: ListUnit = field(
        "run", "Cost", "Of the whole run, of a million tokens, of a GPU-hour", "view"
    )
    list_measure: ListMeasure = field(
        "usd", "Best plan of each pair, by", "Figure in the table of GPUs by clouds", "view"
    )


LIST = frozenset(ListFields.model_fields) - frozenset(ScenarioFields.model_fields)
