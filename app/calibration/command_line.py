"""The command that measures machines for a plan, to be copied."""

from __future__ import annotations

import shlex
from urllib.parse import urlencode

from app.scenario.link import query_of
from core.scenario import Scenario
from core.search.plan import Plan

MOST_HOSTS = 2  # two machines say what a network gives; more say which one is slow


def commands(scenario: Scenario, plan: Plan | None) -> str:
    """One node, where that is all that the plan has; else two over ssh. Then what keeps the result.

    The matmuls that are measured are those of the plan that the link names.
    """
    kept = {n: v for n, v in query_of(scenario) if n != "calibration"}
    if plan is not None:
        kept["plan"] = plan.id
    asked = shlex.quote("?" + urlencode(kept, safe=",/:~"))
    nodes = 1 if plan is None else min(plan.num_nodes, MOST_HOSTS)
    where = "--launcher local" if nodes == 1 else "--launcher ssh --hosts node1,node2"
    return (
        f"runcast calibrate {where} --out calibration.json \\\n    --plan {asked}\n"
        "runcast calibrations add calibration.json"
    )
