"""29 kinds of output of other tools, a file each: tokens/s, time of a step and loss of the logs,
bandwidth and rates of the benchmarks. One kind is not read, and says so."""

import pytest

from runners.imports import mamf, nccl_tests
from runners.imports.text import ImportFileError
from runners.imports.training_log import steady_state
from tests.support.logs import lines

EIGHT = {"num_gpus": 8}
JOB = {"num_gpus": 8, "seq_len": 2048, "global_batch_size": 64}
TOKENS = 64 * 2048 / 8  # of a step and GPU
# File, what the user says, format, tokens/s per GPU, loss, steps that count.
LOGS = [
    ("torchtitan.txt", {}, "torchtitan", 6305, 4.1, 22),
    ("megatron.txt", {}, "megatron", 256 * 8192 / 43.0 / 64, 7.0, 30),
    ("megatron_argonne.txt", EIGHT, "megatron", 8176, 11.23, 20),
    ("megatron_bridge.txt", {"global_batch_size": 128, "seq_len": 4096, "num_gpus": 64},
     "megatron", 128 * 4096 / 2.56 / 64, None, 30),
    ("nemo_bar.txt", {"seq_len": 4096, "num_gpus": 128},
     "megatron", 256 * 4096 / 3.13 / 128, 6.05, 49),
    ("dllogger.json", {"seq_len": 4096, "num_gpus": 256},
     "dllogger", 1024 * 4096 / 45.81 / 256, 8.1, 29),
    ("gpt_neox.txt", {"num_gpus": 8, "seq_len": 2048},
     "megatron", 51.234 * 2048 / 8, 5.0, 39),
    ("nanotron.txt", {}, "megatron", 14_700, 5.0, 30),
    ("deepspeed.txt", {"seq_len": 2048}, "deepspeed", 25.5 * 2048 / 8, None, 29),
    ("trainer_state.json", EIGHT, "hf-trainer", 10 * 196608 / 35 / 8, 1.4, 19),
    ("hf_tokens.txt", EIGHT, "hf-trainer", 196608 / 3.5 / 8, 2.1, 9),
    ("llama_factory.jsonl", EIGHT, "llama-factory", 65536 / 1.5 / 8, 0.8, 38),
    ("axolotl.txt", {}, "hf-trainer", 3451, 5.0, 30),
    ("ms_swift.jsonl", JOB, "ms-swift", TOKENS / 2.81, 5.0, 38),
    ("olmo.txt", {}, "metric-blocks", 8935, 5.0, 30),
    ("olmo_core.txt", {}, "metric-blocks", 12_346, 5.0, 30),
    ("composer.txt", {}, "metric-blocks", 14_750, 5.0, 28),
    ("lightning.csv", {}, "csv", 7401, 5.0, 30),
    ("levanter.txt", JOB, "step-times", TOKENS / 76.8, 5.0, 30),
    ("paxml.txt", JOB, "step-times", TOKENS / 0.635, 5.0, 30),
    ("litgpt.txt", JOB, "step-times", TOKENS / 1.4, 5.0, 30),  # 3 x 340 ms and 380 ms
    ("colossalai.txt", JOB, "step-times", 9.86 * 2048 / 8, None, 1),
    ("torchtune.txt", {}, "plain", 3084, 5.0, 30),
    ("internevo.txt", {}, "plain", 4272, 5.0, 30),
    ("plain.txt", {}, "plain", 5320, 6.1, 20),  # MaxText
]  # fmt: skip


@pytest.mark.parametrize(("name", "told", "format_", "rate", "loss", "steps"), LOGS)
def test_a_log_of_each_stack(name, told, format_, rate, loss, steps):
    found = steady_state(lines(name), told)
    assert found.format == format_
    assert found.tokens_per_s_per_gpu == pytest.approx(rate, rel=0.01)
    assert (
        found.tokens_per_s_per_gpu_p10 > 0.98 * rate
    )  # no step has the start or an evaluation in it
    assert found.num_steps == steps
    assert found.loss == (None if loss is None else pytest.approx(loss))
    tokens = {"global_batch_size", "seq_len", "num_gpus"}
    assert (found.step_s is None) is bool(tokens - {*found.known})
    if found.step_s is not None:
        step = found.known["global_batch_size"] * found.known["seq_len"]
        assert found.step_s == pytest.approx(step / rate / found.known["num_gpus"], rel=0.01)


@pytest.mark.parametrize(
    ("name", "ranks", "bus_gb_per_s"),
    [("all_reduce_node.txt", 8, None), ("rccl_all_reduce.txt", 8, 310)],
)
def test_a_table_of_nccl_and_of_rccl(name, ranks, bus_gb_per_s):
    (table,) = nccl_tests.tables(lines(name))
    assert (table.op, table.ranks) == ("all_reduce", ranks)
    best = max(p.bus_gb_per_s for p in table.points)
    assert bus_gb_per_s is None or best == pytest.approx(bus_gb_per_s, rel=0.01)


def test_mamf_finder_and_what_is_not_read():
    assert mamf.parse(lines("mamf_v4.txt")).best
    with pytest.raises(ImportFileError, match="No line of the log says how fast"):
        steady_state(lines("hpl.txt"), {})


def test_29_kinds():
    assert len(LOGS) + 4 == 29
