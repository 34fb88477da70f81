"""Saved scenarios in the store, on SQLite and on PostgreSQL: names, ids, upgrades, limits."""

import re
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from core.errors import ScenarioError
from pricing.store import saved
from pricing.store import upgrade as upgrading
from pricing.store.models import Base, ScenarioRow, table_of
from pricing.store.opening import open_store
from pricing.store.saved import (
    forget_scenario,
    rename_scenario,
    restore_scenario,
    save_scenario,
    saved_scenarios,
    scenario_of_id,
)
from tests.support.recorded import NOW

LATER = NOW + timedelta(hours=1)
ID = re.compile(r"[a-z2-7]{16}")
QUERY = "?v=1&model=llama3.1-70b"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.services)])
def store(request, tmp_path, store_environ):
    opened = open_store(folder=tmp_path, environ=store_environ(request.param))
    yield opened
    opened.close()


def names(store, owner="ada"):
    return [s.name for s in saved_scenarios(store, owner=owner)]


def test_an_id_opens_a_scenario_and_stays_when_it_is_changed_or_renamed(store):
    first = save_scenario(store, owner="ada", name="70b", query=QUERY, now=NOW)
    assert ID.fullmatch(first.id)
    assert scenario_of_id(store, first.id) == first
    again = save_scenario(store, owner="ada", name="70b", query="?v=1&model=x", now=LATER)
    assert (again.id, again.created_at, again.updated_at) == (first.id, NOW, LATER)
    renamed = rename_scenario(store, owner="ada", name="70b", to="big", now=LATER)
    assert scenario_of_id(store, first.id) == renamed == replace(again, name="big")
    assert names(store) == ["big"]
    other = save_scenario(store, owner="ada", name="70b", query=QUERY)
    assert other.id != first.id
    assert scenario_of_id(store, "a" * 16) is None


def test_nobody_renames_restores_or_deletes_over_a_name_or_an_owner(store):
    a = save_scenario(store, owner="ada", name="a", query=QUERY)
    save_scenario(store, owner="ada", name="b", query=QUERY)
    save_scenario(store, owner="bob", name="a", query="?v=1&model=bobs")
    with pytest.raises(ScenarioError, match="already a saved scenario 'b'"):
        rename_scenario(store, owner="ada", name="a", to="b")
    with pytest.raises(ScenarioError, match="no saved scenario 'c'"):
        rename_scenario(store, owner="ada", name="c", to="d")
    with pytest.raises(ScenarioError, match="no saved scenario 'b'"):
        rename_scenario(store, owner="bob", name="b", to="c")
    assert not forget_scenario(store, owner="bob", name="b")
    with pytest.raises(ScenarioError, match="already a saved scenario 'a'"):
        restore_scenario(store, a)
    with pytest.raises(ScenarioError, match="already a saved scenario 'a'"):
        save_scenario(store, owner="ada", name="a", query="?v=1", replace=False)
    assert sorted(names(store)) == ["a", "b"]
    assert [s.query for s in saved_scenarios(store, owner="bob")] == ["?v=1&model=bobs"]


def test_what_was_deleted_comes_back_under_its_id(store):
    kept = save_scenario(store, owner="ada", name="a", query=QUERY, now=NOW)
    assert forget_scenario(store, owner="ada", name="a")
    assert scenario_of_id(store, kept.id) is None
    restore_scenario(store, kept)
    assert scenario_of_id(store, kept.id) == kept


@pytest.mark.parametrize(
    "name",
    ["x" * 200, "Größe 70B", "حافظه‌ی بزرگ", "👩‍🚀 run 🏳️‍🌈", "=1+1", "<b>*x*</b>", "' OR 1=1 --"],
)
def test_a_name_is_kept_letter_by_letter(store, name):
    save_scenario(store, owner="ada", name=name, query=QUERY)
    assert names(store) == [name]
    assert forget_scenario(store, owner="ada", name=name)


@pytest.mark.parametrize("name", ["", " ", "a\nb", "a\x00b", "a\x1b[31mb", "a\u202eb", "x" * 201])
def test_a_name_that_cannot_be_shown_is_refused_everywhere(store, name):
    save_scenario(store, owner="ada", name="a", query=QUERY)
    with pytest.raises(ScenarioError, match="1 to 200 printable characters"):
        save_scenario(store, owner="ada", name=name, query=QUERY)
    with pytest.raises(ScenarioError, match="1 to 200 printable characters"):
        rename_scenario(store, owner="ada", name="a", to=name)
    assert names(store) == ["a"]


def test_the_last_place_is_given_once_and_replacing_needs_none(store, monkeypatch):
    monkeypatch.setattr(saved, "SCENARIOS_MAX", 2)
    kept = save_scenario(store, owner="ada", name="a", query=QUERY)
    save_scenario(store, owner="ada", name="b", query=QUERY)
    save_scenario(store, owner="ada", name="b", query="?v=1&model=x")
    with pytest.raises(ScenarioError, match="There are 2 saved scenarios: delete one first"):
        save_scenario(store, owner="ada", name="c", query=QUERY)
    save_scenario(store, owner="bob", name="c", query=QUERY)
    forget_scenario(store, owner="ada", name="a")
    save_scenario(store, owner="ada", name="c", query=QUERY)
    with pytest.raises(ScenarioError, match="There are 2 saved scenarios"):
        restore_scenario(store, kept)


def test_saves_at_once_are_each_kept_whole_and_within_the_limit(store, monkeypatch):
    """Eight writers: one name that all of them want, and one each with room for five in all."""
    monkeypatch.setattr(saved, "SCENARIOS_MAX", 5)
    said, ready = [], threading.Barrier(8)

    def writes(n):
        ready.wait()
        for name in ("all", f"own {n}"):
            try:
                save_scenario(store, owner="ada", name=name, query=f"?v=1&num_tokens={n}")
            except ScenarioError as e:
                said.append(str(e))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(writes, range(8)))
    found = saved_scenarios(store, owner="ada")
    assert len(found) == len({s.id for s in found}) == 5
    assert [s.name for s in found].count("all") == 1
    assert said == ["There are 5 saved scenarios: delete one first."] * 4


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.services)])
def old_store(request, tmp_path, store_environ, monkeypatch):
    """A store whose tables the first version made, with what that version saved."""
    first = tmp_path / "first"
    first.mkdir()
    shutil.copy(upgrading.MIGRATIONS / "v0001_store.py", first)
    with monkeypatch.context() as patch:
        patch.setattr(upgrading, "MIGRATIONS", first)
        opened = open_store(folder=tmp_path, environ=store_environ(request.param))
    columns = [c for c in table_of(ScenarioRow).c if c.name != "id"]
    rows = [(owner, name, QUERY, "abc", NOW, NOW) for owner, name in OLD]
    with opened.writing() as connection:
        connection.execute(
            sa.table("saved_scenarios", *(sa.column(c.name, c.type) for c in columns)).insert(),
            [dict(zip((c.name for c in columns), row, strict=True)) for row in rows],
        )
    yield opened
    opened.close()


OLD = [("ada", "a"), ("ada", "b"), ("bob", "a")]


def test_an_old_store_is_brought_forward_and_its_scenarios_get_ids(old_store):
    upgrading.upgrade(old_store)
    upgrading.upgrade(old_store)
    found = [s for owner in ("ada", "bob") for s in saved_scenarios(old_store, owner=owner)]
    assert [(s.owner, s.name) for s in found] == OLD
    assert {(s.query, s.snapshot_id, s.created_at, s.updated_at) for s in found} == {
        (QUERY, "abc", NOW, NOW)
    }
    assert len({s.id for s in found if ID.fullmatch(s.id)}) == 3
    assert scenario_of_id(old_store, found[1].id) == found[1]
    with old_store.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
