"""The table of what software stacks take."""

from pathlib import Path

import pytest

from core.errors import FactError
from hardware.stack_support import SUPPORT_CSV, lacks, load_support, supports
from runners.recipes.registry import targets


def test_every_stack_names_a_launch_file_that_exists() -> None:
    assert {s.target for s in supports().values()} <= {
        name for name, target in targets().items() if target.kind == "stack"
    }


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("torchtune,0.6.1", "torchtuna,0.6.1", "'torchtuna' is not a stack"),
        ("torchtune,0.6.1", "torchtitan,0.6.1", "torchtitan is given twice"),
        ("src/llamafactory/hparams,2026-11", "src/llamafactory/hparams,soon", "source date 'soon'"),
        ("hiyouga/LLaMA-Factory@00577a857: src/llamafactory/hparams", "", "has no source"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, old: str, new: str, reason: str) -> None:
    text = SUPPORT_CSV.read_text()
    assert text.count(old) == 1
    path = tmp_path / "stack_support.csv"
    path.write_text(text.replace(old, new))
    with pytest.raises(FactError, match=reason):
        load_support(path)


def test_what_a_stack_lacks_names_those_that_have_it() -> None:
    assert lacks("torchtune", "degrees", "pp", "pipeline parallelism") == (
        "torchtune 0.6.1 has no pipeline parallelism: megatron-lm, megatron-bridge, torchtitan "
        "have."
    )
    assert lacks("litgpt", "degrees", "pp", "pipeline parallelism") == ""
