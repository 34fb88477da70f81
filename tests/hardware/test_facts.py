"""Accelerator and fabric facts: spot checks against other published prints, and refused rows.

The figures of golden/accelerator_figures.csv were read in other places than the shipped rows
wherever two places print them.
"""

import csv
import math
from dataclasses import fields
from pathlib import Path
from statistics import median

import pytest

from core.errors import FactError, ScenarioError
from core.machine.accelerator import Accelerator
from core.machine.cluster import ASSUMED_CEILING, INFINIBAND_HOP_S, NVLINK_HOP_S
from core.units import GIB, to_si
from hardware import facts, names
from hardware.tables import is_date
from tests.support.csv_tables import refusal

HEADER = "accelerator,quantity,value,unit,source,source_date,note\n"
FABRIC_HEADER = HEADER.replace("accelerator", "fabric", 1)
GOOD = (
    "X,vendor,nvidia,name,page,2026,a remark\n"
    "X,architecture,Hopper,name,page,2026,\n"
    "X,device_name,X,name,page,2026,\n"
    "X,bf16_flops_per_s,100,TFLOP/s,page,2026-01-01,\n"
    "X,memory_bytes,40,GiB,page,2026-01,assumed: as Y\n"
    "X,memory_bytes_per_s,1.5,TB/s,page,undated,\n"
    "X,scale_up_bytes_per_s,300,GB/s,page,2026,\n"
    "X,scale_up_domain,8,count,page,2026,\n"
    "X,gpus_per_node,8,count,page,2026,\n"
)
GOLDEN = Path(__file__).parent.parent / "golden/accelerator_figures.csv"
FIGURES = list(csv.DictReader(GOLDEN.read_text(encoding="utf-8").splitlines()))
PARTS = sorted(facts.accelerators())


def refused(tmp_path, text):
    return refusal(facts.load_accelerators, tmp_path / "accelerators.csv", text)


@pytest.mark.parametrize("row", FIGURES, ids=lambda r: f"{r['accelerator']}-{r['field']}")
def test_a_shipped_figure_is_the_published_one(row):
    value = getattr(facts.accelerator(row["accelerator"]), row["field"])
    published = to_si(float(row["value"]), row["unit"])
    assert value == pytest.approx(published, rel=float(row["rel"]) or 1e-12)


@pytest.mark.parametrize("name", PARTS)
def test_every_shipped_number_has_a_source_and_a_date(name):
    gpu = facts.accelerator(name)
    numbers = {f.name for f in fields(Accelerator)} - {"name", "sources", "note"}
    given = {n for n in numbers if getattr(gpu, n) is not None}
    assert set(gpu.sources) == given
    for source in gpu.sources.values():
        assert source.ref
        assert source.printed
        assert is_date(source.date)


@pytest.mark.parametrize("name", PARTS)
def test_shipped_figures_agree_with_each_other(name):
    """Bounds that a wrong unit, a sparse peak or a figure of both directions would break."""
    gpu = facts.accelerator(name)
    peaks = [gpu.bf16_flops_per_s, gpu.fp8_flops_per_s, gpu.fp4_flops_per_s]
    given = [p for p in peaks if p is not None]
    assert given == sorted(given)
    if gpu.matmul_flops_per_s is not None:
        # A GeForce card runs above its rated boost clock while it adds up in fp32 at half the rate.
        most = 1.12 if gpu.architecture.generation.endswith("GeForce") or name == "RTX5090" else 1
        assert 0.4 < gpu.matmul_flops_per_s / gpu.bf16_flops_per_s < most
    if gpu.fp8_flops_per_s is not None and gpu.name != "Trn3":  # printed: 2517 against 671
        assert gpu.fp8_flops_per_s < 2.1 * gpu.bf16_flops_per_s
    assert 10 * GIB < gpu.memory_bytes <= 288 * GIB
    assert gpu.scale_up_bytes_per_s < gpu.memory_bytes_per_s
    if gpu.scale_out_bytes_per_s is not None:
        assert gpu.scale_out_bytes_per_s < gpu.scale_up_bytes_per_s
    assert gpu.scale_up_domain == 1 or gpu.scale_up_domain % 2 == 0
    assert 1 <= gpu.gpus_per_node <= 64


def test_a_part_made_for_one_market_differs_only_in_its_links():
    for cut, whole in [
        ("A800-40GB-SXM", "A100-40GB-SXM"),
        ("A800-80GB-SXM", "A100-80GB-SXM"),
        ("H800-80GB-SXM", "H100-80GB-SXM"),
    ]:
        a, b = facts.accelerator(cut), facts.accelerator(whole)
        assert a.bf16_flops_per_s == b.bf16_flops_per_s
        assert a.memory_bytes == b.memory_bytes
        assert a.scale_up_bytes_per_s == 200e9 < b.scale_up_bytes_per_s


def test_what_was_copied_from_another_part_is_marked_assumed():
    gpu = facts.accelerator("H100-96GB-HBM2e-500W")
    assert gpu.sources["bf16_flops_per_s"].assumed
    assert gpu.sources["memory_bytes"].assumed
    assert not facts.accelerator("H100-80GB-SXM").sources["bf16_flops_per_s"].assumed


def test_the_printed_figure_travels_with_the_number():
    source = facts.accelerator("H100-80GB-SXM").sources["memory_bytes"]
    assert source.printed == "81089 MiB"
    assert facts.accelerator("H100-80GB-SXM").memory_bytes == 81089 * 2**20


@pytest.mark.parametrize(
    ("name", "gib"),
    [("TPU-v3", 30.96), ("TPU-v4", 30.75), ("TPU-v5e", 15.75), ("TPU-v5p", 95.74),
     ("TPU-v6e", 31.25), ("TPU-v7x", 189.5)],
)  # fmt: skip
def test_a_tpu_holds_what_its_compiler_may_use(name, gib):
    """The pages print round figures (v5e 16 GB, v6e 32 GB, v4 32 GiB); XLA's errors print these."""
    gpu = facts.accelerator(name)
    assert gpu.memory_bytes == pytest.approx(gib * GIB)
    assert not gpu.sources["memory_bytes"].assumed


@pytest.mark.parametrize("name", ["MI250X", "MI250", "MI300A", "GH200-96GB"])
def test_machines_of_supercomputers_are_not_taken_to_have_slow_ethernet(name):
    """A run of several machines that names no network was taken to have 10 Gbit/s a machine."""
    gpu = facts.accelerator(name)
    slowest = 10e9 / 8 / gpu.gpus_per_node
    assert gpu.scale_out_bytes_per_s == pytest.approx(
        {"MI250X": 100e9, "MI250": 100e9, "MI300A": 200e9, "GH200-96GB": 200e9}[name] / 8
    )
    assert gpu.scale_out_bytes_per_s >= 10 * slowest


def test_a_precision_that_no_source_prints_is_not_offered():
    assert facts.accelerator("A100-80GB-SXM").fp8_flops_per_s is None
    assert facts.accelerator("H100-80GB-SXM").fp4_flops_per_s is None


def test_any_spelling_finds_the_part():
    assert facts.accelerator("h100 sxm").name == "H100-80GB-SXM"


def test_an_unknown_accelerator_is_never_guessed():
    with pytest.raises(ScenarioError, match="Did you mean 'H100-80GB-SXM'"):
        facts.accelerator("H100-80G-SXN")


@pytest.mark.parametrize("name", ["MI308X", "gaudi1", "TPU v2"])
def test_a_part_without_sourced_peaks_says_so(name):
    with pytest.raises(ScenarioError, match=r"cannot be estimated: .*source"):
        facts.accelerator(name)


def test_a_good_table_loads(tmp_path):
    table = tmp_path / "accelerators.csv"
    table.write_text(HEADER + GOOD, encoding="utf-8")
    gpu = facts.load_accelerators(table)["X"]
    assert gpu.bf16_flops_per_s == 100e12
    assert gpu.memory_bytes == 40 * GIB
    assert gpu.note == "a remark"
    assert gpu.sources["memory_bytes"].assumed
    assert not gpu.sources["memory_bytes_per_s"].assumed
    assert gpu.scale_out_bytes_per_s is None


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("X,memory_bytes,80,GB,,2026-01-01,\n", "X memory_bytes has no source"),
        ("X,memory_bytes,80,gb,page,2026-01-01,\n", "unit 'gb'"),
        ("X,memory_bytes,80,TFLOP/s,page,2026,\n", "unit 'TFLOP/s'"),
        ("X,memory_bytes_per_s,80,GB,page,2026,\n", "unit 'GB'"),
        ("X,memory_bytes,80,GB,page,Jan 2026,\n", "source date 'Jan 2026'"),
        ("X,memory_bytes,80,GB,page,2026-13,\n", "source date '2026-13'"),
        ("X,memory_bytes,80,GB,page,n/a,\n", "source date 'n/a'"),
        ("X,memory_bytes,80,GB,page,,\n", "source date ''"),
        ("X,memory,80,GB,page,2026,\n", "quantity 'memory' is not one of"),
        ("X,memory_bytes,nan,GB,page,2026,\n", "'nan', not a number above 0"),
        ("X,memory_bytes,inf,GB,page,2026,\n", "'inf', not a number above 0"),
        ("X,memory_bytes,-80,GB,page,2026,\n", "'-80', not a number above 0"),
        ("X,memory_bytes,eighty,GB,page,2026,\n", "'eighty', not a number above 0"),
        ("X,gpus_per_node,2.5,count,page,2026,\n", "'2.5', not a whole number"),
        ("X,vendor,acme,name,page,2026,\n", "vendor 'acme' is not one of"),
        ("X,vendor,nvidia,,page,2026,\n", "vendor has unit '', not 'name'"),
        ("X,architecture,Hooper,name,page,2026,\n", "architecture 'Hooper' is not one of Volta"),
        ("X,rack,nvl73,name,page,2026,\n", "rack 'nvl73' is not one of"),
        ("X,device_name,,name,page,2026,\n", "device_name is blank"),
        (",memory_bytes,80,GB,page,2026,\n", "names no accelerator"),
        ("X,memory_bytes,80,GB\n", "does not have 7 cells"),
        ("X,memory_bytes,80,GB,page,2026,,,\n", "does not have 7 cells"),
    ],
)
def test_a_row_that_cannot_be_trusted_stops_the_load(tmp_path, row, says):
    said = refused(tmp_path, HEADER + row)
    assert said.startswith("accelerators.csv:2: ")
    assert says in said


def test_a_number_given_twice_stops_the_load(tmp_path):
    said = refused(tmp_path, HEADER + GOOD + "X,memory_bytes,80,GB,page,2026,\n")
    assert "accelerators.csv:11: X memory_bytes is given twice" in said


@pytest.mark.parametrize("quantity", [*facts.REQUIRED, "device_name"])
def test_a_gap_stops_the_load(tmp_path, quantity):
    rows = [row for row in GOOD.splitlines(keepends=True) if row.split(",")[1] != quantity]
    assert len(rows) == len(GOOD.splitlines()) - 1
    assert f"X lacks {quantity}" in refused(tmp_path, HEADER + "".join(rows))


def test_a_table_of_another_shape_is_refused(tmp_path):
    said = refused(tmp_path, "name,value\nX,1\n")
    assert "accelerators.csv:1: the columns are not" in said


def _custom(**changes):
    figures = {
        "tflop_per_s": 989.0,
        "memory_gib": 79.19,
        "memory_gb_per_s": 3350.0,
        "scale_up_gb_per_s": 450.0,
        "scale_out_gbit_per_s": 400.0,
        "gpus_per_node": 8,
    }
    return facts.custom_accelerator(**{**figures, **changes})


def test_a_custom_accelerator_is_the_table_s_with_the_same_figures():
    typed, table = _custom(), facts.accelerator("H100-80GB-SXM")
    assert typed.vendor == "custom"
    for quantity, source in typed.sources.items():
        assert getattr(typed, quantity) == pytest.approx(getattr(table, quantity), rel=1e-4)
        assert source.ref == "typed in by the user"
    assert _custom(scale_out_gbit_per_s=None).scale_out_bytes_per_s is None


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"tflop_per_s": math.nan}, "tflop_per_s='nan'"),
        ({"memory_gib": -1.0}, "memory_gib='-1.0'"),
        ({"memory_gb_per_s": math.inf}, "memory_gb_per_s='inf'"),
        ({"scale_out_gbit_per_s": 0.0}, "scale_out_gbit_per_s='0.0'"),
        ({"gpus_per_node": 10**12}, "gpus_per_node='1000000000000'"),
        ({"gpus_per_node": 2.5}, "gpus_per_node='2.5' is not a whole number"),
    ],
)
def test_a_custom_figure_out_of_range_is_a_sentence(changes, says):
    with pytest.raises(ScenarioError) as e:
        _custom(**changes)
    assert says in str(e.value)


@pytest.mark.parametrize("name", sorted(facts.fabrics()))
def test_every_fabric_has_a_latency_between_a_switch_hop_and_a_millisecond(name):
    assert 5e-7 < facts.fabric(name, "latency_s") < 1e-3
    assert facts.fabric_source(name, "latency_s").ref


def test_the_assumed_network_is_ten_gigabit_of_a_whole_machine_and_shown_as_assumed():
    assert facts.fabric("ethernet_assumed", "instance_bytes_per_s") == 1.25e9
    assert facts.fabric_source("ethernet_assumed", "instance_bytes_per_s").assumed


def test_latencies_follow_the_measured_all_reduce():
    """8 KB over 8 A100: bus bandwidth 0.33 GB/s, so 7/4 x 8192 B / 0.33 GB/s over 14 hops."""
    measured_s = 7 / 4 * 8192 / 0.33e9 / 14
    assert facts.fabric("nvlink", "latency_s") == pytest.approx(measured_s, rel=0.02)


def test_an_unknown_fabric_is_a_fact_error():
    with pytest.raises(FactError, match=r"fabrics\.csv has no latency_s of 'pigeon'"):
        facts.fabric("pigeon", "latency_s")


def test_a_fabric_row_in_a_wrong_unit_stops_the_load(tmp_path):
    text = FABRIC_HEADER + "x,latency_s,3,GB,page,2026,\n"
    said = refusal(facts.load_fabrics, tmp_path / "fabrics.csv", text)
    assert "fabrics.csv:2: latency_s has unit 'GB'" in said


def test_the_names_table_knows_exactly_the_parts_that_have_facts():
    ids = {names.canonical(name) for name in PARTS}
    assert ids == set(PARTS)
    assert not ids & set(names.known_without_facts())


def test_the_assumed_matmul_ceiling_is_the_median_of_the_measured_ones():
    """Of parts whose own matmul is measured; the peak of a GeForce card is of half the rate."""
    parts = [
        a
        for a in facts.accelerators().values()
        if a.matmul_flops_per_s
        and not a.sources["matmul_flops_per_s"].assumed
        and not a.architecture.generation.endswith("GeForce")
        and a.name != "RTX5090"
    ]
    ratios = sorted(a.matmul_flops_per_s / a.bf16_flops_per_s for a in parts)
    assert len(ratios) == 30
    assert median(ratios) == pytest.approx(ASSUMED_CEILING, abs=0.005)


def test_the_hops_that_core_assumes_are_those_of_the_table():
    assert facts.fabric("nvlink", "latency_s") == pytest.approx(NVLINK_HOP_S)
    assert facts.fabric("infiniband", "latency_s") == pytest.approx(INFINIBAND_HOP_S)


def test_no_hop_inside_a_machine_takes_longer_than_one_between_two():
    hops = {n: facts.fabric(n, "latency_s") for n in facts.fabrics()}
    inside = [hops[n] for n in ("nvlink", "xgmi", "pcie", "ici")]
    between = [hops[n] for n in ("infiniband", "roce", "efa", "ethernet", "ethernet_assumed")]
    assert max(inside) < min(between)


def test_the_hops_of_a_machine_are_those_of_its_links():
    for name, link in (("H100-80GB-SXM", "nvlink"), ("MI300X", "xgmi")):
        hop_s = facts.scale_up_hop_s(facts.accelerator(name))
        assert hop_s == facts.fabric(link, "latency_s")
    alone = next(a for a in facts.accelerators().values() if a.scale_up_domain <= 1)
    assert facts.scale_up_hop_s(alone) == facts.fabric("pcie", "latency_s")
