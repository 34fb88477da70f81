"""The scenario: every valid one survives its link; whatever else arrives becomes a sentence."""

import re
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from core.errors import ScenarioError
from core.programme.stage import MOST_STAGES
from core.scenario import LINK_VERSION, MAX_QUERY_CHARS, MOST_UNKNOWN, Scenario
from core.scenario.quotes import MOST_QUOTES, text_of
from core.scenario.types import MOST_LISTED, MOST_PINNED
from tests.core.scenario.test_quotes import QUOTES

SCHEMA = Scenario.model_json_schema()["properties"]
LETTERS = "abcXYZ019_.-/+:()éß中"
NAMES = st.text(alphabet=LETTERS, min_size=1, max_size=12)
STAGES = st.sampled_from(
    [f"run {n},num_tokens={n}e9,seq_len=8k,gap_hours=0.{n}" for n in range(1, 9)]
)
TEXTS = {  # of fields that take a form of text of their own
    "calibration": st.text(alphabet="0123456789abcdef", min_size=16, max_size=16),
    "prices": st.text(alphabet="0123456789abcdef", max_size=64),
    "made": st.from_regex(r"([0-9]{1,4}(\.[0-9]{1,4}){0,3}((a|b|rc)[0-9])?)?", fullmatch=True),
    "pinned": st.text(alphabet=LETTERS + "~*", min_size=1, max_size=60),
    "plan": st.text(alphabet=LETTERS + " ~*", max_size=60),
    "anchor_layout": st.text(alphabet="tpcz019_.=,- ", max_size=60),
    "price_book": st.sampled_from(("", "acme", "rates-2026_q4")),
    "software_date": st.sampled_from(("", "2022-05", "2026-11")),
    "remat_policy": st.sampled_from(("", "save_qkv_proj", "custom offload:out_proj+query_proj")),
    "anchor_gpu": st.text(alphabet=LETTERS + " ", max_size=60),
    "quotes": QUOTES.map(text_of),
    "stages": STAGES,
}


def values_of(name: str, schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Valid values of one field, read off its declaration, so that a new field is covered."""
    if "anyOf" in schema:
        return st.one_of(*(values_of(name, s) for s in schema["anyOf"]))
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kind = schema["type"]
    if kind == "null":
        return st.none()
    if kind == "boolean":
        return st.booleans()
    if kind == "array":
        items = values_of(name, schema["items"])
        least = 1 if "minLength" in schema else 0
        most = {"pinned": MOST_PINNED, "quotes": MOST_QUOTES, "stages": MOST_STAGES}.get(name, 6)
        return st.lists(items, min_size=least, max_size=most, unique=True).map(tuple)
    if kind == "string":
        return TEXTS.get(name, st.one_of(NAMES, st.tuples(NAMES, NAMES).map(" ".join)))
    low = schema.get("minimum", schema.get("exclusiveMinimum", schema.get("gt", schema.get("ge"))))
    high = schema["maximum"]
    if kind == "integer":
        return st.integers(low, high)
    return st.floats(low, high, exclude_min=low == 0)


FIELDS = {name: values_of(name, schema) for name, schema in SCHEMA.items()}
SCENARIOS = st.fixed_dictionaries({}, optional=FIELDS).map(Scenario.parse)


def test_the_strategy_covers_every_field():
    assert set(FIELDS) == set(Scenario.model_fields)


@settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow])
@given(scenario=SCENARIOS)
def test_a_link_reopens_exactly_its_scenario(scenario):
    query = scenario.to_query()
    assert all(isinstance(k, str) and isinstance(v, str) for k, v in query.items())
    again, notes = Scenario.from_query(query)
    assert again == scenario
    assert notes == []
    assert again.to_query() == query


@given(scenario=SCENARIOS)
def test_a_link_names_its_version_first_and_no_default(scenario):
    query = scenario.to_query()
    assert next(iter(query)) == "v"
    for name in {"stages" if "." in key else key for key in query} - {"v"}:
        assert getattr(scenario, name) != Scenario.model_fields[name].default
    assert Scenario().to_query() == {"v": str(LINK_VERSION)}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("num_tokens", "1e12", 1e12),
        ("num_tokens", "15T", 15e12),
        ("num_tokens", "500b", 5e11),
        ("seq_len", "8k", 8192),
        ("seq_len", "128K", 131072),
        ("seq_len", "4096", 4096),
        ("global_batch_size", "2k", 2000),
        ("global_batch_size", "1,024", 1024),
        ("gpu", "A, B ,A", ("A", "B")),
        ("num_gpus", "8,64", (8, 64)),
        ("num_gpus", "", ()),
        ("num_gpus", "1k", (1000,)),
        ("purchase", "spot,on_demand", ("spot", "on_demand")),
        ("deadline_days", "30", 30.0),
        ("max_price_age_days", "auto", None),
        ("max_price_age_days", "0", 0.0),
        ("budget_usd", "2.5M", 2.5e6),
        ("tied_embeddings", "1", True),
        ("tp", "8", 8),
        ("sharding", "zero1,fsdp2", ("zero1", "fsdp2")),
        ("custom_memory_gib", "79.2", 79.2),
    ],
)
def test_text_as_people_write_it(name, text, value):
    scenario, notes = Scenario.from_query({name: text})
    assert getattr(scenario, name) == value
    assert notes == []


HOSTILE = (
    "nan", "inf", "-inf", "1e999", "-1", "0.5", "1e30", "99999999999999999999999", "1e12x", "",
    " ", "abc", "<script>alert(1)</script>", "'; DROP TABLE plans;--", "\x00", "\u202e", "8,,8",
    ",", "[8]", "{}", "null", "None", "true", "../../etc/passwd", "1" * 70, "%s%n", "☃",
)  # fmt: skip
NUMBERS = [n for n in FIELDS if "integer" in str(SCHEMA[n]) or "number" in str(SCHEMA[n])]


@pytest.mark.parametrize("name", Scenario.model_fields)
def test_a_bad_field_becomes_its_default_and_a_sentence(name):
    for text in HOSTILE:
        scenario, notes = Scenario.from_query({name: text})
        value = getattr(scenario, name)
        if not notes:  # legal after all: then it survives its own link
            assert Scenario.from_query(scenario.to_query()) == (scenario, []), text
            continue
        assert value == Scenario.model_fields[name].default, text
        assert len(notes) == 1, text
        assert notes[0].startswith("Ignored from the link: "), text
        assert name in notes[0], text
        assert notes[0].endswith((".", "?")), text
        assert notes[0].isprintable(), text
        assert len(notes[0]) < 400, text


@pytest.mark.parametrize("name", NUMBERS)
def test_no_number_field_takes_what_is_no_number_or_absurd(name):
    texts = ("nan", "inf", "1e999", "-1", "abc", "1e12x", "1e18")
    for text in texts:
        _, notes = Scenario.from_query({name: text})
        assert len(notes) == 1, text
    for value in (*texts, float("nan"), float("inf"), -1, 10**30, 1e300):
        with pytest.raises(ScenarioError) as e:
            Scenario.parse({name: value})
        assert name in str(e.value)
        assert "\n" not in str(e.value)


@example(query={"stages": "="})  # of blank parts alone nothing would be left to read again
@example(query={"s1.seq_len": ""})
@settings(max_examples=200)
@given(
    query=st.dictionaries(
        st.one_of(st.sampled_from(sorted(FIELDS)), st.text(max_size=20)),
        st.one_of(st.text(max_size=40), st.sampled_from(HOSTILE)),
        max_size=8,
    )
)
def test_any_query_is_a_scenario_and_notes(query):
    scenario, notes = Scenario.from_query(query)
    assert isinstance(scenario, Scenario)
    assert all(isinstance(n, str) and n for n in notes)
    assert Scenario.from_query(scenario.to_query()) == (scenario, [])


FLAT = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20))


@settings(max_examples=100)
@given(
    values=st.dictionaries(
        st.sampled_from(sorted(FIELDS)),
        st.one_of(FLAT, st.lists(FLAT, max_size=3), st.dictionaries(st.text(max_size=3), FLAT)),
        max_size=4,
    )
)
def test_any_values_are_a_scenario_or_one_error(values):
    try:
        said = Scenario.parse(values).model
    except ScenarioError as e:
        said = str(e)
    assert said.isprintable()


def test_a_bad_field_spoils_no_good_one():
    scenario, notes = Scenario.from_query({"seq_len": "-5", "num_gpus": "64", "tp": "eight"})
    assert (scenario.seq_len, scenario.num_gpus, scenario.tp) == (8192, (64,), None)
    assert len(notes) == 2


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"num_gpu": "8"}, "num_gpu='8' is not a field of a scenario. Did you mean 'num_gpus'?"),
        ({"precision": "fp9"}, "Did you mean 'fp8'?"),
        ({"rank_by": "price"}, "is not one of usd, time"),
        (
            {"sharding": "zero4"},
            "is not one of ddp, zero1, zero2, zero3, fsdp1, fsdp2, hsdp, zeropp",
        ),
        ({"num_gpus": "1e12"}, "num_gpus"),
        ({"num_tokens": "many"}, "'many' is not a number like 8192, 1e12, 15T or 8k"),
        ({"num_layers": "1e9"}, "num_layers"),
        ({"gpu": "H100!"}, "gpu='H100!' may hold letters, digits, spaces and . _ - / + : ( ) only"),
        ({"software_date": "2026-13"}, "software_date='2026-13' should be a month like 2025-06."),
        ({"calibration": "x"}, "should be the id of a calibration: 16 of the digits 0-9 and a-f."),
        ({"price_book": "Q3 deal"}, "should be lower-case letters, digits, _ and -, with a letter"),
        ({"pinned": "a,b,c,d,e"}, "pinned='a,b,c,d,e' should be at most 4 of them, not 5."),
        ({"tp_across_nodes": "on!"}, "'on!' should be 1 or 0, for yes or no."),
        ({"num_gpus": "8.5"}, "num_gpus='8.5' should be a whole number."),
        ({"seq_len": "9" * 40}, "is too large to be a number here."),
    ],
)
def test_sentences_say_what_is_allowed(query, says):
    _, notes = Scenario.from_query(query)
    assert len(notes) == 1
    assert says in notes[0]


@pytest.mark.parametrize(
    ("values", "says", "labelled"),
    [
        ({"num_tokens": "1e17"}, "num_tokens='1e17' should be at most 1e16.",
         "Training tokens: '1e17' should be at most 1e16 (num_tokens in a link)."),
        ({"num_gpus": "8,-3"}, "num_gpus='-3' should be at least 1.",
         "GPU counts: '-3' should be at least 1 (num_gpus in a link)."),
        ({"deadline_days": "0"}, "deadline_days='0' should be above 0.",
         "Deadline (days): '0' should be above 0 (deadline_days in a link)."),
        ({"max_price_age_days": "old"},
         "max_price_age_days: 'old' is not a number of days, 0 (any age) or auto.",
         "Oldest price (days): 'old' is not a number of days, 0 (any age) or auto "
         "(max_price_age_days in a link)."),
        ({"rank_by": "tim"}, "rank_by='tim' is not one of usd, time. Did you mean 'time'?",
         "Rank by: 'tim' is not one of usd, time (rank_by in a link). Did you mean 'time'?"),
        ({"budget": 3}, "budget='3' is not a field of a scenario. Did you mean 'budget_usd'?",
         "budget='3' is not a field of a scenario. Did you mean 'budget_usd'?"),
    ],
    ids=str,
)  # fmt: skip
def test_a_sentence_names_a_field_as_a_link_does_or_as_the_form_does(values, says, labelled):
    with pytest.raises(ScenarioError) as e:
        Scenario.parse(values)
    assert (str(e.value), e.value.as_labelled) == (says, labelled)


JUNK = ("zz zz!", "", "-1", "8.5", "1e400", "9" * 30, "x" * 600, "a,b,c,d,e", 3.5, 7, True, None,
        [1], [[]], {}, ",".join(f"g{n}" for n in range(70)))  # fmt: skip


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_no_sentence_speaks_as_a_programmer_does(name):
    for junk in JUNK:
        try:
            Scenario.parse({name: junk})
        except ScenarioError as e:
            said = str(e).lower()
            for word in ("pattern", "boolean", "string", "integer", "tuple", "valid", "input"):
                assert word not in said.replace(repr(name), ""), (junk, said)


def test_another_version_is_read_and_said():
    scenario, notes = Scenario.from_query({"v": "2", "seq_len": "4k"})
    assert scenario.seq_len == 4096
    assert len(notes) == 1
    assert "v='2'" in notes[0]
    assert Scenario.from_query({"v": "1"}) == (Scenario(), [])


def test_a_link_of_a_megabyte_is_refused_as_a_whole():
    scenario, notes = Scenario.from_query({"gpu": "a," * 500_000})
    assert scenario == Scenario()
    assert len(notes) == 1
    assert str(MAX_QUERY_CHARS) in notes[0]


def test_nearly_right_keys_cost_no_time_and_few_notes():
    began = time.process_time()
    scenario, notes = Scenario.from_query({f"num_gpu{n}": "8" for n in range(999)})
    assert time.process_time() - began < 0.5
    assert scenario == Scenario()
    assert len(notes) == MOST_UNKNOWN + 1
    assert "Did you mean 'num_gpus'" in notes[0]
    assert notes[-1] == "Ignored from the link: 979 more that are not a field of a scenario."


def test_several_errors_are_one_error_that_names_each():
    with pytest.raises(ScenarioError) as e:
        Scenario.parse({"seq_len": "x", "num_gpus": "-8", "budget": 3})
    for name in ("seq_len", "num_gpus", "budget"):
        assert name in str(e.value)


def test_a_scenario_cannot_be_changed_in_place():
    with pytest.raises(ValueError, match="frozen"):
        Scenario().seq_len = 4  # type: ignore[misc]


GROUPS = (
    "basic", "quotes", "advanced", "task_size", "anchor", "failures", "market", "bill",
    "custom_model", "custom_gpu", "programme", "view",
)  # fmt: skip


def test_every_field_has_what_the_form_needs():
    for name, field in Scenario.model_fields.items():
        extra = field.json_schema_extra
        assert field.title, name
        assert isinstance(extra, dict)
        assert extra["group"] in GROUPS, name
        # A title says enough of a dimension; a choice needs its consequence.
        assert field.description or extra["group"] in ("custom_model", "custom_gpu"), name


@pytest.mark.parametrize("name", ["gpu", "num_gpus", "purchase"])
def test_a_list_in_a_list_is_a_sentence(name):
    with pytest.raises(ScenarioError, match=name):
        Scenario.parse({name: [["a"]]})


def test_one_count_written_in_two_ways_is_one_count():
    scenario, _ = Scenario.from_query({"num_gpus": "8,8.0"})
    assert Scenario.from_query(scenario.to_query())[0] == scenario


def test_the_longest_legal_scenario_has_a_link():
    names = tuple(f"{i:02d}" + "x" * 78 for i in range(64))
    few = names[:MOST_LISTED]
    scenario = Scenario.parse({"gpu": names, "cloud": names, "list_gpu": few, "list_cloud": few})
    assert Scenario.from_query(scenario.to_query()) == (scenario, [])


@pytest.mark.parametrize("name", ["\u202egnp.exe", "a\nb", "\x1b[31m"])
def test_the_name_of_an_unknown_field_is_foreign_text_too(name):
    _, notes = Scenario.from_query({name: "1"})
    assert notes[0].isprintable()


@pytest.mark.parametrize(
    ("name", "typed", "value"),
    [
        ("num_tokens", "4M tokens", 4e6),
        ("seq_len", "8k tokens", 8192),
        ("budget_usd", "$1", 1.0),
        ("budget_usd", "1.5M USD", 1.5e6),
        ("deadline_days", "2 weeks", 14.0),
        ("deadline_days", "10 days", 10.0),
        ("num_gpus", "8, 64-300", (8, 64, 128, 256, 300)),
        ("num_gpus", "64 GPUs", (64,)),
    ],
)
def test_a_number_may_have_its_unit_and_counts_may_be_a_range(name, typed, value):
    assert getattr(Scenario.parse({name: typed}), name) == value


@pytest.mark.parametrize(
    ("name", "typed", "says"),
    [
        ("num_tokens", "$5", "'$5' is not a number"),
        ("seq_len", "tokens", "'tokens' is not a number"),
        ("num_gpus", "256-64", "'256-64' is not a range of GPUs like 64-256, the smaller first"),
    ],
)
def test_a_unit_of_another_field_and_a_range_turned_round_are_sentences(name, typed, says):
    with pytest.raises(ScenarioError, match=re.escape(says)):
        Scenario.parse({name: typed})
