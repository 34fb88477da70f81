"""The best layout of each family on a plan's machines, and why a family is out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from app.document import format as fmt
from app.document.table import Column, Table, column, text_column
from app.explain import explained
from app.launch import files
from app.launch.job import job_of
from app.memory.layouts import legal_layouts
from core.explain.explain import Evaluated, record_of
from core.layout.layouts import Layouts
from core.layout.sharding import INDEX
from core.model.dimensions import is_moe
from core.scenario import Scenario
from core.search.job import PlanJob
from core.search.plan import Layout, Plan

Mask = NDArray[np.bool_]
CONTEXT = "+ CP"
MOST_TRIED = 12  # layouts of a family that are tried for a launch file, the fastest first
ALONE = ("DDP", "ZeRO-1", "ZeRO-2", "ZeRO-3", "FSDP2", "HSDP")  # data parallelism and nothing else


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """The best layout of a family: of the fastest that fit one that a stack starts, else the one
    that lacks least memory."""

    name: str
    stack: str = ""  # whose time and memory these are
    layout: Layout | None = None  # None: no layout of it is legal here
    hours: float = math.nan
    usd: float = math.nan
    need_bytes: float = math.nan
    stacks: tuple[str, ...] = ()  # those with a launch file for it
    why_not: str = ""  # empty: it fits


def _alone(x: Layouts) -> Mask:
    """Neither tensor, pipeline, context nor expert parallel, and nothing on the host."""
    one = (np.asarray(x.tp) == 1) & (np.asarray(x.pp) == 1)
    return one & (np.asarray(x.cp) == 1) & (np.asarray(x.ep) == 1) & ~_offloads(x)


def _offloads(x: Layouts) -> Mask:
    return (np.asarray(x.offload_optimizer) > 0) | (np.asarray(x.offload_params) > 0)


def _sharded(name: str) -> Callable[[Layouts], Mask]:
    return lambda x: _alone(x) & (np.asarray(x.strategy) == INDEX[name])


def _cut(*degrees: str) -> Callable[[Layouts], Mask]:
    """Layouts in which exactly these degrees of tp, pp, cp and ep are above 1."""

    def mask(x: Layouts) -> Mask:
        above = {n: np.asarray(getattr(x, n)) > 1 for n in ("tp", "pp", "cp", "ep")}
        kept = [above[n] if n in degrees else ~above[n] for n in above]
        return np.asarray(np.logical_and.reduce(kept)) & ~_offloads(x)

    return mask


FAMILIES: tuple[tuple[str, Callable[[Layouts], Mask]], ...] = (
    ("DDP", _sharded("ddp")),
    ("ZeRO-1", _sharded("zero1")),
    ("ZeRO-2", _sharded("zero2")),
    ("ZeRO-3", _sharded("zero3")),
    ("FSDP2", _sharded("fsdp2")),
    ("HSDP", _sharded("hsdp")),
    ("TP", _cut("tp")),
    ("TP + PP", _cut("tp", "pp")),
    ("PP", _cut("pp")),
    (CONTEXT, lambda x: (np.asarray(x.cp) > 1) & ~_offloads(x)),
    ("+ EP", lambda x: (np.asarray(x.ep) > 1) & ~_offloads(x)),
    ("Offload", _offloads),
)


def families(scenario: Scenario, plan: Plan) -> tuple[Family, ...]:
    """The best of each family on the machines of a plan, in the order of FAMILIES: of all stacks
    where the scenario leaves the stack open."""
    found = [_of_job(job, plan) for job in explained.jobs_by_stack(scenario, plan)]
    return tuple(min(same, key=_worse) for same in zip(*found, strict=True))


def _worse(family: Family) -> tuple[bool, bool, float]:
    """Families are sorted by it, the best first."""
    out = family.why_not != ""
    return out, family.layout is None, family.need_bytes if out else family.hours


def _of_job(job: PlanJob, plan: Plan) -> list[Family]:
    """The best of each family with one stack."""
    stack = job.scenario.stack
    found, _ = legal_layouts(job, None)
    recipe = job_of(job.scenario, replace(plan, stack=stack, job=job))

    def best(name: str, found: Evaluated, mask: Mask) -> Family:
        rows = np.flatnonzero(mask)
        if not len(rows):
            return Family(name=name, why_not=_absent(name, plan, job))
        on_host = np.asarray(found.host_bytes <= job.host_bytes)
        fit = rows[(found.fits & on_host)[rows]]
        row, layout, stacks = _launched(found, fit) if len(fit) else (0, None, ())
        if layout is None:
            row = _least(found.need_bytes, rows)
            layout = record_of(found.layouts, row)
        return Family(
            name=name,
            stack=stack,
            layout=layout,
            hours=float(found.hours[row]),
            usd=float(found.usd[row]),
            need_bytes=float(found.need_bytes[row]),
            stacks=stacks,
            why_not="" if len(fit) else _short(found, row, on_host=bool(on_host[row])),
        )

    def _launched(found: Evaluated, fit: NDArray[np.intp]) -> tuple[int, Layout, tuple[str, ...]]:
        """The fastest of the first layouts that has a launch file, else the fastest."""
        fastest = fit[np.argsort(found.step_s[fit], kind="stable")][:MOST_TRIED]
        tried = ((int(r), record_of(found.layouts, int(r))) for r in fastest)
        each = [(r, x, tuple(files.offered(replace(recipe, layout=x), "stack"))) for r, x in tried]
        return next((one for one in each if one[2]), each[0])

    by_name = {name: best(name, found, mask(found.layouts)) for name, mask in FAMILIES}
    if by_name[CONTEXT].layout is None and job.question.choices.cp is None and plan.num_gpus > 1:
        # The search leaves context parallelism out at this length; here it is tried.
        cut = replace(job.question, choices=replace(job.question.choices, cp=2))
        tried, _ = legal_layouts(replace(job, question=cut), None)
        by_name[CONTEXT] = best(CONTEXT, tried, ~_offloads(tried.layouts))
    return list(by_name.values())


def _least(values: NDArray[np.float64], rows: NDArray[np.intp]) -> int:
    return int(rows[np.argmin(values[rows])])


def _short(found: Evaluated, row: int, *, on_host: bool) -> str:
    if not on_host:
        return "the host's memory is too small"
    need, usable = float(found.need_bytes[row]), float(found.usable_bytes[row])
    return f"needs {fmt.gib(need)} of {fmt.gib(usable)} that a plan may use"


def _absent(name: str, plan: Plan, job: PlanJob) -> str:
    """Why no layout of a family is legal."""
    batch_size = job.scenario.global_batch_size
    if plan.num_gpus == 1 and name != "Offload":
        return "there is one GPU"
    if name == "+ EP" and not bool(is_moe(job.work.model)):
        return "the model has no experts"
    if name in ALONE and batch_size % plan.num_gpus:
        batch = fmt.count(batch_size)
        return f"{fmt.count(plan.num_gpus)} ranks do not divide the batch of {batch}"
    if name == "HSDP" and plan.num_nodes == 1:
        return "there is one machine"
    return "no legal layout: the form, the stack, the batch or the number of GPUs rules it out"


def _starts(family: Family) -> str:
    files_of = ", ".join(family.stacks) or "no launch file for it"
    return f"Not: {family.why_not}" if family.why_not else files_of


COLUMNS: tuple[Column[Family], ...] = (
    text_column("Family", lambda f: f.name, width=2),
    text_column("Stack", lambda f: f.stack, width=2),
    column("Time", lambda f: fmt.days(f.hours)),
    column("Cost", lambda f: fmt.usd_short(f.usd)),
    column("Memory per GPU", lambda f: fmt.gib(f.need_bytes)),
    text_column("Layout", lambda f: fmt.layout_short(f.layout) if f.layout else "", width=4),
    text_column("Launch files, or why not", _starts, width=6),
)


def table(found: tuple[Family, ...]) -> Table[Family]:
    """The families, those that fit first and the fastest first."""
    rows = sorted(found, key=_worse)
    return Table(caption="The best layout of each family", columns=COLUMNS, rows=tuple(rows))
