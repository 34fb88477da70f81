"""Rules that several stacks share: reasons to refuse a plan, the flags of its habits, and the
world line of files."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import yaml  # type: ignore[import-untyped, unused-ignore]

from core.errors import shown
from core.model.transformer import is_mla, is_moe
from hardware.habits import flags
from runners.recipes import quoting
from runners.recipes.header import Blank, to_fill_in
from runners.recipes.job import RecipeError, RecipeJob
from runners.recipes.target import Recovered
from runners.recipes.yaml_text import dumped

Read = Callable[[Mapping[str, str]], Recovered]
DEGREES = {
    "tp": "tensor parallelism",
    "pp": "pipeline parallelism",
    "cp": "context parallelism",
    "ep": "expert parallelism",
    "etp": "tensor parallelism of experts",
}


def first(*reasons: str) -> str:
    """The first reason that is not empty, without its full stop; '' if there is none."""
    return next((reason.removesuffix(".") for reason in reasons if reason), "")


def lacks(job: RecipeJob, stack: str, *degrees: str) -> str:
    """Reason to refuse a plan that uses one of `degrees`, which the stack lacks; '' if it does
    not."""
    for name in degrees:
        if (size := getattr(job.layout, name)) > 1:
            return f"{stack} has no {DEGREES[name]}, and the plan has {name} {size}."
    return ""


def takes(stack: str, what: str, value: str, allowed: Collection[str]) -> str:
    """Reason to refuse a value that the stack cannot express; '' if it can."""
    if value in allowed:
        return ""
    return f"{stack} cannot express {what} {value}: it takes {', '.join(allowed)}."


def shards(job: RecipeJob, stack: str, allowed: Collection[str]) -> str:
    """Reason to refuse the data parallelism of a plan; on one rank there is nothing to shard."""
    if job.dp == 1 and job.layout.cp == 1:
        return ""
    return takes(stack, "sharding", job.layout.sharding, allowed)


def offloads(job: RecipeJob, stack: str, allowed: Collection[tuple[str, str]]) -> str:
    """Reason to refuse the offloading of a plan; allowed are pairs of (optimizer, weights)."""
    pair = (job.layout.offload_optimizer, job.layout.offload_params)
    if pair in allowed:
        return ""
    return (
        f"{stack} cannot leave optimizer states on {pair[0]} and weights on {pair[1]}."
        if "none" not in pair
        else f"{stack} cannot offload {'weights' if pair[0] == 'none' else 'optimizer states'} "
        f"alone to {pair[1] if pair[0] == 'none' else pair[0]}."
    )


def habits(job: RecipeJob) -> dict[str, str]:
    """Habit -> choice of hardware/habits/flags.csv: what the forecast of the job assumes. A habit
    that the layout has no use for is left out."""
    lay, held = job.layout, job.habits

    def on(is_on: bool) -> str:
        return "on" if is_on else "off"

    found = {
        "attention": held.attention,
        "compile": on(job.compiled),
        "cuda_graphs": on(held.cuda_graphs),
        "loss": "chunked" if held.chunked_loss else "whole",
        "packing": on(held.packed),
        "optimizer_states": job.optimizer,
        "recompute": lay.recompute,
        "checkpoint_interval": "steps",
        "async_checkpoint": on(held.async_checkpoint),
    }
    if job.dp * lay.cp > 1:
        half = "fp16" if job.precision == "fp16" else "bf16"
        found["gradient_overlap"] = on(held.overlaps_gradients)
        found["gradients"] = "fp32" if held.reduces_in_fp32 else half
        if lay.sharding != "ddp":
            found["param_overlap"] = on(held.overlaps_gradients and held.overlaps_weights)
    if lay.tp > 1:
        found["async_tp"] = on(held.async_tp)
    if is_moe(job.model) and lay.ep > 1:
        spans = lay.ep * lay.etp > job.gpus_per_node
        found["dispatcher"] = "per_node" if held.sends_once_per_node and spans else "per_expert"
    return found


def settings(job: RecipeJob, stack: str) -> dict[str, flags.Value]:
    """The flags of a stack that make the habits of the job, with their values."""
    modules = " ".join(recomputed_modules(job))
    return flags.settings(stack, habits(job), steps=job.save_every, modules=modules)


def recomputed_modules(job: RecipeJob) -> list[str]:
    """The modules of a layer that backward computes again, by Megatron's names; none where the
    recompute of the plan is not by module."""
    m = job.model
    named = {
        "norm_act": {"layernorm": True, "moe_act": is_moe(m), "mla_up_proj": is_mla(m)},
        "mlp": {"mlp": bool(m.num_dense_layers) or not is_moe(m), "moe": is_moe(m)},
    }
    return [name for name, has in named.get(job.layout.recompute, {}).items() if has]


def module_obstacle(job: RecipeJob, stack: str) -> str:
    """Why a stack of Megatron-Core cannot compute norms and activations again alone; '' if it
    can, or need not."""
    if job.layout.recompute != "norm_act":
        return ""
    if not (is_moe(job.model) or is_mla(job.model)):
        return (
            f"{stack} computes norms and activations again alone only before experts and latent "
            f"attention (recompute norm_act), and {job.model_label} has neither."
        )
    if job.precision == "fp8":
        return (
            f"{stack} does not compute norms and activations again with fp8 of delayed scaling: "
            "plan with fp8_blockwise or mxfp8."
        )
    return ""


def cannot(job: RecipeJob, stack: str, label: str) -> str:
    """Reason to refuse a plan that assumes what the stack cannot be asked for; '' if it can."""
    for habit, choice in flags.unknown(stack, habits(job)):
        what, _, field = flags.HABITS[habit]
        has = ", ".join(flags.choices_of(stack, habit)) or "no setting for it"
        return f"{label} cannot express {what} {choice} ({field}): it has {has}."
    return ""


def differences(job: RecipeJob, stack: str) -> list[str]:
    """What the file of this stack does otherwise than forecast, for its first lines."""
    return [f"Not as forecast: {text}." for text in flags.differences(stack, habits(job))]


def dense_only(job: RecipeJob, stack: str) -> str:
    """Reason to refuse a model whose layers are more than grouped-query attention and one MLP."""
    m = job.model
    parts = {
        "experts": bool(is_moe(m)),
        "latent attention": bool(is_mla(m)),
        "state-space or linear-attention layers": bool(m.num_ssm_layers or m.num_linear_layers),
        "layers without an MLP or without attention": bool(m.num_mlp_layers)
        or not m.ffn_hidden_size,
        "sliding windows": bool(m.num_window_layers),
        "gated attention": bool(m.attention_gate),
        f"{float(m.norms_per_layer):g} norms a layer": m.norms_per_layer != 2,
    }
    what = next((name for name, has in parts.items() if has), "")
    return f"{stack} has no {what}, and {job.model_label} has." if what else ""


def world_line(job: RecipeJob) -> str:
    """A comment with the degrees, for files whose tool takes them from its launcher."""
    lay = job.layout
    return f"world {job.num_gpus} = tp {lay.tp} x pp {lay.pp} x cp {lay.cp} x dp {job.dp}"


def world_of(text: str, name: str) -> dict[str, int]:
    """Read such a line: world, tp, pp, cp, dp. RecipeError if they do not multiply."""
    match = re.search(r"^# world (\d+) = tp (\d+) x pp (\d+) x cp (\d+) x dp (\d+)$", text, re.M)
    if not match:
        raise RecipeError(f"{name} does not say its world size.")
    world, tp, pp, cp, dp = (int(part) for part in match.groups())
    if world != tp * pp * cp * dp:
        raise RecipeError(f"{name}: tp {tp} x pp {pp} x cp {cp} x dp {dp} is not {world}.")
    return {"world_size": world, "tp": tp, "pp": pp, "cp": cp, "dp": dp}


def batched(text: str, name: str, micro: Any, steps: Any) -> Recovered:
    """Read the layout of a file that has its micro-batch, its accumulation and a world line."""
    degrees = world_of(text, name)
    if not all(isinstance(size, int) and size > 0 for size in (micro, steps)):
        raise RecipeError(f"{name} has no micro-batch or no number of accumulation steps.")
    return Recovered(
        world_size=degrees["world_size"],
        tp=degrees["tp"],
        pp=degrees["pp"],
        cp=degrees["cp"],
        dp=degrees["dp"],
        micro_batch_size=micro,
        num_microbatches=steps,
        global_batch_size=micro * steps * degrees["dp"],
    )


def mapping(files: Mapping[str, str], name: str) -> dict[str, Any]:
    """A YAML file as a mapping; RecipeError for anything else."""
    try:
        given = yaml.safe_load(files[name])
    except (KeyError, yaml.YAMLError):
        raise RecipeError(f"There is no {name} that is YAML.") from None
    if not isinstance(given, dict):
        raise RecipeError(f"{name} is no mapping.")
    return given


def known_keys(given: Any, known: Collection[str], where: str) -> dict[str, Any]:
    """A mapping whose keys are all known, because most tools ignore others without a warning."""
    if not isinstance(given, dict):
        raise RecipeError(f"{where} is no mapping.")
    if unknown := sorted(str(key) for key in given if key not in known):
        raise RecipeError(f"{where} has the key {shown(unknown[0])}, which is none of the known.")
    return given


def careful(read: Read, name: str) -> Read:
    """Context in which errors of reading a file from outside become one sentence."""

    def reader(files: Mapping[str, str]) -> Recovered:
        try:
            return read(files)
        except RecipeError:
            raise
        except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as e:
            raise RecipeError(f"{name} lacks or garbles something: {shown(str(e))}.") from None

    return reader


def blank(options: Mapping[str, str], option: str, name: str, what: str) -> Blank:
    """A path or name that only the user knows: the value of an option, or one to fill in."""
    if given := options.get(option, ""):
        return Blank(name=name, what=what, value=quoting.path(given, option), known=True)
    return Blank(name=name, what=f"{what} (--option {option}=...)")


def rate(options: Mapping[str, str], name: str) -> Blank:
    """The learning rate, given or to fill in."""
    what = "learning rate (--option learning_rate=...)"
    if given := options.get("learning_rate", ""):
        value = quoting.positive(given, "learning_rate", most=10.0)
        return Blank(name=name, what=what, value=value, known=True)
    return Blank(name=name, what=what)


def checkpoints(options: Mapping[str, str], name: str) -> Blank:
    """The folder of checkpoints, given or to fill in."""
    what = "folder of checkpoints, on storage that every node sees"
    return blank(options, "checkpoint_path", name, what)


def begun(job: RecipeJob, options: Mapping[str, str], name: str, inside: str = "") -> list[Blank]:
    """The checkpoint of the stage before, whose weights this one begins with; [] for none.
    `inside`: where it lies in that stage's folder of checkpoints."""
    if (start := job.start) is None:
        return []
    what = f"last checkpoint of stage {start.folder}, whose weights it begins with"
    if not start.is_same_stack:
        what += ", converted for this stack"
    elif not start.is_whole:
        what += ", merged into whole weights"
    elif given := options.get("checkpoint_path", ""):
        beside = given.rstrip("/").rpartition("/")[0]
        value = quoting.path(f"{beside}/{start.folder}{inside}", "checkpoint_path")
        return [Blank(name=name, what=what, value=value, known=True)]
    return [Blank(name=name, what=what)]


def weights(job: RecipeJob, options: Mapping[str, str], name: str, inside: str = "") -> Blank:
    """The weights of the model in Hugging Face form: of the stage before, or the user's."""
    mine = blank(options, "model_path", name, f"weights of {job.model_label}")
    return next(iter(begun(job, options, name, inside)), mine)


def placed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Keys a.b as a part a with a key b.

    >>> placed({"a.b": 1, "a.c": 2, "d": 3})
    {'a': {'b': 1, 'c': 2}, 'd': 3}
    """
    found: dict[str, Any] = {}
    for key, value in values.items():
        part, dot, name = key.partition(".")
        if dot:
            found.setdefault(part, {})[name] = value
        else:
            found[key] = value
    return found


def yaml_file(head: str, blanks: Sequence[Blank], values: Mapping[str, Any]) -> str:
    """A YAML file: its values to fill in, its header, its other keys."""
    return to_fill_in(blanks, lambda b: dumped([{b.name: b.value}])) + head + dumped([values])
