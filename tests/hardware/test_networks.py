"""The network of an offer: its own row, its product, the usual one, or none."""

from __future__ import annotations

import pytest

from core.errors import FactError
from hardware import cluster_products, facts, slices
from hardware.networks import network_of
from tests.made_up.plans import offer
from tests.support.csv_tables import refusal

HEADER = (
    "provider,product,instance_pattern,accelerators,gpus_per_machine,scale_out_gbit_per_s,fabric,"
    "clustered,priced,most_machines_on_demand,source,source_date,note"
)
GOOD = "acme,Pods,^pod-,H100-80GB-SXM,8,3200,infiniband,yes,listed,16,a page,2026-08,"


def of(**changes):
    given = offer(**{"scale_out_gbit_per_s": None, **changes})
    is_private = given.source.startswith("price book")
    return network_of(given, facts.accelerator(given.accelerator), is_private=is_private)


def test_the_offer_s_own_row_wins_and_a_contradiction_is_named():
    known = of(instance_type="p5.48xlarge", scale_out_gbit_per_s=3200.0)
    assert (known.basis, known.gbit_per_s, known.conflict) == ("offer", 3200.0, "")
    assert known.source.ref == "a price list"
    other = of(instance_type="p5.48xlarge", scale_out_gbit_per_s=800.0)
    assert other.gbit_per_s == 800.0
    assert "100 Gbit/s a GPU" in other.conflict
    assert "documented with 400" in other.conflict


@pytest.mark.parametrize(
    ("changes", "basis", "per_machine", "gbit", "is_known"),
    [
        ({"instance_type": "p5.48xlarge"}, "product", 8, 3200, True),
        ({"provider": "coreweave", "instance_type": "coreweave-h100-sxm-classic", "gpu_count": 1},
         "product", 8, 3200, True),
        ({"provider": "crusoe", "instance_type": "H100-SXM-80GB", "gpu_count": 1},
         "product", 8, 3200, False),  # the rate of a port is that of the design
        ({"provider": "together", "instance_type": "anything"}, "product", 8, 3200, False),
        ({"provider": "gcp", "instance_type": "TPU v6e (1 chip)", "accelerator": "TPU-v6e",
          "gpu_count": 1}, "product", 8, 200, True),
        ({"provider": "lambda", "instance_type": "gpu_8x_h100_sxm5"}, "none", 8, None, False),
        ({"provider": "runpod", "instance_type": "runpod-h100-sxm-secure", "gpu_count": 1},
         "none", 8, None, False),
        ({"provider": "runpod", "instance_type": "NVIDIA H100 80GB HBM3 cluster"},
         "product", 8, 3200, True),
        ({"provider": "coreweave", "instance_type": "HGX-B200", "accelerator": "B200-180GB"},
         "usual", 8, 3200, False),  # a cluster whose rate is not printed
        ({"provider": "nobody", "instance_type": "8x", "gpu_count": 8}, "none", 8, None, False),
        ({"provider": "acme", "source": "price book x"}, "usual", 8, 3200, False),
        ({"provider": "acme", "source": "price book x", "accelerator": "RTX4090"},
         "none", 8, None, False),
    ],
)  # fmt: skip
def test_what_joins_the_machines_of_an_offer(changes, basis, per_machine, gbit, is_known):
    found = of(**changes)
    assert (found.basis, found.gpus_per_machine, found.is_known) == (basis, per_machine, is_known)
    assert found.gbit_per_s == (None if gbit is None else pytest.approx(gbit))
    assert bool(found.source.ref) == (basis != "none" or changes["provider"] in LISTED)


LISTED = ("lambda", "runpod")


def test_a_cluster_that_is_sold_apart_is_named():
    found = of(provider="lambda", instance_type="gpu_8x_h100_sxm5")
    assert (found.product, found.apart) == ("On-demand instances", "1-Click Cluster")


def test_every_shipped_product_is_sourced_and_slower_than_the_link_inside_its_machines():
    for p in cluster_products.products():
        assert p.source.ref
        for name in p.accelerators:
            gpu = facts.accelerator(name)
            if p.scale_out_gbit_per_s and p.gpus_per_machine:
                per_gpu = p.scale_out_gbit_per_s / p.gpus_per_machine * 1e9 / 8
                assert per_gpu < gpu.scale_up_bytes_per_s


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (GOOD.replace("a page", ""), "acme Pods has no source"),
        (GOOD.replace("infiniband", "pigeon"), "fabric 'pigeon' is not one of"),
        (GOOD.replace("listed", "sold"), "priced is 'sold', not listed or apart"),
        (GOOD.replace("3200", "0"), "scale_out_gbit_per_s is '0', not a number above 0"),
        (GOOD.replace(",16,", ",1.5,"), "most_machines_on_demand is '1.5', not a whole number"),
        (GOOD.replace("^pod-", "^pod-("), "cluster_products.csv:2: "),
        (GOOD.replace("H100-80GB-SXM", "H100-80GB-SXN"), "Did you mean 'H100-80GB-SXM'"),
    ],
)
def test_a_bad_product_is_refused(tmp_path, row, says):
    path = tmp_path / "cluster_products.csv"
    said = refusal(cluster_products.load_products, path, f"{HEADER}\n{row}\n")
    assert "cluster_products.csv:2" in said
    assert says in said


@pytest.mark.parametrize(
    ("gpu", "chips", "per_host", "slice_"),
    [
        ("TPU-v6e", 256, 8, 256),
        ("TPU-v6e", 1, 8, 1),
        ("TPU-v6e", 512, 8, 256),
        ("TPU-v6e", 96, 8, 32),
        ("TPU-v6e", 6, 8, None),
        ("TPU-v6e", 12, 8, None),
        ("TPU-v5p", 6144, 4, 6144),
        ("TPU-v5p", 12288, 4, 6144),
        ("TPU-v5p", 2, 4, None),
    ],
)
def test_chips_are_rented_in_slices(gpu, chips, per_host, slice_):
    assert slices.slice_chips(gpu, chips, per_host) == slice_


def test_a_shape_has_as_many_chips_as_its_row_says(tmp_path):
    table = tmp_path / "slices.csv"
    table.write_text("accelerator,chips,shape,source,source_date,note\nTPU-v6e,15,4x4,x,2025,\n")
    with pytest.raises(FactError, match="4x4 has 16 chips, not '15'"):
        slices.load_slices(table)
