"""Which Runcast this is: its version, and its commit where it runs from a checkout."""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from pathlib import Path

ROOT = Path(__file__).parents[2]


@lru_cache(maxsize=1)
def version() -> str:
    """As the package says; '' where it is not installed."""
    try:
        return installed("runcast")
    except PackageNotFoundError:
        return ""


def commit(root: Path = ROOT) -> str:
    """The commit of a checkout, read from its files; '' where there is none."""
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
