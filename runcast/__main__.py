"""The command line: `runcast`, and `python -m runcast`."""

from __future__ import annotations


def main() -> None:
    """Run one command and exit with its status."""
    from app.cli import main as run

    run()


if __name__ == "__main__":
    main()
