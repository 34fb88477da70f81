"""Which Runcast this is: its version, its commit in a checkout, hashes of its tables and code."""

from __future__ import annotations

import hashlib
from fnmatch import fnmatch
from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("app", "core", "hardware", "pricing")
# What no forecast reads: pages, what has changed since a link was made, published advice, what
# fetches prices, and snapshots, whose ids are content hashes.
UNREAD = (
    "app/web/*", "app/*/page.py", "app/*/*_section.py", "app/scenario/link_changes.csv",
    "hardware/claims.csv", "hardware/decision_tables.csv", "hardware/guide_cases.csv",
    "pricing/providers/*", "pricing/snapshots/*",
)  # fmt: skip


@cache
def version() -> str:
    """The version of the package; '' if it is not installed."""
    try:
        return installed("runcast")
    except PackageNotFoundError:
        return ""


def commit(root: Path = ROOT) -> str:
    """The commit of a checkout, read from its files; '' if there is none."""
    try:
        head = (root / ".git/HEAD").read_text(encoding="ascii").strip()
        if not head.startswith("ref: "):
            return head if _is_commit(head) else ""
        name = head.removeprefix("ref: ")
        loose = root / ".git" / name
        if loose.is_file():
            found = loose.read_text(encoding="ascii").strip()
            return found if _is_commit(found) else ""
        packed = (root / ".git/packed-refs").read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return ""
    named = (line.split(" ", 1) for line in packed if line.endswith(f" {name}"))
    return next((id for id, _ in named if _is_commit(id)), "")


def _is_commit(text: str) -> bool:
    return len(text) in (40, 64) and all(c in "0123456789abcdef" for c in text)


@cache
def made_with() -> dict[str, str]:
    """Content hashes of the tables and of the code that this process computes with."""
    import numpy as np

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
