"""Secrets stay where they are. Each one that Runcast can be given is a word that nothing else says,
and is then looked for in everything that leaves: what commands print, the files they write, the
data folder, the page, its log, its errors."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from functools import partial
from shutil import copytree
from urllib.parse import urlencode

import pypdf
import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

from pricing.sources import SOURCES
from tests.conftest import ROOT
from tests.feeds import shapes
from tests.feeds.server import Feed, Reply, serving
from tests.support.browsing import Server
from tests.support.processes import free_port

CANARY = "canary-s3cret-7f3a9"
JOB = ["--model", "llama3.1-8b", "--tokens", "1B", "--seq-len", "8k", "--global-batch-size", "512",
       "--gpu", "h100", "--num-gpus", "64", "--cloud", "aws"]  # fmt: skip
KEYS = sorted({s.key for s in SOURCES if s.key})
# Everything secret that the environment of a server, a refresh or a launcher may hold.
SECRETS = {
    **dict.fromkeys(KEYS, CANARY),
    "VERDA_CLIENT_ID": CANARY,  # asked for only where they are given
    "VERDA_CLIENT_SECRET": CANARY,
    "RUNCAST_PROXY_SECRET": CANARY,
    "STREAMLIT_SERVER_COOKIE_SECRET": CANARY,
    "AWS_SECRET_ACCESS_KEY": CANARY,
    "AWS_SESSION_TOKEN": CANARY,
    "HF_TOKEN": CANARY,
    "WANDB_API_KEY": CANARY,
    "SSH_AUTH_SOCK": f"/run/{CANARY}",
    "PGPASSWORD": CANARY,
}
LOST = f"postgresql+psycopg://runcast:{CANARY}@127.0.0.1:1/runcast?connect_timeout=1"


def texts_of(folder) -> dict[str, bytes]:
    """Every file below a folder; of a PDF, its text as well."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            if path.suffix == ".pdf":
                pages = pypdf.PdfReader(io.BytesIO(content)).pages
                content += "".join(p.extract_text() for p in pages).encode()
            found[path.relative_to(folder).as_posix()] = content
    return found


def tellers(found: dict[str, bytes]) -> list[str]:
    return [name for name, content in found.items() if CANARY.encode() in content + name.encode()]


@pytest.fixture
def secrets(monkeypatch, tmp_path):
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_commands_have_keys_to_keep():
    """The list of keys is that of the sources, so that a new one is looked for, too."""
    assert len(KEYS) >= 2


@pytest.mark.parametrize(
    "command",
    [
        ["plan", *JOB, "--json"],
        ["where", *JOB, "--json"],
        [
            "export",
            *JOB,
            "--sharding",
            "fsdp2",
            "--to",
            "slurm,fsdp2,skypilot",
            "--out",
            "out",
            "--name",
            "tiny",
        ],
        ["report", *JOB, "--to", "md,html", "--out", "report"],
        pytest.param(
            ["report", *JOB, "--to", "pdf", "--out", "report"], marks=pytest.mark.services
        ),
        ["scenarios", "save", "Ours", *JOB],
        ["calibrate", "--launcher", "ssh", "--hosts", "node1,node2", "--gpu", "h100", "--dry-run"],
        ["prices", "history", "--gpu", "h100", "--cloud", "aws"],
    ],
    ids=lambda c: c[0],
)
def test_no_command_prints_or_writes_a_secret(run, secrets, command):
    status, out, err = run(*command)
    assert status == 0, err
    assert CANARY not in out + err
    assert out or (secrets / "out").exists()
    assert tellers(texts_of(secrets)) == []


QUOTING = {
    "a page": f"<h1>Denied</h1> you sent {CANARY}",
    "an error": json.dumps({"error": {"code": CANARY, "message": f"no such key {CANARY}"}}),
    "a list": json.dumps(
        {"data": {CANARY: {"instance_type": {"name": CANARY}}}, "skus": [{"name": CANARY}]}
    ),
}


@pytest.mark.parametrize("quoting", QUOTING)
def test_a_source_that_repeats_the_key_it_was_sent_does_not_make_it_public(run, secrets, quoting):
    """A refusal whose page quotes the request, as debug pages of servers do."""
    replica = shapes.replica()
    body = QUOTING[quoting].encode()
    keyed = [o for s in SOURCES if s.key or s.name == "verda" for o in ("--source", s.name)]
    for status in (403, 200):
        feed = Feed(dict.fromkeys(replica, Reply(body, status=status)))
        feed.answer = partial(repeated, feed, Reply(body, status=status))
        with serving(feed) as base, pytest.MonkeyPatch.context() as patch:
            for name, value in shapes.mirrors(base).items():
                if name not in KEYS:
                    patch.setenv(name, value)
            said = [run("refresh", *keyed, *more) for more in ([], ["--json"])]
        assert sum(CANARY in str(a) for a in feed.asked) >= len(KEYS)
        assert all(len(out + err) > 20 for _, out, err in said)
        assert [out + err for _, out, err in said if CANARY in out + err] == []
    assert tellers(texts_of(secrets)) == []


def repeated(feed, reply, asked):
    """The same answer to everything."""
    feed.asked.append(asked)
    return reply


@pytest.mark.parametrize(
    "command", [["scenarios", "list"], ["refresh", "--source", "oci", "--dry-run"]], ids=str
)
def test_a_database_that_is_not_there_is_told_without_its_password(
    run, secrets, monkeypatch, command
):
    monkeypatch.setenv("RUNCAST_DATABASE_URL", LOST)
    monkeypatch.setenv("RUNCAST_PRICE_URL_OCI", "http://127.0.0.1:1")
    _, out, err = run(*command)
    assert out + err
    assert CANARY not in out + err
    assert tellers(texts_of(secrets)) == []


def test_the_search_finds_a_secret_that_is_there(secrets):
    (secrets / "x").mkdir()
    (secrets / "x/leak.txt").write_text(f"key={CANARY}")
    (secrets / f"x/{CANARY}").write_text("")
    assert len(tellers(texts_of(secrets))) == 2


# --- the page ------------------------------------------------------------------------------------


@contextmanager
def started(tmp_path, **env):
    """The page with every secret in its environment and its settings."""
    settings = tmp_path / "secrets.toml"
    settings.write_text(f'of_somebody_else = "{CANARY}"\n')
    server = Server(
        tmp_path / "log", (f"--secrets.files={settings}",),
        {**SECRETS, "RUNCAST_DATA_DIR": str(tmp_path / "data"), **env}, free_port(),
    )  # fmt: skip
    try:
        server.start()
        yield server
    finally:
        server.stop()


def received(server, path, query=""):
    """All that a browser is sent of a page."""
    with connect(
        f"ws://127.0.0.1:{server.port}/_stcore/stream", origin=server.url,
        subprotocols=["streamlit"], max_size=None, open_timeout=20, proxy=None,
    ) as line:  # fmt: skip
        message = BackMsg()
        message.rerun_script.query_string = query
        message.rerun_script.page_name = path.strip("/")
        line.send(message.SerializeToString())
        sent = b""
        while True:
            said = line.recv(timeout=90)
            sent += said
            if ForwardMsg.FromString(said).WhichOneof("type") == "script_finished":
                return sent


@pytest.mark.services
@pytest.mark.parametrize("database", ["its own", "lost"])
def test_no_page_and_no_log_tells_a_secret(tmp_path, database):
    query = urlencode({"v": 1, "gpu": "H100-80GB-SXM", "cloud": "aws", "num_gpus": 64})
    paths = ["/", "/prices", "/calibration", "/launch"] if database == "its own" else ["/prices"]
    with started(
        tmp_path, **({"RUNCAST_DATABASE_URL": LOST} if database == "lost" else {})
    ) as server:
        seen = {path: received(server, path, query) for path in paths}
        seen["a short link"] = received(server, "/", "s=abcdefghijklmnop")
        seen["a broken link"] = received(server, "/", "num_gpus=%00&model=" + "x" * 500)
    assert all(len(content) > 1000 for content in seen.values())
    assert tellers(seen) == []
    assert CANARY not in server.log.read_text()
    (tmp_path / "secrets.toml").unlink()
    assert tellers(texts_of(tmp_path)) == []


@pytest.mark.services
def test_an_error_page_tells_nothing_of_what_went_wrong(tmp_path):
    """A fault of ours, with the settings of this project: who looks at the page learns that there
    was one, and no message and no line of code."""
    script = tmp_path / "broken.py"
    script.write_text(f"key = '{CANARY}'\nraise RuntimeError('no login with ' + key)\n")
    copytree(ROOT / "app/.streamlit", tmp_path / ".streamlit")  # read from the script's folder
    server = Server(tmp_path / "log", port=free_port())
    server.process = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", str(script), f"--server.port={server.port}",
         "--server.address=127.0.0.1"],
        cwd=ROOT, env={**os.environ}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        sent = first_answer(server)
    finally:
        server.stop()
    assert b"exception" in sent.lower() or b"error" in sent.lower()
    for word in (CANARY, "no login with", "raise RuntimeError", "line 2"):
        assert word.encode() not in sent, word


def first_answer(server):
    """What a page says as soon as its server listens."""
    until = time.monotonic() + 60
    while True:
        try:
            return received(server, "/")
        except OSError:
            assert time.monotonic() < until
            time.sleep(0.2)
