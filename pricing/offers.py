"""Price snapshots: immutable tables of offers, each named by the hash of its content.

pricing/snapshots/<id>.parquet   one row = one `Offer` and further fields of the machine
pricing/snapshots/<id>.sha256    the hash of that file, so that damage is seen before it is parsed
pricing/snapshots/current        the id of the snapshot that is used unless another is named
pricing/snapshots/left_out.csv   every price of the source table that is in no offer, and why

`runcast refresh` publishes snapshots of this form in the data folder of the installation; the
newest of them is used, else the bundled one. Snapshots of both folders can be named.

The id is a hash of the rows and not of the file, so it does not depend on what wrote the parquet; a
file whose rows do not hash to its name is refused. A link or a saved plan names the id.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property, lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any, get_args

from arro3.io import read_parquet

from core.errors import FactError, ScenarioError, shown, unknown_name
from core.machine.offer import Offer, Purchase
from pricing.disk import prices_folder

SNAPSHOTS = Path(__file__).with_name("snapshots")
MAX_BYTES = 32_000_000
MAGIC = b"PAR1"  # at both ends of a Parquet file
MAX_ROWS = 300_000  # 410 MiB while they are read
DIGEST = ".sha256"  # beside the file of a snapshot: the hash of its bytes

# Regions that name no place: a newer observation of the machine at a named region is better.
ANY_REGION = "*"  # one price for all regions, or no region in the source
CHEAPEST_US = "us-cheapest"  # the source prints its cheapest region in the US
VAGUE_REGIONS = frozenset({ANY_REGION, CHEAPEST_US})
# In the note of an offer whose `scale_out_gbit_per_s` no source prints; pages mark it.
UNVERIFIED_INTERCONNECT = "interconnect from memory"

QUALITIES = ("low", "medium", "high")  # worst first
PURCHASES: tuple[str, ...] = get_args(Purchase)

Cell = str | int | float | None
Row = tuple[Cell, ...]  # one value per name in COLUMNS
# The fields of Offer, in its order, then those of the host (None: the source does not print it).
COLUMNS: dict[str, type[str] | type[int] | type[float]] = {
    "provider": str,
    "instance_type": str,
    "accelerator": str,
    "gpu_count": int,
    "region": str,
    "purchase": str,
    "usd_per_hour": float,
    "scale_out_gbit_per_s": float,
    "observed_at": str,
    "source": str,
    "quality": str,
    "note": str,
    "gpu_memory_gib": float,
    "vcpus": float,
    "memory_gib": float,
}
OFFER_FIELDS = tuple(COLUMNS)[:12]
_FIELDS_OF = attrgetter(*OFFER_FIELDS)
_NOTHING_OF_THE_HOST = (None,) * (len(COLUMNS) - len(OFFER_FIELDS))
_OPTIONAL = {"scale_out_gbit_per_s", "gpu_memory_gib", "vcpus", "memory_gib"}
_AS_JSON = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
_AGAIN = "`runcast refresh` may write it again, else restore a backup"
_ID = re.compile(r"[0-9a-f]{12}")
_DAY = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?", re.ASCII)


@dataclass(frozen=True, kw_only=True)  # no slots: `providers` is a cached property
class Snapshot:
    """All offers of one snapshot, old ones included (`newest_per_place` selects)."""

    id: str
    offers: tuple[Offer, ...]
    newest: str  # observed_at as printed
    oldest: str

    @cached_property
    def providers(self) -> tuple[str, ...]:
        """Names of the providers with offers, in alphabetical order."""
        return tuple(sorted({o.provider for o in self.offers}))


def content_id(rows: Iterable[Row]) -> str:
    """The id of a set of rows, from every value, in any order.

    First 12 hex digits of sha256 over the column names and the sorted rows as JSON. Python writes a
    float as the shortest text that reads back equal, so the text is the value. `FactError` for a
    value that a file would return as another type (3 as 3.0).
    """
    return _id_of(_checked(rows, "A row of a price snapshot"))


def _id_of(rows: Iterable[Row]) -> str:
    lines = sorted(map(_AS_JSON, rows))
    text = "\n".join([json.dumps(list(COLUMNS)), *lines])
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:12]


def published_folder() -> Path:
    """The folder in which `runcast refresh` publishes, which may not exist."""
    return prices_folder() / "snapshots"


def snapshot_ids(*, folder: Path | None = None) -> list[str]:
    """Every snapshot by id, of one folder or of both."""
    folders = (published_folder(), SNAPSHOTS) if folder is None else (folder,)
    found = {p.stem for f in folders for p in f.glob("*.parquet") if _ID.fullmatch(p.stem)}
    return sorted(found)


def installed_id(*, folder: Path | None = None) -> str:
    """The id of the installed snapshot, which is used when none is named."""
    if folder is None:
        published = published_folder()
        folder = published if _is_file(published / "current") else SNAPSHOTS
    current = folder / "current"
    try:
        text = current.read_text(encoding="ascii")[:64].strip()
    except (OSError, UnicodeDecodeError) as e:
        raise FactError(f"{current.name}: {type(e).__name__}, no price snapshot is named") from None
    if not (_ID.fullmatch(text) and _is_file(folder / f"{text}.parquet")):
        raise FactError(f"{current.name} names {shown(text)}, and there is no {text[:12]}.parquet")
    return text


def snapshot(snapshot_id: str | None = None, *, folder: Path | None = None) -> Snapshot:
    """The snapshot of this id, or the installed one. Read once per process."""
    if not snapshot_id:
        snapshot_id = installed_id(folder=folder)
    folders = (published_folder(), SNAPSHOTS) if folder is None else (folder,)
    for place in folders:
        if _ID.fullmatch(snapshot_id) and _is_file(place / f"{snapshot_id}.parquet"):
            return _opened(snapshot_id, place)
    known = snapshot_ids(folder=folder)
    if not known:
        raise ScenarioError(f"No price snapshot {shown(snapshot_id)}: none is installed.")
    raise unknown_name("price snapshot", snapshot_id, known)


def _is_file(path: Path) -> bool:
    """Whether the file exists and is visible: a data folder without permission counts as empty."""
    return os.path.isfile(path)


@lru_cache(maxsize=8)
def _opened(snapshot_id: str, folder: Path) -> Snapshot:
    rows = read_rows(folder / f"{snapshot_id}.parquet")
    offers = tuple(make_offer(row) for row in rows)
    days = sorted({o.observed_at for o in offers}, key=first_day)
    return Snapshot(id=snapshot_id, offers=offers, newest=days[-1], oldest=days[0])


def read_rows(path: Path) -> list[Row]:
    """The rows of a snapshot file; `FactError` if they do not match its name."""
    if path.stat().st_size > MAX_BYTES:
        raise FactError(f"{path.name} is larger than {MAX_BYTES} bytes: not a price snapshot")
    names, rows = _read(path)
    if names != list(COLUMNS):
        raise FactError(f"{path.name} has columns {shown(names)}, not those of offers")
    if not rows:
        raise FactError(f"{path.name} holds no offer")
    if (found := _id_of(_checked(rows, path.name))) != path.stem:
        raise FactError(f"{path.name} was changed: its content hashes to {found}")
    return rows


def _check_bytes(path: Path) -> None:
    """Refuse a file that is not what was written, before Rust panics over it on the terminal or
    ends the process. Of a file of an older version, which has no hash, both ends are compared."""
    content = path.read_bytes()
    written = path.with_suffix(DIGEST)
    if _is_file(written):
        is_whole = hashlib.sha256(content).hexdigest() == written.read_text("ascii").strip()
    else:
        is_whole = content.startswith(MAGIC) and content.endswith(MAGIC)
    if not is_whole:
        raise FactError(f"{path.name} cannot be read, it is not what was written: {_AGAIN}")


def _read(path: Path) -> tuple[list[str], list[Row]]:
    """The names of the columns of a Parquet file, and its rows."""
    rows: list[Row] = []
    try:
        _check_bytes(path)
        batches = read_parquet(path)
        for batch in batches:
            rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)
            if len(rows) > MAX_ROWS:
                raise FactError(f"{path.name} has more than {MAX_ROWS} rows: not a price snapshot")
        return batches.schema.names, rows
    except (FactError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as e:  # noqa: BLE001 - a damaged file is a panic of Rust, of no class
        raise FactError(
            f"{path.name} cannot be read as parquet ({type(e).__name__}): {_AGAIN}"
        ) from None


def _checked(rows: Iterable[Row], what: str) -> Iterator[Row]:
    """The rows; `FactError` at the first value that does not have the type of its column."""
    for row in rows:
        for (name, kind), value in zip(COLUMNS.items(), row, strict=True):
            if value is None and name in _OPTIONAL:
                continue
            if type(value) is not kind or (isinstance(value, float) and not math.isfinite(value)):
                raise FactError(f"{what}: {name} is {shown(value)}, not a {kind.__name__}")
        yield row


def make_row(offer: Offer) -> Row:
    """The row of an offer without fields of the host."""
    return (*_FIELDS_OF(offer), *_NOTHING_OF_THE_HOST)


def make_offer(row: Row) -> Offer:
    """The offer of a row, without the fields of the host."""
    fields: dict[str, Any] = dict(zip(OFFER_FIELDS, row[: len(OFFER_FIELDS)], strict=True))
    return Offer(**fields)


def newest_per_place(offers: Sequence[Offer]) -> tuple[Offer, ...]:
    """One offer per machine, region and purchase: the newest observation, in the given order.

    Of one day the better quality wins, then the later row. An offer of a vague region
    (`VAGUE_REGIONS`) is also superseded by a newer one of its machine and purchase elsewhere:
    'cheapest in the US' of 2025 by us-east-1 of 2026. The number of superseded offers is
    `len(offers) - len(newest_per_place(offers))`.
    """
    best: dict[tuple[object, ...], tuple[tuple[date, int, int], int]] = {}
    newest: dict[tuple[object, ...], date] = {}
    for i, o in enumerate(offers):
        machine = _machine(o)
        day = first_day(o.observed_at)
        rank = (day, QUALITIES.index(o.quality), i)
        place = (*machine, o.region)
        if place not in best or rank > best[place][0]:
            best[place] = (rank, i)
        newest[machine] = max(day, newest.get(machine, day))
    return tuple(
        offers[i]
        for (day, _, _), i in sorted(best.values(), key=lambda b: b[1])
        if offers[i].region not in VAGUE_REGIONS or day == newest[_machine(offers[i])]
    )


def _machine(o: Offer) -> tuple[object, ...]:
    return (o.provider, o.instance_type, o.accelerator, o.gpu_count, o.purchase)


def age_days(observed_at: str, today: date) -> int:
    """Days since an observation, at most: a month or a year counts from its first day, so that
    '2026' is not mistaken for today. Never negative.

    >>> age_days("2026-05-24", date(2026, 5, 31)), age_days("2026-04", date(2026, 5, 31))
    (7, 60)
    """
    return max(0, (today - first_day(observed_at)).days)


@lru_cache(maxsize=1024)
def first_day(observed_at: str) -> date:
    """First day of an ISO day, month or year: the observation is not older than that.

    Observations are ordered by it, so that '2026' does not beat '2026-05-24'.
    """
    written = _DAY.fullmatch(observed_at)
    try:
        if written is None:
            raise ValueError
        year, month, day = (int(g) if g else None for g in written.groups())
        return date(year or 0, month or 1, day or 1)
    except ValueError:
        raise FactError(
            f"{shown(observed_at)} is not an ISO day, month or year like 2026-05-24"
        ) from None
