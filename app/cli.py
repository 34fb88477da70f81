"""The command line: `runcast plan`, `estimate`, `explain`, `models`, `gpus`, `offers`, `sweep`,
`decide`, `refresh`, `validate`.

Every value is taken as text and becomes a `Scenario` where a link does, so that 1e12, 15T and 8k
work and every mistake is one sentence on stderr and exit status 2. Modules that read facts are
imported by the command that needs them: `runcast --help` must not wait for a table.
"""

from __future__ import annotations

import datetime as dt
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from app.cli_options import Given, takes_fields
from app.decide_cli import decide
from app.explain_cli import explain
from app.price_book_cli import book
from app.prices_cli import add_to
from core.errors import RuncastError, ScenarioError, shown

if TYPE_CHECKING:
    from core.scenario import Scenario

FAILED = 2  # exit status of every mistake that a user can fix
INTERRUPTED = 130  # as a shell reports Ctrl-C
TOP_TABLE = 10
TOP_JSON = 50
TOP_OFFERS = 40

app = typer.Typer(
    name="runcast",
    help="Forecast the time and the cost of a training run before renting a single GPU.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

prices = typer.Typer(
    name="prices", help="Prices that are kept on this machine.", no_args_is_help=True
)
prices.add_typer(book)
add_to(prices)
app.add_typer(prices)

Text = str | None


def _option(name: str, metavar: str, text: str) -> Any:
    return typer.Option(name, metavar=metavar, help=text, show_default=False)


# Shared by several commands; the fields of a scenario are in app/cli_options.py.
Model = Annotated[Text, _option("--model", "ID", "A preset: see `runcast models`.")]
Config = Annotated[Text, _option("--config", "FILE", "A Hugging Face config.json instead.")]
SeqLen = Annotated[Text, _option("--seq-len", "N", "Tokens per sequence; 8k is 8192.")]
Link = Annotated[Text, _option("--link", "QUERY", "Reopen a link; other options override it.")]
File = Annotated[
    Text, _option("--scenario", "FILE", "Open a scenario file (YAML); other options override it.")
]
Save = Annotated[Text, _option("--save", "FILE", "Write the scenario to a file (YAML).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from importlib.metadata import PackageNotFoundError
        from importlib.metadata import version as installed

        try:
            typer.echo(f"runcast {installed('runcast')}")
        except PackageNotFoundError:
            typer.echo("runcast (not installed)")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit


@app.command()
@takes_fields
def plan(
    given: Given,
    model: Model = None,
    config: Config = None,
    link: Link = None,
    scenario: File = None,
    save: Save = None,
    top: Annotated[Text, _option("--top", "K", "Plans to show (10; 50 as JSON).")] = None,
    as_json: AsJson = False,
) -> None:
    """Rank the machines and layouts that could do a training run, with time and dollars."""
    from app.cli_values import Opened, plan_scenario, plans_to_show
    from app.estimate import answer, resolve_strict
    from app.plan_json import plan_json

    shown_plans = plans_to_show(top, TOP_JSON if as_json else TOP_TABLE)
    opened = Opened(model=model, config=config, link=link, file=scenario)
    asked, notes = plan_scenario(given, opened)
    asked = resolve_strict(asked)
    _say_and_save(asked, notes, save)
    found = answer(asked, top=shown_plans)
    if as_json:
        _print_json(plan_json(asked, found))
    else:
        from app.terminal import print_answer

        print_answer(asked, found, today=_today())


@app.command()
@takes_fields
def estimate(
    given: Given,
    model: Model = None,
    config: Config = None,
    layout: Annotated[
        Text, _option("--layout", "KEY=N,..", "tp=8,pp=4,dp_shard=16,sharding=zero1,...")
    ] = None,
    link: Link = None,
    scenario: File = None,
    save: Save = None,
    as_json: AsJson = False,
) -> None:
    """Forecast one named layout on one kind of GPU; what it leaves out is searched."""
    from app.cli_values import TOP_MAX, Opened, layout_scenario
    from app.estimate import answer, resolve_strict
    from app.one_layout import judged
    from app.plan_json import estimate_json

    opened = Opened(model=model, config=config, link=link, file=scenario)
    asked, keys, notes = layout_scenario(given, opened, layout)
    asked = resolve_strict(asked)
    _say_and_save(asked, notes, save)
    found, verdict = judged(answer(asked, top=TOP_MAX), keys)
    found = replace(found, plans=found.plans[: TOP_JSON if as_json else TOP_TABLE])
    if as_json:
        _print_json(estimate_json(asked, found, verdict))
    else:
        from app.terminal import print_answer

        print_answer(asked, found, today=_today())


app.command()(takes_fields(explain))
app.command()(decide)


@app.command()
def gpus(as_json: AsJson = False) -> None:
    """List the accelerators with the figures that forecasts use."""
    from app.machine_json import gpus_json

    if as_json:
        _print_json(gpus_json())
    else:
        from app.machine_tables import print_gpus

        print_gpus(gpus_json())


@app.command()
def offers(
    gpu: Annotated[Text, _option("--gpu", "A,B", "Of these accelerators only.")] = None,
    cloud: Annotated[Text, _option("--cloud", "A,B", "Of these providers only.")] = None,
    purchase: Annotated[Text, _option("--purchase", "A,B", "on_demand, spot, ...")] = None,
    top: Annotated[Text, _option("--top", "K", "Offers to show (40; all as JSON).")] = None,
    as_json: AsJson = False,
) -> None:
    """List the newest prices of the installed snapshot, the cheapest GPU-hour first."""
    from app.cli_values import offers_scenario, plans_to_show
    from app.machine_json import offers_json

    shown_offers = None if as_json and top is None else plans_to_show(top, TOP_OFFERS)
    asked = offers_scenario({"gpu": gpu, "cloud": cloud, "purchase": purchase})
    found = offers_json(asked, any_purchase=purchase is None, today=_today())
    found["offers"] = found["offers"][:shown_offers]
    if as_json:
        _print_json(found)
    else:
        from app.machine_tables import print_offers

        print_offers(found)


@app.command()
def models(
    model: Model = None, config: Config = None, seq_len: SeqLen = None, as_json: AsJson = False
) -> None:
    """List the presets, or show the parameters and FLOPs of one model."""
    from app import terminal
    from app.cli_values import model_values, parsed
    from app.model_input import model_of
    from app.model_json import model_json, presets_json

    options = {} if seq_len is None else {"seq_len": seq_len}
    chosen = model_values(model, config)
    written_as = {"seq_len": "--seq-len ", "model": "--model "}
    scenario = parsed({**chosen, **options}, written_as=written_as)
    if chosen:
        facts = model_json(model_of(scenario), seq_len=scenario.seq_len)
        _print_json(facts) if as_json else terminal.print_model(facts)
    else:
        presets = presets_json(seq_len=scenario.seq_len)
        _print_json(presets) if as_json else terminal.print_presets(presets)


@app.command()
def sweep(
    file: Annotated[str, typer.Argument(metavar="FILE", help="YAML, see docs/sweeps.md.")],
    out: Annotated[Text, _option("--out", "DIR", "Results; FILE.sweep if left out.")] = None,
    workers: Annotated[Text, _option("--workers", "N", "Processes; one a core.")] = None,
    ray: Annotated[Text, _option("--ray", "ADDRESS", "On this Ray cluster instead.")] = None,
    max_cells: Annotated[Text, _option("--max-cells", "N", "Refuse more (100,000).")] = None,
) -> None:
    """Cross lists of scenario values into a table, a row a cell; a killed one resumes."""
    from app.sweep_run import run_sweep

    said = run_sweep(Path(file), out=out, workers=workers, ray=ray, max_cells=max_cells)
    typer.echo("\n".join(said))


@app.command()
def refresh(
    source: Annotated[
        list[str] | None, _option("--source", "NAME", "Ask this source only; repeatable.")
    ] = None,
    accept: Annotated[
        list[str] | None,
        _option("--accept", "NAME", "Believe this source's jumps and losses; repeatable."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Ask and check, but publish nothing.")
    ] = False,
    every: Annotated[Text, _option("--every", "TIME", "Again and again: 30m, 6h, 1d.")] = None,
    as_json: AsJson = False,
) -> None:
    """Fetch live prices, check them and publish a price snapshot on this installation."""
    from app.refresh_cli import run

    status = run(source or [], accepted=accept or [], dry_run=dry_run, every=every, as_json=as_json)
    raise typer.Exit(status)


@app.command()
def validate(
    runs: Annotated[Text, _option("--runs", "FILE", "Measured runs.")] = None,
    models: Annotated[Text, _option("--models", "FILE", "Their models.")] = None,
    pairs: Annotated[Text, _option("--pairs", "FILE", "Pairs of runs with one change.")] = None,
    out: Annotated[Text, _option("--out", "FILE", "Write one prediction a row.")] = None,
    readme: Annotated[
        Text, _option("--readme", "FILE", "Rewrite the accuracy block of this file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Predict measured runs and score the predictions beside a baseline."""
    missing = [f"--{n}" for n, v in (("runs", runs), ("models", models)) if v is None]
    if runs is None or models is None:
        raise ScenarioError(f"Missing {', '.join(missing)}: `runcast validate --help` says what.")
    from app import validate as validation

    report = validation.validate(Path(runs), Path(models), Path(pairs) if pairs else None)
    if out is not None:
        validation.write_out(report, Path(out))
    if readme is not None:
        from app.accuracy_readme import rewrite
        from hardware.cross_validation import cross_validation

        rewrite(Path(readme), report, cross_validation())
    if as_json:
        _print_json(validation.report_json(report))
    else:
        from app.terminal import console

        validation.print_report(report, console())


@app.command()
def fit(
    write: Annotated[bool, typer.Option("--write", help="Replace the shipped tables.")] = False,
    ablate: Annotated[
        bool, typer.Option("--ablate", help="Fit again without each ingredient (minutes).")
    ] = False,
) -> None:
    """Fit the efficiencies from their priors to the shipped runs, and cross-validate them."""
    from app.fit import refit
    from app.fit_report import figures, print_figures
    from app.terminal import console
    from hardware.cross_validation import write_cross_validation
    from hardware.efficiency import read_entries, write_entries

    if ablate:
        from app.fit_ablation import ablation
        from app.fit_report import print_ablation

        print_ablation(ablation(read_entries(), _today()), console())
        return
    result = refit(read_entries(), _today())
    found = list(figures(result, _today()))
    if write:
        write_entries(result.entries)
        write_cross_validation(found)
    print_figures(result, found, console())


def _say_and_save(scenario: Scenario, notes: Sequence[str], path: str | None) -> None:
    """Say the notes, and write the scenario where a file is asked for."""
    for note in notes:
        _say(note)
    if path is not None:
        from app.scenario_file import write_scenario_file

        write_scenario_file(scenario, Path(path))


def _today() -> dt.date:
    return dt.datetime.now(dt.UTC).date()


def _print_json(value: object) -> None:
    """Indented JSON in the order it was built; NaN cannot be written, orjson makes it null."""
    import orjson

    options = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE
    typer.echo(orjson.dumps(value, option=options), nl=False)


def _say(sentence: str) -> None:
    typer.echo(sentence, err=True)


def _fail(sentence: str) -> int:
    """One line on stderr, whatever the sentence held."""
    _say(f"runcast: {' '.join(sentence.split())}")
    return FAILED


def _file_sentence(e: OSError) -> str:
    name = "the output" if e.filename is None else shown(str(e.filename))
    return f"Cannot use {name}: {(e.strerror or str(e)).lower()}."


def _run(arguments: Sequence[str] | None) -> int:
    """Run one command; a mistake of the user becomes a sentence and a status."""
    try:
        status = app(args=arguments, prog_name="runcast", standalone_mode=False)
        sys.stdout.flush()
    except RuncastError as e:
        return _fail(str(e))
    except typer.TyperException as e:  # an unknown option, a missing value
        written = getattr(e, "format_message", None)
        return _fail(str(written() if callable(written) else e))
    except BrokenPipeError:
        # The reader has gone (`runcast ... | head`); nothing is left to say, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as e:
        return _fail(_file_sentence(e))
    except KeyboardInterrupt:
        return INTERRUPTED
    return status if isinstance(status, int) else 0


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """The console entry."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the shell: `>&-`
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - open until the end
        if reconfigure := getattr(getattr(sys, name), "reconfigure", None):
            reconfigure(errors="replace")  # a terminal without UTF-8 gets a question mark
    sys.exit(_run(arguments))


if __name__ == "__main__":
    main()
