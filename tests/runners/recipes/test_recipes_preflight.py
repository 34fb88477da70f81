"""The pre-flight check under bash: with no GPU, and with a stand-in for nvidia-smi."""

import re
import subprocess
import time

import pytest

from runners.recipes.registry import files_of
from tests.made_up.plans import layout
from tests.made_up.recipes import one_gpu, recipe_job

# Answers like nvidia-smi; the environment says what is wrong with the machine.
SMI = """#!/bin/bash
n=${GPUS:-8}
each() { for i in $(seq "$n"); do printf '%s\\n' "$1"; done; }
case "$*" in
*hang*|*query-gpu=name*) [ -z "${HANG:-}" ] || sleep 600; each "${NAME:-NVIDIA H100 80GB HBM3}" ;;
*driver_version*) each 580.95.05 | sed "1s/.*/${DRIVER:-580.95.05}/" ;;
*nvlink*) for i in $(seq "$n"); do echo "GPU $i"; echo "	 Link 0: ${LINK:-26.562 GB/s}"; done ;;
*hw_slowdown*) each "${HELD:-Not Active}, Not Active, Not Active" ;;
*ecc*) each "${ECC:-0}" ;;
*clocks.sm*) each "1980, 1980, 35, 120.1, 700.0" ;;
*memory.used*) each "${USED:-3}" ;;
esac
"""
PERF = """#!/bin/bash
echo "# Avg bus bandwidth    : ${BUSBW:-478.2}"
exit ${PERF_STATUS:-0}
"""


@pytest.fixture
def machine(tmp_path):
    """Run the check of a job on a made-up machine: exit status and what it said."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (tmp_path / "disk").mkdir()

    def _machine(job=None, *, gpus=True, perf=True, patience_s=60, **said):
        (text,) = files_of("preflight", job or node(), {}).values()
        assert "limited 60 nvidia-smi" in text
        script = tmp_path / "preflight.sh"
        script.write_text(text.replace("limited 60 nv", f"limited {patience_s} nv"))
        for name, source, there in (("nvidia-smi", SMI, gpus), ("all_reduce_perf", PERF, perf)):
            if there:
                (programs / name).write_text(source)
                (programs / name).chmod(0o755)
        env = {
            "PATH": f"{programs}:/usr/bin:/bin", "DISK_DIR": str(tmp_path / "disk"),
            "DISK_MIB": "4", "PYTHON": "no-such-python", **said,
        }  # fmt: skip
        done = subprocess.run(
            ["bash", str(script)], env=env, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, check=False, timeout=60,
        )  # fmt: skip
        assert not done.stderr
        return done.returncode, done.stdout

    return _machine


def node(**changes):
    return recipe_job(
        num_gpus=8, num_nodes=1, layout=layout(tp=2, dp_shard=4, num_microbatches=16), **changes
    )


def test_without_a_gpu_it_says_what_is_missing_and_ends_soon(machine):
    begun = time.monotonic()
    status, said = machine(gpus=False, perf=False)
    assert status == 10
    assert "nvidia-smi is not here" in said
    assert "torch is not importable" in said
    assert re.search(r"ok +\S+disk takes \d+ MB/s", said)  # what can be checked still is
    assert time.monotonic() - begun < 20


def test_a_good_machine_passes(machine, tmp_path):
    status, said = machine()
    assert status == 0, said
    assert "FAIL" not in said
    for part in ("8 GPUs: NVIDIA H100 80GB HBM3", "driver 580.95.05", "8 NVLinks are up",
                 "478.2 GB/s of bus bandwidth", "All is well"):  # fmt: skip
        assert part in said
    assert list((tmp_path / "disk").iterdir()) == []  # nothing is left behind


@pytest.mark.parametrize(
    ("said", "status", "words"),
    [
        ({"GPUS": "7"}, 10, "7 GPUs, and the plan has 8 a node"),
        ({"NAME": "NVIDIA A100-SXM4-80GB"}, 10, "8 GPUs are no H100"),
        ({"DRIVER": "535.1"}, 11, "several drivers"),
        ({"LINK": "<inactive>"}, 12, "8 NVLinks are inactive"),
        ({"HELD": "Active"}, 13, "slowed down by hardware"),
        ({"ECC": "2"}, 13, "memory errors that were not corrected"),
        ({"PERF_STATUS": "3"}, 14, "the all-reduce failed (status 3)"),
        ({"BUSBW": "40.1", "MIN_BUSBW_GBPS": "300"}, 14, "40.1 GB/s of bus bandwidth, under 300"),
        ({"MIN_DISK_MBPS": "99999999"}, 15, "under 99999999"),
        ({"DISK_DIR": "/no/such/folder"}, 15, "nothing can be written"),
        ({"GPUS": "4", "ECC": "1"}, 10, "4 GPUs have memory errors"),  # the first one's status
        ({"perf": False}, 14, "neither nccl-tests nor torch is here"),
        ({"job": recipe_job()}, 12, "no port of a fast network is active"),
        ({"USED": "70000"}, 0, "hold more than 1 GiB already"),  # told, and no fault
    ],
)
def test_each_fault_has_its_status_and_its_words(machine, said, status, words):
    found, text = machine(**said)
    assert found == status, text
    assert words in text


def test_a_driver_that_hangs_is_not_waited_for(machine):
    """nvidia-smi of a broken GPU may never answer."""
    begun = time.monotonic()
    assert machine(one_gpu(), patience_s=1, HANG="1")[0] == 10
    assert time.monotonic() - begun < 20
