"""`streamlit run app/server.py` as an operator starts it: endpoints, one log, the page itself."""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

from pricing.disk import write_atomically
from tests.support.browsing import ROOT, START_S, is_healthy
from tests.support.processes import free_port

pytestmark = pytest.mark.services
CANARY = "canary-s3cret-value"
QUERY = "gpu=H100-80GB-SXM&cloud=aws&num_gpus=64"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The server with a JSON log: its address, its data folder, its log so far."""
    folder, port = tmp_path_factory.mktemp("server"), free_port()
    log = folder / "log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", "app/server.py",
             f"--server.port={port}", "--server.address=127.0.0.1"],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=out,
            env={
                **os.environ, "PYTHONPATH": str(ROOT), "RUNCAST_LOG": "json",
                "RUNCAST_DATA_DIR": str(folder / "data"), "RUNCAST_PROXY_SECRET": CANARY,
            },
        )  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + START_S
        while time.monotonic() < until and process.poll() is None and not is_healthy(url):
            time.sleep(0.1)
        assert process.poll() is None, log.read_text()
        yield url, folder / "data", log
    finally:
        process.terminate()
        process.wait(20)
    last = json.loads(log.read_text().splitlines()[-1])
    assert last["event"] == "server_stopped"


def asked(url):
    """Status and JSON of an address, whatever it answers."""
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)


def drawn(url):
    """Open the page over a websocket, as a browser behind a proxy does; bytes until it is drawn."""
    address = url.replace("http", "ws") + "/_stcore/stream"
    headers = {"X-Request-ID": "proxy-77a1"}
    with connect(
        address, subprotocols=["streamlit"], origin=url, additional_headers=headers, max_size=None
    ) as line:
        message = BackMsg()
        message.rerun_script.query_string = QUERY
        line.send(message.SerializeToString())
        size = 0
        while True:
            data = line.recv(timeout=90, decode=False)
            size += len(data)
            said = ForwardMsg.FromString(data)
            if said.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY and said.HasField(
                "script_finished"
            ):
                return size


def test_it_is_alive_and_ready_and_says_what_it_found(server):
    url, data, _ = server
    assert asked(f"{url}/healthz") == (200, {"status": "ok"})
    status, said = asked(f"{url}/readyz")
    assert (status, said["status"]) == (200, "ready")
    assert [c["name"] for c in said["checks"]] == ["tables", "prices", "store"]
    assert str(data) not in json.dumps(said)


def test_it_draws_the_page_and_logs_the_rerun_with_the_id_of_the_proxy(server):
    url, _, log = server
    assert drawn(url) > 10_000
    lines = [json.loads(line) for line in log.read_text().splitlines()]  # JSON, all of them
    rerun = next(e for e in lines if e["event"] == "rerun")
    assert (rerun["page"], rerun["outcome"], rerun["connection"]) == ("plan", "done", "proxy-77a1")
    assert rerun["searches"] == 1
    assert lines[0]["event"] == "server_started"
    assert CANARY not in log.read_text()


def test_what_is_missing_is_a_503_that_says_what_and_passes_when_it_is_back(server):
    url, data, log = server
    current = data / "prices/snapshots/current"
    write_atomically(current, b"0123456789ab\n")
    time.sleep(2.1)  # for as long an answer is kept
    status, said = asked(f"{url}/readyz")
    assert (status, said["status"]) == (503, "not ready")
    (failing,) = [c for c in said["checks"] if not c["ok"]]
    assert failing["name"] == "prices"
    assert "0123456789ab" in failing["sentence"]
    assert str(data) not in json.dumps(said)
    assert asked(f"{url}/healthz")[0] == 200
    assert '"event":"not_ready"' in log.read_text()
    current.unlink()
    time.sleep(2.1)
    assert asked(f"{url}/readyz")[0] == 200
