"""What sellers have, start in and bill at least: the table refuses what it cannot vouch for."""

from __future__ import annotations

import math
from typing import get_args

import pytest

from core.errors import FactError
from core.machine.offer import Purchase
from hardware import supply
from tests.made_up.plans import offer

HEADER = ",".join(supply._COLUMNS)
SHIPPED = supply.SUPPLY_CSV.read_text(encoding="utf-8")


def of(per_machine=8, **about):
    return supply.supply_of(offer(**about), gpus_per_machine=per_machine)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("aws,on_demand,,most_gpus,64,documented,,2026,x", "has no source"),
        ("aws,on_demand,,most_gpus,64,documented,a page,soon,x", "source date 'soon'"),
        ("aws,on_demand,,most_cards,64,documented,a page,2026,x", "'most_cards' is not one of"),
        ("aws,on_demand,,most_gpus,many,documented,a page,2026,x", "'many', not a number"),
        ("aws,on_demand,,startup_minutes,none,usual,a page,2026,x", "'none', not a number"),
        ("aws,on_demand,,most_gpus,-1,documented,a page,2026,x", "'-1', not a number"),
        ("aws,on_demand,,most_gpus,64,heard,a page,2026,x", "'heard', not documented or usual"),
        ("aws,rented,,most_gpus,64,documented,a page,2026,x", "'rented' is not one of on_demand"),
        ("aws,on_demand,(,most_gpus,64,documented,a page,2026,x", "supply.csv:"),
        (",on_demand,,most_gpus,64,documented,a page,2026,x", "sellers is blank"),
    ],
)
def test_a_row_that_nothing_vouches_for_is_refused(tmp_path, row, says):
    table = tmp_path / "supply.csv"
    table.write_text(f"{SHIPPED}{row}\n", encoding="utf-8")
    with pytest.raises(FactError, match=r"supply\.csv:") as refused:
        supply.load_supply(table)
    assert says in str(refused.value)


def test_a_kind_of_purchase_without_a_bound_of_any_seller_is_refused(tmp_path):
    table = tmp_path / "supply.csv"
    kept = [line for line in SHIPPED.splitlines() if not line.startswith("*,spot,")]
    table.write_text("\n".join(kept) + "\n", encoding="utf-8")
    with pytest.raises(FactError, match="most_gpus or most_machines of any seller for spot"):
        supply.load_supply(table)


@pytest.mark.parametrize("purchase", get_args(Purchase))
def test_an_unknown_seller_has_the_usual_supply_of_its_kind_marked_as_assumed(purchase):
    found = of(provider="acme", instance_type="a1", purchase=purchase)
    assert found.bound.assumed
    assert found.bound.ref
    assert math.isinf(found.most_gpus) == (purchase in ("reserved_1y", "reserved_3y", "owned"))


@pytest.mark.parametrize(
    ("about", "most", "assumed"),
    [
        # A block of 64 machines; a marketplace: one machine; a cluster as its product's page says.
        ({"provider": "aws", "purchase": "capacity_block"}, 512, False),
        ({"provider": "akash", "instance_type": "h100"}, 8, True),
        ({"provider": "lambda", "instance_type": "1-Click Cluster"}, 512, False),
        ({"provider": "lambda", "instance_type": "gpu_8x_h100_sxm5"}, 8, False),
        ({"provider": "runpod", "instance_type": "runpod-h100-sxm-cluster"}, 64, False),
        ({"provider": "gcp", "instance_type": "a4-highgpu-8g"}, 0, False),
        ({"provider": "gcp", "instance_type": "a3-highgpu-8g"}, 512, True),
        ({"provider": "aws", "purchase": "spot"}, 128, True),
    ],
)  # fmt: skip
def test_the_bound_of_a_product_is_what_its_source_says(about, most, assumed):
    found = of(**about)
    assert (found.most_gpus, found.bound.assumed) == (most, assumed)


def test_one_machine_is_within_every_bound():
    assert of(per_machine=72, provider="acme", purchase="spot").most_gpus == 72


def test_the_least_that_is_billed_is_the_longer_one_of_minimum_and_term():
    hours = {
        "aws": 1 / 60, "runpod": 0.0, "acme": 1.0,
    }  # fmt: skip
    assert {p: of(provider=p).least_billed_hours for p in hours} == pytest.approx(hours)
    assert of(purchase="capacity_block").least_billed_hours == 24
    assert of(provider="oci", instance_type="BM.GPU.H100.8").least_billed_hours == 1
    weeks = of(provider="lambda", instance_type="1-Click Cluster").least_billed_hours
    assert weeks == 14 * 24
