"""What every ssh and scp of a launcher is told, whatever its user's own settings say."""

from __future__ import annotations

import pytest

from runners.launchers.ssh import Ssh
from tests.support.launched import job


@pytest.fixture(scope="module")
def commands() -> list[tuple[str, ...]]:
    """Those that a dry run shows, of two hosts."""
    launch = Ssh(("one", "user@two:2222"), base="~/runs").plan(job(num_nodes=2, processes=None))
    found = [c for c in launch.commands if c[0] in ("ssh", "scp")]
    assert len(found) >= 6
    return found


@pytest.mark.parametrize("option", ["ForwardAgent=no", "ForwardX11=no"])
def test_no_agent_and_no_display_is_forwarded(commands, option):
    assert [c for c in commands if option not in c] == []


def test_whose_key_is_believed_is_left_to_the_known_hosts_of_the_user(commands):
    words = {word.partition("=")[0] for c in commands for word in c[:-1]}
    assert "ForwardAgent" in words
    assert not {"StrictHostKeyChecking", "UserKnownHostsFile", "-A", "-X", "-Y"} & words
