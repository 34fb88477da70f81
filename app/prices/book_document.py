"""A price book in words and as JSON: its rows, which are valid today, which match no offer."""

from __future__ import annotations

import datetime as dt
from typing import Any

from app.document import format as fmt
from pricing.book.offers import BookedOffers, is_booked
from pricing.book.rows import Commitment, Credit, Egress, Owned, PriceBook, Rate, Row, Storage

NO_NETWORK = (
    "It states no network: that which is usual for the GPU is assumed; give scale_out_gbit_per_s, "
    "of a machine, if you know it."
)


def book_json(book: PriceBook) -> dict[str, Any]:
    """Name, id, day and rows of a book as JSON, with the cost of a GPU-hour of owned clusters."""
    return {
        "name": book.name,
        "id": book.id,
        "added_on": book.added_on.isoformat(),
        "rows": [_row_json(row) for row in book.rows],
    }


def _row_json(row: Row) -> dict[str, Any]:
    hourly = {"usd_per_gpu_hour": row.usd_per_gpu_hour} if isinstance(row, Owned) else {}
    return row.model_dump(mode="json", exclude_none=True) | hourly


def described(book: PriceBook, found: BookedOffers, today: dt.date) -> list[str]:
    """One line for the book, then one for each row."""
    prices = sum(is_booked(o) for o in found.offers)
    head = (
        f"Price book {book.name}, added {book.added_on}: {len(book.rows)} rows, "
        f"{fmt.count(prices)} prices with the list of today."
    )
    return [head, *(_line(row, found, today) for row in book.rows)]


def _line(row: Row, found: BookedOffers, today: dt.date) -> str:
    until = f", until {row.valid_to}" if row.valid_to else ""
    begins = f", from {row.valid_from}" if row.valid_from else ""
    note = f" ({row.note})" if row.note else ""
    text = f"Line {row.line}: {_terms(row)}{begins}{until}.{note}"
    if not row.is_valid_on(today):
        return f"{text} Not valid today: it does not count."
    if row.line in found.idle_lines:
        return f"{text} No listed offer is like it, so it changes nothing."
    if row.line in found.without_network:
        return f"{text} {NO_NETWORK}"
    return text


def _terms(row: Row) -> str:
    match row:
        case Rate() | Commitment():
            return f"{_price(row)} for {_machines(row)}, {row.purchase}"
        case Owned():
            usd = fmt.usd_per_hour(row.usd_per_gpu_hour)
            return f"own cluster {row.name}: {row.num_gpus} x {row.accelerator} at {usd} a GPU"
        case Credit():
            return f"credit of {fmt.usd(row.usd)} at {row.provider}"
        case Storage():
            return f"storage at {row.usd_per_gb_month:g} USD a GB and month, {_size(row)}"
        case Egress():
            return f"traffic out at {row.usd_per_gb:g} USD a GB, {_size(row)}"
    return type(row).__name__


def _price(row: Rate | Commitment) -> str:
    if row.discount is not None:
        return f"{fmt.percent(row.discount)} off the list"
    if row.usd_per_gpu_hour is not None:
        return f"{fmt.usd_per_hour(row.usd_per_gpu_hour)} a GPU"
    return f"{fmt.usd_per_hour(row.usd_per_hour if isinstance(row, Rate) else None)} an instance"


def _machines(row: Rate | Commitment) -> str:
    named = (row.provider, row.instance_type, row.accelerator, row.region)
    return " ".join(text for text in named if text != "*") or "every offer"


def _size(row: Storage | Egress) -> str:
    return f"{fmt.count(row.data_gb)} GB of data and {row.checkpoints} checkpoints"
