"""Text and files from outside: a model or a sentence, quickly; and the way into a link and back."""

import contextlib
import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.scenario.model import (
    MAX_CONFIG_BYTES,
    custom_fields,
    model_of,
    parse_config,
    read_config_file,
)
from core.errors import ModelError, RuncastError, ScenarioError
from core.model.hf_config import from_config
from core.model.presets import PRESETS
from core.scenario import Scenario

CONFIGS = sorted((Path(__file__).parents[2] / "golden/configs").glob("*.json"))
LLAMA = json.loads((Path(__file__).parents[2] / "golden/configs/llama3.1-8b.json").read_text())


def reopened(scenario: Scenario) -> Scenario:
    """The scenario after its link was opened elsewhere."""
    again, notes = Scenario.from_query(scenario.to_query())
    assert notes == []
    return again


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.stem)
def test_a_config_survives_the_link(path):
    model = parse_config(path.read_bytes())
    scenario = Scenario.parse(custom_fields(model))
    assert model_of(scenario).transformer == model
    assert model_of(reopened(scenario)).transformer == model


@pytest.mark.parametrize("id", PRESETS)
def test_a_preset_survives_as_dimensions(id):
    fields = custom_fields(PRESETS[id].transformer)
    assert model_of(reopened(Scenario.parse(fields))).transformer == PRESETS[id].transformer


@given(
    layers=st.integers(1, 2048),
    groups=st.integers(1, 64),
    kv_heads=st.integers(1, 64),
    head_dim=st.integers(1, 8192),
    flags=st.fixed_dictionaries(
        {k: st.booleans() for k in ("tie_word_embeddings", "attention_bias", "mlp_bias")}
    ),
    window=st.none() | st.integers(0, 16_777_216),
    model_type=st.sampled_from(["llama", "mistral", "phi3", "gemma", "olmo"]),
)
def test_any_config_survives_the_link(
    layers, groups, kv_heads, head_dim, flags, window, model_type
):
    model = from_config({
        "model_type": model_type,
        "num_hidden_layers": layers,
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_attention_heads": groups * kv_heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
        "vocab_size": 32000,
        "sliding_window": window,
        **flags,
    })  # fmt: skip
    assert model_of(reopened(Scenario.parse(custom_fields(model)))).transformer == model


def test_only_what_is_not_a_default_enters_the_link():
    assert custom_fields(PRESETS["llama2-7b"].transformer) == {
        "model": "custom",
        "num_layers": 32,
        "hidden_size": 4096,
        "ffn_hidden_size": 11008,
        "num_attention_heads": 32,
        "num_kv_heads": 32,
        "head_dim": 128,
        "vocab_size": 32000,
    }


def test_a_preset_by_any_of_its_names():
    model = model_of(Scenario(model="meta-llama/Llama-3.1-8B"))
    assert (model.id, model.label, model.max_seq_len) == ("llama3.1-8b", "Llama 3.1 8B", 131_072)
    assert "litgpt" in model.source


DIMENSIONS = custom_fields(PRESETS["llama3.1-8b"].transformer)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"model": "custom"}, "model=custom needs num_layers, hidden_size, ffn_hidden_size"),
        (DIMENSIONS | {"vocab_size": None}, "model=custom needs vocab_size"),
        (DIMENSIONS | {"hidden_size": 0}, "model=custom needs hidden_size, each at least 1"),
        (DIMENSIONS | {"num_kv_heads": 5}, "5 KV heads do not divide 32"),
        (DIMENSIONS | {"sliding_window": 100}, "sliding_window and num_window_layers need each"),
        (
            DIMENSIONS | {"sliding_window": 100, "num_window_layers": 33},
            "33 windowed layers are more than its 32 layers",
        ),
        (DIMENSIONS | {"num_experts": 8}, "routes to 0 of 8 experts"),
        (DIMENSIONS | {"num_experts": 8, "experts_per_token": 2}, "no moe_ffn_hidden_size"),
        (DIMENSIONS | {"experts_per_token": 2}, "experts_per_token without num_experts"),
        (DIMENSIONS | {"kv_lora_rank": 512}, "without qk_nope_head_dim"),
        (DIMENSIONS | {"q_lora_rank": 512}, "q_lora_rank without kv_lora_rank"),
        (DIMENSIONS | {"model": "llama3.1-8b"}, "num_layers=32, hidden_size=4096"),
        ({"model": "llama3.1-9b"}, "Did you mean 'llama3.1-8b'?"),
    ],
)
def test_dimensions_that_make_no_model_are_a_sentence(values, says):
    with pytest.raises(ScenarioError) as e:
        model_of(Scenario.parse(values))
    assert says in str(e.value)


HOSTILE = {
    "empty": "",
    "blank": " \n",
    "not JSON": "meta-llama/Llama-3.1-8B",
    "a page": "<!DOCTYPE html><html></html>",
    "a list": "[]",
    "null": "null",
    "a number": "1",
    "cut off": json.dumps(LLAMA)[:-3],
    "two objects": "{}{}",
    "deep lists": "[" * 100_000,
    "deep objects": '{"a":' * 100_000,
    "deep and closed": "[" * 100_000 + "]" * 100_000,
    "deep inside a key": '{"model_type": ' + "[" * 40 + "]" * 40 + "}",
    "deep after a string with quotes": '{"a\\"": "}}}}", "b":' + "[" * 400_000,
    "open string": '"' + '\\"' * 400_000,
    "only quotes": '"' * 999_999,
    "only backslashes": '"' + "\\" * 900_000,
    "10 MB": " " * 10_000_000,
    "2 million digits": '{"num_hidden_layers": ' + "9" * 2_000_000 + "}",
    "900,000 digits": '{"num_hidden_layers": ' + "9" * 900_000 + "}",
    "NaN": json.dumps(LLAMA | {"vocab_size": float("nan")}),
    "Infinity": '{"a": Infinity}',
    "-Infinity": '{"a": -Infinity}',
    "a float too large": '{"a": 1e999}',
    "a key twice": '{"model_type": "llama", "model_type": "gpt2"}',
    "many keys": json.dumps({f"key{i}": i for i in range(60_000)}),
    "long keys": json.dumps({"model_type": "llama", "h" * 900_000: 1}),
    "a long model_type": json.dumps({"model_type": "q" * 900_000}),
    "lone surrogates": '{"model_type": "\\ud800"}',
    "10^9 layers": json.dumps(LLAMA | {"num_hidden_layers": 10**9}),
    "0 layers": json.dumps(LLAMA | {"num_hidden_layers": 0}),
    "negative": json.dumps(LLAMA | {"hidden_size": -4096}),
    "text in a number": json.dumps(LLAMA | {"hidden_size": "4096"}),
    "bytes that are no text": b"\xff\xfe\x00{",
    "weights": b"\x00" * 2_000_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_a_sentence_and_quick(name):
    start = time.perf_counter()
    with pytest.raises(ModelError) as e:
        parse_config(HOSTILE[name])
    assert time.perf_counter() - start < 1.0
    assert 10 < len(str(e.value)) < 400
    assert str(e.value).isprintable()


def test_brackets_inside_strings_do_not_nest():
    config = LLAMA | {"chat_template": "[{" * 1000 + '\\"' + "[{" * 1000}
    assert parse_config(json.dumps(config)) == from_config(LLAMA)


def test_a_byte_order_mark_and_blanks_around_are_no_fault():
    assert parse_config(b"\xef\xbb\xbf" + json.dumps(LLAMA).encode() + b"\n") == from_config(LLAMA)


@settings(max_examples=200)
@given(st.text(max_size=200) | st.binary(max_size=200))
def test_any_text_is_a_model_or_a_sentence(text):
    with pytest.raises(ModelError):
        parse_config(text)


@given(cut=st.integers(0, 600), put=st.text(alphabet='{}[]",:\\0e-n', max_size=6))
def test_a_damaged_config_is_a_model_or_a_sentence(cut, put):
    text = json.dumps(LLAMA)
    with contextlib.suppress(RuncastError):  # any other exception is a traceback for someone
        assert parse_config(text[:cut] + put + text[cut:]).num_layers >= 1


def test_a_file_and_the_directory_that_holds_it(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    assert read_config_file(tmp_path / "config.json") == from_config(LLAMA)
    assert read_config_file(str(tmp_path)) == from_config(LLAMA)


def test_a_file_that_cannot_be_read_is_a_sentence(tmp_path):
    os.mkfifo(tmp_path / "pipe")  # reading it would wait for a writer for ever
    large = tmp_path / "model.safetensors"
    large.write_bytes(b" " * (MAX_CONFIG_BYTES + 1))
    for path, says in [
        (tmp_path / "absent.json", "There is no file"),
        (tmp_path, "There is no file"),  # a directory without config.json
        (tmp_path / "pipe", "There is no file"),
        ("/dev/zero", "There is no file"),
        (large, "larger than 1 MB"),
        ("nul\0byte", "There is no file"),
        ("x" * 5000, "cannot be read"),
    ]:
        with pytest.raises(ModelError, match=says):
            read_config_file(path)


def test_only_a_state_space_may_lack_an_mlp():
    given = custom_fields(from_config(LLAMA))
    with pytest.raises(ScenarioError, match="needs ffn_hidden_size"):
        model_of(Scenario.parse({**given, "ffn_hidden_size": 0}))
