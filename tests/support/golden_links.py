"""The numbers that a link opens to, as tests/golden/links/VERSION.csv keeps them.

    python -m tests.support.golden_links 0.2.0

writes the file of a release that has none, from the links of the release before (and of
LINKS.csv, where links of that release are added). A file that exists is never written again.
"""

from __future__ import annotations

import csv
import hashlib
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qs

from app.bill.bill import bill_of
from app.forecast import answer as forecast_answer
from app.forecast import resolve
from app.scenario.layout import layout_text
from app.scenario.link import parse

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent.parent / "golden/links"
RELEASED = FOLDER / "released.csv"  # version, sha256 of its file
SAME = 1e-6  # relative; numpy may add up in another order on another processor
TOP = 5
NUMBERS = (
    "num_plans", "num_notes", "num_gpus", "tokens_per_s", "tokens_per_s_p10", "tokens_per_s_p90",
    "step_s", "wall_clock_hours", "usd", "usd_p10", "usd_p90", "peak_memory_bytes",
    "probability_oom", "hours_with_failures", "usd_with_failures", "bill_usd",
)  # fmt: skip
TEXTS = ("best", "layout", "listed")
COLUMNS = ("about", "link", *TEXTS, *NUMBERS)


def opened(query: str) -> dict[str, str]:
    """What a link opens to today, as texts that read back to the same number."""
    asked = parse_qs(query.removeprefix("?"), keep_blank_values=True)
    scenario, notes = parse(asked, resolve.resolve, resolve.current_prices())
    found = forecast_answer.answer(scenario, top=TOP)
    row: dict[str, object] = {"num_plans": found.num_plans, "num_notes": len(notes)}
    if found.plans:
        best = found.plans[0]
        named = {scenario.plan, *scenario.pinned} - {""}
        row |= {
            "best": best.id,
            "layout": layout_text(best.layout),
            "listed": " ".join(sorted(p.id for p in found.plans if p.id in named)),
            "num_gpus": best.num_gpus,
            "tokens_per_s": best.tokens_per_s.p50,
            "tokens_per_s_p10": best.tokens_per_s.p10,
            "tokens_per_s_p90": best.tokens_per_s.p90,
            "step_s": math.fsum(best.step_s.values()),
            "wall_clock_hours": best.wall_clock_hours,
            "peak_memory_bytes": math.fsum(best.memory_bytes.values()),
            "probability_oom": best.probability_oom,
            "hours_with_failures": float(best.cost.failures_only_hours),
        }
        if best.usd is not None:
            row |= {
                "usd": best.usd.p50, "usd_p10": best.usd.p10, "usd_p90": best.usd.p90,
                "usd_with_failures": float(best.cost.failures_only_usd),
            }  # fmt: skip
        if {"pue", "experiment_share", "dataset_tb"} & set(asked):
            bill = bill_of(scenario, best)
            row["bill_usd"] = "" if bill.total is None else float(bill.total.mean)
    return {name: _text(row.get(name, "")) for name in (*TEXTS, *NUMBERS)}


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{float(value):.12g}"
    return "" if value is None else str(value)


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of one table."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def sha256_of(path: Path) -> str:
    """Of a released file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def differing(row: Mapping[str, str], now: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Numbers and texts of one link that are others now: name -> then, now."""
    return {
        name: (row[name], now[name])
        for name in (*TEXTS, *NUMBERS)
        if not (_same(row[name], now[name]) if name in NUMBERS else row[name] == now[name])
    }


def _same(then: str, now: str) -> bool:
    if not (then and now):
        return then == now
    a, b = float(then), float(now)
    return a == b or abs(a - b) <= max(SAME * max(abs(a), abs(b)), 1e-12)


def main(version: str) -> None:
    """Write the file of a release, and its hash."""
    path = FOLDER / f"{version}.csv"
    if path.exists():
        raise SystemExit(f"{path.name} is released: it is never written again.")
    before = sorted(FOLDER.glob("[0-9]*.csv"))
    links = {r["about"]: r["link"] for p in (*before, FOLDER / "LINKS.csv") for r in rows_of(p)}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for about, query in links.items():
            writer.writerow({"about": about, "link": query, **opened(query)})
    with RELEASED.open("a", encoding="utf-8") as file:
        file.write(f"{version},{sha256_of(path)}\n")


if __name__ == "__main__":
    main(sys.argv[1])
