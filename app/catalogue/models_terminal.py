"""Models on a terminal."""

from __future__ import annotations

from rich.table import Table

from app.catalogue.model_json import ModelFacts, Presets
from app.document import format as fmt
from app.document.terminal import console


def print_presets(presets: Presets) -> None:
    """The shipped models."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for head in ("Model", "Name"):
        table.add_column(head, no_wrap=True)
    for head in ("Parameters", "Active", f"FLOPs a token at {presets['seq_len']}"):
        table.add_column(head, justify="right", no_wrap=True)
    for m in presets["models"]:
        sizes = (m["total_params"], m["active_params"], m["flops_per_token"])
        table.add_row(m["id"], m["label"], *(fmt.tokens(n) for n in sizes))
    console().print(table)


def print_model(model: ModelFacts) -> None:
    """One model: its size by part, its FLOPs, its dimensions, its source."""
    out = console()
    out.print(f"{model['label']} ({model['id']})")
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
    grid = Table.grid(padding=(0, 2))
    for name, value in rows:
        grid.add_row(name, value)
    out.print(grid)
    out.print(f"source: {model['source']}", soft_wrap=True)
