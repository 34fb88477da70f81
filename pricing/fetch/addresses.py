"""Parsing of addresses and of dates in HTTP headers."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import SplitResult, urljoin, urlsplit

from core.errors import shown
from pricing.fetch.network import Place, SourceError


def own_place(base: str) -> frozenset[Place]:
    """The only host and port that may be private: the mirror that the operator named."""
    if not base:
        return frozenset()
    parts = parts_of(base)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SourceError(f"The mirror {shown(bare(base))} is not an http or https address.")
    return frozenset({(parts.hostname, parts.port or (443 if parts.scheme == "https" else 80))})


def bare(address: str) -> str:
    """An address without its query and user, which may hold a key."""
    parts = parts_of(address)
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"


def parts_of(address: str) -> SplitResult:
    """An address in its parts, or `SourceError`."""
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        raise SourceError(f"{shown(address[:20])} is not an address.") from None
    return parts


def joined(address: str, location: str) -> str:
    """The target of a redirect."""
    try:
        return urljoin(address, location)
    except ValueError:
        raise SourceError("It redirects to what is not an address.") from None


def http_date(text: str | None) -> datetime | None:
    """The date in a header, or None if it is not valid."""
    try:
        found = parsedate_to_datetime(text or "")
    except (ValueError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
