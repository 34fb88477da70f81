"""`runcast calibrate`: measure nodes where they are, and bring the result back."""

from __future__ import annotations

import inspect
import shlex
import sys
from dataclasses import Field, asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.calibration.options import CalibrateOptions, option
from app.command.options import AsJson, Text, print_json, text_option
from app.document.echo import echo

if TYPE_CHECKING:
    from runners.launchers.job import Job
    from runners.launchers.launcher import Launcher
    from runners.run_state import RunState

LOST, INTERRUPTED = 3, 130  # exit statuses; 2 is a user error or a failed run


def calibrate(
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print files and commands; run none.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Start without asking.")] = False,
    resume: Annotated[Text, text_option("--resume", "ID", "Go on with this run.")] = None,
    cancel: Annotated[Text, text_option("--cancel", "ID", "End this run where it is.")] = None,
    emit_probe: Annotated[
        Text, text_option("--emit-probe", "FILE", "Write the probe, to run it by hand.")
    ] = None,
    as_json: AsJson = False,
    **typed: Any,
) -> None:
    """Measure nodes for minutes: matmuls, memory, network.

    Starts nothing before you have seen how long it takes and what it may cost.
    """
    from core.errors import ScenarioError
    from runners.run_state import read_state

    given = {name: value for name, value in typed.items() if value}
    if emit_probe is not None:
        if resume or cancel or dry_run or typed["launcher"]:
            raise ScenarioError(
                "--emit-probe writes the probe for nodes that you start it on yourself: leave "
                "--launcher, --dry-run, --resume and --cancel out."
            )
        _emit(
            Path(emit_probe),
            CalibrateOptions(**{**typed, "launcher": "local", "env": ()}),
            as_json=as_json,
        )
        raise typer.Exit(0)
    if run_id := resume or cancel:
        if resume and cancel:
            raise ScenarioError("Give --resume or --cancel, not both.")
        out = given.pop("out", None)
        if given:
            raise ScenarioError(f"A run keeps its options: leave {option(next(iter(given)))} out.")
        raise typer.Exit(_again(read_state(run_id), out=out, resume=resume, as_json=as_json))
    if typed["launcher"] is None:
        raise ScenarioError(
            "Missing --launcher: local, ssh, slurm, ray, sky or k8s, or --resume ID."
        )
    options = CalibrateOptions(**{**typed, "env": tuple(typed["env"] or ())})
    raise typer.Exit(_new(options, dry_run=dry_run, yes=yes, as_json=as_json))


def _parameter(of: Field[Any]) -> inspect.Parameter:
    """An option of the run as a parameter that Typer reads."""
    name, text, metavar = option(of.name), of.metadata["help"], of.metadata.get("metavar")
    kind: Any = list[str] | None if of.name == "env" else Text if metavar else bool
    read = text_option(name, metavar, text) if metavar else typer.Option(name, help=text)
    return inspect.Parameter(
        of.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None if metavar else False,
        annotation=Annotated[kind, read],
    )


_OWN = inspect.signature(calibrate, eval_str=True).parameters.values()
_PARAMETERS = [
    *map(_parameter, fields(CalibrateOptions)),
    *(p for p in _OWN if p.kind == inspect.Parameter.KEYWORD_ONLY),
]
calibrate.__signature__ = inspect.Signature(_PARAMETERS)  # type: ignore[attr-defined]
calibrate.__annotations__ = {p.name: p.annotation for p in _PARAMETERS}


def _emit(probe: Path, options: CalibrateOptions, *, as_json: bool) -> None:
    """Write the probe and its plan beside it, and print how a node is measured with them."""
    import json

    from app.calibration.job import by_hand, measured_of
    from core.errors import ScenarioError, shown
    from pricing.disk import write_all_or_none
    from runners.probe_file import probe_text
    from runners.run_state import new_run_id

    plan = probe.with_suffix(".plan.json")
    for path in (probe, plan):
        if path.exists() or path.is_symlink():
            raise ScenarioError(f"{shown(str(path))} is there already: name another file.")
    measured, sentences = measured_of(options, new_run_id())
    content = json.dumps(measured, indent=1) + "\n"
    write_all_or_none({probe: probe_text().encode(), plan: content.encode()})
    commands = by_hand(options, probe, plan)
    _say(*sentences)
    if as_json:
        files = {"probe": str(probe), "plan": str(plan)}
        print_json({"run_id": measured["run_id"], **files, "commands": commands})
    else:
        echo("\n".join([str(probe), str(plan), *map(shlex.join, commands)]))


def _new(options: CalibrateOptions, *, dry_run: bool, yes: bool, as_json: bool) -> int:
    """Show what would run, ask for confirmation, and run it."""
    from app.calibration import job as run
    from core.errors import ScenarioError
    from runners.run_state import RunState, new_run_id

    run_id = new_run_id()
    place = run.launcher_of(options)
    limits = run.limits_of(options)
    plan, sentences = run.measured_of(options, run_id)
    job = run.job_of(options, run_id, plan)
    launch = place.plan(job)  # raises if it cannot run the job
    run.check_device(options)
    _say(*sentences, run.budget_sentence(options, place.where, limits))
    if dry_run and as_json:
        print_json(run.launch_json(run_id, launch))
    elif dry_run:
        echo("\n".join(run.launch_lines(launch)))
    if dry_run:
        return 0
    if not yes:
        if not sys.stdin.isatty():
            raise ScenarioError("Nothing was started: --yes starts it where nobody can be asked.")
        if not typer.confirm("Start it?", default=False, err=True):
            _say("Nothing was started.")
            return 0
    state = RunState(
        run_id=run_id, launcher=options.launcher, options=asdict(options), phase="prepared"
    )
    return _run(place, job, state, options, as_json=as_json, out=options.out)


def _again(state: RunState, *, out: str | None, resume: str | None, as_json: bool) -> int:
    """Resume a run or cancel it."""
    import json

    from app.calibration.job import job_of, launcher_of, read_options
    from core.errors import ScenarioError
    from runners.run_state import PLAN, folder_of, write_state

    options = read_options(state.options)
    place = launcher_of(options)
    try:
        plan = json.loads((folder_of(state.run_id) / PLAN).read_bytes())
    except (OSError, ValueError):
        raise ScenarioError(f"The plan of the run {state.run_id} is lost: start anew.") from None
    job = job_of(options, state.run_id, plan)
    if resume:
        return _run(place, job, state, options, as_json=as_json, out=out or options.out)
    _cancel(place, job, state)  # also while another process follows it
    write_state(state, phase="cancelled")
    return 0


def _run(
    place: Launcher,
    job: Job,
    state: RunState,
    options: CalibrateOptions,
    *,
    as_json: bool,
    out: str | None,
) -> int:
    """Submit a run and follow it; however it ends, --resume can read the saved state."""
    import json

    from app.calibration.job import progress, result_json, result_lines
    from runners.calibration.result import parse_result
    from runners.launchers.follow import follow
    from runners.launchers.quoting import UnreachableError
    from runners.run_state import PLAN, RESULT, held, read_state, write_state, write_whole

    with held(job.run_id) as folder:
        if state.phase != "collected":
            write_whole(folder / PLAN, json.dumps(job.plan).encode())
            state = write_state(state, probe_sha256=job.probe_sha256())
            _say(f"Run {job.run_id}.")
            try:
                with progress(quiet=as_json) as show:
                    text, state = follow(place, job, state, show)
            except UnreachableError as e:
                _say(f"runcast: {e}")
                return LOST
            except KeyboardInterrupt:
                state = read_state(job.run_id)
                _cancel(place, job, state)
                write_state(state, phase="cancelled")
                _say(f"`runcast calibrate --resume {job.run_id}` goes on with it.")
                return INTERRUPTED
            finally:
                place.hang_up()
            write_whole(folder / RESULT, text.encode() + b"\n")
            state = write_state(state, phase="collected")
            place.close(job, state.handle)
            place.hang_up()
        held_text = (folder / RESULT).read_bytes()
        result = parse_result(held_text)
        file = Path(out or f"calibration-{job.run_id}.json")
        write_whole(file, held_text)
    if as_json:
        print_json(result_json(options, state, result, file))
    else:
        echo("\n".join(result_lines(result, file)))
    return 0


def _cancel(place: Launcher, job: Job, state: RunState) -> None:
    """Cancel a run, even one that was submitted before its handle could be saved."""
    from runners.launchers.quoting import LaunchError, UnreachableError

    handle = state.handle if state.phase == "submitted" else ""
    try:
        if state.phase == "prepared" and state.submissions:
            handle = place.find(job)
        if handle:
            place.cancel(job, handle)
    except UnreachableError:
        raise
    except LaunchError:
        if state.phase == "submitted":
            raise  # otherwise it was never submitted
    finally:
        place.hang_up()
    _say(f"The run {job.run_id} is cancelled.")


def _say(*sentences: str) -> None:
    for sentence in sentences:
        echo(sentence, err=True)
