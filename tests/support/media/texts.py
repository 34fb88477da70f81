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
from app.buy import words as buy_words
from app.forecast.with_failures import of_plans
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
        found |= _read(rf"{USD} expected", text, "expected_usd")
    return found


def plan_cards(s: Shown) -> Values:
    first, *others = cards.headlines(s.scenario, s.answer, s.plan, TODAY)
    found: Values = {"expected_usd": first.value} if _priced(s) else {"expected_hours": first.value}
    if _priced(s):
        found |= _read(rf"{TIME} on", " ".join(first.lines), "expected_hours")
    memory = next(c for c in others if "memory" in c.label)
    found["memory_bytes.total"] = memory.value
    return found


def selected_facts(s: Shown) -> Values:
    (failing,) = of_plans(s.scenario, (s.plan,))
    facts = dict(plan_document.facts(s.scenario, s.plan, failing, TODAY))
    found = _read(rf"^{TIME} ", facts["Expected time"], "expected_hours")
    if _priced(s):
        found |= _read(rf"^{USD} ", facts["Expected cost"], "expected_usd")
        found |= _read(rf"^{USD} in", facts["Had nothing failed"], "usd")
    return found


def plan_terminal(s: Shown) -> Values:
    (line,) = ranked(s.answer.plans[:1]).cells()
    costs = [cell for cell in line if re.fullmatch(USD, cell)]
    found: Values = {"expected_usd": costs[0]} if _priced(s) else {}
    times = [cell for cell in line if re.fullmatch(TIME, cell)]
    return {**found, "expected_hours": times[0]}


def risk_terminal(s: Shown) -> Values:
    """What the sentences call a mean, and what they call expected."""
    text = " ".join(risk_sentences(s.scenario, s.risk))
    found = _read(
        rf"Expected, all in: {TIME} \(P90 {TIME}\)", text, "expected_hours", "expected_hours_p90"
    )
    if _priced(s):
        found |= _read(rf"\) and {USD} \(P90 {USD}\)", text, "expected_usd", "expected_usd_p90")
    return found


def risk_terminal_mean(s: Shown) -> Values:
    """What the sentence about failures calls the mean."""
    text = " ".join(risk_sentences(s.scenario, s.risk))
    if not _priced(s):
        return _read(rf"failures it takes {TIME} in the mean", text, "expected_hours")
    return _read(
        rf"failures it takes {TIME} and {USD} instead of {USD} in the mean", text,
        "expected_hours", "expected_usd", "usd",
    )  # fmt: skip


def buy_terminal(s: Shown) -> Values:
    if not _priced(s):
        return {}
    return _read(
        rf"is expected to cost {USD} in {TIME}", buy_words.all_in_sentence(s.purchases),
        "expected_usd", "expected_hours",
    )  # fmt: skip


def buy_terminal_mean(s: Shown) -> Values:
    """The row of the way in which the plan is bought."""
    table = buy_document.cheapest_first(s.purchases)
    way = next(w for w in s.purchases.ways if w.name == own_way(s))
    if way.usd is None:
        return {}
    heads = [column.head for column in table.columns]
    cells = table.cells()[list(table.rows).index(way)]
    return {"expected_usd": dict(zip(heads, cells, strict=True))["Cost, mean"]}


def bill_terminal(s: Shown) -> Values:
    if s.bill.total is None:
        return {}
    text = bill_sentences(s.scenario, s.bill)[0]
    return _read(rf"all in, {USD} are expected", text, "expected_usd")


def bill_terminal_mean(s: Shown) -> Values:
    """What the sentence and the table call the mean of all lines."""
    if s.bill.total is None:
        return {}
    sentence = _read(rf"costs {USD} in the mean", bill_sentences(s.scenario, s.bill)[0], "usd")
    lines = bill_document.lines(s.bill)
    expected = next(n for n, c in enumerate(lines.columns) if c.name == "expected")
    total = next(n for n, r in enumerate(lines.rows) if r.line.name == "total")
    assert lines.cells()[total][expected] == sentence["usd"]
    return {"expected_usd": sentence["usd"]}


def scale_terminal(s: Shown) -> Values:
    text = scale_words.scale_sentences(s.scenario, s.scale)[0]
    found = _read(rf"expected to take {TIME}", text, "expected_hours")
    return found | (_read(USD, text, "expected_usd") if _priced(s) else {})


def launch_header(s: Shown) -> Values:
    text = " | ".join(job_of(s.scenario, s.plan).header.forecast)
    found = _read(r"([\d.,]+ \w+) of .* at the peak", text.partition("steps | ")[2], _PEAK)
    found |= _read(rf"\| {TIME}(?: and {USD})? expected, all in", text, "expected_hours", "usd")
    usd = found.pop("usd")
    return {**found, **({"expected_usd": usd or ""} if _priced(s) else {})}


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
    found = _read(rf"Time of the run, all in {TIME} {TIME} {TIME} {TIME}", text, *spread)
    if _priced(s):
        names = [n.replace("hours", "usd") for n in spread]
        found |= _read(rf"Cost of the run, all in {USD} {USD} {USD} {USD}", text, *names)
        found |= _read(rf"Cost had nothing failed \S+ {USD} {USD}", text, "usd_p10", "usd")
    return found


def _report_mean(s: Shown, kind: str) -> Values:
    """What the report's section of cost calls a mean."""
    if not _priced(s):
        return {}
    return _read(rf"and {USD} instead of {USD} in the mean", _report_text(s, kind),
                 "expected_usd", "usd")  # fmt: skip


def _report_reader(read: Callable[[Shown, str], Values], kind: str) -> Callable[[Shown], Values]:
    return lambda s: read(s, kind)


TEXTS: Mapping[str, Callable[[Shown], Values]] = {
    "answer sentence": answer_sentence,
    "cards": plan_cards,
    "facts of the selected plan": selected_facts,
    "plan": plan_terminal,
    "risk": risk_terminal,
    "risk, mean": risk_terminal_mean,
    "buy": buy_terminal,
    "buy, mean": buy_terminal_mean,
    "bill": bill_terminal,
    "bill, mean": bill_terminal_mean,
    "scale": scale_terminal,
    "launch files": launch_header,
    "launch files, limit": launch_limit,
    **{f"report {kind}": _report_reader(_report, kind) for kind in WRITERS},
    **{f"report {kind}, mean": _report_reader(_report_mean, kind) for kind in WRITERS},
}
