"""Cells of a price book: text as numbers, days and names, or what is wrong."""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from hardware import names

ANY = "*"
# As in ids of plans and in links: one line of plain characters, and no spreadsheet formula.
_NAME = re.compile(r"\*|[A-Za-z0-9][\w .:/()+-]{0,79}", re.ASCII)
_NOTE = re.compile(r"[^=+\-@|\s][^\x00-\x1f\x7f]{0,199}")
_NUMBER = re.compile(r"(?:\d{1,3}(?:,\d{3})+|\d{1,15})(?:\.\d{1,20})?(?:[eE][+-]?\d{1,2})?")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_SIZES = {"k": 1e3, "M": 1e6, "B": 1e9}


def _number(value: Any) -> Any:
    """A number like 12, 2.10, 1,200,000 or 1.2M; '2,10' is refused, because a program would read
    210."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    size = _SIZES.get(text[-1:], 1.0)
    if not _NUMBER.fullmatch(text[:-1] if size != 1.0 else text):
        raise ValueError("is not a number like 2.10, 1,200,000 or 1.2M (a point, no currency sign)")
    return float((text[:-1] if size != 1.0 else text).replace(",", "")) * size


def _whole(value: Any) -> Any:
    number = _number(value)
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _fraction(value: Any) -> Any:
    """A fraction, written 0.3 or 30%."""
    if isinstance(value, str) and value.strip().endswith("%"):
        return _number(value.strip()[:-1]) / 100
    return _number(value)


def _day(value: Any) -> Any:
    if isinstance(value, str) and not _DAY.fullmatch(value.strip()):
        raise ValueError("is not a day like 2026-11-21")
    return value


def _named(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise ValueError("is not plain text: letters, digits, blanks and . : / ( ) + - _")
    return value


def _noted(value: str) -> str:
    if value and not _NOTE.fullmatch(value):
        raise ValueError("is not one line of at most 200 characters, or starts like a formula")
    return value


def _accelerator(value: str) -> str:
    return value if value == ANY else names.canonical(value)


Name = Annotated[str, AfterValidator(_named)]
Note = Annotated[str, AfterValidator(_noted)]
Accelerator = Annotated[str, AfterValidator(_named), AfterValidator(_accelerator)]
Day = Annotated[date, BeforeValidator(_day)]
Number = Annotated[float, BeforeValidator(_number)]
Fraction = Annotated[float, BeforeValidator(_fraction)]
Usd = Annotated[Number, Field(gt=0, le=1e12)]
Hourly = Annotated[Number, Field(gt=0, le=1e6)]
Yearly = Annotated[Number, Field(ge=0, le=1e12)]
Amount = Annotated[Number, Field(ge=0, le=1e12)]
Discount = Annotated[Fraction, Field(gt=0, lt=1)]
Whole = Annotated[int, BeforeValidator(_whole), Field(ge=1, le=131_072)]
NumCheckpoints = Annotated[int, BeforeValidator(_whole), Field(ge=0, le=10_000)]
Gbit = Annotated[Number, Field(gt=0, le=1e6)]
