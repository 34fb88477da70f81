"""Numbers for people. The one place where a number in core's unit becomes text.

Every function takes a number in core's unit (seconds, bytes, USD, a fraction) and returns plain
text with its unit. A missing, infinite or NaN value reads as a dash. Three significant digits
unless a function says otherwise: a forecast is no more precise.

The text is plain: a dollar sign is a dollar sign. Code that writes it into Markdown escapes it.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable

from core.layout.sharding import STRATEGIES
from core.search.plan import Layout
from core.units import GIB, TO_SI

MISSING = "\N{EN DASH}"
DIGITS = 3
MOST_DIGITS = 6  # of two figures shown together with their difference
# Schedules that are named; the usual ones, plain and interleaved 1F1B, follow from the stages.
SCHEDULES = {"naive": "naive", "gpipe": "GPipe", "zero_bubble": "zero bubble"}
GATHERING = frozenset(s.name for s in STRATEGIES if s.shards_parameters)

_DAY_H = 24.0
_DECIMAL = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))
_DATED = re.compile(r"(\d{4})(?:-(\d{2}))?(?:-(\d{2}))?(?!\d)")
NOTHING_USD = 1e-6
SURE = 1e-9  # a probability that is nearer to 0 or 1 is not told from this one


def _finite(x: float | None) -> float | None:
    """The number, or None if it is missing or not finite."""
    return float(x) if x is not None and math.isfinite(x) else None


def _rounded(x: float, digits: int) -> float:
    """The nearest number with that many significant digits; never negative zero."""
    return float(f"{x:.{digits - 1}e}") + 0.0 if x else 0.0


def _plain(x: float, digits: int = DIGITS) -> str:
    """Significant digits without an exponent, with thousands separators: 0.0412, 4.12, 41.2, 4,120.

    >>> _plain(0.04123), _plain(41.0), _plain(4123.0), _plain(9.999)
    ('0.0412', '41', '4,120', '10')
    """
    value = _rounded(x, digits)
    if not value:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _scaled(x: float, digits: int = DIGITS) -> str:
    """A number with a decimal suffix: 950, 8.03B, 15T.

    >>> _scaled(15e12), _scaled(999_999.0), _scaled(950.0)
    ('15T', '1M', '950')
    """
    value = _rounded(x, digits)
    for size, suffix in _DECIMAL:
        if abs(value) >= size:
            return _plain(value / size, digits) + suffix
    return _plain(value, digits)


def _dollars_of(x: float | None) -> float | None:
    """The number, or None; 0 if it is as small as the rounding error of a sum."""
    value = _finite(x)
    return 0.0 if value is not None and abs(value) < NOTHING_USD else value


def _dollars(x: float, text: str) -> str:
    return f"-${text.removeprefix('-')}" if x < 0 and text != "0" else f"${text}"


def usd(x: float | None, digits: int = 4) -> str:
    """Dollars in full: $108,400; cents below a hundred.

    >>> usd(108_412.0), usd(12_412.0, digits=3), usd(9.5), usd(8.6e-13)
    ('$108,400', '$12,400', '$9.50', '$0')
    """
    value = _dollars_of(x)
    if value is None:
        return MISSING
    cents = 0.01 <= abs(value) < 99.995
    return _dollars(value, f"{value:.2f}" if cents else _plain(value, max(digits, 3)))


def usd_short(x: float | None) -> str:
    """Dollars for a narrow place: $950, $10.9k, $108k, $1.2M.

    >>> usd_short(10_912.0), usd_short(1.2e6), usd_short(-2500.0)
    ('$10.9k', '$1.2M', '-$2.5k')
    """
    value = _dollars_of(x)
    return MISSING if value is None else _dollars(value, _scaled(value))


def usd_per_hour(x: float | None) -> str:
    """A price as sellers print it, to the cent: $2.90/h.

    >>> usd_per_hour(2.9), usd_per_hour(0.004), usd_per_hour(1234.5)
    ('$2.90/h', '$0.004/h', '$1,234.50/h')
    """
    value = _finite(x)
    if value is None:
        return MISSING
    text = f"{abs(value):,.2f}" if abs(value) >= 0.01 else _plain(abs(value))
    return _dollars(value, text if value >= 0 else f"-{text}") + "/h"


def hours(h: float | None) -> str:
    """Hours, always in hours: 5.3 h, 4,960 h.

    >>> hours(4964.2), hours(0.25)
    ('4,960 h', '0.25 h')
    """
    value = _finite(h)
    return MISSING if value is None else f"{_plain(value)} h"


def days(h: float | None) -> str:
    """A duration given in HOURS, in a suitable unit: 16.2 days, 5.3 h, 12 min, 40 s.

    >>> days(388.8), days(5.3), days(0.2), days(0.01)
    ('16.2 days', '5.3 h', '12 min', '36 s')
    """
    value = _finite(h)
    if value is None:
        return MISSING
    if abs(value) >= 2 * _DAY_H:
        return f"{_plain(value / _DAY_H)} days"
    if abs(value) >= 1:
        return f"{_plain(value)} h"
    if abs(value) >= 1 / 60:
        return f"{_plain(value * 60, 2)} min"
    return f"{_plain(value * 3600, 2)} s"


def count(n: float | None) -> str:
    """A whole number with all its digits: 1,024.

    >>> count(1024), count(-0.2)
    ('1,024', '0')
    """
    value = _finite(n)
    return MISSING if value is None else f"{round(value):,}"


def tokens(n: float | None) -> str:
    """Tokens, parameters or FLOPs with a decimal suffix: 15T, 100B, 8.03B, 4.2M.

    >>> tokens(15e12), tokens(8_030_261_248)
    ('15T', '8.03B')
    """
    value = _finite(n)
    return MISSING if value is None else _scaled(value)


def tokens_per_s(x: float | None) -> str:
    """Throughput: 412k tokens/s.

    >>> tokens_per_s(412_345.0), tokens_per_s(950.4)
    ('412k tokens/s', '950 tokens/s')
    """
    value = _finite(x)
    return MISSING if value is None else f"{_scaled(value)} tokens/s"


def gib(x_bytes: float | None) -> str:
    """Bytes as GiB: 62.3 GiB.

    >>> gib(62.31 * 2**30), gib(0)
    ('62.3 GiB', '0 GiB')
    """
    value = _finite(x_bytes)
    return MISSING if value is None else f"{_plain(value / GIB)} GiB"


def in_unit(x: float | None, unit: str) -> str:
    """A number in SI units converted to a printed unit, without the unit, for column heads.

    >>> in_unit(989.4e12, "TFLOP/s"), in_unit(50e9, "Gbit/s")
    ('989', '400')
    """
    value = _finite(x)
    return MISSING if value is None else _plain(value / TO_SI[unit])


def span(low: float, high: float, write: Callable[[float], str]) -> str:
    """Two numbers as a range, a unit that both have once.

    >>> span(2.37, 3.58, days), span(20.0, 60.0, days), span(6e3, 9.66e3, usd_short)
    ('2.37-3.58 h', '20 h-2.5 days', '$6k-$9.66k')
    """
    first, last = write(low), write(high)
    unit = first.rpartition(" ")[2]
    return f"{first.removesuffix(f' {unit}') if last.endswith(f' {unit}') else first}-{last}"


def percent(fraction: float | None) -> str:
    """A fraction as a percentage: 41.2%. What is not all of something does not round to 100%.

    >>> percent(0.41234), percent(1.0), percent(0.00004), percent(0.99951), percent(0.99996)
    ('41.2%', '100%', '<0.01%', '99.95%', '>99.99%')
    """
    value = _finite(fraction)
    if value is None:
        return MISSING
    if 0 < value < 1e-4:
        return "<0.01%"
    if 1 - 5e-4 <= value < 1:
        return f"{value * 100:.2f}%" if value < 1 - 5e-5 else ">99.99%"
    return f"{_plain(value * 100) if abs(value) >= 0.01 else _plain(value * 100, 2)}%"


def chance(probability: float | None) -> str:
    """A probability that a model worked out: never 0% or 100%, of which no model is sure.

    >>> chance(0.41234), chance(0.0), chance(1.0)
    ('41.2%', '<0.01%', '>99.99%')
    """
    value = _finite(probability)
    return MISSING if value is None else percent(min(max(value, SURE), 1 - SURE))


def seconds(s: float | None, digits: int = DIGITS) -> str:
    """Seconds of a step or of part of a step: 2.31 s, 412 ms, 35 µs.

    >>> seconds(2.314), seconds(0.4123), seconds(3.5e-5), seconds(0.0)
    ('2.31 s', '412 ms', '35 µs', '0 s')
    """
    value = _finite(s)
    if value is None:
        return MISSING
    rounded = abs(_rounded(value, digits))
    if rounded >= 1 or rounded == 0:
        return f"{_plain(value, digits)} s"
    if rounded >= 1e-3:
        return f"{_plain(value * 1e3, digits)} ms"
    return f"{_plain(value * 1e6, digits)} µs"


def seconds_from_to(first_s: float, second_s: float) -> str:
    """Two times with enough digits to show their difference; '' if that takes too many.

    >>> seconds_from_to(15.6012, 15.6096), seconds_from_to(2.0, 2.5)
    ('15.601 s to 15.61 s', '2 s to 2.5 s')
    >>> seconds_from_to(15.6, 15.6)
    ''
    """
    between = abs(second_s - first_s)
    if not 0 < between < math.inf:
        return ""
    largest = max(abs(first_s), abs(second_s))
    needed = math.floor(math.log10(largest)) - math.floor(math.log10(between)) + 1
    digits = max(DIGITS, needed)
    if digits > MOST_DIGITS:
        return ""
    return f"{seconds(first_s, digits)} to {seconds(second_s, digits)}"


def _stay_gathered(layout: Layout) -> bool:
    """Whether a strategy that gathers weights keeps them until the backward pass."""
    return not layout.reshard_after_forward and layout.sharding in GATHERING


def _away(layout: Layout) -> tuple[str, str] | None:
    """What is kept off the device, and where."""
    places = {layout.offload_optimizer, layout.offload_params} - {"none"}
    if not places:
        return None
    both = "none" not in (layout.offload_optimizer, layout.offload_params)
    what = "optimizer" if layout.offload_optimizer != "none" else "weights"
    return ("optimizer and weights" if both else what), ("NVMe" if "nvme" in places else "the host")


def _degrees(layout: Layout) -> list[str]:
    """Degrees above 1: TP8, PP4 (2 virtual stages), CP2, EP8, DP16 or DP2x8."""
    out = [f"TP{layout.tp}"] if layout.tp > 1 else []
    if layout.pp > 1:
        how = [f"{layout.virtual_stages} virtual stages"] if layout.virtual_stages > 1 else []
        how += [SCHEDULES[layout.schedule]] if layout.schedule in SCHEDULES else []
        out.append(f"PP{layout.pp}" + (f" ({', '.join(how)})" if how else ""))
    if layout.cp > 1:
        out.append(f"CP{layout.cp} ({layout.context_parallel.replace('_', '-')})")
    out += [f"EP{layout.ep}"] if layout.ep > 1 else []
    if (dp := layout.dp_replicate * layout.dp_shard) > 1:
        both = layout.dp_replicate > 1 and layout.dp_shard > 1
        out.append(f"DP{layout.dp_replicate}x{layout.dp_shard}" if both else f"DP{dp}")
    return out


def layout(chosen: Layout) -> str:
    """A layout in full: TP8 · PP4 · DP16 (fsdp2) · micro-batch 1 · full recompute.

    One GPU has no degrees and no sharding, so only micro-batch and recompute are given.
    """
    degrees = _degrees(chosen)
    if degrees and degrees[-1].startswith("DP"):
        stays = ", weights stay gathered" if _stay_gathered(chosen) else ""
        degrees[-1] += f" ({chosen.sharding}{stays})"
    recompute = "no" if chosen.recompute == "none" else chosen.recompute
    words = [*degrees, f"micro-batch {chosen.micro_batch_size}", f"{recompute} recompute"]
    if away := _away(chosen):
        words.append(f"{away[0]} on {away[1]}")
    return " · ".join(words)


def layout_short(chosen: Layout) -> str:
    """A layout for a table cell: TP8 PP4 DP16 fsdp2 mb1 full."""
    degrees = _degrees(chosen)
    if degrees and degrees[-1].startswith("DP"):
        degrees[-1] += f" {chosen.sharding}{' gathered' if _stay_gathered(chosen) else ''}"
    shorter = {"none": [], "selective": ["sel."]}
    recompute = shorter.get(chosen.recompute, [chosen.recompute])
    away = ["offload"] if _away(chosen) else []
    words = [*degrees, f"mb{chosen.micro_batch_size}", *recompute, *away]
    return " ".join(words).replace(" virtual stages", "v")


def age_days(observed_at: str, today: dt.date) -> int | None:
    """Days since an ISO date, month or year (counted from its first day); None if undated.

    >>> age_days("2026-08", dt.date(2026, 8, 31)), age_days("spring", dt.date(2026, 8, 31))
    (30, None)
    """
    match = _DATED.match(observed_at.strip())
    if match is None:
        return None
    try:
        seen = dt.date(int(match[1]), int(match[2] or 1), int(match[3] or 1))
    except ValueError:
        return None
    return (today - seen).days


def age(observed_at: str, today: dt.date) -> str:
    """How old an observation is: 3 days old, 4 months old, 2 years old.

    >>> age("2026-08-21", dt.date(2026, 12, 21)), age("2026-08-21", dt.date(2026, 8, 24))
    ('4 months old', '3 days old')
    """
    if (n := age_days(observed_at, today)) is None:
        return "of unknown age"
    if n < 0:
        return f"dated {observed_at.strip()}"
    if n == 0:
        return "of today"
    if n < 60:
        return "1 day old" if n == 1 else f"{n} days old"
    if (months := round(n / 30.44)) < 24:
        return f"{months} months old"
    return f"{_plain(n / 365.25, 2)} years old"
