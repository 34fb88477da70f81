"""Calibrations in words: names of constants, what flags mean, stale results, slow nodes; and the
commands that measure."""

from __future__ import annotations

import datetime as dt
import shlex
from collections.abc import Iterable
from urllib.parse import urlencode

from app.calibration.added import Added
from app.document import format as fmt
from app.forecast.calibration_files import Kept
from app.forecast.calibration_origin import Origin
from app.forecast.calibrations import OLD_DAYS, Calibration
from app.scenario.link import query_of
from core.errors import shown
from core.scenario import Scenario
from core.search.plan import Plan
from runners.calibration.fit import Constant
from runners.calibration.fit_links import Link
from runners.calibration.held_out import HeldOut
from runners.calibration.validity import slow_nodes

NAMES = {
    "matmul": "Matmuls in 16 bits",
    "matmul_fp8": "Speed-up of fp8 matmuls",
    "attention": "Attention",
    "memory": "Memory bandwidth",
    "elementwise": "Time of elementwise operators",
    "host_link": "Link to the host",
    "scale_up": "Link inside the node",
    "scale_up_hop": "Latency inside the node",
    "scale_out": "Network of a GPU",
    "scale_out_hop": "Latency of the network",
}
TIMES = frozenset({"elementwise", "scale_up_hop", "scale_out_hop"})  # a larger value is slower
MOST_HOSTS = 2  # two machines measure the network; more would also show which is slow
SAME = 0.005  # a factor closer to 1 than this counts as no change

# What each flag of runners/calibration/validity.py means to the reader, and what to do.
MEANINGS = {
    "roof": "Faster than the hardware can be: another device, a wrong count, or a wrong clock.",
    "roof_unchecked": "Nothing bounds these rates from above: an impossible one would pass.",
    "control_missing": "Without the control operation a change of the machine would go unnoticed.",
    "drift": "The same matmul took longer at one time than at another: something else ran, or the "
    "clocks moved. Every constant is believed less for it. Measure again on a quiet machine.",
    "spread": "Samples of one operation differ: its constant is believed less.",
    "throttle": "The device was slowed by heat or its power supply, as it may be in training. If "
    "other nodes are not, look at the cooling.",
    "power_cap": "Usual for large matmuls; training runs at this limit, too.",
    "load": "Other programs used the CPU: measure again when it is idle.",
    "slow_node": "In a synchronous job every node waits for this one. Take it out, or have it "
    "looked at, before a long run.",
    "incomplete": "The budget ended first: what is missing stays as assumed.",
    "reduced": "Meant for a CPU, or a quick check: constants of large shapes need a full run.",
    "numerics": "The operation computed something else, so its time says nothing.",
    "data_entropy": "Zeros or patterns draw less power and run faster than training data.",
    "loss": "Steps that do not train may have skipped work.",
    "collective": "The ranks did not get what the operation promises.",
    "mixed_devices": "The constants are of the slowest of different devices.",
    "sku": "The result is of another accelerator than it claims.",
    "sku_untold": "It is used for gpu=custom only, with typed-in figures.",
    "sku_by_name": "It is used for that accelerator; --gpu says otherwise.",
    "sku_unknown": "The name could not be checked against the accelerator that was meant.",
}


def constant_name(name: str) -> str:
    """The name of a machine constant in words."""
    return NAMES.get(name, name.replace("_", " "))


def number(value: float, unit: str) -> str:
    """A measured or assumed value with its unit: 715 TFLOP/s, 1.3 times the forecast."""
    return f"{fmt.in_unit(value, 'count')} {unit}".replace(" us", " µs")


def moved(constant: Constant) -> str:
    """Whether a factor makes the machine faster or slower than was assumed."""
    if abs(constant.factor - 1) < SAME:
        return "as assumed"
    is_larger = constant.factor > 1
    return "slower" if is_larger == (constant.name in TIMES) else "faster"


def day_and_place(o: Origin) -> str:
    """When and where it was measured: 2026-11-01 on node0; 2026-11-01, imported from nccl-tests."""
    return f"{o.day} on {o.where}" if o.imported_from is None else f"{o.day}, {o.where}"


def software_sentence(kept: Kept) -> str:
    """The software and the note of a calibration."""
    stack = "" if kept.origin is None else kept.origin.stack
    note = f" {kept.note}" if kept.note else ""
    return f"{stack or 'No software is named'}.{note}"


def added_sentence(added: Added) -> str:
    """Whether a result was kept or was here before."""
    return f"{'Kept' if added.is_new else 'It was here already:'} {added.kept.label}."


def staleness(kept: Kept, others: Iterable[Kept], today: dt.date) -> tuple[str, ...]:
    """The reasons why a result may be out of date, one sentence each."""
    mine = kept.origin
    if mine is None:
        return ()
    if mine.measured_at is None or mine.measured_on is None:
        return ("It has no date, so it may be old: import it with --date.",)
    found = []
    age = (today - mine.measured_on).days
    if age > OLD_DAYS:
        found.append(f"It is {fmt.count(age)} days old, more than {OLD_DAYS}: measure again.")
    newer = [
        o for k in others
        if (o := k.origin) is not None and o.accelerator == mine.accelerator
        and o.imported_from == mine.imported_from  # other tools list other software
        and (o.measured_at or "") > mine.measured_at and o.device == mine.device
    ]  # fmt: skip
    last = max(newer, key=lambda o: o.measured_at or "", default=None)
    if last is not None:
        for what in dict.fromkeys((*mine.software, *last.software)):
            old, now = mine.software.get(what), last.software.get(what)
            if old != now:
                found.append(
                    f"Measured with {what} {old or 'unknown'}; the newest result of it, of "
                    f"{last.day}, has {what} {now or 'unknown'}."
                )
    return tuple(found)


def held_out_sentence(found: HeldOut | None) -> str:
    """The forecast of the held-out step, which no constant was fitted to, without and with it."""
    if found is None:
        return "The held-out training step was not measured: nothing tests the calibration."
    return (
        f"A training step of {found.num_layers} layers, in no fit, took "
        f"{fmt.seconds(found.measured_s)}. Forecast over measured: {found.before:.3f} without the "
        f"calibration, {found.after:.3f} with it."
    )


def moved_sentence(c: Calibration) -> str:
    """The constants that changed, the largest change first."""
    rows = sorted(c.fitted.constants, key=lambda x: abs(x.factor - 1), reverse=True)
    changes = [
        f"{constant_name(x.name)} x {x.factor:.2f} ({moved(x)})"
        for x in rows
        if moved(x) != "as assumed"
    ]
    return f"{'; '.join(changes)}." if changes else "Every constant is as assumed."


def missing_sentence(c: Calibration) -> str:
    """The constants that were not measured; '' if all were."""
    if not c.fitted.missing:
        return ""
    names = ", ".join(n[:1].lower() + n[1:] for n in map(constant_name, c.fitted.missing))
    return f"Not measured, so as assumed: {names}."


def nodes_sentence(c: Calibration) -> str:
    """Which nodes are slower than the median node."""
    result = c.measured
    if result is None:
        return f"{c.origin.imported_from} does not time nodes one by one."
    slow = slow_nodes(result)
    timed = any(len(r.t_med_by_node_s or ()) > 1 for r in result.rows("matmul"))
    if len(result.nodes) < 2:
        return "One node was measured: there is none to compare it with."
    if not timed:
        return f"{len(result.nodes)} nodes were measured, but not timed one by one."
    if not slow:
        return f"None of {len(result.nodes)} nodes is more than 5% slower than the median one."
    slower = (
        f"node {i} ({shown(result.nodes[i].host)}) by {ratio - 1:.0%}" for i, ratio in slow.items()
    )
    return f"Slower than the median node: {', '.join(slower)}."


def link_sentence(link: Link) -> str:
    """One operation in one group: bandwidth with its interval, and latency."""
    c = link.curve
    low, high = c.bytes_per_s_low * link.bus_factor, c.bytes_per_s_high * link.bus_factor
    return (
        f"{link.op} over {link.ranks} ranks of {nodes(link.nodes)}: bus bandwidth "
        f"{fmt.in_unit(link.bus_bytes_per_s, 'GB/s')} GB/s (P5 to P95 {fmt.in_unit(low, 'GB/s')} "
        f"to {fmt.in_unit(high, 'GB/s')}), {fmt.seconds(c.latency_s)} for the smallest message."
    )


def nodes(count: int) -> str:
    """1 node, 2 nodes."""
    return "1 node" if count == 1 else f"{count} nodes"


def commands(scenario: Scenario, plan: Plan | None) -> str:
    """Commands that measure one node, or two over ssh if the plan has more, and add the result.

    They measure the matmuls of the plan that the link selects.
    """
    kept = {n: v for n, v in query_of(scenario) if n != "calibration"}
    if plan is not None:
        kept["plan"] = plan.id
    link = shlex.quote("?" + urlencode(kept, safe=",/:~"))
    is_one = plan is None or min(plan.num_nodes, MOST_HOSTS) == 1
    where = "--launcher local" if is_one else "--launcher ssh --hosts node1,node2"
    return (
        f"runcast calibrate {where} --out calibration.json \\\n    --plan {link}\n"
        "runcast calibrations add calibration.json"
    )
