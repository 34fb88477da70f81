"""Metrics of a run in a file store of MLflow: runs/metrics/NAME, a line `milliseconds value step`.

mlflow/store/tracking/file_store.py (`_log_run_metric`). One metric is followed: the training loss,
or the seconds of a step where the run has them; a name with a slash is a folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from runners.watch.follow import Tail
from runners.watch.scalars import Scalars

FOLDER = "metrics"


def name_of(path: Path) -> str:
    """The metric that a file holds; '' if it is in no file store.

    >>> name_of(Path("mlruns/0/1f/metrics/train/loss")), name_of(Path("metrics.csv"))
    ('train/loss', '')
    """
    parts = path.parts[-4:]
    if FOLDER not in parts[:-1] or path.suffix:
        return ""
    at = len(parts) - 1 - parts[::-1].index(FOLDER)
    return "/".join(parts[at + 1 :])


@dataclass(slots=True, kw_only=True)
class Metric:
    """One metric; `lines` gives what came since it was last asked."""

    path: Path
    _tail: Tail | None = None
    _scalars: Scalars = field(default_factory=Scalars)

    def lines(self, *, is_last: bool = False) -> Iterator[str]:
        """Lines of steps that are whole."""
        if self._tail is None:
            self._tail = Tail(path=self.path)
        for line in self._tail.lines(is_last=is_last):
            words = line.split()
            try:
                at_s, value, step = float(words[0]) / 1e3, float(words[1]), int(words[2])
            except (ValueError, IndexError):
                continue
            yield from self._scalars.add(at_s=at_s, step=step, name=name_of(self.path), value=value)
        if is_last:
            yield from self._scalars.ended()

    def close(self) -> None:
        """Close the file."""
        if self._tail is not None:
            self._tail.close()
