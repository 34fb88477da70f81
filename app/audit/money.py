"""The dollars of a claim: their arithmetic, and the price against known prices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from statistics import median

from app.audit.claim import Claim
from app.document import format as fmt
from core.evidence.claimed_speed import SAME, Slip, power_usd_per_gpu_hour, slips_of
from core.machine.accelerator import Accelerator
from pricing import history, integrity, offers

USD_PER_KWH = 0.05  # assumed: cheap electricity
SPOT = "spot"


@dataclass(frozen=True, slots=True)
class Check:
    """One comparison of the claim's `value` with a `limit`."""

    status: str  # pass, warn, fail, info or not given
    sentence: str
    value: float | None = None
    limit: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices of one GPU-hour of an accelerator, in USD; `ever`: since the history begins."""

    accelerator: str
    num_offers: int
    low: float | None  # lowest list price today, without spot
    middle: float | None
    high: float | None
    spot_low: float | None
    ever_low: float | None
    ever_high: float | None
    ever_since: str
    snapshot: str
    newest: str


@cache
def prices_of(accelerator: str, snapshot_id: str) -> Prices:
    """Prices from bundled and refreshed offers and from the price history."""
    snapshot = offers.snapshot(snapshot_id)
    seen: dict[bool, list[float]] = {True: [], False: []}
    for o in snapshot.offers:
        if o.accelerator == accelerator and o.usd_per_hour:
            seen[o.purchase == SPOT].append(o.usd_per_hour / o.gpu_count)
    spells = [
        (s.usd_per_hour / sku.gpu_count, s.first_at.date().isoformat())
        for sku in history.known_skus(accelerator=accelerator)
        for s in history.history(sku).spells
    ]
    rented = seen[False]
    ever = [p for p, _ in spells] + rented + seen[True]
    return Prices(
        accelerator=accelerator,
        num_offers=len(rented) + len(seen[True]),
        low=min(rented, default=None),
        middle=median(rented) if rented else None,
        high=max(rented, default=None),
        spot_low=min(seen[True], default=None),
        ever_low=min(ever, default=None),
        ever_high=max(ever, default=None),
        ever_since=min((day for _, day in spells), default=""),
        snapshot=snapshot.id,
        newest=snapshot.newest,
    )


def dollars(x: float | None) -> str:
    """Dollars in full; with cents below a thousand.

    >>> dollars(460_800.0), dollars(684.193)
    ('$460,800', '$684.19')
    """
    return fmt.usd(x, digits=max(5, len(f"{x or 0:.0f}")))


def price_of(claim: Claim) -> float | None:
    """USD per GPU-hour, as given or as dollars over GPU-hours."""
    if claim.usd_per_gpu_hour is not None:
        return claim.usd_per_gpu_hour
    hours = claim.paid_gpu_hours
    return None if claim.usd is None or not hours else claim.usd / hours


def usd_of(claim: Claim) -> float | None:
    """Dollars of the run, as given or as GPU-hours times the price."""
    if claim.usd is not None:
        return claim.usd
    hours, price = claim.paid_gpu_hours, claim.usd_per_gpu_hour
    return None if price is None or hours is None else hours * price


def consistent_if(slips: tuple[Slip, ...]) -> str:
    """Sentences with up to two slips that would explain a mismatch."""
    return "".join(f" It would be consistent if {s.sentence}." for s in slips[:2])


def same_check(
    claimed: float, product: float, sentence: str, differs: str, usual: Iterable[Slip]
) -> Check:
    """Whether a claimed figure is within 2% of the `product` of the others. If it is not, the
    sentence ends with `differs`, written with the ratio, and the mistakes that would explain it."""
    ratio = claimed / product
    if abs(ratio - 1) <= SAME:
        return Check("pass", f"{sentence}.", value=claimed, limit=product)
    why = consistent_if(slips_of(ratio, usual))
    sentence += f"{differs.format(f'{ratio:.3g}')}.{why}"
    return Check("fail", sentence, value=claimed, limit=product)


def dollars_check(claim: Claim) -> Check:
    """Whether dollars are GPU-hours times price, within 2%."""
    hours, given, usd = claim.paid_gpu_hours, claim.usd_per_gpu_hour, claim.usd
    if hours is None or (usd is None and given is None):
        return Check(
            "not given", "No dollars are claimed: usd or usd_per_gpu_hour would be checked."
        )
    if usd is None or given is None:
        price, total = price_of(claim), usd_of(claim)
        text = f"{fmt.count(hours)} GPU-hours at {fmt.usd_per_hour(price)} are {dollars(total)}."
        return Check("info", text, value=total)
    product, node = hours * given, float(claim.chip.gpus_per_node)
    off = abs(usd / product - 1)
    return same_check(
        usd,
        product,
        f"{fmt.count(hours)} GPU-hours at {fmt.usd_per_hour(given)} are {dollars(product)}; "
        f"{dollars(usd)} is claimed" + (f", {fmt.percent(off)} off" if 0 < off <= SAME else ""),
        ": {} times as much",
        (
            Slip(1 / node, f"the price were of a node of {node:.0f} GPUs"),
            Slip(node, f"GPUs were counted as nodes of {node:.0f}"),
            Slip(1 / 24, "the price were of a day"),
            Slip(2.0, "the work were done twice, or paid both ways"),
        ),
    )


def price_check(claim: Claim) -> Check:
    """The price against offers, the price history and the cost of electricity alone."""
    price, chip = price_of(claim), claim.chip
    known = prices_of(chip.name, claim.scenario.prices)
    if price is None:
        text = f"No price follows from the claim. {_market(known)}".strip()
        return Check("not given", text)
    watts = chip.tdp_watts or 0.0
    floor = float(power_usd_per_gpu_hour(watts=watts, usd_per_kwh=USD_PER_KWH))
    if price < floor:
        return Check(
            "fail",
            f"{fmt.usd_per_hour(price)} for a GPU is less than its electricity alone: "
            f"{watts:,.0f} W at ${USD_PER_KWH:g} a kWh (assumed) are {fmt.usd_per_hour(floor)}.",
            value=price,
            limit=floor,
        )
    if known.ever_low is None or known.ever_high is None:
        text = f"No price of {chip.name} is known to compare with."
        return Check("info", text, value=price)
    return _against_market(chip, price, known, low=known.ever_low, high=known.ever_high)


def _against_market(
    chip: Accelerator, price: float, known: Prices, *, low: float, high: float
) -> Check:
    """The price against the lowest and the highest that were ever seen, and against today's."""
    committed = integrity.price_bands().get((chip.name, "committed"))
    node = float(chip.gpus_per_node)
    says = f"{fmt.usd_per_hour(price)} a GPU"
    if not low <= price <= high:
        side, limit, hint = ("below", low, "") if price < low else ("above", high, "")
        if price > high and low <= price / node <= high:
            hint = f" It would be consistent if it were the price of a node of {node:.0f} GPUs."
        elif price < low and low <= price * node <= high:
            hint = (
                f" It would be consistent if a price of a GPU had been divided by the {node:.0f} "
                "of a node."
            )
        outside = committed is not None and not committed[0] <= price <= committed[1]
        return Check(
            "fail" if outside else "warn",
            f"{says} is {side} every price of {chip.name} that was ever seen "
            f"here.{hint} {_market(known)}",
            value=price,
            limit=limit,
        )
    only_spot = known.low is not None and price < known.low
    place = "is within what was seen"
    if only_spot:
        place = "is below every offer of today's list but spot ones"
    elif known.middle is not None:
        place = f"is {price / known.middle:.2g} times the median of today's offers"
    return Check(
        "warn" if only_spot else "pass",
        f"{says} {place}. {_market(known)}",
        value=price,
        limit=known.middle,
    )


def _market(known: Prices) -> str:
    """Today's prices and past prices in words."""
    if known.ever_low is None:
        return ""
    now = (
        f"Offers of {known.accelerator} (snapshot {known.snapshot}, newest {known.newest}): "
        f"{fmt.usd_per_hour(known.low)} to {fmt.usd_per_hour(known.high)}, median "
        f"{fmt.usd_per_hour(known.middle)}"
        if known.low is not None
        else f"Seen of {known.accelerator}"
    )
    spot = f", spot from {fmt.usd_per_hour(known.spot_low)}" if known.spot_low is not None else ""
    since = f" since {known.ever_since}" if known.ever_since else ""
    return (
        f"{now}{spot}; ever seen{since}: {fmt.usd_per_hour(known.ever_low)} to "
        f"{fmt.usd_per_hour(known.ever_high)}."
    )
