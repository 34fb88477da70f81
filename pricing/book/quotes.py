"""Prices that the user was offered, as offers and as rows of a price book.

core/scenario/quotes.py reads them; here their GPUs have canonical names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from core.errors import ScenarioError
from core.machine.offer import Offer
from core.scenario.quotes import Quote
from hardware import facts
from pricing.book.files import has_book, load_book, save_book
from pricing.book.offers import QUOTE
from pricing.book.rows import MAX_ROWS, PriceBook, outside_band, read_rows

INSTANCE = "your quote"  # the name of its machine, which marks it in every table
STORED_AS = "quote"  # the same, of a row that is kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Quoted:
    """A quote and its offer."""

    quote: Quote
    offer: Offer
    is_over: bool  # past its last day


def quoted(quotes: Sequence[Quote], today: date) -> tuple[Quoted, ...]:
    """Each quote with its offer; two of one machine by one seller are numbered."""
    found: list[Quoted] = []
    for quote in quotes:
        offer = _offer(quote, today)
        alike = [q for q in found if _machine(q.offer) == _machine(offer)]
        if alike:
            offer = replace(offer, instance_type=f"{INSTANCE} {len(alike) + 1}")
        is_over = bool(quote.until) and quote.until < today.isoformat()
        found.append(Quoted(quote=quote, offer=offer, is_over=is_over))
    return tuple(found)


def _machine(offer: Offer) -> tuple[object, ...]:
    return offer.provider, offer.accelerator, offer.gpu_count, offer.purchase


def _offer(quote: Quote, today: date) -> Offer:
    count = gpus_per_machine(quote)
    until = f"until {quote.until}" if quote.until else ""
    noted = (f"{quote.usd_per_gpu_hour:g} USD of a GPU-hour, typed in by the user", until)
    return Offer(
        provider=quote.provider,
        instance_type=INSTANCE,
        accelerator=quote.gpu,
        gpu_count=count,
        region="*",
        purchase=quote.purchase,
        usd_per_hour=quote.usd_per_gpu_hour * count,
        scale_out_gbit_per_s=quote.gbit_per_s,
        observed_at=today.isoformat(),
        source=QUOTE,
        quality="high",
        note="; ".join(t for t in (", ".join(filter(None, noted)), quote.note, doubt(quote)) if t),
    )


def gpus_per_machine(quote: Quote) -> int:
    """The GPUs of its machine, as usual for the GPU unless the quote says."""
    return quote.gpus_per_machine or facts.accelerator(quote.gpu).gpus_per_node


def doubt(quote: Quote) -> str:
    """Why its price is probably not what was meant; '' if it is believable."""
    return outside_band(quote.gpu, quote.purchase, quote.usd_per_gpu_hour)


def keep(quote: Quote, name: str, today: date) -> PriceBook:
    """Add a quote to a price book, which is made if there is none, as a rate from today on."""
    old = load_book(name) if has_book(name) else PriceBook(name=name, added_on=today, rows=())
    if len(old.rows) >= MAX_ROWS:
        raise ScenarioError(f"The price book {name!r} is full: it has {MAX_ROWS} rows.")
    if quote.until and quote.until < today.isoformat():
        raise ScenarioError(f"The quote ended on {quote.until}: a price book would not use it.")
    cells = {
        "kind": "rate",
        "provider": quote.provider,
        "instance_type": STORED_AS,
        "accelerator": quote.gpu,
        "purchase": quote.purchase,
        "usd_per_gpu_hour": repr(quote.usd_per_gpu_hour),
        "gpu_count": str(gpus_per_machine(quote)),
        "most_gpus": str(quote.most_gpus or ""),
        "scale_out_gbit_per_s": "" if quote.gbit_per_s is None else repr(quote.gbit_per_s),
        "valid_from": today.isoformat(),
        "valid_to": quote.until,
        "note": quote.note,
    }
    line = max((row.line for row in old.rows), default=1) + 1
    book = replace(old, rows=(*old.rows, *read_rows([(line, cells)])))
    save_book(book)
    return book
