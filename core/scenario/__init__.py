"""The scenario: everything a user chooses, and the only pydantic model of core.

Its field table is the link, the form and the help. Keys of a link are promises: add, never rename.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Self, get_args

from pydantic import ValidationError, field_validator

from core.errors import ScenarioError, nearest, shown
from core.programme.stage import MOST_STAGES, written_stages
from core.programme.stage_link import FIELD, KEY, flat, gathered
from core.scenario.quotes import SEPARATOR
from core.scenario.risk_fields import RiskFields
from core.scenario.types import PATTERNS, field

LINK_VERSION = 1
MAX_QUERY_CHARS = 16_384  # holds every legal scenario
MOST_UNKNOWN = 20  # keys of a link that are no field, named one by one with what was meant


class Scenario(RiskFields):
    """Everything a user chooses, validated once."""

    stages: tuple[str, ...] = field(
        (), "Stages", f"Up to {MOST_STAGES} runs in order, each like long,tokens=800B,seq_len=128k",
        "programme",
    )  # fmt: skip
    stages_may_move: bool = field(
        False, "Stages may move", "Each on its own machines; else all on one set", "programme"
    )

    @field_validator("stages", mode="before")
    @classmethod
    def _stages(cls, value: Any) -> tuple[str, ...]:
        return written_stages(value, cls.parse)

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Self:
        """Build from values from outside; one `ScenarioError` names every wrong one.

        >>> try:
        ...     Scenario.parse({"num_tokens": "ten"})
        ... except ScenarioError as e:
        ...     print(e, e.as_labelled, sep="\\n")
        num_tokens: 'ten' is not a number like 8192, 1e12, 15T or 8k.
        Training tokens: 'ten' is not a number like 8192, 1e12, 15T or 8k (num_tokens in a link).
        """
        try:
            return cls.model_validate(_with_stages(values))
        except ValidationError as e:
            raise ScenarioError(
                " ".join(cls._sentence(x) for x in e.errors()),
                as_labelled=" ".join(cls._sentence(x, by_label=True) for x in e.errors()),
            ) from None

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> tuple[Self, list[str]]:
        """Parse a link. A bad field becomes its default and a note, so that the page still
        opens."""
        kept: dict[str, Any] = dict(query)
        notes: list[str] = []
        if sum(len(k) + len(str(v)) for k, v in kept.items()) > MAX_QUERY_CHARS:
            return cls(), [f"Ignored the link: it is longer than {MAX_QUERY_CHARS} characters."]
        try:
            kept = _with_stages(kept)
        except ScenarioError as e:
            kept = {name: value for name, value in kept.items() if not KEY.fullmatch(name)}
            notes.append(f"Ignored from the link: {e}")
        version = str(kept.pop("v", LINK_VERSION))
        if version != str(LINK_VERSION):
            notes.append(
                f"This link says v={shown(version)}; this page writes v={LINK_VERSION}: "
                "what it knows was read."
            )
        while True:
            try:
                return cls.model_validate(kept), notes
            except ValidationError as e:
                unknown = 0
                for x in e.errors(include_url=False):
                    name = str(x["loc"][0])
                    if name not in kept:
                        continue
                    given = kept.pop(name)
                    unknown += x["type"] == "extra_forbidden"
                    if x["type"] != "extra_forbidden" or unknown <= MOST_UNKNOWN:
                        notes.append(f"Ignored from the link: {cls._sentence(x, given)}")
                if unknown > MOST_UNKNOWN:
                    notes.append(
                        f"Ignored from the link: {unknown - MOST_UNKNOWN:,} more that are not a "
                        "field of a scenario."
                    )

    def to_query(self) -> dict[str, str]:
        """The shortest link that `from_query` reads back as this scenario."""
        query = {"v": str(LINK_VERSION)}
        for name, declared in type(self).model_fields.items():
            value = getattr(self, name)
            if value != declared.default:
                query |= flat(value) if name == FIELD else {name: _written(value)}
        return query

    @classmethod
    def _sentence(cls, error: Any, given: object = None, *, by_label: bool = False) -> str:
        """One sentence of a pydantic error: the field, what was given, what is allowed."""
        name = str(error["loc"][0])
        found = error["input"] if given is None else given
        value = shown(_written(found) if isinstance(found, float) else found)
        if error["type"] == "extra_forbidden":
            hint = _hint(name, cls.model_fields)
            return f"{shown(name)[1:-1]}={value} is not a field of a scenario.{hint}"
        field, hint, mark = cls.model_fields[name], "", "="
        if choices := [c for c in _choices(field.annotation) if c]:
            reason = f"{value} is not one of {', '.join(choices)}"
            hint = _hint(str(error["input"]), choices)
        elif error["type"] == "value_error":  # sentences of core.units on numbers
            reason, mark = str(error["msg"]).removeprefix("Value error, "), ": "
        else:
            reason = f"{value} {_rule(error)}"
        if by_label:
            return f"{field.title}: {reason} ({name} in a link).{hint}"
        return f"{name}{mark}{reason}.{hint}"


def _with_stages(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with the flat keys of stages as one field."""
    try:
        return gathered(values)
    except ValueError as e:
        raise ScenarioError(f"{FIELD}: {str(e).rstrip('.')}.") from None


_BOUNDS = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
_RULES = {  # sentences for pydantic's error types, whose own words are for programmers
    "int_parsing_size": "is too large to be a number here",
    "int_from_float": "should be a whole number",
    "int_type": "should be a whole number",
    "float_type": "should be a number",
    "bool_parsing": "should be 1 or 0, for yes or no",
    "bool_type": "should be 1 or 0, for yes or no",
    "string_type": "should be a text",
    "string_too_short": "should not be empty",
    "string_too_long": "should have at most {max_length} characters",
    "too_long": "should be at most {max_length} of them, not {actual_length}",
}


def _rule(error: Any) -> str:
    """The rule of a pydantic error: 'should be at least 16'."""
    limits = error.get("ctx", {})
    for bound, words in _BOUNDS.items():
        if bound in limits:
            return f"should be {words} {limits[bound]:,.12g}".replace("e+", "e")
    if error["type"] == "string_pattern_mismatch":
        return PATTERNS[limits["pattern"]]
    if rule := _RULES.get(error["type"]):
        return rule.format_map(limits)
    reason = str(error["msg"]).removeprefix("Input ")
    return reason[0].lower() + reason[1:]


def _hint(given: str, known: Collection[str]) -> str:
    guess = nearest(given, known)
    return f" Did you mean {guess!r}?" if guess else ""


def _choices(annotation: Any) -> tuple[str, ...]:
    """The names that a Literal field (or a tuple of them) allows; empty for other fields."""
    if all(isinstance(a, str) for a in get_args(annotation)) and get_args(annotation):
        return tuple(get_args(annotation))
    return next((c for a in get_args(annotation) if (c := _choices(a))), ())


def written_parts(value: tuple[object, ...]) -> tuple[str, ...]:
    """The texts of a list; those that hold commas themselves are separated by semicolons."""
    return tuple(_written(v) for v in value)


def _written(value: object) -> str:
    """A field as text that reads back as an equal value."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, tuple):
        parts = written_parts(value)
        return (SEPARATOR if any("," in p for p in parts) else ",").join(parts)
    if isinstance(value, float):
        short = f"{value:.12g}"
        return (short if float(short) == value else repr(value)).replace("+", "")
    return str(value)
