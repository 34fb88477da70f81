"""The command line: every command of `runcast`, here or in a module of its own.

Every value is read as text and parsed into a `Scenario` by the code that parses links, so that
1e12, 15T and 8k work, and every mistake is one sentence on stderr with exit status 2. Commands
import the modules that read facts themselves: `runcast --help` must not wait for a table.
"""

from __future__ import annotations

import datetime as dt
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from app.accuracy.command import fit, validate
from app.api.command import mcp
from app.audit.command import audit
from app.bill.command import bill
from app.buy.command import buy
from app.calibration.calibrate_command import calibrate
from app.calibration.command import calibrations
from app.catalogue.command import schema
from app.command import command_log
from app.command.completion import VARIABLE, completion, register
from app.command.given import Given, option_of
from app.command.options import (
    AsJson,
    Config,
    Model,
    Save,
    SeqLen,
    Text,
    print_json,
    takes_fields,
    text_option,
)
from app.document.echo import echo
from app.document.on_use import lacking
from app.explain.command import explain
from app.guides.command import advice
from app.imports.command import compare, import_file
from app.launch.command import export
from app.operate.backup_command import backup, restore
from app.operate.command import doctor
from app.operate.serve_command import serve
from app.options.command import diff
from app.prices.book_command import book
from app.prices.command import COMMANDS as PRICE_COMMANDS
from app.programme.command import programme
from app.provenance.command import where
from app.report.command import report
from app.risk.command import risk
from app.saved.command import scenarios
from app.scale.command import scale
from app.watch.command import watch
from core.errors import RuncastError, shown

if TYPE_CHECKING:
    from core.scenario import Scenario
    from core.search.plan import Answer

FAILED = 2  # exit status of every mistake that a user can fix
INTERRUPTED = 130  # what a shell reports for Ctrl-C
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
    name="prices",
    help="Price history, refreshes, quarantine and price books.",
    no_args_is_help=True,
)
prices.add_typer(book)
for price_command in PRICE_COMMANDS:
    prices.command()(price_command)
app.add_typer(prices)
app.add_typer(calibrations)
app.add_typer(scenarios)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from app.scenario.version import version as installed

        echo(f"runcast {installed() or '(not installed)'}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        echo(context.get_help())
        echo("\nruncast serve opens the page in a browser.")
        raise typer.Exit


@app.command()
@takes_fields
def plan(
    given: Given,
    save: Save = None,
    top: Annotated[Text, text_option("--top", "K", "Plans to show (10; 50 as JSON).")] = None,
    as_json: AsJson = False,
) -> None:
    """Rank clouds, GPUs and layouts for a run, by cost and time."""
    from app.command.values import plan_scenario, plans_to_show
    from app.forecast.answer import answer
    from app.forecast.resolve import resolve_strict
    from app.plan.as_json import plan_json

    shown_plans = plans_to_show(top, TOP_JSON if as_json else TOP_TABLE)
    asked, notes = plan_scenario(given)
    asked = resolve_strict(asked)
    _say_and_save(asked, notes, save)
    found = answer(asked, top=shown_plans)
    if as_json:
        print_json(plan_json(asked, found))
    else:
        _print_answer(asked, found)


@app.command()
@takes_fields
def estimate(
    given: Given,
    layout: Annotated[
        Text, text_option("--layout", "KEY=N,..", "tp=8,pp=4,dp_shard=16,sharding=zero1,...")
    ] = None,
    save: Save = None,
    as_json: AsJson = False,
) -> None:
    """Forecast one layout on one kind of GPU.

    Degrees and settings that are not named are searched.
    """
    from app.command.values import TOP_MAX, layout_scenario
    from app.forecast.answer import answer
    from app.forecast.fixed_layout import judged
    from app.forecast.resolve import resolve_strict
    from app.plan.as_json import estimate_json

    asked, keys, notes = layout_scenario(given, layout)
    asked = resolve_strict(asked)
    _say_and_save(asked, notes, save)
    found, verdict = judged(answer(asked, top=TOP_MAX), keys)
    found = replace(found, plans=found.plans[: TOP_JSON if as_json else TOP_TABLE])
    if as_json:
        print_json(estimate_json(asked, found, verdict))
    else:
        _print_answer(asked, found)


for one in (
    takes_fields(explain), advice, risk, audit, calibrate, buy, bill, scale, programme, export,
    where, report, diff, schema,
):  # fmt: skip
    app.command()(one)


app.command("decide", hidden=True)(advice)  # its former name


@app.command(
    hidden=True, context_settings={"allow_extra_args": True, "ignore_unknown_options": True}
)
def recompute() -> None:
    """Name what replaces this removed command."""
    raise RuncastError(
        "`recompute` was removed: `made_with` in the plan's JSON names the version and the tables, "
        "and `runcast plan` of that version with the plan's `link` repeats it."
    )


@app.command()
def gpus(as_json: AsJson = False) -> None:
    """List the accelerators with the figures that forecasts use."""
    from app.catalogue.as_json import gpus_json

    if as_json:
        print_json(gpus_json())
    else:
        from app.catalogue.document import gpus_blocks
        from app.document.terminal import print_document

        print_document(gpus_blocks(gpus_json()))


@app.command()
def offers(
    gpu: Annotated[Text, text_option("--gpu", "A,B", "Of these accelerators only.")] = None,
    cloud: Annotated[Text, text_option("--cloud", "A,B", "Of these providers only.")] = None,
    purchase: Annotated[Text, text_option("--purchase", "A,B", "on_demand, spot, ...")] = None,
    top: Annotated[Text, text_option("--top", "K", "Offers to show (40; all as JSON).")] = None,
    as_json: AsJson = False,
) -> None:
    """List the newest prices, the cheapest GPU-hour first."""
    from app.catalogue.as_json import offers_json
    from app.command.values import offers_scenario, plans_to_show

    shown_offers = None if as_json and top is None else plans_to_show(top, TOP_OFFERS)
    asked = offers_scenario({"gpu": gpu, "cloud": cloud, "purchase": purchase})
    found = offers_json(asked, any_purchase=purchase is None, today=_today())
    found["offers"] = found["offers"][:shown_offers]
    if as_json:
        print_json(found)
    else:
        from app.catalogue.document import offers_blocks
        from app.document.terminal import print_document

        print_document(offers_blocks(found))


@app.command()
def models(
    model: Model = None, config: Config = None, seq_len: SeqLen = None, as_json: AsJson = False
) -> None:
    """List the presets, or show parameters and FLOPs of one model."""
    from app.catalogue.as_json import model_json, presets_json
    from app.catalogue.document import model_blocks, presets_blocks
    from app.command.values import model_values, parsed
    from app.document.terminal import print_document
    from app.scenario.model import model_of

    options = {} if seq_len is None else {"seq_len": seq_len}
    chosen = model_values(model, config)
    written_as = {"seq_len": "--seq-len ", "model": "--model "}
    scenario = parsed({**chosen, **options}, written_as=written_as)
    if chosen:
        facts = model_json(model_of(scenario), seq_len=scenario.seq_len)
        print_json(facts) if as_json else print_document(model_blocks(facts))
    else:
        presets = presets_json(seq_len=scenario.seq_len)
        print_json(presets) if as_json else print_document(presets_blocks(presets))


@app.command()
def sweep(
    file: Annotated[str, typer.Argument(metavar="FILE", help="YAML, see docs/sweeps.md.")],
    out: Annotated[Text, text_option("--out", "DIR", "Results; FILE.sweep if left out.")] = None,
    workers: Annotated[Text, text_option("--workers", "N", "Processes; one a core.")] = None,
    ray: Annotated[Text, text_option("--ray", "ADDRESS", "On this Ray cluster instead.")] = None,
    max_cells: Annotated[Text, text_option("--max-cells", "N", "Refuse more (100,000).")] = None,
) -> None:
    """Cross lists of scenario values into a table; resumable.

    One row a cell. The same command goes on where a killed one ended.
    """
    from app.sweep.run import run_sweep

    lines = run_sweep(Path(file), out=out, workers=workers, ray=ray, max_cells=max_cells)
    echo("\n".join(lines))


@app.command()
def refresh(
    source: Annotated[
        list[str] | None, text_option("--source", "NAME", "Ask this source only; repeatable.")
    ] = None,
    accept: Annotated[
        list[str] | None,
        text_option("--accept", "NAME", "Believe this source's jumps and losses; repeatable."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Ask and check, but publish nothing.")
    ] = False,
    every: Annotated[Text, text_option("--every", "TIME", "Again and again: 30m, 6h, 1d.")] = None,
    as_json: AsJson = False,
) -> None:
    """Fetch live prices, check them and publish a price snapshot."""
    from app.prices.refresh_command import run

    status = run(source or [], accepted=accept or [], dry_run=dry_run, every=every, as_json=as_json)
    raise typer.Exit(status)


app.command()(compare)
app.command()(watch)
app.command("import")(import_file)
for one in (serve, mcp, completion, doctor, backup, restore, validate, fit):
    app.command()(one)


def _say_and_save(scenario: Scenario, notes: Sequence[str], path: str | None) -> None:
    """Print the notes, and write the scenario to a file if one is requested."""
    for note in notes:
        _say(note)
    if path is not None:
        from app.scenario.file import write_scenario_file

        write_scenario_file(scenario, Path(path))


def _print_answer(scenario: Scenario, answer: Answer) -> None:
    from app.document.terminal import print_document
    from app.plan.answer_document import blocks

    print_document(blocks(scenario, answer, today=_today()))


def _today() -> dt.date:
    from app.forecast.price_book import today

    return today()


def _say(sentence: str) -> None:
    echo(sentence, err=True)


def _fail(sentence: str) -> int:
    """Print a sentence as one line on stderr, whatever it contains."""
    _say(f"runcast: {' '.join(sentence.split())}")
    return FAILED


def _file_sentence(e: OSError) -> str:
    name = "the output" if e.filename is None else shown(str(e.filename))
    return f"Cannot use {name}: {(e.strerror or str(e)).lower()}."


def _usage_sentence(e: typer.TyperException) -> str:
    """What is wrong with the arguments; of those that no option takes, where they may belong."""
    written, context = getattr(e, "format_message", None), getattr(e, "ctx", None)
    said = str(written() if callable(written) else e)
    if context is None or "unexpected extra argument" not in said:
        return said
    link = ", and --link takes a link" if "=" in said else ""
    return f"{said}: `{context.command_path} --help` lists what it takes{link}."


def _run(arguments: Sequence[str] | None) -> int:
    """Run one command; a user's mistake becomes a sentence and an exit status."""
    if VARIABLE in os.environ:
        register()
    try:
        status = app(args=arguments, prog_name="runcast", standalone_mode=False)
        sys.stdout.flush()
    except RuncastError as e:
        return _fail(e.named(lambda field: option_of(field) or field))
    except ModuleNotFoundError as e:  # of an extra
        if (sentence := lacking(e)) is None:
            raise
        return _fail(str(sentence))
    except typer.TyperException as e:  # an unknown option, a missing value
        return _fail(_usage_sentence(e))
    except BrokenPipeError:
        # The reader has gone (`runcast ... | head`): print nothing more, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as e:
        return _fail(_file_sentence(e))
    except KeyboardInterrupt:
        return INTERRUPTED
    return status if isinstance(status, int) else 0


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """The console entry point."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the shell: `>&-`
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - open until the end
        if reconfigure := getattr(getattr(sys, name), "reconfigure", None):
            reconfigure(errors="replace")  # a terminal without UTF-8 gets a question mark
    with command_log.command(app, arguments) as ended:
        ended.status = _run(arguments)
    sys.exit(ended.status)


if __name__ == "__main__":
    main()
