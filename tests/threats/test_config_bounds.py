"""Hostile config.json files in a process of 512 MiB: each is one sentence in a moment, and
nothing of it is run or looked up."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.conftest import ROOT

MEMORY_BYTES = 512 * 2**20
MOST_CPU_S = 0.5  # of a file of 1 MB on a machine that is busy; most take less than 1 ms
LLAMA = {
    "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096,
    "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8,
    "vocab_size": 128256,
}  # fmt: skip
# What is sent -> words of the sentence that refuses it. The bytes are made in the process itself.
HOSTILE = {
    "10**9 layers": (json.dumps({**LLAMA, "num_hidden_layers": 10**9}), "num_hidden_layers"),
    "negative": (json.dumps({**LLAMA, "hidden_size": -4096}), "hidden_size"),
    "a string": (json.dumps({**LLAMA, "vocab_size": "128k; rm -rf /"}), "vocab_size"),
    "a list of layers": (json.dumps({**LLAMA, "num_hidden_layers": [32]}), "num_hidden_layers"),
    "a fraction": (json.dumps({**LLAMA, "num_attention_heads": 31.5}), "num_attention_heads"),
    "not a number": (json.dumps({**LLAMA, "hidden_size": float("nan")}), "NaN"),
    "1e999": (json.dumps(LLAMA)[:-1] + ', "rope_theta": 1e999}', "1e999"),
    "a key twice": (json.dumps(LLAMA)[:-1] + ', "hidden_size": 1}', "twice"),
    "cut off": (json.dumps(LLAMA)[:-20], "not JSON"),
    "a list": ("[1]", "a list"),
    "200,000 brackets": ("'[' * 200_000", "nests more than"),
    "200,000 objects": ("'{\"a\":' * 200_000", "nests more than"),
    "2 million digits": ("'{\"a\": ' + '9' * 900_000 + '}'", "digits"),
    "2 MB": ("' ' * 2_000_000", "larger than"),
    "a million quotes": ("'\"' * 999_999", "not JSON"),
    "backslashes": ("'\"' + '\\\\' * 999_990", "not JSON"),
    "200,000 keys": (
        "'{' + ','.join(f'\"{n}\":1' for n in range(90_000)) + '}'", "model_type"
    ),
    "a weights file": ("b'\\x80\\x02}q\\x00.' * 1000", "not text"),
}  # fmt: skip
PROGRAM = (
    f"MEMORY, LLAMA = {MEMORY_BYTES}, {LLAMA}"
    + """
import json, resource, sys, time
resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
from app.scenario.model import parse_config
from core.errors import ModelError
parse_config(json.dumps(LLAMA))  # what is loaded once is no part of a file
found = {}
for name, text in json.load(sys.stdin).items():
    data = eval(text) if text[0] in "'b" else text
    began = time.process_time()
    try:
        parse_config(data)
        said = "read"
    except ModelError as e:
        said = str(e)
    found[name] = [said, time.process_time() - began]
try:
    bytearray(MEMORY)
except MemoryError:
    found["the limit"] = ["holds", 0.0]
print(json.dumps([found, "torch" in sys.modules or "transformers" in sys.modules]))
"""
)


@pytest.fixture(scope="module")
def outcome():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        input=json.dumps({name: text for name, (text, _) in HOSTILE.items()}),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={"PATH": "", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    found, loads_code = json.loads(done.stdout)
    assert found.pop("the limit")
    assert not loads_code
    return found


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_config_is_one_sentence_in_little_time_and_memory(outcome, name):
    said, took_s = outcome[name]
    assert HOSTILE[name][1] in said
    assert said.endswith((".", "?"))
    assert "\n" not in said
    assert len(said) < 500
    assert took_s < MOST_CPU_S
