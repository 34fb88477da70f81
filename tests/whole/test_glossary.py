"""The glossary explains what the pages print: every abbreviation and every choice of the form."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
from streamlit.testing.v1 import AppTest

from app.document import vocabulary
from app.document.glossary import MOST, TERMS, explained, terms_in
from app.document.page import head_help
from app.document.vocabulary import KINDS
from app.forecast import resolve
from app.web.form_words import OPTION_LABELS
from core.scenario import Scenario

MAIN = str(Path(__file__).parents[2] / "app/main.py")
ABBREVIATION = re.compile(r"(?<![\w-])[A-Z][A-Z0-9]*[A-Z][A-Z0-9]*(?![\w-])")
FEW = {"gpu": "H100-80GB-SXM", "cloud": "aws", "num_gpus": "64"}
# Fields whose choices are terms of the field, as the form writes them.
OF_THE_FIELD = ("sharding", "recompute", "precision", "schedule", "optimizer", "context_parallel",
                "task", "purchase")  # fmt: skip
NOT_TERMS = {  # written in capitals, and no terms of the field
    "AWS", "CSV", "GCP", "HTML", "ID", "JSON", "OCI", "PDF", "PNG", "SVG", "URL", "USD", "UTC",
    "YAML", "SXM", "NVL",
}  # fmt: skip
PLAIN = {"none", "all_gather", "offload"}  # said in words


def lacking(labels):
    """Abbreviations of labels that nothing explains."""
    names = set(resolve.accelerator_names())
    found = set()
    for label in labels:
        bare = label
        for name in names:
            bare = bare.replace(name, "")
        known = {t.lower() for t in terms_in(bare)}
        for word in ABBREVIATION.findall(bare):
            stem = word.rstrip("0123456789")
            if {word.lower(), stem.lower()} & known or {word, stem} & NOT_TERMS:
                continue
            found.add(word)
    return found


def choices(field):
    def literals(annotation):
        given = get_args(annotation)
        if given and all(isinstance(a, str) for a in given):
            return given
        return next((c for a in given if (c := literals(a))), ())

    return literals(Scenario.model_fields[field].annotation)


@pytest.fixture(scope="module")
def labels():
    """Everything that the Plan page calls a number or a widget."""
    page = AppTest.from_file(MAIN, default_timeout=90)
    for name, value in FEW.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    kinds = ("selectbox", "multiselect", "number_input", "text_input", "radio", "checkbox",
             "toggle", "metric", "button", "expander")  # fmt: skip
    found = [getattr(w, "label", "") for kind in kinds for w in page.get(kind)]
    found += [str(c) for frame in page.dataframe for c in frame.value.columns]
    found += [str(c) for table in page.table for c in table.value.columns]
    return found


def test_every_abbreviation_of_the_plan_page_is_explained(labels):
    assert len(labels) > 20
    assert not lacking(labels)


def test_an_unknown_abbreviation_would_be_seen():
    assert lacking(["QPS of the run", "MFU"]) == {"QPS"}


@pytest.mark.parametrize("field", OF_THE_FIELD)
def test_every_choice_of_the_form_is_explained(field):
    named = [n for n in choices(field) if n and n not in PLAIN]
    assert named
    assert not [n for n in named if not terms_in(OPTION_LABELS.get(n, n))]


def test_parts_and_kinds_are_explained():
    for name in (*vocabulary.MEMORY_PARTS.values(), *KINDS):
        assert name == "Parameters" or terms_in(name), name


def test_each_term_is_one_sentence():
    for term, text in TERMS.items():
        assert text.endswith("."), term
        assert text[0].isupper() or text[0].isdigit(), term
        assert ". " not in text, term
        assert len(term) + 2 + len(text) <= MOST, term
    assert len({t.lower() for t in TERMS}) == len(TERMS)


def test_a_help_text_holds_whole_sentences():
    text = explained("TP8 PP4 CP2 EP8 DP16 HSDP MFU HFU FSDP2 ZeRO++ QLoRA")
    assert len(text) <= MOST
    assert text.endswith(".")
    assert explained("Region") is None


def test_heads_of_tables_explain_their_terms_and_keep_what_they_said():
    made = head_help(["MFU", "Region", "P90 (days)", "#"], {"#": {"help": "Rank", "width": 9}})
    assert made == {
        "#": {"help": "Rank", "width": 9},
        "MFU": {"help": explained("MFU")},
        "P90 (days)": {"help": explained("P90")},
    }
