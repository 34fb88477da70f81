"""/metrics for Prometheus, by its official client: what the log counts, the queue, and the prices.

app/server.py serves it with RUNCAST_METRICS=on. It has numbers and fixed words only, as the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_1_0_0
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.log import log
from app.web.searches import Load
from core.errors import RuncastError
from core.units import DAY_S
from pricing.disk import prices_folder
from pricing.offers import age_days, snapshot
from pricing.source_state import read_state

SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)  # ends of the histogram's classes


class Counted:
    """What events of the log add up to since the process began."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._searches = Histogram(
            "runcast_search_seconds", "Searches that ended, by outcome: done, cut or refused.",
            ["outcome"], registry=registry, buckets=SECONDS,
        )  # fmt: skip
        self._reruns = Counter(
            "runcast_reruns", "Reruns of the page, by outcome.", ["outcome"], registry=registry
        )
        self._asked = Counter(
            "runcast_api_requests", "Requests of /api/v1, by question and status.",
            ["question", "status"], registry=registry,
        )  # fmt: skip
        self._errors = Counter(
            "runcast_errors", "Bugs that the log has, by event.", ["event"], registry=registry
        )

    def hear(self, name: str, fields: Mapping[str, Any]) -> None:
        """Count one event."""
        if name == "search":
            self._searches.labels(fields["outcome"]).observe(fields["ms"] / 1000)
        elif name == "rerun":
            self._reruns.labels(fields["outcome"]).inc()
        elif name == "api":
            self._asked.labels(fields["question"], str(fields["status"])).inc()
        elif name in log.FAILURES:
            self._errors.labels(name).inc()


class Now(Collector):
    """What is looked up when Prometheus asks: the queue, the kept answers, ages of prices."""

    def __init__(self, load: Callable[[], Load]) -> None:
        self._load = load

    def collect(self) -> Iterable[Metric]:
        """Every family of numbers; those of prices are absent while their files cannot be read."""
        now = self._load()
        yield _gauge("runcast_searches_waiting", "Searches that wait for their turn.", now.waiting)
        yield _gauge("runcast_searches_running", "Searches that run.", now.running)
        yield _gauge("runcast_answers_kept", "Answers in the cache.", now.kept)
        yield _gauge("runcast_answers_kept_bytes", "Bytes of these answers.", now.kept_bytes)
        asked = CounterMetricFamily(
            "runcast_answers_asked", "Questions, by whether a search was there.", labels=["found"]
        )
        asked.add_metric(["yes"], now.hits)
        asked.add_metric(["no"], now.misses)
        yield asked
        try:
            yield from _prices(datetime.now(UTC))
        except (RuncastError, OSError):
            return


def _prices(now: datetime) -> Iterable[Metric]:
    newest = age_days(snapshot().newest, now.date()) * DAY_S
    sources = GaugeMetricFamily(
        "runcast_price_source_age_seconds", "Since the last answer of a source.", labels=["source"]
    )
    for name, record in read_state(prices_folder()).sources.items():
        if (days := record.age_days(now)) is not None:
            sources.add_metric([name], days * DAY_S)
    yield _gauge("runcast_prices_age_seconds", "Age of the newest price, in whole days.", newest)
    yield sources


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=value)


def routes(prefix: str = "", *, load: Callable[[], Load]) -> list[Route]:
    """The one route; `load` says how busy the searches of this process are."""
    registry = CollectorRegistry()
    log.heard_by.append(Counted(registry).hear)
    registry.register(Now(load))

    async def metrics(request: Request) -> Response:
        text = await run_in_threadpool(generate_latest, registry)
        return Response(text, media_type=CONTENT_TYPE_PLAIN_1_0_0)

    return [Route(f"{prefix}/metrics", metrics)]
