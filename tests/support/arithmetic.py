"""What a formula of a record comes to: its own grammar, and nothing else."""

from __future__ import annotations

import ast
import math
import operator

FUNCTIONS = {
    "sqrt": math.sqrt,
    "exp": math.exp,
    "ln": math.log,
    "log2": math.log2,
    "ceil": math.ceil,
    "erfc": math.erfc,
    "min": min,
    "max": max,
}
BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


def value_of(text: str) -> float:
    """The number that an expression without names comes to; ValueError for anything else."""
    return _value(ast.parse(text.replace("^", "**"), mode="eval").body)


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.BinOp(left, op, right):
            return BINARY[type(op)](_value(left), _value(right))
        case ast.UnaryOp(ast.USub(), inner):
            return -_value(inner)
        case ast.Call(ast.Name(name), inner, []) if name in FUNCTIONS:
            return FUNCTIONS[name](*map(_value, inner))
    raise ValueError(f"not arithmetic: {ast.unparse(node)}")
