"""Reference exchange rates of the European Central Bank: dollars per unit of a currency.

The daily file has one day: `<Cube time="2026-11-20"><Cube currency="USD" rate="1.08"/>..`, units
per euro. Nothing is converted without a rate, and the note of a converted offer has its rate.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from xml.etree import ElementTree as ET

from core.errors import shown
from pricing.fetch.network import SourceError
from pricing.fetch.session import Session

URL = "https://www.ecb.europa.eu/stats/eurofxref/eurofxref-daily.xml"
OLDEST_DAYS = 7  # weekends and holidays have no rate of their own
PLAUSIBLE_USD_PER_EUR = (0.5, 2.0)  # 0.83 to 1.60 since 1999
_DECLARES = re.compile(r"<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Units of a currency per euro, on one day."""

    day: date
    per_euro: Mapping[str, float]

    def usd(self, amount: float, currency: str) -> float:
        """An amount in dollars; `SourceError` for a currency without a rate."""
        name = currency.strip().upper()
        if name not in self.per_euro:
            raise SourceError(f"There is no exchange rate of {shown(currency)}.")
        return amount * self.per_euro["USD"] / self.per_euro[name]


def rates(session: Session) -> Rates:
    """The rates of the last working day."""
    text, _ = session.text(URL)
    if _DECLARES.search(text):
        raise SourceError("The exchange rates declare an XML entity: refused.")
    try:
        root = ET.fromstring(text)
    except ET.ParseError as e:
        raise SourceError(f"The exchange rates are not XML ({e}).") from None
    day, per_euro = "", {"EUR": 1.0}
    for cube in root.iter():
        day = cube.get("time") or day
        if name := cube.get("currency"):
            per_euro[name] = _rate(cube.get("rate"))
    try:
        dated = date.fromisoformat(day)
    except ValueError:
        raise SourceError("The exchange rates have no day.") from None
    if not 0 <= (session.today - dated).days <= OLDEST_DAYS:
        raise SourceError(f"The exchange rates are of {day}, not of this week.")
    low, high = PLAUSIBLE_USD_PER_EUR
    if not low <= per_euro.get("USD", 0.0) <= high:
        raise SourceError(f"The exchange rates print {per_euro.get('USD')} USD per EUR.")
    return Rates(day=dated, per_euro=per_euro)


def _rate(text: str | None) -> float:
    try:
        rate = float(text or "")
    except ValueError:
        rate = 0.0
    if not 0 < rate < 1e9:
        raise SourceError(f"An exchange rate is {shown(text)}.")
    return rate
