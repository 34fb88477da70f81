"""What an offer rents: machines, their network, slices, and how far a job may reach."""

from __future__ import annotations

from math import log

import pytest

from app.forecast.answer import answer
from app.forecast.choice import choice_of
from app.forecast.resolve import resolve_strict
from core.numeric import Z_90
from core.scenario import Scenario
from hardware.efficiency import efficiency
from tests.made_up.plans import SUMMER_2026

RUN = {"num_tokens": "15e9", "seq_len": "8192"}


def best(**asked):
    found = answer(resolve_strict(Scenario.parse({**RUN, **asked})), top=200)
    return found, found.plans[0] if found.plans else None


@pytest.mark.parametrize("cloud", ["coreweave", "crusoe", "nebius"])
def test_64_h100_of_a_cluster_reach_what_such_clusters_reach(cloud):
    _, plan = best(model="llama3.1-70b", gpu="H100-80GB-SXM", num_gpus="64", cloud=cloud,
                   global_batch_size="512", stack="generic")  # fmt: skip
    assert 0.35 < plan.mfu < 0.50
    assert plan.network.gbit_per_s == 3200
    assert plan.network.source


def test_one_gpu_without_the_precision_does_not_hide_that_the_others_are_no_cluster():
    """A marketplace of many kinds of single machines, among them one V100, which has no bf16."""
    found, plan = best(model="llama3.1-70b", num_gpus="256", cloud="vast", global_batch_size="512")
    assert plan is None
    assert {e.reason for e in found.excluded} >= {"not_a_cluster"}
    assert "not sold as a cluster" in found.nothing_fits
    assert "matrix units" not in found.nothing_fits
    old = best(model="llama3.1-8b", gpu="v100-16gb", num_gpus="8", global_batch_size="512")[0]
    assert "matrix units" in old.nothing_fits


def test_single_machines_are_no_cluster_and_it_is_counted():
    found, plan = best(model="llama3.1-70b", gpu="H100-80GB-SXM", num_gpus="64", cloud="lambda",
                       global_batch_size="512")  # fmt: skip
    assert plan is None
    assert {e.reason for e in found.excluded} >= {"not_a_cluster"}
    assert "not sold as a cluster" in found.nothing_fits
    given = {"network_gbit_per_gpu": "400"}  # the user knows better
    _, plan = best(model="llama3.1-70b", gpu="H100-80GB-SXM", num_gpus="64", cloud="lambda",
                   global_batch_size="512", **given)  # fmt: skip
    assert plan.network.basis == "given"
    assert not plan.network.is_assumed


@pytest.mark.parametrize(
    ("model", "gpu", "num_gpus", "batch", "published", "least", "most"),
    [
        # AI-Hypercomputer/tpu-recipes, training/trillium and training/v5p
        ("llama3.1-8b", "TPU-v6e", 256, 1024, 7207, 0.75, 1.25),
        ("llama3.1-70b", "TPU-v6e", 256, 1280, 960, 0.5, 1.5),
        # aws-neuron: above 500 is what the chip's own page implies
        ("llama3.1-70b", "Trn2", 64, 512, 734, 0.68, 1.5),
    ],
)
def test_accelerators_with_links_of_their_own_reach_what_is_published(
    model, gpu, num_gpus, batch, published, least, most
):
    _, plan = best(model=model, gpu=gpu, num_gpus=str(num_gpus), global_batch_size=str(batch))
    assert least < plan.tokens_per_s_per_gpu / published < most


def test_chips_are_rented_in_slices_and_slices_are_joined_by_the_slower_network():
    asked = {"model": "llama3.1-8b", "gpu": "TPU-v6e"}
    found, plan = best(**asked, num_gpus="12", global_batch_size="24")
    assert plan is None
    assert {e.reason for e in found.excluded} >= {"slice"}
    _, one = best(**asked, num_gpus="256", global_batch_size="1024")
    _, two = best(**asked, num_gpus="512", global_batch_size="2048")
    assert two.tokens_per_s_per_gpu < one.tokens_per_s_per_gpu
    assert (one.num_nodes, one.offer.gpu_count) == (32, 8)


def test_a_price_of_one_gpu_rents_whole_machines_at_as_many_times_that():
    asked = {"model": "llama3.1-8b", "gpu": "H100-80GB-SXM", "cloud": "coreweave",
             "prices": SUMMER_2026}  # fmt: skip
    _, few = best(**asked, num_gpus="4", global_batch_size="64")
    _, many = best(**asked, num_gpus="16", global_batch_size="64")
    assert (few.num_nodes, few.offer.gpu_count) == (1, 4)
    assert (many.num_nodes, many.offer.gpu_count) == (2, 8)
    assert many.offer.usd_per_hour == pytest.approx(2 * few.offer.usd_per_hour)
    assert few.usd_per_gpu_hour == pytest.approx(many.usd_per_gpu_hour)
    assert few.id.endswith("~1~4")  # the id is of the offer as it is listed
    assert many.id.endswith("~1~16")


def test_an_assumed_network_is_wider_and_shows_half_of_it():
    asked = {"model": "llama3.1-70b", "num_gpus": "64", "global_batch_size": "512"}
    _, known = best(**asked, gpu="H100-80GB-SXM", cloud="coreweave")
    _, assumed = best(**asked, gpu="H100-80GB-SXM", cloud="crusoe")
    width = [p.tokens_per_s.p90 / p.tokens_per_s.p10 for p in (known, assumed)]
    assert width[0] < width[1]
    assert known.at_half_network is None
    half = assumed.at_half_network
    assert half.tokens_per_s < assumed.tokens_per_s.p50
    stretch = assumed.tokens_per_s.p50 / half.tokens_per_s
    assert half.wall_clock_hours == pytest.approx(assumed.wall_clock_hours * stretch)
    paid = (assumed.startup_hours + half.wall_clock_hours) / assumed.billed_hours
    assert half.usd == pytest.approx(assumed.usd.p50 * paid)
    one = assumed.network.gbit_per_s / 8 / 2
    _, measured = best(**asked, gpu="H100-80GB-SXM", cloud="crusoe",
                       network_gbit_per_gpu=str(one), **_layout(assumed))  # fmt: skip
    # Runs near it say a little else of a run that waits longer for its network.
    assert measured.tokens_per_s.p50 == pytest.approx(half.tokens_per_s, rel=0.01)


def test_an_assumed_network_widens_by_what_half_of_it_would_cost():
    asked = {"model": "llama3.1-70b", "num_gpus": "64", "global_batch_size": "512",
             "gpu": "H100-80GB-SXM", "cloud": "crusoe"}  # fmt: skip
    _, assumed = best(**asked)
    rate = str(assumed.network.gbit_per_s / 8)
    _, stated = best(**asked, network_gbit_per_gpu=rate, **_layout(assumed))
    guessed, known = (log(p.tokens_per_s.p90 / p.tokens_per_s.p10) / (2 * Z_90)
                      for p in (assumed, stated))  # fmt: skip
    cost = log(assumed.tokens_per_s.p50 / assumed.at_half_network.tokens_per_s)
    eff = efficiency(assumed.stack)
    width = float(eff.half_network_sigma) * cost
    assert cost > 0.004
    assert guessed**2 - known**2 == pytest.approx(
        width**2 + float(eff.network_sigma) ** 2, rel=1e-6
    )


def _layout(plan):
    lay = plan.layout
    return {n: str(getattr(lay, n)) for n in ("tp", "pp", "cp", "micro_batch_size")} | {
        "sharding": lay.sharding, "recompute": lay.recompute,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("purchase", "bought"),
    [("", "on_demand"), ("spot", "spot"), ("reserved_1y,spot", "reserved_1y"),
     ("spot,on_demand", "on_demand")],
)  # fmt: skip
def test_what_nobody_sells_is_bought_as_asked(purchase, bought):
    asked = {"gpu": "H800-80GB-SXM", **({"purchase": purchase} if purchase else {})}
    (machine,) = choice_of(resolve_strict(Scenario.parse(asked))).machines
    assert (machine.offer.purchase, machine.offer.usd_per_hour) == (bought, None)
