"""What other tools measured: their output read, judged and put beside the forecast.

constants       constants of a machine from an import-result/1: measured over assumed,
                joined with its prior as those of a calibration are
                (runners/calibration/fit.py)
log_deepspeed   logs of DeepSpeed: global_step=10, RunningAvgSamplesPerSec=25.0,
                CurrSamplesPerSec=25.7,
log_hf          logs of the Hugging Face Trainer: dictionaries, one a line, and a summary at
                the end
log_megatron    logs of Megatron-LM and what came of it (Megatron-DeepSpeed, NeMo, Megatron-
                Bridge, Primus)
log_plain       logs of anything that prints tokens per second: 5,762 tok/s,
                Tokens/s/device: 5300
log_torchtitan  logs of TorchTitan: step: 10 loss: ... memory: 40.1GiB(50.7%) tps: 7,284
                mfu: 42.6%
mamf            what mamf-finder prints: rates of matmuls by shape, and the best of them
nccl_tests      the tables that nccl-tests and rccl-tests print: one line a message size
profiler        A trace of the torch profiler (Chrome trace JSON): the time of a step, and
                what its kernels do
result          import-result/1: what was taken from the output of another tool, with where
                it came from
steps           A training log as steps, whatever wrote it, and the steady state of them
text            A file that some tool wrote, as lines: within bounds, without colours,
                hostile until parsed
training_log    A training log of any format that is read: the steady state, and what wrote
                it

    constants       constants of a machine from an import-result/1: measured over assumed,
                    joined with its prior as those of a calibration are
                    (runners/calibration/fit.py)
    log_deepspeed   logs of DeepSpeed: global_step=10, RunningAvgSamplesPerSec=25.0,
                    CurrSamplesPerSec=25.7,
    log_hf          logs of the Hugging Face Trainer: dictionaries, one a line, and a summary at
                    the end
    log_megatron    logs of Megatron-LM and what came of it (Megatron-DeepSpeed, NeMo, Megatron-
                    Bridge, Primus)
    log_plain       logs of anything that prints tokens per second: 5,762 tok/s,
                    Tokens/s/device: 5300
    log_torchtitan  logs of TorchTitan: step: 10 loss: ... memory: 40.1GiB(50.7%) tps: 7,284
                    mfu: 42.6%
    mamf            what mamf-finder prints: rates of matmuls by shape, and the best of them
    nccl_tests      the tables that nccl-tests and rccl-tests print: one line a message size
    profiler        a trace of the torch profiler (Chrome trace JSON): the time of a step, and
                    what its kernels do
    result          import-result/1: what was taken from the output of another tool, with where
                    it came from
    steps           a training log as steps, whatever wrote it, and the steady state of them
    text            a file that some tool wrote, as lines: within bounds, without colours,
                    hostile until parsed
    training_log    a training log of any format that is read: the steady state, and what wrote
                    it
"""
