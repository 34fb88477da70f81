"""Training logs: the steady state of each format, restarts, ranks, ends that are cut off."""

from __future__ import annotations

import gzip
import re

import pytest

from runners.imports import training_log
from runners.imports.steps import Steady
from runners.imports.text import ImportFileError, text_of
from runners.imports.training_log import logs_of, steady_state
from tests.support.logs import lines


def steady(name: str, **told: int) -> Steady:
    return steady_state(lines(name), told)


def test_torchtitan_per_gpu_with_two_ranks_and_a_restart():
    found = steady("torchtitan.txt")
    assert found.format == "torchtitan"
    assert found.tokens_per_s_per_gpu == pytest.approx(6300, rel=0.005)
    assert (
        found.tokens_per_s_per_gpu_p10 < found.tokens_per_s_per_gpu < found.tokens_per_s_per_gpu_p90
    )
    # 13 and 12 logged steps; the first and the tenth of the first start, the first of the second.
    assert (found.num_steps, found.num_left_out, found.num_starts) == (22, 3, 2)
    assert found.num_ranks == 2
    assert found.known == {
        "seq_len": 8192, "global_batch_size": 16, "num_gpus": 8,
        "pp": 1, "dp_replicate": 1, "dp_shard": 8, "cp": 1, "tp": 1,
    }  # fmt: skip
    assert found.device == "NVIDIA H100 80GB HBM3"
    assert found.peak_memory_gib == pytest.approx(47.6)
    assert found.tokens_per_s == pytest.approx(8 * found.tokens_per_s_per_gpu)
    assert found.notes == ()


def test_an_older_torchtitan_says_wps_and_has_another_mesh():
    old = [
        "[rank0]:2024-08-01 - root - INFO - Building 2-D device mesh with ['dp', 'tp'], [4, 2]",
        *(
            f"[rank0]:2024-08-01 - root - INFO - step: {n}  loss: 9.1  memory: 40.1GiB(50.7%)  "
            f"wps: 1,{n + 100}  mfu: 31.10%"
            for n in range(1, 40)
        ),
    ]
    found = steady_state(old, {})
    assert found.tokens_per_s_per_gpu == pytest.approx(1125, abs=1)
    assert found.known["tp"] == 2


def test_megatron_from_seconds_batch_and_arguments():
    found = steady("megatron.txt")
    assert found.tokens_per_s_per_gpu == pytest.approx(256 * 8192 / 43.0 / 64, rel=0.005)
    assert (found.num_steps, found.num_left_out) == (30, 10)
    assert {n: found.known[n] for n in ("tp", "pp", "num_gpus", "seq_len")} == {
        "tp": 4, "pp": 2, "num_gpus": 64, "seq_len": 8192,
    }  # fmt: skip
    assert found.known["global_batch_size"] == 256


def test_a_cut_off_time_is_no_time():
    """The last line ends within `43012.5`: with 43 ms the job would be a thousand times faster."""
    (log,) = [x for x in logs_of(lines("megatron.txt")) if x.format == "megatron"]
    assert max(s.number or 0 for s in log.steps) == 40
    assert min(s.step_s or 0 for s in log.steps) > 40


def test_a_batch_that_grows_counts_with_each_line():
    """The same machine at two batches: the rate is the same, the batch is that of the end."""

    def line(n: int, batch: int) -> str:
        return (
            f" iteration {n:8d}/ 100 | consumed samples: 1 | elapsed time per iteration (ms): "
            f"{batch * 100.0:.1f} | global batch size: {batch:5d} | lm loss: 3.0E+00 |"
        )

    told = {"seq_len": 4096, "num_gpus": 8}
    found = steady_state([line(n, 64 if n < 60 else 128) for n in range(1, 101)], told)
    assert found.tokens_per_s_per_gpu == pytest.approx(4096 / 0.1 / 8)
    assert found.tokens_per_s_per_gpu_p10 == pytest.approx(found.tokens_per_s_per_gpu_p90)
    assert any("batch grows" in note for note in found.notes)


def test_megatron_deepspeed_prints_both_and_the_direct_one_counts():
    found = steady("megatron_deepspeed.txt")
    assert (found.format, found.unit) == ("megatron", "tokens/s per GPU (tgs)")
    assert found.tokens_per_s_per_gpu == pytest.approx(768 * 4096 / 14.3 / 96, rel=0.01)
    assert found.tokens_per_s is None  # nobody says on how many GPUs


def test_argonnes_figures_count_and_not_those_of_deepspeed_between_them():
    """Its lines are name=value; only DeepSpeed's were read, which gave 38,239 for 8,176."""
    found = steady("megatron_argonne.txt", seq_len=4096, num_gpus=8)
    assert (found.format, found.unit) == ("megatron", "tokens/s per GPU (tgs)")
    assert found.tokens_per_s_per_gpu == pytest.approx(8176, rel=0.003)
    assert (found.num_steps, found.num_left_out) == (20, 10)
    assert found.notes == (
        "Its lines of deepspeed (samples/s of the job (CurrSamplesPerSec)) give 38,239 tokens/s "
        "per GPU: those of megatron are taken.",
    )
    assert steady("megatron_argonne.txt").notes == ()  # nobody says what DeepSpeed's are of


def test_without_tokens_llama_factorys_whole_seconds_are_left():
    cut = [re.sub(r', "throughput".*}', "}", line) for line in lines("llama_factory.jsonl")]
    told = {"seq_len": 1024, "global_batch_size": 6, "num_gpus": 8}
    found = steady_state(cut, told)
    assert found.tokens_per_s_per_gpu == pytest.approx(6 * 1024 / 1.5 / 8, rel=0.05)
    assert "whole seconds" in found.notes[0]


def test_dlloggers_units_say_what_a_figure_is():
    metadata = 'DLLL {"type": "METADATA", "metric": "%s", "metadata": {"unit": "tokens/s"}}'
    text = [metadata % "train_throughput", metadata % "val_throughput"]
    text += [
        f'DLLL {{"type": "LOG", "step": [0, {n}], "data": '
        '{"val_throughput": 9e9, "train_throughput": 8000.0}}'
        for n in range(1, 40)
    ]
    assert steady_state(text, {"num_gpus": 8}).tokens_per_s_per_gpu == 1000
    summary = 'DLLL {"type": "LOG", "step": [], "data": {"train_throughput": 4000.0}}'
    found = steady_state([*text[:2], summary], {"num_gpus": 8})
    assert (found.tokens_per_s_per_gpu, found.is_mean) == (500, True)


def test_a_trainer_state_without_times_says_why():
    told = lines("trainer_state.json")
    saved = [x for x in told if "train_" not in x and "tokens" not in x]
    with pytest.raises(ImportFileError, match="has no times, because it was saved before the end"):
        steady_state(saved, {"num_gpus": 8})
    summary = [x for x in told if "num_input" not in x]
    assert steady_state(summary, {"num_gpus": 8, "seq_len": 4096}).is_mean


def test_deepspeed_counts_samples_of_the_job():
    found = steady("deepspeed.txt", seq_len=2048)
    assert found.tokens_per_s_per_gpu == pytest.approx(25.5 * 2048 / 8, rel=0.01)
    assert found.known["global_batch_size"] == 64
    assert found.peak_memory_gib == 38.49


def test_a_trainer_with_tokens_seen():
    found = steady("hf_tokens.txt", num_gpus=8)
    # 196,608 tokens every 3.5 s; its own train_tokens_per_second is a mean from the start on.
    assert found.tokens_per_s_per_gpu == pytest.approx(196608 / 3.5 / 8, rel=0.02)
    assert found.known["global_batch_size"] == 1024


def test_a_trainer_with_a_summary_alone():
    found = steady("hf_summary.txt", num_gpus=8, seq_len=4096)
    assert found.tokens_per_s_per_gpu == pytest.approx(8.021 * 4096 / 8)
    assert any("mean of the whole run" in note for note in found.notes)
    assert (found.num_steps, found.num_left_out) == (1, 0)


def test_anything_that_says_tokens_per_second():
    found = steady("plain.txt")
    assert found.tokens_per_s_per_gpu == pytest.approx(5320, rel=0.01)


@pytest.mark.parametrize(
    ("line", "per_gpu", "job"),
    [
        ("step 10 | loss 3.2 | 5,762 tok/s", None, 5762),
        ("iter 7: throughput 1.2M tokens/sec", None, 1.2e6),
        ("Tokens/s/device: 5300.123, loss: 2", 5300.123, None),
        ("step=3 tokens_per_second=41000.5", None, 41000.5),
        ("{'step': 3, 'tokens_per_second_per_gpu': 812.5}", 812.5, None),
        ("tokens per second per GPU: 812", 812, None),
        ("TGS: 4,096 loss 1", 4096, None),
    ],
)
def test_whose_tokens_a_plain_line_has(line, per_gpu, job):
    *_, log = training_log.logs_of([line])
    assert log.steps[0].tokens_per_s_per_gpu == per_gpu
    assert (log.steps[0].tokens_per_s or None) == job


def test_a_plain_figure_is_of_what_the_user_says():
    text = [f"step {n} | 800 tok/s" for n in range(1, 40)]
    assert steady_state(text, {"num_gpus": 8}).tokens_per_s_per_gpu == 100
    assert "does not say whose" in steady_state(text, {"num_gpus": 8}).notes[0]
    assert steady_state(text, {}, per_gpu=True).tokens_per_s_per_gpu == 800


@pytest.mark.parametrize(
    ("name", "told", "options"),
    [
        ("deepspeed.txt", {}, ["--seq-len"]),
        ("hf_summary.txt", {}, ["--seq-len", "--num-gpus"]),
        ("hf_tokens.txt", {}, ["--num-gpus"]),
        ("hf_summary.txt", {"num_gpus": 8}, ["--seq-len"]),
    ],
)
def test_what_is_missing_is_named_with_its_option(name, told, options):
    with pytest.raises(ImportFileError) as error:
        steady(name, **told)
    said = str(error.value)
    assert [o for o in ("--seq-len", "--global-batch-size", "--num-gpus") if o in said] == options


def test_a_time_without_batch_and_sequence_asks_for_all_three():
    text = [f" iteration {n}/ 9 | elapsed time per iteration (ms): 450.2 |" for n in range(1, 9)]
    with pytest.raises(ImportFileError, match=r"--seq-len.*--global-batch-size.*--num-gpus"):
        steady_state(text, {})


def test_a_log_of_another_run_is_refused():
    with pytest.raises(ImportFileError, match="the number of GPUs is 64, where --num-gpus gives 8"):
        steady("megatron.txt", num_gpus=8)


def test_a_log_without_a_figure_says_what_was_looked_for():
    with pytest.raises(ImportFileError, match=r"torchtitan prints .*megatron prints .*hf-trainer"):
        steady_state(["epoch 1 done", "loss: nan"], {})


@pytest.mark.parametrize("figure", ["nan", "inf", "-5,300", "0"])
def test_figures_that_are_none_are_left_out(figure):
    good = [f"step: {n}  loss: 1.0  tps: 900  mfu: 1%" for n in range(1, 40)]
    bad = [x.replace("900", figure) if i % 3 == 0 else x for i, x in enumerate(good)]
    assert steady_state(bad, {}).tokens_per_s_per_gpu == 900


def test_no_steady_state_is_said():
    text = [f"step: {n}  loss: 1.0  tps: {900 if n < 50 else 700}  mfu: 1%" for n in range(1, 100)]
    assert "22% slower than the first" in steady_state(text, {}).notes[0]


def test_a_log_of_one_step_has_nothing_else():
    found = steady_state(["step: 1  loss: 1.0  tps: 900  mfu: 1%"], {})
    assert (found.tokens_per_s_per_gpu, found.num_steps) == (900, 1)
    assert "Few logged steps count (1)" in found.notes[0]


def test_numbers_without_a_rank_that_come_twice_are_two_ranks_of_one_step():
    text = [f"step: {n}  loss: 1.0  tps: {t}  mfu: 1%" for n in range(1, 40) for t in (800, 900)]
    found = steady_state(text, {})
    assert (found.num_steps, found.tokens_per_s_per_gpu, found.num_starts) == (29, 850, 1)


def test_bounds_of_a_file():
    with pytest.raises(ImportFileError, match="is empty"):
        text_of(b" \n\r\n", "x.log")
    with pytest.raises(ImportFileError, match="is a binary file"):
        text_of(bytes(range(256)) * 4 + b"\0" * 100, "x.log")
    with pytest.raises(ImportFileError, match="damaged gzip"):
        text_of(b"\x1f\x8bnothing", "x.gz")
    with pytest.raises(ImportFileError, match="holds more than 50 MB"):
        text_of(gzip.compress(b"0123456789abcdef\n" * 3_000_000, compresslevel=0), "x.gz")
    with pytest.raises(ImportFileError, match="more than 200 times its size"):
        text_of(gzip.compress(b"a" * 50_000_001), "x.gz")
    packed = gzip.compress("step: 1  tps: 900  mfu\n".encode("utf-8-sig"))
    assert text_of(packed, "x.gz").lines == ("step: 1  tps: 900  mfu",)
    assert text_of("step: 1\n".encode("utf-16"), "x.txt").lines == ("step: 1",)
    assert len(text_of(b"a" * 100_000, "x.log").lines[0]) == 4_000
