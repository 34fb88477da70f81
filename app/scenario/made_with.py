"""What this process computes with: the version, and hashes of the tables and of the code."""

from __future__ import annotations

import hashlib
from fnmatch import fnmatch
from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from pathlib import Path

import numpy as np

PACKAGES = ("app", "core", "hardware", "pricing")
# What no forecast reads: pages, what has changed since a link was made, what fetches prices, and
# snapshots, whose ids are content hashes.
UNREAD = (
    "app/web/*", "app/*/page.py", "app/*/*_section.py", "app/scenario/link_changes.csv",
    "pricing/providers/*", "pricing/snapshots/*",
)  # fmt: skip


def version() -> str:
    """The installed version; '' where the package is not installed."""
    try:
        return installed("runcast")
    except PackageNotFoundError:
        return ""


@cache
def made_with() -> dict[str, str]:
    """Content hashes of the tables and of the code that this process computes with."""
    root = Path(__file__).parents[2]
    tables, code = hashlib.sha256(), hashlib.sha256(f"numpy {np.__version__}".encode())
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix in (".py", ".csv") and not any(
                fnmatch(name, unread) for unread in UNREAD
            ):
                into = code if path.suffix == ".py" else tables
                into.update(f"{name} {path.stat().st_size}\n".encode())
                into.update(path.read_bytes())
    return {"tables": tables.hexdigest(), "code": code.hexdigest()}
