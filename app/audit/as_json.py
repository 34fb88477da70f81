"""An audit as JSON: the keys that docs/audit.md documents. Add, never rename."""

from __future__ import annotations

from app.audit.audit import Audit
from app.audit.claim import Claim
from app.audit.document import assumption_sentences, claim_sentence, verdict_sentence
from app.audit.money import price_of, prices_of, usd_of
from app.audit.published import Best
from app.audit.speed import Decides, Speed
from app.document.as_json import Json, attributes, number
from app.scenario.link_query import document_head

SCHEMA_VERSION = 1


def audit_json(audit: Audit) -> dict[str, Json]:
    """The document of `runcast audit --json`; null: not given or not known."""
    claim = audit.claim
    verdicts: dict[str, Json] = {"overall": audit.verdict}
    verdicts |= {s.precision: s.verdict for s in audit.speeds}
    scenario = claim.scenario.model_copy(update={"precision": audit.decisive.precision})
    return {
        **document_head(scenario, SCHEMA_VERSION),
        "verdict": verdicts,
        "precision": audit.decisive.precision,
        "counted": list(audit.counted),
        "sentences": [claim_sentence(claim), verdict_sentence(audit)],
        "reasons": list(audit.decisive.reasons),
        "decides": _decides(audit.decisive.decides),
        "claim": _claim(claim),
        "implied": _implied(claim),
        "precisions": [_speed(s) for s in audit.speeds],
        "checks": [
            {"name": name, **attributes(c, "status", "sentence", "value", "limit")}
            for name, c in audit.checks.items()
        ],
        "goodput": None if audit.risk is None else number(audit.risk.goodput),
        "prices": _prices(claim),
        "assumptions": list(assumption_sentences(claim)),
    }


def _claim(claim: Claim) -> dict[str, Json]:
    names = "num_gpus num_tokens precision days gpu_hours tokens_per_s mfu usd usd_per_gpu_hour"
    return {
        **attributes(claim, *names.split(), "params", "memory_gb", model="model.id"),
        **attributes(claim.scenario, "seq_len", "global_batch_size", "task"),
        "accelerator": claim.chip.name,
    }


def _implied(claim: Claim) -> dict[str, Json]:
    rule, counted = claim.rule_flops_per_token, claim.flops_per_token
    return {
        "from": claim.rate_from,
        "tokens_per_s_per_gpu": claim.rate,
        "tokens_per_s": claim.rate * claim.num_gpus,
        "wall_clock_hours": claim.hours,
        "days": None if claim.hours is None else claim.hours / 24,
        "gpu_hours": claim.all_gpu_hours,
        "usd": usd_of(claim),
        "usd_per_gpu_hour": price_of(claim),
        "active_params": rule / 6,
        "flops_per_s_per_gpu_6pt": claim.rate * rule,
        "flops_per_s_per_gpu": claim.rate * counted,
        "attention_share": counted / rule - 1,
    }


def _speed(s: Speed) -> dict[str, Json]:
    return {
        **attributes(
            s,
            "precision",
            "verdict",
            "reasons",
            "share_of_mixed_peak",
            "fits",
            peak_flops_per_s="peak",
            peak_source="peak_source.ref",
            share_of_peak_6pt="share_by_rule",
            share_of_peak="share",
            mixed_peak_flops_per_s="blended_peak",
            is_published="has_published",
            probability_oom="plan.probability_oom",
        ),
        "decides": _decides(s.decides),
        "best_published": None if s.best is None else _best(s, s.best),
        "forecast_tokens_per_s_per_gpu": s.forecast and attributes(s.forecast, "p10", "p50", "p90"),
        "no_forecast": s.no_forecast or None,
    }


def _best(s: Speed, best: Best) -> dict[str, Json]:
    names = "source source_date model accelerator num_gpus seq_len precision tokens_per_s_per_gpu"
    paths = {"run": "name", "flops_per_s_per_gpu": "flops_per_s"}
    return {
        **attributes(best.run, *names.split(), "share_of_peak", **paths),
        **attributes(best, "scope", "in_class", "num_runs"),
        "bound_flops_per_s_per_gpu": best.flops_per_s,
        **attributes(s, times="over_best", days="days_at_best"),
    }


def _decides(d: Decides) -> dict[str, Json]:
    return attributes(d, "against", "claimed", "limit", "ratio", "unit")


def _prices(claim: Claim) -> dict[str, Json]:
    known = prices_of(claim.chip.name, claim.scenario.prices)
    names = ("snapshot", "num_offers", "low", "high", "spot_low", "ever_low", "ever_high")
    return {**attributes(known, *names, median="middle"), "ever_since": known.ever_since or None}
