"""Cache of the bodies of the last refresh, so that unchanged ones are not sent again.

One file per address: a line of JSON with the validators, then the body. A file is written under a
temporary name and renamed, so that a reader never sees half of one; a damaged file is ignored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hardware.outside.json_text import LINE, json_value
from pricing.disk import write_atomically


@dataclass(frozen=True, slots=True)
class BodyCache:
    """The cached bodies of one source, in a folder of its own."""

    folder: Path

    def validators(self, url: str) -> dict[str, str]:
        """The request headers that ask for a body only if it changed."""
        head, _ = self._read(url)
        pairs = (("if-none-match", head.get("etag")), ("if-modified-since", head.get("modified")))
        return {name: value for name, value in pairs if value}

    def body(self, url: str) -> bytes | None:
        """The cached body, or None."""
        head, body = self._read(url)
        return body if head else None

    def keep(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        """Cache a body that came with an ETag or Last-Modified, without which it would be
        useless."""
        head = {
            "url": url,
            "etag": headers.get("etag", ""),
            "modified": headers.get("last-modified", ""),
            "sha256": hashlib.sha256(body).hexdigest(),
        }
        if head["etag"] or head["modified"]:
            write_atomically(self._path(url), json.dumps(head).encode() + b"\n" + body)

    def _read(self, url: str) -> tuple[dict[str, str], bytes]:
        try:
            first, _, body = self._path(url).read_bytes().partition(b"\n")
            head = json_value(first, LINE)
        except (OSError, ValueError):
            return {}, b""
        good = isinstance(head, dict) and all(isinstance(v, str) for v in head.values())
        if not good or head.get("sha256") != hashlib.sha256(body).hexdigest():
            return {}, b""
        return head, body

    def _path(self, url: str) -> Path:
        return self.folder / f"{hashlib.sha256(url.encode()).hexdigest()[:32]}.body"
