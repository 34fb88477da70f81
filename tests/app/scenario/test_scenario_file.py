"""Scenario files: what is written reads back equal, and no text does harm."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from app.forecast.resolve import resolve_strict
from app.scenario import file as sf
from app.scenario.fields import is_flag, is_list, literals
from app.scenario.yaml import MAX_BYTES
from core.errors import ScenarioError
from core.scenario import Scenario
from core.scenario.quotes import MOST_QUOTES, text_of
from tests.core.scenario.test_quotes import QUOTES

NAME = st.text(alphabet="abcXYZ019_.-/+:()éß中𝒜", min_size=1, max_size=12)
BOUNDS = {
    "epochs": (0.1, 1e4),
    "expert_imbalance": (1, 1024),
    "host_slowdown": (0.1, 100),
    "capacity_factor": (0.1, 64),
    "deadline_days": (0.1, 36_500),
    "startup_minutes": (0, 525_600),
    "deadline_confidence": (0.5, 0.999),
    "max_price_age_days": (0, 36_500),
    "list_max_days": (0, 36_500),
    "packing_efficiency": (0.1, 1),
    "recompute_share": (0.1, 1),
    "activation_offload_share": (0.1, 1),
    "slow_probability": (0, 1),
    "weibull_shape": (0.2, 10),
    "outage_hours": (0, 8760),
    "preemption_cv": (0.1, 20),
    "spot_zones": (1, 32),
    "reserved_utilisation": (0.1, 1),
    "block_days": (0.1, 366),
    "experiment_share": (0, 100),
    "pue": (1, 5),
    "grid_g_co2e_per_kwh": (0, 5000),
}
AWKWARD = st.sampled_from(["on", "No", "null", "~", "1e5", "0x1F", "12:30", "4090", "- a", "a: b"])


def values_of(name, field):
    """Values that a field allows, as its table says."""
    if choices := literals(field.annotation):
        one = st.sampled_from(choices)
        return st.lists(one, min_size=1, unique=True).map(tuple) if is_list(field) else one
    if is_flag(field) or field.annotation is bool:
        return st.booleans()
    if name == "num_gpus":
        return st.lists(st.integers(1, 131_072), max_size=8, unique=True).map(tuple)
    if name == "calibration":
        return st.lists(st.from_regex(r"[0-9a-f]{16}", fullmatch=True), max_size=3, unique=True)
    if name == "prices":
        return st.from_regex(r"[0-9a-f]{0,12}", fullmatch=True)
    if name == "made":
        return st.sampled_from(["", "0.1.0", "1", "2.0rc1"])
    if name == "price_book":
        return st.from_regex(r"([a-z0-9][a-z0-9_-]{0,10})?", fullmatch=True)
    if name == "software_date":
        return st.sampled_from(["", "2024-01", "2026-12"])
    if name == "remat_policy":
        return st.sampled_from(["", "save_qkv_proj", "custom offload:out_proj+query_proj"])
    if name == "anchor_layout":
        return st.sampled_from(["", "tp=8,pp=4,sharding=zero1", "tp=8, pp=4"])
    if name == "stages":
        return st.just(("main,num_tokens=15T", "long,share=0.05,seq_len=131072,cp=16"))
    if name == "quotes":
        return st.lists(QUOTES.map(text_of), max_size=MOST_QUOTES, unique=True)
    if is_list(field):
        return st.lists(NAME | AWKWARD.filter(lambda n: "~" not in n), max_size=4, unique=True)
    if isinstance(field.default, str):
        return NAME | st.sampled_from(["on", "4090", "a: b"])
    if isinstance(field.default, int) or "int" in str(field.annotation):
        return st.integers(16, 1024)
    return st.floats(0.1, 1.0) | st.floats(1.0, 1e6)


@st.composite
def scenarios(draw):
    """Scenarios with any few fields away from their defaults."""
    names = draw(st.lists(st.sampled_from(list(Scenario.model_fields)), max_size=8, unique=True))
    given_ = {n: draw(values_of(n, Scenario.model_fields[n])) for n in names}
    for name, (least, most) in BOUNDS.items():
        if name in given_:
            given_[name] = min(max(given_[name], least), most)
    return Scenario.parse(given_)


@given(scenarios())
def test_what_is_written_reads_back_equal(scenario):
    text = sf.write_scenario(scenario)
    assert sf.read_scenario(text) == scenario
    assert sf.read_scenario(text.encode()) == scenario
    # It is YAML to others, too, with the same fields.
    assert set(yaml.safe_load(text)) == {
        "stages" if "." in key else key for key in scenario.to_query()
    }


def test_every_field_can_be_saved():
    """A field that this list does not move from its default would not be tested."""
    for name, field in Scenario.model_fields.items():
        if choices := literals(field.annotation):
            value = next(c for c in choices if c not in (field.default, *([field.default]
                         if isinstance(field.default, str) else field.default or ())))  # fmt: skip
        elif isinstance(field.default, bool) or is_flag(field):
            value = not field.default
        elif name == "num_gpus":
            value = (24,)
        elif is_list(field):
            held = {"calibration": "0123456789abcdef", "quotes": "acme,RTX 4090,2.2"}
            value = (held.get(name, "RTX 4090"),)
        else:
            value = {
                "prices": "1e5", "anchor_layout": "tp=8,pp=4", "packing_efficiency": 0.5,
                "software_date": "2024-10", "recompute_share": 0.5,
                "activation_offload_share": 0.5,
            }.get(name, "4090" if isinstance(field.default, str) else 64)  # fmt: skip
            if name in BOUNDS:
                value = min(value, BOUNDS[name][1])
        scenario = Scenario.parse({name: value})
        assert scenario != Scenario(), name
        assert sf.read_scenario(sf.write_scenario(scenario)) == scenario


def test_a_saved_file_says_what_its_values_mean():
    text = sf.write_scenario(
        Scenario(model="llama3.1-70b", num_tokens=15e12, gpu=("H100-80GB-SXM",), budget_usd=1e6)
    )
    assert text.splitlines() == [
        "v: 1",
        "model: llama3.1-70b  # Model. A preset, or 'custom' with the dimensions of a config.json",
        "num_tokens: 1.5e13  # Training tokens. Tokens to train on: 1e12, 15T, 500B",
        "gpu: [H100-80GB-SXM]  # GPUs. Accelerators to compare; none chosen means every one",
        "budget_usd: 1000000  # Budget (USD). The run must cost at most this much",
    ]
    assert sf.write_scenario(Scenario()) == "v: 1\n"


def test_a_file_as_people_write_it():
    text = """
    # 70B on what we have
    model: llama3.1-70b
    num_tokens: 15T
    seq_len: 8k
    gpu:
      - H100-80GB-SXM
      - B200
    num_gpus: 64, 128
    compile: yes
    deadline_days:
    """
    assert sf.read_scenario(text) == Scenario(
        model="llama3.1-70b",
        num_tokens=15e12,
        seq_len=8192,
        gpu=("H100-80GB-SXM", "B200"),
        num_gpus=(64, 128),
        compile=True,
    )


def test_the_documented_file_reads():
    document = Path(__file__).parents[3] / "docs/scenario-file.md"
    text = document.read_text(encoding="utf-8")
    example = text.partition("```yaml\n")[2].partition("```")[0]
    scenario = sf.read_scenario(example)
    assert (scenario.num_tokens, scenario.seq_len, scenario.compile) == (15e12, 8192, True)
    assert resolve_strict(scenario) == scenario  # every name in it exists
    assert f"{MAX_BYTES:,} bytes" in text
    assert f"{sf.MAX_ITEMS:,} values" in text


BOMB = "a: &a [x]\n" + "\n".join(f"{k}: &{k} [*a, *a, *a]" for k in "bcdefgh")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("hello", "is the text 'hello', not lines of the form"),
        ("- model: a", "is not of the form 'field: value'"),
        ("model: {name: a}", "Line 1 of the scenario file is not of the form"),
        ("v: 1\ngpu: [[a]]", "Line 2 of the scenario file is not of the form"),
        ("? [a]\n: b", "is not of the form"),
        ("<<: {model: a}", "is not of the form"),
        ("{" * 60_000, "is not of the form"),
        ("- " * 30_000, "is not of the form"),
        (BOMB, "Line 1 of the scenario file has an anchor or alias"),
        ("model: *a", "has an anchor or alias"),
        ("&a model: x", "has an anchor or alias"),
        ("model: !!python/object/apply:os.system [id]", "has the tag"),
        ("model: !!str x", "has the tag"),
        ("model: a\n---\nmodel: b", "second document starts at line 2"),
        ("model: a\nmodel: b", "gives 'model' twice"),
        ("model: [a", "not YAML: expected ',' or ']'"),
        ("a: b: c", "not YAML: mapping values are not allowed here at line 1, column 5"),
        ("\x00", "not YAML: special characters are not allowed"),
        ("\tmodel: a", "not YAML"),
        (b"\xff\xfe", "not text (UTF-8)"),
        ("v: 2", "says v='2'; this version reads v=1"),
        ("seqlen: 8k", "Did you mean 'seq_len'?"),
        ("num_tokens: many", "num_tokens: 'many' is not a number"),
        ("num_tokens: [1, 2]", "num_tokens"),
        ("optimizer: adam", "Did you mean 'adamw'?"),
        ("tp: -1", "tp='-1"),
        ("tp: ''", "tp: '' is not a number"),
        ("gpu: [" + "a," * 30_000 + "]", "more than 1,000 values"),
        ("tp: 1\n" * 10_000, "more than 1,000 values"),
        ("#" * 70_000, "larger than 65,536 bytes"),
        (b"#" * 70_000, "larger than 65,536 bytes"),
        ("é" * 40_000, "larger than 65,536 bytes"),
    ],
    ids=lambda x: repr(x)[:24],
)
def test_a_mistake_is_one_sentence(text, says):
    started = time.monotonic()
    with pytest.raises(ScenarioError) as e:
        sf.read_scenario(text)
    assert time.monotonic() - started < 3
    assert says in str(e.value)
    assert "\n" not in str(e.value)
    assert len(str(e.value)) < 400


@given(st.text(alphabet="abmodel:gpu-?&*![]{},#|>'\"%@ \n\t~0123456789é\x00\ud800", max_size=60))
def test_any_text_is_read_or_refused(text):
    try:
        found = sf.read_scenario(text)
    except ScenarioError:
        found = Scenario()
    assert isinstance(found, Scenario)


def test_files(tmp_path):
    file = tmp_path / "run.yaml"
    file.write_text(sf.write_scenario(Scenario(tp=8)), encoding="utf-8")
    assert sf.read_scenario_file(file) == Scenario(tp=8)
    for missing in (tmp_path, tmp_path / "none.yaml", tmp_path / "a\x00b"):
        with pytest.raises(ScenarioError, match=r"There is no file|not the path of a file"):
            sf.read_scenario_file(missing)
    file.write_bytes(b"x" * 100_000)
    with pytest.raises(ScenarioError, match="larger than"):
        sf.read_scenario_file(file)
