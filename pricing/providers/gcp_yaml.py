"""GCP machine prices, ready assembled, from a YAML file that is updated weekly, without a key.

`compute.instance.<type>.cost.<region>` holds `hour`, `hour_spot`, `month_1y` and `month_3y` in USD;
a month is 730 hours. 0 means not sold there; a commitment at the on-demand price is not one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from datetime import date
from typing import Any

import yaml  # type: ignore[import-untyped, unused-ignore]

from core.machine.offer import Offer, Purchase
from hardware.outside import interrupt
from pricing.fetch.network import SourceError
from pricing.fetch.session import Session
from pricing.providers.boundary import MONTH_H, Raw, document, known_machine, offer, parsed

URL = (
    "https://raw.githubusercontent.com/Cyclenerd/google-cloud-pricing-cost-calculator/"
    "master/pricing.yml"
)
# Characters that may begin a node of YAML: each node becomes an object of half a kilobyte.
MAX_NODES = 1_000_000
_ALIAS = re.compile(r"[\s:,\[{-][*&]\w")  # with which a small file could expand to a huge one
Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Strict(Loader):  # type: ignore[misc]
    """Plain YAML without duplicate keys."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        interrupt.check()
        found: dict[Hashable, Any] = super().construct_mapping(node, deep=deep)
        if len(found) != len(node.value):
            raise SourceError(f"The YAML gives a key twice in line {node.start_mark.line + 1}.")
        return found


class Cost(Raw):
    machine: str
    region: str
    hour: float | None = None
    hour_spot: float | None = None
    month_1y: float | None = None
    month_3y: float | None = None


class Machine(Raw):
    cost: Mapping[str, Mapping[str, Any]]


class Compute(Raw):
    instance: Mapping[str, Mapping[str, Any]]


class Document(Raw):
    compute: Compute


def fetch(session: Session) -> Iterable[Offer]:
    """Offers of known machines, in every region with a price."""
    text, day = session.text(URL)
    if _ALIAS.search(text):
        raise SourceError("The YAML uses an anchor or an alias: refused.")
    if sum(map(text.count, ":,-[{\n")) > MAX_NODES:
        raise SourceError(f"The YAML holds more than {MAX_NODES} values.")
    try:
        loaded = _Strict(text).get_single_data()
    except yaml.YAMLError as e:
        raise SourceError(f"The body is not YAML ({type(e).__name__}).") from None
    except RecursionError:
        raise SourceError("The YAML is nested too deeply.") from None
    for row in parsed(session, Cost, _rows(session, document(Document, loaded))):
        for purchase, usd in _prices(session, row):
            yield from _offer(session, row, purchase, usd, day)


def _rows(session: Session, prices: Document) -> Iterator[dict[str, Any]]:
    for machine, described in prices.compute.instance.items():
        if known_machine("gcp", machine) is None:
            session.leave_out("no machine that we know")
            continue
        for region, cost in document(Machine, described).cost.items():
            yield {**cost, "machine": machine, "region": region}


def _prices(session: Session, row: Cost) -> Iterator[tuple[Purchase, float]]:
    month_usd = (row.hour or 0.0) * MONTH_H
    found: tuple[tuple[Purchase, float | None, float], ...] = (
        ("on_demand", row.hour, 1.0),
        ("spot", row.hour_spot, 1.0),
        ("reserved_1y", row.month_1y, MONTH_H),
        ("reserved_3y", row.month_3y, MONTH_H),
    )
    for purchase, usd, hours in found:
        if usd is None or usd == 0:
            session.leave_out("not sold there (no price, or 0)")
        elif hours > 1 and math.isclose(usd, month_usd, rel_tol=1e-6):
            session.leave_out("a commitment at the on-demand price is none")
        else:
            yield purchase, usd / hours


def _offer(
    session: Session, row: Cost, purchase: Purchase, usd: float, day: date
) -> Iterator[Offer]:
    return offer(
        session,
        provider="gcp",
        instance_type=row.machine,
        region=row.region,
        purchase=purchase,
        usd_per_hour=usd,
        observed_at=day,
        source="Cyclenerd/google-cloud-pricing-cost-calculator: pricing.yml",
        quality="medium",
        note=f"a month of {MONTH_H:g} h" if purchase.startswith("reserved") else "",
    )
