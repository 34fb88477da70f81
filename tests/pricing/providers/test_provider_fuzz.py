"""Payloads with one thing wrong: whatever it is, a source yields offers or a sentence."""

import json
import random
from contextlib import suppress

import pytest

from pricing.fetch.network import SourceError
from pricing.fetch.session import Session
from pricing.integrity import check, price_bands
from pricing.offers import content_id, make_row
from pricing.sources import SOURCES, chosen
from tests.feeds import shapes
from tests.feeds.server import Feed, Reply, serving
from tests.feeds.shapes import TODAY

MUTATIONS = 25
ONE_REGION = {"RUNCAST_AWS_REGIONS": "us-east-1", "RUNCAST_AZURE_REGIONS": "eastus"}
ODD = (None, "", "x", "N/A", -1, 0, 1e308, 10**30, True, [], {}, [None], {"a": 1}, "9" * 400,
       "\u202e", "1,000.5", "x" * 3000)  # fmt: skip


def changed(value, rng):
    """A copy of a JSON value with one part replaced, removed or repeated."""
    value = json.loads(json.dumps(value))
    at = value
    while isinstance(at, dict | list) and at:
        key = rng.choice(list(at) if isinstance(at, dict) else range(len(at)))
        if not isinstance(at[key], dict | list) or not at[key] or rng.random() < 0.15:
            what = rng.random()
            if what < 0.2:
                del at[key]
            elif what < 0.3 and isinstance(at, list):
                at.append(at[key])
            else:
                at[key] = rng.choice(ODD)
            return value
        at = at[key]
    return rng.choice(ODD)


def damaged(body, rng):
    """Bytes with some of them cut out, doubled or replaced."""
    a = rng.randrange(len(body) + 1)
    b = min(len(body), a + rng.choice((1, 1, 3, 20, 400)))
    return (
        body[:a]
        + rng.choice((b"", body[a:b] * 2, b"0", b'"', b",", b"\n", b"-", b"\xff"))
        + body[b:]
    )


def mutated(route, rng):
    def answer(asked):
        reply = route(asked) if callable(route) else route
        if rng.random() < 0.5 or not reply.body:
            return reply
        try:
            body = json.dumps(changed(json.loads(reply.body), rng)).encode()
        except ValueError:
            body = damaged(reply.body, rng)
        return Reply(body, reply.kind, reply.status, reply.headers)

    return answer


@pytest.mark.slow
@pytest.mark.parametrize("name", [s.name for s in SOURCES])
def test_a_damaged_feed_yields_offers_or_a_sentence(name):
    rng = random.Random(f"prices of {name}")
    (source,) = chosen([name])
    routes = shapes.ROUTES[name]()
    feed = Feed({path: mutated(route, rng) for path, route in routes.items()})
    heard = 0
    with serving(feed) as base:
        environ = shapes.mirrors(base) | ONE_REGION
        for _ in range(MUTATIONS):
            with Session(source=name, environ=environ, deadline_s=20.0) as session:
                offers = []
                with suppress(SourceError):  # any other exception is a fault of ours
                    offers = list(source.fetch(session))
            heard += bool(offers)
            content_id(make_row(o) for o in offers)  # each can be a row of a snapshot
            check(offers, bands=price_bands(), today=TODAY)
            assert all(o.gpu_count >= 1 for o in offers)
    assert heard > 3  # it was not broken every time
