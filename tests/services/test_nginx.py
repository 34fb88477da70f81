"""Two real processes behind a real nginx: who stays where, who goes on, and how fast it is."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from statistics import median, quantiles
from threading import Barrier
from urllib.parse import urlencode

import pytest
from websockets.exceptions import InvalidStatus

from tests.servers import nginx
from tests.support.browsing import FEW, connections, reconnect, served

pytestmark = pytest.mark.services

NAME = "runcast.example.org"  # as deploy/nginx/processes.conf calls it
OPTIONS = (
    f"--server.allowedHosts={NAME}",
    "--server.allowedHosts=127.0.0.1",
    f"--server.corsAllowedOrigins=https://{NAME}",
)
SECRET = "of-the-tests-0123456789abcdef"
USERS, EDITS, THINKS_S = 10, 5, 1.5
P95_S = 2.0  # on an idle machine: what is measured is printed
STUCK_S = 15.0  # more than any other work beside it explains


@pytest.fixture(scope="module")
def behind(tmp_path_factory):
    """nginx, and two processes behind it that are started as docs/deploy.md says."""
    if nginx.program() is None:
        missing = "nginx is not installed: apt-get install nginx-light"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)
    folder = tmp_path_factory.mktemp("nginx")
    env = {"STREAMLIT_SERVER_COOKIE_SECRET": SECRET, "RUNCAST_DATA_DIR": str(folder / "data")}
    with ExitStack() as stack:
        servers = {}
        for n in (1, 2):
            server = stack.enter_context(served(folder / f"{n}.log", *OPTIONS, **env))
            servers[server.port] = server
        first, second = servers
        yield stack.enter_context(nginx.started(folder, (first, second))), servers


def test_both_processes_work_and_every_browser_stays_on_one(behind):
    proxy, servers = behind
    cookies = {proxy.cookie() for _ in range(12)}
    assert len(cookies) == 12
    for cookie in cookies:
        for path in ("/", "/_stcore/health", "/_stcore/host-config"):
            status, headers, _ = proxy.get(path, {"Cookie": cookie})
            assert status == 200
            assert "runcast_process" not in headers.get("set-cookie", "")  # who has one keeps it
    seen = proxy.ports_of()
    theirs = {c.partition("=")[2]: set(seen[c.partition("=")[2]]) for c in cookies}
    assert all(len(ports) == 1 for ports in theirs.values()), theirs
    assert set().union(*theirs.values()) == set(servers)


def test_a_foreign_page_and_a_foreign_name_are_refused_through_the_proxy(behind):
    proxy, _ = behind
    assert proxy.get("/", {"Host": NAME})[0] == 200
    cookie = proxy.cookie()
    with nginx.websocket(proxy, cookie, origin=f"https://{NAME}", host=NAME) as line:
        assert nginx.rerun(line, FEW)[1] > 0
    for wrong in ({"origin": "https://evil.example"}, {"host": "evil.example"}):
        with pytest.raises(InvalidStatus, match="403"), nginx.websocket(proxy, cookie, **wrong):
            pass


def test_a_long_link_passes(behind):
    proxy, _ = behind
    assert proxy.get("/?x=" + "a" * 20_000)[0] == 200


def _works(proxy, number, together):
    """One person: opens a link, thinks, edits, thinks. Seconds and bytes of each edit."""
    found = []
    with nginx.websocket(proxy, proxy.cookie()) as line:
        nginx.rerun(line, FEW)
        together.wait(60)
        time.sleep(THINKS_S * number / USERS)  # people do not click in step
        for edit in range(EDITS):
            tokens = {"num_tokens": f"{1e11 + 1e9 * (number * EDITS + edit):g}"}
            found.append(nginx.rerun(line, f"{FEW}&{urlencode(tokens)}"))
            time.sleep(THINKS_S)
    return found


@pytest.mark.serial  # it prints how long they wait
def test_ten_people_who_edit_at_once_all_get_their_answers(behind, capsys):
    proxy, _ = behind
    together = Barrier(USERS)
    with ThreadPoolExecutor(USERS) as pool:
        people = [pool.submit(_works, proxy, n, together) for n in range(USERS)]
        edits = [edit for person in people for edit in person.result(120)]
    seconds = [s for s, _ in edits]
    p95 = quantiles(seconds, n=20)[-1]
    with capsys.disabled():
        print(
            f"\n{USERS} people, two processes, {len(edits)} edits that search: p50 "
            f"{median(seconds):.2f} s, p95 {p95:.2f} s (bar {P95_S} s), largest "
            f"{max(size for _, size in edits) / 1000:.0f} kB"
        )
    assert len(edits) == USERS * EDITS
    assert p95 <= STUCK_S


# The last: afterwards nginx leaves the killed one alone for ten seconds.
@pytest.mark.browser
def test_whose_process_is_killed_goes_on_with_the_other_from_the_link(behind, new_user):
    proxy, servers = behind
    user = new_user()
    user.base_url, runs = proxy.url, connections(user)
    user.open(f"/{FEW}")
    user.type("Training tokens", "2T")
    query, before = user.query(), user.headlines()
    (cookie,) = (c["value"] for c in user.page.context.cookies() if "process" in c["name"])
    (port,) = set(proxy.ports_of()[cookie])
    lost = len(runs)
    servers[port].stop(kill=True)
    try:
        reconnect(user, runs, lost, "Sequence length", "4096")
        assert (user.query(), user.headlines()) == (query, before)
        user.type("Sequence length", "4096")
        assert user.query() == query.replace("num_tokens=2e12", "num_tokens=2e12&seq_len=4096")
        assert user.headlines() != before
        assert {proxy.ports_of()[cookie][-1]} == set(servers) - {port}
    finally:
        servers[port].start()
