"""An audit on a terminal: the verdict, the precisions, the checks."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from app.audit.audit import Audit
from app.audit.checks import TITLES
from app.audit.speed import NAMES, Speed, times
from app.audit.words import assumption_sentences, claim_sentence, decides_words, verdict_sentence
from app.document import format as fmt
from app.document.terminal import console, print_wrapped

# Said by the reasons above the checks already.
SAID = ("best_published", "forecast", "dense_peak")


def print_audit(audit: Audit) -> None:
    """The claim, the verdict with its reasons, every precision, every check."""
    out = console()
    print_wrapped(out, claim_sentence(audit.claim))
    print_wrapped(out, verdict_sentence(audit))
    out.print()
    out.print(_precisions(audit.speeds))
    out.print("\nWhy:")
    for s in audit.speeds:
        reasons = s.reasons if s is audit.decisive else s.reasons[:1]
        for n, reason in enumerate(reasons):
            first = f" - {s.precision}: " if not n else "   "
            print_wrapped(out, reason, indent="   ", first=first)
    out.print("\nChecks:")
    _print_checks(out, audit)
    for sentence in assumption_sentences(audit.claim):
        print_wrapped(out, sentence)


def _precisions(speeds: tuple[Speed, ...]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    heads = ("Precision", "Verdict", "Of dense peak (6 P)", "Best published", "Forecast", "Decides")
    for n, head in enumerate(heads):
        table.add_column(head, justify="right" if n in (2, 3, 4) else "left", no_wrap=n < 5)
    for s in speeds:
        table.add_row(
            s.precision,
            NAMES[s.verdict],
            f"{fmt.percent(s.share)} ({fmt.percent(s.share_by_rule)})",
            fmt.MISSING if s.over_best is None else times(s.over_best),
            forecast_words(s),
            decides_words(s),
        )
    return table


def forecast_words(s: Speed) -> str:
    """P10 to P90 in tokens/s a GPU."""
    if s.forecast is None:
        return fmt.MISSING
    return f"{fmt.count(s.forecast.p10)} to {fmt.count(s.forecast.p90)}"


def _print_checks(out: Console, audit: Audit) -> None:
    for c in audit.checks:
        if c.name in SAID:
            continue
        line = f"{c.status}: {TITLES[c.name]}. {c.sentence}"
        print_wrapped(out, line, indent="   ", first=" - ")
