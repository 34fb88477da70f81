"""What the sentences, tables and reports about one plan show of it, as texts: media of
tests/support/media/documents.py."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping

import pypdf

from app.bill import document as bill_document
from app.bill.bill import bill_sentences
from app.buy import document as buy_document
from app.launch.job import job_of
from app.plan import cards
from app.plan import document as plan_document
from app.plan import words as plan_words
from app.plan.answer_document import ranked
from app.report.report import WRITERS
from app.risk.words import risk_sentences
from app.scale import words as scale_words
from tests.support.media.shown import TODAY, Shown, Values, own_way

USD = r"(\$\d+(?:,\d{3})*(?:\.\d+)?[kMB]?)"
TIME = r"([\d.,]+ (?:s|min|h|days?|months?|years?))"


def _read(pattern: str, text: str, *names: str) -> Values:
    """The groups of a pattern by their names; what is not there reads as ''."""
    match = re.search(pattern, " ".join(text.replace("\\", "").split()))
    return dict(zip(names, match.groups() if match else [""] * len(names), strict=True))


def _priced(s: Shown) -> bool:
    return s.plan.usd is not None


def answer_sentence(s: Shown) -> Values:
    text = plan_words.answer_sentence(s.scenario, s.answer, TODAY)
    found = _read(rf"{TIME} \(P90 {TIME}\) on", text, "expected_hours", "expected_hours_p90")
    if _priced(s):
        found |= _read(rf"{USD} (?:expected|committed)", text, "paid_usd")
        if s.plan.cost.commits:
            found |= _read(rf"this run uses {USD} of it", text, "expected_usd")
    return found


def plan_cards(s: Shown) -> Values:
    first, *others = cards.headlines(s.scenario, s.answer, s.plan, TODAY)
    found: Values = {"paid_usd": first.value} if _priced(s) else {"expected_hours": first.value}
    if _priced(s):
        found |= _read(rf"{TIME} on", " ".join(first.lines), "expected_hours")
    memory = next(c for c in others if "memory" in c.label)
    found["memory_bytes.total"] = memory.value
    return found


def selected_facts(s: Shown) -> Values:
    facts = dict(plan_document.facts(s.scenario, s.plan, TODAY))
    found = _read(rf"^{TIME} ", facts["Expected time"], "expected_hours")
    if _priced(s):
        found |= _read(rf"^{USD} ", facts["Expected cost"], "paid_usd")
        found |= _read(rf"^{USD} in", facts["Without failures"], "usd")
    return found


def plan_terminal(s: Shown) -> Values:
    (line,) = ranked(s.answer.plans[:1]).cells()
    costs = [cell for cell in line if re.fullmatch(USD, cell)]
    found: Values = {"paid_usd": costs[0]} if _priced(s) else {}
    times = [cell for cell in line if re.fullmatch(TIME, cell)]
    return {**found, "expected_hours": times[0]}


def _risk(text: str, s: Shown) -> Values:
    spread = ("expected_hours", "expected_hours_p10", "expected_hours_p90")
    found = _read(
        rf"takes about {TIME} on average, 8 times in 10 between {TIME} and {TIME}\.", text, *spread
    )
    if _priced(s):
        usd = [name.replace("hours", "usd") for name in spread]
        range_of = rf"about {USD} on average, 8 times in 10 between {USD} and {USD}"
        found |= _read(rf"(?:costs|uses) {range_of}", text, *usd)
        found |= _read(rf"at the forecast speed, it takes {TIME} and costs {USD}", text, "", "usd")
        found.pop("")
        if s.plan.cost.commits:
            found |= _read(rf"You commit to {USD}", text, "paid_usd")
    return found


def risk_terminal(s: Shown) -> Values:
    return _risk(" ".join(risk_sentences(s.scenario, s.risk)), s)


def buy_terminal(s: Shown) -> Values:
    """The row of the way in which the plan is bought."""
    table = buy_document.cheapest_first(s.purchases)
    way = next(w for w in s.purchases.ways if w.name == own_way(s))
    if way.usd is None:
        return {}
    heads = [column.name for column in table.columns]
    cells = table.cells()[list(table.rows).index(way)]
    row = dict(zip(heads, cells, strict=True))
    return {"expected_usd": row["usd"]}


def bill_terminal(s: Shown) -> Values:
    """The sentence and the total of the table."""
    if s.bill.total is None:
        return {}
    text = " ".join(bill_sentences(s.scenario, s.bill))
    lines = bill_document.lines(s.bill)
    total = next(n for n, r in enumerate(lines.rows) if r.line.name == "total")
    row = dict(zip((c.name for c in lines.columns), lines.cells()[total], strict=True))
    found = _read(rf"about {USD} on average", text, "expected_usd")
    assert row["expected"] == found["expected_usd"]
    if s.plan.cost.commits:
        found |= _read(rf"commits you to {USD}", text, "paid_usd")
    return found | {"expected_usd_p10": row["lower"], "expected_usd_p90": row["upper"]}


def scale_terminal(s: Shown) -> Values:
    text = scale_words.scale_sentences(s.scenario, s.scale)[0]
    found = _read(rf"takes about {TIME}", text, "expected_hours")
    return found | (_read(USD, text, "expected_usd") if _priced(s) else {})


def launch_header(s: Shown) -> Values:
    text = " | ".join(job_of(s.scenario, s.plan).header.forecast)
    found = _read(r"([\d.,]+ \w+) of .* at the peak", text.partition("steps | ")[2], _PEAK)
    spread = ("expected_hours", "expected_hours_p10", "expected_hours_p90")
    found |= _read(rf"\| {TIME} expected with failures, P10 to P90 {TIME} to {TIME}", text, *spread)
    if _priced(s):
        usd = [name.replace("expected_hours", "paid_usd") for name in spread]
        found |= _read(rf"\| {USD} expected, P10 to P90 {USD} to {USD}", text, *usd)
    return found


_PEAK = "memory_bytes.total"


def launch_limit(s: Shown) -> Values:
    """The time limit of the job: the P90 of its hours."""
    return {"expected_hours_p90": job_of(s.scenario, s.plan).limit_hours}


def _report_text(s: Shown, kind: str) -> str:
    content = WRITERS[kind](s.report)
    if kind == "pdf":
        return " ".join(p.extract_text() for p in pypdf.PdfReader(io.BytesIO(content)).pages)
    text = content.decode()
    if kind == "html":
        text = re.sub(r"<[^>]+>", " ", text).replace("&#39;", "'")
    return text.replace("|", " ")


def _report(s: Shown, kind: str) -> Values:
    text = _report_text(s, kind)
    spread = ("expected_hours", "expected_hours_p10", "expected_hours_p50", "expected_hours_p90")
    found = _read(rf"Time of the run {TIME} {TIME} {TIME} {TIME}", text, *spread)
    if _priced(s):
        names = [n.replace("hours", "usd") for n in spread]
        found |= _read(rf"Cost of the run {USD} {USD} {USD} {USD}", text, *names)
        found |= _read(rf"Cost without failures \S+ {USD} {USD}", text, "usd_p10", "usd")
    return found | _risk(" ".join(text.replace("\\", "").split()), s)


def _report_reader(read: Callable[[Shown, str], Values], kind: str) -> Callable[[Shown], Values]:
    return lambda s: read(s, kind)


TEXTS: Mapping[str, Callable[[Shown], Values]] = {
    "answer sentence": answer_sentence,
    "cards": plan_cards,
    "facts of the selected plan": selected_facts,
    "plan": plan_terminal,
    "risk": risk_terminal,
    "buy": buy_terminal,
    "bill": bill_terminal,
    "scale": scale_terminal,
    "launch files": launch_header,
    "launch files, limit": launch_limit,
    **{f"report {kind}": _report_reader(_report, kind) for kind in WRITERS},
}
