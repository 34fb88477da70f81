"""Where P10 and P90 of a plan come from: the width of the forecast, and its two ends."""

from __future__ import annotations

from math import log

from app.forecast.case import Case
from app.provenance.of_facts import fractions
from app.provenance.record import Record, by_topic, record
from core.evidence.uncertainty import Z_90, doublings
from core.numeric import as_float
from hardware.measured import measured_accelerators

UNSEEN = "unseen_accelerator_sigma"


def sigma_record(case: Case) -> Record:
    """The log width of the tokens/s forecast: independent causes added in quadrature."""
    at, m = case.plan.tokens_per_s, case.machine
    value = log(at.p50 / at.p10) / Z_90
    stack, eff = case.scenario.stack, case.eff
    causes = {
        "unmeasured_sigma": not (m.accelerator.matmul_flops_per_s or "matmul" in m.measured),
        UNSEEN: m.accelerator.name not in measured_accelerators()
        and not m.measured >= {"matmul", "attention", "memory", "elementwise"},
        "network_sigma": case.plan.num_nodes > 1
        and not (m.network_known or "scale_out" in m.measured),
    }
    terms = [*fractions(stack, *(name for name, holds in causes.items() if holds))]
    beyond = as_float(doublings(float(case.plan.num_gpus)))
    if beyond > 0:
        terms.append(
            record("scale_sigma", "More GPUs than any published run", beyond
                   * as_float(eff.scale_sigma), "", "computed", topic=by_topic("Interval"),
                   inputs=fractions(stack, "scale_sigma")))  # fmt: skip
    others = sum((t.value or 0.0) ** 2 for t in terms)
    own = record(
        "stack_sigma", "Forecast error of this stack and task", max(value**2 - others, 0.0) ** 0.5,
        "", "computed", topic=by_topic("Interval"),
        inputs=fractions(stack, "throughput_sigma", "unknown_stack_sigma", "experts_sigma",
                         "adapters_sigma"),
        note="what your measurement left of it"
        if case.scenario.anchor_tokens_per_s_per_gpu is not None
        else "the causes below that hold, in quadrature",
    )  # fmt: skip
    inputs = (own, *terms)
    return record(
        "throughput_sigma", "Width of the speed forecast (log)", value, "", "computed",
        formula=f"sqrt({' + '.join(f'{t.key}^2' for t in inputs)})", inputs=inputs,
        topic=by_topic("Interval"),
    )  # fmt: skip


def ends(base: Record, low: float, high: float, sigma: Record, label: str) -> tuple[Record, Record]:
    """P10 and P90 of a quantity with a normally distributed log error."""
    p10, p90 = (
        record(
            f"{base.key}_{name}", f"{label}, {name.upper()}", value, base.unit, "computed",
            formula=f"{base.key} * exp({sign}{Z_90:.10g} * {sigma.key})", inputs=(base, sigma),
            topic=by_topic("Interval"),
        )
        for name, value, sign in (("p10", low, "-"), ("p90", high, ""))
    )  # fmt: skip
    return p10, p90
