"""What `python -m tests.support.soak` calls flat, and what it does not."""

from __future__ import annotations

import random

import pytest

from tests.support.soak import PARTS, Done, Rest, verdict


def rests(*, mib_per_thousand=0.0, files_a_part=0, threads_a_part=0):
    """Six looks at a server with the noise of a real one; the first part fills its caches."""
    rng = random.Random(3)
    return [
        Rest(
            edits=1000 * (part + 1),
            rss_mib=(350 if part else 300) + mib_per_thousand * part + rng.gauss(0, 4),
            files=17 + files_a_part * part + rng.randrange(2),
            threads=12 + threads_a_part * part + rng.randrange(2),
        )
        for part in range(PARTS)
    ]


def test_noise_is_flat():
    assert verdict(rests(), Done()) == []


@pytest.mark.parametrize(
    ("leak", "said"),
    [
        ({"mib_per_thousand": 15}, "memory grows by 1"),
        ({"files_a_part": 2}, "open files grow from"),
        ({"threads_a_part": 2}, "threads grow from"),
    ],
)
def test_a_leak_is_seen(leak, said):
    (sentence,) = verdict(rests(**leak), Done())
    assert sentence.startswith(said)


def test_what_a_person_met_is_no_pass():
    assert verdict(rests(), Done(wrong=["a sentence"])) == ["a sentence"]
