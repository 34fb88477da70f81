"""NCCL's settings: every row has a reason and a source; each fabric gets its own."""

import subprocess
from dataclasses import replace

import pytest

from app.forecast import machines
from app.launch.job import nccl_fabrics
from core.errors import FactError
from core.scenario import Scenario
from hardware.nccl_env import (
    FABRICS,
    left_alone,
    load_nccl_settings,
    nccl_settings,
    settings_of,
)
from runners.recipes.job import RecipeError
from runners.recipes.registry import files_of, target
from tests.made_up.plans import job as made_up_job
from tests.made_up.plans import offer, plan
from tests.made_up.recipes import one_gpu, recipe_job

HEADER = "variable,value,fabric,reason,source,source_date,note\n"


def test_every_fabric_has_settings_of_its_own_with_reasons():
    assert {s.fabric for s in nccl_settings()} == set(FABRICS)
    for s in nccl_settings():
        assert s.reason
        assert s.source
        assert not s.reason.endswith(".")


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("X,1,ib,why,page,2026,\n", "fabric 'ib' is not one of"),
        ("X,1,efa,why,,2026,\n", "X has no source"),
        ("X,1,efa,,page,2026,\n", "X has no reason"),
        ("X,1,efa,why,page,May,\n", "the source date 'May'"),
        ("X,$(x),efa,why,page,2026,\n", "is no variable"),
        ("x;y,1,efa,why,page,2026,\n", "is no variable"),
        ("X,1,efa,why,page,2026,\nX,2,efa,why,page,2026,\n", "given twice for efa"),
    ],
)
def test_a_row_that_cannot_be_trusted_stops_the_load(tmp_path, row, says):
    table = tmp_path / "nccl_env.csv"
    table.write_text(HEADER + row)
    with pytest.raises(FactError, match=r"nccl_env.csv") as e:
        load_nccl_settings(table)
    assert says in str(e.value)


@pytest.mark.parametrize("fabric", [f for f in FABRICS if f != "any"])
def test_the_file_sets_under_bash_what_the_table_says(fabric, tmp_path):
    job = recipe_job(nccl_fabrics=(fabric,))
    (text,) = files_of("nccl-env", job, {}).values()
    file = tmp_path / "nccl_env.sh"
    file.write_text(text)
    done = subprocess.run(
        ["bash", "-c", f"set -eu; source {file}; env -0"], capture_output=True, text=True,
        env={"PATH": "/usr/bin:/bin"}, check=True,
    )  # fmt: skip
    found = dict(line.split("=", 1) for line in done.stdout.split("\0") if line)
    wanted = {s.variable: s.value for s in settings_of((fabric,))}
    assert wanted.items() <= found.items()
    assert target("nccl-env").read({"nccl_env.sh": text}).more == wanted


REQUIRED = (
    "IB_HCA", "IB_DISABLE", "IB_GID_INDEX", "IB_TIMEOUT", "IB_RETRY_CNT", "SOCKET_IFNAME",
    "NET_GDR_LEVEL", "NET_GDR_READ", "P2P_LEVEL", "P2P_DISABLE", "NVLS_ENABLE", "CROSS_NIC", "ALGO",
    "PROTO", "BUFFSIZE", "TOPO_FILE", "DEBUG",
)  # fmt: skip


@pytest.mark.parametrize("fabric", [f for f in FABRICS if f != "any"])
def test_each_variable_is_set_or_left_to_nccl_with_a_reason(fabric):
    (text,) = files_of("nccl-env", recipe_job(nccl_fabrics=(fabric,)), {}).values()
    exported = {s.variable for s in settings_of((fabric,))}
    for name in (f"NCCL_{x}" for x in REQUIRED):
        is_left = f"#   {name}: " in text
        assert is_left is (name not in exported), name
    assert "NCCL_ALGO: " not in files_of(
        "nccl-env", recipe_job(), {"env:NCCL_ALGO": "Tree"}
    )["nccl_env.sh"].partition("Left to NCCL")[2]  # fmt: skip


def test_what_one_fabric_leaves_alone_another_may_set():
    both = {s.variable: s.value for s in settings_of(("tcpx", "tcpxo"))}
    assert both["NCCL_ALGO"] == "Ring"
    by_name = {s.variable: s.value for s in settings_of(("roce", "nvl72"))}
    assert by_name["NCCL_IB_TIMEOUT"] == "22"
    assert "NCCL_IB_RETRY_CNT" in {s.variable for s in left_alone(("roce", "nvl72"))}


def test_a_later_fabric_wins_and_one_node_needs_none():
    assert {s.variable for s in settings_of(("roce", "nvl72"))} >= {
        "NCCL_IB_ROCE_VERSION_NUM", "NCCL_MNNVL_ENABLE"
    }  # fmt: skip
    by_name = {s.variable: s.value for s in settings_of(("slingshot",))}
    assert by_name["NCCL_SOCKET_IFNAME"] == "hsn"
    (text,) = files_of("nccl-env", one_gpu(nccl_fabrics=("efa",)), {}).values()
    assert "FI_PROVIDER" not in text
    with pytest.raises(FactError, match="'token-ring' is not one of"):
        settings_of(("token-ring",))


def test_a_given_variable_wins():
    (text,) = files_of("nccl-env", recipe_job(), {"env:NCCL_DEBUG": "INFO"}).values()
    assert "export NCCL_DEBUG=INFO" in text
    assert "NCCL_DEBUG=WARN" not in text


def test_a_given_fabric_wins_and_an_unknown_one_is_a_sentence():
    job = recipe_job(nccl_fabrics=())
    (text,) = files_of("nccl-env", job, {"fabric": "slingshot"}).values()
    assert "export NCCL_NET='AWS Libfabric'" in text
    assert "# Fabric: slingshot." in text
    (check,) = files_of("preflight", job, {"fabric": "roce,nvl72"}).values()
    assert 'FABRIC="roce,nvl72"' in check
    for name in ("slurm", "k8s-job", "preflight", "nccl-env"):
        with pytest.raises(RecipeError, match="Did you mean 'slingshot'"):
            files_of(name, job, {"fabric": "slingshott"})


@pytest.mark.parametrize(
    ("instance", "fabric", "sharp", "accelerator", "wanted"),
    [
        ("p5.48xlarge", "efa", False, "H100-80GB-SXM", ("efa",)),
        ("a3-megagpu-8g", "ethernet", False, "H100-80GB-SXM", ("tcpxo",)),
        ("a3-highgpu-8g", "ethernet", False, "H100-80GB-SXM", ("tcpx",)),
        ("x", "infiniband", False, "H100-80GB-SXM", ("infiniband",)),
        ("x", "infiniband", True, "H100-80GB-SXM", ("infiniband_sharp",)),
        ("x", "ethernet", True, "H100-80GB-SXM", ("ethernet",)),
        ("x", "roce", False, "GB200", ("roce", "nvl72")),
        ("x", "", False, "H100-80GB-SXM", ()),
    ],
)
def test_the_fabric_of_a_plan(instance, fabric, sharp, accelerator, wanted):
    scenario = Scenario.parse({"model": "llama3.1-8b", "network_reduction": str(sharp).lower()})
    machine = machines.machine(
        offer(instance_type=instance), machines.accelerator_of(accelerator, scenario)
    )
    job = replace(made_up_job(), scenario=scenario, machine=machine)
    assert nccl_fabrics(plan(offer=machine.offer, job=job), fabric) == wanted
