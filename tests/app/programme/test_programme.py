"""Programmes: published ones, the parts and the whole, layouts that change, what fits nowhere."""

import json
import os
import subprocess

import pytest

from app.document import format as fmt
from app.forecast.resolve import resolve_strict
from app.launch.stages import merged, stages_exported
from app.programme.claim import compared
from app.programme.programme import programme_of
from app.programme.stages import stage_runs
from app.programme.ways import ways_to_buy
from app.programme.words import published_sentence, turned_sentence
from core.errors import ScenarioError
from core.scenario import Scenario
from hardware.programmes.published import published_programme, published_programmes

SMALL = {
    "model": "llama3.1-8b", "num_tokens": "20B", "seq_len": "8k", "global_batch_size": "256",
    "gpu": "H100-80GB-SXM", "num_gpus": "64,128", "cloud": "aws,lambda,coreweave",
}  # fmt: skip
STAGES = "main;again,share=10%;long,share=10%,seq_len=64k,batch=32,cp=4;end,share=5%,gap_hours=6"


def asked(**values):
    return resolve_strict(Scenario.parse({**SMALL, **values}))


@pytest.fixture(scope="module")
def three():
    scenario = asked(stages=STAGES, deadline_days="30")
    return scenario, programme_of(scenario)


def test_deepseek_v3_needs_its_published_gpu_hours_in_total_and_by_stage():
    known = published_programme("deepseek-v3")
    found = programme_of(resolve_strict(Scenario.parse(known.values))).best
    by_part = dict.fromkeys(known.gpu_hours_of, 0.0)
    half = found.cost.hours.p50 / found.cost.hours.mean  # of such runs take at most this
    for published, stage in zip(known.stages, found.stages, strict=True):
        by_part[published.part] += stage.gpu_hours * half
    assert by_part == pytest.approx(known.gpu_hours_of, rel=0.18)
    assert found.gpu_hours * half == pytest.approx(known.gpu_hours, rel=0.16)
    hours = known.gpu_hours / found.stages[0].num_gpus
    assert found.cost.hours.p10 < hours < found.cost.hours.p90


@pytest.mark.parametrize("name", published_programmes())
def test_a_published_programme_lies_within_its_forecast(name):
    known = published_programme(name)
    found = programme_of(resolve_strict(Scenario.parse(known.values)))
    hours = found.best.cost.hours
    if known.gpu_hours is not None:
        share, published = 1.0, known.gpu_hours
    else:
        ((part, published),) = known.gpu_hours_of.items()
        each = zip(known.stages, found.best.stages, strict=True)
        share = sum(s.gpu_hours for k, s in each if k.part == part) / found.best.gpu_hours
    forecast = found.best.gpu_hours * share
    assert hours.p10 < published / forecast * hours.mean < hours.p90
    assert "The forecast is " in published_sentence(found, known)


def test_layouts_of_longer_contexts_have_more_context_parallelism():
    known = published_programme("llama3.1-405b")
    found = programme_of(resolve_strict(Scenario.parse(known.values))).best
    degrees = [s.layout.cp for s in found.stages if "context" in s.run.name]
    assert degrees == sorted(degrees)
    assert degrees[0] <= 8
    assert degrees[-1] >= 16
    # Its own layout: TP8 PP16 (arXiv:2407.21783, table 4).
    assert {(s.layout.tp, s.layout.pp) for s in found.stages} == {(8, 16)}
    assert not found.stages[3].keeps_layout


def test_the_parts_add_up_to_the_whole(three):
    best = three[1].best
    ends = best.stages[-1].end
    assert ends == best.cost.hours
    hours = best.startup_hours + sum(s.expected_hours for s in best.stages)
    assert hours == pytest.approx(best.cost.hours.mean, rel=1e-5)
    rate = best.stages[0].usd / best.stages[0].expected_hours
    total = best.startup_hours * rate + sum(s.usd for s in best.stages)
    assert total == pytest.approx(best.cost.total.mean, rel=1e-3)


def test_a_dropped_stage_saves_its_own_time(three):
    best = three[1].best
    stage = best.stages[1]
    assert stage.without[1] == pytest.approx(-stage.expected_hours, rel=0.01)
    assert stage.halved[1] == pytest.approx(-stage.expected_hours / 2, rel=0.02)


def test_a_stage_that_keeps_its_layout_only_reads_the_checkpoint(three):
    _, again, long, end = three[1].best.stages
    assert again.keeps_layout
    assert not long.keeps_layout
    assert long.layout.cp == 4
    assert again.before_hours < long.before_hours
    assert end.before_hours > 6


def test_contracts_are_of_machines_that_take_every_stage(three):
    found = three[1]
    assert found.num_contracts >= 2
    for contract in found.contracts:
        assert contract.is_one_set
        assert max(s.probability_oom for s in contract.stages) < 0.2
    assert found.failed == ()
    assert found.best.chance_on_time >= 0.9


def test_stages_that_may_move_cost_no_more_than_one_set(three):
    _, one = three
    moved = programme_of(asked(stages=STAGES, stages_may_move="1", deadline_days="30"))
    assert moved.best.usd <= one.best.usd * 1.05
    assert moved.may_move


def test_a_claim_over_all_stages_is_held_against_the_whole(three):
    best = three[1].best
    hours = best.cost.hours
    claims = {"gpu_hours": 0.5 * best.gpu_hours, "days": hours.p50 / 24, "usd": 2 * best.usd}
    found = compared(best, claims)
    assert [c.verdict for c in found] == ["optimistic", "plausible", "conservative"]
    assert [c.forecast.mean for c in found] == pytest.approx(
        [best.gpu_hours, hours.mean / 24, best.usd]
    )


def test_the_audit_takes_a_programme_and_refuses_what_is_of_one_run(run):
    status, out, _ = run("audit", "--programme", "smollm3-3b", "--days", "24", "--json")
    assert status == 0
    assert [c["verdict"] for c in json.loads(out)["claims"]] == ["plausible"]
    status, _, wrong = run("audit", "--programme", "smollm3-3b", "--mfu", "0.4")
    assert status == 2
    assert "--mfu with --programme" in wrong
    assert "needs --gpu-hours" in run("audit", "--programme", "smollm3-3b")[2]


def test_risk_buy_and_scale_add_the_whole(run):
    words = [
        "--tokens", "20B", "--seq-len", "8k", "--global-batch-size", "256", "--gpu", "h100",
        "--num-gpus", "64", "--cloud", "aws", "--model", "llama3.1-8b", "--budget-usd", "20k",
        "--stage", "main", "--stage", "long,share=10%,seq_len=32k",
    ]  # fmt: skip
    made = {n: json.loads(run(n, *words, "--json")[1]) for n in ("programme", "risk", "scale")}
    (whole, *_) = made["programme"]["contracts"]
    assert made["risk"]["programme"] == made["scale"]["programme"] == whole
    assert whole in json.loads(run("buy", *words, "--json")[1])["programme"]
    turned = made["programme"]["sentences"][-1]
    assert turned.startswith("With $20,000 on these machines main can have ")
    assert turned in " ".join(run("scale", *words)[1].split())


def test_ways_to_buy_are_of_the_whole_on_as_many_of_the_same_gpus(three):
    scenario, found = three
    ways = ways_to_buy(scenario, found.best)
    assert ways[0] is found.best
    kinds = [w.stages[0].offer.purchase for w in ways]
    assert "spot" in kinds
    assert len(set(kinds)) == len(kinds)
    assert {w.stages[0].num_gpus for w in ways} == {found.best.stages[0].num_gpus}
    assert all(len(w.stages) == 4 for w in ways)


def test_the_budget_turned_round_is_the_cost_of_as_many_tokens(three):
    turned = {"stages": STAGES, "num_gpus": "64", "cloud": "aws", "budget_usd": "20000"}
    scenario = asked(**turned)
    best = programme_of(scenario).best
    most = best.most_main_tokens
    assert f"main can have {fmt.tokens(most)} tokens" in turned_sentence(scenario, best)
    again = programme_of(asked(**turned, num_tokens=str(round(most)))).best
    assert again.usd == pytest.approx(20000, rel=0.01)
    assert three[1].best.most_main_tokens > 20e9
    assert programme_of(asked(stages=STAGES)).best.most_main_tokens is None
    no_price = {**turned, "gpu": "H800-80GB-SXM", "cloud": ""}
    assert programme_of(asked(**no_price)).best.most_main_tokens is None
    assert programme_of(asked(**{**turned, "budget_usd": "10"})).best.most_main_tokens == 0


def test_each_stage_is_a_folder_whose_job_waits_for_the_one_before(tmp_path):
    scenario = asked(
        stages="main,batch=0:128/10B:256;long,share=10%,seq_len=64k,batch=32,cp=4;"
        "tests,tokens=1B,count=2,scale=0.25",
        num_gpus="64", cloud="aws",
    )  # fmt: skip
    stages = stages_exported(scenario, name="mine", targets=["slurm", "skypilot"], options={})
    assert [s.folder for s in stages] == ["01-main", "02-main", "03-long", "04-tests"]
    assert [s.starts_from for s in stages] == ["", "01-main", "02-main", ""]
    assert [s.job.global_batch_size for s in stages] == [128, 256, 32, 256]
    assert stages[2].job.layout.cp == 4
    files = merged(stages)
    assert "#SBATCH --job-name=mine-03-long" in files["slurm"]["03-long/job.sbatch"]
    assert files["skypilot"]["submit-sky.sh"].count("sky launch --yes -c mine-01-main") == 5
    for folder in (s.folder for s in stages):
        (tmp_path / folder).mkdir()
    (tmp_path / "submit.sh").write_text(files["slurm"]["submit.sh"])
    assert "no option that loads them" in files["slurm"]["submit.sh"]  # launchers alone
    tool = tmp_path / "sbatch"
    tool.write_text('#!/bin/sh\necho "$(basename $PWD) $*" >> ../log\nwc -l < ../log\n')
    tool.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    subprocess.run(["bash", tmp_path / "submit.sh"], env={"PATH": path}, check=True)
    lines = (tmp_path / "log").read_text().splitlines()
    assert [line.split()[0] for line in lines] == [
        "01-main", "02-main", "03-long", "04-tests", "04-tests"
    ]  # fmt: skip
    assert ["afterok" in line for line in lines] == [False, True, True, True, True]
    assert "--dependency=afterok:3 " in lines[3]


def test_a_later_stage_loads_what_the_one_before_saved():
    scenario = asked(
        stages="main;long,share=10%,seq_len=16k", stack="megatron-lm", num_gpus="64", cloud="aws"
    )
    given = {"checkpoint_path": "/ck/"}
    targets = ["slurm", "megatron"]
    files = merged(stages_exported(scenario, name="mine", targets=targets, options=given))
    first, later = (files["megatron"][f"{n}/megatron_train.sh"] for n in ("01-main", "02-long"))
    assert "CHECKPOINTS=/ck/01-main\n" in first
    assert "--pretrained-checkpoint" not in first
    assert {"CHECKPOINTS=/ck/02-long", "BEGINS_WITH=/ck/01-main"} <= set(later.splitlines())
    assert '--pretrained-checkpoint "${BEGINS_WITH:?}"' in later
    assert "no option" not in files["slurm"]["submit.sh"]


def test_a_stage_that_fits_nowhere_is_named_with_the_nearest_change():
    large = "main;large,model=llama3.1-405b"
    found = programme_of(asked(num_gpus="8", stages=large, offload_optimizer="none"))
    assert found.contracts == ()
    assert found.nothing_fits.startswith("Stage 'large' fits nowhere. ")
    assert "GiB" in found.nothing_fits


def test_a_measurement_of_the_run_does_not_move_stages_that_train_otherwise():
    measured = asked(
        stages="same,share=2,of=main;main;long,share=5%,seq_len=64k",
        anchor_tokens_per_s_per_gpu="9000", anchor_gpu="H100-80GB-SXM", anchor_num_gpus="64",
        anchor_layout="dp_shard=64,sharding=fsdp2",
    )  # fmt: skip
    anchors = [r.scenario.anchor_tokens_per_s_per_gpu for r in stage_runs(measured)]
    assert anchors == [9000, 9000, None]


def test_a_scaled_stage_trains_a_smaller_model_and_a_mistake_names_its_stage():
    whole, small = stage_runs(asked(stages="main;tests,share=5%,count=12,scale=0.125"))
    assert small.flops == pytest.approx(whole.flops * 0.05 * 12 * 0.125, rel=0.25)
    with pytest.raises(ScenarioError, match=r"Stage 'b': Unknown model 'lama3\.1-8'"):
        stage_runs(asked(stages="a;b,model=lama3.1-8"))
    with pytest.raises(ScenarioError, match="'a' reaches token"):
        stage_runs(asked(stages="a,batch=0:5/21B:6"))
