"""Packages of an extra, imported when first used: the base installation works without them.

    from app.document.on_use import pd

A package that is missing is a RuncastError, one sentence that names its extra.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from core.errors import RuncastError, not_installed

__all__ = ["pa", "pd", "pq", "typst", "vl_convert"]

EXTRAS = {  # of each package that the base installation lacks
    "altair": "report",
    "mcp": "mcp",
    "pandas": "report",
    "prometheus_client": "metrics",
    "psycopg": "postgres",
    "pyarrow": "ui",
    "ray": "ray",
    "starlette": "ui",
    "streamlit": "ui",
    "torch": "calibrate",
    "typst": "report",
    "vl_convert": "report",
}


def lacking(error: ModuleNotFoundError) -> RuncastError | None:
    """The sentence for a package of an extra; None for any other module, which is a bug."""
    package = str(error.name).partition(".")[0]
    return not_installed(package, EXTRAS[package]) if package in EXTRAS else None


class _OnUse(ModuleType):
    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):  # asked by inspection, which must not import it
            raise AttributeError(attribute)
        try:
            module = import_module(self.__name__)
        except ModuleNotFoundError as e:
            raise lacking(e) or e from None
        self.__dict__.update(vars(module))
        return getattr(module, attribute)


if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
    import pyarrow.parquet as pq  # type: ignore[import-untyped, unused-ignore]
    import typst
    import vl_convert
else:
    pa, pd, pq, typst, vl_convert = map(
        _OnUse, ("pyarrow", "pandas", "pyarrow.parquet", "typst", "vl_convert")
    )
