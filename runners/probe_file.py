"""The probe as one file, made of the modules in runners/probes/.

Nothing of Runcast needs to be installed on a node, and the user can read the file before it runs.
"""

from __future__ import annotations

import hashlib
import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from platformdirs import user_cache_path

from core.errors import shown
from runners.launchers.quoting import LaunchError
from runners.one_file import one_file
from runners.run_state import write_whole

PACKAGE = "runners.probes"
ENTRY = "node"  # the module that is run


def probe_text() -> str:
    """The text of the file, which depends only on the modules and the version of Runcast."""
    folder = Path(__file__).with_name("probes")
    sources = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.py")}
    del sources["__init__"]
    return one_file(sources, package=PACKAGE, entry=ENTRY, made_by=f"Runcast {_version()}")


def probe_file() -> Path:
    """Path of the file, named by the hash of its content; written unless it exists.

    It is in `$RUNCAST_DATA_DIR/probes` where that is set, else in the user's cache. LaunchError if
    that folder cannot be written.
    """
    content = probe_text().encode()
    folder = _folder()
    path = folder / f"{ENTRY}-{hashlib.sha256(content).hexdigest()[:16]}.py"
    try:
        if not path.exists() or path.read_bytes() != content:
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(path, content)
    except OSError as e:
        raise LaunchError(
            f"The probe cannot be written to {shown(str(folder))} ({e.strerror}); "
            "RUNCAST_DATA_DIR can name another folder."
        ) from None
    return path


def _folder() -> Path:
    named = os.environ.get("RUNCAST_DATA_DIR", "").strip()
    try:
        base = Path(named).expanduser() if named else user_cache_path("runcast")
    except RuntimeError:  # the home of an unknown user
        raise LaunchError(f"RUNCAST_DATA_DIR is {shown(named)}, which is no folder here.") from None
    return base.absolute() / "probes"


def _version() -> str:
    try:
        return version("runcast")
    except PackageNotFoundError:
        return "that is not installed"
