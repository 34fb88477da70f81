"""A crowd in small: a dozen websocket sessions and a real browser on two processes behind nginx.

`python -m tests.support.load` is the same with fifty, on one, two and four processes: `make soak`
runs it. It prints how long answers take, so nothing else runs meanwhile.
"""

from __future__ import annotations

import os

import pytest

from tests.servers import nginx
from tests.support import event_loop
from tests.support.load import HEAD, link_of, measured, tokens_of, where, wrong
from tests.support.page_client import Seen

pytestmark = pytest.mark.services

SESSIONS, EDITS = 12, 2
STUCK_S = 30.0  # more than any other work beside it explains


@pytest.mark.serial
def test_a_dozen_sessions_get_their_own_answers_and_nobody_elses(tmp_path, chromium, capsys):
    if nginx.program() is None:
        missing = "nginx is not installed: apt-get install nginx-light"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)
    load = event_loop.run(measured(tmp_path, 2, SESSIONS, EDITS, think_s=0.5, alone=4))
    with capsys.disabled():
        print(f"\n{where()}\n{HEAD}\n{load.line()}")
    assert load.errors == []
    assert load.foreign == []
    assert len(load.opens_s) == SESSIONS
    assert len(load.edits_s) == SESSIONS * EDITS
    assert load.browser_ms
    assert max(load.edits_s) <= STUCK_S


def test_an_answer_of_somebody_else_would_be_seen():
    mine, other = tokens_of(1, 1), tokens_of(2, 1)
    steps, link = "24,083 steps, 3.1k GPU-hours", link_of(mine).encode()
    assert wrong(Seen(texts=[steps], raw=[link]), mine) == []
    assert wrong(Seen(texts=[steps], raw=[link, link_of(other).encode()]), mine) == [
        f"{other} tokens beside {mine}"
    ]
    (said,) = wrong(Seen(texts=["24,084 steps"], raw=[link]), mine)
    assert said.startswith("no plan of 24,083 steps")
