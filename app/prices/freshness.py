"""The age of each cloud's prices, as a table for the Prices page and for the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from app.document import format as fmt
from app.document.blocks import Block, Paragraph
from app.document.table import Column, Table, column, text_column


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudAge:
    """How old the prices of one cloud are; days as their sources print them."""

    provider: str
    num_offers: int
    newest: str
    median_age_days: float  # at most: a month or a year counts from its first day
    oldest: str


COLUMNS: tuple[Column[CloudAge], ...] = (
    text_column("Cloud", lambda c: c.provider),
    column("Offers", lambda c: c.num_offers, write=fmt.count),
    text_column("Newest", lambda c: c.newest),
    column("Median age (days)", lambda c: c.median_age_days, write=fmt.count),
    text_column("Oldest", lambda c: c.oldest),
)


def ages(frame: pd.DataFrame) -> Table[CloudAge]:
    """One row a cloud of the offers of `offers.frame_of`, the oldest median first."""
    found = []
    for provider, of_cloud in frame.groupby("provider", sort=True):
        days, printed = of_cloud["age_days"], of_cloud["observed_at"]
        found.append(
            CloudAge(
                provider=str(provider),
                num_offers=len(of_cloud),
                newest=str(printed.iloc[int(days.argmin())]),
                median_age_days=float(days.median()),
                oldest=str(printed.iloc[int(days.argmax())]),
            )
        )
    found.sort(key=lambda c: -c.median_age_days)
    return Table(caption="Age of the prices of each cloud", columns=COLUMNS, rows=tuple(found))


def sentence(frame: pd.DataFrame, snapshot_id: str) -> str:
    """How many prices there are, and how old half of them are at most."""
    if frame.empty:
        return f"Price snapshot {snapshot_id} lists no price."
    half = fmt.count(frame["age_days"].median())
    return (
        f"Half of the {fmt.count(len(frame))} prices of snapshot {snapshot_id} are at most {half} "
        "days old; a price that its source dates by month or year counts from the first day."
    )


def blocks(frame: pd.DataFrame, snapshot_id: str) -> Iterator[Block]:
    """The table, then its sentence."""
    if not frame.empty:
        yield ages(frame)
    yield Paragraph(sentence(frame, snapshot_id))
