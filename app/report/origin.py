"""The basis of a report: why this plan, assumptions, accuracy of forecasts, sources, and how to
reproduce the answer."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from app.accuracy import errors
from app.accuracy import words as accuracy_words
from app.calibration.sources import sources_of
from app.document import format as fmt
from app.document import vocabulary
from app.document.blocks import Block, Bullets, Copied, Paragraph, Row, Section
from app.document.table import plain
from app.explain import document as explain_document
from app.explain import explained
from app.explain import words as explain_words
from app.forecast.machines import accelerator_of
from app.plan import document as plan_document
from app.plan import similar_runs
from app.report.choice import FIRST, against_sentence
from app.scenario.link_query import link_query
from app.scenario.model import model_of
from app.scenario.version import version
from core.machine.accelerator import Source
from core.scenario import Scenario
from core.search.plan import Answer, Plan
from hardware.cross_validation import cross_validation
from hardware.facts import NUMBERS
from pricing.offers import snapshot


def why_section(answer: Answer, plan: Plan) -> Section:
    """The plan against the next plan and the next layout, and what would make it faster."""
    found = explained.why(plan, explained.other_of(answer, plan))
    sentences = [explain_words.next_sentence(found.faster)]
    if (other := found.runner_up) is not None:
        sentences.append(against_sentence(other, other.label))
    if (near := found.next_layout) is not None:
        label = f"The next best layout on the same machines, {near.label},"
        sentences.append(against_sentence(near, label))
    faster = explain_document.bottlenecks(found.faster)
    return Section("Why this plan", (Bullets(tuple(sentences)), faster))


def assumptions_section(answer: Answer, plan: Plan | None) -> Section:
    """What the plan assumes, and what the search excluded."""
    blocks: list[Block] = []
    if plan is not None and plan.assumptions:
        blocks.append(Bullets(plan.assumptions))
    left_out = plan_document.excluded(answer)
    if left_out.rows:
        blocks.append(left_out)
    return Section("What is assumed and what was left out", tuple(blocks))


def accuracy_section(plan: Plan | None) -> Section:
    """The error of such forecasts on published runs, and where it is largest."""
    folds = cross_validation()
    blocks: list[Block] = []
    if sentence := accuracy_words.closeness_sentence(folds):
        blocks.append(Paragraph(sentence))
    unseen = ("Throughput", "Runs", "Median error", "P90", "Within 20%", "Inside P10-P90")
    blocks += [
        errors.of_folds(folds).only(*unseen),
        Paragraph("Where the interval is not honest, by class of runs:"),
        Bullets(tuple(accuracy_words.fold_coverage_lines(folds))),
    ]
    if plan is not None:
        blocks += _similar(plan)
    return Section("How accurate such a forecast is", tuple(blocks))


def _similar(plan: Plan) -> list[Block]:
    runs = similar_runs.similar_runs(plan)
    text = Paragraph(similar_runs.sentence(plan, runs))
    return [text, similar_runs.table(runs)] if runs else [text]


def sources_section(scenario: Scenario, answer: Answer, plan: Plan) -> Section:
    """Sources and dates of prices, accelerator figures, rates and the model."""
    named = dict.fromkeys([plan.id, *scenario.pinned, *(p.id for p in answer.plans[:FIRST])])
    shown = [p for name in named for p in answer.plans if p.id == name]
    model = model_of(scenario)
    return Section(
        "Sources and dates",
        (
            Paragraph(f"Model: {model.label}, {model.source}."),
            plain(
                caption="Prices of the plans in this report",
                head=("Machine", "Per GPU", "Seen", "Quality", "Source"),
                rows=tuple(dict.fromkeys(_price(p) for p in shown)),
                numeric=frozenset({1}),
                widths=(5, 2, 2, 2, 6),
            ),
            *_accelerator(scenario, plan.offer.accelerator),
        ),
    )


def _price(plan: Plan) -> Row:
    offer = plan.offer
    return (
        f"{vocabulary.place(offer)}, {vocabulary.purchase(offer.purchase)}",
        fmt.usd_per_hour(plan.usd_per_gpu_hour),
        offer.observed_at,
        offer.quality,
        offer.source,
    )


def _accelerator(scenario: Scenario, name: str) -> Iterable[Block]:
    """The figures of an accelerator, then how a forecast uses each of its rates."""
    device = accelerator_of(name, scenario)
    yield plain(
        caption=f"Figures of {name}",
        head=("Quantity", "As printed", "Source", "Date"),
        rows=tuple(
            (_quantity(q), _printed(s), s.ref, s.date)
            for q, s in device.sources.items()
            if q in NUMBERS
        ),
        widths=(4, 3, 7, 2),
    )
    yield plain(
        caption=f"Where this forecast takes each rate of {name} from",
        head=("Rate", "Kind", "Figures"),
        rows=tuple((vocabulary.measured_constant(s.name), s.label, s.text)
                   for s in sources_of(scenario, name)),
        widths=(3, 3, 8),
    )  # fmt: skip


def _quantity(name: str) -> str:
    text = vocabulary.FACT_WORDS.get(name, name.replace("_", " ")).removeprefix("the ")
    return f"{text[0].upper()}{text[1:]}"


def _printed(source: Source) -> str:
    return f"{source.printed.removesuffix(' count')}{' (assumed)' if source.assumed else ''}"


def again_section(scenario: Scenario, address: str) -> Section:
    """Versions, the link, and the command lines that reproduce this answer."""
    prices = snapshot(scenario.prices or None)
    link = "?" + link_query(scenario, prices.id)
    web = address.startswith(("https://", "http://"))
    whole = f"{address.partition('?')[0].rstrip('/')}/{link}" if web else link
    rows = [
        ("Runcast", version() or "not installed"),
        ("Price snapshot", f"{prices.id}, with prices from {prices.oldest} to {prices.newest}"),
        ("Price book", scenario.price_book or "none"),
        ("Quotes", "; ".join(scenario.quotes) or "none"),
        ("Calibrations", ", ".join(scenario.calibration) or "none"),
    ]
    quoted = shlex.quote(link)
    return Section(
        "How to get this answer again",
        (
            plain(caption="Versions", head=("What", "Which"), rows=rows, widths=(1, 4)),
            Copied(label="Link", text=whole, address=whole if web else ""),
            Copied(label="On the command line", text=f"runcast plan --link {quoted}"),
            Copied(
                label="This report",
                text=f"runcast report --link {quoted} --to md,html,pdf --out report",
            ),
        ),
    )
