"""The link: the codec reads back what it wrote, and a hostile link is sentences, not an error."""

import math
from urllib.parse import parse_qs, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.document.escape import as_text
from app.scenario.age import installed, stamped
from app.scenario.link import address_of, changed, parse
from core.errors import ScenarioError
from core.scenario import MAX_QUERY_CHARS, Scenario

NOW = "0123456789abcdef"
names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,30}", fullmatch=True)
optional_counts = st.none() | st.integers(1, 64)
choices = {
    "purchase": ["on_demand", "spot", "reserved_1y", "reserved_3y"],
    "sharding": ["ddp", "zero1", "zero2", "zero3", "fsdp1", "fsdp2", "hsdp", "zeropp"],
    "recompute": ["none", "selective", "full", "offload"],
}


def read_here(scenario):
    """The scenario as a link of it opens here: with prices, and as made by this version."""
    return stamped(scenario if scenario.prices else changed(scenario, prices=NOW))


def some(values, **bounds):
    return st.lists(values, unique=True, **bounds).map(tuple)


def custom_if_it_has(given):
    """Dimensions go with model=custom."""
    return {"model": "custom"} if {"num_layers", "tied_embeddings"} & set(given) else {}


scenarios = st.fixed_dictionaries(
    {},
    optional={
        "model": names,
        "num_tokens": st.floats(1e-3, 1e16, allow_nan=False),
        "seq_len": st.integers(16, 16_777_216),
        "global_batch_size": st.integers(1, 4_194_304),
        "gpu": some(names, max_size=5),
        "num_gpus": some(st.integers(1, 131_072), max_size=5),
        "cloud": some(names, max_size=5),
        "purchase": some(st.sampled_from(choices["purchase"]), min_size=1),
        "deadline_days": st.floats(1e-6, 36_500),
        "budget_usd": st.floats(1e-2, 1e13),
        "rank_by": st.sampled_from(["usd", "time"]),
        "sharding": some(st.sampled_from(choices["sharding"])),
        "recompute": some(st.sampled_from(choices["recompute"])),
        "tp": st.integers(1, 1024),
        "micro_batch_size": st.integers(1, 65_536),
        "compile": st.booleans(),
        "double_quantisation": st.booleans(),
        "task": st.sampled_from(["pretrain", "sft", "lora", "qlora"]),
        "schedule": st.sampled_from(["naive", "gpipe", "1f1b", "interleaved", "zero_bubble"]),
        "offload_optimizer": st.sampled_from(["none", "cpu", "nvme"]),
        "lora_rank": st.integers(1, 4096),
        "capacity_factor": st.floats(0.1, 64),
        "expert_imbalance": st.floats(1, 1024),
        "num_examples": st.floats(1, 1e15),
        "packing_efficiency": st.floats(1e-6, 1),
        "anchor_tokens_per_s_per_gpu": st.floats(1e-3, 1e9),
        "anchor_gpu": names,
        "anchor_num_gpus": st.integers(1, 131_072),
        "anchor_layout": st.from_regex(r"(tp=[1-8],)?pp=[1-9],sharding=zero1", fullmatch=True),
        "num_layers": st.integers(1, 2048),
        "tied_embeddings": st.booleans(),
        "custom_tflop_per_s": st.floats(1e-3, 1e6),
        "plan": st.from_regex(r"[A-Za-z0-9./:~()* _-]{0,60}", fullmatch=True),
        "made": st.sampled_from(["", installed()]),
        "prices": st.from_regex(r"[0-9a-f]{0,16}", fullmatch=True),
    },
).map(lambda given: Scenario.model_validate(given | custom_if_it_has(given)))


def unresolved(scenario):
    return scenario, []


def from_another_clone(scenario):
    """What app.forecast.resolve.resolve does with a snapshot that it does not have."""
    return scenario.model_copy(update={"prices": ""}), []


@given(scenarios)
def test_a_link_reads_back_as_the_scenario_it_was_written_from(scenario):
    query = parse_qs(urlencode(scenario.to_query()), keep_blank_values=True)
    opened, notes = parse(query, unresolved, NOW)
    assert opened == read_here(scenario)
    assert notes == []


@given(scenarios)
def test_the_address_to_copy_holds_the_whole_scenario(scenario):
    text = address_of(scenario, "http://localhost:8501/?v=1&old=1")
    assert text.startswith("http://localhost:8501/?v=1")
    opened, notes = parse(parse_qs(text.partition("?")[2]), unresolved, scenario.prices)
    assert (opened, notes) == (stamped(scenario), [])


@given(st.dictionaries(st.text(max_size=30), st.lists(st.text(max_size=40), max_size=3)))
def test_any_query_opens_a_valid_scenario(query):
    opened, notes = parse(query, unresolved, NOW)
    assert Scenario.model_validate(opened.model_dump(exclude_none=True)) == opened
    assert all(note.endswith((".", "?")) for note in notes)


def test_every_field_of_the_link_has_finite_bounds():
    """No number in a link may be NaN, infinite or beyond its bound."""
    for name, field in Scenario.model_fields.items():
        if isinstance(field.default, str | tuple):
            continue
        for bad in ("nan", "inf", "-1", "1e999", "9" * 5000, "abc", "[1]", "1 2"):
            opened, notes = parse({name: [bad]}, unresolved, NOW)
            value = getattr(opened, name)
            assert value == field.default, (name, bad)
            assert value is None or math.isfinite(value)
            assert len(notes) == 1
            assert name in notes[0]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"seq_len": ["-1"]}, "seq_len='-1'"),
        ({"seq_lem": ["8192"]}, "Did you mean 'seq_len'?"),
        ({"purchase": ["spott"]}, "Did you mean 'spot'?"),
        ({"num_gpus": ["1000000000000"]}, "num_gpus="),
        ({"num_tokens": ["nan"]}, "num_tokens: 'nan'"),
        ({"v": ["99"]}, "v='99'"),
        ({"tp": ["2", "4"]}, "gives 'tp' 2 times"),
        ({"model": ["x" * 17_000]}, f"longer than {MAX_QUERY_CHARS}"),
    ],
)
def test_what_a_link_asks_for_and_does_not_get_is_said(query, says):
    _, notes = parse(query, unresolved, NOW)
    assert len(notes) == 1
    assert says in notes[0]


def test_an_unknown_price_snapshot_is_recomputed_and_said():
    opened, notes = parse({"prices": ["dead"]}, from_another_clone, NOW)
    assert opened.prices == NOW
    assert notes == [
        "This link was made with price snapshot 'dead', which is not here: the answer was "
        f"recomputed with the prices of snapshot {NOW!r}."
    ]


def test_dimensions_without_a_custom_model_are_dropped_and_said():
    opened, notes = parse({"model": ["llama3.1-8b"], "num_layers": ["3"]}, unresolved, NOW)
    assert opened == read_here(Scenario())
    assert notes == ["Ignored num_layers from the link: they go with model=custom only."]


def test_a_known_older_snapshot_is_kept():
    opened, notes = parse({"prices": ["beef"]}, unresolved, NOW)
    assert (opened.prices, notes) == ("beef", [])


def test_changing_a_field_checks_it_again():
    with pytest.raises(ScenarioError, match="seq_len"):
        changed(Scenario(), seq_len="-5")
    assert changed(Scenario(), seq_len="16k").seq_len == 16384
    assert changed(changed(Scenario(), tp=8), tp=None).tp is None


@pytest.mark.parametrize(
    "hostile",
    [
        "[a](javascript:alert(1))",
        "![x](http://evil.example/x.png)",
        "<script>alert(1)</script>",
        ":red[x] $x^2$ **b** `c`",
        "# heading",
        "- item",
        "1. item",
        "https://evil.example www.evil.example a@evil.example",
        "line\n\n## two\x00",
    ],
)
def test_foreign_text_is_not_markdown(hostile):
    """Every character that could start markup is escaped, and none is lost."""
    text = as_text(hostile)
    assert "\n" not in text
    unescaped = text.replace("\\", "").replace("\N{WORD JOINER}", "")
    assert unescaped.split() == "".join(c if c.isprintable() else " " for c in hostile).split()
    for start in ("](", "<", "$", "`", "*", "#"):
        assert all(text[i - 1] == "\\" for i in range(len(text)) if text.startswith(start[0], i))
    assert "://" not in text
    assert not text.startswith(("-", "1."))
