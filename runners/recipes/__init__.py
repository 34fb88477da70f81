"""Recipes: files that start a plan in the user's own stack.

accelerate_config  Accelerate's YAML for FSDP2 and for DeepSpeed, with the batch as
                   Trainer's arguments
accelerate_launch  Accelerate's launch command, once on each node
arguments          shell files with the arguments of a training program, written and read
                   back
axolotl            Axolotl's YAML: pre-training, full fine-tuning, LoRA and QLoRA
deepspeed          DeepSpeed's configuration: ZeRO stage, offload, number formats, overlap
                   and batch sizes
fsdp2              training script for PyTorch's FSDP2: fsdp2_train.py with the plan
                   filled in
fsdp2_train        train a decoder with PyTorch's FSDP2
header             header of every file: its origin, its forecast and its assumptions; and
                   the block of values that the plan does not decide
hostfile           DeepSpeed's hostfile: one host and its GPUs per line
job                RecipeJob: the numbers and names of a plan that its launch files need
kubernetes         an Indexed Job with a headless Service, a JobSet, a PyTorchJob, a
                   TrainJob
launch             parts of all launcher files: the command, its processes, its variables
llama_factory      LLaMA-Factory's YAML: full fine-tuning, LoRA and QLoRA
maxtext            MaxText's YAML for GPUs and TPUs
megatron           arguments of Megatron-LM's pretrain_gpt.py, as a shell file
nccl               NCCL variables for the fabric of a job, as a file to source before a
                   launcher
nemo               recipe for Megatron-Bridge, NeMo's trainer, which does not install with
                   our torch
preflight          preflight script, which checks one node before a job, with bash and
                   torch if installed
quoting            checks and escapes of user input that is written into files
ray                a Ray Train script that runs the training script in every worker, and
                   its job
registry           registry of all launch files, and the functions that check, write and
                   read them back
skypilot           a task for sky jobs launch, on the cloud and machine of the plan
slurm              a batch file that starts torchrun once on each node
stack_rules        rules that several stacks share: reasons to refuse a plan, and the
                   world line of files
target             one kind of launch file, with its writer and its reader
torchrun           on one node, on several with a rendezvous, and elastic
torchtitan         a module, one of its configurations, and the overrides of the plan
torchtune          torchtune's YAML: full fine-tuning, LoRA and QLoRA of its models
yaml_text          YAML in the style of a person: no anchors, scripts as blocks
"""
