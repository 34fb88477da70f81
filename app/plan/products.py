"""The ranked table on a page: each product once, with its best plan and in how many regions it is
sold."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable

import numpy as np
from numpy.typing import NDArray

from app.document.on_use import pd
from app.plan.document import EXPECTED_COST, FORMATS, IN_FILE
from core.search.plan import Answer, Plan

PRODUCT = ("GPU", "GPUs", "Cloud", "Instance", "Purchase")
REGION = "Region"
CENTS_USD = 100.0  # below it a column of dollars shows cents


def once(ranked: pd.DataFrame, kept: NDArray[np.bool_]) -> pd.DataFrame:
    """The first row of each product at each number of GPUs, or those that are `kept` instead. The
    region is a count where there are several. Keeps the index."""
    product = np.zeros(len(ranked), dtype=np.int64)
    for name in PRODUCT:
        code, names = pd.factorize(ranked[name])
        product = pd.factorize(product * (len(names) + 1) + code)[0]
    region, names = pd.factorize(ranked[REGION])
    pairs = pd.unique(product * (len(names) + 1) + region) // (len(names) + 1)
    num_regions = np.bincount(pairs, minlength=1)[product] if len(ranked) else product
    first = ~pd.Series(product).duplicated().to_numpy()
    rows = kept | (first & ~np.isin(product, product[kept]))
    shown = ranked[rows].copy()
    shown[REGION] = [
        f"{n} regions" if n > 1 else name.removeprefix("region ")  # narrow
        for n, name in zip(num_regions[rows], shown[REGION], strict=True)
    ]
    return shown


def counts(answer: Answer, plan: Plan) -> dict[int, str]:
    """The best plan of the same product at each number of GPUs, by its id."""
    points, offer = answer.points, plan.offer
    if "id" not in points:
        return {plan.num_gpus: plan.id}
    same = (
        (points["accelerator"] == offer.accelerator)
        & (points["provider"] == offer.provider)
        & (points["instance_type"] == offer.instance_type)
        & (points["purchase"] == offer.purchase)
    )
    rows = np.flatnonzero(same)
    found: dict[int, str] = {}
    for row in rows[np.lexsort((points["rank"][rows], points["num_gpus"][rows]))]:
        found.setdefault(int(points["num_gpus"][row]), str(points["id"][row]))
    return {**found, plan.num_gpus: plan.id}


def on_page(names: Iterable[str], *, without: Collection[str] = ()) -> list[str]:
    """The columns of the ranked table on the page: the region stands with the instance."""
    left_out = {*IN_FILE, *without}
    shown = [n for n in names if n not in left_out]
    shown.insert(shown.index("Instance") + 1, REGION)
    return shown


def formats(ranked: pd.DataFrame) -> dict[str, str]:
    """FORMATS for the costs of a table: with cents where the lowest is small."""
    least = ranked[EXPECTED_COST].min() if EXPECTED_COST in ranked else math.inf
    return {**FORMATS, EXPECTED_COST: "$%.2f"} if least < CENTS_USD else FORMATS
