"""The OpenAPI description of /api/v1, from the fields that parse requests."""

from __future__ import annotations

from functools import cache
from typing import Any

from app.api.questions import CLAIM_KEYS, KEYS_OF, TOP
from app.scenario.version import version
from core.programme.stage_link import KEY
from core.scenario import Scenario

PATH = "/api/v1"
SUMMARIES = {
    "plan": "Rank clouds, GPUs and layouts for a run: the document of `runcast plan --json`.",
    "estimate": "Forecast one layout on one kind of GPU.",
    "programme": "Stages (as `stages`, or s1.name to s8.seq_len) on one contract of machines.",
    "audit": "What a claim about a run implies, and whether it can be.",
    "offers": "The newest prices, the cheapest GPU-hour first.",
    "models": "The presets, or parameters and FLOPs of one model.",
    "gpus": "The accelerators with the figures that forecasts use.",
}
OWN = {
    "top": f"How many plans or offers to list; {TOP} if left out.",
    "layout": "The layout: tp=8,pp=4,dp_shard=16,sharding=zero1.",
}
_ANSWERS = {
    "200": ("The document.", {"type": "object"}),
    "400": ("A mistake in the request, as one sentence.", {"$ref": "#/components/schemas/Error"}),
    "413": ("A body over the bound.", {"$ref": "#/components/schemas/Error"}),
    "503": ("Too many searches are waiting.", {"$ref": "#/components/schemas/Error"}),
    "429": ("Too many requests from this address.", {"$ref": "#/components/schemas/Error"}),
}


@cache
def description() -> dict[str, Any]:
    """The description as a document of OpenAPI 3.1."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Runcast",
            "version": version() or "0",
            "description": "Forecasts of training runs. GET takes the keys of a link, POST a JSON "
            "object of them; answers are the documents of --json (docs/plan-json.md).",
        },
        "paths": {f"{PATH}/{name}": _path(name) for name in KEYS_OF},
        "components": {
            "schemas": {
                "Error": {
                    "type": "object",
                    "required": ["error"],
                    "properties": {"error": {"type": "string", "description": "One sentence."}},
                }
            }
        },
    }


def _path(name: str) -> dict[str, Any]:
    keys = _keys(name)
    asked: dict[str, dict[str, Any]] = {
        "get": {
            "parameters": [
                {"name": key, "in": "query", "description": text, "schema": {"type": "string"}}
                for key, text in keys.items()
            ]
        },
        "post": {"requestBody": {"content": {"application/json": {"schema": body_schema(name)}}}},
    }
    answers = {
        status: {"description": text, "content": {"application/json": {"schema": schema}}}
        for status, (text, schema) in _ANSWERS.items()
    }
    return {
        method: {
            "summary": SUMMARIES[name],
            "operationId": f"{method}_{name}",
            **parts,
            "responses": answers,
        }
        for method, parts in asked.items()
    }


def body_schema(name: str) -> dict[str, Any]:
    """The JSON Schema of the keys of one question: any JSON value that a link could write."""
    return {
        "type": "object",
        "additionalProperties": False,
        **({"patternProperties": {f"^{KEY.pattern}$": {}}} if name == "programme" else {}),
        "properties": {key: {"description": text} for key, text in _keys(name).items()},
    }


def _keys(name: str) -> dict[str, str]:
    """The keys of one question, each with what it means."""
    fields = {n: str(f.description or f.title or "") for n, f in Scenario.model_fields.items()}
    if name in ("plan", "estimate", "programme"):
        return {**fields, **{key: OWN[key] for key in KEYS_OF[name]}}
    told = {**fields, **OWN, **dict.fromkeys(CLAIM_KEYS, "See `runcast audit --help`.")}
    return {key: told[key] for key in KEYS_OF[name]}
