"""Follow a run from its start to its result: submit, poll, fetch; each step is recorded first."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from core.errors import RuncastError
from runners.calibration.result import parse_result
from runners.launchers.job import Job
from runners.launchers.launcher import Launcher, Progress
from runners.launchers.quoting import LaunchError, UnreachableError
from runners.run_state import RunState, write_state

PATIENCE_S = 120.0  # without an answer
QUEUE_S = 24 * 3600.0  # in a queue
GRACE_S = 180.0  # beyond the limit, for the launcher's own limit to end the run
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# Ray and SkyPilot prefix lines with the name of the process.
_GROUP = re.compile(
    r"^(?:\S*\([^()]*\)\S* )?runcast: group ([\w.\-]{1,80}) (\d{1,4})/(\d{1,4}) ", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Status:
    """Messages for the user during a run."""

    state: str
    group: str = ""
    done: int = 0
    total: int = 0
    sentence: str = ""


@dataclass
class Clock:
    """Time, which tests replace."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def follow(
    launcher: Launcher,
    job: Job,
    state: RunState,
    report: Callable[[Status], None],
    clock: Clock | None = None,
    check: Callable[[str], object] = parse_result,
) -> tuple[str, RunState]:
    """Submit the run unless it is submitted, follow it to its end and return its checked result.

    A run that failed or was cancelled is started again: the probe continues after the last group
    that it finished, if its folder still exists.
    """
    clock = clock or Clock()
    try:
        if state.phase != "submitted":
            report(Status("submitting"))
            state = write_state(state, phase="prepared", submissions=state.submissions + 1)
            handle = launcher.submit(job)
            state = write_state(state, phase="submitted", handle=handle, sentence="")
        _wait(launcher, job, state.handle, report, clock)
        text = result_in(launcher.collect(job, state.handle), job.run_id)
        check(text)
    except UnreachableError as e:
        hint = resume_sentence(job) if state.phase == "submitted" else again_sentence(job)
        raise UnreachableError(f"{e} {hint}") from None
    except RuncastError as e:
        write_state(state, phase="failed", sentence=str(e))
        raise LaunchError(f"{e} {again_sentence(job)}") from None
    return text, state


def result_in(text: str, run_id: str) -> str:
    """The text between the markers of this run, where it was last printed."""
    begin, end = (f"-----{word} RUNCAST RESULT {run_id}-----" for word in ("BEGIN", "END"))
    _, found, rest = text.rpartition(begin)
    if not found:
        raise LaunchError("The run ended, but printed no result.")
    result, found, _ = rest.partition(end)
    if not found:
        raise LaunchError(f"The result is cut off after {len(rest):,} characters.")
    return result.strip()


def resume_sentence(job: Job) -> str:
    """Sentence on how to resume a run that may still be running."""
    return (
        f"The run goes on there until its limit: `runcast calibrate --resume {job.run_id}` "
        "brings it back."
    )


def again_sentence(job: Job) -> str:
    """Sentence on how to retry a run that has ended."""
    return f"`runcast calibrate --resume {job.run_id}` tries again."


def _wait(
    launcher: Launcher, job: Job, handle: str, report: Callable[[Status], None], clock: Clock
) -> None:
    """Wait until the job is done; LaunchError if it never will be."""
    last_answer = clock.now()
    queued_until, running_until = last_answer + QUEUE_S, None
    seen = Status("submitted")
    while True:
        now = clock.now()
        try:
            progress = launcher.poll(job, handle)
            last_answer = now
        except UnreachableError as e:
            if now - last_answer > PATIENCE_S:
                raise
            report(Status("no answer", seen.group, seen.done, seen.total, str(e)))
            clock.sleep(min(10.0, 2 * launcher.poll_s))
            continue
        seen = _status(progress, seen)
        report(seen)
        if progress.state == "done":
            return
        if progress.state == "failed":
            raise LaunchError(f"The run failed: {_one_line(progress.sentence).rstrip('.')}.")
        if progress.state == "running" and running_until is None:
            running_until = now + job.limit_s + GRACE_S
        if now > (queued_until if running_until is None else running_until):
            launcher.cancel(job, handle)
            what = "It waited a day in the queue" if running_until is None else "It did not end"
            raise LaunchError(f"{what} and was cancelled.")
        clock.sleep(launcher.poll_s)


def _status(progress: Progress, before: Status) -> Status:
    """Progress of the groups from the newest lines of the log."""
    found, sentence = _GROUP.findall(progress.log), _one_line(progress.sentence)
    if not found:
        return Status(progress.state, before.group, before.done, before.total, sentence)
    group, done, total = found[-1]
    return Status(progress.state, group, int(done), int(total), sentence)


def _one_line(text: str) -> str:
    """What a node or a scheduler says, without anything that a terminal obeys."""
    return "".join(c for c in _COLOUR.sub("", text) if c.isprintable())
