"""Every name that the product lists as modelled changes the forecast.

hardware/modelled.csv gives each name a reference scenario and the setting that turns it on; the
forecast with the setting must differ from the one without, in the direction that it says.
"""

import math
from functools import cache

import pytest

from app.bill.bill import bill_of
from app.forecast import answer as forecast_answer
from app.forecast import resolve
from core.scenario import Scenario
from hardware.claims import modelled

OF_RUNS = ("later", "more kWh", "more carbon")
LEAST_CHANGE = 1e-4  # of the forecast: less is rounding


def forecast(fields):
    """Tokens/s and bytes of the first plan, or None where nothing fits; of no particular stack
    unless one is named, so that a name changes nothing else."""
    return _forecast(tuple(sorted({"stack": "generic", **fields}.items())))


@cache  # many names have one reference
def _forecast(fields):
    asked = resolve.resolve_strict(Scenario.parse(dict(fields)))
    found = forecast_answer.answer(asked, top=1)
    if not found.plans:
        return None
    return found.plans[0].tokens_per_s.p50, sum(found.plans[0].memory_bytes.values())


def changed(before, after):
    return any(
        not math.isclose(a, b, rel_tol=LEAST_CHANGE) for a, b in zip(before, after, strict=True)
    )


@pytest.mark.parametrize(
    "m",
    [m for m in modelled() if m.effect not in ("dollars", *OF_RUNS)],
    ids=lambda m: f"{m.group}: {m.name}",
)
def test_the_name_changes_the_forecast(m):
    before, after = forecast(m.reference_fields()), forecast(m.fields())
    assert after is not None, "nothing fits with the setting"
    if m.effect == "possible":
        assert before is None
        return
    assert before is not None, "nothing fits without the setting"
    assert changed(before, after)
    speed, memory = (b / a - 1 for a, b in zip(before, after, strict=True))
    by = {
        "faster": speed,
        "slower": -speed,
        "less memory": -memory,
        "more memory": memory,
        "differs": math.inf,
    }[m.effect]
    assert by > LEAST_CHANGE, f"tokens/s {speed:+.2%}, memory {memory:+.2%}"


@pytest.mark.parametrize(
    "m", [m for m in modelled() if m.effect == "dollars"], ids=lambda m: m.name
)
def test_the_name_changes_the_dollars(m):
    def dollars(fields):
        found = forecast_answer.answer(resolve.resolve_strict(Scenario.parse(fields)), top=100_000)
        return found, [p.usd.p50 for p in found.plans if p.usd is not None]

    (_, before), (found, after) = dollars(m.reference_fields()), dollars(m.fields())
    assert after
    assert before != after
    wanted = m.fields()
    for plan in found.plans:
        assert plan.offer.provider == wanted.get("cloud", plan.offer.provider)
        if "purchase" in dict(p.split("=") for p in m.setting.split("&")):
            assert plan.offer.purchase == wanted["purchase"]


@pytest.mark.parametrize("m", [m for m in modelled() if m.effect in OF_RUNS], ids=lambda m: m.name)
def test_the_name_changes_the_run(m):
    def run(fields):
        scenario = resolve.resolve_strict(Scenario.parse(fields))
        plan = forecast_answer.answer(scenario, top=1).plans[0]
        energy = bill_of(scenario, plan).energy
        return {
            "later": plan.expected_hours,
            "more kWh": energy.total.mean,
            "more carbon": energy.carbon.figure.mean,
        }[m.effect]

    assert run(m.fields()) > (1 + LEAST_CHANGE) * run(m.reference_fields())
