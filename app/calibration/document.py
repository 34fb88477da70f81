"""A calibration as tables: constants, links, flags, provenance, history."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from app.calibration import words
from app.calibration.sources import ValueSource
from app.document import format as fmt
from app.document.on_use import pd
from app.document.table import Column, Table, column, plain, text_column
from app.forecast.calibration_files import Kept
from app.forecast.calibration_origin import Origin, origin_of
from app.forecast.calibrations import Calibration
from core.time import message_curve
from runners.calibration.fit import Constant
from runners.calibration.fit_links import Link
from runners.calibration.result import CalibResult
from runners.imports.constants import curve_points
from runners.imports.result import ImportResult

CURVE_POINTS = 60


def constants(c: Calibration) -> Table[Constant]:
    """One row per constant: assumed, measured, and the factor that the forecast uses."""
    columns: tuple[Column[Constant], ...] = (
        text_column("Constant", lambda x: words.constant_name(x.name), wraps=True),
        text_column("Assumed", lambda x: words.number(x.assumed, x.unit), wraps=True),
        text_column("Measured", lambda x: words.number(x.measured, x.unit), wraps=True),
        text_column("Factor used", lambda x: f"{x.factor:.3f}"),
        text_column("P10 to P90", lambda x: f"{x.low:.3f} to {x.high:.3f}"),
        text_column("It is", words.moved),
        column("Measured rows", lambda x: x.num_measured, short="Rows"),
        text_column(
            "Leave-one-out error", lambda x: fmt.percent(x.left_out_error), short="Left-out error"
        ),
        text_column("From", lambda _: c.origin.label),
        text_column("What it is", lambda x: x.note),
    )
    return Table(caption="Constants of this result", columns=columns, rows=c.fitted.constants)


def factors(c: Calibration) -> pd.DataFrame:
    """The factors as numbers for the chart."""
    return pd.DataFrame(
        [
            _factor(x) | {
                "moved": words.moved(x), "measured": words.number(x.measured, x.unit),
                "assumed": words.number(x.assumed, x.unit),
            }
            for x in c.fitted.constants
        ]
    )  # fmt: skip


def _factor(x: Constant) -> dict[str, object]:
    name = words.constant_name(x.name)
    return {"constant": name, "factor": x.factor, "low": x.low, "high": x.high}


def held_out(c: Calibration) -> pd.DataFrame:
    """The held-out step without and with the calibration: forecast over measured, and measured
    over forecast, which the chart shows."""
    step = c.fitted.held_out
    name = f"{c.origin.where[:24]}, {c.origin.day}"
    ratios = {} if step is None else {"without it": step.before, "with it": step.after}
    rows = [(name, forecast, ratio, 1.0 / ratio) for forecast, ratio in ratios.items()]
    return pd.DataFrame(rows, columns=["result", "forecast", "ratio", "measured_over_forecast"])


def links(c: Calibration) -> Table[Link]:
    """One row per operation and process group."""
    return Table(caption="Collectives", columns=LINKS, rows=c.fitted.links)


def group_name(x: Link) -> str:
    """A process group in words: its name, ranks, nodes."""
    return f"{x.group}: {x.ranks} ranks of {words.nodes(x.nodes)}"


def _bus(x: Link, bytes_per_s: float) -> str:
    return fmt.in_unit(bytes_per_s * x.bus_factor, "GB/s")


LINKS: tuple[Column[Link], ...] = (
    text_column("Operation", lambda x: x.op),
    text_column("Group", group_name),
    column("Bus bandwidth", lambda x: f"{fmt.in_unit(x.bus_bytes_per_s, 'GB/s')} GB/s"),
    column(
        "P5 to P95",
        lambda x: f"{_bus(x, x.curve.bytes_per_s_low)} to {_bus(x, x.curve.bytes_per_s_high)} GB/s",
    ),
    column("Smallest message", lambda x: fmt.seconds(x.curve.latency_s)),
    column("Sizes", lambda x: len(x.curve.size_bytes)),
    column("Spikes left out", lambda x: int(x.curve.spikes.sum())),
    column("Leave-one-out error", lambda x: fmt.percent(x.curve.left_out_error)),
)


def measured_points(c: Calibration, group: str) -> pd.DataFrame:
    """The measured time of every message size in one group."""
    rows = []
    for x in _links_of(c, group):
        spikes = dict(zip(x.curve.size_bytes.tolist(), x.curve.spikes.tolist(), strict=True))
        rows += [
            _point(x, size_bytes, time_s) | {"spike": bool(spikes.get(size_bytes))}
            for size_bytes, time_s in _times(c, x)
        ]
    return pd.DataFrame(rows, columns=["op", "bytes", "us", "busbw", "spike"])


def _times(c: Calibration, x: Link) -> list[tuple[float, float]]:
    """The measured sizes and times of a link, spikes included."""
    if c.measured is not None:
        return [
            (r.bytes, r.t_med_s)
            for r in c.measured.rows("collectives")
            if (r.params["op"], r.params["group"]) == (x.op, x.group) and r.bytes is not None
        ]
    printed = map(curve_points, c.imported.collectives if c.imported else [])
    tables = [table for table in printed if table is not None]
    one = tables[next(i for i, link in enumerate(c.fitted.links) if link is x)]
    return [(p.size_bytes, p.time_s) for p in one.points]


def fitted_lines(c: Calibration, group: str) -> pd.DataFrame:
    """Points on the fitted curves of one group."""
    rows = []
    for x in _links_of(c, group):
        sizes = np.geomspace(x.curve.size_bytes[0], x.curve.size_bytes[-1], CURVE_POINTS)
        times = np.asarray(message_curve.interpolated_s(x.curve, sizes))
        rows += [_point(x, float(b), float(t)) for b, t in zip(sizes, times, strict=True)]
    return pd.DataFrame(rows, columns=["op", "bytes", "us", "busbw"])


def _links_of(c: Calibration, group: str) -> list[Link]:
    return [x for x in c.fitted.links if group_name(x) == group]


def _point(x: Link, size_bytes: float, time_s: float) -> dict[str, object]:
    return {
        "op": x.op, "bytes": size_bytes, "us": time_s * 1e6,
        "busbw": size_bytes * x.bus_factor / time_s / 1e9,
    }  # fmt: skip


def provenance(c: Calibration) -> Table[tuple[str, ...]]:
    """Where, when and with what a result was measured."""
    rows = _import_rows(c.imported) if c.measured is None else _rows_of(c, c.measured)
    return plain("Provenance", ("What", "Value"), {"Id": c.id, **rows}.items())


def _import_rows(r: ImportResult | None) -> dict[str, str]:
    if r is None:
        return {}
    o = origin_of(r)
    return {
        "Measured by": f"{r.format}, imported",
        "Accelerator (as given or printed)": o.accelerator,
        "Device": o.device or fmt.MISSING,
        "GPUs, nodes": f"{o.num_gpus}, {o.num_nodes}",
        "Measured": o.day,
        "Software": o.stack or fmt.MISSING,
        "File": f"{fmt.count(r.source_bytes)} bytes, sha256 {r.source_sha256[:16]}",
        "Not recorded": "host, clocks, a control operation, the spread of samples",
    }


def _rows_of(c: Calibration, r: CalibResult) -> dict[str, str]:
    p = r.provenance
    return {
        "Device": f"{p.device.num_local} x {p.device.name}",
        "Nodes": ", ".join(n.host for n in r.nodes[:8])
        + (f" and {len(r.nodes) - 8} more" if len(r.nodes) > 8 else ""),
        "Measured": f"{p.utc_start} to {p.utc_end}, {fmt.seconds(r.wall_s)}",
        "Software": c.origin.stack,
        "Python, system": f"{p.python}, {p.os}",
        "Launcher": " ".join(x for x in (p.launcher, p.job_id) if x) or fmt.MISSING,
        "Where (as given)": ", ".join(f"{k} {v}" for k, v in p.told.items()) or fmt.MISSING,
        "Paid": fmt.usd(r.usd),
        "Drift of the control": fmt.percent(c.judged.drift),
        "Probe": f"version {r.probe_version}, sha256 {p.probe_sha256[:16]}",
        "Not measured": ", ".join(dict.fromkeys(s.group for s in r.skipped)) or "nothing",
    }


def sources(found: Iterable[ValueSource]) -> Table[ValueSource]:
    """Where each constant of the plan's accelerator comes from."""
    columns = (
        text_column("Constant", lambda s: words.constant_name(s.name)),
        text_column("Source", lambda s: s.label),
        text_column("Value", lambda s: s.text),
    )
    return Table(caption="Constants", columns=columns, rows=tuple(found))


def listed(found: Iterable[Kept], stale: Mapping[str, tuple[str, ...]]) -> Table[Kept]:
    """All results on this installation, with what is stale about each."""

    def state(k: Kept) -> str:
        if k.problem:
            return "damaged"
        return "no date" if k.measured_on is None else "old" if stale.get(k.id) else "ok"

    def origin(name: str, of: Callable[[Origin], str]) -> Column[Kept]:
        return text_column(name, lambda k: (k.origin and of(k.origin)) or fmt.MISSING, wraps=True)

    columns = (
        text_column("Id", lambda k: k.id, wraps=True),
        text_column("Accelerator", lambda k: k.accelerator or fmt.MISSING, wraps=True),
        origin("Measured", words.day_and_place),
        origin("GPUs", lambda o: fmt.count(o.num_gpus)),
        origin("Software", lambda o: o.stack),
        text_column("State", state),
        text_column("Note", lambda k: k.note, wraps=True),
    )
    return Table(caption="Calibrations", columns=columns, rows=tuple(found))


def history(found: Iterable[Calibration]) -> pd.DataFrame:
    """The factor of each constant over time, from results that have a date."""
    return pd.DataFrame(
        [
            {"at": c.origin.measured_at, **_factor(x), "host": c.origin.where, "id": c.id}
            for c in found
            if c.origin.measured_at is not None
            for x in c.fitted.constants
        ],
        columns=["at", "constant", "factor", "low", "high", "host", "id"],
    )
