"""Checks for risky server settings: open addresses, leaked details, trusted headers.

Settings are read as `streamlit run` would in this folder: from config files and the environment.
Options on the command line of another process are not seen.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Iterator
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from app.log import log
from app.operate.finding import Finding

OWN = Path(__file__).parents[1] / ".streamlit/config.toml"  # overrides those of the folder
READABLE = stat.S_IRGRP | stat.S_IROTH


def look(now: datetime) -> Iterator[Finding]:
    """The address, then every risky setting; `ok` if there is none."""
    if find_spec("streamlit") is None:
        value = "not installed: pip install 'runcast[ui]' adds it"
        yield Finding(area="settings", name="page", state="ok", value=value)
        return
    address = _option("server.address")
    where = f"{address or 'every address'}:{_option('server.port')}"
    risks = list(_risks(address))
    yield Finding(
        area="settings", name="address", state="ok", value=where, numbers={"address": address}
    )
    yield from risks
    if not risks:
        yield Finding(area="settings", name="risks", state="ok", value="none found")


def _risks(address: Any) -> Iterator[Finding]:
    from app.web.owner import PROXY_SECRET, SECRET_LEAST, USER_HEADER, is_loopback

    public = not is_loopback(address)
    header, secret = os.environ.get(USER_HEADER, "").strip(), os.environ.get(PROXY_SECRET, "")
    if header and not secret and public:
        yield _risk(
            USER_HEADER,
            "the user's header is believed, and anybody can reach this address and send it",
            f"Set server.address to 127.0.0.1, or {PROXY_SECRET} (docs/teams.md). Until then "
            "saving is off.",
        )
    if header and 0 < len(secret) < SECRET_LEAST:
        yield _risk(
            PROXY_SECRET,
            f"it has less than {SECRET_LEAST} characters",
            "Use python -c 'import secrets; print(secrets.token_urlsafe(32))'.",
        )
    if public and not _option("server.allowedHosts"):
        yield _risk(
            "server.allowedHosts",
            "empty, while the address is public: a page elsewhere may rebind its name to it",
            "Name the host names of this server (docs/deploy.md).",
        )
    if _option("client.showErrorDetails") != "none":
        yield _risk(
            "client.showErrorDetails",
            "an error shows its message, which may repeat a price",
            'Set it to "none": the page then shows an id, and the log has the error under it.',
        )
    for option in ("server.enableXsrfProtection", "server.enableCORS"):
        if not _option(option):
            yield _risk(option, "off: another site may use a visitor's session", "Set it to true.")
    if _option("browser.gatherUsageStats"):
        yield _risk(
            "browser.gatherUsageStats", "on: browsers report to Streamlit", "Set it to false."
        )
    if os.environ.get(log.LEVEL, "").strip().lower() == "debug":
        yield _risk(
            log.LEVEL,
            "debug: the log has the messages of errors, which may repeat what a user typed",
            "Set it to info when the error is found.",
        )
    yield from _open_secrets()


def _open_secrets() -> Iterator[Finding]:
    for file in _option("secrets.files"):
        path = Path(file)
        if path.is_file() and path.stat().st_mode & READABLE:
            yield _risk("secrets.toml", "others on this machine may read it", "chmod 600 it.")


def _option(name: str) -> Any:
    """A setting as a server gets it: environment variables override config files."""
    held = _from_file(name)
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.replace(".", "_"))
    given = os.environ.get(f"STREAMLIT_{words.upper()}")
    if given is None:
        return held
    if isinstance(held, bool):
        return given.strip().lower() in ("1", "true", "yes", "on", "t", "y")
    return given.split() if isinstance(held, list) else given


def _from_file(name: str) -> Any:
    """A setting of the page's own file, which is read before the folder's; else Streamlit's."""
    import streamlit as st

    section, _, key = name.partition(".")
    own = tomllib.loads(OWN.read_text(encoding="utf-8"))
    return own.get(section, {}).get(key, st.get_option(name))


def _risk(name: str, value: str, todo: str) -> Finding:
    return Finding(area="settings", name=name, state="warning", value=value, todo=todo)
