"""The training loss that a log ends with, in any format."""

from __future__ import annotations

import re
from collections.abc import Sequence

from runners.imports.text import number

_FIGURE = r"(-?\d{1,9}(?:\.\d{1,20})?(?:[eE][+-]?\d{1,3})?)(?![\w.])"
_ANY_FIGURE = _FIGURE.replace("(-?", r"(-?(?i:nan|inf(?:inity)?)|-?", 1)
# `lm loss: 3.1E+00`, `reduced_train_loss=9.0`, `'loss': 2.6`, `train/CE loss=2.4`,
# `train/CrossEntropyLoss=2.4`, `loss/train/total: 9.1`, `loss train: 10.9`, `training loss: 6.4`;
# not `'train_loss': 2.6` or `train_loss   = 2.6`, the Hugging Face Trainer's mean of the run.
_NAME = (
    r"(?:(?<![\w/])(?:lm[ _]|reduced_train_|train/|training |train/CE |Train )?loss"
    r"(?:/train/total| train)?|\btrain/CrossEntropyLoss|(?<![\w/'\"])train_loss(?=[=:]))"
    r"['\"]?\s{0,4}[:=]\s{0,8}['\"]?"
)
_LOSS, _ANY_LOSS = re.compile(_NAME + _FIGURE), re.compile(_NAME + _ANY_FIGURE)
_MAY_HAVE = re.compile("loss", re.IGNORECASE)
_COLUMNS = ("train_loss", "loss", "train/loss", "train_loss_step")


def loss_in(line: str) -> float | None:
    """The training loss that a line prints, be it nan or infinite; None if it prints none.

    >>> loss_in("step: 10  loss: nan  tps: 900"), loss_in("{'loss': '2.603'}"), loss_in("x: 1")
    (nan, 2.603, None)
    """
    found = _ANY_LOSS.findall(line) if _MAY_HAVE.search(line) else None
    return float(found[-1]) if found else None


def last_loss(lines: Sequence[str]) -> float | None:
    """The last training loss of a log; None if it prints none."""
    for line in reversed(lines):
        if _MAY_HAVE.search(line) and (found := _LOSS.findall(line)):
            return number(found[-1])
    return _of_table(lines)


def _of_table(lines: Sequence[str]) -> float | None:
    """The last loss of a table with a header."""
    names = [n.strip() for n in lines[0].split(",")] if lines else []
    column = next((names.index(n) for n in _COLUMNS if n in names), None)
    if column is None or len(names) < 2:
        return None
    for line in reversed(lines[1:]):
        cells = line.split(",")
        if len(cells) == len(names) and (value := number(cells[column])) is not None:
            return value
    return None
