"""A process that keeps what people keep, again and again until it is killed, and says so.

It goes through the code of the page and of the commands: saved scenarios (saved, replaced,
deleted), price books, calibrations. Of each write one line says what it will be, and the next one
that it is done, or why it was refused: what is done must be found afterwards, what is only begun or
was refused may be there or not.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import orjson

from app.calibration import added as calibration_added
from app.forecast import calibrations, price_book
from app.prices.book_file import read_book
from app.saved import saved
from core.scenario import Scenario
from hardware.facts import accelerator
from pricing.book.files import save_book
from pricing.store.engine import StoreError
from tests.made_up.results import H100, document, machine

OWNER = "local"
NAMES = 6  # of scenarios, and of price books
BOOKED = ("aws", "gcp", "lambda")
PRICES = "418dd4911f7e"
STEPS_PER_USD = 100_000


def tokens_of(step: int) -> float:
    """What the scenario of a step trains: every step another number."""
    return float(10**9 + step)


def price_of(step: int) -> float:
    """Of a GPU-hour, another one at every step, and believable at all of them."""
    return round(1.0 + step / STEPS_PER_USD, 5)


@lru_cache(maxsize=1)
def _result() -> dict[str, object]:
    return document(machine(matmul=0.8, attention=0.9, memory=0.9))


def prepare() -> None:
    """What every process of a test would compute again: tables, and a made-up result."""
    calibrations.learned(calibrations.parse(calibration_of(0)), accelerator(H100))


def id_of(step: int) -> str:
    return calibrations.id_of(calibrations.parse(calibration_of(step)))


def calibration_of(step: int) -> bytes:
    """A result that is like no other by its run."""
    return orjson.dumps({**_result(), "run_id": f"{step:08x}-0000-4000-8000-000000000000"})


def chosen(step: int, rng: random.Random) -> dict[str, Any]:
    """The next write: a deletion leaves no step."""
    name, what = f"name-{rng.randrange(NAMES)}", rng.random()
    if what < 0.6:
        return {"kind": "scenario", "name": name, "step": step if what < 0.5 else None}
    if what < 0.85:
        return {"kind": "book", "name": name, "step": step}
    return {"kind": "calibration", "name": id_of(step), "step": step}


def write(kind: str, name: str, step: int | None) -> None:
    """Do it as the page and the commands do; it is acknowledged when this returns."""
    if step is None:
        if name in {s.name for s in saved.listed(owner=OWNER)}:
            saved.delete(name, owner=OWNER)
    elif kind == "scenario":
        scenario = Scenario.parse({"num_tokens": tokens_of(step), "prices": PRICES})
        saved.keep(scenario, owner=OWNER, name=name, replace=True)
    elif kind == "book":
        rows = "kind,provider,accelerator,usd_per_gpu_hour\n" + "".join(
            f"rate,{provider},h100,{price_of(step)}\n" for provider in BOOKED
        )
        save_book(read_book(rows.encode(), file_name="b.csv", name=name, today=price_book.today()))
    else:
        added = calibration_added.add(calibration_of(step), note=f"step {step}")
        if added.calibration.id != name or added.sentences:
            raise StoreError(" ".join(added.sentences))


def main(arguments: Sequence[str]) -> None:
    """`acknowledged STEP`: from that step on, for ever."""
    step = int(arguments[0])
    rng = random.Random(step)
    while True:
        step += 1
        what = chosen(step, rng)
        print(json.dumps(what), flush=True)
        try:
            write(**what)
            print("done", flush=True)
        except StoreError as e:
            print(f"refused: {e}", flush=True)
            time.sleep(0.05)
