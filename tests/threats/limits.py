"""The constants that bound something, found by their names in the syntax trees of all modules."""

from __future__ import annotations

import ast
import operator
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path

from pricing.sources import SOURCES, Source
from tests.conftest import ROOT

# Words of a name that say "no more than" (or "no longer than"), anywhere.
BOUNDS = {
    "MAX", "MAXIMUM", "MOST", "LIMIT", "LIMITS", "TIMEOUT", "CAP", "DEADLINE", "LARGEST", "LONGEST",
    "HIGHEST", "TALLEST", "WIDEST", "TTL", "KEPT", "PATIENCE", "GRACE", "BUDGET", "TERM", "SHOWN",
    "ATTEMPTS", "TRIES", "RETRIES", "WAIT", "SKEW",
}  # fmt: skip
# Units that end the name of a bound where files, networks, texts and processes are; in core they
# are physics.
UNITS = re.compile(r"_(?:S|BYTES|CHARS|ROWS|PAGES|DIGITS|MB|DEPTH)$")


def bounding(modules: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Path of a module, name of a constant in it, of all that a name says to bound something."""
    for path, source in modules.items():
        for name in _constants(ast.parse(source)):
            is_bound = BOUNDS & set(name.strip("_").split("_"))
            if is_bound or (UNITS.search(name) and not path.startswith("core/")):
                yield path, name


def dotted(path: str, name: str) -> str:
    """A constant as the page names it: app.web.form.MAX_UPLOAD_MB."""
    module = Path(path).with_suffix("").as_posix().removesuffix("/__init__").replace("/", ".")
    return f"{module}.{name}"


def _constants(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign):
            targets: list[ast.expr] = list(node.targets)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets = [node.target]
        else:
            continue
        for target in targets:
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            names = [p.id for p in parts if isinstance(p, ast.Name)]
            yield from (n for n in names if n.isupper())


# --- values --------------------------------------------------------------------------------------


def value_of(name: str) -> object:
    """What a name on the page stands for: a constant, the default of a field, a field of one price
    source, or a setting of the server."""
    if name.startswith("server."):
        return tomllib.loads((ROOT / "app/.streamlit/config.toml").read_text())["server"][name[7:]]
    module, _, constant = name.rpartition(".")
    if module.startswith("pricing.sources."):
        owner = module.rpartition(".")[2]
        if owner == "Source":
            return Source.__dataclass_fields__[constant].default
        (source,) = [s for s in SOURCES if s.name == owner]
        return getattr(source, constant)
    found = _worked_out(module)
    return found[constant] if constant in found else getattr(import_module(module), constant)


@cache
def _worked_out(module: str) -> dict[str, object]:
    """Constants that are written out, which needs no import: some modules load torch."""
    folder = ROOT / module.replace(".", "/")
    source = (folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")).read_text()
    found: dict[str, object] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign):
            with suppress(ValueError):
                value = _value(node.value)
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        found[target.id] = value
                    elif isinstance(target, ast.Tuple) and isinstance(value, tuple):
                        names = [e.id for e in target.elts if isinstance(e, ast.Name)]
                        found |= zip(names, value, strict=True)
    return found


OPERATORS = {ast.Mult: operator.mul, ast.Pow: operator.pow, ast.Div: operator.truediv}


def _value(node: ast.expr) -> object:
    """A literal, or a product, power or quotient of some; ValueError for anything else."""
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](_value(node.left), _value(node.right))
    if isinstance(node, ast.Tuple):
        return tuple(_value(e) for e in node.elts)
    return ast.literal_eval(node)


def _plain(value: object) -> object:
    return float(value) if isinstance(value, int | float) else value


def written(value: object) -> str:
    """A value as the page writes it: 16,384, 0.5, 60, 600."""
    if isinstance(value, Mapping):
        return ", ".join(dict.fromkeys(written(v) for v in value.values()))
    if isinstance(value, tuple | list):
        return ", ".join(written(v) for v in value)
    if isinstance(value, int | float):
        return f"{value:,.12g}"
    return str(value)
