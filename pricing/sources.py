"""Sources of live prices: name, key, and limits on time and size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from core.errors import ScenarioError, unknown_sentence
from core.machine.offer import Offer
from pricing.fetch.session import Session
from pricing.providers import (
    aws_on_demand,
    aws_spot,
    azure_retail,
    digitalocean,
    gcp_skus,
    gcp_yaml,
    gpu_price_feed,
    gpu_price_index,
    gpuhunt_catalogue,
    hyperstack,
    lambda_cloud,
    oci,
    runpod,
    skypilot_catalogue,
    vast,
    verda,
    vultr,
)

Fetch = Callable[[Session], Iterable[Offer]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One source of prices. A source with a key is asked only if the environment has it."""

    name: str  # in `--source`, in names of its rows on disk, and of its mirror variable
    says: str
    fetch: Fetch
    key: str = ""  # environment variable
    deadline_s: float = 120.0
    cap_bytes: int = 128_000_000  # decompressed, all its requests together


SOURCES: tuple[Source, ...] = (
    Source(
        name="gpuhunt",
        says="gpuhunt catalogue of nine providers",
        fetch=gpuhunt_catalogue.fetch,
        deadline_s=180.0,
        cap_bytes=256_000_000,
    ),
    Source(
        name="skypilot",
        says="SkyPilot catalogue of 17 clouds",
        fetch=skypilot_catalogue.fetch,
        deadline_s=180.0,
    ),
    Source(
        name="gpu_price_feed",
        says="daily collection of seven sellers",
        fetch=gpu_price_feed.fetch,
    ),
    Source(
        name="gpu_price_index",
        says="daily collection of Shadeform, RunPod and Verda",
        fetch=gpu_price_index.fetch,
    ),
    Source(
        name="aws_on_demand",
        says="AWS on-demand and reserved, six regions",
        fetch=aws_on_demand.fetch,
        deadline_s=1200.0,
        cap_bytes=4_000_000_000,  # 300 MB a region, read line by line
    ),
    Source(name="aws_spot", says="AWS spot with interruptions", fetch=aws_spot.fetch),
    Source(
        name="azure",
        says="Azure on-demand, spot, reservations, savings plans",
        fetch=azure_retail.fetch,
        deadline_s=300.0,
        cap_bytes=256_000_000,
    ),
    Source(name="gcp_yaml", says="GCP machines, assembled weekly", fetch=gcp_yaml.fetch),
    Source(
        name="gcp_skus",
        says="GCP machines from the billing catalogue",
        fetch=gcp_skus.fetch,
        key=gcp_skus.KEY,
    ),
    Source(name="runpod", says="RunPod secure and community cloud", fetch=runpod.fetch),
    Source(name="vast", says="Vast.ai verified hosts", fetch=vast.fetch),
    Source(name="lambda", says="Lambda", fetch=lambda_cloud.fetch, key=lambda_cloud.KEY),
    Source(name="verda", says="Verda", fetch=verda.fetch),
    Source(name="vultr", says="Vultr cloud GPUs and bare metal", fetch=vultr.fetch),
    Source(
        name="digitalocean",
        says="DigitalOcean GPU Droplets",
        fetch=digitalocean.fetch,
        key=digitalocean.KEY,
    ),
    Source(
        name="hyperstack",
        says="Hyperstack flavours in stock",
        fetch=hyperstack.fetch,
        key=hyperstack.KEY,
    ),
    Source(name="oci", says="Oracle Cloud list prices", fetch=oci.fetch),
)


def chosen(names: Sequence[str]) -> tuple[Source, ...]:
    """The sources with these names, all by default; ScenarioError for an unknown name."""
    by_name = {s.name: s for s in SOURCES}
    for name in names:
        if name not in by_name:
            raise ScenarioError(unknown_sentence("price source", name, list(by_name)))
    return tuple(s for s in SOURCES if not names or s.name in names)
