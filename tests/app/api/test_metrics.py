"""/metrics as Prometheus reads it, by the parser of its official client."""

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.routing import Route

from app import server
from app.api import metrics, rate
from app.log import log
from app.web import answers
from tests.app.api.test_api_door import JOB, Asked, door


@pytest.fixture
def asked(monkeypatch):
    monkeypatch.setattr(log, "heard_by", [])
    monkeypatch.setattr(door, "_rate", rate.Rate())
    found = Asked()
    found._app.routes.extend(metrics.routes(load=answers.load))
    return found


def samples(asked):
    text = asked.get("/metrics").text
    families = text_string_to_metric_families(text)
    return {(s.name, *s.labels.values()): s.value for f in families for s in f.samples}


def test_a_search_a_request_a_mistake_and_a_bug_are_counted(asked):
    assert asked.get("/api/v1/plan", params=JOB).status_code == 200
    assert asked.get("/api/v1/plan", params={**JOB, "gpu": "nosuch"}).status_code == 400
    log.failed("unexpected", RuntimeError("for the test"))
    found = samples(asked)
    assert found["runcast_search_seconds_count", "done"] == 1
    assert found["runcast_search_seconds_sum", "done"] > 0
    assert found["runcast_api_requests_total", "plan", "200"] == 1
    assert found["runcast_api_requests_total", "plan", "400"] == 1
    assert found["runcast_errors_total", "unexpected"] == 1
    assert found["runcast_searches_waiting",] == found["runcast_searches_running",] == 0
    assert found["runcast_answers_asked_total", "no"] >= 2
    assert found["runcast_prices_age_seconds",] >= 0


def test_a_source_has_the_age_of_its_last_answer(asked, monkeypatch):
    state = metrics.read_state(metrics.prices_folder())
    record = state.of("lambda")
    held = type(state)(sources={"lambda": type(record)(
        name="lambda", succeeded_at="2026-01-01T00:00:00+00:00")})  # fmt: skip
    monkeypatch.setattr(metrics, "read_state", lambda folder: held)
    assert samples(asked)["runcast_price_source_age_seconds", "lambda"] > 86_400


@pytest.mark.parametrize(("switch", "paths"), [("", []), ("off", []), ("on", ["/metrics"])])
def test_it_is_served_only_where_it_is_switched_on(switch, paths, monkeypatch):
    monkeypatch.setattr(log, "heard_by", [])
    monkeypatch.setenv(server.METRICS, switch)
    found = server._metrics("")
    assert all(isinstance(route, Route) for route in found)
    assert [route.path for route in found] == paths
