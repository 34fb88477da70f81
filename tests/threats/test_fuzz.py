"""The decoders of links and of config.json under a coverage-guided fuzzer, each for a few seconds;
`make soak` gives them more (RUNCAST_FUZZ_S)."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys

import pytest

from core.scenario import Scenario
from tests.conftest import ROOT

SECONDS = int(os.environ.get("RUNCAST_FUZZ_S", "8"))

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400 + 2 * SECONDS)]

CONFIGS = ROOT / "tests/golden/configs"
LINKS = (
    "v=1&model=llama3.1-70b&num_tokens=1e12&global_batch_size=1024&deadline_days=30",
    "v=1&gpu=h100,b200&num_gpus=64,128&purchase=on_demand,spot&tp=8&pp=2&sharding=zero1",
    "v=1&model=custom&num_layers=32&hidden_size=4096&ffn_hidden_size=14336"
    "&num_attention_heads=32&num_kv_heads=8&head_dim=128&vocab_size=128256",
    "v=1&plan=aws~p5.48xlarge~1&pinned=a,b&made=0.0.1rc1&prices=0123456789abcdef",
    "v=99&tp=nan&tp=1e999&seq_len=-1&evil=%00%FF&num_gpus=,,,&budget_usd=1_000",
)
HOSTILE = (
    '{"model_type": "llama", "num_hidden_layers": 1e999}',
    '{"model_type": "llama", "auto_map": {"AutoConfig": "evil.py"}, "hidden_size": NaN}',
    '{"a": 1, "a": 2}',
    "[" * 40,
    '{"num_hidden_layers": ' + "9" * 60 + "}",
)
WORDS = ["nan", "inf", "1e999", "-1", "true", "null", "custom", "%00", "zero3", "8k", "15T"]


@pytest.fixture(scope="module", autouse=True)
def _fuzzer():
    if importlib.util.find_spec("atheris") is None:
        pytest.skip("atheris is not installed: `make test-all` does it where there is a wheel")


def fuzzed(decoder, folder, *options):
    """What the fuzzer says of a decoder: its status, its words, how many inputs it tried."""
    seeds = folder / "seeds"
    seeds.mkdir()
    files = list(LINKS) if decoder != "config" else list(HOSTILE)
    files = [f.encode() for f in files]
    if decoder == "config":
        files += [p.read_bytes() for p in sorted(CONFIGS.glob("*.json"))]
    for n, content in enumerate(files):
        (seeds / str(n)).write_bytes(content)
    keys = {k for f in files for k in re.findall(r'"(\w+)":', f.decode())}
    words = (
        [*keys, "[]", "{}"] if decoder == "config" else [f"&{n}=" for n in Scenario.model_fields]
    )
    escaped = [w.replace("\\", "\\\\").replace('"', '\\"') for w in [*words, *WORDS]]
    (folder / "words").write_text("".join(f'"{w}"\n' for w in escaped))
    done = subprocess.run(
        # A child of a small process: the largest memory of ours would count as its own.
        ["sh", "-c", '"$@"; exit $?', "sh",
         sys.executable, "-m", "tests.threats.fuzz_decoders", decoder, str(seeds),
         f"-max_total_time={SECONDS}", "-timeout=10", "-rss_limit_mb=512", "-max_len=20000",
         f"-dict={folder / 'words'}", f"-artifact_prefix={folder}/", "-print_final_stats=1",
         *options],
        cwd=ROOT, capture_output=True, text=True, errors="replace", check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    said = done.stdout + done.stderr
    units = re.search(r"stat::number_of_executed_units: *(\d+)", said)
    return done.returncode, said, int(units[1]) if units else 0


@pytest.mark.parametrize("decoder", ["link", "config"])
def test_no_input_that_the_fuzzer_finds_breaks_a_decoder(decoder, tmp_path, capsys):
    status, said, units = fuzzed(decoder, tmp_path)
    assert status == 0, said[-4000:]
    assert units > 20 * SECONDS, said[-2000:]
    with capsys.disabled():
        print(f" {decoder}: {units:,} inputs in {SECONDS} s", end=" ")


def test_the_fuzzer_finds_a_field_that_is_not_checked(tmp_path):
    status, said, _ = fuzzed("planted", tmp_path, "-seed=1")
    assert status != 0
    assert "invalid literal for int" in said or "ValueError" in said
