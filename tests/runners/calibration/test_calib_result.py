"""calib-result/1: what is read, what is refused and with which sentence."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path

import jsonschema
import pytest

from runners.calibration import result as schema
from runners.calibration.result import (
    MAX_BYTES,
    NEEDED,
    ResultError,
    parse_result,
)

ROOT = Path(__file__).parents[3]
GOLDEN = sorted((ROOT / "tests/golden").glob("calib-result-1*.json"))
DOCUMENT = ROOT / "docs/calibration.md"
PUBLISHED = ROOT / "docs/calib-result-1.schema.json"


@pytest.fixture(scope="module")
def golden():
    return json.loads(GOLDEN[0].read_text())


def changed(golden, path, value):
    """A copy with one value replaced, or with a new key."""
    found = copy.deepcopy(golden)
    *way, last = path
    inner = found
    for step in way:
        inner = inner[step]
    inner[last] = value
    return json.dumps(found)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name)
def test_a_stored_result_still_loads_and_loses_nothing(path):
    result = parse_result(path.read_bytes())
    stored = json.loads(path.read_text())
    assert json.loads(result.model_dump_json(by_alias=True, exclude_unset=True)) == stored
    assert {row.probe for row in result.results} == set(NEEDED)
    assert result.provenance.anonymised


def test_rates_follow_from_times(golden):
    result = parse_result(json.dumps(golden))
    square = next(r for r in result.rows("matmul") if r.label == "square")
    assert square.flops_per_s == 2 * 512**3 / square.t_med_s
    assert square.bus_bytes_per_s is None
    reduce = next(r for r in result.rows("collectives") if r.label == "all_reduce")
    assert reduce.bytes_per_s == reduce.bytes / reduce.t_med_s
    assert reduce.bus_bytes_per_s == reduce.bytes_per_s  # of two ranks: 2 (2-1)/2


# --- refused -------------------------------------------------------------------------------------

ROW = ("results", 0)


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        (
            (*ROW, "t_med_s"),
            -1.0,
            "'results[0].t_med_s': input should be greater than 0, not '-1.0'",
        ),
        ((*ROW, "t_med_s"), 0, "greater than 0"),
        ((*ROW, "t_med_s"), "1", "'results[0].t_med_s': input should be a valid number, not '1'"),
        ((*ROW, "t_p90_s"), 1e-9, "are not in this order"),
        ((*ROW, "n"), True, "'results[0].n'"),
        ((*ROW, "n"), 0, "'results[0].n'"),
        ((*ROW, "probe"), "gemm", "'results[0].probe'"),
        ((*ROW, "dtype"), "int4", "'results[0].dtype'"),
        ((*ROW, "flops"), None, "a row of matmul lacks flops"),
        ((*ROW, "params"), {"m": 1, "n": 1}, "a row of matmul lacks k"),
        ((*ROW, "params"), {"m": [1], "n": 1, "k": 1}, "'results[0].params.m"),
        ((*ROW, "tflops"), 900, "the unknown key 'results[0].tflops'"),
        ((*ROW, "t_med_by_node_s"), [1.0, 2.0], "has not one time for each of 1 nodes"),
        (("control", 0, "t_med_s"), -1.0, "'control[0].t_med_s'"),
        (("budget",), 60, "the unknown key 'budget'"),
        (("complete",), 1, "'complete'"),
        (("run_id",), "../../etc", "'run_id'"),
        (("results",), [], "'results'"),
        (("nodes",), [], "'nodes'"),
        (("nodes", 0, "ranks"), 8, "do not add up to world_size"),
        (("provenance", "utc_end"), "2020-01-01T00:00:00Z", "is before utc_start"),
        (("provenance", "utc_end"), "yesterday", "'provenance.utc_end'"),
        (("provenance", "probe_sha256"), "abc", "'provenance.probe_sha256'"),
        (("provenance", "env", "PATH"), "/bin", "PATH"),
        (("provenance", "env", "NCCL_API_TOKEN"), "x", "NCCL_API_TOKEN may hold a secret"),
        (("provenance", "topology"), "x" * 20001, "'provenance.topology'"),
        (("provenance", "device", "kind"), "tpu", "'provenance.device.kind'"),
        (("provenance", "device", "memory_bytes"), 1e30, "memory_bytes'"),
    ],
)
def test_an_unsound_result_is_refused_with_its_place(golden, path, value, sentence):
    with pytest.raises(ResultError) as refused:
        parse_result(changed(golden, path, value))
    text = str(refused.value)
    assert sentence in text
    assert "\n" not in text
    assert len(text) < 400
    assert text.endswith(".")


def test_another_schema_or_probe_version_is_refused_first(golden):
    with pytest.raises(ResultError, match=r"is 'calib-result/0', not calib-result/1"):
        parse_result(changed(golden, ("schema",), "calib-result/0"))
    with pytest.raises(ResultError, match="is of probe version '2', which measures"):
        parse_result(changed(golden, ("probe_version",), 2))
    with pytest.raises(ResultError, match="is 'list', not calib-result/1"):
        parse_result("[]")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_what_is_no_number_is_refused(golden, number):
    text = json.dumps(golden).replace(
        f'"rel_iqr": {golden["results"][0]["rel_iqr"]}', '"rel_iqr": X'
    )
    assert text.count("X") >= 1
    with pytest.raises(ResultError):
        parse_result(text.replace('"rel_iqr": X', f'"rel_iqr": {number}'))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.9999])
def test_a_truncated_result_is_refused(golden, share):
    text = json.dumps(golden)
    with pytest.raises(ResultError, match="is not JSON"):
        parse_result(text[: int(share * len(text))])


def test_a_file_of_100_mb_is_refused_unread():
    with pytest.raises(ResultError, match="has 100 MB; at most 20 MB are read"):
        parse_result(b" " * (5 * MAX_BYTES))


@pytest.mark.parametrize("data", [b"\xff\xfe{", b"[" * 100_000, "\ud800", b'"' + b"a" * 1000])
def test_other_rubbish_is_refused_with_a_sentence(data):
    with pytest.raises(ResultError) as refused:
        parse_result(data)
    assert len(str(refused.value)) < 400


# --- published -----------------------------------------------------------------------------------


def test_the_published_schema_is_that_of_the_code():
    of_code = schema.CalibResult.model_json_schema(by_alias=True)
    of_code["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    assert PUBLISHED.read_text() == json.dumps(of_code, indent=1, sort_keys=True) + "\n"


def test_the_published_schema_accepts_the_stored_result_and_refuses_what_we_refuse(golden):
    found = jsonschema.Draft202012Validator(json.loads(PUBLISHED.read_text()))
    assert found.is_valid(golden)
    for path, value in (
        (("extra",), 1), ((*ROW, "t_med_s"), -1.0), (("probe_version",), 2), ((*ROW, "probe"), "x")
    ):  # fmt: skip
        assert not found.is_valid(json.loads(changed(golden, path, value)))


def keys(model):
    """Every key of a model and of the models in it, but parameters and states, which are open."""
    for name, field in model.model_fields.items():
        yield field.alias or name
        for inner in re.findall(r"runners\.calibration\.result\.(\w+)", str(field.annotation)):
            yield from keys(getattr(schema, inner))


def test_every_key_is_documented():
    text = DOCUMENT.read_text()
    parts = ("\n## The probe\n", "\n## Keys of `calib-result/1`\n")
    documented = {
        name
        for part in parts
        for name in re.findall(r"`(\w+)`", text.partition(part)[2].partition("\n## ")[0])
    }
    wanted = set(keys(schema.CalibResult)) | set(NEEDED)
    wanted |= {key for named, _ in NEEDED.values() for key in named}
    assert len(wanted) > 100
    assert not wanted - documented
