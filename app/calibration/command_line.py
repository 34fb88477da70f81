"""The `runcast calibrate` commands that measure the machines of a plan, ready to copy."""

from __future__ import annotations

import shlex
from urllib.parse import urlencode

from app.scenario.link import query_of
from core.scenario import Scenario
from core.search.plan import Plan

MOST_HOSTS = 2  # two machines measure the network; more would also show which is slow


def commands(scenario: Scenario, plan: Plan | None) -> str:
    """Commands that measure one node, or two over ssh if the plan has more, and add the result.

    They measure the matmuls of the plan that the link selects.
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
