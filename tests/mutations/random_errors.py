"""Small errors at every place of a module where one can be: operators, constants, comparisons.

The text is changed at the place of a node of its syntax tree and nowhere else, as Offutt et al.,
"An experimental determination of sufficient mutant operators", TOSEM 5(2), 1996, choose them:
arithmetic, relational and logical operators, constants.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

ARITHMETIC = {ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"),
              ast.Pow: ("**", "*"), ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&")}  # fmt: skip
RELATIONAL = {ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"),
              ast.Eq: ("==", "!="), ast.NotEq: ("!=", "==")}  # fmt: skip
NAMES = {"minimum": "maximum", "maximum": "minimum", "ceil": "floor", "floor": "ceil",
         "add": "subtract", "subtract": "add", "multiply": "divide",
         "divide": "multiply"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Error:
    """One changed module."""

    line: int
    says: str
    text: str  # of the whole module


def errors_of(text: str) -> Iterator[Error]:
    """Every module that differs from this one by one small error."""
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    content = text.encode()

    def at(line: int, column: int) -> int:
        return starts[line - 1] + column

    def changed(begin: int, end: int, by: str, line: int) -> Error:
        was = content[begin:end].decode()
        new = content[:begin] + by.encode() + content[end:]
        return Error(line=line, says=f"{was.strip()} -> {by.strip()}", text=new.decode())

    for node in _formulas(ast.parse(text)):
        if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
            old, new = ARITHMETIC[type(node.op)]
            begin = at(node.left.end_lineno or 0, node.left.end_col_offset or 0)
            end = at(node.right.lineno, node.right.col_offset)
            yield from _between(content, begin, end, old, new, node.lineno, changed)
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in RELATIONAL:
            old, new = RELATIONAL[type(node.ops[0])]
            begin = at(node.left.end_lineno or 0, node.left.end_col_offset or 0)
            end = at(node.comparators[0].lineno, node.comparators[0].col_offset)
            yield from _between(content, begin, end, old, new, node.lineno, changed)
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            begin = at(node.lineno, node.col_offset)
            end = at(node.end_lineno or 0, node.end_col_offset or 0)
            by = "1.0" if node.value == 0 else f"({node.value!r} * 1.5)"
            yield changed(begin, end, by, node.lineno)
        elif isinstance(node, ast.Attribute) and node.attr in NAMES and _is_numpy(node):
            end = at(node.end_lineno or 0, node.end_col_offset or 0)
            yield changed(end - len(node.attr), end, NAMES[node.attr], node.lineno)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            begin = at(node.lineno, node.col_offset)
            yield changed(begin, begin + 1, "", node.lineno)


def _between(content, begin, end, old, new, line, changed):  # type: ignore[no-untyped-def]
    """The operator stands between its operands, beside brackets and line ends."""
    place = content[begin:end].find(old.encode())
    if place >= 0:
        yield changed(begin + place, begin + place + len(old), new, line)


def _is_numpy(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "np"


def _formulas(tree: ast.Module) -> Iterator[ast.AST]:
    """Nodes of the bodies of functions: no annotations, no defaults, no decorators, no text, and
    nothing of what only decides how a number is printed or a warning silenced."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        waiting: list[ast.AST] = list(function.body)
        while waiting:
            node = waiting.pop(0)
            if isinstance(node, ast.FunctionDef | ast.JoinedStr | ast.Raise | ast.Subscript):
                continue
            if isinstance(node, ast.AnnAssign):
                waiting += [node.value] if node.value else []
                continue
            yield node
            waiting += list(ast.iter_child_nodes(node))
