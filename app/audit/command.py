"""`runcast audit`: what a claim about a training run implies, and whether it is plausible."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

from app.audit.fields import FIELDS, OPTIONS
from app.command.options import AsJson, Config, Model, Text, print_json, text_option

Programme = Annotated[
    Text, text_option("--programme", "LINK", "Of all its stages, or of a published programme.")
]


def audit(*, programme: Text = None, as_json: bool = False, **texts: Text) -> None:
    """Say what a claim about a run implies, and whether it can be.

    Against the dense peaks, the best published runs, our forecast, memory, failures and prices.
    """
    from app.audit.audit import audit_of
    from app.audit.claim import claim_of
    from app.document.terminal import print_document

    if programme is not None:
        from app.audit.programme import programme_claim
        from app.programme import claim

        asked, best, compared = programme_claim(programme, texts)
        if as_json:
            print_json(claim.claim_json(best, compared))
        else:
            print_document(claim.blocks(asked, best, compared))
        return
    result = audit_of(claim_of(texts))
    if as_json:
        from app.audit.as_json import audit_json

        print_json(audit_json(result))
    else:
        from app.audit.document import blocks

        print_document(blocks(result))


def _take_fields() -> None:
    """Give the command one option for each field of a claim."""
    options: dict[str, Any] = {"model": Model, "config": Config}
    for name, field in FIELDS.items():
        text = text_option(OPTIONS[name], field.metavar, f"{field.help}.")
        options.setdefault(name, Annotated[Text, text])
    options |= {"programme": Programme, "as_json": AsJson}
    kind = inspect.Parameter.KEYWORD_ONLY
    defaults = {"as_json": False}
    audit.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(n, kind, default=defaults.get(n), annotation=a)
            for n, a in options.items()
        ]
    )
    audit.__annotations__ = options


_take_fields()
