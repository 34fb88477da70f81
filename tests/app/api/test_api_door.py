"""/api/v1 as a program asks it: documents of the command line, one sentence a mistake, bounds."""

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import anyio
import httpx
import pytest
from starlette.applications import Starlette

from app.api import door, rate
from app.api.openapi import description
from app.web import answers
from app.web.searches import Searches
from core.scenario import Scenario

JOB = {"model": "llama3.1-8b", "num_tokens": "1e11", "seq_len": "8k", "global_batch_size": "512",
       "gpu": "h100", "num_gpus": "64", "top": "3"}  # fmt: skip
TYPED = ("--model", "llama3.1-8b", "--tokens", "1e11", "--seq-len", "8k", "--global-batch-size",
         "512", "--gpu", "h100", "--num-gpus", "64", "--json")  # fmt: skip


class Asked:
    """The routes as a program reaches them, without a socket."""

    def __init__(self, has_login=False):
        self._app = Starlette(
            routes=door.routes(has_login=lambda: has_login, search=answers.ask_for_program)
        )

    def get(self, path, **request):
        return self._sent("GET", path, request)

    def post(self, path, **request):
        return self._sent("POST", path, request)

    def _sent(self, *asked):
        """In a thread of its own: a browser of another test may run a loop in this one."""
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(anyio.run, self._send, *asked).result()

    async def _send(self, method, path, request):
        transport = httpx.ASGITransport(app=self._app)
        async with httpx.AsyncClient(transport=transport, base_url="http://runcast") as client:
            return await client.request(method, path, **request)


@pytest.fixture
def ask(monkeypatch):
    monkeypatch.setattr(door, "_rate", rate.Rate())
    return Asked()


@pytest.mark.parametrize(
    ("question", "keys", "typed"),
    [
        ("plan", JOB, ("plan", *TYPED, "--top", "3")),
        ("estimate", {**JOB, "layout": "tp=2"}, ("estimate", *TYPED, "--layout", "tp=2")),
        ("offers", {"gpu": "h100"}, ("offers", "--gpu", "h100", "--json")),
        ("models", {"model": "llama3.1-8b"}, ("models", "--model", "llama3.1-8b", "--json")),
        ("gpus", {}, ("gpus", "--json")),
        (
            "audit",
            {"model": "llama3.1-8b", "gpu": "h100", "num_gpus": "64", "tokens": "1T", "days": "30"},
            ("audit", "--model", "llama3.1-8b", "--gpu", "h100", "--num-gpus", "64", "--tokens",
             "1T", "--days", "30", "--json"),
        ),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)  # fmt: skip
def test_a_question_has_the_document_of_its_command(ask, run, question, keys, typed):
    status, out, _ = run(*typed)
    assert status == 0
    wanted = json.loads(out)
    if question == "estimate":
        wanted["plans"] = wanted["plans"][:3]
    got = ask.get(f"/api/v1/{question}", params=keys)
    posted = ask.post(f"/api/v1/{question}", json=keys)
    assert got.status_code == posted.status_code == 200, got.text
    assert got.json() == posted.json() == wanted


def test_json_values_are_those_of_a_link(ask):
    typed = {**JOB, "num_tokens": 1e11, "num_gpus": [32, 64], "compile": True, "tp": None, "top": 1}
    found = ask.post("/api/v1/plan", json=typed).json()["scenario"]
    assert (found["num_tokens"], found["num_gpus"], found["compile"]) == (1e11, [32, 64], True)


@pytest.mark.parametrize(
    ("question", "keys", "sentence"),
    [
        ("plan", {"modle": "x"}, "modle='x' is not a field of a scenario. Did you mean 'model'?"),
        ("plan", {"num_tokens": "ten"}, "num_tokens: 'ten' is not a number like"),
        ("plan", {"top": "0"}, "top '0' is not a whole number from 1 to 1,000."),
        ("plan", {"gpu": "h1000"}, "Unknown accelerator 'h1000'."),
        ("estimate", {"model": "llama3.1-8b"}, "Missing layout, seq_len"),
        ("offers", {"gpus": "x"}, "Unknown key of offers 'gpus'. Did you mean 'gpu'?"),
        ("audit", {"config": "/etc/passwd"}, "Unknown key of audit 'config'."),
        ("models", {"model": "nosuch"}, "Unknown model 'nosuch'."),
    ],
)
def test_a_mistake_is_one_sentence(ask, question, keys, sentence):
    answer = ask.get(f"/api/v1/{question}", params=keys)
    assert answer.status_code == 400
    assert sentence in answer.json()["error"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400), (b"[1]", 400), (b'{"model": {"a": 1}}', 400), (b"[" * 60_000, 400),
        (b"x" * 10_000_000, 413),
    ],
)  # fmt: skip
def test_a_hostile_body_is_refused(ask, body, status):
    answer = ask.post("/api/v1/plan", content=body)
    assert answer.status_code == status
    assert list(answer.json()) == ["error"]


def test_no_question_reads_a_file(ask, monkeypatch):
    for question in door.ASKED:
        monkeypatch.setattr(door, "_rate", rate.Rate())  # more requests than one address may ask
        for name in ("config", "scenario", "file"):
            answer = ask.get(f"/api/v1/{question}", params={name: "/etc/hostname"})
            assert answer.status_code == 400, (question, name)


def test_an_address_that_asks_too_often_waits(ask):
    found = [ask.get("/api/v1/models", params={"model": "nosuch"}) for _ in range(40)]
    refused = [a for a in found if a.status_code == 429]
    assert len(refused) >= 40 - rate.AT_ONCE - 10
    assert refused[0].headers["Retry-After"] == "1"


def test_a_flood_of_searches_leaves_room_for_pages(ask, monkeypatch):
    searches, held = Searches(most=4, keep_s=9, failed_s=9, at_once=2, lanes=((0.2, 1),)), Event()
    monkeypatch.setattr(answers, "_searches", lambda: searches)
    try:
        for _ in range(1 + answers.PROGRAMS_WAITING):  # one runs
            answers.ask_for_program(held.wait, {}, "10.0.0.1")
        refused = ask.get("/api/v1/plan", params=JOB)
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "10")
        assert searches.ask("page", lambda: "found", session="a", work=0.1).result(9) == "found"
    finally:
        held.set()


def test_a_bucket_fills_again_and_addresses_are_bounded(monkeypatch):
    now = [0.0]
    bucket = rate.Rate(lambda: now[0])
    assert [bucket.wait_s("a") for _ in range(21)][-1] == pytest.approx(1 / rate.PER_S)
    now[0] += 1.01 / rate.PER_S
    assert bucket.wait_s("a") == 0.0
    monkeypatch.setattr(rate, "MOST_ADDRESSES", 2)
    for address in "bcd":
        bucket.wait_s(address)
    assert len(bucket._left) <= 2


def test_it_can_be_switched_off(monkeypatch):
    monkeypatch.setenv(door.SWITCH, "off")
    assert door.routes(has_login=bool, search=answers.ask_for_program) == []


def test_a_server_with_a_login_answers_only_if_its_operator_says_so(monkeypatch):
    assert Asked(has_login=True).get("/api/v1/gpus").status_code == 403
    monkeypatch.setenv(door.SWITCH, "on")
    assert Asked(has_login=True).get("/api/v1/gpus").status_code == 200


def test_the_description_has_every_key(ask):
    found = ask.get("/api/v1/openapi.json").json()
    assert found == description()
    assert set(found["paths"]) == {f"/api/v1/{name}" for name in door.ASKED}
    keys = {p["name"] for p in found["paths"]["/api/v1/plan"]["get"]["parameters"]}
    assert keys == {*Scenario.model_fields, "top"}
