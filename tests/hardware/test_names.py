"""One id per accelerator: every spelling finds it, none is guessed."""

import csv
import math
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from core.errors import ScenarioError
from hardware import facts, names
from tests.support.csv_tables import refusal

HARDWARE = Path(names.__file__).parent
TABLE = list(csv.DictReader(names.NAMES_CSV.read_text(encoding="utf-8").splitlines()))
SPELLINGS = sorted({row["spelling"] for row in TABLE})
HEADER = "spelling,canonical,memory_gib,form_factor,note\n"
# Two parts, no part or none of ours: such a spelling must not resolve.
AMBIGUOUS = ["H100/H200 SXM", "H800/H100", "unknown (4 nodes)", "one-GPU preset", "CPU", ""]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_resolves_to_a_part_with_facts_or_says_why_not(spelling):
    name = names.canonical(spelling)
    assert name in facts.accelerators() or names.known_without_facts()[name]


@given(spelling=st.sampled_from(SPELLINGS))
def test_the_id_of_an_id_is_itself(spelling):
    once = names.canonical(spelling)
    assert names.canonical(once) == once


@given(spelling=st.sampled_from(SPELLINGS), data=st.data())
def test_case_and_separators_never_matter(spelling, data):
    def changed(c: str) -> str:
        if c in " -_":
            return data.draw(st.sampled_from(["", " ", "-", "_", " - "]))
        return data.draw(st.sampled_from([c.lower(), c.upper()]))

    written = data.draw(st.sampled_from(["", " "])) + "".join(changed(c) for c in spelling)
    assert names.canonical(written) == names.canonical(spelling)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("h100", "H100-80GB-SXM"),
        ("H100-SXM", "H100-80GB-SXM"),
        ("H100-80GB (700W)", "H100-80GB-SXM"),
        ("NVIDIA H100 80GB HBM3", "H100-80GB-SXM"),
        ("a100", "A100-80GB-SXM"),
        ("a100-40gb", "A100-40GB-SXM"),
        ("A100 SXM4 40 GB", "A100-40GB-SXM"),
        ("A100-PCIe", "A100-80GB-PCIE"),
        ("h200", "H200-141GB-SXM"),
        ("b200", "B200-180GB"),
        ("mi300x", "MI300X"),
        ("gb200", "GB200"),
        ("4090", "RTX4090"),
        ("l4", "L4"),
        ("v100", "V100-32GB"),
        ("Tesla V100 DGXS 32 GB", "V100-32GB"),
        ("TPU v5p", "TPU-v5p"),
        ("tpu-v5litepod", "TPU-v5e"),
        ("H800", "H800-80GB-SXM"),
        ("RTX PRO 6000", "RTXPRO6000-96GB"),
        ("Gaudi1 (HL-205)", "Gaudi1"),
        ("A10 (not A10G)", "A10"),
    ],
)
def test_known_spellings(written, name):
    assert names.canonical(written) == name


@pytest.mark.parametrize(
    ("name", "spellings"),
    [
        ("H20-96GB", "H20; NVIDIA H20; HGX H20; H20-96GB; H20-SXM5-96GB"),
        ("H20-141GB", "H20-3e; H20-141GB; NVIDIA H20 141GB"),
        ("RTX3090", "3090; rtx-3090; RTX 3090; GeForce RTX 3090; NVIDIA GeForce RTX 3090"),
        ("RTX3090Ti", "3090 Ti; RTX 3090 Ti; NVIDIA GeForce RTX 3090 Ti"),
        ("RTX4080", "4080; rtx-4080; NVIDIA GeForce RTX 4080"),
        ("RTX4090D", "RTX 4090D; RTX 4090 D; NVIDIA GeForce RTX 4090 D"),
        ("RTX2080Ti", "2080ti; RTX 2080 Ti; NVIDIA GeForce RTX 2080 Ti"),
        ("RTXA5000", "A5000; RTX A5000; NVIDIA RTX A5000"),
        ("RTXA4000", "A4000; RTX A4000; NVIDIA RTX A4000"),
        ("RTX6000Ada", "RTX 6000 Ada; RTX6000-Ada; NVIDIA RTX 6000 Ada Generation"),
        ("RTX8000", "RTX 8000; Quadro RTX 8000; NVIDIA Quadro RTX 8000"),
        ("TITANRTX", "TITAN RTX; NVIDIA TITAN RTX"),
        ("L40", "L40; NVIDIA L40; L40-48GB"),
        ("L20", "L20; NVIDIA L20"),
        ("A30", "A30; A30-24GB; NVIDIA A30"),
        ("A10", "A10; A10-24GB; NVIDIA A10"),
        ("T4", "T4; Tesla T4; NVIDIA T4; T4-16GB"),
        ("V100-32GB", "V100-SXM2-32GB; Tesla V100-SXM2-32GB"),
        ("V100-16GB", "V100-SXM2-16GB; Tesla V100-SXM2-16GB"),
        ("V100S-32GB", "V100S; Tesla V100S-PCIE-32GB"),
        ("A100-64GB-SXM", "Leonardo A100; A100-64GB; A100-SXM-64GB"),
        ("A800-40GB-SXM", "A800-40GB; A800-SXM4-40GB"),
        ("A800-80GB-PCIE", "A800 PCIe; NVIDIA A800 80GB PCIe"),
        ("H800-80GB-PCIE", "H800 PCIe; NVIDIA H800 PCIe"),
        ("H200-141GB-NVL", "H200 NVL; NVIDIA H200 NVL"),
        ("GH200-144GB", "GH200-144GB; NVIDIA GH200 144G HBM3e"),
        ("B100", "B100; NVIDIA B100"),
        ("MI100", "MI100; AMD Instinct MI100"),
        ("MI210", "MI210; AMD Instinct MI210"),
        ("MI250", "MI250; AMD Instinct MI250"),
        ("MI300A", "MI300A; AMD Instinct MI300A"),
        ("TPU-v3", "TPU v3; tpu-v3; Cloud TPU v3"),
    ],
)
def test_the_usual_spellings_find_a_part_that_can_be_estimated(name, spellings):
    for spelling in spellings.split("; "):
        assert facts.accelerator(spelling).name == name


@pytest.mark.parametrize("spelling", AMBIGUOUS)
def test_what_names_no_single_part_is_refused(spelling):
    with pytest.raises(ScenarioError, match="Unknown accelerator"):
        names.canonical(spelling)


@given(text=st.text(max_size=40))
def test_text_that_is_no_spelling_is_a_sentence(text):
    assume(names.key(text) not in {names.key(s) for s in SPELLINGS})
    with pytest.raises(ScenarioError, match=r"^Unknown accelerator "):
        names.canonical(text)


def test_a_name_of_ten_megabytes_is_cut_in_the_sentence():
    with pytest.raises(ScenarioError) as e:
        names.canonical("x" * 10_000_000)
    assert len(str(e.value)) < 1000


def test_every_spelling_of_the_measured_runs_resolves():
    """Only what the source itself leaves open may stay without a part."""
    open_questions = {names.key(s) for s in AMBIGUOUS}
    unresolved = set()
    seen = 0
    for table in ("measured_runs.csv", "measured_kernels.csv", "measured_totals.csv"):
        with (HARDWARE / table).open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                seen += 1
                if names.key(row["accelerator"]) in open_questions:
                    continue
                try:
                    names.canonical(row["accelerator"])
                except ScenarioError:
                    unresolved.add(row["accelerator"])
    assert seen > 1000
    assert not unresolved


@pytest.mark.parametrize(
    ("sold_as", "name"),
    [
        (("A100-80GB",), "A100-80GB-SXM"),  # SkyPilot
        (("A100-80GB", 80, "PCIe"), "A100-80GB-PCIE"),
        (("H100-MEGA",), "H100-80GB-SXM"),
        (("H100-SXM",), "H100-80GB-SXM"),
        (("H100",), "H100-80GB-SXM"),
        (("H100", 80), "H100-80GB-SXM"),
        (("H100", 79.6, "SXM5"), "H100-80GB-SXM"),
        (("H100", 80, "PCI-e"), "H100-80GB-PCIE"),
        (("H100NVL", 94), "H100-94GB-NVL"),
        (("H100", 94), "H100-94GB-NVL"),
        (("A100", 40), "A100-40GB-SXM"),
        (("A100", 80), "A100-80GB-SXM"),
        (("A100", 40, "pcie"), "A100-40GB-PCIE"),
        (("V100", 16), "V100-16GB"),
        (("V100", 32), "V100-32GB"),
        (("A10G", 22.35), "A10G"),
        (("B300", 262), "B300"),
        (("GB200",), "GB200"),
        (("RTX4090", 24), "RTX4090"),
        (("RTXPRO6000", 96), "RTXPRO6000-96GB"),
        (("L40S", 44.7), "L40S"),
        (("MI300X", 192), "MI300X"),
        (("tpu-v5p",), "TPU-v5p"),
        (("tpu-v5litepod-8",), "TPU-v5e"),
        (("v6e-16", 0), "TPU-v6e"),
        (("L40",), "L40"),
        (("Gaudi",), "Gaudi1"),
    ],
)
def test_what_price_feeds_sell(sold_as, name):
    assert names.canonical_from_feed(*sold_as) == name


@pytest.mark.parametrize(
    "sold_as",
    [
        ("A100",),  # 40 or 80 GiB
        ("V100",),
        ("A100", 20),  # a slice
        ("H100", 10),
        ("H100", 80, "nvl"),
        ("H100", 80, "mezzanine"),
        ("MI250X", 128),  # the module of two devices
        ("GH200", 144),
        ("H100", math.nan),
        ("RTX9999", 24),
    ],
)
def test_what_cannot_be_told_is_none(sold_as):
    assert names.canonical_from_feed(*sold_as) is None


def test_known_without_facts_gives_a_reason():
    without = names.known_without_facts()
    assert {"MI308X", "Gaudi1"} <= set(without)
    assert all(without.values())


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("X,X,,,\nx ,X,,,\n", "names.csv:3: x is given twice"),
        ("X,X,,,\nY,Z,,,\n", "the id 'Z' is not a spelling of itself"),
        ("X,,,,\n", "names.csv:2: X has neither a canonical id nor a reason"),
        ("X,X,,,\nX,X,many,,\n", "names.csv:3: memory_gib 'many'"),
        ("X,X,,,\nX,X,,sxm,\n", "names.csv:3: memory_gib ''"),
        ("X,X,,,\nX,X,80,oam,\n", "names.csv:3: form factor 'oam'"),
        ("X,X,,,\nX,Y,80,sxm,\n", "the id 'Y' is not a spelling of itself"),
        (" - ,X,,,\n", "names.csv:2: the row has no spelling"),
    ],
)
def test_a_row_that_cannot_be_trusted_stops_the_load(tmp_path, rows, says):
    assert says in refusal(names.load_names, tmp_path / "names.csv", HEADER + rows)
