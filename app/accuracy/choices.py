"""What the forecast would have chosen among measured runs: groups to choose in, and their regret.

A choice is between configurations of one job. Three groupings, from narrow to wide:

- layout: one table of one publication, with the same stack, release, model, accelerator, task,
  sequence, precision, global batch and number of GPUs. Layouts are left to choose: degrees,
  micro-batch, recompute, sharding, offload.
- count: the same, with any global batch and number of GPUs.
- machine: one model, task, sequence and precision: accelerators, stacks and publications too.

Speeds are tokens/s per GPU over the accelerator's 16-bit peak: inside one machine that changes
nothing, among machines the faster one is not the better choice for its speed alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from app.accuracy.predict import publications
from app.accuracy.scores import configurations
from app.accuracy.section_scores import BETWEEN, Numbers, Texts, joined
from core.errors import ScenarioError
from core.evidence.choice import Choices, Estimate, choices, estimates
from hardware.facts import accelerator as facts_of
from hardware.measured import RunInputs

if TYPE_CHECKING:
    from app.accuracy.validate import Report

_MACHINE = ("model_key", "task", "seq_len", "precision")
_COUNT = (*_MACHINE, "source", "framework", "framework_version")
GROUPINGS = {"layout": (*_COUNT, "num_gpus", "global_batch"), "count": _COUNT, "machine": _MACHINE}
ANY_ACCELERATOR = ("machine",)
ACCELERATOR = "accelerator"  # the last part of a group's name, where it has one


@dataclass(frozen=True, slots=True, kw_only=True)
class Regret:
    """The choices of one grouping and their figures; no figures where there is no group."""

    found: Choices
    figures: Mapping[str, Estimate]

    @property
    def configurations(self) -> int:
        """Configurations among which was chosen, in all groups together."""
        return int(self.found.size.sum())

    @property
    def publications(self) -> int:
        """Publications that the chosen configurations are of."""
        return len(np.unique(self.found.publication))


def regrets(
    inputs: RunInputs,
    *,
    accelerator: Texts,
    predicted: Numbers,
    measured: Numbers,
) -> dict[str, Regret]:
    """The regret of each grouping. Rows whose forecast or measurement is NaN are left out.

    `accelerator` are canonical names; rows of an unknown one are left out, too.
    """
    configuration = configurations(inputs, accelerator)
    publication, peak_flops_per_s = publications(inputs.source), _peaks(accelerator)
    found = {}
    for name, columns in GROUPINGS.items():
        texts = (np.asarray(getattr(inputs, c), dtype=np.str_) for c in columns)
        machine = () if name in ANY_ACCELERATOR else (accelerator,)
        chosen = choices(
            log_forecast=np.log(predicted / peak_flops_per_s),
            log_measured=np.log(measured / peak_flops_per_s),
            group=joined(*texts, *machine),
            configuration=configuration,
            publication=publication,
        )
        found[name] = Regret(found=chosen, figures=estimates(chosen))
    return found


def regrets_of(report: Report) -> dict[str, Regret]:
    """The regret among the rows that a validation scored, with the forecasts as they are."""
    rows = report.throughput.rows
    return regrets(
        report.runs.inputs,
        accelerator=report.labels["accelerator"],
        predicted=np.where(rows.scored(), rows.predicted, np.nan),
        measured=rows.measured,
    )


def parts(group: str, grouping: str) -> dict[str, str]:
    """What the configurations of a group have in common, by column."""
    names = (*GROUPINGS[grouping], *(() if grouping in ANY_ACCELERATOR else (ACCELERATOR,)))
    return dict(zip(names, group.split(BETWEEN), strict=True))


def _peaks(accelerators: Texts) -> Numbers:
    """The 16-bit peak of each row's accelerator in FLOP/s; NaN where it is unknown."""
    names, which = np.unique(accelerators, return_inverse=True)
    peaks = []
    for name in map(str, names):
        try:
            peaks.append(facts_of(name).bf16_flops_per_s)
        except ScenarioError:
            peaks.append(np.nan)
    return np.array(peaks, dtype=np.float64)[which]
