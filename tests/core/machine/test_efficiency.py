"""The fractions that software reaches: the shipped table, and tables that cannot be trusted."""

import csv
from dataclasses import fields

import numpy as np
import pytest

from core.errors import FactError, ScenarioError
from core.machine.efficiency import NAMES, Efficiency, as_columns, from_values
from core.scenario.types import GradientDtype, Recompute, Sharding
from core.units import GIB
from hardware import efficiency as table

HEADER = "stack,quantity,value,low,high,p10,p90,unit,fits,prior,prior_sigma,basis,date,note\n"
STACKS = list(csv.DictReader(table.STACKS_CSV.read_text().splitlines()))
SHIPPED = table.EFFICIENCY_CSV.read_text().splitlines(keepends=True)


def line(stack, quantity, value, low, high, unit, basis, date):
    """A row of the table that is no parameter of a fit."""
    return f"{stack},{quantity},{value},{low},{high},,,{unit},,,,{basis},{date},"


def with_rows(tmp_path, *lines, without=""):
    path = tmp_path / "efficiency.csv"
    kept = [x for x in SHIPPED if not without or not x.startswith(without)]
    path.write_text("".join(kept) + "".join(f"{x}\n" for x in lines))
    return path


def test_every_shipped_profile_is_complete_and_bounded():
    for family, eff in table.load_efficiencies().items():
        for name in NAMES:
            assert np.isfinite(getattr(eff, name)), (family, name)
            assert getattr(eff, name) >= 0, (family, name)
        for share in ("matmul", "grouped_matmul", "attention_forward", "memory", "scale_up",
                      "scale_out", "overlap_window", "tp_exposed", "fsdp_exposed"):  # fmt: skip
            assert getattr(eff, share) <= 1, (family, share)
        assert 0.1 * GIB < eff.reserve_bytes < 10 * GIB  # converted from GiB
        assert eff.overlap_slowdown < 1


def test_every_stack_says_what_exists_and_where_it_was_read():
    for row in STACKS:
        assert set(row["shardings"].split()) | {row["dp_sharding"]} - {""} <= set(
            Sharding.__args__
        ), row["stack"]
        assert set(row["recompute"].split()) <= set(Recompute.__args__), row["stack"]
        assert row["gradient_dtype"] in GradientDtype.__args__, row["stack"]
        for said in ("source", "source_date", "note"):
            assert row[said], (row["stack"], said)


def test_every_shipped_row_says_what_it_rests_on():
    with table.EFFICIENCY_CSV.open(newline="") as file:
        for row in csv.DictReader(file):
            assert row["basis"], row
            assert row["date"], row
            assert float(row["low"]) <= float(row["value"]) <= float(row["high"]), row


def test_a_family_differs_from_generic_only_where_it_says_so(tmp_path):
    row = line("test", "matmul", 0.81, 0.7, 1, "fraction", "prior", "2026-11-21")
    path = with_rows(tmp_path, row)
    profiles = table.load_efficiencies(path)
    own, generic = profiles["test"], profiles[table.GENERIC]
    differing = [f.name for f in fields(Efficiency) if getattr(own, f.name) != getattr(
        generic, f.name)]  # fmt: skip
    assert differing == ["matmul"]
    assert own.matmul == 0.81


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (("x", "matmul", 0.9, 0.7, 1, "fraction", "", "2026-01-01"), "no basis or date"),
        (("x", "matmul", 0.9, 0.7, 1, "fraction", "prior", ""), "no basis or date"),
        (("x", "matmul", 1.2, 0.7, 1, "fraction", "prior", "2026-01-01"), "outside its bounds"),
        (("x", "matmul", "nan", 0.7, 1, "fraction", "prior", "2026-01-01"), "outside its bounds"),
        (("x", "matmul", "", 0.7, 1, "fraction", "prior", "2026-01-01"), "outside its bounds"),
        (("x", "matmul", "high", 0.7, 1, "fraction", "prior", "2026-01-01"), "could not convert"),
        (("x", "matmul", 0.9, 0.7, 1, "furlong", "prior", "2026-01-01"), "unit 'furlong'"),
        (("x", "speed", 0.9, 0.7, 1, "fraction", "prior", "2026-01-01"), "unknown quantities"),
        (("generic", "matmul", 0.9, 0.7, 1, "fraction", "prior", "2026-01-01"), "given twice"),
    ],
)
def test_a_row_that_cannot_be_trusted_stops_the_load(tmp_path, row, says):
    with pytest.raises(FactError, match=says):
        table.load_efficiencies(with_rows(tmp_path, line(*row)))


def test_a_quantity_that_generic_lacks_is_no_default(tmp_path):
    with pytest.raises(FactError, match=r"lacks .*'straggler'"):
        table.load_efficiencies(with_rows(tmp_path, without="generic,straggler"))
    (tmp_path / "empty.csv").write_text(HEADER)
    with pytest.raises(FactError, match=r"lacks .*'matmul'"):
        table.load_efficiencies(tmp_path / "empty.csv")


def test_a_short_row_stops_the_load_with_its_line(tmp_path):
    with pytest.raises(FactError):
        table.load_efficiencies(with_rows(tmp_path, "x,matmul,0.9"))


@pytest.mark.parametrize(
    ("written", "stack"),
    [
        ("megatron-lm", "megatron-lm"),
        ("Megatron_LM", "megatron-lm"),
        ("llama-factory/Unsloth+FA2", "unsloth"),  # what trains, not what drives it
        ("ms-swift/megatron", "megatron-lm"),  # a family: its first stack trains
        ("llama-factory/no-such-trainer", "llama-factory"),
        ("torchtitan", "torchtitan"),
        ("  DeepSpeed ", "deepspeed"),
        ("megatron-lm-core-0.9", "megatron-lm"),
        ("a stack that nobody wrote", None),
        ("", None),
    ],
)
def test_the_stack_of_a_framework_as_runs_spell_it(written, stack):
    found = table.stack_of(written)
    assert (found.name if found else None) == stack


def test_every_stack_has_a_profile_and_an_unknown_one_is_never_guessed():
    for name in table.stacks():
        assert isinstance(table.efficiency(name), Efficiency)
    with pytest.raises(ScenarioError, match="Did you mean 'torchtitan'"):
        table.efficiency("torchtitans")


def test_a_stack_has_its_own_values_over_its_family_s_over_the_generic_ones():
    rows = {(e.stack, e.quantity): e.value for e in table.read_entries()}
    for stack in table.stacks().values():
        found = table.efficiency(stack.name)
        levels = (stack.name, stack.family, table.GENERIC)
        for name in NAMES:
            own = next(rows[level, name] for level in levels if (level, name) in rows)
            assert getattr(found, name) == own, (stack.name, name)


def test_a_table_of_ones_own_takes_the_place_of_the_shipped(tmp_path):
    rows = (
        line("megatron", "host_link", 0.6, 0.5, 1, "fraction", "prior", "2026-01-01"),
        line("nemo", "host_link", 0.7, 0.5, 1, "fraction", "prior", "2026-01-01"),
    )
    profiles = table.load_efficiencies(with_rows(tmp_path, *rows))
    assert table.stacks()["nemo"].family == table.stacks()["megatron-lm"].family == "megatron"
    assert table.efficiency("nemo", profiles).host_link == 0.7
    assert table.efficiency("megatron-lm", profiles).host_link == 0.6
    assert table.efficiency("deepspeed", profiles).host_link not in (0.6, 0.7)
    # What the single stack does not say is its family's.
    assert table.efficiency("nemo", profiles).matmul == profiles["megatron"].matmul


def test_writing_the_table_back_keeps_it(tmp_path):
    """Numbers to four digits, texts and their order as they were."""
    path = tmp_path / "efficiency.csv"
    before = table.read_entries()
    table.write_entries(before, path)
    after = table.read_entries(path)
    assert len(after) == len(before) > 80
    for old, new in zip(before, after, strict=True):
        for f in fields(table.Entry):
            a, b = getattr(old, f.name), getattr(new, f.name)
            if f.name in table.NUMBERS and a is not None:
                assert b == pytest.approx(a, rel=5e-4), (old.stack, old.quantity, f.name)
            else:
                assert a == b, (old.stack, old.quantity, f.name)
    table.write_entries(after, tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == path.read_bytes()


def test_writing_keeps_the_units_of_the_table(tmp_path):
    path = tmp_path / "efficiency.csv"
    table.write_entries(table.read_entries(), path)
    reserve = next(
        r for r in csv.DictReader(path.read_text().splitlines())
        if (r["stack"], r["quantity"]) == ("generic", "reserve_bytes")
    )  # fmt: skip
    assert reserve["unit"] == "GiB"
    assert 0.1 < float(reserve["value"]) < 10


def test_a_parameter_has_a_prior_inside_its_bounds_and_an_interval_around_its_value():
    """A family's blank prior is "as generic"; widths have none: they are fitted by a score."""
    of_generic = {e.quantity for e in table.read_entries() if e.stack == table.GENERIC}
    for e in table.read_entries():
        intervals = ("throughput intervals", "throughput skew", "memory intervals")
        assert e.fits in ("throughput", "memory", *intervals, "")
        assert (e.prior_sigma > 0) == (e.fits in ("throughput", "memory")), (e.stack, e.quantity)
        assert e.quantity in of_generic
        if e.prior is None:
            assert e.prior_sigma == 0 or e.stack != table.GENERIC
        else:
            assert e.low <= e.prior <= e.high, (e.stack, e.quantity)
        if e.p10 is not None:
            assert e.low <= e.p10 <= e.value <= e.p90 <= e.high, (e.stack, e.quantity)
            assert e.basis.startswith("fitted")


@pytest.mark.parametrize("change", [{"matmul": None}, {"speed": 1.0}])
def test_values_must_be_exactly_the_named_ones(change):
    values = dict.fromkeys(NAMES, 0.5)
    values.update(change)
    given = {k: v for k, v in values.items() if v is not None}
    with pytest.raises(FactError, match=next(iter(change))):
        from_values(given)


def test_a_column_holds_each_profile():
    profiles = list(table.load_efficiencies().values())
    columns = as_columns(profiles)
    for i, profile in enumerate(profiles):
        assert all(getattr(columns, n)[i] == getattr(profile, n) for n in NAMES)
