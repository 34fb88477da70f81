"""All findings of `runcast doctor`, and their summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from app.operate import data, installed, prices, settings, tools
from app.operate.finding import ORDER, Finding, State
from core.errors import RuncastError

Look = Callable[[datetime], Iterable[Finding]]


def examined(now: datetime | None = None) -> list[Finding]:
    """All findings, in the order in which they are printed."""
    at = datetime.now(UTC) if now is None else now
    looks: tuple[tuple[str, Look], ...] = (
        ("installed", installed.look),
        ("store", data.look_at_store),
        ("prices", prices.look),
        ("data", data.look_at_files),
        ("settings", settings.look),
        ("tools", tools.look),
    )
    return [finding for area, look in looks for finding in _found(area, look, at)]


def _found(area: str, look: Look, now: datetime) -> list[Finding]:
    """The findings of one check; a check that fails becomes a finding, and the others go on."""
    try:
        return list(look(now))
    except RuncastError as e:
        said = str(e)
    except OSError as e:
        said = f"It cannot be read: {(e.strerror or type(e).__name__).lower()}."
    todo = "Mend what the sentence names, then run `runcast doctor` again."
    return [Finding(area=area, name=area, state="broken", value=said, todo=todo)]


def worst(found: Sequence[Finding]) -> State:
    """The worst state of all findings."""
    return max((f.state for f in found), key=ORDER.index, default="ok")


def summary(found: Sequence[Finding]) -> str:
    """One sentence with the number of findings by state.

    >>> summary([Finding(area="a", name="b", state="ok", value="c")])
    'Nothing is broken, no warnings.'
    """
    counts = Counter(f.state for f in found)
    broken = f"{counts['broken']} broken" if counts["broken"] else "Nothing is broken"
    warned = counts["warning"]
    return f"{broken}, {warned or 'no'} {'warning' if warned == 1 else 'warnings'}."


def doctor_json(found: Sequence[Finding], now: datetime) -> dict[str, Any]:
    """The JSON document; its keys are documented in docs/operations.md."""
    return {
        "status": worst(found),
        "at": now.isoformat(timespec="seconds"),
        "findings": [
            {
                "area": f.area,
                "name": f.name,
                "state": f.state,
                "value": f.value,
                "todo": f.todo or None,
                **f.numbers,
            }
            for f in found
        ],
    }
