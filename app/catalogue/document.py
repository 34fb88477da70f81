"""Accelerators and offers on a terminal, as `app/catalogue/as_json.py` describes them."""

from __future__ import annotations

from rich.table import Table

from app.catalogue.as_json import Fact, Gpu, Gpus, OfferRow, Offers
from app.document import format as fmt
from app.document import vocabulary
from app.document.terminal import console, cut, print_wrapped

ASSUMED = "?"
# Heads of the columns of `runcast gpus`, the fact that each shows, and the unit it is shown in.
GPU_COLUMNS = (
    ("16-bit", "bf16_flops_per_s", "TFLOP/s"),
    ("FP8", "fp8_flops_per_s", "TFLOP/s"),
    ("FP4", "fp4_flops_per_s", "TFLOP/s"),
    ("Measured", "matmul_flops_per_s", "TFLOP/s"),
    ("Memory", "memory_bytes", "GiB"),
    ("Bandwidth", "memory_bytes_per_s", "GB/s"),
    ("Link", "scale_up_bytes_per_s", "GB/s"),
    ("Domain", "scale_up_domain", "count"),
    ("Network", "scale_out_bytes_per_s", "Gbit/s"),
)
SELLER_WIDTH, REGION_WIDTH, LEAST_SOURCE = 24, 12, 10


def print_gpus(gpus: Gpus) -> None:
    """One line an accelerator; a figure that no source prints is marked."""
    table = _table()
    table.add_column("GPU", no_wrap=True)
    for head, _, _ in GPU_COLUMNS:
        table.add_column(head, justify="right", no_wrap=True)
    for gpu in gpus["gpus"]:
        table.add_row(gpu["name"], *(_figure(gpu, q, unit) for _, q, unit in GPU_COLUMNS))
    out = console()
    out.print(table)
    out.print()
    print_wrapped(
        out,
        "Dense peaks and the best measured 16-bit matmul in TFLOP/s; memory in GiB, its bandwidth "
        "and the scale-up link (one direction) in GB/s, how many GPUs share the link; network in "
        f"Gbit/s a GPU. {ASSUMED} derived or assumed, {fmt.MISSING} not printed by any source. "
        "Sources: --json.",
    )


def _figure(gpu: Gpu, quantity: str, unit: str) -> str:
    fact: Fact | None = gpu["facts"].get(quantity)
    if fact is None:
        return fmt.MISSING
    value = fact["value"]
    text = fmt.count(value) if unit == "count" else fmt.in_unit(value, unit)
    return text + (ASSUMED if fact["assumed"] else "")


def print_offers(offers: Offers) -> None:
    """One line an offer, the cheapest GPU-hour first."""
    heads = (
        "$/GPU-h",
        "GPUs",
        "Seller",
        "Region",
        "Purchase",
        "Gbit/s",
        "Days old",
        "Quality",
        "Source",
    )
    rows = [_row(o) for o in offers["offers"]]
    out = console()
    if rows:
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        room = max(LEAST_SOURCE, out.width - sum(widths[:-1]) - len(heads))
        table = _table()
        for head in heads:
            right = head in ("$/GPU-h", "Gbit/s", "Days old")
            table.add_column(head, justify="right" if right else "left", no_wrap=True)
        for row in rows:
            table.add_row(*row[:-1], cut(row[-1], room))
        out.print(table)
        out.print()
    shown, total, snapshot = len(rows), offers["num_offers"], offers["price_snapshot"]
    more = "" if shown == total else "; --top shows more, --json all"
    print_wrapped(
        out,
        f"{fmt.count(shown)} of {fmt.count(total)} offers of price snapshot {snapshot['id']}, "
        f"seen {snapshot['oldest']} to {snapshot['newest']}{more}. Gbit/s: network of the "
        f"instance, {ASSUMED} assumed.",
    )


def _row(offer: OfferRow) -> tuple[str, ...]:
    network = fmt.in_unit(offer["scale_out_gbit_per_s"], "count")
    usd = fmt.usd_per_hour(offer["usd_per_gpu_hour"])
    return (
        usd.removesuffix("/h"),
        f"{offer['gpu_count']} x {offer['accelerator']}",
        cut(f"{offer['provider']} {offer['instance_type']}", SELLER_WIDTH),
        cut(offer["region"], REGION_WIDTH),
        vocabulary.purchase(offer["purchase"]).removeprefix("reserved "),
        network + (ASSUMED if offer["network_assumed"] else ""),
        fmt.count(offer["age_days"]),
        offer["quality"],
        offer["source"],
    )


def _table() -> Table:
    return Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
