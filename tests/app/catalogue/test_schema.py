"""runcast schema: the shipped JSON Schemas, held against what the commands print."""

import copy
import json

import pytest
from jsonschema import Draft202012Validator

from docs import json_schemas
from tests.conftest import ROOT

PLAN = ("plan", "--model", "llama3.1-8b", "--tokens", "1T", "--seq-len", "8k",
        "--global-batch-size", "512", "--gpu", "h100", "--json", "--top", "3")  # fmt: skip
COMMANDS = [
    (*PLAN, "--num-gpus", "64,128", "--deadline-days", "9", "--purchase", "spot,on_demand"),
    (*PLAN, "--num-gpus", "1", "--model", "llama3.1-405b"),  # nothing fits
    ("audit", "--model", "llama3.1-8b", "--gpu", "h100", "--num-gpus", "64", "--mfu", "0.4",
     "--tokens", "1T", "--days", "30", "--json"),
    ("audit", "--model", "llama3.1-8b", "--gpu", "h100", "--num-gpus", "64", "--tokens-per-s",
     "460k", "--json"),
]  # fmt: skip


@pytest.fixture
def printed(run):
    def _printed(*words):
        status, out, err = run(*words)
        assert (status, err) == (0, "")
        return json.loads(out)

    return _printed


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_what_a_command_prints_fits_its_schema(printed, words):
    schema = Draft202012Validator(printed("schema", words[0]))
    schema.check_schema(schema.schema)
    document = printed(*words)
    schema.validate(document)
    for break_it in (
        lambda d: d.pop("schema_version"), lambda d: d.update(link=1),
        lambda d: d["assumptions" if words[0] == "audit" else "excluded"].append(1),
    ):  # fmt: skip
        broken = copy.deepcopy(document)
        break_it(broken)
        assert not schema.is_valid(broken)


def test_a_calibration_fits_its_schema(printed):
    golden = json.loads((ROOT / "tests/golden/calib-result-1.json").read_text())
    schema = Draft202012Validator(printed("schema", "calibration"))
    schema.validate(golden)
    assert not schema.is_valid({**golden, "probe_version": 2})


@pytest.mark.parametrize("name", json_schemas.DOCUMENTS)
def test_a_shipped_schema_is_that_of_the_documentation(printed, name):
    assert printed("schema", name) == json_schemas.schema(name)


def test_an_unknown_document_is_one_sentence(run):
    status, _, err = run("schema", "plans")
    assert status == 2
    assert err.startswith("runcast: Unknown document 'plans'. Did you mean 'plan'?")
