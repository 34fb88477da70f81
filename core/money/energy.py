"""Energy of a run at the plug and at the meter, and its CO2 emissions.

[BHR18] Barroso, Hölzle and Ranganathan, "The Datacenter as a Computer", 3rd edition, 2018,
chapter 5: energy at the meter is that of the machines times the power usage effectiveness (PUE).
[P21] Patterson et al., "Carbon Emissions and Large Neural Network Training", arXiv:2104.10350,
section 2: CO2e is energy at the meter times what the grid emits a kilowatt-hour.
"""

from __future__ import annotations

from core.numeric import Numeric


def rated_watts_per_gpu(
    *, gpu_watts: Numeric, full_gpu_watts: Numeric, host_over_gpu: Numeric
) -> Numeric:
    """Rated power of a machine, per accelerator: the limit of the accelerator, and a share of the
    host, which a power limit of the accelerator does not lower.

    >>> rated_watts_per_gpu(gpu_watts=500.0, full_gpu_watts=700.0, host_over_gpu=0.5)
    850.0
    """
    return gpu_watts + host_over_gpu * full_gpu_watts


def building_kwh(*, drawn_kwh: Numeric, pue: Numeric) -> Numeric:
    """Kilowatt-hours that cooling and losses of the building add to those at the plug. [BHR18]

    >>> building_kwh(drawn_kwh=100.0, pue=1.25)
    25.0
    """
    return drawn_kwh * (pue - 1)


def carbon_kg(*, kwh: Numeric, g_co2e_per_kwh: Numeric) -> Numeric:
    """Kilograms of CO2 equivalent that the grid emits for this energy. [P21]

    >>> carbon_kg(kwh=1000.0, g_co2e_per_kwh=400.0)
    400.0
    """
    return kwh * g_co2e_per_kwh / 1000
