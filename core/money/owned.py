"""Cost of a GPU-hour for the owner of the GPU.

[BHR18] Barroso, Hölzle and Ranganathan, "The Datacenter as a Computer", 3rd edition, 2018, chapter
6: total cost of ownership is capital, depreciated in a straight line over the lifetime, plus
operation; the power bill is the mean draw of the machines times PUE times the price of a
kilowatt-hour, and an idle machine costs as much as a busy one, so that the cost per used hour is
divided by utilisation.
"""

from __future__ import annotations

from core.numeric import Numeric

YEAR_H = 8760.0


def depreciation_usd_per_year(
    *, capex_usd: Numeric, residual_fraction: Numeric, depreciation_years: Numeric
) -> Numeric:
    """Straight-line depreciation of the cluster in a year. [BHR18, section 6.1]

    >>> depreciation_usd_per_year(capex_usd=1000.0, residual_fraction=0.2, depreciation_years=4.0)
    200.0
    """
    return capex_usd * (1 - residual_fraction) / depreciation_years


def energy_usd_per_year(*, power_kw: Numeric, pue: Numeric, usd_per_kwh: Numeric) -> Numeric:
    """The power bill: `power_kw` is the mean draw of the machines over the year, at their plugs;
    cooling and losses are in the PUE. [BHR18, section 6.2]

    >>> energy_usd_per_year(power_kw=10.0, pue=1.25, usd_per_kwh=0.1)
    10950.0
    """
    return power_kw * pue * usd_per_kwh * YEAR_H


def owned_usd_per_gpu_hour(
    *,
    num_gpus: Numeric,
    capex_usd: Numeric,
    residual_fraction: Numeric,
    depreciation_years: Numeric,
    power_kw: Numeric,
    pue: Numeric,
    usd_per_kwh: Numeric,
    staff_usd_per_year: Numeric,
    other_usd_per_year: Numeric,
    utilisation: Numeric,
) -> Numeric:
    """Dollars per GPU-hour that is used: all costs of a year over the GPU-hours used in it.

    [BHR18]. Valid for a steady year inside the lifetime; interest on the capital is left out,
    unless it is given as one of the other yearly costs.

    >>> round(owned_usd_per_gpu_hour(num_gpus=8.0, capex_usd=280_320.0, residual_fraction=0.0,
    ...     depreciation_years=4.0, power_kw=10.0, pue=1.0, usd_per_kwh=0.08,
    ...     staff_usd_per_year=0.0, other_usd_per_year=0.0, utilisation=0.5), 9)
    2.2
    """
    yearly = (
        depreciation_usd_per_year(
            capex_usd=capex_usd,
            residual_fraction=residual_fraction,
            depreciation_years=depreciation_years,
        )
        + energy_usd_per_year(power_kw=power_kw, pue=pue, usd_per_kwh=usd_per_kwh)
        + staff_usd_per_year
        + other_usd_per_year
    )
    return yearly / (num_gpus * YEAR_H * utilisation)
