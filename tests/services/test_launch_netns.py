"""The flagship: two nodes joined by a link of known bandwidth, measured over ssh by the real probe.

The bandwidth that the collectives show must be the one that the link was given, within 10%: on a
core that another test uses it is not.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from runners.calibration.probe_plan import probe_plan
from runners.calibration.result import parse_result
from runners.launchers.follow import follow
from runners.launchers.ssh import Ssh
from runners.probe_file import probe_file
from runners.run_state import new_run_id
from tests.servers import tun_link
from tests.servers.launch import lacking
from tests.servers.netns import missing, shaped_nodes
from tests.support.launched import changed, gone, job, state_of

pytestmark = [pytest.mark.services, pytest.mark.serial, pytest.mark.slow]

RATE_MBIT = 100  # at more the shaper itself takes a core
SLOW_MBIT, DELAY_S = 50, 5e-3  # of the link with a delay
MOST_LATE, TRIES = 0.10, 2  # packets that the link with a delay may carry late
SHAPED_BYTES = 32_768  # smaller messages are the latency's


@pytest.fixture(scope="module")
def link(tmp_path_factory):
    if reason := missing():
        lacking(reason, installable="apt-get" in reason)
    with shaped_nodes(tmp_path_factory.mktemp("netns"), num_nodes=2, rate_mbit=RATE_MBIT) as found:
        yield found


def measure(link, folder, collective_s, **options):
    """The collectives of one run of the real probe over both nodes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RUNCAST_DATA_DIR", str(folder))
        patch.setenv("OMP_NUM_THREADS", "1")
        run_id = new_run_id()
        plan = probe_plan(
            run_id=run_id, launcher="ssh", planner_version="test", groups=["collectives"],
            reduced=True, device="cpu", collective_max_bytes=2**20, collective_s=collective_s,
        )  # fmt: skip
        base = job(
            run_id=run_id, num_nodes=2, limit_s=180, arguments=("--budget-s", "90"),
            python=sys.executable, probe=probe_file(),
        )  # fmt: skip
        made = changed(base, plan=plan)
        hosts = tuple(node.name for node in link.nodes)
        place = Ssh(hosts, config=str(link.config), base=str(folder / "nodes"), **options)
        text, state = follow(place, made, state_of(made, "ssh"), lambda _: None)
        place.close(made, state.handle)
    assert gone(run_id, 5)
    return parse_result(text)


@pytest.fixture(scope="module")
def kept():
    """The result of the last run over the link without a delay."""
    return []


@pytest.fixture
def measured(link, kept, request, tmp_path_factory):
    """One run of the probe for all tests; a second run of a test measures anew."""
    if not kept or getattr(request.node, "execution_count", 1) > 1:
        kept[:] = [measure(link, tmp_path_factory.mktemp("runs"), 18.0)]
    return kept[0]


def measure_delayed(link, folder):
    """The same over the link with a delay: the result, and the share of packets that were late."""
    names = [node.namespace for node in link.nodes]
    relay = subprocess.Popen(
        [sys.executable, tun_link.__file__, *names, str(SLOW_MBIT), str(1e3 * DELAY_S)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert relay.stdout.readline() == "ready\n"
        result = measure(link, folder, 40.0, master_addr=tun_link.ADDRESSES[0])
        relay.terminate()
        return result, float(relay.stdout.readline())
    finally:
        relay.kill()
        relay.wait()
        relay.stdout.close()


def slope_and_interval(rows):
    """Seconds per byte: the median of the slopes of all pairs (Theil and Sen), and the range that
    the samples' own 10th and 90th percentiles give."""
    size = np.array([r.bytes for r in rows])
    i, j = np.triu_indices(len(rows), k=1)

    def slope(times):
        return float(np.median((times[j] - times[i]) / (size[j] - size[i])))

    found = [slope(np.array([getattr(r, n) for r in rows]))
             for n in ("t_med_s", "t_p10_s", "t_p90_s")]  # fmt: skip
    return found[0], min(found), max(found)


def broadcasts(result, *, least_bytes=0):
    rows = [r for r in result.rows("collectives") if r.params["op"] == "broadcast"]
    return [r for r in rows if r.bytes >= least_bytes]


def smallest(result):
    return min(broadcasts(result), key=lambda row: row.bytes)


def check_bandwidth(rows, truth_bytes_per_s):
    """Within 10% of the truth, or a narrow interval that holds it; the figures are printed."""
    assert len(rows) >= 3
    s_per_byte, least, most = slope_and_interval(rows)
    mbit = [8e-6 / x for x in (s_per_byte, most, least)]
    said = (
        f"broadcast: {mbit[0]:.1f} Mbit/s [{mbit[1]:.1f}, {mbit[2]:.1f}], truth "
        f"{truth_bytes_per_s * 8e-6:.1f}, ratio {1 / s_per_byte / truth_bytes_per_s:.3f}"
    )
    print(said)
    near = abs(1 / s_per_byte / truth_bytes_per_s - 1) <= 0.10
    narrow = most <= 1.25 * least  # a wide interval holds anything
    assert near or (narrow and 1 / most <= truth_bytes_per_s <= 1 / least), said


def test_the_measured_bandwidth_is_the_one_that_the_link_was_given(link, measured):
    check_bandwidth(broadcasts(measured, least_bytes=SHAPED_BYTES), link.truth_bytes_per_s)


def test_the_measured_delay_and_bandwidth_are_those_of_a_link_of_known_delay(
    link, measured, tmp_path_factory
):
    """A second link between the same nodes, slower and longer; --master-addr chooses it. What a
    broadcast takes without the delay is gloo's own time."""
    if not Path("/dev/net/tun").exists():
        lacking("The kernel has no TUN devices.", installable=False)
    for _ in range(TRIES):
        result, late = measure_delayed(link, tmp_path_factory.mktemp("delayed"))
        print(f"{late:.1%} of the packets were late")
        if late <= MOST_LATE:
            break
    else:
        pytest.skip(f"This machine is too busy for the link: {late:.0%} of the packets were late.")
    assert result.provenance.env["GLOO_SOCKET_IFNAME"] == tun_link.DEVICE
    own_s = smallest(measured).t_med_s
    delays = (smallest(result).t_med_s - own_s) / DELAY_S
    print(f"smallest broadcast: {delays:.2f} delays of 5 ms and {1e3 * own_s:.2f} ms of its own")
    # gloo's sender waits for the receiver's word: there and back.
    assert delays == pytest.approx(2.0, abs=0.3)
    truth = SLOW_MBIT * 1e6 / 8 * tun_link.PAYLOAD
    check_bandwidth(broadcasts(result, least_bytes=2048), truth)


def test_no_rate_is_above_what_the_link_carries(link, measured):
    """A wrong interface would show the machine's own memory, a hundred times faster."""
    for row in measured.rows("collectives"):
        if row.params["op"] in ("broadcast", "all_reduce") and row.bytes >= 4 * SHAPED_BYTES:
            assert row.bytes_per_s < 1.1 * link.truth_bytes_per_s, row.label


def test_the_processes_met_on_the_nodes_own_interfaces(link, measured):
    assert measured.provenance.env["GLOO_SOCKET_IFNAME"] == "rcv1"
    assert measured.provenance.env["NCCL_SOCKET_IFNAME"] == "=rcv1"
    assert len(measured.nodes) == 2
    assert all(row.wrong == 0 for row in measured.rows("collectives"))
    assert {row.params["op"] for row in measured.rows("collectives")} == {
        "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv", "broadcast",
    }  # fmt: skip
