"""A second, pasted link: its scenario, and where it differs from the page's own.

Pasted text is untrusted: `app.scenario.link.parse` checks it as it checks the address.
"""

from __future__ import annotations

from urllib.parse import parse_qs

from app.document.on_use import pd
from app.forecast import resolve
from app.saved import saved
from app.scenario.fields import is_list, literals, written
from app.scenario.link import VIEW, parse
from app.web.form_words import NOTHING, OPTION_LABELS, PLACEHOLDERS
from core.errors import ScenarioError, shown
from core.scenario import MAX_QUERY_CHARS, Scenario
from core.scenario.risk_fields import VIEW as LOOKED_AT
from core.search.plan import Answer, Plan

MOST_FIELDS = 200  # in a query: a scenario has fewer
MOST_NOTES = 8  # listed one by one
# What an empty field means; a placeholder that holds a number is only an example.
EMPTY = {
    **{n: text for n, text in PLACEHOLDERS.items() if not any(c.isdigit() for c in text)},
    **NOTHING,
    "num_gpus": "Powers of two",
}
NO_LINK = "There is no scenario in it: paste a link of this page, or what stands behind its '?'."


def parsed(text: str) -> tuple[Scenario, list[str]]:
    """The scenario of a pasted link or query, and notes on the parts that could not be used.
    Raises ScenarioError if there is none."""
    given = text.strip()
    if len(given) > MAX_QUERY_CHARS:
        raise ScenarioError(
            f"The text has {len(given):,} characters: a link of this page has at most "
            f"{MAX_QUERY_CHARS:,}."
        )
    query = given.partition("?")[2] if "?" in given else given
    query = query.partition("#")[0]
    try:
        fields = parse_qs(query, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise ScenarioError(f"The link has more than {MOST_FIELDS} fields.") from None
    asked = {name: values for name, values in fields.items() if not name.startswith(VIEW)}
    if not asked.keys() & {*Scenario.model_fields, "v", saved.SHORT}:
        raise ScenarioError(NO_LINK)
    whole, notes = saved.expanded(asked)
    scenario, more = parse(whole, resolve.resolve, resolve.current_prices())
    notes = [*notes, *more]
    if len(notes) > MOST_NOTES:
        notes = [*notes[:MOST_NOTES], "There are more notes like these."]
    return scenario, notes


def plan_of(scenario: Scenario, answer: Answer) -> tuple[Plan | None, str]:
    """The plan that a link names, or else the recommended one, and in words which of the two it
    is."""
    plan = answer.chosen(scenario.plan)
    if plan is None:
        return None, "no plan"
    if scenario.plan and plan.id == scenario.plan:
        return plan, "the plan that the link names"
    if scenario.plan:
        return plan, f"the recommended plan: {shown(scenario.plan)} is not among the ranked ones"
    return plan, "the recommended plan"


def differences(first: Scenario, second: Scenario) -> pd.DataFrame:
    """`changed_fields` as the page shows them."""
    found = changed_fields(first, second)
    return pd.DataFrame(found, columns=["Field", "This link", "Other link"])


def changed_fields(first: Scenario, second: Scenario) -> list[tuple[str, str, str]]:
    """The fields in which two scenarios differ, by their form labels, with both values."""
    rows = []
    for name, field in Scenario.model_fields.items():
        a, b = getattr(first, name), getattr(second, name)
        if name not in LOOKED_AT and a != b:
            rows.append((field.title or name, _value(name, a), _value(name, b)))
    return rows


def _value(name: str, value: object) -> str:
    """A field's value as the form shows it; for an empty field, what empty means."""
    field = Scenario.model_fields[name]
    if isinstance(value, bool):
        return "Yes" if value else "No"
    if value is None or value in ((), ""):
        return EMPTY.get(name) or ("Any" if is_list(field) else "Not given")
    if literals(field.annotation):
        held = value if isinstance(value, tuple) else (value,)
        return ", ".join(OPTION_LABELS.get(str(v), str(v)) for v in held)
    return written(value)
