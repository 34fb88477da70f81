"""The Launch page without a browser: its choices, files, archive and sentences."""

import io
import stat
import zipfile

import pytest
from streamlit.testing.v1 import AppTest

from app.forecast.answer import answer
from app.forecast.resolve import resolve_strict
from app.launch import files as tables
from app.launch.job import job_of
from core.scenario import Scenario
from runners.recipes.registry import exported, targets
from tests.made_up.recipes import recipe_job

JOB = {
    "model": "llama3.1-8b", "num_tokens": "1T", "global_batch_size": "512",
    "gpu": "H100-80GB-SXM", "num_gpus": "64", "cloud": "aws",
}  # fmt: skip


def script(query):
    from app.forecast.answer import answer
    from app.forecast.resolve import resolve
    from app.launch import page as launch_page
    from app.web import link
    from core.scenario import Scenario

    link.edit(resolve(Scenario.from_query(query)[0])[0])
    launch_page.draw(link.scenario(), answer(link.scenario(), top=3))


def page(**given):
    values = {k: v for k, v in {**JOB, **given}.items() if v is not None}
    return AppTest.from_function(script, default_timeout=120, args=(values,)).run()


def plain(text):
    return str(text).replace("\\", "").replace("\N{WORD JOINER}", "")


@pytest.fixture(scope="module")
def plan():
    return answer(resolve_strict(Scenario.parse(JOB)), top=1).plans[0]


def test_the_files_of_the_first_choice_are_drawn(plan):
    drawn = page()
    assert not drawn.exception
    assert drawn.selectbox(key="launch_launcher").value == "torchrun"
    command, *files = [c.value for c in drawn.code]
    assert command.startswith("runcast export --link ")
    assert f"plan={plan.id}" in command
    assert "--nnodes=8" in files[0]
    assert "validated with the tool" in plain("\n".join(m.value for m in drawn.markdown))
    assert [t.label for t in drawn.tabs] == [
        "torchrun.sh", "megatron_bridge_train.py", "nccl_env.sh", "preflight.sh"
    ]  # fmt: skip


def test_options_arrive_and_mistakes_are_sentences():
    drawn = page()
    drawn.selectbox(key="launch_launcher").select("slurm").run()
    drawn.text_input(key="launch_option_partition").input("gpu").run()
    assert "#SBATCH --partition=gpu" in drawn.code[1].value
    assert "--option partition=gpu" in drawn.code[0].value
    drawn.text_input(key="launch_option_partition").input("$(x)").run()
    assert not drawn.exception
    assert "'$(x)' is refused" in plain(drawn.warning[0].value)
    assert not drawn.code
    drawn.text_input(key="launch_option_partition").input("")
    drawn.text_input(key="launch_name").input("a'b").run()
    assert "is no name of a job" in plain(drawn.warning[0].value)


def test_what_cannot_launch_a_plan_is_said():
    said = tables.refused(recipe_job(accelerator="TPU-v5p", vendor="google"))
    assert any("SLURM batch file: TPU-v5p is not driven by CUDA" in s for s in said)
    assert tables.offered(recipe_job(accelerator="TPU-v5p", vendor="google"), "launcher") == []


def test_the_archive_holds_the_files_and_is_the_same_each_time():
    shown = tables.files(exported(["torchrun", "slurm", "preflight"], recipe_job(), {}))
    content = tables.zip_bytes(shown, "a-job")
    assert content == tables.zip_bytes(shown, "a-job")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        found = {i.filename: i for i in archive.infolist()}
        assert set(found) == {"a-job/torchrun.sh", "a-job/job.sbatch", "a-job/preflight.sh"}
        assert found["a-job/torchrun.sh"].external_attr >> 16 & stat.S_IXUSR
        assert not found["a-job/job.sbatch"].external_attr >> 16 & stat.S_IXUSR
        assert archive.read("a-job/torchrun.sh").decode() == shown[0].text


def test_each_choice_of_a_plan_can_be_drawn(plan):
    """Every target that is offered writes its files for a real plan."""
    job = job_of(resolve_strict(Scenario.parse(JOB)), plan)
    offered = [n for kind in ("launcher", "stack", "check") for n in tables.offered(job, kind)]
    assert len(offered) > 10
    for name in offered:
        assert tables.files(exported([name], job, {}))
    assert len(offered) + len(tables.refused(job)) == len(targets())
