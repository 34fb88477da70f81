"""`runcast scenarios`: what is saved on the command line, and what the page makes of it."""

import re
from pathlib import Path

import orjson
import pytest

from app.saved import saved
from pricing.store.opening import open_store
from pricing.store.saved import saved_scenarios
from tests.support.documented_keys import keys

DOCUMENT = Path(__file__).parents[3] / "docs/saved-scenarios.md"
RUN = ("--model", "llama3.1-70b", "--tokens", "2T", "--seq-len", "8k",
       "--global-batch-size", "1024")  # fmt: skip


@pytest.fixture(autouse=True)
def _own_store(monkeypatch, tmp_path):
    monkeypatch.setenv("RUNCAST_DATABASE_URL", f"sqlite:///{tmp_path}/store.sqlite")


def said(run, *arguments):
    status, out, err = run("scenarios", *arguments)
    assert (status, err) == (0, "")
    return out


def refused(run, *arguments):
    status, out, err = run("scenarios", *arguments)
    assert (status, out, err.count("\n")) == (2, "", 1)
    return err


def test_a_scenario_is_saved_listed_shown_renamed_and_deleted(run):
    assert "Nothing is saved" in said(run, "list")
    assert said(run, "save", "70B", *RUN) == "Saved as '70B'.\n"
    said(run, "save", "8B", "--link", "?v=1&model=llama3.1-8b")
    assert said(run, "list").startswith("8B: llama3.1-8b, 100B tokens, prices ")
    assert said(run, "list", "--search", "70b LLAMA").count("\n") == 1
    assert "None of 2 has that" in said(run, "list", "--search", "nothing")
    shown = said(run, "show", "70B").splitlines()
    status, planned, _ = run("plan", "--link", shown[2], "--gpu", "h100", "--num-gpus", "64",
                             "--cloud", "aws", "--json")  # fmt: skip
    assert (status, orjson.loads(planned)["scenario"]["num_tokens"]) == (0, 2e12)
    assert re.fullmatch(r"\?s=[a-z2-7]{16}", shown[3])
    assert said(run, "rename", "70B", "Seventy") == "Saved as 'Seventy'.\n"
    assert "Deleted 'Seventy'" in said(run, "delete", "Seventy")
    assert [s.name for s in saved.listed(owner="local")] == ["8B"]


def test_owners_are_kept_apart(run):
    said(run, "save", "a", *RUN, "--owner", "proxy:ada@example.org")
    assert "Nothing is saved" in said(run, "list")
    assert "no saved scenario 'a'" in refused(run, "delete", "a")
    assert said(run, "list", "--owner", "proxy:ada@example.org").startswith("a: ")
    assert len(saved_scenarios(open_store(), owner="proxy:ada@example.org")) == 1


def test_mistakes_are_sentences(run):
    said(run, "save", "Größe", *RUN)
    assert "replace it, or take another name" in refused(run, "save", "Größe", *RUN)
    assert "replace it" in refused(run, "save", "Gro\u0308ße", *RUN)  # the same, composed otherwise
    said(run, "save", "Größe", *RUN, "--replace")
    assert "Did you mean 'Größe'?" in refused(run, "show", "Grösse")
    assert "1 to 200 printable characters" in refused(run, "save", "a\x1b[31m", *RUN)
    assert "1 to 200 printable characters" in refused(run, "rename", "Größe", " ")
    assert "The owner of a scenario" in refused(run, "save", "a", *RUN, "--owner", "a\nb")
    assert "Missing --model" in refused(run, "save", "b")
    assert "Unknown" in refused(run, "save", "b", *RUN, "--gpu", "h1000")
    assert "no saved scenario" in refused(run, "rename", "zzz", "b")


def test_every_key_is_documented_and_every_documented_key_is_there(run):
    table = re.findall(r"^\| `(\w+)` \|", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    one = orjson.loads(said(run, "save", "a", *RUN, "--json"))
    assert list(one) == table
    assert orjson.loads(said(run, "show", "a", "--json")) == one
    listed = orjson.loads(said(run, "list", "--json"))
    assert listed == {"owner": "local", "scenarios": [one]}
    assert set(keys(listed)) - set(table) == {"scenarios"}
    assert orjson.loads(said(run, "rename", "a", "b", "--json"))["id"] == one["id"]
    assert orjson.loads(said(run, "delete", "b", "--json"))["name"] == "b"
    assert said(run, "list", "--json").count("scenarios") == 1


def test_names_reach_the_terminal_as_they_are(run):
    for name in ("[red]x[/red]", "=1+1", ":cat: `x`"):
        said(run, "save", name, *RUN)
        assert said(run, "show", name).startswith(f"{name}: ")
