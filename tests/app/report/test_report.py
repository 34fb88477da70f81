"""A plan as a report: what it says, its three forms, hostile names, the same bytes again."""

from __future__ import annotations

import datetime as dt
import io
import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

import pypdf
import pypdfium2
import pytest
from markdown_it import MarkdownIt

from app.accuracy import words as accuracy_words
from app.document.blocks import Copied, Figure, Paragraph, Table
from app.forecast import answer as forecast_answer
from app.forecast import resolve
from app.plan import words as plan_words
from app.report.report import MAX_NAME, WRITERS, report_of
from app.scenario.link_query import link_query
from core.errors import ScenarioError
from core.scenario import Scenario
from core.search.plan import Answer
from hardware.cross_validation import cross_validation
from pricing.offers import snapshot

DAY = dt.date(2026, 11, 22)
HOST = "https://runcast.example.org/"
ASKED = {
    "model": "llama3.1-8b", "num_tokens": "100B", "gpu": "H100-80GB-SXM,A100-80GB-SXM",
    "cloud": "aws", "num_gpus": "32,64", "deadline_days": "30",
}  # fmt: skip
HOSTILE = (
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "[x](javascript:alert(1))",
    "![x](http://example.org/x.png)", "a | b", "=1+1", "# not a heading", "- not a list",
    "1. not a list", "```", "$x^2$", '#eval("1+1")', "*bold* _it_", "{{ 7*7 }}{% for %}",
    "<!-- gone", "&lt;b&gt;", "\\textbf{x}", "@label", "trailing\\",
)  # fmt: skip


def asked(**more: str) -> tuple[Scenario, Answer]:
    scenario = resolve.resolve_strict(Scenario.parse({**ASKED, **more}))
    return scenario, forecast_answer.answer(scenario, top=50, with_frontier=True)


@cache
def plain() -> tuple[Scenario, Answer]:
    return asked()


@cache
def whole():
    """A report with everything in it: limits, pinned plans, a name, an address."""
    _, answer = plain()
    scenario, answer = asked(pinned=",".join(p.id for p in answer.plans[:3]))
    return report_of(scenario, answer, date=DAY, address=HOST, name="Spring run")


@cache
def written(kind: str) -> bytes:
    return WRITERS[kind](whole())


def tables_of(report) -> dict[str, Table]:
    blocks = [b for s in report.sections for b in s.blocks]
    return {b.caption: b for b in blocks if isinstance(b, Table)}


# --- reading the three forms --------------------------------------------------------------------


def squeezed(text: str) -> str:
    """Without spaces and line breaks: paper breaks a line where it must."""
    return re.sub(r"\s", "", text)


def pdf_text(content: bytes) -> str:
    return "".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(content)).pages)


class Read(HTMLParser):
    """Tags with what they say, and the text that a reader sees."""

    def __init__(self, content: bytes) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self._style = False
        self.feed(content.decode())

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._style = tag == "style"

    def handle_data(self, data):
        if not self._style:
            self.text.append(data)

    def handle_endtag(self, tag):
        self._style = False

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def markdown(content: bytes):
    """Every token, those inside of a line too, as CommonMark with tables reads them."""
    tokens = MarkdownIt("commonmark").enable("table").parse(content.decode())
    return [t for token in tokens for t in (token, *(token.children or ()))]


def markdown_text(content: bytes) -> str:
    kinds = ("text", "text_special", "fence", "code_inline")
    return "".join(t.content for t in markdown(content) if t.type in kinds)


TEXT = {"md": markdown_text, "html": lambda c: "".join(Read(c).text), "pdf": pdf_text}


# --- what a report says -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", WRITERS)
def test_every_form_has_the_answer_every_heading_and_the_link(kind):
    report, said = whole(), squeezed(TEXT[kind](written(kind)))
    scenario, answer = plain()
    assert squeezed(plan_words.answer_sentence(scenario, answer)) in said
    for text in (report.title, report.name, report.dated, *(s.title for s in report.sections)):
        assert squeezed(text) in said
    pinned = scenario.model_copy(update={"pinned": tuple(p.id for p in answer.plans[:3])})
    link = HOST + "?" + link_query(pinned, snapshot().id)
    assert link in said
    for block in (b for s in report.sections for b in s.blocks):
        if isinstance(block, Table):
            assert squeezed("".join(block.cells()[-1])) in said or kind == "md"
            assert squeezed(block.cells()[0][0]) in said
        elif isinstance(block, Copied):
            assert squeezed(block.text) in said


def test_the_numbers_to_decide_by_are_those_of_the_plan():
    _, answer = plain()
    plan = answer.plans[0]
    table = next(t for c, t in tables_of(whole()).items() if c.startswith("Numbers of plan 1"))
    rows = {name: cells for name, *cells in table.rows}
    short, days = plan_words.fmt.usd_short, plan_words.fmt.days
    assert rows["Cost of the run"][0] == short(plan.expected_usd)
    assert rows["Cost of the run"][3] == short(plan.cost.total.p90)
    assert rows["Time of the run"][0] == days(plan.expected_hours)
    assert rows["Cost without failures"][2] == short(plan.usd.p50)
    assert rows["Time without failures"][1] == days(plan.hours.p10)


def test_a_plan_that_the_link_selects_is_reported_and_the_best_one_named():
    _, answer = plain()
    third = answer.plans[2]
    report = report_of(*asked(plan=third.id), date=DAY)
    first = report.sections[0].blocks
    assert isinstance(first[1], Paragraph)
    assert first[1].text.startswith("This is plan 3, which the link selects. Recommended is")
    assert any(c.startswith("Numbers of plan 3") for c in tables_of(report))


def test_sources_and_dates_of_prices_and_figures_are_there():
    _, answer = plain()
    plan, tables = answer.plans[0], tables_of(whole())
    prices = tables["Prices of the plans in this report"]
    assert any(plan.offer.source in row and plan.offer.observed_at in row for row in prices.rows)
    figures = tables[f"Figures of {plan.offer.accelerator}"]
    assert len(figures.rows) > 8
    assert all(source and date for _, _, source, date in figures.rows)


def test_accuracy_is_that_of_unseen_runs_with_its_failures():
    section = next(s for s in whole().sections if s.title.startswith("How accurate"))
    said = section.blocks[0].text
    assert said == accuracy_words.closeness_sentence(cross_validation())
    classes = next(b for b in section.blocks if type(b).__name__ == "Bullets")
    assert any("too narrow" in line or "too wide" in line for line in classes.items)


def test_without_a_plan_the_report_says_why():
    scenario, answer = asked(model="llama3.1-405b", num_gpus="1", gpu="A100-80GB-SXM")
    assert not answer.plans
    report = report_of(scenario, answer, date=DAY)
    for kind in WRITERS:
        said = squeezed(TEXT[kind](WRITERS[kind](report)))
        assert squeezed(plan_words.answer_sentence(scenario, answer)) in said


def test_a_name_that_is_too_long_is_refused():
    with pytest.raises(ScenarioError, match=r"has 81 characters; at most 80"):
        report_of(*plain(), date=DAY, name="x" * (MAX_NAME + 1))


# --- hostile names ------------------------------------------------------------------------------


@cache
def hostile():
    """Every text that somebody else may have written, hostile."""
    scenario, answer = plain()
    bad = " ".join(HOSTILE)
    plans = [
        replace(
            p,
            offer=replace(
                p.offer,
                instance_type=f"{bad} {p.rank}" if p.rank == 1 else HOSTILE[p.rank % len(HOSTILE)],
                region=HOSTILE[(p.rank + 5) % len(HOSTILE)],
                source=HOSTILE[(p.rank + 9) % len(HOSTILE)],
                note=bad,
            ),
            assumptions=(*p.assumptions, *HOSTILE),
            calibration=HOSTILE[0],
        )
        for p in answer.plans
    ]
    changed = replace(answer, plans=tuple(plans))
    return report_of(scenario, changed, date=DAY, name=bad[:MAX_NAME])


@pytest.mark.parametrize("kind", WRITERS)
def test_hostile_names_are_text(kind):
    content = WRITERS[kind](hostile())
    said = squeezed(TEXT[kind](content))
    for text in HOSTILE:
        assert squeezed(text) in said, text
    assert squeezed(" ".join(HOSTILE)[:MAX_NAME]) in said


def test_no_name_becomes_markup_of_markdown():
    tokens = markdown(WRITERS["md"](hostile()))
    kinds = {t.type for t in tokens}
    assert not kinds & {"html_block", "html_inline", "link_open", "image", "hr", "code_inline"}
    assert {t.tag for t in tokens if t.type == "heading_open"} == {"h1", "h2"}
    assert sum(t.type == "heading_open" for t in tokens) == 1 + len(hostile().sections)
    assert sum(t.type == "ordered_list_open" for t in tokens) == 0


def test_every_table_of_the_markdown_is_one():
    tokens = markdown(WRITERS["md"](hostile()))
    blocks = [b for s in hostile().sections for b in s.blocks]
    tables = [b for b in blocks if isinstance(b, Table)]
    tables += [b.numbers for b in blocks if isinstance(b, Figure)]
    assert sum(t.type == "table_open" for t in tokens) == len(tables)
    cells = sum(t.type in ("td_open", "th_open") for t in tokens)
    assert cells == sum(len(t.head) * (1 + len(t.rows)) for t in tables)


def test_the_html_loads_nothing_and_runs_nothing():
    page = Read(WRITERS["html"](hostile()))
    assert not {"script", "iframe", "object", "embed", "link", "base", "form"} & {
        tag for tag, _ in page.tags
    }
    assert not [a for _, attributes in page.tags for a in attributes if a.startswith("on")]
    assert all(i["src"].startswith("data:image/svg+xml;base64,") for i in page.named("img"))
    assert not [a for _, a in page.tags if "srcset" in a or "style" in a]
    policy = next(m for m in page.named("meta") if m.get("http-equiv"))
    assert policy["content"].startswith("default-src 'none'; img-src data:;")


def test_a_picture_in_the_html_holds_no_script_and_no_address():
    import base64

    images = Read(written("html")).named("img")
    assert len(images) == 3
    for image in images:
        drawn = base64.b64decode(image["src"].partition(",")[2]).decode()
        assert drawn.startswith("<svg")
        assert "<script" not in drawn
        assert re.findall(r'href="(?!#)', drawn) == []


# --- readable for everybody ---------------------------------------------------------------------


def test_the_html_can_be_read_aloud():
    page = Read(written("html"))
    assert page.named("html") == [{"lang": "en"}]
    headings = [tag for tag, _ in page.tags if re.fullmatch(r"h\d", tag)]
    assert headings == ["h1"] + ["h2"] * len(whole().sections)
    assert len(page.named("caption")) == len(page.named("table"))
    assert all(th.get("scope") in ("col", "row") for th in page.named("th"))
    assert all(len(i["alt"]) > 40 for i in page.named("img"))
    links = [a["href"] for a in page.named("a")]
    assert len(links) == 1
    assert links[0].startswith(HOST + "?v=1&")


def test_the_pdf_is_tagged_named_and_archivable():
    reader = pypdf.PdfReader(io.BytesIO(written("pdf")))
    root = reader.trailer["/Root"]
    assert reader.metadata.title == whole().title
    assert root["/Lang"] == "en"
    assert root["/MarkInfo"]["/Marked"]
    about = root["/Metadata"].get_data().decode()
    assert "<pdfuaid:part>1</pdfuaid:part>" in about
    assert "<pdfaid:part>2</pdfaid:part>" in about
    titles = [o["/Title"] for o in reader.outline if isinstance(o, dict)]
    assert titles == [s.title for s in whole().sections]
    assert alternatives(root["/StructTreeRoot"]) >= {
        b.alt for s in whole().sections for b in s.blocks if isinstance(b, Figure)
    }


def alternatives(node, depth: int = 0) -> set[str]:
    """Every alternative text of the tree of tags."""
    node = node.get_object() if hasattr(node, "get_object") else node
    if isinstance(node, list):
        return {t for child in node for t in alternatives(child, depth + 1)}
    if not isinstance(node, dict) or depth > 40:
        return set()
    own = {str(node["/Alt"])} if "/Alt" in node else set()
    return own | (alternatives(node["/K"], depth + 1) if "/K" in node else set())


def test_no_page_of_the_pdf_is_blank_and_nothing_leaves_its_margins():
    document = pypdfium2.PdfDocument(written("pdf"))
    assert 4 <= len(document) <= 12
    for page in document:
        picture = page.render(scale=1, grayscale=True).to_pil()
        width, height = picture.size
        dark = picture.point(lambda v: 255 if v < 200 else 0)
        left, top, right, bottom = dark.getbbox()
        assert left > 0.05 * width
        assert right < 0.95 * width
        assert bottom - top > 0.3 * height
        assert sum(dark.histogram()[128:]) > 0.005 * width * height


def test_what_the_fonts_lack_is_written_as_its_code():
    report = replace(whole(), name="\u4e2d\u6587 \U0001f680 e\u0301 \u202eabc \u00b5\u2264\u20ac")
    said = pdf_text(WRITERS["pdf"](report))
    assert squeezed("U+4E2DU+6587 U+1F680 eU+0301 abc \u00b5\u2264\u20ac") in squeezed(said)


def test_every_character_that_is_shown_as_itself_has_a_glyph():
    from app.document.pdf import SHOWN

    every = [chr(c) for c in range(0x20, 0x3000) if SHOWN.match(chr(c))]
    assert len(every) > 700
    report = replace(
        whole(),
        sections=(replace(whole().sections[0], blocks=(Paragraph(" ".join(every)),)),),
    )
    assert WRITERS["pdf"](report).startswith(b"%PDF-")  # PDF/UA refuses what has none


# --- again --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", WRITERS)
def test_the_same_report_gives_the_same_bytes(kind):
    scenario, answer = plain()
    first, second = (report_of(scenario, answer, date=DAY, name="a") for _ in range(2))
    assert WRITERS[kind](first) == WRITERS[kind](second)


def test_another_day_changes_the_dated_line_and_nothing_else():
    scenario, answer = plain()
    first = report_of(scenario, answer, date=DAY)
    later = report_of(scenario, answer, date=DAY + dt.timedelta(days=400))
    assert first.sections == later.sections
    for kind in ("md", "html"):
        lines = [WRITERS[kind](r).decode().splitlines() for r in (first, later)]
        changed = [a for a, b in zip(*lines, strict=True) if a != b]
        assert len(changed) == 1
        assert "Written on 2026-11-22" in changed[0]


def test_the_layout_of_the_pdf_imports_and_reads_nothing():
    from app.document.pdf import TEMPLATE

    source = TEMPLATE.read_text()
    assert not re.findall(r"#?\b(?:import|include|read|eval|plugin)\b|@preview|http", source)
