"""What `python -m tests.soak` calls flat, and what it does not."""

from __future__ import annotations

import random

import pytest

from tests.soak import Done, Watched, verdict


def watched(*, mib_per_hour=0.0, files_per_hour=0.0, threads_per_hour=0.0):
    """Half an hour of samples with the noise of a real server."""
    rng, found = random.Random(3), Watched(1)
    for at in range(5, 1800, 5):
        hours = at / 3600
        found.at_s.append(float(at))
        found.rss_mib.append(350 + mib_per_hour * hours + rng.gauss(0, 8))
        found.files.append(round(70 + files_per_hour * hours) + rng.randrange(-4, 5))
        found.threads.append(round(16 + threads_per_hour * hours) + rng.randrange(-2, 3))
    return found


def test_noise_is_flat():
    assert verdict(watched(), Done(), warm_s=720) == []


@pytest.mark.parametrize(
    ("leak", "said"),
    [
        ({"mib_per_hour": 120}, "memory grows by 1"),
        ({"files_per_hour": 60}, "open files grow from"),
        ({"threads_per_hour": 60}, "threads grow from"),
    ],
)
def test_a_leak_is_seen_within_half_an_hour(leak, said):
    (sentence,) = verdict(watched(**leak), Done(), warm_s=720)
    assert sentence.startswith(said)


def test_what_a_person_met_is_no_pass():
    assert verdict(watched(), Done(wrong=["a sentence"]), warm_s=720) == ["a sentence"]
