"""Docstrings of ours as Markdown: prose, indented formulas, examples, references, fields with what
their comments say. The source is read, not imported."""

from __future__ import annotations

import ast
import html
import inspect
import re
import textwrap
from collections.abc import Iterable, Sequence

_CODE = re.compile(r"(`[^`]+`)")
_REFERENCE = re.compile(r"\[[\w+]+\] ")
_DOCTEST_FLAG = re.compile(r" *# doctest:.*")
_WIDE = 88  # characters of a signature that stands in one line


def markdown_of(docstring: str) -> str:
    """A docstring of ours: prose, indented formulas, examples, `[K23] Author, ...` references."""
    return "\n\n".join(
        _block(b) for b in re.split(r"\n\s*\n", inspect.cleandoc(docstring)) if b.strip()
    )


def _block(block: str) -> str:
    lines = block.splitlines()
    if lines[0].lstrip().startswith(">>> "):
        code = textwrap.dedent("\n".join(_DOCTEST_FLAG.sub("", line) for line in lines))
        return f"```pycon\n{code}\n```"
    if all(line.startswith("    ") for line in lines):
        return f"```text\n{textwrap.dedent(block)}\n```"
    if _REFERENCE.match(lines[0]):
        return "\n".join(f"- {escaped(' '.join(r.split()))}" for r in re.split(r"\n(?=\[)", block))
    formula = next((n for n, line in enumerate(lines) if line.startswith("    ")), None)
    if formula and not lines[0].startswith(("- ", "* ")):
        rest = next(
            (n for n, x in enumerate(lines) if n > formula and not x.startswith("    ")), len(lines)
        )
        cut = ["\n".join(x) for x in (lines[:formula], lines[formula:rest], lines[rest:]) if x]
        return "\n\n".join(_block(c) for c in cut)
    return escaped(block)


def escaped(text: str) -> str:
    """Text as Markdown that shows it as it is, but for `code`."""
    parts = _CODE.split(text)
    return "".join(
        part if n % 2 else re.sub(r"([\\*_\[\]|])", r"\\\1", html.escape(part, quote=False))
        for n, part in enumerate(parts)
    )


def member(node: ast.FunctionDef | ast.ClassDef, source: str, level: int) -> str:
    """A function with its signature, or a class with its fields and what it can do."""
    parts = [f"{'#' * level} {node.name}"]
    if isinstance(node, ast.FunctionDef):
        parts.append(f"```python\n{signature(node)}\n```")
    parts.append(markdown_of(ast.get_docstring(node) or ""))
    if isinstance(node, ast.ClassDef):
        if rows := _class_fields(node, source):
            parts.append(table(("Field", "Type", "Meaning"), rows))
        parts += [member(inner, source, level + 1) for inner in public(node)]
    return "\n\n".join(p for p in parts if p)


def signature(node: ast.FunctionDef) -> str:
    """`name(arguments) -> result`, an argument a line where it is long; a property has none."""
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    if any(ast.unparse(d) == "property" for d in node.decorator_list):
        return f"{node.name}{returns}"
    arguments = [a for a in _arguments(node.args) if a not in ("self", "cls")]
    one_line = f"{node.name}({', '.join(arguments)}){returns}"
    if len(one_line) <= _WIDE:
        return one_line
    inner = "".join(f"    {a},\n" for a in arguments)
    return f"{node.name}(\n{inner}){returns}"


def _arguments(args: ast.arguments) -> list[str]:
    plain = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(plain) - len(args.defaults)) + [*args.defaults]
    found = [_argument(a, d) for a, d in zip(plain, defaults, strict=True)]
    if args.vararg:
        found.append(f"*{ast.unparse(args.vararg)}")
    elif args.kwonlyargs:
        found.append("*")
    found += [_argument(a, d) for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True)]
    return found + ([f"**{ast.unparse(args.kwarg)}"] if args.kwarg else [])


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    equals = " = " if argument.annotation else "="
    return ast.unparse(argument) + ("" if default is None else equals + ast.unparse(default))


def _class_fields(node: ast.ClassDef, source: str) -> list[tuple[str, str, str]]:
    """Annotated fields; what they mean stands behind them as a comment."""
    lines = source.splitlines()
    rows = []
    for field in node.body:
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            comment = lines[(field.end_lineno or field.lineno) - 1].partition("  # ")[2]
            kind = ast.unparse(field.annotation).replace("|", "\\|")
            rows.append((f"`{field.target.id}`", f"`{kind}`", escaped(comment)))
    return rows


def public(tree: ast.Module | ast.ClassDef) -> list[ast.FunctionDef | ast.ClassDef]:
    """Functions and classes of a module, or of a class, that are not private."""
    return [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    ]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; line ends inside cells become spaces."""
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    lines += [f"| {' | '.join(' '.join(cell.split()) for cell in row)} |" for row in rows]
    return "\n".join(lines)
