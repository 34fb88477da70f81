"""Links that cost most, whose senders have gone: a new visitor does not wait for them."""

from __future__ import annotations

import pytest

from tests.support import event_loop
from tests.support.flood import FLOOD, flooded
from tests.support.load import where

pytestmark = [pytest.mark.services, pytest.mark.serial]  # measures waits

CHEAP_S = 3.0  # of a new visitor's cheap question, from the address to the answer
MOST_MIB = 150.0  # more than before, once the flood is over


def test_a_flood_that_has_gone_delays_no_new_visitor(tmp_path, capsys):
    found = event_loop.run(flooded(tmp_path))
    with capsys.disabled():
        print(f"\n{where()}\n{found.line()}")
    assert found.opened == FLOOD
    assert found.cheap_s < max(CHEAP_S, 3 * found.alone_s)
    assert found.left_mib < found.before_mib + MOST_MIB
