"""Accelerators, offers and models as JSON, as `runcast gpus`, `offers` and `models` print them.

docs/plan-json.md documents every key; keys are stable: add, never rename.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import fields
from typing import Any

import numpy as np

from app.document import format as fmt
from app.document.as_json import attributes
from app.forecast.machines import machine
from app.scenario.model import NamedModel, model_of
from core.errors import ScenarioError, unknown_name
from core.machine.accelerator import Accelerator
from core.machine.offer import Offer
from core.model import transformer as model_transformer
from core.model.presets import PRESETS
from core.model.transformer import Transformer
from core.numeric import Bools, Numeric
from core.scenario import Scenario
from hardware import facts, names
from pricing import offers as prices

SCHEMA_VERSION = 1


def gpus_json() -> dict[str, Any]:
    """Every accelerator of the table, in its order."""
    return {
        "schema_version": SCHEMA_VERSION,
        "gpus": [
            {**attributes(a, "name", "vendor", "note"), "facts": facts_of(a)}
            for a in facts.accelerators().values()
        ],
    }


def facts_of(accelerator: Accelerator) -> dict[str, dict[str, Any] | None]:
    """Every number of an accelerator with its source; None if no source prints it."""
    return {q: _fact(accelerator, q) for q in facts.NUMBERS}


def _fact(accelerator: Accelerator, quantity: str) -> dict[str, Any] | None:
    value, source = getattr(accelerator, quantity), accelerator.sources.get(quantity)
    if value is None or source is None:
        return None
    paths = {"source": "ref", "source_date": "date"}
    return {"value": value, **attributes(source, "printed", "assumed", **paths)}


def offers_json(scenario: Scenario, *, any_purchase: bool, today: dt.date) -> dict[str, Any]:
    """Newest offers of the scenario's price snapshot for its GPUs, clouds and purchase kinds."""
    snapshot = prices.snapshot(scenario.prices)
    newest = prices.newest_per_place(snapshot.offers)
    gpus = {names.canonical(g) for g in scenario.gpu}
    clouds = {_cloud(c, newest) for c in scenario.cloud}
    rows = [
        _offer(o, today)
        for o in newest
        if (not gpus or o.accelerator in gpus)
        and (not clouds or o.provider in clouds)
        and (any_purchase or o.purchase in scenario.purchase)
    ]
    rows.sort(key=lambda r: (r["usd_per_gpu_hour"] is None, r["usd_per_gpu_hour"] or 0.0))
    return {
        "schema_version": SCHEMA_VERSION,
        "price_snapshot": attributes(snapshot, "id", "newest", "oldest"),
        "num_offers": len(rows),
        "offers": rows,
    }


def _cloud(given: str, offers: tuple[Offer, ...]) -> str:
    known = {o.provider.lower(): o.provider for o in offers}
    try:
        return known[given.lower()]
    except KeyError:
        raise unknown_name("cloud", given, known.values()) from None


def _offer(offer: Offer, today: dt.date) -> dict[str, Any]:
    gbit, assumed = _network(offer)
    usd = offer.usd_per_hour
    names = "accelerator provider instance_type gpu_count region purchase usd_per_hour observed_at"
    return {
        **attributes(offer, *names.split(), "quality", "source", "note"),
        "usd_per_gpu_hour": None if usd is None else usd / offer.gpu_count,
        "scale_out_gbit_per_s": gbit,
        "network_assumed": assumed,
        "age_days": fmt.age_days(offer.observed_at, today),
    }


def _network(offer: Offer) -> tuple[float | None, bool | None]:
    """Gbit/s of the whole instance as plans use it, and whether it is assumed; None for an offer
    that is not sold as a cluster."""
    try:
        found = machine(offer, facts.accelerator(offer.accelerator))
    except ScenarioError:  # known by name only: no plan can use it
        return offer.scale_out_gbit_per_s, None
    if found.network.gbit_per_s is None:
        return None, False
    per_gpu = float(found.cluster.scale_out_bytes_per_s)
    return round(per_gpu * offer.gpu_count * 8 / 1e9, 6), not found.network_known


def model_json(model: NamedModel, *, seq_len: int) -> dict[str, Any]:
    """Parameters and training FLOPs per token (causal attention once, LM head included)."""
    dims = model.transformer
    flops = model_transformer.train_flops_per_token(dims, float(seq_len))
    return {
        "schema_version": SCHEMA_VERSION,
        **attributes(model, "id", "label", "source", "max_seq_len"),
        "total_params": _whole(model_transformer.total_params(dims)),
        "active_params": _whole(model_transformer.active_params(dims)),
        "flops_per_token": float(flops),
        "seq_len": seq_len,
        "params": {  # the parts add up to total_params
            "layers": _whole(model_transformer.layer_params(dims)),
            "experts": _whole(model_transformer.routed_expert_params(dims)),
            "embeddings": _whole(model_transformer.embedding_params(dims)),
            "head": _whole(model_transformer.head_params(dims)),
        },
        "dims": {f.name: _dimension(getattr(dims, f.name)) for f in fields(Transformer)},
    }


def presets_json(*, seq_len: int) -> dict[str, Any]:
    """All presets, in the order of their table."""
    models = [model_of(Scenario(model=name)) for name in PRESETS]
    return {
        "schema_version": SCHEMA_VERSION,
        "seq_len": seq_len,
        "models": [model_json(m, seq_len=seq_len) for m in models],
    }


def _whole(x: Numeric) -> int:
    return round(float(x))


def _dimension(x: Numeric | Bools) -> int | float | bool:
    """A dimension as given: a flag, a whole number or (rarely) a fraction."""
    value = np.asarray(x).item()
    if isinstance(value, bool):
        return value
    return int(value) if float(value).is_integer() else float(value)
