"""Runcast from Python: plan a training run, and use its answer.

    import runcast
    answer = runcast.plan(model="llama3.1-8b", num_tokens="1T", seq_len=8192,
                          global_batch_size=512, gpu="h100", num_gpus=[64, 128])
    answer.best.usd.p50, answer.link, answer.to_pandas()

The names are those of runcast/api.py, which is imported when the first of them is used: importing
the package takes some milliseconds. `python -m runcast` is the command line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runcast import own_packages

if TYPE_CHECKING:
    from runcast.api import (
        Answer,
        Bill,
        Exclusion,
        Interval,
        Layout,
        Plan,
        Risk,
        RuncastError,
        RunCost,
        Scenario,
        Uncertain,
        clouds,
        gpus,
        models,
        open_file,
        open_link,
        plan,
        side_by_side,
    )

__all__ = [
    "Answer",
    "Bill",
    "Exclusion",
    "Interval",
    "Layout",
    "Plan",
    "Risk",
    "RunCost",
    "RuncastError",
    "Scenario",
    "Uncertain",
    "clouds",
    "gpus",
    "models",
    "open_file",
    "open_link",
    "plan",
    "side_by_side",
]

own_packages.import_all()


def __getattr__(name: str) -> Any:
    """A public name, from runcast/api.py."""
    if name not in __all__:
        raise AttributeError(f"module 'runcast' has no attribute {name!r}")
    from runcast import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
