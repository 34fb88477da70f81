"""The server dies and comes back: the page goes on with the scenario of its link."""

from __future__ import annotations

import pytest

from tests.support.browsing import FEW, connections, reconnect, served

pytestmark = pytest.mark.browser

LOST = """() => document.querySelector('[data-testid="stApp"]')
  .dataset.testConnectionState !== 'CONNECTED'"""


@pytest.fixture
def server(tmp_path):
    with served(tmp_path / "log", RUNCAST_DATA_DIR=str(tmp_path / "data")) as server:
        yield server


def test_a_page_outlives_its_server(server, new_user):
    user = new_user()
    user.base_url, runs = server.url, connections(user)
    user.open(f"/{FEW}")
    user.type("Training tokens", "2T")
    query, before = user.query(), user.headlines()
    for kill in (True, False):
        lost = len(runs)
        server.stop(kill=kill)
        user.page.wait_for_function(LOST, timeout=30_000)
        server.start()
        reconnect(user, runs, lost, "Sequence length", "4096")
        assert (user.query(), user.headlines()) == (query, before)
        assert (user.value("Training tokens"), user.value("Sequence length")) == ("2T", "8192")
        assert user.notes() == []
    user.type("Sequence length", "4096")
    assert "seq_len=4096" in user.query()
    assert user.headlines() != before
    user.back()
    assert (user.query(), user.headlines()) == (query, before)
