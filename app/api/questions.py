"""Seven questions of machines: the keys of a link in, the document of `--json` out.

Every value is text, as in a link. Nothing names a file of this server: `config` and `scenario` are
options of the command line alone. Every mistake is a RuncastError that names the key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias
from urllib.parse import urlencode

from app.audit.as_json import audit_json
from app.audit.audit import audit_of
from app.audit.claim import claim_of
from app.audit.fields import FIELDS as CLAIM_FIELDS
from app.audit.fields import NAMES as CLAIM_NAMES
from app.catalogue import as_json as catalogue
from app.command.given import Given
from app.command.values import (
    REQUIRED_OF_ONE,
    TOP_MAX,
    lacking,
    layout_scenario,
    link_values,
    parsed,
    plans_to_show,
)
from app.forecast import price_book
from app.forecast.answer import answer
from app.forecast.fixed_layout import judged
from app.forecast.resolve import resolve_strict
from app.plan.as_json import estimate_json, plan_json
from app.programme.as_json import programme_json
from app.programme.programme import TOP as CONTRACTS
from app.programme.programme import programme_of
from app.scenario.model import model_of
from core.errors import ScenarioError, unknown_name
from core.programme.stage import SEPARATOR

Texts: TypeAlias = Mapping[str, str]
Ask: TypeAlias = Callable[[Texts], Any]

TOP = 50  # plans and offers, if `top` is left out
CLAIM_KEYS = tuple(CLAIM_FIELDS)
KEYS_OF = {  # besides the fields of a scenario
    "plan": ("top",),
    "estimate": ("top", "layout"),
    "programme": ("top",),
    "audit": CLAIM_KEYS,
    "offers": ("gpu", "cloud", "purchase", "top"),
    "models": ("model", "seq_len"),
    "gpus": (),
}


def plan(texts: Texts) -> Any:
    """Ranked plans; what is left out is a scenario's default, as in a link."""
    rest, top = _apart(texts, "top")
    values, _ = link_values(urlencode({"v": "1", **rest}))
    scenario = resolve_strict(parsed(values, written_as={}))
    return plan_json(scenario, answer(scenario, top=plans_to_show(top, TOP, option="top")))


def estimate(texts: Texts) -> Any:
    """One layout, given as `layout=tp=8,pp=4` or by its fields, on one kind of GPU."""
    rest, layout = _apart(texts, "layout")
    rest, top = _apart(rest, "top")
    given, model = _apart(rest, "model")
    lacks = [n for n, value in (("model", model), ("layout", layout)) if value is None]
    if lacks := [*lacks, *lacking(given, REQUIRED_OF_ONE)]:
        raise ScenarioError(f"Missing {', '.join(lacks)}: one layout of one model on one GPU.")
    asked, keys, _ = layout_scenario(Given(options=given, model=model), layout)
    asked = resolve_strict(asked)
    found, verdict = judged(answer(asked, top=TOP_MAX), keys)
    shown = replace(found, plans=found.plans[: plans_to_show(top, TOP, option="top")])
    return estimate_json(asked, shown, verdict)


def programme(texts: Texts) -> Any:
    """The stages of a scenario on one contract."""
    rest, top = _apart(texts, "top")
    values, _ = link_values(urlencode({"v": "1", **rest}))
    scenario = resolve_strict(parsed(values, written_as={}))
    shown = plans_to_show(top, CONTRACTS, option="top")
    return programme_json(scenario, programme_of(scenario, top=shown))


def audit(texts: Texts) -> Any:
    """What a claim about a run implies, and whether it can be."""
    _check_keys("audit", texts)
    return audit_json(audit_of(claim_of(texts, {n: n for n in CLAIM_NAMES})))


def offers(texts: Texts) -> Any:
    """Newest prices, the cheapest GPU-hour first."""
    _check_keys("offers", texts)
    rest, top = _apart(texts, "top")
    scenario = parsed(rest, written_as={})
    found = catalogue.offers_json(
        scenario, any_purchase="purchase" not in rest, today=price_book.today()
    )
    found["offers"] = found["offers"][
        : None if top is None else plans_to_show(top, TOP, option="top")
    ]
    return found


def models(texts: Texts) -> Any:
    """Every preset, or parameters and FLOPs of one."""
    _check_keys("models", texts)
    scenario = parsed(texts, written_as={})
    if "model" in texts:
        return catalogue.model_json(model_of(scenario), seq_len=scenario.seq_len)
    return catalogue.presets_json(seq_len=scenario.seq_len)


def gpus(texts: Texts) -> Any:
    """Every accelerator that a forecast supports."""
    _check_keys("gpus", texts)
    return catalogue.gpus_json()


def as_texts(values: Mapping[str, object]) -> dict[str, str]:
    """A JSON object as the texts of a link: lists with commas, booleans as true and false.

    ScenarioError for an object or a list of lists; null means that a key is not given.
    """
    found = {}
    for name, value in values.items():
        if value is None:
            continue
        if isinstance(value, list):
            parts = [_text(name, v) for v in value]
            found[name] = (SEPARATOR if any("," in p for p in parts) else ",").join(parts)
        else:
            found[name] = _text(name, value)
    return found


ASKED: Mapping[str, Ask] = {
    "plan": plan,
    "estimate": estimate,
    "programme": programme,
    "audit": audit,
    "offers": offers,
    "models": models,
    "gpus": gpus,
}
SEARCH = (plan, estimate, programme)  # what takes seconds of a processor


def _text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise ScenarioError(f"{name} is neither a text, a number, true, false nor a list of them.")


def _apart(texts: Texts, name: str) -> tuple[dict[str, str], str | None]:
    """The texts without one key, and its value."""
    return {n: t for n, t in texts.items() if n != name}, texts.get(name)


def _check_keys(question: str, texts: Iterable[str]) -> None:
    known = KEYS_OF[question]
    for name in texts:
        if name not in known:
            raise unknown_name(f"key of {question}", name, known)
