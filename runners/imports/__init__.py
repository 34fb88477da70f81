"""Imports of measurements from the output of other tools.

constants       constants of a machine from an import-result/1
log_blocks      logs of a block of metrics for each step: OLMo, OLMo-core, Composer
log_csv         metrics files of Lightning, and other tables with tokens per second
log_deepspeed   logs of DeepSpeed: global_step=10, RunningAvgSamplesPerSec=25.0,
                CurrSamplesPerSec=25.7, ...
log_dllogger    logs of DLLogger: DLLL {"type": "LOG", "step": 16, "data": {...}}
log_hf          logs of the Hugging Face Trainer: one dictionary per line, and a summary
                at the end; trainer_state.json
log_llama       logs of LLaMA-Factory, trainer_log.jsonl: one JSON object per logged step
log_megatron    logs of Megatron-LM and its relatives (Megatron-DeepSpeed, NeMo,
                Megatron-Bridge, Primus, GPT-NeoX, nanotron)
log_plain       logs of anything that prints tokens per second: 5,762 tok/s,
                Tokens/s/device: 5300
log_swift       logs of ms-swift, printed or logging.jsonl: one dictionary per logged step
log_times       logs that say how long a step took: Levanter, PaxML, LitGPT, ColossalAI
log_torchtitan  logs of TorchTitan: step: 10  loss: ...  memory: 40.1GiB(50.7%)  tps:
                7,284  mfu: 42.6%
loss            the training loss that a log ends with, in any format
mamf            output of mamf-finder: rates of matmuls by shape, and the best of them
nccl_tests      tables of nccl-tests and rccl-tests: one line per message size
profiler        traces of the torch profiler (Chrome trace JSON): the time of a step, by
                kind of kernel
result          import-result/1: figures from the output of another tool, with their
                origin
steps           steps of a training log, in any format, and their steady state
text            bounded reader of text files from other tools: lines without colours
training_log    training logs of all supported formats: the steady state, and the format
"""
