"""What the Launch page lists: kinds of files, their texts, and a zip."""

from __future__ import annotations

import io
import shlex
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runners.recipes.job import RecipeJob
from runners.recipes.registry import OPTIONS, target, targets
from runners.recipes.target import Target

NO_STACK = ""  # the choice to enter one's own command
_ZIP_DATE = (1980, 1, 1, 0, 0, 0)  # fixed, so that equal files give equal archives


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One file as the page shows it."""

    path: str
    text: str
    target: Target


def offered(job: RecipeJob, kind: str) -> list[str]:
    """Names of the targets of one kind that can launch this job."""
    return [t.name for t in targets().values() if t.kind == kind and not t.refuses(job)]


def refused(job: RecipeJob) -> list[str]:
    """A sentence for each target that cannot launch this job."""
    found = ((t.title, t.refuses(job)) for t in targets().values())
    return [f"{title}: {why}." for title, why in found if why]


def title(name: str) -> str:
    """The title of a choice."""
    return target(name).title if name else "none: a command of my own"


def label(option: str) -> str:
    """The label of an option's field.

    >>> label("time_hours")
    'Time hours'
    """
    return option.replace("_", " ").capitalize()


def options_of(names: Sequence[str], *, has_stack: bool) -> list[tuple[str, str, str]]:
    """Options of these targets in the table's order: name, form of the value, description. The
    option for a command is dropped if a stack brings its own."""
    taken = {o for n in names for o in target(n).options}
    left_out = {"env", *(["command"] if has_stack else [])}
    return [(k, v, w) for k, (v, w) in OPTIONS.items() if k in taken and k not in left_out]


def files(found: Mapping[str, Mapping[str, str]]) -> list[Shown]:
    """Every file once, in the order of the targets."""
    seen: dict[str, Shown] = {}
    for name, texts in found.items():
        for path, text in texts.items():
            seen.setdefault(path, Shown(path=path, text=text, target=target(name)))
    return list(seen.values())


def zip_bytes(shown: Sequence[Shown], folder: str) -> bytes:
    """The files as a zip with one folder; scripts are executable."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in shown:
            entry = zipfile.ZipInfo(f"{folder}/{file.path}", date_time=_ZIP_DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if file.path.endswith(".sh") else 0o644) << 16
            archive.writestr(entry, file.text)
    return out.getvalue()


def command(link: str, names: Sequence[str], name: str, options: Mapping[str, str]) -> str:
    """The command line that writes these files."""
    words = ["runcast", "export", "--link", link, "--to", ",".join(names), "--name", name]
    for key, value in options.items():
        words += ["--command", value] if key == "command" else ["--option", f"{key}={value}"]
    return shlex.join([*words, "--out", name])
