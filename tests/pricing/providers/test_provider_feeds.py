"""Every price source, read from a real server in its documented shape with its real traps."""

import json
from contextlib import contextmanager
from datetime import timedelta

import pytest

from pricing.fetch.body_cache import BodyCache
from pricing.fetch.network import SourceError
from pricing.fetch.session import NoCredentialError, Session
from pricing.integrity import check, price_bands
from pricing.providers import exchange_rates
from pricing.providers.boundary import accelerator_of
from pricing.sources import SOURCES, chosen
from tests.feeds import shapes
from tests.feeds.server import Feed, Reply, as_json, as_text, gzipped, serving
from tests.feeds.shapes import TODAY, YESTERDAY


@contextmanager
def served(name, changes=None, **more):
    """The source of this name and its session, at a server with its routes and these changes."""
    feed = Feed(shapes.ROUTES[name]() | (changes or {}))
    with serving(feed) as base:
        environ = {**shapes.mirrors(base), **more.pop("environ", {})}
        (source,) = chosen([name])
        with Session(source=name, environ=environ, deadline_s=30.0, **more) as session:
            yield source, session, feed


def fetched(name, changes=None, **more):
    with served(name, changes, **more) as (source, session, _):
        return list(source.fetch(session)), session


def prices(offers):
    return {(o.instance_type, o.region, o.purchase): o.usd_per_hour for o in offers}


def failure(name, changes):
    with pytest.raises(SourceError) as e:
        fetched(name, changes)
    return str(e.value)


def only(offers, **wanted):
    (found,) = [o for o in offers if all(getattr(o, k) == v for k, v in wanted.items())]
    return found


@pytest.mark.parametrize("name", [s.name for s in SOURCES])
def test_every_source_yields_offers_that_pass_the_checks(name):
    offers, session = fetched(name)
    # A zero price stands in Azure's own list; it must reach the check, which refuses it.
    found = check(offers, bands=price_bands(), today=session.today)
    refused = [f for f in found if f.severity == "refuse"]
    assert len(offers) >= 2
    assert [f.rule for f in refused] == (["price"] if name == "azure" else [])
    assert session.parts == []
    assert all(o.source and o.observed_at <= session.today.isoformat() for o in offers)


@pytest.mark.parametrize("name", [s.name for s in SOURCES])
def test_every_source_reads_the_same_from_a_compressed_answer(name):
    def zipped(route):
        if callable(route):
            return lambda asked: gzipped(route(asked))
        return gzipped(route)

    plain, _ = fetched(name)
    changed = {path: zipped(route) for path, route in shapes.ROUTES[name]().items()}
    assert fetched(name, changed)[0] == plain


@pytest.mark.parametrize("name", [s.name for s in SOURCES])
@pytest.mark.parametrize(
    "broken",
    [
        Reply(b'{"data": [1, 2'),
        Reply(b"<html>We are busy</html>", kind="text/html"),
        Reply(b"{}"),
        Reply(b"[]"),
        Reply(b'["a"]'),
        Reply(b"1"),
        as_text("a,b\n1,2\n", kind="text/plain"),
        as_text("", kind="text/plain"),
    ],
)
def test_a_broken_or_changed_feed_is_a_sentence_and_never_a_price(name, broken):
    """Whatever it sends: no offer, no other exception, and a reason in each case."""
    with served(name, dict.fromkeys(shapes.ROUTES[name](), broken)) as (source, session, _):
        offers, said = [], ""
        try:
            offers = list(source.fetch(session))
        except SourceError as e:
            said = str(e)
    nothing_listed = broken.body == b"[]" and name == "verda"  # an empty list of machines
    assert offers == []
    assert nothing_listed or said or session.parts


def test_the_key_of_a_source_is_asked_for_and_never_shown():
    for source in (s for s in SOURCES if s.key):
        with served(source.name, environ={source.key: ""}) as (_, session, feed):
            with pytest.raises(NoCredentialError, match=source.key):
                list(source.fetch(session))
            assert feed.asked == []
        with served(source.name, environ={source.key: "wrong-s3cret"}) as (_, session, _):
            with pytest.raises(SourceError, match="is its key valid") as e:
                list(source.fetch(session))
            assert "s3cret" not in str(e.value)


# --- aggregators ---------------------------------------------------------------------------------


def test_gpuhunt_tells_parts_by_memory_and_zones_become_regions():
    offers, session = fetched("gpuhunt")
    assert only(offers, instance_type="p4d.24xlarge").accelerator == "A100-40GB-SXM"
    assert prices(offers)["a3-highgpu-8g", "us-central1", "on_demand"] == 88.49
    spot = only(offers, instance_type="a2-highgpu-1g")
    assert (spot.usd_per_hour, spot.region) == (1.6, "us-central1")
    assert spot.note == "the cheapest of 2 zones, 1.6 to 1.8 USD/h"
    assert {o.observed_at for o in offers} == {YESTERDAY.isoformat()}
    assert session.left_out["no GPU"] == 1
    assert session.left_out["printed and not sold: gcp a3-highgpu-1g on_demand"] == 1


def test_gpuhunts_flags_are_features_and_not_special_offers():
    offers, session = fetched("gpuhunt")
    found = prices(offers)
    assert found["a4-highgpu-8g", "us-east4", "spot"] == 44.0
    assert found["a4-highgpu-8g", "us-east4", "capacity_block"] == 69.0
    assert found["VM.GPU.L40S.1", "us-ashburn-1", "spot"] == 1.75
    # A pod and a machine of a cluster are two products of one name.
    assert found["NVIDIA H100 80GB HBM3", "US-KS-2", "on_demand"] == 23.92
    assert found["NVIDIA H100 80GB HBM3 cluster", "US-KS-2", "on_demand"] == 28.4
    assert only(offers, region="CA").accelerator == "H100-80GB-PCIE"
    unknown = {why: n for why, n in session.left_out.items() if "feature" in why}
    assert unknown == {
        "it needs a feature that is not known: 'nebius-new'": 1,
        "it needs a feature that is not known: 'runpod-cpu'": 1,
    }


def test_gpuhunts_tpu_slices_are_read_as_the_price_of_one_chip():
    offers, _ = fetched("gpuhunt")
    tpus = {place: usd for place, usd in prices(offers).items() if place[0].startswith("TPU")}
    assert tpus == {
        ("TPU v5p (1 chip)", "us-east5", "on_demand"): pytest.approx(4.2),
        ("TPU v5e (1 chip)", "us-west4", "spot"): pytest.approx(0.51),
    }


def test_gpuhunt_with_one_provider_broken_keeps_the_others():
    path = f"/v3/aws/{shapes.VERSION}/catalog.zip"
    offers, session = fetched("gpuhunt", {path: Reply(b"PK not a zip", kind="application/zip")})
    assert {o.provider for o in offers} == {"gcp", "nebius", "oci", "runpod"}
    (part,) = session.parts
    assert (part.provider, "is a damaged zip" in part.sentence) == ("aws", True)


def test_a_zip_bomb_in_the_catalogue_ends_at_the_cap(monkeypatch):
    monkeypatch.setattr("pricing.providers.gpuhunt_catalogue.CSV_BYTES", 100_000)
    rows = shapes.GPUHUNT["aws"] * 20_000
    bomb = Reply(shapes.gpuhunt_zip("aws", rows), kind="application/zip")
    assert len(bomb.body) < 100_000
    offers, session = fetched("gpuhunt", {f"/v3/aws/{shapes.VERSION}/catalog.zip": bomb})
    assert "aws" not in {o.provider for o in offers}
    assert "larger than 0.1 MB" in session.parts[0].sentence


def test_skypilot_adds_host_and_accelerator_of_gcp():
    """The host row alone reads 0.74 USD/h for a machine that costs 3.67."""
    offers, session = fetched("skypilot")
    machine = only(offers, instance_type="a2-highgpu-1g", purchase="on_demand")
    assert machine.usd_per_hour == pytest.approx(0.73948 + 2.93391)
    assert machine.accelerator == "A100-40GB-SXM"
    assert session.left_out["a host in a zone without its accelerator"] == 1


def test_skypilots_tpus_are_read_by_the_chip_and_700_is_no_price():
    offers, session = fetched("skypilot")
    tpus = {place: usd for place, usd in prices(offers).items() if place[0].startswith("TPU")}
    assert tpus == {
        ("TPU v6e (1 chip)", "us-central1", "on_demand"): 2.7,
        ("TPU v6e (1 chip)", "us-central1", "spot"): 1.27575,
        ("TPU v6e (1 chip)", "africa-south1", "on_demand"): 2.7,
        ("TPU v6e (1 chip)", "africa-south1", "spot"): 0.1,
        ("TPU v5p (1 chip)", "us-east5", "on_demand"): pytest.approx(4.2),
        ("TPU v5p (1 chip)", "us-east5", "spot"): pytest.approx(1.3),
    }
    assert session.left_out["a TPU without spot price"] == 1


def test_skypilots_files_kept_by_hand_are_of_low_quality():
    offers, _ = fetched("skypilot")
    assert {o.provider for o in offers if o.quality == "medium"} == {"aws", "gcp"}
    hyperstack = only(offers, provider="hyperstack")
    assert (hyperstack.quality, hyperstack.source) == ("low", "SkyPilot catalogue v8: hyperstack")
    assert only(offers, provider="vast").source == "SkyPilot catalogue v9: vast"


def test_skypilot_leaves_out_what_is_no_market_and_no_price():
    offers, session = fetched("skypilot")
    assert session.left_out["spot at 100% or 10% of on-demand: there is no market"] == 2
    assert session.left_out["a bid floor, not a price"] == 1
    assert prices(offers)["p5.48xlarge", "us-east-2", "spot"] == 19.0
    assert ("p4d.24xlarge", "us-west-2", "spot") not in prices(offers)
    assert only(offers, provider="vast").purchase == "on_demand"
    # The feed says H100; the bundled prices know that this machine has the PCIe card.
    assert only(offers, provider="hyperstack").accelerator == "H100-80GB-PCIE"


def test_skypilot_goes_to_the_mirror_when_the_first_host_is_busy():
    busy = {shapes.SKYPILOT_FIRST.format("v9", "aws"): Reply(status=404)}
    mirror = {shapes.SKYPILOT_MIRROR.format("v9", "aws"): as_text(shapes.SKYPILOT["aws"])}
    offers, session = fetched("skypilot", busy | mirror)
    assert prices(offers)["p5.48xlarge", "us-east-2", "on_demand"] == 55.04
    assert session.parts == []
    offers, session = fetched("skypilot", busy)
    assert [p.provider for p in session.parts] == ["aws"]
    assert "The mirror" in session.parts[0].sentence
    assert {"gcp", "vast"} <= {o.provider for o in offers}


def test_the_price_feed_names_machines_as_their_sellers_do():
    offers, session = fetched("gpu_price_feed")
    assert prices(offers) == {
        ("1H100.80S.30V", "*", "on_demand"): 3.74,
        ("1H100.80S.30V", "*", "spot"): 1.87,
        ("8x NVIDIA A100 SXM 80GB", "*", "on_demand"): pytest.approx(22.32),
        ("8x NVIDIA A100 SXM 40GB", "*", "on_demand"): pytest.approx(15.92),
        ("1x_H100-SXM_COMMUNITY", "*", "on_demand"): 2.69,
        ("1x NVIDIA HGX H100 80GB", "*", "on_demand"): 4.41,
        ("1x AMD Instinct MI300X 192GB", "*", "reserved_1y"): 1.9,
        ("B300-SXM-8-288G", "fr-par-2", "on_demand"): 67.35,
        ("vcg-l40s-16c-180g-48vram", "ord", "on_demand"): 1.671,
        ("vcg-l40s-16c-180g-48vram", "sea", "on_demand"): 1.671,
    }
    assert only(offers, provider="scaleway").note == "60 EUR/h at the ECB's rate"
    assert {o.quality for o in offers if o.provider in ("runpod", "scaleway")} == {"medium"}
    assert {o.observed_at for o in offers} == {YESTERDAY.isoformat()}
    assert session.left_out == {
        "a fraction of a GPU": 2,
        "a marketplace, which is read directly": 1,
        "spot at 100% of on-demand: there is no market": 1,
        "the form of the GPU is not stated": 1,
    }


def test_a_seller_that_the_price_feed_could_not_read_is_a_failed_part():
    answer = json.loads(shapes.gpu_price_feed()[shapes.GPU_PRICE_FEED_PATH].body)
    answer["offers"] = [o for o in answer["offers"] if o["provider"] != "vultr"]
    answer["providers"]["vultr"] = {"status": "error", "error": "HTTP 403"}
    offers, session = fetched("gpu_price_feed", {shapes.GPU_PRICE_FEED_PATH: as_json(answer)})
    assert [p.provider for p in session.parts] == ["vultr"]
    assert "lambda" in {o.provider for o in offers}


def test_the_price_index_gives_prices_before_its_adjustments():
    offers, session = fetched("gpu_price_index")
    assert prices(offers) == {
        ("hyperstack_H100-sxm5x8", "US, Houston, TX", "on_demand"): 25.6,
        ("1x_H100-SXM_SECURE", "*", "on_demand"): 3.99,
        ("1x_H100-SXM_COMMUNITY", "*", "on_demand"): 2.69,
        ("1x_B200_SECURE", "*", "on_demand"): 6.79,
        ("2H100.80S.80V", "*", "on_demand"): 7.48,
        ("2H100.80S.80V", "*", "spot"): 3.74,
    }
    assert {o.observed_at for o in offers} == {YESTERDAY.isoformat()}
    assert {o.provider for o in offers} == {"shadeform", "runpod", "verda"}
    assert session.left_out == {
        "a marketplace that is read directly, or a rate card kept by hand": 2,
        "nothing left to rent": 1,
        "the form of the GPU is not stated": 1,
        "no price in dollars of a known kind": 1,
    }


def test_a_snapshot_of_the_price_index_that_unpacks_without_end_is_cut(monkeypatch):
    monkeypatch.setattr("pricing.providers.gpu_price_index.SNAPSHOT_BYTES", 1000)
    assert "larger than 0.001 MB" in failure("gpu_price_index", {})


# --- AWS -----------------------------------------------------------------------------------------


def test_aws_takes_linux_on_demand_and_no_upfront_reservations():
    offers, session = fetched("aws_on_demand", environ={"RUNCAST_AWS_REGIONS": "us-east-1"})
    assert prices(offers) == {
        ("p5.48xlarge", "us-east-1", "on_demand"): 55.04,
        ("p4d.24xlarge", "us-east-1", "on_demand"): 21.9576,
        ("p5.48xlarge", "us-east-1", "reserved_1y"): 62.0,
        ("p5.48xlarge", "us-east-1", "reserved_3y"): 39.0,
    }
    assert session.left_out["a reservation that is not Standard, No Upfront"] == 3


def test_an_aws_price_that_is_not_per_hour_or_not_in_dollars_is_refused():
    rows = [shapes.aws_row(), shapes.aws_row("p4d.24xlarge", "16000", Unit="Month"),
            shapes.aws_row("p4de.24xlarge", "200", Currency="CNY")]  # fmt: skip
    path = shapes.aws_path("us-east-1")
    changed = {path: as_text(shapes.aws_csv(rows), kind="text/csv")}
    offers, session = fetched(
        "aws_on_demand", changed, environ={"RUNCAST_AWS_REGIONS": "us-east-1"}
    )
    assert [o.instance_type for o in offers] == ["p5.48xlarge"]
    assert [r.reason for r in session.refused] == [
        "its unit is 'Month', not an hour.", "its currency is 'CNY', not USD.",
    ]  # fmt: skip


def test_an_aws_region_that_fails_is_a_failed_part():
    offers, session = fetched("aws_on_demand", {shapes.aws_path("eu-north-1"): Reply(status=404)})
    assert {o.region for o in offers} == set(shapes.AWS_REGIONS) - {"eu-north-1"}
    assert [(p.provider, p.region) for p in session.parts] == [("aws", "eu-north-1")]


def test_an_aws_list_that_has_not_changed_is_not_sent_again(tmp_path):
    path = shapes.aws_path("us-east-1")
    tagged = as_text(shapes.aws_csv(), kind="text/csv", headers={"ETag": '"e1"'})
    environ = {"RUNCAST_AWS_REGIONS": "us-east-1"}
    cache = BodyCache(tmp_path)
    first, session = fetched("aws_on_demand", {path: tagged}, cache=cache, environ=environ)
    assert session.bytes_read > 1000
    again, session = fetched("aws_on_demand", {path: tagged}, cache=cache, environ=environ)
    assert session.bytes_read == 0
    assert again == first


def test_aws_spot_reads_old_region_names_and_the_advisor():
    offers, session = fetched("aws_spot")
    assert prices(offers) == {
        ("p5.48xlarge", "us-east-1", "spot"): 19.5,
        ("p5.48xlarge", "eu-north-1", "spot"): 19.5,
    }
    notes = {o.region: o.note for o in offers}
    assert notes["us-east-1"].startswith("Spot Advisor: 10-15% of instances interrupted a month")
    assert "-62% under" in notes["eu-north-1"]
    assert session.left_out["not sold as spot there"] == 2


def test_aws_spot_stands_without_its_advisor():
    offers, session = fetched("aws_spot", {"/spot-advisor-data.json": Reply(status=404)})
    assert len(offers) == 2
    assert [o.note for o in offers] == ["", ""]
    assert session.warnings == ["Spot Advisor: The server answers 404."]


def test_one_spot_price_that_is_no_number_is_refused_alone():
    text = shapes.aws_spot_js().body.decode().replace("19.5", "unknown", 1)
    offers, session = fetched("aws_spot", {"/spot.js": as_text(text)})
    assert len(offers) == 1
    assert "usd: input should be a valid number" in session.refused[0].reason


# --- Azure ---------------------------------------------------------------------------------------


def test_azure_reads_its_pages_and_all_four_kinds_of_price():
    with served("azure", environ={"RUNCAST_AZURE_REGIONS": "eastus"}) as (source, session, feed):
        offers = list(source.fetch(session))
    h100 = [o for o in offers if o.instance_type == "Standard_ND96isr_H100_v5"]
    assert prices(h100) == {
        ("Standard_ND96isr_H100_v5", "eastus", "on_demand"): 98.32,
        ("Standard_ND96isr_H100_v5", "eastus", "spot"): 35.0,
        ("Standard_ND96isr_H100_v5", "eastus", "reserved_1y"): 60.0,  # 525,600 USD in 8,760 h
        ("Standard_ND96isr_H100_v5", "eastus", "reserved_3y"): 45.0,
    }
    notes = {o.purchase: o.note for o in h100}
    assert notes["reserved_1y"] == "reservation: 525600 USD for 1 Year"
    assert notes["reserved_3y"] == "savings plan for compute"
    assert len(feed.asked) == 2
    assert feed.asked[0].query["api-version"] == ["2023-01-01-preview"]


def test_azure_leaves_out_what_is_not_linux_by_the_hour_in_dollars():
    _, session = fetched("azure", environ={"RUNCAST_AZURE_REGIONS": "eastus"})
    assert {r.reason for r in session.refused} == {
        "its unit is '1/Month', not '1 Hour'.", "its currency is 'EUR', not USD.",
    }  # fmt: skip
    assert session.left_out == {
        "Windows, Cloud Services or a dedicated host": 2,
        "Low Priority, which is retired": 1,
        "no machine that we know": 2,  # the promotion's own name, and a machine without GPU
        "prices of type 'DevTestConsumption'": 1,
    }


@pytest.mark.parametrize(
    ("link", "says"),
    [
        ("https://evil.example/api/retail/prices?$skip=1000", "on another host"),
        (None, "pages do not end"),
    ],
)
def test_azure_pages_that_lead_astray_or_in_a_circle_are_refused(link, says):
    def circle(asked):
        here = f"http://{asked.headers['host']}/api/retail/prices?$skip=0"
        return shapes.azure_page([], link or here)

    environ = {"RUNCAST_AZURE_REGIONS": "eastus"}
    offers, session = fetched("azure", {"/api/retail/prices": circle}, environ=environ)
    assert offers == []
    assert says in session.parts[0].sentence


def test_a_page_that_fails_half_way_drops_that_region_only():
    whole = shapes.azure()["/api/retail/prices"]

    def half(asked):
        return Reply(status=404) if "$skip" in asked.query else whole(asked)

    offers, session = fetched("azure", {"/api/retail/prices": half})
    assert [p.region for p in session.parts] == ["eastus"]
    assert {o.purchase for o in offers} <= {"on_demand", "spot"}


# --- GCP -----------------------------------------------------------------------------------------


def test_gcp_months_are_730_hours_and_zero_is_not_a_price():
    offers, session = fetched("gcp_yaml")
    found = prices(offers)
    assert found["a3-highgpu-8g", "us-central1", "on_demand"] == 88.49
    assert found["a3-highgpu-8g", "us-central1", "reserved_1y"] == pytest.approx(60.5)
    assert found["a3-highgpu-8g", "us-central1", "reserved_3y"] == pytest.approx(39.0)
    assert not [place for place in found if place[1] == "africa-south1"]
    assert ("a2-highgpu-1g", "us-central1", "reserved_1y") not in found
    assert session.left_out["a commitment at the on-demand price is none"] == 1
    assert ("a3-highgpu-1g", "us-central1", "on_demand") not in found
    assert found["a3-highgpu-1g", "us-central1", "spot"] == 3.46


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("compute:\n  instance: {a: 1, a: 2}\n", "twice in line 2"),
        ("a: &x [1]\ncompute: *x\n", "an anchor or an alias"),
        ("compute: [", "is not YAML"),
        ("a: [" + "1," * 1_000_001 + "]\n", "more than 1000000 values"),
        ("compute: 5\n", "shape has changed: compute"),
        ("!!python/object/apply:os.getcwd []\n", "is not YAML"),
    ],
)
def test_yaml_that_is_hostile_or_changed_is_refused(text, says):
    assert says in failure("gcp_yaml", {shapes.GCP_YAML_PATH: as_text(text)})


def test_gcp_skus_are_added_to_a_machine_over_two_pages():
    offers, session = fetched("gcp_skus")
    found = prices(offers)
    assert found["a2-highgpu-1g", "us-central1", "on_demand"] == pytest.approx(
        12 * 0.031611 + 85 * 0.004237 + 2.933908
    )
    assert found["a2-highgpu-8g", "us-central1", "spot"] == pytest.approx(
        96 * 0.0158 + 680 * 0.0021 + 8 * 1.466954
    )
    assert not [place for place in found if place[0].startswith("a3")]
    assert session.refused[0].reason == "its unit is 'mo', not an hour."
    assert "without local SSD" in offers[0].note


# --- marketplaces and small clouds ---------------------------------------------------------------


def test_runpod_offers_what_is_left_by_count_and_place():
    offers, session = fetched("runpod")
    assert prices(offers) == {
        ("1x_H100-SXM_SECURE", "US-KS-2", "on_demand"): 2.99,
        ("1x_H100-SXM_SECURE", "US-KS-2", "spot"): 1.75,
        ("1x_H100-SXM_SECURE", "EU-RO-1", "on_demand"): 2.99,
        ("1x_H100-SXM_SECURE", "EU-RO-1", "spot"): 1.75,
        ("2x_H100-SXM_SECURE", "US-KS-2", "on_demand"): 5.98,
        ("2x_H100-SXM_SECURE", "US-KS-2", "spot"): 3.5,
        ("4x_H100-SXM_SECURE", "US-KS-2", "on_demand"): 11.96,
        ("4x_H100-SXM_SECURE", "US-KS-2", "spot"): 7.0,
        ("8x_H100-SXM_SECURE", "US-KS-2", "on_demand"): 23.92,
        ("8x_H100-SXM_SECURE", "US-KS-2", "spot"): 14.0,
        ("1x_H100-SXM_COMMUNITY", "*", "on_demand"): 2.69,
        ("2x_H100-SXM_COMMUNITY", "*", "on_demand"): 5.38,
    }
    assert only(offers, gpu_count=8, purchase="on_demand").note == "secure cloud; stock: 'Low'"
    assert session.left_out["nothing left to rent"] == 2
    assert session.left_out["spot at 100% of on-demand: there is no market"] == 1


def test_a_graphql_error_is_a_sentence():
    answer = as_json({"errors": [{"message": "Cannot query field securePrice"}]})
    assert "Cannot query field" in failure("runpod", {"/graphql": answer})


def test_vast_takes_the_cheapest_honest_host_and_no_bid_floor():
    offers, session = fetched("vast")
    assert prices(offers) == {
        ("8x H100 SXM", "US", "on_demand"): 16.0,
        ("1x H100 SXM", "*", "on_demand"): 2.1,
    }
    assert only(offers, gpu_count=8).note == "the cheapest of 3 verified hosts"
    assert session.left_out["a bid floor, not a price"] == 6
    assert session.left_out["a host that is not rentable or reliable enough"] == 1
    assert [r.reason for r in session.refused] == ["it asks less than a third of the median host."]


def test_a_vast_query_that_fails_leaves_the_others():
    whole = shapes.vast()["/api/v0/bundles/"]

    def one_fails(asked):
        return Reply(b"<html>", kind="text/html") if "B200" in asked.query["q"][0] else whole(asked)

    offers, session = fetched("vast", {"/api/v0/bundles/": one_fails})
    assert len(offers) == 2
    assert [p.provider for p in session.parts] == ["vast"]
    assert "1 of 21 queries" in session.parts[0].sentence


def test_lambda_prices_are_cents_of_the_whole_instance():
    offers, session = fetched("lambda")
    assert prices(offers) == {
        ("gpu_8x_h100_sxm5", "us-west-3", "on_demand"): 31.92,
        ("gpu_8x_h100_sxm5", "us-east-1", "on_demand"): 31.92,
        ("gpu_8x_a100_80gb_sxm4", "*", "on_demand"): 14.32,
    }
    assert only(offers, region="*").accelerator == "A100-80GB-SXM"
    assert only(offers, region="*").note == "no capacity anywhere now"
    assert session.left_out["no GPU"] == 1


def test_verda_memory_is_a_total_and_euros_are_converted():
    offers, _ = fetched("verda")
    found = prices(offers)
    assert found["1H100.80S.30V", "*", "spot"] == 1.10
    assert only(offers, instance_type="8H200.141S.176V", purchase="spot").accelerator == (
        "H200-141GB-SXM"
    )
    b200 = only(offers, instance_type="8B200.240V")
    assert b200.usd_per_hour == pytest.approx(36.0 * 1.25)
    assert b200.note == f"36 EUR/h at the ECB's rate of {YESTERDAY}"


def test_verda_with_client_credentials_knows_where_something_is_left():
    offers, _ = fetched("verda", environ=shapes.VERDA_KEYS)
    found = prices(offers)
    assert found["1H100.80S.30V", "FIN-01", "on_demand"] == 2.5
    assert found["1H100.80S.30V", "FIN-03", "on_demand"] == 2.5
    assert found["1H100.80S.30V", "FIN-01", "spot"] == 1.1
    assert found["8H200.141S.176V", "FIN-03", "spot"] == 9.6
    gone = only(offers, instance_type="8H200.141S.176V", purchase="on_demand")
    assert (gone.region, gone.note) == ("*", "no capacity anywhere now")


@pytest.mark.parametrize("name", shapes.VERDA_KEYS)
def test_verda_says_which_half_of_its_credentials_is_missing_or_wrong(name):
    with served("verda", environ=shapes.VERDA_KEYS | {name: ""}) as (source, session, feed):
        with pytest.raises(NoCredentialError, match=name):
            list(source.fetch(session))
        assert feed.asked == []
    with served("verda", environ=shapes.VERDA_KEYS | {name: "s3cret"}) as (source, session, _):
        with pytest.raises(SourceError, match="is its key valid") as e:
            list(source.fetch(session))
        assert "s3cret" not in str(e.value)


def test_vultr_offers_whole_gpus_where_and_as_they_are_sold():
    offers, session = fetched("vultr")
    assert prices(offers) == {
        ("vcg-l40s-16c-180g-48vram", "ord", "on_demand"): 1.671,
        ("vcg-l40s-16c-180g-48vram", "sea", "on_demand"): 1.7,
        ("vcg-a100-24c-240g-160vram", "ewr", "on_demand"): 4.794,
        ("vbm-256c-2048gb-8-mi300x-gpu", "ord", "on_demand"): 17.52,
        ("vbm-256c-2048gb-8-mi300x-gpu", "ord", "spot"): 14.72,
        ("vbm-112c-2048gb-8-a100-gpu", "ewr", "spot"): 12.4,
    }
    assert only(offers, gpu_count=2).accelerator == "A100-80GB-PCIE"
    assert session.left_out["a fraction of a GPU"] == 1
    assert session.left_out["no GPU plan that is known"] == 1


def test_digitalocean_reads_its_pages_and_memory_is_a_total():
    offers, session = fetched("digitalocean")
    assert prices(offers) == {
        ("gpu-h100x8-640gb", "nyc2", "on_demand"): 35.28,
        ("gpu-h100x8-640gb", "tor1", "on_demand"): 35.28,
        ("gpu-mi300x8-1536gb", "atl1", "on_demand"): 20.72,
    }
    assert only(offers, region="tor1").accelerator == "H100-80GB-SXM"
    assert session.left_out == {"no GPU": 1, "nothing left to rent": 1}


def test_hyperstack_prices_are_per_gpu_and_joined_by_its_name():
    offers, session = fetched("hyperstack")
    assert prices(offers) == {
        ("n3-H100x8-NVLink", "CANADA-1", "on_demand"): pytest.approx(20.8),
        ("n3-A100-SXM4x8", "NORWAY-1", "on_demand"): pytest.approx(12.8),
        ("n3-H100x1-spot", "CANADA-1", "spot"): 2.0,
    }
    assert {o.region: o.accelerator for o in offers} == {
        "CANADA-1": "H100-80GB-PCIE", "NORWAY-1": "A100-80GB-SXM",
    }  # fmt: skip
    assert session.left_out == {
        "nothing left to rent": 1, "a GPU without a price": 1, "no GPU": 1,
    }  # fmt: skip


def test_oci_prices_are_per_gpu_and_other_metrics_are_refused():
    offers, session = fetched("oci")
    assert prices(offers) == {
        ("BM.GPU.H100.8", "*", "on_demand"): 80.0,
        ("BM.GPU.MI300X.8", "*", "on_demand"): 48.0,
    }
    assert {r.reason for r in session.refused} == {
        "its metric is 'GPU Per Month', not GPU per hour.", "its currency is 'EUR', not USD.",
    }  # fmt: skip
    assert session.left_out["not a GPU shape"] == 1


# --- names and sizes that no feed has ------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["<script>alert(1)</script>", "=cmd|' /C calc'!A0", "-rf", "a\nb", "a\x1b[31m", "x" * 81, "",
     "**bold**", "`id`", "$(id)", "p5\u202e"],
)  # fmt: skip
def test_a_name_that_is_more_than_plain_text_is_refused(name):
    """Names reach tables, links, terminals and launch files."""
    rows = [*shapes.GPUHUNT["aws"], shapes.gpuhunt_row(name, "us-east-1", 50, 8, "H100", 80.0)]
    path = f"/v3/aws/{shapes.VERSION}/catalog.zip"
    bad = Reply(shapes.gpuhunt_zip("aws", rows), kind="application/zip")
    offers, session = fetched("gpuhunt", {path: bad})
    assert len(session.refused) == 1
    assert session.refused[0].row.isprintable()
    assert name not in {o.instance_type for o in offers}
    assert {o.provider for o in offers} == {"aws", "gcp", "nebius", "oci", "runpod"}


@pytest.mark.parametrize("count", [-1, 1025, 10**30, int("9" * 400)])
def test_a_gpu_count_that_no_machine_has_is_refused(count):
    machine = shapes.verda_type("1H100.80S.30V", "1x H100 SXM5 80GB", count, 80, "2.50", "1.10")
    offers, session = fetched("verda", {"/v1/instance-types": as_json([*shapes.VERDA, machine])})
    assert len(offers) == 5
    assert "less than or equal to 1024" in session.refused[0].reason or count == -1
    rows = [*shapes.VAST["H100 SXM"], shapes.vast_offer(16.0, gpus=count)]
    offers, session = fetched("vast", {"/api/v0/bundles/": as_json({"offers": rows})})
    assert len({r.reason for r in session.refused}) == 2  # and that of the host at 0.4 USD/h
    assert {o.gpu_count for o in offers} == {1, 8}


def test_a_feed_of_wrong_rows_without_end_is_not_read_on():
    rows = [shapes.aws_row("p5.48xlarge", "x")] * 10_001
    changed = {shapes.aws_path("us-east-1"): as_text(shapes.aws_csv(rows), kind="text/csv")}
    _, session = fetched("aws_on_demand", changed, environ={"RUNCAST_AWS_REGIONS": "us-east-1"})
    assert len(session.refused) == 10_000
    assert "More than 10000 of its rows are wrong" in session.parts[0].sentence


def test_reasons_are_counted_without_filling_the_memory():
    with served("oci") as (_, session, _):
        for i in range(2000):
            session.leave_out(f"which GPU cannot be told: {i}")
    assert len(session.left_out) == 501
    assert session.left_out.total() == 2000


# --- exchange rates ------------------------------------------------------------------------------


def exchange(text):
    with served("verda", {shapes.ECB_PATH: as_text(text, kind="text/xml")}) as (_, session, _):
        return exchange_rates.rates(session)


def test_exchange_rates_go_through_the_euro():
    rates = exchange(shapes.ECB)
    assert rates.usd(10.0, "eur") == pytest.approx(12.5)
    assert rates.usd(1600.0, "JPY") == pytest.approx(12.5)
    assert rates.usd(3.0, "USD") == pytest.approx(3.0)
    with pytest.raises(SourceError, match="no exchange rate of 'XAU'"):
        rates.usd(1.0, "XAU")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("rate='1.25'", "rate='0'"), "An exchange rate is '0'"),
        (("rate='1.25'", "rate='nan'"), "An exchange rate is 'nan'"),
        (("rate='1.25'", "rate='125'"), "125.0 USD per EUR"),
        ((str(YESTERDAY), str(TODAY - timedelta(days=30))), "not of this week"),
        ((str(YESTERDAY), str(TODAY + timedelta(days=3))), "not of this week"),
        ((str(YESTERDAY), "soon"), "have no day"),
        (("<gesmes:subject>", '<!DOCTYPE a [<!ENTITY b "c">]>'), "declare an XML entity"),
        (("</gesmes:Envelope>", ""), "are not XML"),
    ],
)
def test_exchange_rates_that_cannot_be_are_refused(change, says):
    with pytest.raises(SourceError) as e:
        exchange(shapes.ECB.replace(*change))
    assert says in str(e.value)


# --- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "memory", "accelerator"),
    [
        ("H100 SXM", 80, "H100-80GB-SXM"),
        ("H100 NVL", 94, "H100-94GB-NVL"),
        ("A100 (80 GB SXM4)", None, "A100-80GB-SXM"),
        ("A100 SXM4", 40960 / 1024, "A100-40GB-SXM"),
        ("A100 PCIE", 81920 / 1024, "A100-80GB-PCIE"),
        ("8x B200 SXM6 180GB", None, "B200-180GB"),
        ("H100", 20, None),  # a slice
        ("A100", None, None),
        ("FancyChip 9", 80, None),
        ("", None, None),
    ],
)
def test_the_gpu_of_a_feed_is_told_or_left_out(name, memory, accelerator):
    assert accelerator_of(name, memory) == accelerator
