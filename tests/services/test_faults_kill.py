"""`kill -9` at random points: what was acknowledged is there, nothing is half there, and the same
command goes on. tests/services/test_refresh_end_to_end.py kills refreshes.

RUNCAST_KILLS=200 is the long one; every figure is printed with `-s`.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sqlite3
import sys
import time
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import count
from statistics import median
from urllib.parse import parse_qsl, urlencode

import pytest
from websockets.exceptions import ConnectionClosed

from app.calibration import added
from app.forecast import calibrations
from app.saved import saved
from pricing.book.files import book_names, load_book
from runners.calibration.result import parse_result
from runners.run_state import known_runs, read_state
from tests.app.sweep.test_sweep_run import computed as cells
from tests.support import event_loop
from tests.support.acknowledged import (
    BOOKED,
    OWNER,
    STEPS_PER_USD,
    calibration_of,
    price_of,
    tokens_of,
)
from tests.support.browsing import FEW, Server
from tests.support.forks import forks, until_printed
from tests.support.launched import alive, gone
from tests.support.page_client import crossed, session
from tests.support.processes import children
from tests.support.processes import gone as workers_gone

pytestmark = [pytest.mark.services, pytest.mark.slow]

KILLS = int(os.environ.get("RUNCAST_KILLS", "10"))
SERVER_KILLS = int(os.environ.get("RUNCAST_KILLS", "5"))  # after each a server starts: 3 s


@pytest.fixture(scope="module")
def boss():
    with forks() as found:
        yield found


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A data folder, for the processes that are killed and for who looks afterwards."""
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path / "data"))
    return {"RUNCAST_DATA_DIR": str(tmp_path / "data")}


# --- what people keep ----------------------------------------------------------------------------


@pytest.mark.timeout(400 + 4 * KILLS)
def test_what_people_keep_is_there_after_every_kill(boss, data, tmp_path):
    rng, found_s = random.Random(5), []
    kept = {}  # what is acknowledged, by kind and name: its step, None once it is deleted
    acknowledged = in_between = 0
    for kill in range(KILLS):
        child = boss.start("tests.support.acknowledged", kill * 1000, environ=data)
        until_printed(child, 2 * rng.randrange(1, 8))
        time.sleep(rng.uniform(0.0, 0.06))
        child.kill()
        assert child.status == -signal.SIGKILL, child.err
        begun = None
        for line in child.out.splitlines(keepends=True):
            if line == "done\n":
                kept[begun["kind"], begun["name"]] = begun["step"]
                acknowledged, begun = acknowledged + 1, None
            elif line.endswith("\n"):
                assert not line.startswith("refused"), line
                begun = json.loads(line)
        began = time.monotonic()
        here = everything()
        found_s.append(time.monotonic() - began)
        if begun is not None:  # it was kept or it was not: nothing in between
            in_between += 1
            key = begun["kind"], begun["name"]
            assert here.get(key) in (kept.get(key), begun["step"])
            kept[key] = here.get(key)
        assert here == {key: step for key, step in kept.items() if step is not None}
    with closing(sqlite3.connect(tmp_path / "data/prices/store.sqlite")) as store:
        assert store.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    print(
        f"{KILLS} kills, {in_between} of them within a write, {acknowledged} writes acknowledged, "
        f"none lost; everything read again in {median(found_s):.2f} s, most {max(found_s):.2f} s"
    )
    assert in_between > 0


def everything():
    """All that is kept, read whole, by kind and name: the step that wrote it."""
    found = {}
    for one in saved.listed(owner=OWNER):
        scenario, notes = saved.opened(one)
        assert not notes
        found["scenario", one.name] = round(scenario.num_tokens - tokens_of(0))
    for name in book_names():
        rows = load_book(name).rows
        assert len(rows) == len(BOOKED)
        (price,) = {row.usd_per_gpu_hour for row in rows}
        found["book", name] = round((price - price_of(0)) * STEPS_PER_USD)
    listed, sentence = added.listed()
    assert not sentence
    for one in listed:
        assert not one.problem
        found["calibration", one.id] = int(calibrations.load(one.id).run_id[:8], 16)
    return found


# --- a calibration -------------------------------------------------------------------------------


@pytest.mark.timeout(400 + 8 * KILLS)
def test_a_calibration_goes_on_after_every_kill_and_no_half_result_is_taken(boss, data, tmp_path):
    """Odd kills take the command alone, as a closed lid does; even ones all of the run's node."""
    rng = random.Random(6)
    made_up, out = tmp_path / "made-up.json", tmp_path / "result.json"
    made_up.write_bytes(calibration_of(1))
    new = ["--launcher", "local", "--device", "cpu", "--python", sys.executable, "--yes",
           "--budget-s", "30", "--env", f"MADE_UP_RESULT={made_up}", "--out", out]  # fmt: skip
    begun, finished, resumed_s, kills = "", set(), [], 0
    while kills < KILLS:
        going_on = bool(begun)
        arguments = ["--resume", begun] if begun else new
        child = boss.start("tests.made_up.calibrate", *arguments, environ=data)
        killed = not child.ends_within(rng.uniform(0.02, 1.2))
        if killed:
            child.kill()
            kills += 1
        run_id = begun or next((r for r in known_runs() if r not in finished), "")
        if killed and run_id and kills % 2 == 0:
            for pid in alive(run_id):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        if out.exists():  # whole, and of a run that was asked for
            assert parse_result(out.read_bytes()).run_id == run_id
        if not killed and not lost_meanwhile(child, run_id):
            assert read_state(run_id).phase == "collected"
            finished.add(run_id)
            out.unlink()
        begun = "" if run_id in finished else run_id
        assert not (going_on and not run_id)  # what was begun is never forgotten
        if begun and (kills == KILLS or rng.random() < 0.3):
            began = time.monotonic()
            while lost_meanwhile(resumed(boss, begun, data), begun):
                pass
            resumed_s.append(time.monotonic() - began)
            assert parse_result(out.read_bytes()).run_id == begun
            finished.add(begun)
            out.unlink()
            begun = ""
    while begun and lost_meanwhile(resumed(boss, begun, data), begun):
        pass
    if not begun:
        assert boss.run("tests.made_up.calibrate", *new, environ=data).status == 0
    last = parse_result(out.read_bytes()).run_id
    assert last == begun or not begun
    assert {read_state(r).phase for r in known_runs()} == {"collected"}
    assert all(gone(r, 10) for r in known_runs())
    print(
        f"{KILLS} kills of a calibration, {len(finished) + 1} results, each whole; `--resume` took "
        f"{median(resumed_s or [0.0]):.1f} s, most {max(resumed_s, default=0.0):.1f} s "
        "(a run without a kill takes 1 s)"
    )


def resumed(boss, run_id, data):
    return boss.run("tests.made_up.calibrate", "--resume", run_id, environ=data)


def lost_meanwhile(done, run_id):
    """Whether the command found that its run was killed on the node, said how to go on and noted
    it: the next `--resume` starts the run again. A run that was not killed ends well."""
    if done.wait() == 0:
        return False
    assert done.status == 2, done.err
    assert f"`runcast calibrate --resume {run_id}` tries again." in done.err
    assert read_state(run_id).phase == "failed"
    return True


# --- a sweep -------------------------------------------------------------------------------------

SWEEP = """
model: llama3.1-8b
seq_len: 8k
num_gpus: [[8]]
num_tokens: [TOKENS]
gpu: h100
cloud: aws
"""
CELLS = 5 * KILLS  # a kill takes at most four of them


@pytest.mark.timeout(400 + 12 * KILLS)
def test_a_sweep_keeps_its_cells_through_every_kill_and_ends_as_one_that_nobody_killed(
    boss, data, tmp_path
):
    rng, kills, kept = random.Random(8), 0, 0
    file, out = tmp_path / "sweep.yaml", tmp_path / "out"
    file.write_text(SWEEP.replace("TOKENS", ", ".join(f"{n}B" for n in range(1, CELLS + 1))))
    arguments = ["sweep", file, "--workers", "1", "--out"]
    while kills < KILLS:
        before = cells(out)
        child = boss.start("app.cli", *arguments, out, environ=data)
        if rng.random() < 0.7:  # after a few new cells, else at any time before the first one
            wanted = min(len(before) + rng.randrange(1, 4), CELLS - 1)
            while len(cells(out)) < wanted and not child.ends_within(rng.uniform(0.0, 0.02)):
                pass
        else:
            child.ends_within(rng.uniform(0.0, 1.0))
        assert not child.ends_within(0.0), child.err + child.out
        workers = children(child.pid)
        child.kill()
        kills += 1
        after = cells(out)
        assert after[: len(before)] == before
        kept = len(after)
        assert workers_gone(workers, within_s=10)
    began = time.monotonic()
    done = boss.run("app.cli", *arguments, out, environ=data)
    assert done.status == 0, done.err
    whole_s = time.monotonic() - began
    written = cells(out)
    assert len(written) == len(set(written)) == CELLS  # none lost, none twice
    assert boss.run("app.cli", *arguments, tmp_path / "new", environ=data).status == 0
    for name in ("results.parquet", "results.csv", "manifest.json"):
        assert (out / name).read_bytes() == (tmp_path / "new" / name).read_bytes()
    print(
        f"{KILLS} kills of a sweep, {kept} of {len(written)} cells kept through them; the rest was "
        f"computed in {whole_s:.1f} s, and the tables are those of a sweep that nobody killed"
    )


# --- the whole server ----------------------------------------------------------------------------


@pytest.mark.timeout(400 + 30 * SERVER_KILLS)
def test_a_killed_server_answers_again_and_has_what_it_acknowledged(tmp_path, monkeypatch):
    """A websocket session edits and saves; the kill comes in the middle of any of that."""
    folder = tmp_path / "data"
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(folder))
    server = Server(tmp_path / "log", env={"RUNCAST_DATA_DIR": str(folder)})
    rng, told, answers_s = random.Random(9), Told(), []
    server.start()
    try:
        for kill in range(SERVER_KILLS):
            event_loop.run(_edits_and_saves(server, kill, told, rng))
            here = {s.name for s in saved.listed(owner=OWNER)}
            assert told.saved <= here <= told.saved | told.asked
            began = time.monotonic()
            server.start()
            event_loop.run(_answers(server, told, rng))
            answers_s.append(time.monotonic() - began)
    finally:
        server.stop()
    assert server.complaints() == []
    assert told.saved
    print(
        f"{SERVER_KILLS} kills of the server, {told.edits} edits answered, {len(told.saved)} "
        f"scenarios acknowledged, none lost; from its start to a whole page "
        f"{median(answers_s):.1f} s, most {max(answers_s):.1f} s"
    )


@dataclass
class Told:
    """What the page said to the session."""

    edits: int = 0
    link: str = FEW
    asked: set[str] = field(default_factory=set)  # to be saved
    saved: set[str] = field(default_factory=set)  # and was, as the page said


async def _edits_and_saves(server, kill, told, rng):
    """Edit and save until the server is killed: at any moment of one of the first rounds."""
    last, after_s = rng.randrange(1, 5), rng.uniform(0.0, 0.6)
    async with session(server.url) as one:
        await one.open(told.link)
        told.link = one.query
        await one.edit(saved_section=True)
        loop = asyncio.get_running_loop()
        try:
            for n in count(1):
                if n == last:
                    loop.call_later(after_s, lambda: server.stop(kill=True))
                tokens = str(10**11 + kill * 10**9 + n * 10**7)
                seen = await one.edit(form_num_tokens=tokens)
                assert not crossed(seen, tokens)
                told.edits, told.link = told.edits + 1, one.query
                name = f"saved-{kill}-{n}"
                told.asked.add(name)
                seen = await one.click("saved_save", saved_name=name)
                if any(name in alert for alert in seen.alerts):
                    told.saved.add(name)
        except ConnectionClosed:
            assert server.process is None  # it is the kill that ended it


async def _answers(server, told, rng):
    """The page is there again from its last link, and so is a short link."""
    async with session(server.url) as one:
        seen = await one.open(told.link)
        assert one.query == told.link
        assert " expected (P10-P90 " in seen.text
        assert not seen.alerts
    if told.saved:
        which = saved.named(rng.choice(sorted(told.saved)), owner=OWNER)
        async with session(server.url) as one:
            await one.open(f"s={which.id}")
            assert one.query == urlencode(dict(parse_qsl(which.query)))
