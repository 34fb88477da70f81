"""A plan carries its inputs, so that no module divides one result by another to get an input back:
dollars over hours is the price, the plan's step over the same step computed the factor of measured
runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = ("app", "core", "hardware", "pricing", "runners", "runcast")
RESULTS = frozenset(
    {
        "usd", "instances_usd", "expected_usd", "usd_expected", "term_usd", "billed_hours",
        "gpu_hours", "wall_clock_hours", "run_hours", "training_hours", "hours", "expected_hours",
        "hours_expected", "step_s", "tokens_per_s", "tokens_per_s_per_gpu", "usd_per_gpu_hour",
        "mfu", "hfu", "model_flops_per_s_per_gpu", "num_steps", "memory_bytes", "need_bytes",
        "total", "compute", "failures", "paid",
    }
)  # fmt: skip


def results_in(node: ast.AST) -> frozenset[str]:
    return RESULTS & {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}


def is_summed(node: ast.AST) -> bool:
    """Whether the parts of a plan's step are added up."""
    return any(isinstance(n, ast.Attribute) and n.attr == "values" for n in ast.walk(node))


def recovered(tree: ast.AST) -> Iterator[str]:
    """Divisions of one result by another one, as code. One kind of result of two plans says how
    much better one is; a plan's own step over the same step computed again does not."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div):
            continue
        above, below = results_in(node.left), results_in(node.right)
        compared = above == below and is_summed(node.left) == is_summed(node.right)
        if above and below and not compared:
            yield ast.unparse(node)


def test_no_result_is_divided_by_another_one():
    found = {}
    for folder in PRODUCT:
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = str(path.relative_to(ROOT))
            divisions = list(recovered(ast.parse(path.read_text(encoding="utf-8"))))
            if divisions:
                found[name] = divisions
    assert not found, "read it of plan.job, or carry it as a term of the plan"


def test_a_recovered_input_would_be_seen():
    for code in (
        "plan.usd.p50 / (plan.billed_hours * plan.num_nodes)",
        "sum(plan.step_s.values()) / float(computed.step_s[0])",
        "plan.usd_per_gpu_hour * plan.gpu_hours / plan.billed_hours",
    ):
        assert list(recovered(ast.parse(code))) == [code]
    assert not list(recovered(ast.parse("other.usd.p50 / plan.usd.p50")))
