"""config.json files in their published shape against the parameter counts their makers publish.

tests/golden/configs/<name>.json holds the keys of the published file that say a dimension, and
some that must not matter; tests/golden/published_params.csv says where each count was read.
"""

import dataclasses
import json
import math
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ModelError
from core.model.hf_config import FAMILIES, contradictions, from_config
from core.model.hf_reader import MAXIMUM
from core.model.presets import PRESETS
from core.model.transformer import (
    active_params,
    num_attention_layers,
    num_dense_mlp_layers,
    num_moe_layers,
    total_params,
)
from core.scenario import Scenario

GOLDEN = Path(__file__).parents[2] / "golden"
CONFIGS = {p.stem: json.loads(p.read_text()) for p in sorted((GOLDEN / "configs").glob("*.json"))}
PUBLISHED = pd.read_csv(GOLDEN / "published_params.csv")
LLAMA = CONFIGS["llama3.1-8b"]


def test_every_config_has_a_published_count_and_the_reverse():
    assert sorted(PUBLISHED["config"]) == sorted(CONFIGS)
    assert not PUBLISHED[["published_params", "source", "source_date"]].isna().any().any()


@pytest.mark.parametrize("row", PUBLISHED.to_dict("records"), ids=lambda r: r["config"])
def test_parameters_are_the_published_ones(row):
    counted = int(total_params(from_config(CONFIGS[row["config"]])))
    if row["rel_tolerance"] == 0:
        assert counted == row["published_params"]
    else:
        assert counted == pytest.approx(row["published_params"], rel=row["rel_tolerance"])


@pytest.mark.parametrize("name", sorted(CONFIGS.keys() & PRESETS.keys()))
def test_a_config_and_the_preset_of_its_name_are_one_model(name):
    assert from_config(CONFIGS[name]) == PRESETS[name].transformer


def test_every_family_is_exercised():
    seen = {c.get("text_config", c)["model_type"] for c in CONFIGS.values()}
    assert set(FAMILIES) == seen


@pytest.mark.parametrize(
    ("name", "active_billions"),
    [
        ("mixtral-8x7b", 12.9),  # arXiv:2401.04088 prints 13B, the announcement 12.9B
        ("deepseek-v3", 37.0),  # arXiv:2412.19437
        ("gpt-oss-20b", 3.61 + 0.58),  # arXiv:2508.10925, Table 1, plus the embedding
        ("deepseek-v2-lite", 2.661),  # pytorch/torchtitan@8a749c618, log of deepseek_v3 16B
        ("llama4-maverick", 17.0),  # its model card
        ("llama4-scout", 17.0),  # its model card
        ("deepseek-v2", 21.0),  # arXiv:2405.04434, which prints 236B in all
        ("jamba-v0.1", 12.0),  # arXiv:2403.19887
        ("kimi-k2", 32.86),  # NVIDIA-NeMo/Megatron-Bridge r0.3.0; the maker prints 32B
        ("nemotron-3-nano-30b-a3b", 3.6),  # its model card, with embeddings
    ],
)
def test_active_parameters_are_the_published_ones(name, active_billions):
    active = float(active_params(from_config(CONFIGS[name]))) / 1e9
    assert active == pytest.approx(active_billions, rel=0.02)


@pytest.mark.parametrize(
    ("name", "window", "layers"),
    [
        ("mistral-7b", 4096, 32),
        ("mistral-7b-v0.3", 0, 0),  # null
        ("qwen2.5-7b", 0, 0),  # given but not used
        ("gemma2-9b", 4096, 21),
        ("gemma3-4b", 1024, 29),
        ("gpt-oss-20b", 128, 12),
        ("llama4-maverick", 8192, 36),
        ("phi3-mini", 2047, 32),
        ("gemma3-27b", 1024, 52),
        ("llama4-scout", 8192, 36),
        ("command-r7b", 4096, 24),
        ("mistral-small-3.2-24b", 0, 0),  # null
    ],
)
def test_windows_of_each_pattern(name, window, layers):
    model = from_config(CONFIGS[name])
    assert (model.sliding_window, model.num_window_layers) == (window, layers)


@pytest.mark.parametrize(
    ("config", "windows"),
    [
        (CONFIGS["qwen2.5-7b"] | {"use_sliding_window": True, "max_window_layers": 20}, 8),
        (CONFIGS["qwen2.5-7b"] | {"use_sliding_window": True}, 0),
        ({k: v for k, v in CONFIGS["mistral-7b"].items() if k != "sliding_window"}, 32),
        (CONFIGS["gemma2-9b"] | {"layer_types": ["full_attention"] * 42}, 0),
    ],
)
def test_windows_that_a_key_turns_on_or_off(config, windows):
    assert from_config(config).num_window_layers == windows


def test_what_a_missing_key_means():
    gqa = {k: v for k, v in LLAMA.items() if k != "num_key_value_heads"}
    assert from_config(gqa).num_kv_heads == 32
    assert from_config(LLAMA | {"num_key_value_heads": None}).num_kv_heads == 32
    assert from_config(LLAMA | {"head_dim": 64}).head_dim == 64
    untied = {k: v for k, v in LLAMA.items() if k != "tie_word_embeddings"}
    assert from_config(untied).tied_embeddings is False
    assert from_config(CONFIGS["gemma2-9b"]).tied_embeddings is True
    assert from_config(CONFIGS["gpt2"]).tied_embeddings is True
    assert from_config(CONFIGS["gpt2"] | {"n_inner": None}).ffn_hidden_size == 4 * 768
    assert from_config(LLAMA | {"attention_bias": True}).qkv_bias is True


def test_dense_layers_of_a_sparse_model():
    config = CONFIGS["qwen3-30b-a3b"]
    assert from_config(config | {"mlp_only_layers": [0, 1, 99]}).num_dense_layers == 2
    assert from_config(config | {"decoder_sparse_step": 2}).num_dense_layers == 24
    assert from_config(CONFIGS["llama4-maverick"]).num_dense_layers == 24


@pytest.mark.parametrize(
    ("name", "attention", "ssm", "linear", "mlp", "experts"),
    [
        ("nemotron-h-8b", 4, 24, 0, 24, 0),  # arXiv:2504.03624, Table 1
        ("nemotron-h-56b", 10, 54, 0, 54, 0),
        ("nemotron-nano-9b-v2", 4, 27, 0, 25, 0),
        ("nemotron-3-nano-30b-a3b", 6, 23, 0, 0, 23),
        ("bamba-9b", 3, 29, 0, 32, 0),
        ("jamba-v0.1", 4, 28, 0, 16, 16),  # arXiv:2403.19887: 1 to 7, experts in every second
        ("granite-4.0-h-small", 4, 36, 0, 0, 40),
        ("qwen3-next-80b-a3b", 12, 0, 36, 0, 48),
        ("qwen3.5-27b", 16, 0, 48, 64, 0),
        ("kimi-linear-48b-a3b", 7, 0, 20, 1, 26),  # arXiv:2510.26692: 3 to 1
        ("falcon-h1-7b", 44, 44, 0, 44, 0),  # arXiv:2507.22448: side by side in every layer
        ("mamba-2.8b", 0, 64, 0, 0, 0),
        ("mamba-codestral-7b", 0, 64, 0, 0, 0),
    ],
)
def test_types_of_the_layers(name, attention, ssm, linear, mlp, experts):
    model = from_config(CONFIGS[name])
    counts = (num_attention_layers(model), model.num_ssm_layers, model.num_linear_layers,
              num_dense_mlp_layers(model), num_moe_layers(model))  # fmt: skip
    assert [float(c) for c in counts] == [attention, ssm, linear, mlp, experts]


def test_what_the_classes_of_mamba_make_of_missing_keys():
    short = {k: v for k, v in CONFIGS["mamba-2.8b"].items() if k not in ("expand", "conv_kernel")}
    assert from_config(short | {"time_step_rank": "auto"}) == from_config(CONFIGS["mamba-2.8b"])
    # Falcon Mamba's class takes the inner size that is given, not 16 times the hidden size.
    assert from_config(CONFIGS["falcon-mamba-7b"]).ssm_inner_size == 8192
    falcon = {k: v for k, v in CONFIGS["falcon-h1-7b"].items() if k != "mamba_d_ssm"}
    assert from_config(falcon | {"mamba_n_heads": 48}).ssm_inner_size == 2 * 3072


def test_a_pattern_of_letters_and_a_list_of_names_say_the_same():
    config = dict(CONFIGS["nemotron-3-nano-30b-a3b"])
    letters = config.pop("hybrid_override_pattern")
    for names in ("mamba", "attention"), ("linear_attention", "full_attention"):
        kinds = {"M": names[0], "*": names[1], "E": "moe"}
        listed = config | {"layers_block_type": [kinds[letter] for letter in letters]}
        assert from_config(listed) == from_config(CONFIGS["nemotron-3-nano-30b-a3b"])


@pytest.mark.parametrize(
    ("outer", "name"),
    [("gemma3", "gemma3-27b"), ("llama4", "llama4-scout"), ("mistral3", "mistral-small-3.2-24b")],
)
def test_a_text_config_may_leave_its_type_to_the_model_around_it(outer, name):
    text = {k: v for k, v in CONFIGS[name]["text_config"].items() if k != "model_type"}
    wrapped = {"model_type": outer, "text_config": text}
    assert from_config(wrapped) == from_config(CONFIGS[name])


def test_the_language_part_of_a_vision_model_is_read():
    text = {k: v for k, v in CONFIGS["mistral-7b"].items() if k != "tie_word_embeddings"}
    wrapped = {"model_type": "mistral3", "text_config": text, "vision_config": {}}
    assert from_config(wrapped) == from_config(CONFIGS["mistral-7b"])
    assert from_config(wrapped | {"tie_word_embeddings": True}).tied_embeddings is True


def test_keys_that_name_code_are_ignored():
    hostile = {"auto_map": {"AutoConfig": "evil.Config"}, "trust_remote_code": True, "dtype": 1}
    assert from_config(LLAMA | hostile) == from_config(LLAMA)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"model_type": None}, "lacks model_type"),
        ({"model_type": 3}, "a model_type that is not text"),
        ({"model_type": "lama"}, "Did you mean 'llama'?"),
        ({"model_type": "rwkv"}, "Unknown model_type 'rwkv'"),
        ({"model_type": "zamba2"}, "A zamba2 model cannot be estimated: its layers share"),
        ({"model_type": "zamba"}, "A zamba model cannot be estimated: its layers share"),
        ({"hidden_size": None}, "lacks hidden_size"),
        ({"num_hidden_layers": None, "num_layers": 32}, "Its nearest key is 'num_layers'"),
        ({"num_hidden_layers": "32"}, "num_hidden_layers='32' in the config is not a whole number"),
        ({"num_hidden_layers": True}, "num_hidden_layers=True in the config is not a whole"),
        ({"num_hidden_layers": 32.0}, "num_hidden_layers=32.0 in the config"),
        ({"num_hidden_layers": math.nan}, "num_hidden_layers=nan in the config"),
        ({"num_hidden_layers": math.inf}, "num_hidden_layers=inf in the config"),
        ({"num_hidden_layers": 0}, "from 1 to 2,048"),
        ({"num_hidden_layers": -1}, "from 1 to 2,048"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers=1000000000 in the config"),
        ({"num_hidden_layers": 10**20_000}, "a number of 20,001 digits"),
        ({"num_hidden_layers": [[1]]}, "num_hidden_layers=a list of 1"),
        ({"num_hidden_layers": {"a": 1}}, "num_hidden_layers=an object"),
        ({"vocab_size": object()}, "vocab_size=something that is no number"),
        ({"hidden_size": 4095}, "4095 is not a multiple of its 32 heads"),
        ({"hidden_size": 2**20, "num_attention_heads": 8}, "makes head_dim 131,072; at most 8,192"),
        ({"num_key_value_heads": 5}, "5 KV heads do not divide 32 attention heads"),
        ({"num_key_value_heads": 0}, "num_key_value_heads=0"),
        ({"tie_word_embeddings": "false"}, "tie_word_embeddings='false' in the config is not true"),
        ({"attention_bias": 1}, "attention_bias=1 in the config is not true or false"),
    ],
)
def test_a_wrong_llama_is_a_sentence(change, says):
    with pytest.raises(ModelError) as e:
        from_config(LLAMA | change)
    assert says in str(e.value)
    assert len(str(e.value)) < 500


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("qwen2.5-7b", {"num_key_value_heads": None}, "qwen2 config lacks num_key_value_heads"),
        ("gpt2", {"n_positions": None}, "lacks n_positions or max_position_embeddings"),
        ("mixtral-8x7b", {"num_experts_per_tok": 9}, "it routes to 9 of 8 experts"),
        ("qwen3-30b-a3b", {"mlp_only_layers": ["0"]}, "mlp_only_layers=a list of 1"),
        ("qwen3-30b-a3b", {"decoder_sparse_step": 99}, "48 of 48 layers are dense"),
        ("deepseek-v3", {"first_k_dense_replace": 61}, "61 of 61 layers are dense"),
        ("deepseek-v3", {"kv_lora_rank": None}, "lacks kv_lora_rank"),
        ("deepseek-v3", {"attention_bias": True}, "attention_bias=True in a deepseek_v3"),
        ("deepseek-v3", {"moe_layer_freq": 2}, "estimated only if it is 1"),
        ("qwen1.5-moe-a2.7b", {"shared_expert_intermediate_size": 5000}, "not a multiple of"),
        ("gpt-oss-20b", {"layer_types": ["full_attention"]}, "not a list of 24 kinds"),
        ("gpt-oss-20b", {"layer_types": ["linear_attention"] * 24}, "has 'linear_attention'"),
        ("gpt-oss-20b", {"layer_types": [[]] * 24}, "has a list of 0"),
        ("opt-1.3b", {"word_embed_proj_dim": 512}, "word_embed_proj_dim=512"),
        ("nemotron-h-8b", {"hybrid_override_pattern": None}, "lacks hybrid_override_pattern"),
        ("nemotron-h-8b", {"hybrid_override_pattern": "MX"}, "'MX' in the config is not a text"),
        ("nemotron-3-nano-30b-a3b", {"moe_latent_size": 1024}, "moe_latent_size"),
        ("granite-4.0-h-small", {"layer_types": None}, "lacks layer_types"),
        ("qwen3-next-80b-a3b", {"layer_types": ["mamba"] * 48}, "has 'mamba'; only full_attention"),
        ("kimi-linear-48b-a3b", {"linear_attn_config": None}, "lacks linear_attn_config"),
        (
            "kimi-linear-48b-a3b",
            {"linear_attn_config": [1]},
            "=a list of 1 in the config is not an",
        ),
        ("falcon-h1-7b", {"mamba_d_head": 64}, "24 heads of 64 in the falcon_h1 config contradict"),
        ("falcon-h1-7b", {"mamba_use_mlp": False}, "mamba_use_mlp=false in a falcon_h1 config"),
        ("mamba-codestral-7b", {"head_dim": 32}, "contradict expand times hidden_size, 8192"),
        ("mamba-codestral-7b", {"num_heads": None}, "mamba2 config lacks num_heads"),
        ("qwen3-next-80b-a3b", {"linear_num_key_heads": 7}, "linear_num_key_heads=7 does not"),
    ],
)
def test_a_wrong_member_of_another_family_is_a_sentence(name, change, says):
    with pytest.raises(ModelError) as e:
        from_config(CONFIGS[name] | change)
    assert says in str(e.value)


@pytest.mark.parametrize(
    ("name", "change", "one", "other"),
    [
        ("llama3.1-8b", {"n_layer": 24}, "num_hidden_layers=32", "n_layer=24"),
        ("llama3.1-8b", {"n_embd": 512}, "hidden_size=4096", "n_embd=512"),
        ("llama3.1-8b", {"n_head": 8}, "num_attention_heads=32", "n_head=8"),
        ("llama3.1-8b", {"num_key_value_heads": 5}, "num_kv_heads=5", "num_attention_heads=32"),
        ("gpt2", {"max_position_embeddings": 9}, "n_positions=1024", "max_position_embeddings=9"),
        ("gpt-oss-20b", {"num_experts_per_tok": 40, "experts_per_token": None},
         "experts_per_token=40", "num_experts=32"),
        ("gpt-oss-20b", {"layer_types": ["full_attention"]}, "layer_types=a list of 1",
         "24 layers"),
        ("deepseek-v3", {"first_k_dense_replace": 61}, "num_dense_layers=61", "num_experts=256"),
        ("gemma3-27b", {"num_hidden_layers": 60}, "num_hidden_layers=60 in the config",
         "num_hidden_layers=62 in its text_config"),
        ("nemotron-h-8b", {"num_hidden_layers": 51}, "num_hidden_layers=51",
         "52 letters of hybrid_override_pattern"),
        ("bamba-9b", {"mamba_d_head": 32}, "mamba_d_head=32", "hidden_size, 8192"),
        ("jamba-v0.1", {"attn_layer_offset": 8}, "attn_layer_offset=8", "attn_layer_period=8"),
        ("kimi-linear-48b-a3b", {"num_hidden_layers": 28}, "full_attn_layers (7)",
         "num_hidden_layers=28"),
    ],
)  # fmt: skip
def test_a_contradiction_names_both_fields(name, change, one, other):
    with pytest.raises(ModelError) as e:
        from_config(CONFIGS[name] | change)
    assert one in str(e.value)
    assert other in str(e.value)


@pytest.mark.parametrize(
    ("dims", "says"),
    [
        ({"num_ssm_layers": 33}, "num_ssm_layers=33 and num_linear_layers=0 are more than"),
        ({"num_ssm_layers": 8}, "num_ssm_layers without ssm_conv_size, ssm_inner_size, ssm_num"),
        ({"ssm_state_size": 128}, "ssm_state_size without num_ssm_layers"),
        ({"ssm_beside_attention": True}, "ssm_beside_attention without num_ssm_layers"),
        ({"linear_conv_size": 4}, "linear_conv_size without num_linear_layers"),
        ({"sliding_window": 9, "num_window_layers": 33}, "num_window_layers=33"),
    ],
)
def test_dimensions_that_no_model_has(dims, says):
    model = dataclasses.replace(PRESETS["llama3.1-8b"].transformer, **dims)
    assert any(says in clause for clause in contradictions(model))


@pytest.mark.parametrize("id", PRESETS)
def test_no_preset_contradicts_itself(id):
    assert list(contradictions(PRESETS[id].transformer)) == []


def test_the_largest_value_read_is_one_a_link_can_carry():
    for field, most in MAXIMUM.items():
        assert getattr(Scenario.parse({field: most}), field) == most


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(
    base=st.sampled_from(list(CONFIGS.values())),
    data=st.data(),
)
def test_any_value_of_any_key_is_a_model_or_a_sentence(base, data):
    keys = data.draw(st.lists(st.sampled_from(sorted(base)), min_size=1, max_size=3, unique=True))
    config = base | {k: data.draw(ANYTHING) for k in keys}
    sentence = None
    try:
        model = from_config(config)
    except ModelError as e:
        sentence = str(e)
    if sentence is None:
        assert 0 < float(total_params(model)) < math.inf
    else:
        assert 10 < len(sentence) < 500
        assert sentence.isprintable()
