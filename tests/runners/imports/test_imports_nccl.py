"""Tables of nccl-tests: what is read of them, what they say of a machine, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from hardware import facts
from hardware.efficiency import GENERIC, efficiency
from runners.calibration.fit import machine_of
from runners.imports import nccl_tests
from runners.imports.constants import fitted, links
from runners.imports.result import ImportResult, parse_import
from runners.imports.text import ImportFileError
from tests.support.logs import lines

H100 = "H100-80GB-SXM"


def document(name: str, **told: object) -> ImportResult:
    found = nccl_tests.tables(lines(name), **told)  # type: ignore[arg-type]
    return nccl_tests.result(
        found, source_sha256="0" * 64, source_bytes=1, accelerator=H100, date=None
    )


def test_a_node_as_it_was_printed():
    (table,) = nccl_tests.tables(lines("all_reduce_node.txt"))
    assert (table.op, table.ranks, table.nodes, table.dtype) == ("all_reduce", 8, 1, "float")
    assert table.device == "NVIDIA H100 80GB HBM3"
    assert table.library == "2.28.9+cuda13.0"
    assert len(table.points) == 16
    last = table.points[-1]
    assert last.size_bytes == 8 * 4**15
    assert last.bus_gb_per_s == pytest.approx(last.alg_gb_per_s * 1.75, rel=1e-3)
    assert last.time_s == pytest.approx(last.size_bytes / last.alg_gb_per_s / 1e9, rel=1e-3)
    assert last.in_place_s is not None
    assert {p.wrong for p in table.points} == {0}


def test_the_fit_finds_what_the_table_was_made_of():
    # 21 us and 470 GB/s of bus bandwidth, 8 KiB six times too slow.
    (link,) = links(document("all_reduce_node.txt").collectives)
    assert link.bus_bytes_per_s == pytest.approx(470e9, rel=0.02)
    assert link.curve.latency_s == pytest.approx(21e-6, rel=0.03)
    at = link.curve.size_bytes.tolist().index(8192.0)
    assert link.curve.spikes[at]
    assert link.curve.time_s[at] < 25e-6


def test_the_link_inside_a_node_against_what_is_assumed():
    chip, eff = facts.accelerator(H100), efficiency(GENERIC)
    found = {c.name: c for c in fitted(document("all_reduce_node.txt"), chip, eff).constants}
    assert set(found) == {"scale_up", "scale_up_hop"}
    up = found["scale_up"]
    assumed = float(np.asarray(eff.scale_up)) * machine_of(chip).scale_up_bytes_per_s / 1e9
    assert up.assumed == pytest.approx(assumed)
    assert up.measured == pytest.approx(470, rel=0.02)
    # Joined with its prior: between what was assumed and what was measured, nearer the latter.
    assert 1 < up.low < up.factor < up.measured / up.assumed
    assert up.factor > (up.measured / up.assumed) ** 0.9


def test_the_network_is_per_gpu():
    chip = facts.accelerator(H100)
    learned = fitted(document("all_reduce_two_nodes.txt"), chip, efficiency(GENERIC))
    found = {c.name: c for c in learned.constants}
    assert set(found) == {"scale_out", "scale_out_hop"}
    assert found["scale_out"].measured == pytest.approx(360 / 8, rel=0.02)
    assert learned.factors.scale_out == found["scale_out"].factor
    assert learned.factors.scale_up == 1.0
    assert "scale_up" in learned.missing
    assert "scale_out" not in learned.missing


def test_every_operation_of_a_file_with_several():
    found = nccl_tests.tables(lines("nccl_all_operations.txt"))
    assert [t.op for t in found] == [
        "all_reduce", "all_gather", "all_to_all", "send_recv", "broadcast", "reduce_scatter",
    ]  # fmt: skip
    assert {(t.ranks, t.nodes) for t in found} == {(16, 2)}
    by_op = {link.op: link for link in links(document("nccl_all_operations.txt").collectives)}
    assert by_op["all_gather"].bus_bytes_per_s == pytest.approx(350e9, rel=0.02)
    assert by_op["send_recv"].bus_bytes_per_s == pytest.approx(44e9, rel=0.02)


def test_an_older_table_needs_to_be_told_what_it_is():
    """No list of devices, no root, `error` in place of #wrong, mpirun's tags, a line cut off."""
    old = lines("nccl_old_untitled.txt")
    with pytest.raises(ImportFileError, match=r"which operation was measured: give --op"):
        nccl_tests.tables(old)
    with pytest.raises(ImportFileError, match=r"give --ranks and --nodes"):
        nccl_tests.tables(old, op="all_reduce")
    (table,) = nccl_tests.tables(old, op="all_reduce", ranks=8, nodes=1)
    assert len(table.points) == 10
    assert table.points[-1].size_bytes == 1 << 28  # the one that is cut off is no point
    with pytest.raises(ImportFileError, match=r"busbw over algbw is 1\.75, and 0\.875"):
        nccl_tests.tables(old, op="all_gather", ranks=8, nodes=1)


def test_what_is_told_must_be_what_the_file_says():
    with pytest.raises(ImportFileError, match="--nodes is 2, and the file says 1"):
        nccl_tests.tables(lines("all_reduce_node.txt"), nodes=2)
    with pytest.raises(ImportFileError, match="--op 'gather' is none of all_reduce"):
        nccl_tests.tables(lines("all_reduce_node.txt"), op="gather")


def test_wrong_results_are_no_measurement():
    changed = [
        line.replace("       0  ", "      17  ") if line.lstrip().startswith("134217728 ") else line
        for line in lines("all_reduce_node.txt")
    ]
    (table,) = nccl_tests.tables(changed)
    assert [p.wrong for p in table.points if p.wrong] == [17]
    made = nccl_tests.result(
        (table,), source_sha256="0" * 64, source_bytes=1, accelerator=H100, date=None
    )
    (link,) = links(made.collectives)
    assert 134217728.0 not in link.curve.size_bytes


def test_times_of_the_cpu_are_refused():
    header = [x.replace("   time", "cputime") for x in lines("all_reduce_node.txt")]
    with pytest.raises(ImportFileError, match="times are those of the CPU"):
        nccl_tests.tables(header)


def test_a_run_that_ended_before_its_first_result():
    cut = [x for x in lines("all_reduce_node.txt") if not x.strip()[0].isdigit()]
    with pytest.raises(ImportFileError, match="ended before its first result"):
        nccl_tests.tables(cut)


@pytest.mark.parametrize("keep", range(1, 13))
def test_a_table_that_is_cut_off_anywhere_never_shows_half_a_figure(keep):
    """Each cell of the last line cut off in turn: its half is read whole or not at all."""
    whole = lines("all_reduce_node.txt")
    at = max(i for i, x in enumerate(whole) if x.lstrip()[0].isdigit())
    (full,) = nccl_tests.tables(whole)
    cut = " ".join(whole[at].split()[:keep])
    (found,) = nccl_tests.tables([*whole[:at], cut])
    if len(found.points) == len(full.points):
        assert found.points[-1].time_s == full.points[-1].time_s
    else:
        assert found.points == full.points[:-1]


def test_the_document_is_read_back_and_refuses_what_is_not_in_it():
    made = document("all_reduce_node.txt")
    text = made.model_dump_json(by_alias=True).encode()
    assert parse_import(text) == made
    for old, new, said in (
        (b'"ranks":8', b'"ranks":1', "greater than or equal to 2"),
        (b'"ranks":8', b'"ranks":8,"token":"x"', "unknown key"),
        (b"import-result/1", b"import-result/9", "schema"),
        (b'"time_s":', b'"time_s":-', "greater than 0"),
    ):
        with pytest.raises(ImportFileError, match=said):
            parse_import(text.replace(old, new, 1))
    with pytest.raises(ImportFileError):
        parse_import(text[: len(text) // 2])


def test_another_machine_is_refused():
    made = document("all_reduce_node.txt")
    slow = [
        c.model_copy(
            update={"points": [p.model_copy(update={"time_s": p.time_s * 99}) for p in c.points]}
        )
        for c in made.collectives
    ]
    with pytest.raises(ImportFileError, match="the result is of another machine"):
        fitted(
            made.model_copy(update={"collectives": slow}),
            facts.accelerator(H100),
            efficiency(GENERIC),
        )


def test_small_messages_alone_say_nothing_of_bandwidth():
    """All as fast as the smallest: a line through them would have any slope."""
    small = document("all_reduce_node.txt").collectives[0]
    few = small.model_copy(update={"points": [p for p in small.points if p.size_bytes < 1e5]})
    assert len(few.points) == 7
    assert links([few]) == ()


@pytest.mark.parametrize("sizes", [(28, 29, 30, 31), (30, 30.2, 30.4, 30.6)])
def test_large_messages_alone_give_a_bandwidth_and_no_latency(sizes):
    """Made as the whole table is: 21 us and 470 GB/s of bus bandwidth."""
    whole = document("all_reduce_node.txt")
    (table,) = whole.collectives
    points = [
        table.points[-1].model_copy(
            update={"size_bytes": 2.0**x, "time_s": 21e-6 + 2.0**x * 1.75 / 470e9}
        )
        for x in sizes
    ]
    few = whole.model_copy(update={"collectives": [table.model_copy(update={"points": points})]})
    (link,) = links(few.collectives)
    assert link.bus_bytes_per_s == pytest.approx(470e9, rel=0.01)
    chip, eff = facts.accelerator(H100), efficiency(GENERIC)
    assert [c.name for c in fitted(few, chip, eff).constants] == ["scale_up"]
