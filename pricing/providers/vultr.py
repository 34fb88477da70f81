"""Vultr plans, without a key: cloud GPUs and bare metal, on demand and preemptible.

Prices are per hour of the whole plan; a location may have its own. `gpu_count` of a cloud plan is a
text, and most are parts of a GPU ("1/8"). The list does not say which GPUs a bare-metal plan has:
those that are known stand here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pydantic import Field

from core.machine.offer import Offer, Purchase
from pricing.fetch.session import Session
from pricing.providers.boundary import Raw, document, offer, parsed

BASE = "https://api.vultr.com/v2"
# Plan -> GPU, form, number, memory of one in GB.
BARE_METAL = {
    "vbm-48c-1024gb-4-a100-gpu": ("A100", "", 4, 80),
    "vbm-112c-2048gb-8-h100-gpu": ("H100", "SXM", 8, 80),
    "vbm-112c-2048gb-8-a100-gpu": ("A100", "SXM", 8, 80),
    "vbm-64c-2048gb-8-l40-gpu": ("L40S", "", 8, 48),
    "vbm-72c-480gb-gh200-gpu": ("GH200", "", 1, 96),
    "vbm-256c-2048gb-8-mi300x-gpu": ("MI300X", "", 8, 192),
}
FORMS = {"A100": "PCIe"}  # of cloud GPUs


class Cost(Raw):
    hourly_cost: float | None = None
    hourly_cost_preemptible: float | None = None


class Plan(Cost):
    id: str
    locations: list[str]
    location_cost: dict[str, Cost] | list[object] = Field(default_factory=dict)
    deploy_ondemand: bool = True
    deploy_preemptible: bool = False
    gpu_type: str = ""
    gpu_count: str | float | None = None
    gpu_vram_gb: float | None = None


class Cloud(Raw):
    plans: list[object]


class Metal(Raw):
    plans_metal: list[object]


def fetch(session: Session) -> Iterable[Offer]:
    """One offer per plan, price kind and location."""
    cloud = document(Cloud, session.json(f"{BASE}/plans?type=vcg&per_page=500"))
    for plan in parsed(session, Plan, cloud.plans):
        count = str(plan.gpu_count or "").strip()
        if not plan.gpu_type or not count.removesuffix(".0").isdecimal():
            session.leave_out("a fraction of a GPU")
            continue
        gpus = int(count.removesuffix(".0")[:9])
        memory = plan.gpu_vram_gb / gpus if plan.gpu_vram_gb and gpus else None
        name = plan.gpu_type.removeprefix("NVIDIA_")
        yield from _offers(session, plan, (name, FORMS.get(name, ""), gpus, memory))
    metal = document(Metal, session.json(f"{BASE}/plans-metal?per_page=500"))
    for plan in parsed(session, Plan, metal.plans_metal):
        if plan.id in BARE_METAL:
            yield from _offers(session, plan, BARE_METAL[plan.id])
        else:
            session.leave_out("no GPU plan that is known")


def _offers(
    session: Session, plan: Plan, gpu: tuple[str, str, int, float | None]
) -> Iterator[Offer]:
    own = plan.location_cost if isinstance(plan.location_cost, dict) else {}
    for location in plan.locations:
        cost = own.get(location, plan)
        prices: tuple[tuple[Purchase, bool, float | None], ...] = (
            ("on_demand", plan.deploy_ondemand, cost.hourly_cost),
            ("spot", plan.deploy_preemptible, cost.hourly_cost_preemptible),
        )
        for purchase, sold, usd in prices:
            if not sold or usd is None:
                session.leave_out(f"not sold {purchase}")
                continue
            yield from offer(
                session,
                provider="vultr",
                instance_type=plan.id,
                region=location,
                purchase=purchase,
                usd_per_hour=usd,
                observed_at=session.today,
                source="Vultr API: plans",
                quality="high",
                gpu_name=gpu[0],
                form=gpu[1],
                gpu_count=gpu[2],
                gpu_memory_gib=gpu[3],
            )
