"""Tables as CSV, in which no cell starts a formula."""

from __future__ import annotations

from urllib.parse import unquote

from app.document.escape import safe_value
from app.document.on_use import pd


def csv_bytes(frame: pd.DataFrame, link: str = "") -> bytes:
    """A table as CSV in UTF-8. If `link` is given, it is a last column that reopens the
    scenario."""
    safe = frame.copy()
    if link:
        safe["Link"] = unquote(link) if link.startswith("?") else link
    for name in safe.columns:
        if not pd.api.types.is_numeric_dtype(safe[name]):
            safe[name] = [safe_value(v) for v in safe[name]]
    text: str = safe.to_csv(index=False)
    return text.encode("utf-8")
