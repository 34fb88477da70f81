"""What launch files need of named models: each row has a model, a known router and a source."""

import pytest

from core.errors import FactError
from core.model.presets import preset
from core.model.transformer import is_moe
from hardware.model_facts import load_model_facts, model_facts

HEADER = (
    "model,router,rotary_base,rotary_share,rope_scaling,router_groups,router_group_topk,"
    "router_scaling,mtp_layers,source,source_date,note\n"
)


def test_models_with_experts_have_a_router_and_others_none():
    for name, facts in model_facts().items():
        assert bool(facts.router) is bool(is_moe(preset(name).transformer)), name
        assert facts.rotary_base >= 10_000


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("llama4-8b,,10000,,,,,,,page,2026,", "'llama4-8b' is no model"),
        ("qwen3-8b,,10000,,,,,,,page,2026,\nqwen3-8b,,10000,,,,,,,page,2026,", "given twice"),
        ("qwen3-8b,tanh,10000,,,,,,,page,2026,", "'tanh' is none of softmax"),
        ("qwen3-8b,,many,,,,,,,page,2026,", "no number"),
        ("qwen3-8b,,10000,,,,,,,,2026,", "no source"),
    ],
)
def test_a_bad_row_is_one_sentence(tmp_path, row, says):
    (tmp_path / "facts.csv").write_text(f"{HEADER}{row}\n")
    with pytest.raises(FactError, match=says):
        load_model_facts(tmp_path / "facts.csv")
