"""`runcast calibrate`: measure nodes where they are, and bring the result back."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.command.options import AsJson, Text, print_json, text_option

if TYPE_CHECKING:
    from app.calibration.job import Asked
    from runners.launchers.job import Job
    from runners.launchers.launcher import Launcher
    from runners.run_state import RunState

LOST, INTERRUPTED = 3, 130  # exit statuses; 2 is a user error or a failed run
OWN = ("dry_run", "yes", "resume", "cancel", "as_json")  # options of this command, not of the run


def _flag(name: str, text: str) -> Any:
    return typer.Option(name, help=text)


def calibrate(
    launcher: Annotated[
        Text, text_option("--launcher", "WHERE", "local, ssh, slurm, ray, sky or k8s.")
    ] = None,
    nodes: Annotated[Text, text_option("--nodes", "N", "Nodes to measure together (1).")] = None,
    gpus_per_node: Annotated[
        Text, text_option("--gpus-per-node", "N", "GPUs of a node; all it has, where it can say.")
    ] = None,
    processes_per_node: Annotated[
        Text, text_option("--processes-per-node", "N", "Processes of a node; one a GPU.")
    ] = None,
    hosts: Annotated[
        Text, text_option("--hosts", "A,B", "ssh: hosts as your ssh configuration has them.")
    ] = None,
    master_addr: Annotated[
        Text, text_option("--master-addr", "ADDR", "ssh: the first host as the others reach it.")
    ] = None,
    ssh_config: Annotated[
        Text, text_option("--ssh-config", "FILE", "ssh: another configuration, `ssh -F`.")
    ] = None,
    folder: Annotated[
        Text, text_option("--folder", "DIR", "ssh: on the hosts; slurm: one that nodes share.")
    ] = None,
    partition: Annotated[Text, text_option("--partition", "P", "slurm: the partition.")] = None,
    account: Annotated[Text, text_option("--account", "A", "slurm: the account.")] = None,
    qos: Annotated[Text, text_option("--qos", "Q", "slurm: the quality of service.")] = None,
    address: Annotated[
        Text, text_option("--address", "URL", "ray: the dashboard, http://HOST:8265.")
    ] = None,
    gpu: Annotated[
        Text, text_option("--gpu", "NAME", "The accelerator of the nodes; sky: H100:8.")
    ] = None,
    infra: Annotated[Text, text_option("--infra", "I", "sky: aws, gcp/us-central1.")] = None,
    spot: Annotated[bool, _flag("--spot", "sky: spot instances.")] = False,
    image: Annotated[Text, text_option("--image", "I", "k8s: an image with torch.")] = None,
    namespace: Annotated[Text, text_option("--namespace", "N", "k8s: the namespace.")] = None,
    context: Annotated[Text, text_option("--context", "C", "k8s: of kubectl.")] = None,
    gpu_resource: Annotated[
        Text, text_option("--gpu-resource", "R", "k8s: nvidia.com/gpu if left out.")
    ] = None,
    python: Annotated[
        Text, text_option("--python", "PATH", "Python with torch, on the nodes (python3).")
    ] = None,
    interface: Annotated[
        Text, text_option("--interface", "NAME", "Network interface; found if left out.")
    ] = None,
    env: Annotated[
        list[str] | None, text_option("--env", "NAME=VALUE", "On the nodes; repeat. No secrets.")
    ] = None,
    device: Annotated[
        Text, text_option("--device", "D", "cuda, rocm or cpu; a GPU where there is one.")
    ] = None,
    reduced: Annotated[bool, _flag("--reduced", "Small shapes, in a minute.")] = False,
    budget_s: Annotated[
        Text, text_option("--budget-s", "S", "Seconds of measuring (600; reduced 60).")
    ] = None,
    max_usd: Annotated[Text, text_option("--max-usd", "U", "Dollars at most.")] = None,
    usd_per_hour: Annotated[
        Text, text_option("--usd-per-hour", "P", "Price of one node; none is assumed.")
    ] = None,
    plan: Annotated[Text, text_option("--plan", "LINK", "Measure the shapes of its plan.")] = None,
    out: Annotated[
        Text, text_option("--out", "FILE", "The result; calibration-ID.json if left out.")
    ] = None,
    anonymise: Annotated[bool, _flag("--anonymise", "No names of hosts or devices.")] = False,
    force: Annotated[bool, _flag("--force", "Also where the GPU is busy.")] = False,
    dry_run: Annotated[bool, _flag("--dry-run", "Print files and commands; run none.")] = False,
    yes: Annotated[bool, _flag("--yes", "Start without asking.")] = False,
    resume: Annotated[Text, text_option("--resume", "ID", "Go on with this run.")] = None,
    cancel: Annotated[Text, text_option("--cancel", "ID", "End this run where it is.")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure nodes for minutes: matmuls, memory, network.

    Starts nothing before you have seen how long it takes and what it may cost.
    """
    given = dict(locals())
    from app.calibration.job import Asked
    from core.errors import ScenarioError
    from runners.run_state import new_run_id, read_state

    own = {name: given.pop(name) for name in OWN}
    if own["resume"] or own["cancel"]:
        if own["resume"] and own["cancel"]:
            raise ScenarioError("Give --resume or --cancel, not both.")
        typed = [n for n, v in given.items() if v and n != "out"]
        if typed:
            raise ScenarioError(
                f"A run keeps its options: leave --{typed[0].replace('_', '-')} out."
            )
        state = read_state(own["resume"] or own["cancel"])
        raise typer.Exit(_again(state, out=out, **own))
    if launcher is None:
        raise ScenarioError(
            "Missing --launcher: local, ssh, slurm, ray, sky or k8s, or --resume ID."
        )
    asked = Asked(**{**given, "env": tuple(env or ())})
    raise typer.Exit(_new(asked, new_run_id(), own))


def _new(asked: Asked, run_id: str, own: Mapping[str, Any]) -> int:
    """Show what would run, ask for confirmation, and run it."""
    from dataclasses import asdict

    from app.calibration.calibrate_words import budget_sentence, launch_json, launch_lines
    from app.calibration.job import check_device, job_of, launcher_of, limits_of
    from app.calibration.plan import measured_of
    from core.errors import ScenarioError
    from runners.run_state import RunState

    place = launcher_of(asked)
    limits = limits_of(asked)
    measured = measured_of(asked, run_id)
    job = job_of(asked, run_id, measured.plan)
    launch = place.plan(job)  # raises if it cannot run the job
    check_device(asked)
    _say(*measured.sentences, budget_sentence(asked, place.where, limits))
    if own["dry_run"]:
        if own["as_json"]:
            print_json(launch_json(run_id, launch))
        else:
            typer.echo("\n".join(launch_lines(launch)))
        return 0
    if not own["yes"]:
        if not sys.stdin.isatty():
            raise ScenarioError("Nothing was started: --yes starts it where nobody can be asked.")
        if not typer.confirm("Start it?", default=False, err=True):
            _say("Nothing was started.")
            return 0
    state = RunState(
        run_id=run_id, launcher=asked.launcher, options=asdict(asked), phase="prepared"
    )
    return _run(place, job, state, asked, as_json=own["as_json"], out=asked.out)


def _again(
    state: RunState, *, out: str | None, resume: str | None, as_json: bool, **_: object
) -> int:
    """Resume a run or cancel it."""
    import json

    from app.calibration.job import job_of, launcher_of, read_asked
    from core.errors import ScenarioError
    from runners.run_state import PLAN, folder_of, write_state

    asked = read_asked(state.options)
    place = launcher_of(asked)
    try:
        plan = json.loads((folder_of(state.run_id) / PLAN).read_bytes())
    except (OSError, ValueError):
        raise ScenarioError(f"The plan of the run {state.run_id} is lost: start anew.") from None
    job = job_of(asked, state.run_id, plan)
    if resume:
        return _run(place, job, state, asked, as_json=as_json, out=out or asked.out)
    _cancel(place, job, state)  # also while another process follows it
    write_state(state, phase="cancelled")
    return 0


def _run(
    place: Launcher, job: Job, state: RunState, asked: Asked, *, as_json: bool, out: str | None
) -> int:
    """Submit a run and follow it; however it ends, --resume can read the saved state."""
    import json

    from app.calibration.calibrate_words import Live, result_json, sentences
    from app.calibration.job import limits_of
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
                with Live(quiet=as_json) as told:
                    text, state = follow(place, job, state, told)
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
    found = result_json(asked, limits_of(asked), state, result, file)
    if as_json:
        print_json(found)
    else:
        typer.echo("\n".join(sentences(found)))
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
        typer.echo(sentence, err=True)
