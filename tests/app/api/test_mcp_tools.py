"""`runcast mcp` as the official client of the Model Context Protocol asks it, over real pipes."""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import anyio
import pytest
from mcp import Client, StdioServerParameters

from app.api.questions import ASKED
from tests.support.browsing import ROOT

HERE = {"model": "llama3.1-8b", "gpu": ["h100"], "num_gpus": [32, 64], "num_tokens": "100B"}


def asked(*calls):
    """The tools, and what each call answered, of one process."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "app.cli", "mcp"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=str(ROOT),
    )

    async def talk():
        async with Client(server, read_timeout_seconds=60) as client:
            listed = await client.list_tools()
            return listed.tools, [await client.call_tool(name, keys) for name, keys in calls]

    with ThreadPoolExecutor(1) as thread:  # a browser of another test may run a loop in this one
        return thread.submit(anyio.run, talk).result()


@pytest.fixture(scope="module")
def found():
    return asked(
        ("plan", {**HERE, "top": 2}),
        ("models", {"model": "llama3.1-8b"}),
        ("programme", {**HERE, "stages": ["main", "long,share=5%,seq_len=32k"]}),
        ("programme", {**HERE, "s1.name": "main", "s2.share": "5%", "s2.seq_len": "32k"}),
        ("plan", {"modle": 3}),
        ("audit", {"model": {"a": 1}}),
        ("estimate", {}),
        ("erase", {}),
    )


def test_the_seven_questions_are_its_tools_with_their_keys(found):
    tools, _ = found
    assert [t.name for t in tools] == list(ASKED)
    assert all(t.description and t.annotations.read_only_hint for t in tools)
    plan = tools[0].input_schema
    assert "num_tokens" in plan["properties"]
    assert plan["additionalProperties"] is False


def test_an_answer_is_the_document_of_the_command(found, run):
    _, (plan, models, *_) = found
    status, out, _ = run("models", "--model", "llama3.1-8b", "--json")
    assert status == 0
    assert json.loads(models.content[0].text) == json.loads(out)
    document = json.loads(plan.content[0].text)
    assert len(document["plans"]) == 2
    assert {p["num_gpus"] for p in document["plans"]} <= {32, 64}


def test_stages_are_a_list_or_flat_keys(found):
    _, (_, _, listed, flat, *_) = found
    documents = [json.loads(a.content[0].text) for a in (listed, flat)]
    assert [s["seq_len"] for s in documents[0]["contracts"][0]["stages"]] == [8192, 32768]
    assert documents[0]["contracts"][0]["usd"] == documents[1]["contracts"][0]["usd"]


def test_nonsense_is_a_sentence_that_its_caller_can_mend(found):
    _, (*_, wrong, nested, empty, unknown) = found
    texts = [answer.content[0].text for answer in (wrong, nested, empty, unknown)]
    assert all(answer.is_error for answer in (wrong, nested, empty, unknown))
    assert "Did you mean 'model'?" in texts[0]
    assert texts[1].startswith("model is neither a text")
    assert texts[2].startswith("Missing model, layout")
    assert texts[3] == f"There is no tool 'erase': {', '.join(ASKED)}."
