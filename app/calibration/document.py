"""A calibration as people and programs read it: sentences, tables, blocks, and JSON.

Terminal and page show the same blocks. docs/calibration.md documents every JSON key.
"""

from __future__ import annotations

import datetime as dt
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import numpy as np

from app.calibration.added import Added
from app.document import format as fmt
from app.document import vocabulary
from app.document.as_json import attributes
from app.document.blocks import Block, Bullets, Paragraph
from app.document.on_use import pd
from app.document.table import Column, Table, column, plain, text_column
from app.forecast.calibrations import OLD_DAYS, Calibration
from app.scenario.link import changed, query_of
from core.errors import shown
from core.scenario import Scenario
from core.search.plan import Answer, Plan
from core.time import message_curve
from runners.calibration.fit import Constant, Link
from runners.calibration.validity import slow_nodes
from runners.imports.constants import curve_points

SCHEMA_VERSION = 1
Stale = Mapping[str, tuple[str, ...]]  # sentences by id
TIMES = frozenset({"elementwise", "scale_up_hop", "scale_out_hop"})  # a larger value is slower
MOST_HOSTS = 2  # two machines measure the network; more would also show which is slow
SAME = 0.005  # a factor closer to 1 than this counts as no change
CURVE_POINTS = 60
NONE = (
    "There is no calibration: `runcast calibrate` measures nodes, `runcast calibrations add FILE` "
    "keeps what it brings back."
)


# --- words ---------------------------------------------------------------------------------------


def constant_name(name: str) -> str:
    """The name of a machine constant: Memory bandwidth."""
    text = vocabulary.measured_constant(name)
    return text[:1].upper() + text[1:]


def number(value: float, unit: str) -> str:
    """A measured or assumed value with its unit: 715 TFLOP/s, 1.3 times the forecast."""
    return f"{fmt.in_unit(value, 'count')} {unit}".replace(" us", " µs")


def nodes(count: int) -> str:
    """A number of nodes: 1 node, 2 nodes."""
    return "1 node" if count == 1 else f"{count} nodes"


def moved(constant: Constant) -> str:
    """Whether a factor makes the machine faster or slower than was assumed."""
    if abs(constant.factor - 1) < SAME:
        return "as assumed"
    is_larger = constant.factor > 1
    return "slower" if is_larger == (constant.name in TIMES) else "faster"


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
    names = ", ".join(map(vocabulary.measured_constant, c.fitted.missing))
    return f"Not measured, so as assumed: {names}." if names else ""


def held_out_sentence(c: Calibration) -> str:
    """The forecast of the held-out step, which no constant was fitted to, without and with it."""
    step = c.fitted.held_out
    if step is None:
        return "The held-out training step was not measured: nothing tests the calibration."
    return (
        f"A training step of {step.num_layers} layers that no constant was fitted to took "
        f"{fmt.seconds(step.measured_s)}. Forecast over measured: {step.before:.3f} without the "
        f"calibration, {step.after:.3f} with it."
    )


def nodes_sentence(c: Calibration) -> str:
    """Which nodes are slower than the median node."""
    result = c.measured
    if result is None:
        return f"{c.imported_from} does not time nodes one by one."
    count = len(result.nodes)
    if count < 2:
        return "One node was measured: there is none to compare it with."
    if not any(len(r.t_med_by_node_s or ()) > 1 for r in result.rows("matmul")):
        return f"{count} nodes were measured, but not timed one by one."
    slower = ", ".join(
        f"node {i} ({shown(result.nodes[i].host)}) by {ratio - 1:.0%}"
        for i, ratio in slow_nodes(result).items()
    )
    if not slower:
        return f"None of {count} nodes is more than 5% slower than the median one."
    return f"Slower than the median node: {slower}."


def link_sentence(x: Link) -> str:
    """One operation in one group: bandwidth with its interval, latency, and how well it fits."""
    low, high = (fmt.in_unit(b, "GB/s") for b in x.bus_interval)
    c, spikes = x.curve, int(x.curve.spikes.sum())
    return (
        f"{x.op} over {x.ranks} ranks of {nodes(x.nodes)}: bus bandwidth "
        f"{fmt.in_unit(x.bus_bytes_per_s, 'GB/s')} GB/s (P5 to P95 {low} to {high}), "
        f"{fmt.seconds(c.latency_s)} for the smallest message. From {len(c.size_bytes)} sizes"
        f"{f', {spikes} of them spikes' if spikes else ''}; leave-one-out error "
        f"{fmt.percent(c.left_out_error)}."
    )


def software_sentence(c: Calibration) -> str:
    """The software and the note of a calibration."""
    return f"{c.software_text or 'No software is named'}.{f' {c.note}' if c.note else ''}"


def added_sentence(added: Added) -> str:
    """Whether a result is new on this installation."""
    return f"{'Kept' if added.is_new else 'Already here:'} {added.calibration.label}."


def staleness(c: Calibration, others: Iterable[Calibration], today: dt.date) -> tuple[str, ...]:
    """The reasons why a result may be out of date, one sentence each."""
    if c.result is None:
        return ()
    if c.measured_at is None or c.measured_on is None:
        return ("It has no date, so it may be old: import it with --date.",)
    sentences = []
    age = (today - c.measured_on).days
    if age > OLD_DAYS:
        sentences.append(f"It is {fmt.count(age)} days old, more than {OLD_DAYS}: measure again.")
    mine = (c.accelerator, c.imported_from, c.device)  # other tools list other software
    newer = [
        o
        for o in others
        if (o.accelerator, o.imported_from, o.device) == mine
        and (o.measured_at or "") > c.measured_at
    ]
    last = max(newer, key=lambda o: o.measured_at or "", default=None)
    if last is not None:
        for name in dict.fromkeys((*c.software, *last.software)):
            old, now = c.software.get(name), last.software.get(name)
            if old != now:
                sentences.append(
                    f"Measured with {name} {old or 'unknown'}; the newest result of it, of "
                    f"{last.day}, has {name} {now or 'unknown'}."
                )
    return tuple(sentences)


def commands(scenario: Scenario, plan: Plan | None) -> str:
    """Commands that measure one node, or two over ssh if the plan has more, and add the result.

    They measure the matmuls of the plan that the link selects.
    """
    query = {n: v for n, v in query_of(scenario) if n != "calibration"}
    if plan is not None:
        query["plan"] = plan.id
    link = shlex.quote("?" + urlencode(query, safe=",/:~"))
    is_one = plan is None or min(plan.num_nodes, MOST_HOSTS) == 1
    where = "--launcher local" if is_one else "--launcher ssh --hosts node1,node2"
    return (
        f"runcast calibrate {where} --out calibration.json \\\n    --plan {link}\n"
        "runcast calibrations add calibration.json"
    )


# --- tables --------------------------------------------------------------------------------------


CONSTANTS: tuple[Column[Constant], ...] = (
    text_column("Constant", lambda x: constant_name(x.name), wraps=True),
    text_column("Assumed", lambda x: number(x.assumed, x.unit), wraps=True),
    text_column("Measured", lambda x: number(x.measured, x.unit), wraps=True),
    column("Factor used", lambda x: x.factor, write=lambda v: f"{v:.3f}"),
    text_column("P10 to P90", lambda x: f"{x.low:.3f} to {x.high:.3f}"),
    text_column("Change", moved),
    column("Measured rows", lambda x: x.num_measured, short="Rows"),
    text_column(
        "Leave-one-out error", lambda x: fmt.percent(x.left_out_error), short="Left-out error"
    ),
    text_column("Description", lambda x: x.note),
)


def constants(c: Calibration) -> Table[Constant]:
    """One row per constant: assumed, measured, and the factor that the forecast uses."""
    return Table(caption="Constants of this result", columns=CONSTANTS, rows=c.fitted.constants)


def group_name(x: Link) -> str:
    """A process group in words: its name, ranks, nodes."""
    return f"{x.group}: {x.ranks} ranks of {nodes(x.nodes)}"


def listed(rows: Iterable[Calibration], stale: Stale) -> Table[Calibration]:
    """All results on this installation, with a word on the state of each."""

    def state(c: Calibration) -> str:
        if c.problem:
            return "damaged"
        return "no date" if c.measured_on is None else "old" if stale.get(c.id) else "ok"

    def day_and_place(c: Calibration) -> str:
        if c.problem:
            return fmt.MISSING
        return f"{c.day} on {c.place}" if c.imported_from is None else f"{c.day}, {c.place}"

    columns = (
        text_column("Id", lambda c: c.id, wraps=True),
        text_column("Accelerator", lambda c: c.accelerator or fmt.MISSING, wraps=True),
        text_column("Measured", day_and_place, wraps=True),
        text_column("GPUs", lambda c: fmt.count(c.num_gpus), wraps=True),
        text_column("Software", lambda c: c.software_text or fmt.MISSING, wraps=True),
        text_column("State", state),
        text_column("Note", lambda c: c.note, wraps=True),
    )
    return Table(caption="Calibrations", columns=columns, rows=tuple(rows))


def provenance(c: Calibration) -> dict[str, str]:
    """Where, when and with what a result was measured."""
    facts = {"Id": c.id}
    if (r := c.imported) is not None:
        return facts | {
            "Measured by": f"{r.format}, imported",
            "Accelerator (as given or printed)": c.accelerator,
            "Device": c.device or fmt.MISSING,
            "GPUs, nodes": f"{c.num_gpus}, {c.num_nodes}",
            "Measured": c.day,
            "Software": c.software_text or fmt.MISSING,
            "File": f"{fmt.count(r.source_bytes)} bytes, sha256 {r.source_sha256[:16]}",
            "Not recorded": "host, clocks, a control operation, the spread of samples",
        }
    if (m := c.measured) is None:
        return facts
    p, hosts = m.provenance, [n.host for n in m.nodes]
    more = f" and {len(hosts) - 8} more" if len(hosts) > 8 else ""
    return facts | {
        "Device": f"{p.device.num_local} x {p.device.name}",
        "Nodes": f"{', '.join(hosts[:8])}{more}",
        "Measured": f"{p.utc_start} to {p.utc_end}, {fmt.seconds(m.wall_s)}",
        "Software": c.software_text,
        "Python, system": f"{p.python}, {p.os}",
        "Launcher": " ".join(x for x in (p.launcher, p.job_id) if x) or fmt.MISSING,
        "Where (as given)": ", ".join(f"{k} {v}" for k, v in p.told.items()) or fmt.MISSING,
        "Paid": fmt.usd(m.usd),
        "Drift of the control": fmt.percent(c.judged.drift),
        "Probe": f"version {m.probe_version}, sha256 {p.probe_sha256[:16]}",
        "Not measured": ", ".join(dict.fromkeys(s.group for s in m.skipped)) or "nothing",
    }


# --- rows of charts ------------------------------------------------------------------------------


def factors(found: Iterable[Calibration]) -> pd.DataFrame:
    """The factor of each constant of each calibration, as numbers."""
    rows = [
        {
            "constant": constant_name(x.name), "factor": x.factor, "low": x.low, "high": x.high,
            "moved": moved(x), "measured": number(x.measured, x.unit),
            "assumed": number(x.assumed, x.unit), "at": c.measured_at, "host": c.place, "id": c.id,
        }
        for c in found
        for x in c.fitted.constants
    ]  # fmt: skip
    return pd.DataFrame(rows)


def measured_points(c: Calibration, group: str) -> pd.DataFrame:
    """The measured time of every message size in one group, spikes included."""
    rows = []
    for n, x in _links_of(c, group):
        spikes = dict(zip(x.curve.size_bytes.tolist(), x.curve.spikes.tolist(), strict=True))
        rows += [
            _point(x, size_bytes, time_s) | {"spike": bool(spikes.get(size_bytes))}
            for size_bytes, time_s in _times(c, n, x)
        ]
    return pd.DataFrame(rows, columns=["op", "bytes", "us", "busbw", "spike"])


def _times(c: Calibration, index: int, x: Link) -> list[tuple[float, float]]:
    """The measured sizes and times of a link, spikes included."""
    if c.imported is not None:
        tables = [t for t in map(curve_points, c.imported.collectives) if t is not None]
        return [(p.size_bytes, p.time_s) for p in tables[index].points]
    return [
        (r.bytes, r.t_med_s)
        for r in (c.measured.rows("collectives") if c.measured else ())
        if (r.params["op"], r.params["group"]) == (x.op, x.group) and r.bytes is not None
    ]


def fitted_lines(c: Calibration, group: str) -> pd.DataFrame:
    """Points on the fitted curves of one group."""
    rows = []
    for _, x in _links_of(c, group):
        sizes = np.geomspace(x.curve.size_bytes[0], x.curve.size_bytes[-1], CURVE_POINTS)
        times = np.asarray(message_curve.interpolated_s(x.curve, sizes))
        rows += [_point(x, float(b), float(t)) for b, t in zip(sizes, times, strict=True)]
    return pd.DataFrame(rows, columns=["op", "bytes", "us", "busbw"])


def _links_of(c: Calibration, group: str) -> list[tuple[int, Link]]:
    return [(n, x) for n, x in enumerate(c.fitted.links) if group_name(x) == group]


def _point(x: Link, size_bytes: float, time_s: float) -> dict[str, object]:
    busbw = size_bytes * x.bus_factor / time_s / 1e9
    return {"op": x.op, "bytes": size_bytes, "us": time_s * 1e6, "busbw": busbw}


# --- blocks --------------------------------------------------------------------------------------


def listed_blocks(rows: list[Calibration], stale: Stale, sentence: str) -> Iterator[Block]:
    """All results, newest first, and why some are stale or damaged."""
    yield listed(rows, stale) if rows else Paragraph(NONE)
    reasons = ((c.id, text) for c in rows for text in (c.problem, *stale.get(c.id, ())) if text)
    yield Bullets(tuple(f"{name}: {text}" for name, text in reasons))
    if sentence:
        yield Paragraph(f"Notes are not shown: {sentence}")


def added_blocks(added: Added) -> Iterator[Block]:
    """The result that was added, and how to use it."""
    yield Paragraph(added_sentence(added))
    yield from _flags(added.calibration)
    yield from map(Paragraph, added.sentences)
    yield Paragraph(f"runcast plan ... --calibration {added.calibration.id}")


def shown_blocks(c: Calibration, stale: tuple[str, ...]) -> Iterator[Block]:
    """Everything that one result contains, on a terminal."""
    yield Paragraph(f"{c.label}: {c.judged.status}.")
    if c.note:
        yield Paragraph(f"Note: {c.note}")
    for sentence in stale:
        yield Paragraph(f"Old: {sentence}" if c.measured_on else sentence)
    yield constants(c).without("Description")
    yield Paragraph(f"All {c.source}. {missing_sentence(c)}".strip())
    if c.fitted.links:
        yield Bullets(tuple(map(link_sentence, c.fitted.links)), "Links")
    yield from tested_blocks(c)


def tested_blocks(c: Calibration) -> Iterator[Block]:
    """What supports a result: the held-out step, the nodes compared, flags, provenance."""
    yield Paragraph(held_out_sentence(c))
    yield Paragraph(nodes_sentence(c))
    yield from _flags(c)
    yield Bullets(tuple(f"{name}: {text}" for name, text in provenance(c).items()), "Provenance")


def _flags(c: Calibration) -> Iterator[Block]:
    if flags := c.judged.flags:
        lines = (f"{f.severity}: {f.sentence} {f.meaning}".strip() for f in flags)
        yield Bullets(tuple(lines), "Flags")


# --- effect on a plan ----------------------------------------------------------------------------


AnswerOf = Callable[[Scenario], Answer]
Change = tuple[str, Plan | None, Plan | None]  # name, plan without and plan with; None: not ranked
FIGURES: tuple[tuple[str, Callable[[Plan], float | None], Callable[[float | None], str]], ...] = (
    ("Speed", lambda p: p.tokens_per_s.p50, fmt.tokens_per_s),
    ("Time", lambda p: p.expected_hours, fmt.days),
    ("Cost", lambda p: p.paid_usd, fmt.usd),
)


def changes(scenario: Scenario, answer_of: AnswerOf) -> tuple[Change, ...]:
    """The chosen plan without and with the calibrations, and the best plan where it differs."""
    without = changed(scenario, calibration=(), plan="")
    after, before = answer_of(scenario), answer_of(without)
    plan, same = after.chosen(scenario.plan), None
    if plan is not None:
        plans = answer_of(changed(without, plan=plan.id)).plans
        same = next((p for p in plans if p.id == plan.id), None)
    name = f"{fmt.count(plan.num_gpus)} {plan.offer.accelerator}" if plan else "The plan"
    old, new = (a.plans[0] if a.plans else None for a in (before, after))
    rows: list[Change] = [(name, same, plan)]
    if (old and old.id) != (plan and plan.id) or new != plan:
        rows.append(("The best plan", old, new))
    return tuple(rows)


def changes_table(rows: tuple[Change, ...]) -> Table[tuple[str, ...]]:
    """Speed, time, cost and layout without and with the calibrations."""
    cells = []
    for name, before, after in rows:
        for figure, value, text in FIGURES:
            old, new = (None if p is None else value(p) for p in (before, after))
            change = f"{new / old - 1:+.1%}" if old and new else fmt.MISSING
            cells.append((name, figure, text(old), text(new), change))
        first, last = (fmt.layout_short(p.layout) if p else fmt.MISSING for p in (before, after))
        cells.append((name, "Layout", first, last, "same" if first == last else "other"))
    return plain(
        "Effect on the plan", ("Plan", "Figure", "Without", "With the calibration", "Change"), cells
    )


def changes_sentences(rows: tuple[Change, ...]) -> tuple[str, str]:
    """The effect on the first plan, and on the width of its interval of speed ('': none)."""
    name, before, after = rows[0]
    if after is None or before is None:
        return "Nothing fits without the calibration or with it: there is nothing to compare.", ""
    old, new = (p.tokens_per_s.p90 / p.tokens_per_s.p10 - 1 for p in (before, after))
    width = f"P10 to P90 of the speed spans {old:.0%} without and {new:.0%} with it."
    if not after.calibration:
        return (
            f"The plan runs on {after.offer.accelerator}. No calibration in use is for it, so its "
            "forecast is unchanged."
        ), width
    steps = []
    for _, value, text in FIGURES[1:]:
        first, last = text(value(before)), text(value(after))
        if value(before) and value(after):
            steps.append(f"{first} {'as before' if first == last else f'become {last}'}")
    speed = after.tokens_per_s.p50
    return (
        f"With the calibration {name} trains {fmt.tokens_per_s(speed)} "
        f"({speed / before.tokens_per_s.p50 - 1:+.1%}): {', '.join(steps)}."
    ), width


# --- JSON ----------------------------------------------------------------------------------------


def origin_json(c: Calibration, stale: tuple[str, ...] = ()) -> dict[str, Any]:
    """The origin of a calibration; what is not known is null."""
    names = ("accelerator", "imported_from", "device", "num_gpus", "num_nodes", "host",
             "measured_at", "stack", "software_date", "problem")  # fmt: skip
    versions = {"torch": "torch", "cuda": "CUDA", "hip": "ROCm", "driver": "driver", "nccl": "NCCL"}
    return {
        "id": c.id,
        **{name: value or None for name, value in attributes(c, *names).items()},
        **{key: c.software.get(name) for key, name in versions.items()},
        "stale": list(stale),
        "note": c.note,
    }


def listed_json(rows: Iterable[Calibration], stale: Stale, sentence: str) -> dict[str, Any]:
    """The output of `runcast calibrations list --json`."""
    return {
        "schema_version": SCHEMA_VERSION,
        "calibrations": [origin_json(c, stale.get(c.id, ())) for c in rows],
        "index_problem": sentence or None,
    }


def added_json(added: Added) -> dict[str, Any]:
    """The output of `runcast calibrations add --json`."""
    head = _head_json(added.calibration, ())
    return {**head, "is_new": added.is_new, "sentences": list(added.sentences)}


def _head_json(c: Calibration, stale: tuple[str, ...]) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "calibration": origin_json(c, stale),
        "status": c.judged.status,
        "flags": [attributes(f, "code", "severity", "sentence") for f in c.judged.flags],
    }


def shown_json(c: Calibration, stale: tuple[str, ...]) -> dict[str, Any]:
    """The output of `runcast calibrations show --json`: the whole record."""
    measured, fitted, step = c.measured, c.fitted, c.fitted.held_out
    return {
        **_head_json(c, stale),
        "control_drift": c.judged.drift,
        "constants": [
            {
                **attributes(x, "name", "unit", "assumed", "measured", "factor", "num_measured"),
                "label": constant_name(x.name), "p10": x.low, "p90": x.high,
                "leave_one_out_error": x.left_out_error, "source": c.source, "what": x.note,
            }
            for x in fitted.constants
        ],
        "missing": list(fitted.missing),
        "held_out": None if step is None else {
            **attributes(step, "num_layers", "measured_s", "before_s", "after_s"),
            "before_ratio": step.before, "after_ratio": step.after,
        },
        "links": [_link_json(x) for x in fitted.links],
        "checkpoint_bytes_per_s": fitted.checkpoint_bytes_per_s,
        "slow_nodes": [
            {"index": i, "node": measured.nodes[i].host, "time_ratio": ratio}
            for i, ratio in slow_nodes(measured).items()
        ] if measured else [],
        "skipped": [s.model_dump() for s in measured.skipped] if measured else [],
        "provenance": measured and measured.provenance.model_dump(exclude={"topology"}),
        "imported": c.imported and c.imported.model_dump(
            by_alias=True, exclude={"collectives", "matmuls"}
        ),
    }  # fmt: skip


def _link_json(x: Link) -> dict[str, Any]:
    low, high = x.bus_interval
    rows = zip(x.curve.size_bytes, x.curve.time_s, x.curve.spikes, strict=True)
    return {
        **attributes(x, "op", "group", "ranks", "nodes", "bus_bytes_per_s"),
        "bus_bytes_per_s_p5": low,
        "bus_bytes_per_s_p95": high,
        "latency_s": x.curve.latency_s,
        "leave_one_out_error": x.curve.left_out_error,
        "points": [
            {"size_bytes": float(b), "time_s": float(t), "spike": bool(s)} for b, t, s in rows
        ],
    }
