"""Fill the price history with archived pages: <data>/prices/history.csv, fetched on request.

The file has the form of pricing/price_history.csv and is replaced as a whole by each fill. It is
read only together with the store, as what this installation knows beyond the bundled history.
"""

from __future__ import annotations

import csv
import io
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from core.machine.offer import Offer
from pricing.asking import ask
from pricing.disk import prices_folder, write_atomically
from pricing.fetch.network import SourceError
from pricing.history import COLUMNS, FILLED_CSV
from pricing.integrity import Bands, price_bands
from pricing.providers import gpu_price_archive
from pricing.series import sku_of
from pricing.sources import Source

SOURCE = "gpu_price_index"  # its mirror variable and its limits are those of the daily collection
CAP_BYTES = 32_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """What a fill wrote, and what it left out by reason."""

    observations: int
    prices: int  # machines and places
    first: str
    last: str
    left_out: Mapping[str, int]

    @property
    def sentence(self) -> str:
        """The outcome in a sentence."""
        out = sum(self.left_out.values())
        return (
            f"{self.observations:,} observations of {self.prices:,} prices from {self.first} to "
            f"{self.last} are in the history; {out:,} rows of the archive were left out."
        )


def fill_history(
    *,
    folder: Path | None = None,
    environ: Mapping[str, str] | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Filled:
    """Fetch the archive, in a process of its own, and replace the file. `SourceError` if it cannot
    be read or holds no price: the file then stays as it was."""
    folder = prices_folder() if folder is None else folder
    environ = os.environ if environ is None else environ
    source = Source(name=SOURCE, says="", fetch=gpu_price_archive.fetch, cap_bytes=CAP_BYTES)
    (read,) = ask([source], environ, None, {SOURCE: ()}, None, now)
    if read.status != "refreshed" and not read.sentence.startswith("It lists 0 prices"):
        raise SourceError(read.sentence)
    left_out = Counter(read.left_out)
    found = _sound(left_out, read.offers, price_bands())
    left_out["it has no believable shape"] = len(read.refused)
    if not found:
        raise SourceError("The archive holds no price that can be used: the history stays.")
    text = io.StringIO(newline="")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    table.writerows((*sku_of(o), o.usd_per_hour, o.observed_at, o.source) for o in found)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / FILLED_CSV, text.getvalue().encode())
    days = [o.observed_at for o in found]
    return Filled(
        observations=len(found),
        prices=len({sku_of(o) for o in found}),
        first=min(days),
        last=max(days),
        left_out=left_out,
    )


def _sound(left_out: Counter[str], offers: Iterable[Offer], bands: Bands) -> list[Offer]:
    """One offer a place and day, within the band of its accelerator, in order of place and day. Of
    two prices on one day neither is believed."""
    by_day: dict[tuple[object, ...], list[Offer]] = defaultdict(list)
    for o in offers:
        low, high = bands[o.accelerator, "spot" if o.purchase == "spot" else "committed"]
        if low <= (o.usd_per_hour or 0.0) / o.gpu_count <= high:
            by_day[(*sku_of(o), o.observed_at)].append(o)
        else:
            left_out["outside the band of believable prices"] += 1
    sound = []
    for _, same in sorted(by_day.items(), key=lambda one: one[0]):
        if len({o.usd_per_hour for o in same}) == 1:
            sound.append(same[0])
        else:
            left_out["two prices of one place on one day"] += 1
    return sound
