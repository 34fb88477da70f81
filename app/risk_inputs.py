"""What a job is assumed to suffer: as given, else as hardware/reliability.csv has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.errors import ScenarioError, shown
from core.units import written_number
from hardware.reliability import used


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskOption:
    """One number of the command line; where it is left out, the table has it."""

    name: str  # as in the table and in the JSON, with its unit
    option: str
    metavar: str
    help: str
    most: float = 1e9
    least: float = 0.0


OPTIONS = (
    RiskOption(
        name="failures_per_node_day", option="--failures-per-node-day", metavar="F",
        help="Failures of 8 GPUs and their host, a day.", most=1e6,
    ),
    RiskOption(
        name="job_failures_per_day", option="--job-failures-per-day", metavar="F",
        help="Stops of the whole job beside them, a day.", most=1e6,
    ),
    RiskOption(
        name="checkpoint_s", option="--checkpoint-seconds", metavar="S",
        help="How long a checkpoint stops training.",
    ),
    RiskOption(
        name="upload_s", option="--upload-seconds", metavar="S",
        help="How long it is then uploaded behind training (0).",
    ),
    RiskOption(
        name="interval_s", option="--interval-seconds", metavar="S",
        help="Work between checkpoints; the best if left out.", least=1e-3,
    ),
    RiskOption(
        name="detection_s", option="--detection-seconds", metavar="S",
        help="From a failure until the job is started again.",
    ),
    RiskOption(
        name="restart_s", option="--restart-seconds", metavar="S",
        help="From there until it trains: start, reading the checkpoint.",
    ),
    RiskOption(
        name="wait_s", option="--wait-seconds", metavar="S",
        help="Mean wait for a replacement machine.",
    ),
    RiskOption(
        name="spares", option="--spares", metavar="N",
        help="Spare machines that need no waiting.", most=10_000,
    ),
    RiskOption(
        name="repair_s", option="--repair-seconds", metavar="S",
        help="Until a failed machine is a spare again; needed with --spares.",
    ),
    RiskOption(
        name="slow_probability", option="--slow-probability", metavar="F",
        help="Chance that a node is 10% slow.", most=1,
    ),
    RiskOption(
        name="weibull_shape", option="--weibull-shape", metavar="K",
        help="Simulate uptimes of this shape beside: below 1 they come in bursts.",
        least=0.2, most=10,
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One number that the answer rests on, and where it comes from."""

    name: str
    value: float
    basis: str  # given, default (published) or assumed
    source: str


def given_numbers(texts: Mapping[str, str | None]) -> dict[str, float]:
    """The options that were typed, as numbers; a mistake is a sentence."""
    found = {}
    for option in OPTIONS:
        text = texts.get(option.name)
        if text is None:
            continue
        try:
            value = written_number(text)
        except ValueError as e:
            raise ScenarioError(f"{option.option}: {e}.") from None
        if not option.least <= value <= option.most:
            raise ScenarioError(
                f"{option.option} {shown(text)} is not between {option.least:g} and "
                f"{option.most:g}."
            )
        found[option.name] = value
    if found.get("spares", 0) % 1:
        raise ScenarioError(f"--spares {shown(texts['spares'])} is not a whole number.")
    if "spares" in found and "repair_s" not in found:
        raise ScenarioError("--spares needs --repair-seconds: until a spare is there again.")
    if "spares" in found and not found.get("wait_s"):
        raise ScenarioError("--spares needs --wait-seconds: what a job waits without one.")
    return found


def known(name: str, given: Mapping[str, float]) -> Input:
    """What was given, else the row of the table."""
    if name in given:
        return Input(name=name, value=given[name], basis="given", source="")
    fact = used(name)
    source = fact.note if fact.role == "assumed" else f"{fact.source}; {fact.scope}; {fact.note}"
    return Input(name=name, value=fact.value, basis=fact.role, source=source)
