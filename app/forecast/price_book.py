"""Combine the quotes and the price book of a scenario with its price snapshot, as machines."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, lru_cache

from app.forecast.failure_times import checkpoint_size_bytes
from app.forecast.machines import machine, priced_machines
from core.errors import ScenarioError, shown
from core.machine.offer import Offer
from core.machine.rented import Terms
from core.scenario import Scenario
from core.scenario.quotes import quote_of
from core.search.job import Machine
from hardware import facts
from pricing import offers as prices
from pricing.book.cells import ANY
from pricing.book.files import book_names, has_book, load_book
from pricing.book.offers import OWN, BookedOffers, booked, place, terms_of
from pricing.book.quotes import Quoted, quoted
from pricing.book.rows import Commitment, Owned, PriceBook, Rate

TB = 1e12
TODAY = "RUNCAST_TODAY"  # judge prices as of this day, an ISO date

Machines = tuple[tuple[Machine, ...], tuple[Offer, ...]]


def today() -> dt.date:
    """The day that decides which rows of a book are in force, and against which ages are counted:
    that of the clock, or the one in the environment variable RUNCAST_TODAY."""
    given = os.environ.get(TODAY, "").strip()
    if not given:
        return dt.datetime.now(dt.UTC).date()
    try:
        return dt.date.fromisoformat(given)
    except ValueError:
        raise ScenarioError(f"{TODAY}={shown(given)} is not a day like 2026-01-31.") from None


def price_day(scenario: Scenario) -> dt.date:
    """The day against which the ages of prices are counted: today for the installed snapshot, which
    nobody has refreshed since; for another one that a link names the day of its newest observation,
    so that the link keeps its answer."""
    if scenario.prices in ("", prices.installed_id()):
        return today()
    return prices.first_day(prices.snapshot(scenario.prices).newest)


def names() -> list[str]:
    """Every price book of this server."""
    return book_names()


def book_of(scenario: Scenario) -> PriceBook | None:
    """The book that the scenario names; None if it names none."""
    return load_book(scenario.price_book) if scenario.price_book else None


def book_id(scenario: Scenario) -> str:
    """What the scenario's book and quotes say today, used as a cache key for answers; '' without
    them."""
    if not has_book(scenario.price_book):
        return today().isoformat() if scenario.quotes else ""
    return f"{load_book(scenario.price_book).id} {today().isoformat()}"


def content_id(name: str) -> str:
    """Hash of what a book says today; '' without a book. It changes only on days on which a row
    begins or ends."""
    if not has_book(name):
        return ""
    book, day = load_book(name), today()
    valid = "".join(str(int(row.is_valid_on(day))) for row in book.rows)
    return f"{book.id}.{valid}"


def lacking_sentence(name: str) -> str:
    """The note for a link whose price book is not on this server."""
    return f"The price book {name!r} is not on this server: list prices are shown."


def listed(snapshot_id: str, book: PriceBook, day: dt.date) -> BookedOffers:
    """The newest offers of a snapshot at the book's prices."""
    newest = prices.newest_per_place(prices.snapshot(snapshot_id or None).offers)
    return booked(book, newest, day)


def machines_of(scenario: Scenario) -> Machines:
    """The machines to compare, at the book's prices if there is one, with those of the quotes; and
    offers without facts."""
    book = book_of(scenario)
    if book is None:
        found, without = priced_machines(scenario.prices)
    else:
        snapshot_id = scenario.prices or prices.installed_id()
        found, without = _booked(snapshot_id, book.name, book.id, today())
    return (*found, *_machines_of_quotes(scenario)), without


def quotes_of(scenario: Scenario) -> tuple[Quoted, ...]:
    """The quotes of a resolved scenario with their offers, as of today."""
    return quoted([quote_of(text) for text in scenario.quotes], today())


def _machines_of_quotes(scenario: Scenario) -> tuple[Machine, ...]:
    return tuple(
        replace(
            machine(q.offer, facts.accelerator(q.offer.accelerator)),
            largest_num_gpus=q.quote.most_gpus,
        )
        for q in quotes_of(scenario)
        if not q.is_over
    )


def providers_of(scenario: Scenario) -> list[str]:
    """Sellers that only the scenario's quotes and price book name."""
    found = [quote_of(text).provider for text in scenario.quotes]
    if has_book(scenario.price_book):
        for row in load_book(scenario.price_book).rows:
            if isinstance(row, Rate | Commitment):
                found.append(row.provider)
            elif isinstance(row, Owned):
                found.append(OWN)
    return [name for name in dict.fromkeys(found) if name != ANY]


@lru_cache(maxsize=8)
def _booked(snapshot_id: str, name: str, book_id: str, day: dt.date) -> Machines:
    found = listed(snapshot_id, load_book(name), day)
    known = facts.accelerators()
    return (
        tuple(
            replace(
                machine(o, facts.accelerator(o.accelerator)),
                largest_num_gpus=found.largest.get(place(o)),
            )
            for o in found.offers
            if o.accelerator in known
        ),
        tuple(o for o in found.offers if o.accelerator not in known),
    )


def with_terms(scenario: Scenario, chosen: Sequence[Machine]) -> tuple[Machine, ...]:
    """The machines with the book's costs of a run besides the machine itself."""
    book = book_of(scenario)
    if book is None:
        return tuple(chosen)
    day, size = today(), checkpoint_size_bytes(scenario)

    @cache
    def terms(provider: str, region: str) -> Terms:
        return terms_of(
            book, provider, region, day, checkpoint_bytes=size,
            kept_checkpoints=scenario.kept_checkpoints,
            data_bytes=None if scenario.dataset_tb is None else scenario.dataset_tb * TB,
        )  # fmt: skip

    return tuple(replace(m, terms=terms(m.offer.provider, m.offer.region)) for m in chosen)
