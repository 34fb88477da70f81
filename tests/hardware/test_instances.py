"""Cloud machines: spot checks, how they fit their accelerators, and refused rows."""

import pytest

from hardware import facts, instances
from hardware.tables import is_date
from tests.support.csv_tables import refusal

HEADER = ",".join(instances._COLUMNS) + "\n"
GOOD = "aws,p9,H100-80GB-SXM,8,3200,efa,8,192,2048,30.4,page,2026-08,\n"
MACHINES = instances.instances()


@pytest.mark.parametrize(
    ("provider", "instance_type", "accelerator", "gpu_count", "gbit_per_s", "fabric"),
    [
        ("aws", "p5.48xlarge", "H100-80GB-SXM", 8, 3200, "efa"),
        ("aws", "p4d.24xlarge", "A100-40GB-SXM", 8, 400, "efa"),
        ("aws", "p3.2xlarge", "V100-16GB", 1, 10, "ethernet"),  # printed: up to 10
        ("aws", "p6e-gb200.36xlarge", "GB200", 4, 1600, "efa"),
        ("gcp", "a3-highgpu-8g", "H100-80GB-SXM", 8, 800, "ethernet"),  # without the front-end
        ("gcp", "a3-megagpu-8g", "H100-80GB-SXM", 8, 1600, "ethernet"),
        ("gcp", "a4-highgpu-8g", "B200-180GB", 8, 3200, "roce"),  # headline 3,600
        ("azure", "Standard_ND96isr_H100_v5", "H100-80GB-SXM", 8, 3200, "infiniband"),
        ("oci", "BM.GPU.MI300X.8", "MI300X", 8, 3200, "roce"),
        ("azure", "Standard_ND40rs_v2", "V100-32GB", 8, None, None),  # only its front-end is
        ("coreweave", "HGX H100", "H100-80GB-SXM", 8, None, None),
    ],
)
def test_machines_as_published(provider, instance_type, accelerator, gpu_count, gbit_per_s, fabric):
    machine = instances.find_instance(provider, instance_type)
    assert machine.accelerator == accelerator
    assert machine.gpu_count == gpu_count
    assert machine.scale_out_gbit_per_s == gbit_per_s
    assert machine.fabric == fabric


def test_a_rack_spans_machines():
    machine = instances.find_instance("azure", "Standard_ND128isr_NDR_GB200_v6")
    assert (machine.gpu_count, machine.scale_up_domain) == (4, 72)


def test_disks_and_host_memory_are_in_the_units_of_their_names():
    machine = instances.find_instance("azure", "Standard_ND96isr_H100_v5")
    assert machine.local_nvme_tb == pytest.approx(28 * 2**40 / 1e12, rel=1e-5)  # 28 TiB
    machine = instances.find_instance("oci", "BM.GPU.H100.8")
    assert machine.local_nvme_tb == pytest.approx(16 * 3.84)
    assert machine.vcpus == 224  # 112 OCPU of two threads


def test_case_does_not_matter_and_an_unknown_machine_is_none():
    assert instances.find_instance("AWS", "P5.48XLARGE") is instances.find_instance(
        "aws", "p5.48xlarge"
    )
    assert instances.find_instance("aws", "p5.49xlarge") is None
    assert instances.find_instance("vast", "p5.48xlarge") is None


@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: f"{m.provider}-{m.instance_type}")
def test_a_machine_fits_its_accelerator(machine):
    gpu = facts.accelerator(machine.accelerator)
    assert gpu.name == machine.accelerator
    assert machine.provider == machine.provider.lower()
    assert machine.source
    assert is_date(machine.source_date)
    assert machine.scale_up_domain in (1, 2) or machine.scale_up_domain >= machine.gpu_count
    if machine.scale_out_gbit_per_s is not None:
        per_gpu = machine.scale_out_gbit_per_s * 1e9 / 8 / machine.gpu_count
        assert per_gpu < gpu.scale_up_bytes_per_s


def test_the_assumed_network_is_the_slowest_printed_for_several_gpus():
    printed = [
        m.scale_out_gbit_per_s
        for m in MACHINES
        if m.gpu_count > 1 and m.scale_out_gbit_per_s is not None
    ]
    assumed = facts.fabric("ethernet_assumed", "instance_bytes_per_s") * 8 / 1e9
    assert min(printed) == assumed


def test_every_machine_s_fabric_has_a_latency():
    for fabric in {m.fabric for m in MACHINES} - {None}:
        assert facts.fabric(fabric, "latency_s") > 0


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (GOOD.replace("page", ""), "aws p9 has no source"),
        (GOOD.replace("2026-08", "August"), "source date 'August'"),
        (GOOD.replace("H100-80GB-SXM", "H100-80GB-SXN"), "Did you mean 'H100-80GB-SXM'"),
        (GOOD.replace("H100-80GB-SXM", "Gaudi1"), "Gaudi1 has no facts"),
        (GOOD.replace("efa", "pigeon"), "fabric 'pigeon' is not one of"),
        (GOOD.replace("3200", "-1"), "scale_out_gbit_per_s is '-1'"),
        (GOOD.replace("3200", "nan"), "scale_out_gbit_per_s is 'nan'"),
        (GOOD.replace("SXM,8", "SXM,"), "no whole number of accelerators"),
        (GOOD.replace("SXM,8", "SXM,0.25"), "no whole number of accelerators"),
        ("aws,p9\n", "does not have 13 cells"),
    ],
)
def test_a_row_that_cannot_be_trusted_stops_the_load(tmp_path, row, says):
    said = refusal(instances.load_instances, tmp_path / "instances.csv", HEADER + row)
    assert said.startswith("instances.csv:2: ")
    assert says in said


def test_a_machine_given_twice_stops_the_load(tmp_path):
    twice = HEADER + GOOD + GOOD.replace("p9", "P9")
    said = refusal(instances.load_instances, tmp_path / "instances.csv", twice)
    assert "instances.csv:3: aws P9 is given twice" in said


def test_a_blank_figure_is_unknown(tmp_path):
    table = tmp_path / "instances.csv"
    table.write_text(HEADER + "x,y,L4,4,,,1,,,,page,undated,\n")
    (machine,) = instances.load_instances(table)
    assert machine.scale_out_gbit_per_s is None
    assert machine.vcpus is None
    assert machine.host_ram_gib is None
    assert machine.local_nvme_tb is None
