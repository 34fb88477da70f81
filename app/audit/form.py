"""The form of the Audit page, filled from the address, the link's scenario or by hand.

The address holds the whole claim (`show_days=25` and so on) next to the scenario's fields
(app/web/link.py leaves the claim alone), so that a copied address reopens the audit. If the address
differs from what the page last wrote, it overwrites the form; otherwise the form overwrites it.
"""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from app.audit.audit import Audit, audit_of
from app.audit.claim import claim_of
from app.audit.fields import FIELDS, LABELS
from app.audit.speed import NAMES, times
from app.document import format as fmt
from app.scenario.fields import fields_of, written
from app.scenario.link import VIEW
from app.web import view_query
from core.errors import RuncastError, shown
from core.scenario import Scenario

USUAL = ("model", "tokens", "gpu", "num_gpus", "days", "usd", "usd_per_gpu_hour", "precision")
EXAMPLES = {
    "70B, 1T tokens, 256 H100, 25 days": {
        "model": "llama3.1-70b", "tokens": "1T", "gpu": "H100-80GB-SXM", "num_gpus": "256",
        "days": "25", "usd": "460k", "usd_per_gpu_hour": "3",
    },
    "70B, 1T tokens, 72 GB200, 14 days": {
        "model": "llama3.1-70b", "tokens": "1T", "gpu": "GB200", "num_gpus": "72", "days": "14",
        "usd": "145k", "usd_per_gpu_hour": "6",
    },
}  # fmt: skip
MAX_CHARS = 100

_WRITTEN = "audit_address_written"
_EDITED = "audit_edited"
_NOTES = "audit_notes"


def key(name: str) -> str:
    """Session key of a field's widget."""
    return f"audit_{name}"


def take_over(scenario: Scenario) -> None:
    """Set the fields from the address if it changed; if it has no claim, from the scenario."""
    state = st.session_state
    asked, is_edited = view_query.asked(), state.pop(_EDITED, False)
    if (is_edited or asked == state.get(_WRITTEN)) and all(key(n) in state for n in FIELDS):
        return
    unknown = [n for n in asked if n not in FIELDS]
    state[_NOTES] = [
        f"Ignored from the link: {VIEW}{shown(n)[1:-1]} is no field of a claim." for n in unknown
    ]
    known = {n: v[:MAX_CHARS] for n, v in asked.items() if n in FIELDS}
    for name, value in ({**dict.fromkeys(FIELDS, ""), **(known or of_scenario(scenario))}).items():
        state[key(name)] = value
    state[_WRITTEN] = asked


def of_scenario(scenario: Scenario) -> dict[str, str]:
    """The claim fields that the link's scenario gives: model, tokens, the first GPU and count."""
    found = {
        "model": scenario.model,
        "tokens": written(scenario.num_tokens),
        "gpu": next(iter(scenario.gpu), ""),
        "num_gpus": str(next(iter(scenario.num_gpus), "")),
        "seq_len": str(scenario.seq_len),
    }
    default = type(scenario).model_fields["precision"].default
    if scenario.precision != default:
        found["precision"] = scenario.precision
    return {n: v for n, v in found.items() if v}


def edited() -> None:
    """Callback of the form: the browser may still show the address of the previous claim."""
    st.session_state[_EDITED] = True
    st.session_state[_NOTES] = []


def fill(example: str) -> None:
    """Callback of an example: replace the form's content with its claim."""
    for name in FIELDS:
        st.session_state[key(name)] = EXAMPLES[example].get(name, "")
    edited()


def notes() -> tuple[str, ...]:
    """Notes on values in the address that were not used."""
    return tuple(st.session_state.get(_NOTES, ()))


def texts() -> dict[str, str]:
    """The form's texts without the empty fields."""
    found = {n: str(st.session_state.get(key(n)) or "").strip() for n in FIELDS}
    return {n: t[:MAX_CHARS] for n, t in found.items() if t}


def write() -> None:
    """Write the claim into the address, once there is one."""
    shows = texts()
    is_claim = {"days", "gpu_hours", "tokens_per_s", "mfu", "usd"} & {*shows}
    if not (is_claim or view_query.asked()):
        return
    view_query.write(shows)
    st.session_state[_WRITTEN] = shows


def audited(given: Mapping[str, str], scenario: Scenario) -> Audit | str:
    """The audit of the form's claim, or a sentence that says what is wrong with the form."""
    dimensions = {
        n: value for n in fields_of("custom_model") if (value := getattr(scenario, n)) is not None
    }
    try:
        return audit_of(claim_of(given, LABELS, dimensions))
    except RuncastError as e:
        return str(e)


def headline(audit: Audit) -> tuple[tuple[str, str, str], ...]:
    """The numbers at the top of the page: label, value, help."""
    s = audit.decisive
    best = fmt.MISSING if s.over_best is None else times(s.over_best).replace(" times", "x")
    return (
        ("Verdict", NAMES[audit.verdict].capitalize(), "Of the precision named below"),
        ("Tokens/s per GPU", fmt.count(audit.claim.rate), "Implied by the claim"),
        ("Of the dense peak", fmt.percent(s.share), "With causal attention"),
        ("Of the best published", best, "FLOP/s per GPU over those of the best run of its class"),
    )
