"""The fractions that software reaches: the shipped table, and tables that cannot be trusted."""

import csv
from dataclasses import fields

import numpy as np
import pytest

from core.efficiency import NAMES, Efficiency, as_columns, from_values
from core.errors import FactError, ScenarioError
from core.scenario import GradientDtype, Recompute, Sharding
from core.units import GIB
from hardware import efficiency as table

HEADER = "stack,quantity,value,low,high,unit,basis,date,note\n"
STACKS = list(csv.DictReader(table.STACKS_CSV.read_text().splitlines()))
SHIPPED = table.EFFICIENCY_CSV.read_text().splitlines(keepends=True)


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


def test_stacks_that_are_modelled_alike_say_so():
    """Of those with the same habits one stands for itself, the others name it."""
    habits = ("family", "dp_sharding", "shardings", "recompute", "gradient_dtype")
    alike = {}
    for row in STACKS:
        alike.setdefault(tuple(row[h] for h in habits), []).append(row)
    for rows in alike.values():
        first, *others = rows
        for row in others:
            assert row["note"].startswith(f"the same as {first['stack']} here"), row["stack"]


def test_every_shipped_row_says_what_it_rests_on():
    with table.EFFICIENCY_CSV.open(newline="") as file:
        for row in csv.DictReader(file):
            assert row["basis"], row
            assert row["date"], row
            assert float(row["low"]) <= float(row["value"]) <= float(row["high"]), row


def test_a_family_differs_from_generic_only_where_it_says_so(tmp_path):
    path = with_rows(tmp_path, "test,matmul,0.81,0.7,1,fraction,prior,2026-11-21,")
    profiles = table.load_efficiencies(path)
    own, generic = profiles["test"], profiles[table.GENERIC]
    differing = [f.name for f in fields(Efficiency) if getattr(own, f.name) != getattr(
        generic, f.name)]  # fmt: skip
    assert differing == ["matmul"]
    assert own.matmul == 0.81


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("x,matmul,0.9,0.7,1,fraction,,2026-01-01,", "no basis or date"),
        ("x,matmul,0.9,0.7,1,fraction,prior,,", "no basis or date"),
        ("x,matmul,1.2,0.7,1,fraction,prior,2026-01-01,", "outside its bounds"),
        ("x,matmul,nan,0.7,1,fraction,prior,2026-01-01,", "outside its bounds"),
        ("x,matmul,high,0.7,1,fraction,prior,2026-01-01,", "could not convert"),
        ("x,matmul,0.9,0.7,1,furlong,prior,2026-01-01,", "unit 'furlong'"),
        ("x,speed,0.9,0.7,1,fraction,prior,2026-01-01,", "unknown quantities"),
        ("generic,matmul,0.9,0.7,1,fraction,prior,2026-01-01,", "given twice"),
    ],
)
def test_a_row_that_cannot_be_trusted_stops_the_load(tmp_path, line, says):
    with pytest.raises(FactError, match=says):
        table.load_efficiencies(with_rows(tmp_path, line))


def test_a_quantity_that_generic_lacks_is_no_default(tmp_path):
    with pytest.raises(FactError, match=r"lacks .*'straggler'"):
        table.load_efficiencies(with_rows(tmp_path, without="generic,straggler"))
    (tmp_path / "empty.csv").write_text(HEADER)
    with pytest.raises(FactError, match="lacks the stack 'generic'"):
        table.load_efficiencies(tmp_path / "empty.csv")


def test_a_short_row_stops_the_load_with_its_line(tmp_path):
    with pytest.raises(FactError):
        table.load_efficiencies(with_rows(tmp_path, "x,matmul,0.9"))


@pytest.mark.parametrize(
    ("written", "stack"),
    [
        ("megatron-lm", "megatron-lm"),
        ("Megatron_LM", "megatron-lm"),
        ("llama-factory/Unsloth+FA2", "llama-factory"),
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


def test_a_family_without_rows_of_its_own_is_generic():
    profiles = table.load_efficiencies()
    for stack in table.stacks().values():
        expected = profiles.get(stack.family, profiles[table.GENERIC])
        assert table.efficiency(stack.name) == expected


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
