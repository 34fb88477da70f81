"""Software by its date: which features a stack has, and how fast its kernels are."""

from __future__ import annotations

import numpy as np

from core.numeric import Numeric

MEASURED_YEARS = (2021.0, 2026.7)  # years of the software of published runs: no trend beyond them


def decimal_year(date: str) -> float:
    """Decimal year of YYYY-MM, YYYY (its middle) or a range (its beginning); for '' the newest
    measured.

    >>> decimal_year("2024-07")
    2024.5416666666667
    """
    year, month = date[:4], date[5:7]
    if not year.isdigit():
        return MEASURED_YEARS[1]
    known = month.isdigit() and 1 <= int(month) <= 12  # not a range of years
    return float(year) + ((float(month) - 0.5) / 12 if known else 0.5)


def is_since(software_year: Numeric, since: str) -> Numeric:
    """Whether software of that year has a feature that stacks have `since` a date, 'always' or
    never ('').

    >>> bool(is_since(2022.5, "2023-01")), bool(is_since(2022.5, "always"))
    (False, True)
    """
    if since in ("", "always"):
        return np.full_like(np.asarray(software_year, dtype=float), since == "always", dtype=bool)
    return np.asarray(software_year) >= decimal_year(since)


def software_factor(software_year: Numeric, per_year: Numeric) -> Numeric:
    """Speed of the kernels of this year over those of 2024, the middle of the measurements."""
    return np.exp(per_year * (np.clip(software_year, *MEASURED_YEARS) - 2024.0))
