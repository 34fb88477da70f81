"""`runcast prices history|on|freshness|runs|quarantine|release`: read prices and the store."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from app.command.options import AsJson, Text, print_json, text_option
from app.document.echo import echo
from core.errors import ScenarioError, shown
from core.units import whole_number

if TYPE_CHECKING:
    from pricing.series import Sku
    from pricing.store.engine import Store

SHOWN = 40
ROWS_MAX = 10_000
HOURS_MAX = 1e6

Gpu = Annotated[Text, text_option("--gpu", "NAME", "Of this accelerator only.")]
Cloud = Annotated[Text, text_option("--cloud", "NAME", "Of this provider only.")]
Instance = Annotated[Text, text_option("--instance", "NAME", "Of this machine only.")]
Region = Annotated[Text, text_option("--region", "NAME", "Of this region only.")]
Purchase = Annotated[Text, text_option("--purchase", "KIND", "on_demand, spot, ...")]
Since = Annotated[Text, text_option("--since", "DAY", "From this day on, as 2026-01-31.")]
Source = Annotated[Text, text_option("--source", "NAME", "Of this source only.")]
Top = Annotated[Text, text_option("--top", "K", f"Rows to show ({SHOWN}).")]


def history(
    gpu: Gpu = None,
    cloud: Cloud = None,
    instance: Instance = None,
    region: Region = None,
    purchase: Purchase = None,
    since: Since = None,
    fill: Annotated[
        bool, typer.Option("--fill", help="First fetch archived price pages, 2023 to 2026.")
    ] = False,
    top: Top = None,
    as_json: AsJson = False,
) -> None:
    """Show how prices changed, spell by spell, with the gaps."""
    from app.document.terminal import print_document
    from app.prices.as_json import history_json
    from app.prices.history_document import history_sections
    from pricing.history import history as history_of

    most = _count(top)
    begins = None if since is None else _day("--since", since)
    if fill:
        from pricing.history_fill import fill_history

        echo(fill_history().sentence, err=True)
    store = _store_if_any()
    wanted = _skus(
        store, gpu, provider=cloud, instance_type=instance, region=region, purchase=purchase
    )
    each = (history_of(sku, since=begins, store=store) for sku in wanted)
    found = list(islice((one for one in each if one.spells), most))
    if as_json:
        print_json({"num_series": len(wanted), "history": [history_json(h) for h in found]})
    else:
        print_document(history_sections(found, len(wanted)))


def on(
    day: Annotated[str, typer.Argument(metavar="DAY", help="As 2024-06-30.")],
    gpu: Gpu = None,
    cloud: Cloud = None,
    instance: Instance = None,
    region: Region = None,
    purchase: Purchase = None,
    machines: Annotated[Text, text_option("--machines", "N", "Price so many machines (1).")] = None,
    hours: Annotated[Text, text_option("--hours", "H", "For so many hours (1).")] = None,
    top: Top = None,
    as_json: AsJson = False,
) -> None:
    """Show what machines, or a job, would have cost on a day."""
    from app.document.terminal import print_document
    from app.prices.as_json import on_json
    from app.prices.history_document import on_blocks
    from pricing.history import price_on

    asked = _day("DAY", day)
    most, num_machines = _count(top), _count(machines, 1, "--machines")
    machine_hours = num_machines * _hours(hours)
    store = _store_if_any()
    wanted = _skus(
        store, gpu, provider=cloud, instance_type=instance, region=region, purchase=purchase
    )
    prices = [p for sku in wanted if (p := price_on(sku, asked, store=store)) is not None]
    prices.sort(key=lambda p: p.usd_per_hour / p.sku.gpu_count)
    if as_json:
        print_json(on_json(asked, prices[:most], len(wanted), machine_hours))
    else:
        print_document(on_blocks(asked, prices[:most], len(prices), len(wanted), machine_hours))


def freshness(as_json: AsJson = False) -> None:
    """Show how old the prices of each cloud are."""
    from app.document.terminal import print_document
    from app.forecast.price_book import today
    from app.prices.as_json import freshness_json
    from app.prices.freshness import ages, blocks
    from app.prices.offers import frame_of
    from pricing.offers import newest_per_place, snapshot

    found = snapshot()
    frame = frame_of(newest_per_place(found.offers), today())
    if as_json:
        print_json(freshness_json(found.id, ages(frame).rows))
    else:
        print_document(blocks(frame, found.id))


def runs(top: Top = None, as_json: AsJson = False) -> None:
    """List the last refreshes and what became of each source."""
    from app.document.terminal import print_document
    from app.prices.history_document import runs_blocks
    from pricing.store.opening import open_store
    from pricing.store.queries import refresh_runs

    found = refresh_runs(open_store(), limit=_count(top))
    if as_json:
        print_json({"runs": [asdict(r) for r in found]})
    else:
        print_document(runs_blocks(found))


def quarantine(
    source: Source = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also what is no longer held back.")
    ] = False,
    top: Top = None,
    as_json: AsJson = False,
) -> None:
    """List the rows that are held back, with reason and key."""
    from app.document.terminal import print_document
    from app.prices.as_json import held_json
    from app.prices.history_document import held_blocks
    from pricing.store.opening import open_store
    from pricing.store.quarantine import quarantine as held_back

    most = _count(top)
    found = held_back(open_store(), source=source, held_only=not everything, limit=most)
    if as_json:
        print_json({"quarantine": [held_json(h) for h in found]})
    else:
        print_document(held_blocks(found, most))


def release(
    key: Annotated[str, typer.Argument(metavar="KEY", help="From `runcast prices quarantine`.")],
    why: Annotated[str, text_option("--why", "TEXT", "How you know.")] = "",
    as_json: AsJson = False,
) -> None:
    """Let the next refresh publish a row that is held back."""
    from app.document.terminal import print_document
    from app.prices.history_document import release_paragraph
    from pricing.store.opening import open_store
    from pricing.store.quarantine import release as release_price

    given = release_price(open_store(), key, by=_who(), why=why)
    if as_json:
        print_json({"release": {**asdict(given), "sku": given.sku._asdict()}})
    else:
        print_document([release_paragraph(given)])


COMMANDS: tuple[Callable[..., None], ...] = (history, on, freshness, runs, quarantine, release)


# --- reading the options -------------------------------------------------------------------------


def _skus(store: Store | None, gpu: Text, **given: Text) -> list[Sku]:
    """The prices with a history that match the options; a value that none has is an error."""
    from hardware.names import canonical
    from pricing.history import known_skus

    accelerator = None if gpu is None else canonical(gpu)
    found = known_skus(accelerator=accelerator, store=store, limit=ROWS_MAX)
    for name, value in given.items():
        if value is not None:
            found = _having(found, name, value)
    if not found:
        raise ScenarioError(f"There is no history of a price of {shown(gpu or '')}.")
    return found


def _having(skus: Sequence[Sku], name: str, value: str) -> list[Sku]:
    from core.errors import unknown_name

    known = {str(getattr(sku, name)) for sku in skus}
    meant = {k.lower(): k for k in known}.get(value.lower())
    if meant is None:
        raise unknown_name(f"{name.replace('_', ' ')} with a history of prices", value, known)
    return [sku for sku in skus if getattr(sku, name) == meant]


def _store_if_any() -> Store | None:
    """The store, or None with the reason on standard error: bundled data needs no store."""
    from pricing.store.engine import StoreError
    from pricing.store.opening import open_store

    try:
        return open_store()
    except StoreError as e:
        echo(f"runcast: {e}", err=True)
        return None


def _day(what: str, text: str) -> dt.date:
    try:
        return dt.date.fromisoformat(text.strip())
    except ValueError:
        raise ScenarioError(f"{what} {shown(text)} is not a day like 2026-01-31.") from None


def _count(text: Text, default: int = SHOWN, option: str = "--top") -> int:
    return default if text is None else whole_number(text, option, ROWS_MAX)


def _hours(text: Text) -> float:
    try:
        value = 1.0 if text is None else float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= HOURS_MAX:
        raise ScenarioError(f"--hours {shown(text)} is not a number of hours up to {HOURS_MAX:g}.")
    return value


def _who() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):  # an account without a name
        return "unknown"
