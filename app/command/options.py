"""Options that several commands share, for Typer. Those that set a field of the scenario are built
from the table of app/command/given.py."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import typer

from app.command.given import REPEATED, TABLE, FieldOption, Given, option_of
from app.document.echo import echo
from hardware.outside.text import escaped_json

Text = str | None


def text_option(name: str, metavar: str, text: str) -> Any:
    """An option whose value is kept as text."""
    return typer.Option(name, metavar=metavar, help=text, show_default=False)


# Options of several commands.
Model = Annotated[Text, text_option("--model", "ID", "A preset: see `runcast models`.")]
Config = Annotated[Text, text_option("--config", "FILE", "A Hugging Face config.json instead.")]
SeqLen = Annotated[Text, text_option("--seq-len", "N", "Tokens per sequence; 8k is 8192.")]
Link = Annotated[Text, text_option("--link", "QUERY", "Reopen a link; other options override it.")]
File = Annotated[
    Text,
    text_option("--scenario", "FILE", "Open a scenario file (YAML); other options override it."),
]
Save = Annotated[Text, text_option("--save", "FILE", "Write the scenario to a file (YAML).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


def print_json(value: object) -> None:
    """Print indented JSON in insertion order. JSON has no NaN; orjson writes null."""
    import orjson

    options = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE
    echo(escaped_json(orjson.dumps(value, option=options).decode()), nl=False)


def takes_fields(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that make a scenario, in place of its parameter `given`: the
    model, the table, `--set`, a link, a file."""
    own = inspect.signature(command).parameters
    hints = get_type_hints(command, include_extras=True)
    fields = {o.field: _annotation(o) for o in TABLE}
    fields["set_fields"] = Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any other field of a scenario; repeat."),
    ]
    models, read = {"model": Model, "config": Config}, {"link": Link, "scenario": File}
    added = {
        name: inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=False if _is_switch(name) else None,
            annotation=annotation,
        )
        for name, annotation in {**models, **fields, **read}.items()
    }
    kept = {name: p for name, p in own.items() if name != "given"}

    @functools.wraps(command)
    def called(**values: Any) -> None:
        typed = {n: values.pop(n) for n in fields}
        sets = tuple(typed.pop("set_fields") or ())
        opened = {n: values.pop(n) for n in models}
        opened |= {"link": values.pop("link"), "file": values.pop("scenario")}
        typed |= {n: by.join(typed[n]) for n, by in REPEATED.items() if typed[n] is not None}
        options = {
            n: "true" if v is True else v for n, v in typed.items() if v not in (None, False)
        }
        command(given=Given(options=options, sets=sets, **opened), **values)

    signature = [
        p.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[n]) for n, p in kept.items()
    ]
    # Model and layout come before the fields, output options after them.
    layout = [p for p in signature if p.name == "layout"]
    made = [added[n] for n in models], layout, [added[n] for n in (*fields, *read)]
    every = [*(p for part in made for p in part), *(p for p in signature if p not in layout)]
    called.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
    called.__annotations__ = {p.name: p.annotation for p in every}
    return called


def _is_switch(field: str) -> bool:
    return any(o.field == field and not o.metavar for o in TABLE)


def _annotation(option: FieldOption) -> Any:
    name = str(option_of(option.field))
    if not option.metavar:
        return Annotated[bool, typer.Option(name, help=option.help)]
    return Annotated[
        list[str] | None if option.field in REPEATED else str | None,
        typer.Option(name, metavar=option.metavar, help=option.help, show_default=False),
    ]
