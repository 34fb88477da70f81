"""The functions of the module runcast, its answer, and what it is made of.

The keywords are the fields of a scenario, as links and scenario files have them
(docs/reference/fields.md); numbers may be numbers or text like '15T' and '8k'. They are parsed like
links and files, with the same sentences for mistakes: every mistake is a `RuncastError`. Results
are frozen; the unit of a number is in its name, fractions are fractions. Nothing is fetched, and
only `Answer.save` writes a file.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from app.bill.bill import Bill, bill_of
from app.command.given import Given
from app.command.values import REQUIRED, TOP_MAX, lacking, scenario_of
from app.document.as_json import Json
from app.document.on_use import pd
from app.forecast import answer as forecast_answer
from app.forecast import price_book, resolve
from app.plan import words as plan_words
from app.plan.as_json import plan_json
from app.plan.planned import asked_plan
from app.risk.risk import Risk, risk_of
from app.scenario.file import write_scenario_file
from app.scenario.link_query import link_query
from core.cost.run_cost import RunCost
from core.cost.uncertain import Uncertain
from core.errors import RuncastError, ScenarioError, shown, unknown_name
from core.scenario import Scenario
from core.search import plan as core_plan
from core.search.plan import Exclusion, Layout, Plan
from pricing.offers import snapshot

if TYPE_CHECKING:
    from app.document.chart_parts import Drawn
    from app.options.side_by_side import Subject

__all__ = [
    "Answer",
    "Bill",
    "Exclusion",
    "Interval",
    "Layout",
    "Plan",
    "Risk",
    "RunCost",
    "RuncastError",
    "Scenario",
    "Uncertain",
    "clouds",
    "gpus",
    "models",
    "open_file",
    "open_link",
    "plan",
    "side_by_side",
]

Interval = Uncertain  # its name before version 1

Value: TypeAlias = str | float | bool | Iterable[object] | None
FilePath: TypeAlias = str | PathLike[str]

SHOWN = 10  # plans that a notebook shows
TOP = 50  # plans that an answer describes, as `runcast plan --json` does


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Answer:
    """The answer to one scenario: ranked plans, exclusions with reasons, and the link that reopens
    it."""

    scenario: Scenario  # every choice, with canonical names and defaults filled in
    found: core_plan.Answer  # the answer of the search: counts, columns of every plan
    notes: tuple[str, ...] = ()  # parts of a link or file that could not be used as given

    def __repr__(self) -> str:
        return f"<runcast.Answer: {self.sentence}>"

    def _repr_html_(self) -> str:
        """The answer as a notebook shows it: the sentence, the first plans, and the link."""
        from app.document.html import fragment
        from app.plan.answer_document import blocks

        first = replace(self.found, plans=self.plans[:SHOWN])
        return fragment(blocks(self.scenario, first, today=_today()))

    def chart(self, *, theme: str = "light") -> Drawn:
        """Cost against time of every priced plan, as on the page: an Altair chart to show or save.

        `theme` is 'light' or 'dark'. RuncastError if no plan has a price.
        """
        import altair as alt

        from app.document import format as fmt
        from app.plan import charts, document

        points = document.points(self.found)
        if points.empty:
            raise RuncastError("No plan has a price: there is nothing to draw.")
        budget, deadline = self.scenario.budget_usd, self.scenario.deadline_days
        spec = charts.pareto(
            points,
            budget_usd=budget,
            deadline_days=deadline,
            budget_text=f"Budget {fmt.usd_short(budget)}",
            deadline_text=f"Deadline {fmt.count(deadline)} days",
            theme=theme,
        )
        return alt.LayerChart.from_dict(spec, validate=False)

    @property
    def sentence(self) -> str:
        """The answer in one sentence, or why there is none."""
        return plan_words.answer_sentence(self.scenario, self.found)

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The first `top` plans, the best first, and the one that the scenario selects; empty if
        nothing fits. `to_pandas` has all plans."""
        return self.found.plans

    @property
    def num_plans(self) -> int:
        """Number of ranked plans."""
        return self.found.num_plans

    @property
    def best(self) -> Plan:
        """The plan that the scenario selects (`select`, or `plan` in a link), else the first one.

        RuncastError, with the text of `sentence`, if nothing fits.
        """
        return asked_plan(self.scenario, self.found)

    @property
    def nothing_fits(self) -> str | None:
        """If there is no plan: by how much the nearest one misses, and the nearest change that
        fits."""
        return self.found.nothing_fits

    @property
    def excluded(self) -> tuple[Exclusion, ...]:
        """Exclusions, each with its count and the reason as a sentence."""
        return self.found.excluded

    @property
    def link(self) -> str:
        """The query of the page's address, after the '?': it reopens this answer, with these
        prices, in `open_link`, `runcast plan --link` and the page."""
        return link_query(self.scenario, snapshot(self.scenario.prices).id)

    def select(self, plan: Plan | int | str) -> Answer:
        """This answer with another of its plans selected: a `Plan`, a rank (1 is the first) or an
        id, from the column `id` of `to_pandas`. RuncastError if there is no such plan.

        >>> answer = plan(model="llama3.1-8b", num_tokens=1e11, seq_len=8192,
        ...     global_batch_size=512, gpu="h100", num_gpus=[64, 128])
        >>> answer.select(2).best.rank
        2
        """
        ids = [str(i) for i in self.found.points.get("id", ())]  # by rank
        named = plan.id if isinstance(plan, Plan) else plan
        if not isinstance(named, str):
            if not 1 <= named <= len(ids):
                raise ScenarioError(f"There is no plan of rank {named}: there are {len(ids):,}.")
            named = ids[named - 1]
        if named not in ids:
            raise ScenarioError(
                f"The plan {shown(named)} is not among the {len(ids):,} ranked plans: the column "
                "'id' of to_pandas() names them."
            )
        scenario = self.scenario.model_copy(update={"plan": named})
        if any(p.id == named for p in self.plans):
            return replace(self, scenario=scenario)
        return _answer(scenario, top=len(self.plans), notes=self.notes)

    def risk(self) -> Risk:
        """Time and cost of the best plan with failures: hours and USD, expected, P50 and P90
        (docs/risk.md has the method and its sources). RuncastError for failure inputs that
        contradict each other."""
        return risk_of(self.scenario, self.best)

    def bill(self) -> Bill:
        """Everything that the best plan costs, in USD, line by line, with energy and carbon
        (docs/bill.md). RuncastError if failures keep the run from ever ending."""
        return bill_of(self.scenario, self.best)

    def report(self, kind: str = "md", *, name: str = "", date: dt.date | None = None) -> bytes:
        """Report on the best plan, as the content of a file (docs/report.md): `kind` is 'md',
        'html' or 'pdf'.

        `name` stands under the title; `date` is today's in UTC if left out, and the same date
        gives the same bytes. RuncastError for an unknown kind or a name that is too long.
        """
        from app.report.report import WRITERS, report_of

        if kind not in WRITERS:
            raise unknown_name("kind of report", kind, WRITERS)
        # A report also draws the plans that no other one beats, so these are described, too.
        whole = forecast_answer.answer(self.scenario, top=TOP, with_frontier=True)
        made = report_of(self.scenario, whole, date=date or _today(), name=name)
        return WRITERS[kind](made)

    def to_pandas(self) -> pd.DataFrame:
        """Every ranked plan, one row each, the best first.

        Columns end in their unit: `usd`, `wall_clock_hours`, `tokens_per_s`, `peak_memory_bytes`,
        `gpu_hours`; `mfu` and `probability_oom` are fractions. Dollars of a plan without a price
        are NaN. Medians only: `plans` has the intervals.
        """
        return pd.DataFrame(dict(self.found.points))

    def to_json(self) -> dict[str, Json]:
        """The document of `runcast plan --json`, as plain dicts and lists: every key is in
        docs/plan-json.md."""
        return plan_json(self.scenario, self.found)

    def save(self, path: FilePath) -> None:
        """Write the scenario to a YAML file that `open_file` and `--scenario` read. RuncastError if
        it cannot be written."""
        write_scenario_file(self.scenario, Path(path))


def plan(
    *,
    model: str | None = None,
    config: FilePath | None = None,
    num_tokens: float | str | None = None,
    seq_len: int | str | None = None,
    global_batch_size: int | str | None = None,
    gpu: str | Iterable[str] | None = None,
    num_gpus: int | str | Iterable[int] | None = None,
    cloud: str | Iterable[str] | None = None,
    purchase: str | Iterable[str] | None = None,
    deadline_days: float | None = None,
    budget_usd: float | None = None,
    top: int = TOP,
    **fields: Value,
) -> Answer:
    """Rank clouds, GPUs, GPU counts and layouts for a run, like `runcast plan`.

    `model` is a preset of `models()`, `config` the path of a Hugging Face config.json: one of them
    is needed, and `num_tokens` (tokens, or else `num_examples`), `seq_len` (tokens) and
    `global_batch_size` (sequences per optimizer step). Lists that are left out mean every GPU,
    powers of two of a node, every cloud; `purchase` is on demand. `fields` are any other fields of
    a scenario: `tp=8`, `precision="fp8"`, `sharding=["fsdp2"]`. None means that a field is not
    given. The answer describes `top` plans, 50 if left out.

    RuncastError names in one sentence what is missing, unknown or out of bounds.

    >>> answer = plan(model="llama3.1-8b", num_tokens="100B", seq_len=8192, global_batch_size=512,
    ...     gpu="h100", num_gpus=[64], tp=2)
    >>> answer.best.offer.accelerator, answer.best.num_gpus, answer.best.layout.tp
    ('H100-80GB-SXM', 64, 2)
    >>> plan(model="llama3.1-8b", training_tokens=1e11)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    core.errors.ScenarioError: Missing num_tokens, seq_len, ...
    """
    typed = _given(
        fields,
        num_tokens=num_tokens,
        seq_len=seq_len,
        global_batch_size=global_batch_size,
        gpu=gpu,
        num_gpus=num_gpus,
        cloud=cloud,
        purchase=purchase,
        deadline_days=deadline_days,
        budget_usd=budget_usd,
    )
    lacks = [] if model is not None or config is not None else ["model or config"]
    if lacks := [*lacks, *lacking(typed, REQUIRED)]:
        raise ScenarioError(f"Missing {', '.join(lacks)}: help(runcast.plan) says what they are.")
    return _asked(typed, Given(options={}), model=model, config=config, top=top)


def open_link(
    link: str,
    *,
    model: str | None = None,
    config: FilePath | None = None,
    top: int = TOP,
    **fields: Value,
) -> Answer:
    """The answer to a link: an address of the page, or its query after the '?'.

    `fields` override those of the link. `notes` lists what the link names and this installation
    lacks, such as its price snapshot. RuncastError if it is not a link or cannot be read.

    >>> answer = open_link("?v=1&model=llama3.1-8b&num_tokens=1e11&gpu=H100-80GB-SXM", num_gpus=64)
    >>> answer.best.num_gpus, answer.scenario.num_tokens
    (64, 100000000000.0)
    """
    opened = Given(options={}, link=link)
    return _asked(_given(fields), opened, model=model, config=config, top=top)


def open_file(
    path: FilePath,
    *,
    model: str | None = None,
    config: FilePath | None = None,
    top: int = TOP,
    **fields: Value,
) -> Answer:
    """The answer to a scenario file (YAML, docs/scenario-file.md); `fields` override its own.

    RuncastError, with the line if known, for a file that cannot be read.
    """
    opened = Given(options={}, file=str(path))
    return _asked(_given(fields), opened, model=model, config=config, top=top)


def side_by_side(*answers: Answer) -> pd.DataFrame:
    """The best plans of two to four answers, quantity by quantity, as on the page's comparison.

    A row is a quantity, `unit` its unit ('' for a text); A, B, C and D are the plans, and 'B minus
    A' their difference. Select plans of one answer with `Answer.select`. RuncastError for another
    number of answers, or one without a plan.

    >>> job = dict(model="llama3.1-8b", num_tokens=1e11, seq_len=8192, global_batch_size=512)
    >>> found = side_by_side(plan(**job, gpu="h100", num_gpus=64), plan(**job, gpu="h200",
    ...     num_gpus=64))
    >>> found.set_index("quantity").loc["GPUs", ["unit", "B minus A"]].tolist()
    ['GPUs', 0.0]
    """
    from app.options import side_by_side as compared

    most = len(compared.LETTERS)
    if not 2 <= len(answers) <= most:
        raise ScenarioError(f"side_by_side takes 2 to {most} answers, not {len(answers)}.")
    subjects: list[Subject] = [
        compared.Subject(letter=letter, scenario=a.scenario, plan=a.best)
        for letter, a in zip(compared.LETTERS, answers, strict=False)
    ]
    return compared.file(compared.rows(subjects, _today()), [s.name for s in subjects])


def models() -> tuple[str, ...]:
    """Presets that `model` takes.

    >>> "llama3.1-70b" in models()
    True
    """
    return tuple(resolve.model_names())


def gpus() -> tuple[str, ...]:
    """Accelerators that `gpu` takes, by their canonical names; 'custom' is one with your own
    figures.

    >>> "H100-80GB-SXM" in gpus()
    True
    """
    return tuple(resolve.accelerator_names())


def clouds() -> tuple[str, ...]:
    """Providers that the installed price snapshot has offers of: what `cloud` takes.

    >>> "aws" in clouds()
    True
    """
    return tuple(resolve.cloud_names())


def _given(fields: dict[str, Value], **named: Value) -> dict[str, Value]:
    """The fields that are given, without None, with columns and ranges as lists."""
    given = {n: v for n, v in {**named, **fields}.items() if v is not None}
    return {
        n: list(v) if isinstance(v, Iterable) and not isinstance(v, str) else v
        for n, v in given.items()
    }


def _asked(
    typed: dict[str, Value], opened: Given, *, model: str | None, config: FilePath | None, top: int
) -> Answer:
    """The answer to keywords, a model or its config, and a link or a file."""
    if model is not None and config is not None:
        raise ScenarioError("Give model or config, not both.")
    if top not in range(1, TOP_MAX + 1):
        raise ScenarioError(f"top={top!r} is not a whole number from 1 to {TOP_MAX}.")
    path = None if config is None else str(config)
    given = replace(opened, model=model, config=path)
    scenario, notes = scenario_of(typed, given, written_as={})
    return _answer(resolve.resolve_strict(scenario), top=top, notes=tuple(notes))


def _answer(scenario: Scenario, *, top: int, notes: tuple[str, ...]) -> Answer:
    found = forecast_answer.answer(scenario, top=top)
    for column in found.points.values():
        column.setflags(write=False)  # an answer is frozen
    return Answer(scenario=scenario, found=found, notes=notes)


def _today() -> dt.date:
    return price_book.today()
