"""The best layout of each family: it fits and starts, or the reason why not is its own."""

from __future__ import annotations

import pytest

from app.forecast import answer as forecast_answer
from app.forecast import resolve
from app.options import families
from core.scenario import Scenario


def found(**given):
    job = {"gpu": "H100-80GB-SXM", "cloud": "aws", "num_gpus": "64", **given}
    scenario = resolve.resolve_strict(Scenario.parse(job))
    plan = forecast_answer.answer(scenario, top=1).plans[0]
    return plan, {f.name: f for f in families.families(scenario, plan)}


@pytest.fixture(scope="module")
def of_8b():
    return found()


def test_each_family_has_a_layout_of_its_own(of_8b):
    plan, each = of_8b
    assert list(each) == [name for name, _ in families.FAMILIES]
    assert each["FSDP2"].layout.sharding == "fsdp2"
    assert each["TP"].layout.tp > 1 == each["TP"].layout.pp
    assert each["+ CP"].layout.cp > 1  # the search leaves it out at this length
    assert each["Offload"].layout.offload_optimizer != "none"
    fitting = [f for f in each.values() if not f.why_not]
    assert min(f.hours for f in fitting) <= plan.hours.p50 * 1.001
    assert each["TP + PP"].stacks
    of = {f.stack for f in fitting}  # the stack was left open: Megatron-Bridge has no ZeRO-3
    assert plan.stack in of
    assert each["ZeRO-3"].stack != plan.stack == "megatron-bridge"


def test_a_family_that_is_out_says_why(of_8b):
    _, each = of_8b
    assert each["DDP"].why_not.startswith("needs 160 GiB of ")
    assert each["+ EP"].why_not == "the model has no experts"
    assert not each["DDP"].stacks
    _, one = found(task="qlora", num_gpus="1")
    assert one["TP"].why_not == "there is one GPU"


def test_families_that_fit_come_first(of_8b):
    rows = families.table(tuple(of_8b[1].values())).rows
    outs = [f.why_not != "" for f in rows]
    assert outs == sorted(outs)
