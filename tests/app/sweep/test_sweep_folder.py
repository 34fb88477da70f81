"""The folder of a sweep: finished cells outlive a kill, and no other sweep gets in."""

from __future__ import annotations

import pytest

from app.sweep.folder import SCHEMA, opened, write_whole
from core.errors import ScenarioError

MANIFEST = {
    "schema": SCHEMA,
    "sweep": "a",
    "tables": "b",
    "code": "c",
    "prices": "d",
    "price_books": {"acme": "e"},
    "num_cells": 10,
}
ROWS = {n: {"best_usd": n / 3, "no_plan": None, "best_id": f"é{n}"} for n in range(10)}


def append(path, *numbers):
    with opened(path, MANIFEST) as folder:
        folder.append((n, ROWS[n]) for n in numbers)


def finished(path):
    with opened(path, MANIFEST) as folder:
        numbers = sorted(folder.finished)
        return dict(zip(numbers, folder.rows(numbers), strict=True)), folder.num_torn


def test_what_is_appended_is_read_back_equal(tmp_path):
    append(tmp_path / "out", 3, 1)
    append(tmp_path / "out", 2)
    assert finished(tmp_path / "out") == ({n: ROWS[n] for n in (1, 2, 3)}, 0)


def test_every_run_appends_to_a_new_file_and_leaves_the_old_as_it_is(tmp_path):
    append(tmp_path, 3, 1)
    before = (tmp_path / "cells-0001.jsonl").read_bytes()
    append(tmp_path, 2)
    finished(tmp_path)
    assert (tmp_path / "cells-0001.jsonl").read_bytes() == before
    assert sorted(p.name for p in tmp_path.glob("cells-*")) == [
        "cells-0001.jsonl", "cells-0002.jsonl",
    ]  # fmt: skip


def test_rows_can_be_read_in_the_run_that_wrote_them(tmp_path):
    with opened(tmp_path, MANIFEST) as folder:
        folder.append([(4, ROWS[4])])
        folder.append([(0, ROWS[0]), (9, ROWS[9])])
        assert list(folder.rows([0, 4, 9])) == [ROWS[0], ROWS[4], ROWS[9]]


def test_a_line_cut_at_any_byte_costs_that_cell_only(tmp_path):
    append(tmp_path, 3, 1)
    part = tmp_path / "cells-0001.jsonl"
    whole = part.read_bytes()
    first = whole.index(b"\n") + 1
    for cut in range(first + 1, len(whole)):
        part.write_bytes(whole[:cut])
        assert finished(tmp_path) == ({3: ROWS[3]}, 1)


@pytest.mark.parametrize(
    "line",
    [b"\0\0\0\n", b"[]\n", b'{"cell": 99, "row": {}}\n', b'{"cell": true, "row": {}}\n',
     b'{"cell": 1}\n', b'{"cell": "1", "row": {}}\n', b"\n"],
)  # fmt: skip
def test_a_line_that_is_no_cell_is_left_out(tmp_path, line):
    append(tmp_path, 3)
    with (tmp_path / "cells-0001.jsonl").open("ab") as part:
        part.write(line)
    append(tmp_path, 5)
    assert finished(tmp_path) == ({3: ROWS[3], 5: ROWS[5]}, 1)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"sweep": "x", "num_cells": 7}, "holds another sweep, of 10 cells"),
        ({"tables": "x"}, "was begun with other tables"),
        ({"code": "x"}, "was begun with another version of Runcast or numpy"),
        ({"price_books": {"acme": "f"}}, "was begun with other rows of its price book"),
        ({"price_books": {}}, "was begun with other rows of its price book"),
    ],
)
def test_another_sweep_is_refused_and_nothing_is_touched(tmp_path, changed, said):
    append(tmp_path, 3)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    with pytest.raises(ScenarioError, match=said), opened(tmp_path, {**MANIFEST, **changed}):
        pass
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_the_prices_of_the_first_run_stay_in_use(tmp_path):
    append(tmp_path, 3)
    before = (tmp_path / "manifest.json").read_bytes()
    with opened(tmp_path, {**MANIFEST, "prices": "x"}) as folder:
        assert folder.prices == "d"
    assert (tmp_path / "manifest.json").read_bytes() == before


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("...")
    with pytest.raises(ScenarioError, match="holds other files"), opened(tmp_path, MANIFEST):
        pass
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(ScenarioError, match="is not of a sweep"), opened(tmp_path, MANIFEST):
        pass


def test_a_kill_before_the_manifest_can_be_resumed(tmp_path):
    (tmp_path / "lock").touch()
    (tmp_path / "manifest.json.new").write_text("{")
    append(tmp_path, 3)
    assert finished(tmp_path) == ({3: ROWS[3]}, 0)


def test_a_sweep_that_stopped_before_its_first_cell_binds_nobody(tmp_path):
    with opened(tmp_path, {**MANIFEST, "sweep": "x", "code": "x", "num_cells": 7}) as folder:
        assert not folder.finished
    append(tmp_path, 9)
    assert finished(tmp_path) == ({9: ROWS[9]}, 0)


def test_two_sweeps_never_write_to_one_folder(tmp_path):
    with (
        opened(tmp_path, MANIFEST),
        pytest.raises(ScenarioError, match="Another sweep is writing"),
        opened(tmp_path, MANIFEST),
    ):
        pass
    append(tmp_path, 3)  # and the folder is free again
    assert finished(tmp_path)[0] == {3: ROWS[3]}


def test_a_file_is_there_whole(tmp_path):
    write_whole(tmp_path / "a", b"1")
    write_whole(tmp_path / "a", b"22")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("a", b"22")]
