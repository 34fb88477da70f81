"""An audit as JSON: the keys that docs/audit.md documents. Add, never rename."""

from __future__ import annotations

from app.audit.audit import Audit
from app.audit.claim import Claim
from app.audit.money import price_of, prices_of, usd_of
from app.audit.published import Best
from app.audit.speed import Decides, Speed
from app.audit.words import assumption_sentences, claim_sentence, verdict_sentence
from app.document.as_json import Json, number
from app.scenario.link_query import link_query
from pricing.offers import snapshot

SCHEMA_VERSION = 1


def audit_json(audit: Audit) -> dict[str, Json]:
    """The document of `runcast audit --json`; null: not given or not known."""
    claim = audit.claim
    verdicts: dict[str, Json] = {"overall": audit.verdict}
    verdicts |= {s.precision: s.verdict for s in audit.speeds}
    scenario = claim.scenario.model_copy(update={"precision": audit.decisive.precision})
    return {
        "schema_version": SCHEMA_VERSION,
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
            {
                "name": name,
                "status": c.status,
                "sentence": c.sentence,
                "value": number(c.value),
                "limit": number(c.limit),
            }
            for name, c in audit.checks.items()
        ],
        "goodput": None if audit.risk is None else number(audit.risk.goodput),
        "prices": _prices(claim),
        "assumptions": list(assumption_sentences(claim)),
        "link": link_query(scenario, snapshot(scenario.prices).id),
    }


def _claim(claim: Claim) -> dict[str, Json]:
    return {
        "model": claim.model.id,
        "accelerator": claim.chip.name,
        "num_gpus": claim.num_gpus,
        "num_tokens": claim.num_tokens,
        "seq_len": claim.scenario.seq_len,
        "global_batch_size": claim.scenario.global_batch_size,
        "precision": claim.precision,
        "task": claim.scenario.task,
        "days": claim.days,
        "gpu_hours": claim.gpu_hours,
        "tokens_per_s": claim.tokens_per_s,
        "mfu": None if claim.mfu is None else list(claim.mfu),
        "usd": claim.usd,
        "usd_per_gpu_hour": claim.usd_per_gpu_hour,
        "params": claim.params,
        "memory_gb": claim.memory_gb,
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
    forecast = s.forecast
    return {
        "precision": s.precision,
        "verdict": s.verdict,
        "decides": _decides(s.decides),
        "reasons": list(s.reasons),
        "peak_flops_per_s": s.peak,
        "peak_source": None if s.peak_source is None else s.peak_source.ref,
        "share_of_peak_6pt": s.share_by_rule,
        "share_of_peak": s.share,
        "mixed_peak_flops_per_s": s.blended_peak,
        "share_of_mixed_peak": s.flops_per_s / s.blended_peak,
        "is_published": s.has_published,
        "best_published": None if s.best is None else _best(s, s.best),
        "forecast_tokens_per_s_per_gpu": None
        if forecast is None
        else {"p10": forecast.p10, "p50": forecast.p50, "p90": forecast.p90},
        "no_forecast": s.no_forecast or None,
        "fits": s.fits,
        "probability_oom": None if s.plan is None else s.plan.probability_oom,
    }


def _best(s: Speed, best: Best) -> dict[str, Json]:
    run = best.run
    return {
        "run": run.name,
        "source": run.source,
        "source_date": run.source_date,
        "model": run.model,
        "accelerator": run.accelerator,
        "num_gpus": run.num_gpus,
        "seq_len": run.seq_len,
        "precision": run.precision,
        "tokens_per_s_per_gpu": run.tokens_per_s_per_gpu,
        "flops_per_s_per_gpu": run.flops_per_s,
        "share_of_peak": run.share_of_peak,
        "bound_flops_per_s_per_gpu": best.flops_per_s,
        "scope": best.scope,
        "in_class": best.in_class,
        "num_runs": best.num_runs,
        "times": s.over_best,
        "days": s.days_at_best,
    }


def _decides(d: Decides) -> dict[str, Json]:
    return {
        "against": d.against,
        "claimed": d.claimed,
        "limit": d.limit,
        "ratio": d.ratio,
        "unit": d.unit,
    }


def _prices(claim: Claim) -> dict[str, Json]:
    known = prices_of(claim.chip.name, claim.scenario.prices)
    return {
        "snapshot": known.snapshot,
        "num_offers": known.num_offers,
        "low": known.low,
        "median": known.middle,
        "high": known.high,
        "spot_low": known.spot_low,
        "ever_low": known.ever_low,
        "ever_high": known.ever_high,
        "ever_since": known.ever_since or None,
    }
