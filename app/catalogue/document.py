"""Accelerators, offers and models as blocks, from their JSON documents."""

from __future__ import annotations

from typing import Any

from app.document import format as fmt
from app.document import vocabulary
from app.document.blocks import Block, Paragraph
from app.document.table import Column, Table, column, plain, text_column

ASSUMED = "?"
# Columns of `runcast gpus`: heading, fact, and unit.
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
LEGEND = (
    "Dense peaks and the best measured 16-bit matmul in TFLOP/s; memory in GiB, its bandwidth "
    "and the scale-up link (one direction) in GB/s, how many GPUs share the link; network in "
    f"Gbit/s a GPU. {ASSUMED} derived or assumed, {fmt.MISSING} not printed by any source. "
    "Sources: --json."
)


def gpus_blocks(gpus: dict[str, Any]) -> tuple[Block, ...]:
    """One line per accelerator; figures that no source prints are marked."""
    columns = (
        Column(name="name", head="GPU", value=lambda gpu: gpu["name"], is_text=True),
        *(_fact(head, quantity, unit) for head, quantity, unit in GPU_COLUMNS),
    )
    return Table(caption="GPUs", columns=columns, rows=tuple(gpus["gpus"])), Paragraph(LEGEND)


def _fact(head: str, quantity: str, unit: str) -> Column[dict[str, Any]]:
    def value(gpu: dict[str, Any]) -> str:
        fact = gpu["facts"].get(quantity)
        if fact is None:
            return fmt.MISSING
        number = fact["value"]
        text = fmt.count(number) if unit == "count" else fmt.in_unit(number, unit)
        return text + (ASSUMED if fact["assumed"] else "")

    return Column(name=quantity, head=head, value=value)


OFFER_COLUMNS: tuple[Column[dict[str, Any]], ...] = (
    column("$/GPU-h", lambda o: fmt.usd_per_hour(o["usd_per_gpu_hour"]).removesuffix("/h")),
    text_column("GPUs", lambda o: f"{o['gpu_count']} x {o['accelerator']}"),
    text_column("Seller", lambda o: f"{o['provider']} {o['instance_type']}", least=18),
    text_column("Region", lambda o: str(o["region"]), least=8),
    text_column("Purchase", lambda o: vocabulary.purchase_short(o["purchase"])),
    column(
        "Gbit/s",
        lambda o: (
            fmt.in_unit(o["scale_out_gbit_per_s"], "count")
            + (ASSUMED if o["network_assumed"] else "")
        ),
    ),
    column("Days old", lambda o: fmt.count(o["age_days"])),
    text_column("Quality", lambda o: str(o["quality"])),
    text_column("Source", lambda o: str(o["source"]), least=10),
)


def offers_blocks(offers: dict[str, Any]) -> tuple[Block, ...]:
    """One line per offer, the cheapest GPU-hour first."""
    rows = tuple(offers["offers"])
    shown, total, snapshot = len(rows), offers["num_offers"], offers["price_snapshot"]
    more = "" if shown == total else "; --top shows more, --json all"
    counts = Paragraph(
        f"{fmt.count(shown)} of {fmt.count(total)} offers of price snapshot {snapshot['id']}, "
        f"seen {snapshot['oldest']} to {snapshot['newest']}{more}. Gbit/s: network of the "
        f"instance, {ASSUMED} assumed."
    )
    return (
        (Table(caption="Offers", columns=OFFER_COLUMNS, rows=rows), counts) if rows else (counts,)
    )


def presets_blocks(presets: dict[str, Any]) -> tuple[Block, ...]:
    """One line per shipped model."""
    columns = (
        text_column("Model", lambda m: str(m["id"])),
        text_column("Name", lambda m: str(m["label"])),
        column("Parameters", lambda m: fmt.tokens(m["total_params"])),
        column("Active", lambda m: fmt.tokens(m["active_params"])),
        column(
            f"FLOPs a token at {presets['seq_len']}", lambda m: fmt.tokens(m["flops_per_token"])
        ),
    )
    return (Table(caption="Models", columns=columns, rows=tuple(presets["models"])),)


def model_blocks(model: dict[str, Any]) -> tuple[Block, ...]:
    """One model: its size by part, its FLOPs, its dimensions, its source."""
    rows = [
        ("total parameters", fmt.count(model["total_params"])),
        *((f"  {name}", fmt.count(n)) for name, n in model["params"].items() if n),
        ("active parameters", fmt.count(model["active_params"])),
        (
            "training FLOPs per token",
            f"{fmt.tokens(model['flops_per_token'])} at seq_len {fmt.count(model['seq_len'])}",
        ),
        *((name, str(value)) for name, value in model["dims"].items() if value),
    ]
    return (
        Paragraph(f"{model['label']} ({model['id']})"),
        plain("Size, FLOPs and dimensions", ("", ""), rows),
        Paragraph(f"source: {model['source']}"),
    )
