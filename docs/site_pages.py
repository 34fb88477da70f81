"""Pages of the documentation that are made while its site is built, so that none goes stale: from
docstrings, the field table, the command line and the README. docs/hooks.py gives them to MkDocs.

    method.md and formulas/*.md   core's docstrings, module by module
    reference/python.md           the module runcast and the results that it gives
    reference/fields.md           the fields of a scenario
    reference/cli.md              the commands and their options
    reference/launch-flags.md     habits of stacks, and the flag of a launch file for each
    record.md                     a section of the README; contributing.md: CONTRIBUTING.md
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import typer.main

from app import cli
from app.command.given import TABLE, option_of
from app.method import tables as method_tables
from app.scenario.fields import GROUPS, bounds, fields_of, is_list, literals, written
from docs.docstring_markdown import escaped, markdown_of, member, public, table
from hardware.claims import formulas, not_modelled
from hardware.habits.flags import flags
from hardware.habits.flags import table as habit_rows

ROOT = Path(__file__).parent.parent
FORMULAS = "formulas"  # the folder of the formula pages
FIELD_GROUPS = (
    ("basic", "The run"),
    ("quotes", "Prices that you were offered"),
    ("advanced", "How it is trained"),
    *GROUPS,
    ("custom_model", "A model of your own: `model=custom`"),
    ("custom_gpu", "A GPU of your own: `gpu=custom`"),
    ("programme", "Runs that follow one another"),
    ("view", "What a page shows of the answer"),
)
# Modules whose results the Python API gives, with the classes that it shows.
RESULTS = (
    ("core/search/plan.py", ("Plan", "Layout", "Exclusion", "Counts")),
    ("core/machine/offer.py", ("Offer",)),
    ("core/cost/run_cost.py", ("RunCost",)),
    ("core/cost/uncertain.py", ("Uncertain",)),
    ("app/risk/risk.py", ("Risk", "CheckpointInterval")),
    ("app/bill/bill.py", ("Bill",)),
)
SHARED = {"--model", "--config", "--set", "--link", "--scenario"}

_DOCUMENT = re.compile(r"\bdocs/([\w/-]+\.md)")  # as docstrings name a page
LINK = re.compile(r"(?<!!)\[([^\]\n]+)\]\(([^)#\s]*)(#[^)\s]*)?\)")


def generated() -> dict[str, str]:
    """Path of every page that is made here -> its Markdown."""
    pages = {formula_page(m): module_page(m) for m in formula_modules()}
    pages["method.md"] = method_page()
    pages["reference/python.md"] = python_page()
    pages["reference/fields.md"] = fields_page()
    pages["reference/cli.md"] = cli_page()
    pages["reference/launch-flags.md"] = flags_page()
    pages["record.md"] = readme_page("How accurate is it", "Accuracy record")
    pages["contributing.md"] = _from_root((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    return pages


def method_page() -> str:
    """How a forecast is made: the steps, each part's formula and source, what is left out."""
    steps = [f"{n}. {escaped(s)}" for n, s in enumerate(method_tables.STEPS, start=1)]
    parts = [
        (
            escaped(f.topic),
            escaped(f.formula),
            escaped(f.source),
            f"[{module_name(f.module)}]({formula_page(f.module)})",
        )
        for f in formulas()
    ]
    left_out = [(escaped(m.group), escaped(m.name), escaped(m.why)) for m in not_modelled()]
    return "\n\n".join(
        [
            "# Method",
            "This page and those of its formulas are made from the code that computes: the table "
            "of formulas, and the docstrings of the modules that it names. The Method page of the "
            "dashboard shows the same table, with figures of other people's guides checked.",
            "## How a forecast is made",
            "\n".join(steps),
            "Time is of training steps in steady state; MFU counts causal attention once.",
            "## Formulas",
            table(("Part", "Formula, in words", "After", "Code"), parts),
            "## Bytes per parameter",
            "Guides print 16, 18 or 20 bytes per parameter for AdamW in mixed precision. All are "
            "right, each of another software; adapters and other optimizers keep less.",
            _frame(method_tables.accountings().texts()),
            "## What is not modelled",
            table(("Group", "Name", "Why"), left_out),
        ]
    )


def module_page(path: str) -> str:
    """One module of core: what its docstring says, then every public function and class."""
    source = (ROOT / path).read_text(encoding="utf-8")
    tree = ast.parse(source)
    parts = [
        f"# {module_name(path)}",
        markdown_of(ast.get_docstring(tree) or ""),
        f"Code: `{path}`",
    ]
    parts += [member(node, source, level=2) for node in public(tree)]
    return "\n\n".join(parts)


def python_page() -> str:
    """The functions of runcast, its answer, and the classes of the results."""
    source = (ROOT / "runcast/api.py").read_text(encoding="utf-8")
    tree = ast.parse(source)
    parts = ["# The module runcast", markdown_of(ast.get_docstring(tree) or "")]
    found = sorted(public(tree), key=lambda node: isinstance(node, ast.ClassDef))
    parts += [*(member(node, source, level=2) for node in found), "## What results are made of"]
    for path, names in RESULTS:
        source = (ROOT / path).read_text(encoding="utf-8")
        named = {node.name: node for node in public(ast.parse(source))}
        parts += [member(named[n], source, level=3) for n in names]
    return _DOCUMENT.sub(r"[\1](../\1)", "\n\n".join(parts))


def fields_page() -> str:
    """Every field of a scenario, group by group."""
    parts = [
        "# Fields of a scenario",
        "A link, a scenario file, a cell of a sweep and the keywords of the Python API have the "
        "same fields. Numbers may be written 15T, 500B, 1e12; of lengths 8k is 8192. Lists are "
        "written with commas. The option is that of the command line; `--set FIELD=VALUE` sets any "
        "field.",
    ]
    for group, title in FIELD_GROUPS:
        rows = []
        for name, field in fields_of(group).items():
            meaning = ". ".join(t for t in (field.title, field.description) if t)
            allowed = ", ".join(literals(field.annotation)) or bounds(field).strip().rstrip(".")
            kind = "list" if is_list(field) else ""
            option = "--model" if name == "model" else option_of(name)
            default = field.default if isinstance(field.default, bool) else written(field.default)
            rows.append(
                (
                    f"`{name}`",
                    escaped(meaning),
                    f"`{default}`" if default not in ("", None) else "",
                    escaped("; ".join(t for t in (kind, allowed) if t)),
                    f"`{option}`" if option else "",
                )
            )
        parts += [f"## {title}", table(("Field", "Meaning", "Default", "Values", "Option"), rows)]
    return "\n\n".join(parts)


def cli_page() -> str:
    """Every command with its own options; those that a scenario's fields have, once."""
    fields = {str(option_of(o.field)) for o in TABLE} | SHARED
    shared: dict[str, Any] = {}
    parts: list[str] = []
    for name, command in commands("runcast", typer.main.get_command(cli.app)):
        own, takes_fields = [], 0
        for parameter in command.params:
            if parameter.opts[0] in fields and "--link" in {o.opts[0] for o in command.params}:
                shared.setdefault(parameter.opts[0], parameter)
                takes_fields += 1
            elif parameter.opts[0] not in ("--help",):
                own.append(parameter)
        parts += [f"### {name}", markdown_of(command.help or "")]
        if takes_fields:
            parts.append("Takes the options of a scenario.")
        if own:
            parts.append(table(("Option", "Meaning"), map(_option_row, own)))
    scenario = table(("Option", "Meaning"), map(_option_row, shared.values()))
    return "\n\n".join(
        [
            "# Command line",
            "A mistake is one sentence on standard error and exit status 2. Every command says its "
            "options with `--help`. What stands after `--json` is on the page of its command. "
            "In a pipe, reports and explanations print every cell whole, however wide "
            "(`COLUMNS=80` sets a width).",
            "## Commands",
            *parts,
            "## Options of a scenario",
            "What the values mean and may be: [Fields of a scenario](fields.md).",
            scenario,
        ]
    )


def flags_page() -> str:
    """What a launch file sets for each habit of its stack."""
    parts = [
        "# What a launch file sets",
        "What the forecast assumes of a stack is written into its launch file, so that the run "
        "does it. A choice that is not listed cannot be asked of the stack, and a plan that "
        "assumes it is refused. Where a run differs, the forecast of that stack assumes what it "
        "does. The table is `hardware/habits/flags.csv`, with the source of every row.",
    ]
    for stack in flags():
        rows = habit_rows([stack])
        parts += [
            f"## {rows[0][0]}",
            table(("Habit", "Choice", "In the file"), [[escaped(c) for c in r[1:]] for r in rows]),
        ]
    return "\n\n".join(parts)


def readme_page(heading: str, title: str) -> str:
    """A section of the README as a page of its own."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    if not section.strip():
        raise ValueError(f"README.md has no section {heading!r}")
    return f"# {title}\n{_from_root(section)}"


def _frame(frame: pd.DataFrame) -> str:
    rows = [[escaped(str(cell)) for cell in row] for row in frame.itertuples(index=False)]
    return table([*frame.columns], rows)


def formula_modules() -> list[str]:
    return list(dict.fromkeys(f.module for f in formulas()))


def formula_page(module: str) -> str:
    return f"{FORMULAS}/{Path(module).stem}.md"


def module_name(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


def commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Every command under a group that its help lists, with its whole name."""
    for inner_name, inner in getattr(command, "commands", {}).items():
        if inner.hidden:
            continue
        full = f"{name} {inner_name}"
        if hasattr(inner, "commands"):
            yield from commands(full, inner)
        else:
            yield full, inner


def _option_row(parameter: Any) -> tuple[str, str]:
    is_option = parameter.opts[0].startswith("-")
    shown = parameter.opts[0] if is_option else parameter.metavar or parameter.name.upper()
    value = f" {parameter.metavar}" if is_option and parameter.metavar else ""
    return f"`{shown}{value}`", escaped(parameter.help or "")


def _from_root(text: str) -> str:
    """Markdown of the repository's root, with its links as they are seen from docs/."""

    def seen(match: re.Match[str]) -> str:
        text, target, anchor = match[1], match[2], match[3] or ""
        if not target or ":" in target:
            return match[0]
        inside = target.removeprefix("docs/")
        return f"[{text}]({inside if inside != target else f'../{target}'}{anchor})"

    return re.sub(LINK, seen, text)
