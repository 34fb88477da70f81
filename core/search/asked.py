"""Several questions about the same jobs, as one: what they differ in is a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.layout.layouts import Choices
from core.layout.workload import Workload
from core.machine.efficiency import Efficiency
from core.search.columns import Ints

# Of a workload: what the memory of a layout does not depend on.
OF_TIME = frozenset(
    {
        "flash2", "eager_norms", "cuda_graphs", "async_tp",
        "overlaps_gradients", "overlaps_weights", "broadcasts_weights", "reduces_to_owners",
        "all_reduces_gradients", "splits_projections", "fp32_norms", "fuses_gradient_sums",
        "loss_bytes", "software_year", "reduces_as_held",
        "host_slowdown", "overlaps_experts", "deduplicates", "splits_expert_biases",
        "permutes_by_kernel", "indexes_expert_biases", "loops_experts",
    }
)  # fmt: skip
Record = TypeVar("Record", Workload, Efficiency)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is trained, with what software and how; and the numbers of the jobs it is asked of."""

    work: Workload
    eff: Efficiency
    choices: Choices
    memory_sigma: float
    numbers: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """Questions about one model, for rows of which each belongs to one of them."""

    asked: Sequence[Asked]
    of_work: Mapping[str, NDArray[Any]]  # fields in which they differ, by question
    of_eff: Mapping[str, NDArray[Any]]

    @classmethod
    def of(cls, asked: Sequence[Asked]) -> Together:
        """These questions."""
        return cls(
            asked=asked,
            of_work=_differing([a.work for a in asked]),
            of_eff=_differing([a.eff for a in asked]),
        )

    def at(self, question: Ints) -> tuple[Workload, Efficiency]:
        """Workload and efficiencies of rows, by the number of the question of each: of one
        question as they are, else as columns where they differ."""
        if len(question) and (question == question[0]).all():
            one = self.asked[int(question[0])]
            return one.work, one.eff
        first = self.asked[0]
        work: dict[str, Any] = {n: column[question] for n, column in self.of_work.items()}
        eff: dict[str, Any] = {n: column[question] for n, column in self.of_eff.items()}
        return replace(first.work, **work), replace(first.eff, **eff)


def twins(asked: Sequence[Asked]) -> dict[int, list[int]]:
    """Questions with the same candidates, which fit the same jobs: numbers of later ones by that of
    the first."""
    found: dict[int, list[int]] = {}
    for n, one in enumerate(asked):
        first = next((f for f in found if _are_twins(asked[f], one)), None)
        if first is None:
            found[n] = []
        else:
            found[first].append(n)
    return found


def _are_twins(a: Asked, b: Asked) -> bool:
    return (
        a.choices == b.choices
        and a.memory_sigma == b.memory_sigma
        and np.array_equal(a.numbers, b.numbers)
        and not _differing([a.eff, b.eff])
        and _differing([a.work, b.work]).keys() <= OF_TIME
    )


def _differing(records: Sequence[Record]) -> dict[str, NDArray[Any]]:
    """The fields in which records differ, a value for each of them; NaN equals NaN. All of them are
    about one model."""
    found = {}
    for name in (f.name for f in fields(records[0]) if f.name != "model"):
        values = [getattr(r, name) for r in records]
        one = values[0]
        if any(v != one and not (v != v and one != one) for v in values):
            found[name] = np.array(values)
    return found
