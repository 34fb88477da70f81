"""A name server of a price feed's host that answers differently each time (DNS rebinding): the
address that was judged is the one that is connected to, and there is no second question."""

from __future__ import annotations

import socket

import pytest

from pricing.fetch.network import SourceError
from pricing.fetch.session import Session

URL = "https://feed.example/list"
PUBLIC, METADATA, LOOPBACK = "93.184.216.34", "169.254.169.254", "127.0.0.1"


class Resolver:
    """Answers each question with the next of its lists of addresses, the last one for ever."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def __call__(self, host, port, *args, **more):
        self.asked.append(host)
        found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [
            (socket.AF_INET6 if ":" in a else socket.AF_INET, socket.SOCK_STREAM, 6, "", (a, port))
            for a in found
        ]


@pytest.fixture
def connected(monkeypatch):
    """The addresses that are connected to; nobody is there."""
    seen: list[str] = []

    def refused(address, *args, **more):
        seen.append(address[0])
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(socket, "create_connection", refused)
    return seen


def ask(monkeypatch, *answers):
    resolver = Resolver(*answers)
    monkeypatch.setattr(socket, "getaddrinfo", resolver)
    with (
        Session(source="test", deadline_s=1.5, environ={}) as session,
        pytest.raises(SourceError) as e,
    ):
        session.json(URL)
    return resolver, str(e.value)


@pytest.mark.parametrize("second", [METADATA, LOOPBACK, "10.1.2.3", "::1", "fd00::1"])
def test_a_name_that_turns_private_is_never_connected_to_there(monkeypatch, connected, second):
    resolver, said = ask(monkeypatch, [PUBLIC], [second])
    assert connected[0] == PUBLIC
    assert set(connected) == {PUBLIC}
    assert resolver.asked[0] == "feed.example"
    assert "private address" in said  # the second try asked again, and was refused


@pytest.mark.parametrize("among", [METADATA, LOOPBACK, "::ffff:10.0.0.1"])
def test_one_private_address_among_public_ones_is_refused_unconnected(
    monkeypatch, connected, among
):
    resolver, said = ask(monkeypatch, [PUBLIC, among])
    assert "private address" in said
    assert connected == []
    assert resolver.asked == ["feed.example"]
