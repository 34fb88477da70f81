"""Who is asking: the owner of saved scenarios. Without a login that is one person, 'local'.

Two kinds of login are supported (docs/teams.md). Streamlit's own, if secrets.toml has [auth]: the
owner is issuer and subject, the two claims that identify a person for good (OpenID Connect Core,
section 5.7); an e-mail address is only displayed. Or a reverse proxy that names the user in the
header that RUNCAST_USER_HEADER names. The header is trusted only if no other client can reach this
server: it listens on a loopback address, or RUNCAST_PROXY_SECRET is set and the proxy sends it.
Anything else raises `NoOwnerError`: no owner, no saved scenarios.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.errors import StreamlitAuthError

from core.errors import RuncastError, shown

USER_HEADER = "RUNCAST_USER_HEADER"
PROXY_SECRET = "RUNCAST_PROXY_SECRET"
SECRET_HEADER = "X-Runcast-Proxy-Secret"
SECRET_LEAST = 16  # characters
LOGOUT_URL = "RUNCAST_LOGOUT_URL"
LOCAL_ID = "local"
ID_MAX = 200
_ADDRESS = re.compile(r"(https?:/)?/[^\s\\/][^\s\\]*")  # a path on this host, or a full URL
_HEADER_NAME = re.compile(r"[A-Za-z0-9-]{1,64}")


class NoOwnerError(RuncastError):
    """A login is on but names no user; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A person who owns saved scenarios."""

    id: str  # 'local', 'proxy:NAME' or 'oidc:ISSUER#SUBJECT'
    name: str  # as the page shows it

    @property
    def is_local(self) -> bool:
        """No login: one person on this machine."""
        return self.id == LOCAL_ID


LOCAL = Owner(LOCAL_ID, "local")


def current() -> Owner:
    """The user of this session; raises `NoOwnerError` if a login is on but names no user."""
    header, by_login = os.environ.get(USER_HEADER, "").strip(), has_login()
    if header and by_login:
        raise NoOwnerError(f"Both {USER_HEADER} and [auth] in secrets.toml are set: keep one.")
    if by_login:
        return of_claims(st.user.to_dict())
    if header:
        return of_header(
            header,
            headers={
                name.lower(): st.context.headers.get_all(name) for name in (header, SECRET_HEADER)
            },
            address=st.get_option("server.address"),
            secret=os.environ.get(PROXY_SECRET, ""),
        )
    return LOCAL


def has_login() -> bool:
    """Whether secrets.toml has [auth]: if so, every page requires a login.

    A file that cannot be read counts as having it, so that a broken file admits no one.
    """
    if st.secrets.load_if_toml_exists():
        return "auth" in st.secrets
    return any(Path(file).exists() for file in st.get_option("secrets.files"))


def is_admitted() -> bool:
    """Whether this session may see a page."""
    return not has_login() or st.user.get("is_logged_in") is True


def of_claims(claims: Mapping[str, Any]) -> Owner:
    """The owner named by an ID token.

    >>> of_claims({"is_logged_in": True, "iss": "https://id.example", "sub": "7"}).id
    'oidc:https://id.example#7'
    """
    if claims.get("is_logged_in") is not True:
        raise NoOwnerError("Log in to save scenarios and to see yours.")
    issuer, subject = claims.get("iss"), claims.get("sub")
    if not _is_name(issuer) or not _is_name(subject):
        raise NoOwnerError("The login does not say who you are: its token lacks iss or sub.")
    owner = f"oidc:{issuer}#{subject}"
    if len(owner) > ID_MAX:
        owner = "oidc:" + hashlib.sha256(owner.encode()).hexdigest()
    names = (claims.get(key) for key in ("email", "preferred_username", "name"))
    return Owner(owner, next((str(n) for n in names if _is_name(n)), str(subject)))


def of_header(
    header: str, *, headers: Mapping[str, list[str]], address: str | None, secret: str
) -> Owner:
    """The owner that a reverse proxy names in `header`.

    `headers` have lower-case names; `address` is the one this server listens on.
    """
    if not _HEADER_NAME.fullmatch(header):
        raise NoOwnerError(f"{USER_HEADER} is {shown(header)}, which is no name of a header.")
    if secret:
        if len(secret) < SECRET_LEAST:
            raise NoOwnerError(f"{PROXY_SECRET} has less than {SECRET_LEAST} characters.")
        given = headers.get(SECRET_HEADER.lower(), [])
        if len(given) != 1 or not hmac.compare_digest(given[0].encode(), secret.encode()):
            raise NoOwnerError("The request did not come through the proxy: saving is off.")
    elif not is_loopback(address):
        raise NoOwnerError(
            f"{USER_HEADER} is set, but this server listens on more than this machine, so anybody "
            f"could send that header: set server.address to 127.0.0.1, or {PROXY_SECRET}."
        )
    given = headers.get(header.lower(), [])
    if len(given) != 1 or not _is_name(given[0]) or len(given[0]) > ID_MAX - len("proxy:"):
        raise NoOwnerError(f"The proxy did not say who you are ({header}): saving is off.")
    return Owner(f"proxy:{given[0].strip()}", given[0].strip())


def log_out_address() -> str | None:
    """The proxy's log-out address from RUNCAST_LOGOUT_URL; None if it is not set."""
    given = os.environ.get(LOGOUT_URL, "").strip()
    return given if _ADDRESS.fullmatch(given) else None


def providers() -> list[str | None]:
    """The login providers. None is that of [auth] itself; empty if [auth] cannot be read."""
    if not st.secrets.load_if_toml_exists():
        return []
    section = st.secrets.get("auth", {})
    named: list[str | None] = [k for k, v in section.items() if isinstance(v, Mapping)]
    return [None] if "client_id" in section else [k for k in named if k != "client_kwargs"]


def log_in(provider: str | None) -> str | None:
    """Send the browser to the provider; returns an error sentence if the settings are wrong."""
    if find_spec("authlib") is None:
        return "A login needs Authlib on the server: pip install 'runcast[auth]'."
    try:
        st.login(provider)
    except StreamlitAuthError:
        return "The [auth] settings of secrets.toml are not complete: docs/teams.md lists them."
    return None


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()


def is_loopback(address: str | None) -> bool:
    """Whether an address to listen on can be reached only from this machine."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address or "").is_loopback
    except ValueError:
        return False
