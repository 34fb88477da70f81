"""What a launch file needs of a named model beyond its dimensions: hardware/model_facts.csv.

The base of the rotary embedding and what stretches it, how tokens find their experts, and layers
that predict further tokens. Of it only the router moves the forecast: a bias balances experts
better than an auxiliary loss does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from core.errors import FactError, shown
from core.model.presets import PRESETS
from hardware.tables import check_source, rows

MODEL_FACTS_CSV = Path(__file__).with_name("model_facts.csv")
# A softmax over the chosen experts, or over all of them before the choice; a sigmoid with a bias
# that balances the experts.
ROUTERS = ("", "softmax", "softmax_before", "sigmoid_bias")
_NUMBERS = (
    "rotary_base", "rotary_share", "rope_scaling", "router_groups", "router_group_topk",
    "router_scaling", "mtp_layers",
)  # fmt: skip
_COLUMNS = ("model", "router", *_NUMBERS, "source", "source_date", "note")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """One model; without a row nothing is known and its base is 0."""

    router: str = ""  # one of ROUTERS; '': no experts
    rotary_base: float = 0.0
    rotary_share: float = 1.0  # of a head's dimensions that are rotated
    rope_scaling: float = 0.0  # factor of Llama 3.1's scaling; 0: none
    router_groups: int = 1  # of experts, of which a token visits `router_group_topk`
    router_group_topk: int = 1
    router_scaling: float = 1.0  # of the experts' weights
    mtp_layers: int = 0  # layers that predict further tokens


def load_model_facts(path: Path = MODEL_FACTS_CSV) -> dict[str, ModelFacts]:
    """Read the table; a blank number has the default of the record."""
    found: dict[str, ModelFacts] = {}
    for where, row in rows(path, _COLUMNS):
        name = row["model"]
        check_source(where, name, row)
        if name not in PRESETS or name in found:
            raise FactError(f"{where}: {shown(name)} is no model or is given twice")
        if row["router"] not in ROUTERS:
            raise FactError(f"{where}: {shown(row['router'])} is none of {', '.join(ROUTERS[1:])}")
        try:
            numbers = {c: float(row[c]) for c in _NUMBERS if row[c]}
        except ValueError:
            raise FactError(f"{where}: {name} has a cell that is no number") from None
        whole = ("router_groups", "router_group_topk", "mtp_layers")
        given = {c: int(v) if c in whole else v for c, v in numbers.items()}
        found[name] = ModelFacts(router=row["router"], **given)  # type: ignore[arg-type]
    return found


def balances_by_bias(model: str) -> bool:
    """Whether the router of a named model keeps its experts even by a bias for each."""
    return model_facts().get(model, ModelFacts()).router == "sigmoid_bias"


@cache
def model_facts() -> dict[str, ModelFacts]:
    """The shipped table, read once."""
    return load_model_facts()
