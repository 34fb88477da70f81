"""Small payloads in the shape of each price source, with the field names and traps of real ones.

`replica()` is a server of all of them. Prices are of the order of 2026's; what is checked is the
arithmetic between a payload and its offers, not the price.
"""

import csv
import gzip
import io
import json
import zipfile
from datetime import UTC, datetime, timedelta

from tests.feeds.server import Reply, as_json, as_text

TODAY = datetime.now(UTC).date()
YESTERDAY = TODAY - timedelta(days=1)
VERSION = "20261120-2040"


def table(columns, rows, quoting=csv.QUOTE_MINIMAL) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, quoting=quoting, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


# --- gpuhunt -------------------------------------------------------------------------------------

_GPUHUNT_HEADER = (
    "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size,"
    "gpu_vendor,flags,cpu_arch,provider_data"
)
GPUHUNT_COLUMNS = _GPUHUNT_HEADER.split(",")


def gpuhunt_row(name, location, price, count, gpu, memory, spot="False", flags=""):
    return {
        "instance_name": name, "location": location, "price": price, "cpu": 96, "memory": 1152.0,
        "gpu_count": count, "gpu_name": gpu, "gpu_memory": memory, "spot": spot, "flags": flags,
        "gpu_vendor": "nvidia", "cpu_arch": "x86", "provider_data": "{}",
    }  # fmt: skip


GPUHUNT = {
    "aws": [
        gpuhunt_row("p5.48xlarge", "us-east-1", 55.04, 8, "H100", 80.0),
        gpuhunt_row("p5.48xlarge", "us-east-1", 21.5, 8, "H100", 80.0, "True"),
        gpuhunt_row("p4d.24xlarge", "us-east-1", 21.96, 8, "A100", 40.0),
        gpuhunt_row("c5.xlarge", "us-east-1", 0.17, 0, "", ""),
    ],
    "gcp": [
        gpuhunt_row("a3-highgpu-8g", "us-central1-a", 88.49, 8, "H100", 80.0),
        gpuhunt_row("a3-highgpu-8g", "us-central1-b", 88.49, 8, "H100", 80.0),
        gpuhunt_row("a3-highgpu-1g", "us-central1-a", 11.06, 1, "H100", 80.0),
        gpuhunt_row("a2-highgpu-1g", "us-central1-a", 1.8, 1, "A100", 40.0, "True"),
        gpuhunt_row("a2-highgpu-1g", "us-central1-f", 1.6, 1, "A100", 40.0, "True"),
        gpuhunt_row("a4-highgpu-8g", "us-east4-b", 44.0, 8, "B200", 180.0, "True", "gcp-a4"),
        gpuhunt_row("a4-highgpu-8g", "us-east4-b", 69.0, 8, "B200", 180.0,
                    flags="gcp-dws-calendar-mode gcp-a4"),
        gpuhunt_row("v5p-8", "us-east5-a", 16.8, 1, "v5p-8", 95.0),
        gpuhunt_row("v5p-16", "us-east5-a", 33.6, 1, "v5p-16", 190.0),
        gpuhunt_row("v5litepod-4", "us-west4-a", 2.04, 1, "v5litepod-4", 64.0, "True"),
    ],
    "nebius": [
        gpuhunt_row("gpu-h200-sxm_8gpu", "eu-north1", 28.0, 8, "H200", 141.0),
        gpuhunt_row("gpu-h200-sxm_8gpu", "eu-north1", 12.0, 8, "H200", 141.0, flags="nebius-new"),
    ],
    "oci": [
        gpuhunt_row("VM.GPU.A10.1", "eu-frankfurt-1", 2.0, 1, "A10", 24.0),
        gpuhunt_row("VM.GPU.L40S.1", "us-ashburn-1", 1.75, 1, "L40S", 48.0, "True", "oci-spot"),
    ],
    "runpod": [
        gpuhunt_row("NVIDIA H100 80GB HBM3", "US-KS-2", 23.92, 8, "H100", 80.0),
        gpuhunt_row("NVIDIA H100 80GB HBM3", "US-KS-2", 28.4, 8, "H100", 80.0,
                    flags="runpod-cluster"),
        gpuhunt_row("NVIDIA H100 PCIe", "CA", 1.99, 1, "H100", 80.0),
        gpuhunt_row("cpu3c-2-4", "US-KS-2", 0.06, 0, "", "", flags="runpod-cpu"),
    ],
}  # fmt: skip


def gpuhunt_zip(provider, rows) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{provider}.csv", table(GPUHUNT_COLUMNS, rows))
    return out.getvalue()


def gpuhunt():
    routes = {}
    for theirs in ("aws", "azure", "gcp", "oci", "lambdalabs", "nebius", "runpod", "verda",
                   "cloudrift"):  # fmt: skip
        routes[f"/v3/{theirs}/version"] = as_text(VERSION, kind="binary/octet-stream")
        data = gpuhunt_zip(theirs, GPUHUNT.get(theirs, []))
        routes[f"/v3/{theirs}/{VERSION}/catalog.zip"] = Reply(
            data,
            kind="application/zip",
            headers={"Last-Modified": f"{YESTERDAY:%a, %d %b %Y} 20:40:00 GMT"},
        )
    return routes


# --- gpu-price-feed ------------------------------------------------------------------------------


def feed_row(provider, raw, usd, family, form, vram, notes="", count=1, **more):
    return {
        "available": None, "currency": "USD", "gpu_count": count, "gpu_family": family,
        "gpu_form": form, "gpu_form_source": "provider" if form else "unknown",
        "gpu_key": f"{family} {vram}GB", "gpu_model_raw": raw, "gpu_partition": None,
        "gpu_recognised": True, "listing_url": "https://example.org/", "notes": notes,
        "price_per_gpu_hr": usd, "price_per_gpu_hr_usd": usd, "price_total_hr": usd * count,
        "price_total_hr_usd": usd * count, "pricing_type": "on-demand", "provider": provider,
        "ram_gb": 120, "region": None, "vcpu": 30, "vram_gb": vram,
    } | more  # fmt: skip


GPU_PRICE_FEED = [
    feed_row("datacrunch", "H100 SXM5 80GB", 3.74, "H100", "SXM", 80,
             "instance type 1H100.80S.30V"),
    feed_row("datacrunch", "H100 SXM5 80GB", 1.87, "H100", "SXM", 80,
             "instance type 1H100.80S.30V, interruptible", pricing_type="spot"),
    feed_row("lambdalabs", "NVIDIA A100 SXM", 2.79, "A100", "SXM", 80,
             "8x config, storage 5.8 TiB SSD, excludes sales tax", 8),
    feed_row("lambdalabs", "NVIDIA A100 SXM", 1.99, "A100", "SXM", 40,
             "8x config, storage 5.8 TiB SSD, excludes sales tax", 8),
    feed_row("runpod", "NVIDIA H100 80GB HBM3", 2.69, "H100", "SXM", 80,
             "community cloud; stock Low; up to 8 GPUs", gpu_model_alt="H100 SXM"),
    feed_row("runpod", "NVIDIA H100 80GB HBM3", 2.69, "H100", "SXM", 80,
             "community cloud, interruptible; stock Low; up to 8 GPUs", gpu_model_alt="H100 SXM",
             pricing_type="spot"),
    feed_row("runpod", "NVIDIA RTX PRO 6000 Blackwell Server Edition", 0.5,
             "RTX PRO 6000 Blackwell", "Server", 24, "secure cloud; stock Low; up to 1 GPUs",
             gpu_partition="MIG"),
    feed_row("digitalocean", "NVIDIA HGX H100", 4.41, "H100", "SXM", 80, "self serve"),
    feed_row("digitalocean", "AMD Instinct™ MI300X", 1.9, "MI300X", None, 192,
             "12 month commitment, contact sales", pricing_type="reserved-12mo"),
    feed_row("scaleway", "B300-SXM", 7.5, "B300", "SXM", 288, "instance type B300-SXM-8-288G", 8,
             currency="EUR", price_total_hr_usd=67.35, region="fr-par-2"),
    feed_row("vultr", "NVIDIA_L40S", 1.671, "L40S", "PCIe", 48,
             "plan vcg-l40s-16c-180g-48vram; GPU share 1; 48 GB of VRAM allocated",
             region="ord,sea"),
    feed_row("vultr", "NVIDIA_A16", 0.06, "A16", "PCIe", 2,
             "plan vcg-a16-2c-8g-2vram; GPU share 1/8; 2 GB of VRAM allocated", 0.125),
    feed_row("vultr", "NVIDIA_A100", 2.4, "A100", None, 80, "plan vcg-a100-12c-120g-80vram"),
    feed_row("vastai", "H100 SXM", 1.74, "H100", "SXM", 80, "verified host, reliability 0.967",
             region="US"),
]  # fmt: skip
GPU_PRICE_FEED_PATH = "/toolshedlabs-hash/gpu-price-feed/main/data/prices.json"


def gpu_price_feed():
    sellers = {key: {"status": "ok"} for key in ("datacrunch", "lambdalabs", "runpod", "vultr")}
    answer = {
        "collected_at": f"{YESTERDAY}T07:00:36+00:00", "offer_count": len(GPU_PRICE_FEED),
        "fx": {"eur_usd": 1.1225, "published": f"{YESTERDAY}", "source": "https://ecb.example/"},
        "offers": GPU_PRICE_FEED, "providers": sellers, "schema_version": 2,
    }  # fmt: skip
    return {GPU_PRICE_FEED_PATH: as_json(answer, kind="text/plain; charset=utf-8")}


# --- gpu-price-index -----------------------------------------------------------------------------


def observation(source, sku, model, usd, count=1, form="sxm", vram=80, **more):
    return {
        "source": source, "source_sku": sku, "gpu_model": model, "gpu_count": count,
        "usd_per_hour_total": usd, "commitment": "on_demand", "form_factor": form,
        "interconnect": "unknown", "vram_gb": vram, "region": None, "available": None,
        "reliability": None, "tier": 2, "observed_at": f"{YESTERDAY}T14:20:44.1Z", "payload": {},
        "currency": "USD", "price_kind": "quoted",
    } | more  # fmt: skip


GPU_PRICE_INDEX = [
    observation("shadeform:hyperstack", "H100_sxm5x8", "H100", 25.6, 8, available=True,
                region="US, Houston, TX"),
    observation("shadeform:crusoe", "A100_80Gx8", "A100_80G", 16.0, 8, "pcie", available=False),
    observation("runpod", "NVIDIA H100 80GB HBM3:secure", "NVIDIA H100 80GB HBM3", 3.99,
                payload={"display_name": "H100 SXM", "market": "secure"}),
    observation("runpod", "NVIDIA H100 80GB HBM3:community", "NVIDIA H100 80GB HBM3", 2.69,
                payload={"display_name": "H100 SXM"}, commitment="community"),
    observation("runpod", "NVIDIA B200:secure", "NVIDIA B200", 6.79, form="unknown", vram=180,
                payload={"display_name": "B200"}),
    observation("datacrunch", "2H100.80S.80V:ondemand", "H100 SXM5 80GB", 7.48, 2, vram=160),
    observation("datacrunch", "2H100.80S.80V:spot", "H100 SXM5 80GB", 3.74, 2, vram=160,
                commitment="spot"),
    observation("vastai", "H100 SXM:123", "H100 SXM", 1.9, vram=None),
    observation("curated:aws", "p5.48xlarge", "H100", 55.04, 8, tier=3),
    observation("shadeform:ori", "H100x2", "H100", 6.2, 2, "unknown", available=True),
    observation("shadeform:scaleway", "H100x1", "H100", 3.0, currency="EUR", available=True),
]  # fmt: skip
GPU_PRICE_INDEX_PATH = "/henryzhangpku/gpu-price-index/main"


def gpu_price_index():
    newest = f"{YESTERDAY}T142044Z.jsonl.gz"
    tape = (
        "index_code,index_date,revision,status,value,published_at,superseded_at,snapshot\n"
        f"GIX-H100,{YESTERDAY},1,published,3.59,{YESTERDAY}T14:20:44.1Z,,{newest}\n"
        "GIX-H100,2026-08-27,0,withheld,,2026-08-27T20:53:50.4Z,,2026-08-27T205350Z.jsonl.gz\n"
    )
    lines = "".join(json.dumps(row) + "\n" for row in GPU_PRICE_INDEX)
    return {
        f"{GPU_PRICE_INDEX_PATH}/series/index_values.csv": as_text(tape),
        f"{GPU_PRICE_INDEX_PATH}/snapshots/{newest}": Reply(
            gzip.compress(lines.encode()), kind="application/octet-stream"
        ),
    }


# Rows of the archive as they are there, then some that are wrong.
_ARCHIVE_HEADER = (
    "source,captured,month,week,sku,gpu_model,gpu_count,form_factor,interconnect,vram_gb,"
    "commitment,price_per_instance_hour,price_per_gpu_hour,currency,price_kind,basis,note,"
    "index_code,outcome,restated_per_gpu_hour,adjustments,discard_code,discard_detail"
)


def archived(source, captured, sku, model, count, form, vram, commitment, usd, basis="instance"):
    """One row of the archive, with the columns that are not read as they are for a usual one."""
    day = f"{captured[:4]}-{captured[4:6]}"
    return (
        f'{source},{captured},{day},{day}-01,"{sku}",{model},{count},{form},nvlink,{vram},'
        f"{commitment},{usd},{usd},USD,quoted,{basis},\"${usd}, under 'On demand'\",GIX-H100,"
        "restated,1.0,node_sizex0.92,,"
    )


ARCHIVE = [
    archived("coreweave", "20230119104731", "NVIDIA HGX H100 (GPU component)", "H100 SXM", 1, "sxm",
             80, "on_demand", 4.76, "gpu_component"),
    archived("runpod", "20230824055257", "H100 80GB SXM5 (communitySpotPrice)", "H100 SXM", 1,
             "sxm", 80, "spot", 2.49),
    archived("runpod", "20230824055257", "H100 80GB SXM5 (securePrice)", "H100 SXM", 1, "sxm", 80,
             "on_demand", 4.49),
    archived("runpod", "20230824055257", "H100 80GB SXM5 (communityPrice)", "H100 SXM", 1, "sxm",
             80, "community", 4.49),
    archived("datacrunch", "20240724124458", "8H100.80S.176V H100 SXM5 80GB [On demand price]",
             "H100 SXM", 8, "sxm", 80, "on_demand", 25.36),
    archived("datacrunch", "20240724124458", "8H100.80S.176V H100 SXM5 80GB [2-year price]",
             "H100 SXM", 8, "sxm", 80, "reserved", 19.02),
    archived("lambda", "20250320081441", "8x A100 SXM", "A100 SXM", 8, "sxm", 80, "on_demand",
             14.32),
    archived("lambda", "20250328114330", "8x A100 SXM", "A100 SXM", 8, "sxm", 80, "on_demand",
             14.32),
    archived("nebius", "20260402090033", "NVIDIA HGX H100 [On-demand, GPU-hour]", "H100 SXM", 1,
             "sxm", "", "on_demand", 2.95),
    archived("nebius", "20260712235400", "NVIDIA HGX H100 [On-demand, GPU-hour]", "H100 SXM", 1,
             "sxm", "", "on_demand", 3.85),
    archived("hyperstack", "20260414062405", "NVIDIA H100 [on_demand]", "H100", 1, "unknown", "",
             "on_demand", 1.9),
    archived("fluidstack", "20230111193654", "A100 [Hourly Price]", "A100 SXM", 1, "sxm", 80,
             "on_demand", 1.055),
    archived("voltagepark", "20250712040631", "On-Demand, Ethernet", "H100 SXM", 1, "sxm", "",
             "on_demand", 1990.0),
    archived("crusoe", "20260611182403", "H200", "H200 SXM", 8, "sxm", 141, "on_demand", 34.32),
    archived("crusoe", "20260611182403", "H200 on demand", "H200 SXM", 8, "sxm", 141, "on_demand",
             30.0),
    archived("crusoe", "in June", "H200", "H200 SXM", 8, "sxm", 141, "on_demand", 34.32),
]  # fmt: skip
ARCHIVE_PATH = f"{GPU_PRICE_INDEX_PATH}/backfill/observations.csv"


def archive(rows):
    return "\n".join([_ARCHIVE_HEADER, *rows, ""])


# --- SkyPilot ------------------------------------------------------------------------------------

SKYPILOT = {
    "aws": (
        "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,"
        "Region,AvailabilityZone,Arch\n"
        "p5.48xlarge,H100,8.0,192.0,2048.0,x,55.04,23.0,us-east-2,use2-az1,x86_64\n"
        "p5.48xlarge,H100,8.0,192.0,2048.0,x,55.04,19.0,us-east-2,use2-az2,x86_64\n"
        "p4d.24xlarge,A100,8.0,96.0,1152.0,x,21.96,21.96,us-east-2,use2-az1,x86_64\n"
        "p4d.24xlarge,A100,8.0,96.0,1152.0,x,21.96,2.196,us-west-2,usw2-az1,x86_64\n"
        "m5.large,,,2.0,8.0,,0.096,0.04,us-east-2,use2-az1,x86_64\n"
    ),
    "gcp": (
        "InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,"
        "AvailabilityZone,Price,SpotPrice\n"
        "a2-highgpu-1g,12.0,85.0,,,,us-central1,us-central1-a,0.73948,0.36975\n"
        "a2-highgpu-1g,12.0,85.0,,,,us-west9,us-west9-a,0.73948,0.36975\n"
        "n1-highmem-8,8.0,52.0,,,,us-central1,us-central1-a,0.47321,0.09962\n"
        ",,,A100,1.0,x,us-central1,us-central1-a,2.93391,1.46699\n"
        ",,,tpu-v6e-8,1,tpu-v6e-8,us-central1,us-central1-a,21.6,10.206\n"
        ",,,tpu-v6e-1,1,tpu-v6e-1,us-central1,us-central1-a,2.7,1.27575\n"
        ",,,tpu-v6e-1,1,tpu-v6e-1,africa-south1,africa-south1-a,2.7,0.1\n"  # new, and cheap
        ",,,tpu-v6e-1,1,tpu-v6e-1,us-central2,us-central2-b,700.0,700.0\n"
        ",,,tpu-v5p-8,1,tpu-v5p-8,us-east5,us-east5-a,16.8,5.2\n"
    ),
    "vast": (
        "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,SpotPrice,Region,"
        "GpuInfo\n1x-H100_SXM-32-65536,H100_SXM,1.0,32.0,64.0,2.1,0.9,US,x\n"
    ),
    "hyperstack": (
        "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,SpotPrice,Region,"
        "GpuInfo\nn3-H100x8,H100,8.0,252.0,1440.0,15.2,,CANADA-1,x\n"
    ),
}
SKYPILOT_EMPTY = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,SpotPrice,Region,GpuInfo\n"
)
SKYPILOT_CLOUDS = (
    "aws", "gcp", "azure", "lambda", "runpod", "vast", "verda", "nebius", "oci", "shadeform",
    "hyperstack", "spheron", "yotta", "lium", "cudo", "jarvislabs", "hyperbolic",
)  # fmt: skip
SKYPILOT_V9 = ("aws", "gcp", "lambda", "nebius", "oci", "vast", "cudo")
SKYPILOT_FIRST = "/skypilot-org/skypilot-catalog/master/catalogs/{}/{}/vms.csv"
SKYPILOT_MIRROR = "/catalogs/{}/{}/vms.csv"


def skypilot():
    return {
        SKYPILOT_FIRST.format("v9" if cloud in SKYPILOT_V9 else "v8", cloud): as_text(
            SKYPILOT.get(cloud, SKYPILOT_EMPTY)
        )
        for cloud in SKYPILOT_CLOUDS
    }


# --- AWS -----------------------------------------------------------------------------------------

_AWS_HEADER = (
    "SKU,OfferTermCode,RateCode,TermType,PriceDescription,EffectiveDate,StartingRange,EndingRange,"
    "Unit,PricePerUnit,Currency,RelatedTo,LeaseContractLength,PurchaseOption,OfferingClass,"
    "Product Family,serviceCode,Location,Location Type,Instance Type,Current Generation,"
    "Instance Family,vCPU,Tenancy,Operating System,License Model,Pre Installed S/W,CapacityStatus,"
    "MarketOption,Region Code"
)
AWS_COLUMNS = _AWS_HEADER.split(",")
AWS_PREFACE = (
    '"FormatVersion","v1.0"\n"Disclaimer","This pricing list is for informational purposes only."\n'
    f'"Publication Date","{YESTERDAY}T22:53:08Z"\n"Version","20261120225308"\n'
    '"OfferCode","AmazonEC2"\n'
)


def aws_row(instance_type="p5.48xlarge", price="55.0400000000", **more):
    return {
        "SKU": "AAAA", "OfferTermCode": "JRTCKXETXF", "TermType": "OnDemand", "Unit": "Hrs",
        "PricePerUnit": price, "Currency": "USD", "Product Family": "Compute Instance",
        "Instance Type": instance_type, "Tenancy": "Shared", "Operating System": "Linux",
        "License Model": "No License required", "Pre Installed S/W": "NA",
        "CapacityStatus": "Used", "MarketOption": "OnDemand",
    } | more  # fmt: skip


def aws_reserved(price, length, option="No Upfront", kind="standard", **more):
    return aws_row(
        price=price, TermType="Reserved", LeaseContractLength=length, PurchaseOption=option,
        OfferingClass=kind, **more,
    )  # fmt: skip


AWS_ROWS = [
    aws_row(),
    aws_row("p4d.24xlarge", "21.9576000000"),
    aws_reserved("62.0", "1yr"),
    aws_reserved("39.0", "3yr"),
    aws_reserved("0.0000000000", "1yr", "All Upfront"),
    aws_reserved("400000", "3yr", "All Upfront", Unit="Quantity"),
    aws_reserved("38.0", "1yr", kind="convertible"),
    aws_row(price="0.0000000000", MarketOption="CapacityBlock"),
    aws_row(price="0.0000000000", CapacityStatus="AllocatedCapacityReservation"),
    aws_row(price="64.0", **{"Operating System": "Windows"}),
    aws_row(price="60.0", Tenancy="Dedicated"),
    aws_row(price="70.0", **{"Pre Installed S/W": "SQL Ent"}),
    aws_row("m5.large", "0.0960000000"),
]


def aws_csv(rows=AWS_ROWS) -> str:
    return AWS_PREFACE + table(AWS_COLUMNS, rows, csv.QUOTE_ALL)


def aws_path(region):
    return f"/offers/v1.0/aws/AmazonEC2/current/{region}/index.csv"


AWS_REGIONS = ("us-east-1", "us-east-2", "us-west-2", "eu-north-1", "eu-central-1",
               "ap-northeast-1")  # fmt: skip


def aws_on_demand():
    return {aws_path(region): as_text(aws_csv(), kind="text/csv") for region in AWS_REGIONS}


def aws_spot_js(price="19.5"):
    def size(name, usd):
        columns = [
            {"name": "linux", "prices": {"USD": usd}},
            {"name": "mswin", "prices": {"USD": "99.0"}},
        ]
        return {"size": name, "valueColumns": columns}

    sizes = [size("p5.48xlarge", price), size("p4d.24xlarge", "N/A*"), size("m5.large", "0.03")]
    families = [{"type": "gpuCurrentGen", "sizes": sizes}]
    regions = [{"region": name, "instanceTypes": families} for name in ("us-east", "eu-north-1")]
    config = {"rate": "perhr", "currencies": ["USD"], "valueColumns": ["linux", "mswin"],
              "regions": regions}  # fmt: skip
    text = f"callback({json.dumps({'vers': 0.01, 'config': config})});"
    return as_text(text, kind="application/x-javascript")


def aws_spot():
    advisor = {
        "global_rate": "<10%",
        "ranges": [
            {"index": i, "label": label, "dots": i, "max": 1}
            for i, label in enumerate(["<5%", "5-10%", "10-15%", "15-20%", ">20%"])
        ],
        "spot_advisor": {
            "us-east-1": {"Linux": {"p5.48xlarge": {"s": 65, "r": 2}}, "Windows": {}},
            "eu-north-1": {"Linux": {"p5.48xlarge": {"s": -62, "r": 4}}},
        },
    }
    return {
        "/spot.js": aws_spot_js(),
        "/spot-advisor-data.json": as_json(advisor, kind="binary/octet-stream"),
    }


# --- Azure ---------------------------------------------------------------------------------------


def azure_item(price, meter="ND96isr H100 v5", **more):
    return {
        "currencyCode": "USD", "tierMinimumUnits": 0.0, "retailPrice": price, "unitPrice": price,
        "armRegionName": "eastus", "location": "US East", "meterName": meter, "skuName": meter,
        "effectiveStartDate": "2026-01-01T00:00:00Z", "serviceName": "Virtual Machines",
        "productName": "Virtual Machines NDv5 Series", "serviceFamily": "Compute",
        "unitOfMeasure": "1 Hour", "type": "Consumption", "isPrimaryMeterRegion": True,
        "armSkuName": "Standard_ND96isr_H100_v5",
    } | more  # fmt: skip


AZURE_FIRST = [
    azure_item(
        98.32,
        savingsPlan=[
            {"unitPrice": 60.0, "retailPrice": 60.0, "term": "1 Year"},
            {"unitPrice": 45.0, "retailPrice": 45.0, "term": "3 Years"},
        ],
    ),
    azure_item(35.0, "ND96isr H100 v5 Spot"),
    azure_item(20.0, "ND96isr H100 v5 Low Priority"),
    azure_item(110.0, productName="Virtual Machines NDv5 Series Windows"),
    azure_item(98.32, productName="NDv5 Series Cloud Services"),
    azure_item(50.0, armSkuName="Standard_ND96isr_H100_v5_Promo"),
]
AZURE_SECOND = [
    azure_item(525_600.0, type="Reservation", reservationTerm="1 Year"),
    azure_item(70_000.0, unitOfMeasure="1/Month"),
    azure_item(90.0, currencyCode="EUR"),
    azure_item(98.0, type="DevTestConsumption"),
    azure_item(0.0, "NC24ads A100 v4", armSkuName="Standard_NC24ads_A100_v4"),
    azure_item(0.5, "D4s v5", armSkuName="Standard_D4s_v5"),
]


def azure_page(items, link=None):
    return as_json(
        {"BillingCurrency": "USD", "Items": items, "NextPageLink": link, "Count": len(items)},
        kind="application/json; charset=utf-8",
    )


def azure():
    def answer(asked):
        if "eastus'" not in asked.query["$filter"][0]:
            return azure_page([])
        if "$skip" in asked.query:
            return azure_page(AZURE_SECOND)
        host = asked.headers["host"]
        wanted = asked.query["$filter"][0].replace(" ", "%20").replace("'", "%27")
        link = f"http://{host}/api/retail/prices?$filter={wanted}&$skip=1000"
        return azure_page(AZURE_FIRST, link)

    return {"/api/retail/prices": answer}


# --- GCP -----------------------------------------------------------------------------------------

GCP_YAML = """---
about:
  copyright: Apache-2.0
compute:
  instance:
    a3-highgpu-8g:
      cost:
        us-central1:
          hour: 88.490000
          hour_spot: 27.720000
          month: 64597.7
          month_1y: 44165.000000
          month_3y: 28470.000000
        africa-south1:
          hour: 0
          month: 0
          month_1y: 0
          month_3y: 0
      cpu: 208
      ram: 1872
    a2-highgpu-1g:
      cost:
        us-central1:
          hour: 3.673385
          hour_spot: 1.83674
          month: 2681.57105
          month_1y: 2681.57105
          month_3y: 938.55
    a3-highgpu-1g:
      cost:
        us-central1:
          hour: 11.06
          hour_spot: 3.46
    e2-standard-2:
      cost:
        us-central1:
          hour: 0.067
"""
GCP_YAML_PATH = "/Cyclenerd/google-cloud-pricing-cost-calculator/master/pricing.yml"


def gcp_yaml():
    return {GCP_YAML_PATH: as_text(GCP_YAML)}


def sku(description, nanos, usage="OnDemand", unit="h", units="0", currency="USD"):
    price = {"currencyCode": currency, "units": units, "nanos": nanos}
    rate = {"startUsageAmount": 0, "unitPrice": price}
    return {
        "name": "services/6F81-5844-456A/skus/0000-0000-0000", "skuId": "0000-0000-0000",
        "description": description,
        "category": {"serviceDisplayName": "Compute Engine", "resourceFamily": "Compute",
                     "resourceGroup": "GPU", "usageType": usage},
        "serviceRegions": ["us-central1"],
        "pricingInfo": [{"pricingExpression": {"usageUnit": unit, "tieredRates": [rate]},
                         "currencyConversionRate": 1}],
    }  # fmt: skip


SKUS = [
    [
        sku("A2 Instance Core running in Americas", 31_611_000),
        sku("A2 Instance Ram running in Americas", 4_237_000, unit="GiBy.h"),
        sku("Nvidia Tesla A100 GPU running in Americas", 933_908_000, units="2"),
    ],
    [
        sku("Spot Preemptible A2 Instance Core running in Americas", 15_800_000, "Preemptible"),
        sku("Spot Preemptible A2 Instance Ram running in Americas", 2_100_000, "Preemptible",
            unit="GiBy.h"),
        sku("Nvidia Tesla A100 GPU attached to Spot Preemptible VMs running in Americas",
            466_954_000, "Preemptible", units="1"),
        sku("Nvidia H100 80GB GPU running in Americas", 0, unit="mo", units="5000"),
        sku("Commitment v1: A2 Cpu in Americas for 1 Year", 19_915_000, "Commit1Yr"),
    ],
]  # fmt: skip


def gcp_skus():
    def answer(asked):
        if asked.headers.get("x-goog-api-key") != "gcp-secret":
            return Reply(b"{}", status=403)
        second = asked.query.get("pageToken") == ["next"]
        page = {"skus": SKUS[1 if second else 0], "nextPageToken": "" if second else "next"}
        return as_json(page)

    return {"/v1/services/6F81-5844-456A/skus": answer}


# --- marketplaces and small clouds ---------------------------------------------------------------


def runpod_type(name, memory, secure, left=(), **more):
    return {
        "id": f"NVIDIA {name}", "displayName": name, "memoryInGb": memory, "secureCloud": True,
        "communityCloud": False, "securePrice": secure, "communityPrice": 0.0,
        "secureSpotPrice": None, "communitySpotPrice": None, "maxGpuCountSecureCloud": 8,
        "maxGpuCountCommunityCloud": 0,
        **{f"n{n}": {"stockStatus": "Low" if n in left else None} for n in (1, 2, 4, 8)},
    } | more  # fmt: skip


def runpod_centre(name, left, listed=True):
    """A data centre with the stock of each GPU type by count."""
    return {"id": name, "listed": listed} | {
        f"n{n}": [
            {"gpuTypeId": f"NVIDIA {gpu}", "stockStatus": counts.get(n)}
            for gpu, counts in left.items()
        ]
        for n in (1, 2, 4, 8)
    }


RUNPOD = {
    "dataCenters": [
        runpod_centre("US-KS-2", {"H100 SXM": {1: "High", 2: "High", 4: "Low", 8: "Low"},
                                  "A100 PCIe": {1: "out_of_stock"}}),
        runpod_centre("EU-RO-1", {"H100 SXM": {1: "Medium"}}),
        runpod_centre("US-OLD-1", {"H100 SXM": {8: "High"}}, listed=False),
        {"id": "AP-IN-1", "listed": True, "n1": None},
    ],
    "gpuTypes": [
        runpod_type("H100 SXM", 80, 2.99, (1, 2), secureSpotPrice=1.75, communityCloud=True,
                    communityPrice=2.69, communitySpotPrice=2.69, maxGpuCountCommunityCloud=8),
        runpod_type("A100 PCIe", 80, 1.64),
        runpod_type("RTX 3070", 8, 0.13),
    ],
}  # fmt: skip


def runpod():
    return {"/graphql": as_json({"data": RUNPOD})}


def vast_offer(dph, name="H100 SXM", gpus=8, ram=81559, place="Texas, US", **more):
    return {
        "id": 1, "gpu_name": name, "num_gpus": gpus, "gpu_ram": ram, "dph_base": dph - 0.1,
        "dph_total": dph, "min_bid": dph / 3, "storage_cost": 0.15, "geolocation": place,
        "reliability2": 0.995, "verification": "verified", "rentable": True, "hosting_type": 1,
    } | more  # fmt: skip


VAST = {
    "H100 SXM": [
        vast_offer(17.6), vast_offer(16.0), vast_offer(18.4), vast_offer(0.4),
        vast_offer(2.1, gpus=1, place=None), vast_offer(15.0, reliability2=0.9),
    ],
}  # fmt: skip


def vast():
    def answer(asked):
        wanted = json.loads(asked.query["q"][0])
        return as_json({"offers": VAST.get(wanted["gpu_name"]["eq"], [])})

    return {"/api/v0/bundles/": answer}


def lambda_type(name, gpu, cents, gpus, regions):
    return {
        "instance_type": {
            "name": name, "description": f"{gpus}x {gpu}", "gpu_description": gpu,
            "price_cents_per_hour": cents,
            "specs": {"vcpus": 208, "memory_gib": 1800, "storage_gib": 22528, "gpus": gpus},
        },
        "regions_with_capacity_available": [{"name": r, "description": r} for r in regions],
    }  # fmt: skip


LAMBDA = {
    "gpu_8x_h100_sxm5": lambda_type(
        "gpu_8x_h100_sxm5", "H100 (80 GB SXM5)", 3192, 8, ["us-west-3", "us-east-1"]
    ),
    "gpu_8x_a100_80gb_sxm4": lambda_type("gpu_8x_a100_80gb_sxm4", "A100 (80 GB SXM4)", 1432, 8, []),
    "cpu_4x_general": lambda_type("cpu_4x_general", "N/A", 20, 0, ["us-west-1"]),
}


def lambda_cloud():
    def answer(asked):
        good = asked.headers.get("authorization") == "Bearer lambda-secret"
        return as_json({"data": LAMBDA}) if good else Reply(b"{}", status=401)

    return {"/api/v1/instance-types": answer}


def verda_type(name, gpu, count, total_gb, price, spot, currency="usd"):
    return {
        "best_for": [], "cpu": {"description": "30 CPU", "number_of_cores": 30},
        "currency": currency, "description": "Dedicated Hardware Instance",
        "gpu": {"description": gpu, "number_of_gpus": count},
        "gpu_memory": {"description": "GPU RAM", "size_in_gigabytes": total_gb},
        "id": "c01dd00d-0000-480b-ae4e-d429115d055b", "instance_type": name,
        "memory": {"description": "120GB RAM", "size_in_gigabytes": 120}, "model": gpu[3:],
        "price_per_hour": price, "spot_price": spot,
    }  # fmt: skip


VERDA = [
    verda_type("1H100.80S.30V", "1x H100 SXM5 80GB", 1, 80, "2.50", "1.10"),
    verda_type("8H200.141S.176V", "8x H200 SXM5 141GB", 8, 1128, "24.00", "9.60"),
    verda_type("8B200.240V", "8x B200 SXM6 180GB", 8, 1440, "36.00", None, "eur"),
    verda_type("CPU.120V.480G", "", 0, 0, "3.00", "1.50"),
]
ECB = f"""<?xml version="1.0" encoding="UTF-8"?>
<gesmes:Envelope xmlns:gesmes="http://www.gesmes.org/xml/2002-08-01"
 xmlns="http://www.ecb.int/vocabulary/2002-08-01/eurofxref">
<gesmes:subject>Reference rates</gesmes:subject>
<Cube><Cube time='{YESTERDAY}'><Cube currency='USD' rate='1.25'/>
<Cube currency='JPY' rate='160.0'/></Cube></Cube></gesmes:Envelope>
"""
ECB_PATH = "/stats/eurofxref/eurofxref-daily.xml"


VERDA_KEYS = {"VERDA_CLIENT_ID": "verda-client", "VERDA_CLIENT_SECRET": "verda-secret"}


def verda():
    def token(asked):
        wanted = {"grant_type": "client_credentials", "client_id": "verda-client",
                  "client_secret": "verda-secret"}  # fmt: skip
        if json.loads(asked.body or b"{}") != wanted:
            return Reply(b"{}", status=401)
        return as_json({"access_token": "verda-token", "refresh_token": "r", "expires_in": 3600,
                        "scope": "cloud-api-v1", "token_type": "Bearer"})  # fmt: skip

    def availability(asked):
        if asked.headers.get("authorization") != "Bearer verda-token":
            return Reply(b"{}", status=401)
        spot = asked.query["is_spot"] == ["true"]
        left = {"FIN-01": ["1H100.80S.30V", "CPU.120V.480G"],
                "FIN-03": ["8H200.141S.176V"] if spot else ["1H100.80S.30V"]}  # fmt: skip
        return as_json([{"location_code": k, "availabilities": v} for k, v in left.items()])

    return {
        "/v1/instance-types": as_json(VERDA), ECB_PATH: as_text(ECB, kind="text/xml"),
        "/v1/oauth2/token": token, "/v1/instance-availability": availability,
    }  # fmt: skip


def vultr_plan(name, usd, spot, places, **more):
    return {
        "id": name, "vcpu_count": 16, "ram": 184320, "disk": 1400, "hourly_cost": usd,
        "monthly_cost": usd * 730, "hourly_cost_preemptible": spot, "locations": places,
        "type": "vcg", "deploy_ondemand": True, "deploy_preemptible": spot is not None,
    } | more  # fmt: skip


def vultr_cloud(name, usd, gpu, count, vram, places=("ewr",), **more):
    return vultr_plan(
        name, usd, None, list(places), gpu_type=gpu, gpu_count=count, gpu_vram_gb=vram, **more
    )


VULTR_CLOUD = [
    vultr_cloud("vcg-l40s-16c-180g-48vram", 1.671, "NVIDIA_L40S", "1", 48, ("ord", "sea"),
                location_cost={"sea": {"hourly_cost": 1.7}}),
    vultr_cloud("vcg-a100-24c-240g-160vram", 4.794, "NVIDIA_A100", 2, 160),
    vultr_cloud("vcg-a100-1c-6g-4vram", 0.123, "NVIDIA_A100", "1/20", 4),
]  # fmt: skip
VULTR_METAL = [
    vultr_plan("vbm-256c-2048gb-8-mi300x-gpu", 17.52, 14.72, ["ord"], type="NVMe"),
    vultr_plan("vbm-112c-2048gb-8-a100-gpu", 20.0, 12.4, ["ewr"], deploy_ondemand=False),
    vultr_plan("vbm-24c-256gb-amd", 0.99, None, ["ewr"]),
]  # fmt: skip


def vultr():
    return {
        "/v2/plans": as_json({"plans": VULTR_CLOUD, "meta": {"total": 3, "links": {"next": ""}}}),
        "/v2/plans-metal": as_json({"plans_metal": VULTR_METAL, "meta": {"total": 3}}),
    }


def digitalocean_size(slug, usd, regions, gpu=None, count=0, vram=0):
    size = {"slug": slug, "memory": 1966080, "vcpus": 160, "price_monthly": usd * 744,
            "price_hourly": usd, "regions": regions, "available": bool(regions)}  # fmt: skip
    if gpu:
        memory = {"amount": vram, "unit": "gib"}
        size["gpu_info"] = {"count": count, "vram": memory, "model": gpu}
    return size


DIGITALOCEAN = [
    [
        digitalocean_size("s-1vcpu-512mb-10gb", 0.00595, ["ams3", "fra1"]),
        digitalocean_size("gpu-h100x8-640gb", 35.28, ["nyc2", "tor1"], "nvidia_h100", 8, 640),
    ],
    [
        digitalocean_size("gpu-mi300x8-1536gb", 20.72, ["atl1"], "amd_mi300x", 8, 1536),
        digitalocean_size("gpu-h200x1-141gb", 4.47, [], "nvidia_h200", 1, 141),
    ],
]


def digitalocean():
    def answer(asked):
        if asked.headers.get("authorization") != "Bearer do-secret":
            return Reply(b"{}", status=401)
        if asked.query.get("page") == ["2"]:
            return as_json({"sizes": DIGITALOCEAN[1], "links": {}, "meta": {"total": 4}})
        link = f"http://{asked.headers['host']}/v2/sizes?page=2&per_page=200"
        pages = {"pages": {"next": link, "last": link}}
        return as_json({"sizes": DIGITALOCEAN[0], "links": pages, "meta": {"total": 4}})

    return {"/v2/sizes": answer}


def hyperstack_flavor(name, gpu, count, region="CANADA-1", stock=True):
    return {"id": 1, "name": name, "region_name": region, "cpu": 252, "ram": 1440.0, "disk": 100,
            "gpu": gpu, "gpu_count": count, "stock_available": stock}  # fmt: skip


HYPERSTACK = [
    hyperstack_flavor("n3-H100x8-NVLink", "H100-80G-PCIe-NVLink", 8),
    hyperstack_flavor("n3-A100-SXM4x8", "A100-80G-SXM4", 8, "NORWAY-1"),
    hyperstack_flavor("n3-H100x1-spot", "H100-80G-PCIe-spot", 1),
    hyperstack_flavor("n3-H200-SXM5x8", "H200-141G-SXM5", 8, stock=False),
    hyperstack_flavor("n3-FANCYx8", "FANCY-80G", 8),
    hyperstack_flavor("n1-cpu-small", "", 0),
]


def hyperstack():
    book = {"H100-80G-PCIe-NVLink": 2.6, "A100-80G-SXM4": "1.6", "H100-80G-PCIe-spot": 2.0,
            "H200-141G-SXM5": 3.99}  # fmt: skip
    prices = [
        {"id": i, "name": name, "value": value, "original_value": value, "discount_applied": False,
         "start_time": None, "end_time": None}
        for i, (name, value) in enumerate(book.items())
    ]  # fmt: skip
    groups = [{"gpu": f["gpu"], "region_name": f["region_name"], "flavors": [f]}
              for f in HYPERSTACK]  # fmt: skip

    def keyed(value):
        def answer(asked):
            good = asked.headers.get("api_key") == "hyperstack-secret"
            return as_json(value) if good else Reply(b"{}", status=401)

        return answer

    flavors = {"status": True, "message": "Getting flavors successful", "data": groups}
    return {"/v1/pricebook": keyed(prices), "/v1/core/flavors": keyed(flavors)}


def oci_part(number, name, value, metric="GPU Per Hour", currency="USD"):
    prices = [{"model": "PAY_AS_YOU_GO", "value": value}, {"model": "MONTHLY_COMMIT", "value": 1}]
    return {
        "partNumber": number, "displayName": name, "metricName": metric,
        "serviceCategory": "Compute - GPU",
        "currencyCodeLocalizations": [{"currencyCode": currency, "prices": prices}],
    }  # fmt: skip


OCI = [
    oci_part("B98415", "Oracle Cloud Infrastructure - Compute - GPU - H100", 10.0),
    oci_part("B109485", "Compute - GPU - MI300X", 6.0),
    oci_part("B110519", "Compute - GPU - H200", 7440.0, metric="GPU Per Month"),
    oci_part("B110978", "Compute - GPU - B200", 14.0, currency="EUR"),
    oci_part("B88514", "Compute - Standard - E2", 0.03, metric="OCPU Per Hour"),
]


def oci():
    path = "/pls/apex/cetools/api/v1/products/"
    return {path: as_json({"lastUpdated": "2026-11-20T00:00:00Z", "items": OCI})}


ROUTES = {
    "gpuhunt": gpuhunt, "skypilot": skypilot, "gpu_price_feed": gpu_price_feed,
    "gpu_price_index": gpu_price_index,
    "aws_on_demand": aws_on_demand, "aws_spot": aws_spot, "azure": azure, "gcp_yaml": gcp_yaml,
    "gcp_skus": gcp_skus, "runpod": runpod, "vast": vast, "lambda": lambda_cloud, "verda": verda,
    "vultr": vultr, "digitalocean": digitalocean, "hyperstack": hyperstack, "oci": oci,
}  # fmt: skip
KEYS = {
    "GCP_API_KEY": "gcp-secret", "LAMBDA_API_KEY": "lambda-secret",
    "DIGITALOCEAN_TOKEN": "do-secret", "HYPERSTACK_API_KEY": "hyperstack-secret",
}  # fmt: skip


def replica() -> dict:
    """The routes of every source on one server, which no two of them share a path of."""
    routes: dict = {}
    for made in ROUTES.values():
        routes |= made()
    return routes


def mirrors(base: str) -> dict[str, str]:
    """The environment that sends every source to that server."""
    return {f"RUNCAST_PRICE_URL_{name.upper()}": base for name in ROUTES} | KEYS
