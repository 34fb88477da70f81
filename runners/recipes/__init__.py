"""Files that start a plan in the reader's own stack.

accelerate_config  accelerate's YAML for FSDP2 and for DeepSpeed, with the batch as
                   Trainer's arguments
accelerate_launch  accelerate's launch command, once on each node
arguments          A shell file that hands a training program its arguments, written and
                   read back
axolotl            axolotl's YAML. It cannot be installed beside our torch, so its own
                   reader never saw it
deepspeed          DeepSpeed's configuration: ZeRO stage, offload, number format and the
                   three batch sizes
fsdp2              A training script for PyTorch's FSDP2: fsdp2_train.py with the plan
                   written into it
fsdp2_train        train a decoder with PyTorch's FSDP2
header             what the first lines of every file say: where it is from, what was
                   forecast, what was assumed
hostfile           DeepSpeed's hostfile: a host and its GPUs a line
job                A plan as its launch files need it: numbers and names that were decided,
                   and nothing else
kubernetes         kubernetes: an Indexed Job with a headless Service, a JobSet, a
                   PyTorchJob
launch             what the files of every launcher hold: the command, its processes, its
                   variables
llama_factory      LLaMA-Factory's YAML: full fine-tuning, LoRA and QLoRA
maxtext            MaxText's YAML on GPUs
megatron           arguments of Megatron-LM's pretrain_gpt.py, as a shell file
nccl               NCCL's environment of the job's fabric as a file of its own, to be
                   sourced before a launcher
nemo               A recipe for Megatron-Bridge, NeMo's trainer
preflight          A script that looks at one node before it is given a job: nothing but
                   bash, and torch if there
quoting            what a person gave, before it is written into a file: escaped for that
                   file, or refused
ray                ray: a Ray Train script that runs the training script in every worker,
                   and a job that submits it
registry           every kind of launch file, and one door to all of them: checked, written,
                   read back
skypilot           SkyPilot: a task for sky jobs launch, on the cloud and machine of the
                   plan
slurm              SLURM: a batch file that starts torchrun once on each node
stack_rules        what the files of several stacks share: why a plan is refused, and how a
                   file says its world
target             one kind of launch file: how it is written, and how it is read back
torchrun           torchrun: on one node, on several with a rendezvous, and elastic between
                   two numbers of them
torchtitan         TorchTitan: a module, one of its configurations, and what the plan
                   changes of it
torchtune          torchtune's YAML: full fine-tuning, LoRA and QLoRA of the models that it
                   has
yaml_text          YAML as a person would write it: no anchors, scripts as blocks

    accelerate_config  accelerate's YAML for FSDP2 and for DeepSpeed, with the batch as
                       Trainer's arguments
    accelerate_launch  accelerate's launch command, once on each node
    arguments          a shell file that hands a training program its arguments, written and
                       read back
    axolotl            axolotl's YAML. It cannot be installed beside our torch, so its own
                       reader never saw it
    deepspeed          DeepSpeed's configuration: ZeRO stage, offload, number format and the
                       three batch sizes
    fsdp2              a training script for PyTorch's FSDP2: fsdp2_train.py with the plan
                       written into it
    fsdp2_train        train a decoder with PyTorch's FSDP2
    header             what the first lines of every file say: where it is from, what was
                       forecast, what was assumed
    hostfile           DeepSpeed's hostfile: a host and its GPUs a line
    job                a plan as its launch files need it: numbers and names that were decided,
                       and nothing else
    kubernetes         kubernetes: an Indexed Job with a headless Service, a JobSet, a
                       PyTorchJob
    launch             what the files of every launcher hold: the command, its processes, its
                       variables
    llama_factory      LLaMA-Factory's YAML: full fine-tuning, LoRA and QLoRA
    maxtext            MaxText's YAML on GPUs
    megatron           arguments of Megatron-LM's pretrain_gpt.py, as a shell file
    nccl               NCCL's environment of the job's fabric as a file of its own, to be
                       sourced before a launcher
    nemo               a recipe for Megatron-Bridge, NeMo's trainer
    preflight          a script that looks at one node before it is given a job: nothing but
                       bash, and torch if there
    quoting            what a person gave, before it is written into a file: escaped for that
                       file, or refused
    ray                ray: a Ray Train script that runs the training script in every worker,
                       and a job that submits it
    registry           every kind of launch file, and one door to all of them: checked, written,
                       read back
    skypilot           SkyPilot: a task for sky jobs launch, on the cloud and machine of the
                       plan
    slurm              SLURM: a batch file that starts torchrun once on each node
    stack_rules        what the files of several stacks share: why a plan is refused, and how a
                       file says its world
    target             one kind of launch file: how it is written, and how it is read back
    torchrun           torchrun: on one node, on several with a rendezvous, and elastic between
                       two numbers of them
    torchtitan         TorchTitan: a module, one of its configurations, and what the plan
                       changes of it
    torchtune          torchtune's YAML: full fine-tuning, LoRA and QLoRA of the models that it
                       has
    yaml_text          YAML as a person would write it: no anchors, scripts as blocks
"""
