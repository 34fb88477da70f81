"""`runcast backup` and `runcast restore`: all data of an installation in one archive."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from app.command.options import AsJson, print_json
from app.document.echo import echo

File = Annotated[str, typer.Argument(metavar="FILE", help="The archive.", show_default=False)]


def backup(
    file: File,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace FILE where it is there already.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write all that an installation keeps into one archive.

    The store, prices, price books and calibrations, while the server works.
    """
    from app.scenario.version import version
    from pricing.backup.make import backup as made

    manifest = made(Path(file), version=version(), replace=replace)
    if as_json:
        print_json(_json(manifest))
    else:
        echo(f"{Path(file).name}: {_content(manifest)}. Whoever can read it has your prices.")


def restore(
    file: File,
    replace: Annotated[
        bool, typer.Option("--replace", help="Put aside what is here, and restore over it.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Put a backup back: all of it, or nothing."""
    from pricing.backup.restore import restore as put_back

    done = put_back(Path(file), replace=replace)
    if as_json:
        print_json({**_json(done.manifest), "put_aside": done.aside or None})
        return
    echo(f"Restored {_content(done.manifest)}, of {done.manifest.created_at:%Y-%m-%d %H:%M} UTC.")
    if done.aside:
        echo(f"What was here is in {done.aside} of the data folder: delete it when all is well.")


def _content(manifest: Any) -> str:
    held = f"the {manifest.store.kind} store with tables of {manifest.store.revision}"
    store = "no store yet" if manifest.store.kind == "none" else held
    return f"{len(manifest.members):,} files, {manifest.num_bytes / 1e6:,.1f} MB, {store}"


def _json(manifest: Any) -> dict[str, Any]:
    """The JSON document; its keys are documented in docs/operations.md."""
    return {
        "format": manifest.format,
        "created_at": manifest.created_at.isoformat(),
        "runcast_version": manifest.runcast_version,
        "store": manifest.store.model_dump(),
        "num_files": len(manifest.members),
        "num_bytes": manifest.num_bytes,
    }
