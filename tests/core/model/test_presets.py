"""Named models: exact counts, names, and what happens to a name that does not exist."""

from pathlib import Path

import pandas as pd
import pytest

from core.errors import ScenarioError
from core.model.presets import PRESETS, preset
from core.model.transformer import total_params

GOLDEN = Path(__file__).parents[2] / "golden"
PUBLISHED = pd.concat(
    [
        pd.read_csv(GOLDEN / "published_params.csv").rename(columns={"config": "id"}),
        pd.read_csv(GOLDEN / "preset_params.csv").rename(columns={"preset": "id"}),
    ]
)
PROMISED = (
    "llama3.1-8b", "llama3.1-70b", "llama3.1-405b", "llama2-7b", "llama2-70b", "qwen2.5-7b",
    "mistral-7b", "gpt3-175b", "mixtral-8x7b", "mixtral-8x22b", "qwen3-30b-a3b",
    "qwen3-235b-a22b", "qwen2.5-0.5b", "qwen3-14b", "deepseek-v2", "deepseek-v2-lite",
    "deepseek-v3", "gpt-oss-20b", "gpt-oss-120b", "llama4-scout", "llama4-maverick", "gemma2-27b",
    "gemma3-4b", "gemma3-12b", "gemma3-27b", "phi-4", "olmo2-13b", "nemotron4-15b",
    "nemotron4-340b", "bloom-176b", "falcon-7b", "falcon-40b", "falcon-180b", "grok-1", "kimi-k2",
    "command-r", "tinyllama-1.1b", "nemotron-h-8b", "qwen3-next-80b-a3b", "bamba-9b",
)  # fmt: skip


def test_the_promised_presets_exist():
    assert set(PROMISED) <= PRESETS.keys()


def test_every_preset_has_one_published_count():
    counts = PUBLISHED["id"].value_counts()
    assert {id: int(counts.get(id, 0)) for id in PRESETS} == dict.fromkeys(PRESETS, 1)
    read = PUBLISHED[["published_params", "rel_tolerance", "source", "source_date"]]
    assert not read.isna().any().any()


@pytest.mark.parametrize(
    "row", PUBLISHED[PUBLISHED["id"].isin(PRESETS)].to_dict("records"), ids=lambda r: r["id"]
)
def test_parameters_are_the_published_ones(row):
    counted = float(total_params(PRESETS[row["id"]].transformer))
    assert row["rel_tolerance"] <= 0.01
    assert abs(counted - row["published_params"]) <= row["rel_tolerance"] * row["published_params"]


@pytest.mark.parametrize("id", PRESETS)
def test_the_count_that_a_preset_carries_is_within_one_percent(id):
    p = PRESETS[id]
    assert float(total_params(p.transformer)) == pytest.approx(p.published_params, rel=0.01)


@pytest.mark.parametrize(
    ("spelling", "id"),
    [
        ("llama3.1-8b", "llama3.1-8b"),
        ("LLAMA3.1_8B", "llama3.1-8b"),
        ("Llama 3.1 8B", "llama3.1-8b"),
        ("meta-llama/Llama-3.1-8B", "llama3.1-8b"),
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", "llama3.1-8b"),
        ("llama-3.1-70b", "llama3.1-70b"),
        ("meta-llama/Llama-3.1-405B", "llama3.1-405b"),
        ("meta-llama/Llama-2-7b-hf", "llama2-7b"),
        ("meta-llama/llama-2-70b-chat-hf", "llama2-70b"),
        ("Qwen/Qwen2.5-7B", "qwen2.5-7b"),
        ("qwen/qwen2.5_7b_instruct", "qwen2.5-7b"),
        ("mistralai/Mistral-7B-v0.1", "mistral-7b"),
        ("GPT-3", "gpt3-175b"),
        ("deepseek-ai/DeepSeek-V3", "deepseek-v3"),
        ("openai/gpt-oss-20b", "gpt-oss-20b"),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "llama4-scout"),
        ("moonshotai/Kimi-K2-Instruct", "kimi-k2"),
        ("bigscience/bloom", "bloom-176b"),
        ("nemotron-4-340b", "nemotron4-340b"),
        ("nvidia/Nemotron-H-8B-Base-8K", "nemotron-h-8b"),
    ],
)
def test_case_underscores_and_repositories_are_aliases(spelling, id):
    assert preset(spelling).id == id


def test_no_name_means_two_models():
    owners: dict[str, set[str]] = {}
    for p in PRESETS.values():
        for name in {p.id, *p.aliases, *(a.rpartition("/")[2] for a in p.aliases)}:
            owners.setdefault(name.lower().replace("_", "-"), set()).add(p.id)
    assert not {n: ids for n, ids in owners.items() if len(ids) > 1}


def test_every_preset_says_where_its_dimensions_were_read():
    for p in PRESETS.values():
        assert p.source.ref
        assert len(p.source.date) == 10
        assert p.max_seq_len >= 2048
        assert p.id == p.id.lower()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("llama3.1-8", "Did you mean 'llama3.1-8b'?"),
        ("lama3.1-405b", "Did you mean 'llama3.1-405b'?"),
        ("mistralai/Mistral-7B-v0.3", "Unknown model 'mistralai/Mistral-7B-v0.3'"),
        ("", "Unknown model ''"),
        ("x" * 10_000, "Unknown model 'xxx"),
    ],
)
def test_an_unknown_model_is_never_guessed(name, says):
    with pytest.raises(ScenarioError) as e:
        preset(name)
    assert says in str(e.value)
    assert "Known: " in str(e.value)
    assert len(str(e.value)) < 500
