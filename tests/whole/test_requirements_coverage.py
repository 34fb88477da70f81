"""Every name the product promises to know changes the forecast, or is listed as not modelled.

hardware/modelled.csv gives each name a reference scenario and the setting that turns it on; the
forecast with the setting must differ from the one without, in the direction that it says.
"""

import math

import pytest

from app.bill.bill import bill_of
from app.forecast import answer as forecast_answer
from app.forecast import resolve
from core.scenario import Scenario
from hardware.claims import EFFECTS, modelled, not_modelled

PROMISED = {
    "Parallelism and sharding": (
        "DDP", "Gradient accumulation", "ZeRO-1", "ZeRO-2", "ZeRO-3", "FULL_SHARD",
        "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "reshard_after_forward=True",
        "reshard_after_forward=False", "sub-mesh", "CPUOffloadPolicy", "optimizer on the CPU",
        "optimizer on NVMe", "parameters on the CPU", "parameters on NVMe", "ZeRO++",
        "Naive model parallel", "GPipe", "1F1B", "Interleaved 1F1B", "Zero bubble",
        "Tensor parallel", "sequence parallel", "Async tensor parallel", "ring", "all-gather",
        "Ulysses", "Expert parallel", "Expert tensor parallel", "Capacity factor",
        "Expert imbalance", "3D and 4D", "LoRA", "QLoRA", "Activations on the CPU",
    ),
    "Precision": (
        "fp16", "bf16", "fp8, tensorwise", "fp8, rowwise", "fp8, blockwise", "mxfp8", "nvfp4",
        "mxfp4", "NF4 weights", "8-bit optimizers", "Adafactor", "Muon", "SGD",
        "Gradients in 16 bits", "Gradients in fp32", "Gradients in 16 bits and an fp32 sum",
    ),
    "Recompute": ("None", "Selective", "Full", "Offloaded"),
    "Knobs": (
        "torch.compile", "CUDA graphs", "FlashAttention 2", "FlashAttention 3",
        "Chunked cross-entropy", "Distributed optimizer",
    ),
    "Software stacks": (
        "Megatron-Core", "Megatron-LM", "NeMo", "Megatron-Bridge", "TorchTitan", "Composer",
        "llm-foundry", "Lightning Fabric", "Accelerate", "trl", "torchtune", "axolotl",
        "DeepSpeed", "nanotron", "unsloth", "LLaMA-Factory", "ms-swift", "GPT-NeoX", "MaxText",
        "Levanter", "Pax", "DPO", "GRPO",
    ),
    "Hardware": (
        "V100", "A100 40", "A100 80", "A10G", "L4", "L40S", "RTX A6000", "RTX 4090", "RTX 5090",
        "RTX PRO 6000", "H100 SXM", "H100 PCIe", "H100 NVL", "H200", "GH200", "B200", "B300",
        "GB200 NVL72", "GB300 NVL72", "MI250X", "MI300X", "MI325X", "MI350X", "MI355X",
        "Gaudi 2", "Gaudi 3", "Trainium 1", "Trainium 2", "Trainium 3", "TPU v4", "TPU v5e",
        "TPU v5p", "TPU v6e", "TPU v7x", "TPU v6p",
    ),
    "Clouds and prices": (
        "AWS on demand", "AWS spot", "AWS capacity blocks", "Azure", "GCP", "OCI", "CoreWeave",
        "Lambda", "Crusoe", "Together", "Nebius", "RunPod", "Vast.ai", "Modal", "Lepton", "Fal",
        "Intel Tiber", "Verda", "Hyperstack", "Shadeform", "Spheron", "Prime Intellect", "Vultr",
        "DigitalOcean", "Paperspace", "OVH", "Hot Aisle", "Own cluster",
    ),
    "Launchers and fabrics": (
        "torchrun", "SLURM", "Ray Train", "SkyPilot", "DeepSpeed launcher", "Accelerate launch",
        "SHARP", "RoCE", "TCPX", "Slingshot",
    ),
    "Operations": (
        "Spot preemption", "Hardware failures", "elastic restart", "stragglers",
        "Checkpoint interval", "Hangs and divergence", "Energy", "PUE", "carbon",
    ),
}  # fmt: skip
OF_RUNS = ("later", "more kWh", "more carbon")
LEAST_CHANGE = 1e-4  # of the forecast: less is rounding


def forecast(fields):
    """Tokens/s and bytes of the first plan, or None where nothing fits; of no particular stack
    unless one is named, so that a name changes nothing else."""
    asked = Scenario.parse({"stack": "generic", **fields})
    found = forecast_answer.answer(resolve.resolve_strict(asked), top=1)
    if not found.plans:
        return None
    return found.plans[0].tokens_per_s.p50, sum(found.plans[0].memory_bytes.values())


def changed(before, after):
    return any(
        not math.isclose(a, b, rel_tol=LEAST_CHANGE) for a, b in zip(before, after, strict=True)
    )


@pytest.mark.parametrize("group", PROMISED)
def test_every_promised_name_is_in_one_of_the_two_tables(group):
    known = [m.name for m in (*modelled(), *not_modelled()) if m.group == group]
    assert not [name for name in PROMISED[group] if not any(name in k for k in known)]


def test_no_name_is_in_both_tables_and_none_twice():
    names = [(m.group, m.name) for m in (*modelled(), *not_modelled())]
    assert len(names) == len(set(names))
    assert {m.group for m in modelled()} <= set(PROMISED)
    assert {m.effect for m in modelled()} <= set(EFFECTS)


@pytest.mark.parametrize(
    "m",
    [m for m in modelled() if m.effect not in ("dollars", *OF_RUNS)],
    ids=lambda m: f"{m.group}: {m.name}",
)
def test_the_name_changes_the_forecast(m):
    before, after = forecast(m.reference_fields()), forecast(m.fields())
    assert after is not None, "nothing fits with the setting"
    if m.effect == "possible":
        assert before is None
        return
    assert before is not None, "nothing fits without the setting"
    assert changed(before, after)
    speed, memory = (b / a - 1 for a, b in zip(before, after, strict=True))
    by = {
        "faster": speed,
        "slower": -speed,
        "less memory": -memory,
        "more memory": memory,
        "differs": math.inf,
    }[m.effect]
    assert by > LEAST_CHANGE, f"tokens/s {speed:+.2%}, memory {memory:+.2%}"


@pytest.mark.parametrize(
    "m", [m for m in modelled() if m.effect == "dollars"], ids=lambda m: m.name
)
def test_the_name_changes_the_dollars(m):
    def dollars(fields):
        found = forecast_answer.answer(resolve.resolve_strict(Scenario.parse(fields)), top=100_000)
        return found, [p.usd.p50 for p in found.plans if p.usd is not None]

    (_, before), (found, after) = dollars(m.reference_fields()), dollars(m.fields())
    assert after
    assert before != after
    wanted = m.fields()
    for plan in found.plans:
        assert plan.offer.provider == wanted.get("cloud", plan.offer.provider)
        if "purchase" in dict(p.split("=") for p in m.setting.split("&")):
            assert plan.offer.purchase == wanted["purchase"]


@pytest.mark.parametrize("m", [m for m in modelled() if m.effect in OF_RUNS], ids=lambda m: m.name)
def test_the_name_changes_the_run(m):
    def run(fields):
        scenario = resolve.resolve_strict(Scenario.parse(fields))
        plan = forecast_answer.answer(scenario, top=1).plans[0]
        energy = bill_of(scenario, plan).energy
        return {
            "later": plan.expected_hours,
            "more kWh": energy.total.mean,
            "more carbon": energy.carbon.figure.mean,
        }[m.effect]

    assert run(m.fields()) > (1 + LEAST_CHANGE) * run(m.reference_fields())
