"""A coverage-guided fuzzer (atheris) of the two decoders that strangers reach first:

    python -m tests.threats.fuzz_decoders link|config|planted [options of libFuzzer]

It ends with another status than 0 at the first input that is neither read nor refused with a
sentence, that does not survive being written and read again, or that takes more than a second.
`planted` is the decoder of links with a fault put into it, which must be found.
"""

from __future__ import annotations

import sys
import time
from urllib.parse import parse_qs, urlencode

import atheris

with atheris.instrument_imports(
    include=["core", "app.web.link", "app.scenario.age", "app.scenario.model"]
):
    from app.scenario.link import parse
    from app.scenario.model import custom_fields, parse_config
    from core.errors import ModelError
    from core.scenario import Scenario

NOW = "0123456789abcdef"  # a snapshot of prices
MOST_CPU_S = 1.0  # of one input; libFuzzer itself gives up on one that never ends


def unresolved(scenario: Scenario) -> tuple[Scenario, list[str]]:
    """The names of a link are looked up elsewhere."""
    return scenario, []


def link(data: bytes) -> None:
    """Any query opens a valid scenario with sentences, and what was opened has a link."""
    query = parse_qs(data.decode("utf-8", "replace"), keep_blank_values=True)
    opened, notes = parse(query, unresolved, NOW)
    if not all(note.endswith((".", "?")) for note in notes):
        raise AssertionError(f"no sentence: {notes}")
    again, said = parse(parse_qs(urlencode(opened.to_query())), unresolved, NOW)
    if (again, said) != (opened, []):
        raise AssertionError(f"{opened!r} is read back as {again!r}: {said}")


def config(data: bytes) -> None:
    """Any file is a model or one sentence, and a model fits into a link."""
    try:
        model = parse_config(data)
    except ModelError as e:
        if not str(e).endswith((".", "?")):
            raise AssertionError(f"no sentence: {e}") from None
        return
    scenario = Scenario.parse(custom_fields(model))
    if Scenario.from_query(scenario.to_query()) != (scenario, []):
        raise AssertionError(f"{model!r} does not survive a link")


def planted(data: bytes) -> None:
    """The same with a fault: one field of the link is not checked."""
    query = parse_qs(data.decode("utf-8", "replace"), keep_blank_values=True)
    for value in query.get("tp", []):
        if len(value) > 2:
            int(value)
    link(data)


DECODERS = {"link": link, "config": config, "planted": planted}


def main() -> None:
    decode = DECODERS[sys.argv[1]]

    def once(data: bytes) -> None:
        began = time.process_time()
        decode(data)
        if (took := time.process_time() - began) > MOST_CPU_S:
            raise AssertionError(f"{took:.1f} s of CPU for {len(data):,} bytes")

    atheris.Setup([sys.argv[0], *sys.argv[2:]], once)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
