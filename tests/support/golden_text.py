"""The text of commands and pages for eight scenarios, as tests/golden/texts keeps it.

    python -m tests.support.golden_text

writes every file again. A refactoring that changes no number changes no file; of any other change
the reviewer sees in the diff what moved. Prices are of a bundled snapshot and ages are counted
to `TODAY`, so that the texts are the same on every day.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import json
import math
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pandas as pd
from streamlit.testing.v1 import AppTest

FOLDER = Path(__file__).parent.parent / "golden/texts"
TODAY = "2026-11-09"
DIGITS = 6  # of numbers in JSON and in tables; numpy may add up in another order elsewhere
SAME = 2e-5  # relative: one in the last of these digits
LINE_CHARS = 160  # a JSON value that is longer is written over several lines
MOST_ROWS = 8  # of a table
MOST_POINTS = 5  # of a curve in JSON
_PRICES = {"v": "1", "prices": "9a4277b798e9"}
_RUN = {
    **_PRICES, "model": "llama3.1-8b", "num_tokens": "1e11", "seq_len": "8192",
    "global_batch_size": "512", "gpu": "H100-80GB-SXM", "num_gpus": "64",
}  # fmt: skip
SCENARIOS: Mapping[str, Mapping[str, str]] = {
    "pretrain": {**_RUN, "deadline_days": "4"},
    "spot": {
        **_RUN, "purchase": "spot", "max_price_age_days": "0", "deadline_days": "9",
        "budget_usd": "15000",
    },
    "reserved": {
        **_RUN, "purchase": "reserved_1y", "max_price_age_days": "0", "budget_usd": "2e6",
    },
    "lora": {
        **_PRICES, "model": "llama3.1-70b", "task": "lora", "num_tokens": "2e7", "seq_len": "4096",
        "global_batch_size": "32", "gpu": "H100-80GB-SXM,A100-80GB-SXM", "num_gpus": "8",
    },
    "experts": {
        **_RUN, "model": "deepseek-v3", "num_tokens": "2e12", "seq_len": "4096",
        "global_batch_size": "8192", "num_gpus": "2048", "deadline_days": "40",
        "deadline_confidence": "0.8",
    },
    "quote_and_layout": {
        **_RUN, "quotes": "acme,H100-80GB-SXM,2.2", "cloud": "aws", "tp": "2", "pp": "2",
        "cuda_graphs": "1", "experiment_share": "0.3", "dataset_tb": "20", "kept_checkpoints": "5",
    },
    "programme": {
        **_RUN, "cloud": "aws,lambda", "num_gpus": "64,128", "deadline_days": "30",
        "stages": "main;long,share=10%,seq_len=64k,batch=64,cp=4;end,share=5%,gap_hours=6",
    },
    "custom": {
        **_PRICES, "model": "custom", "num_layers": "32", "hidden_size": "4096",
        "ffn_hidden_size": "14336", "num_attention_heads": "32", "num_kv_heads": "8",
        "head_dim": "128", "vocab_size": "128256", "num_tokens": "5e10", "seq_len": "4096",
        "global_batch_size": "256", "gpu": "custom", "num_gpus": "32",
        "custom_tflop_per_s": "400", "custom_memory_gib": "64", "custom_memory_gb_per_s": "2000",
        "custom_scale_up_gb_per_s": "300", "custom_scale_out_gbit_per_s": "200",
        "custom_usd_per_gpu_hour": "1.5",
    },
}  # fmt: skip
COMMANDS = ("plan", "risk", "buy", "bill", "scale", "explain", "where")
PAGES = ("plan", "compare", "risk")  # of Buy, Risk, Bill and Scale the sections are the risk page's
MEDIA = ("terminal", "json", "pages")
# Keys of JSON that repeat the question, or what the terminal's text has: words, layouts, sources.
LEFT_OUT = {
    "scenario", "inputs", "made_with", "link", "formula", "numbers_put_in", "method",
    "method_source", "module", "note", "source", "source_url", "source_date", "source_prints",
    "age_days", "sentence", "sentences", "run_sentence", "label", "text", "how", "why_not",
    "layout", "layouts", "levers", "assumptions", "shown", "first", "last", "observed_at",
    "finish", "markets", "exponential",
}  # fmt: skip
CURVES = ("curve", "effects", "searched_again", "points")
_MADE = re.compile(r"(\bmade=)[^&]+")  # the installed version, in a link
_JOINER = "\N{WORD JOINER}"


def texts_of(name: str) -> dict[str, str]:
    """Every text of one scenario, by the name of its file."""
    query = SCENARIOS[name]
    made = {"terminal": _terminal(query), "json": _json(query), "pages": _pages(query)}
    return {f"{name}.{medium}.txt": "\n".join(made[medium]) + "\n" for medium in MEDIA}


def printed(*arguments: str) -> str:
    """What a command prints."""
    from app import cli

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli.main(arguments)
        except SystemExit as end:
            if end.code:
                return f"exit {end.code}: {err.getvalue()}"
    return out.getvalue()


def link(query: Mapping[str, str]) -> str:
    """The scenario as a link of the page."""
    return f"?{urlencode(query)}"


def _terminal(query: Mapping[str, str]) -> Iterator[str]:
    for command in COMMANDS:
        yield f"=== runcast {command}"
        lines = printed(command, "--link", link(query)).splitlines()
        yield from (_MADE.sub(r"\1...", line).rstrip() for line in lines)


def _json(query: Mapping[str, str]) -> Iterator[str]:
    for command in COMMANDS:
        yield f"=== runcast {command} --json"
        text = printed(command, "--link", link(query), "--json")
        if text.startswith("exit"):
            yield text.rstrip()
            continue
        document = json.loads(text)
        if command == "plan":
            document["plans"] = document["plans"][:2]
        if command == "where":
            document = {n["key"]: f"{n['value']} {n['unit']}" for n in document["numbers"]}
        yield from lines_of(document, command)


def lines_of(value: object, at: str = "", indent: str = "") -> Iterator[str]:
    """A JSON value as indented lines: what fits on a line is on one, and nulls are left out."""
    short = f"{indent}{at}: {_compact(value)}"
    if len(short) <= LINE_CHARS or not isinstance(value, dict | list):
        yield short
        return
    pairs = (
        [(k, v) for k, v in value.items() if k not in LEFT_OUT and v is not None]
        if isinstance(value, dict)
        else [(_name(n, v), v) for n, v in _sampled(at, value)]
    )
    yield f"{indent}{at}:"
    row = ""
    for name, inner in pairs:
        if isinstance(inner, dict | list):
            continue
        cell = f"{name}: {_compact(inner)}"
        if row and len(indent) + len(row) + len(cell) > LINE_CHARS:
            yield f"{indent}  {row}"
            row = ""
        row += f"; {cell}" if row else cell
    if row:
        yield f"{indent}  {row}"
    for name, inner in pairs:
        if isinstance(inner, dict | list):
            yield from lines_of(inner, name, f"{indent}  ")


def _sampled(name: str, values: list[Any]) -> list[tuple[int, Any]]:
    """A list with its indices; of a curve a few points."""
    if name not in CURVES or len(values) <= MOST_POINTS:
        return list(enumerate(values))
    step = (len(values) - 1) / (MOST_POINTS - 1)
    return [(round(n * step), values[round(n * step)]) for n in range(MOST_POINTS)]


def _name(index: int, value: object) -> str:
    """How a line names one of a list: by its own name where it has one."""
    if isinstance(value, dict):
        for key in ("key", "name", "id"):
            if key in value:
                return str(value[key])
    return str(index)


def _compact(value: Any) -> str:
    return json.dumps(_rounded(value), ensure_ascii=False).replace('"', "")


def _rounded(value: Any) -> Any:
    if isinstance(value, float) and math.isfinite(value):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if k not in LEFT_OUT and v is not None}
        return {k: _rounded(v) for k, v in kept.items()}
    return [_rounded(v) for v in value] if isinstance(value, list) else value


def _script(page: str, query: dict[str, list[str]]) -> None:
    """One page, as app/main.py draws it, without its sidebar."""
    from app.buy import page as risk_page
    from app.forecast import resolve
    from app.forecast.answer import answer
    from app.options import page as options_page
    from app.plan import page as plan_page
    from app.scenario.link import changed, parse
    from app.web import link

    scenario, _ = parse(query, resolve.resolve, resolve.current_prices())
    found = answer(scenario, top=8)
    if page == "compare":  # two plans side by side
        scenario = changed(scenario, pinned=tuple(p.id for p in found.plans[:2]))
    link.edit(scenario)
    if page == "compare":
        options_page.draw(scenario, found, {})
    elif page == "risk":
        risk_page.draw(scenario, found)
    else:
        plan_page.draw(scenario, found, {}, lambda: None, lambda: None)


def _pages(query: Mapping[str, str]) -> Iterator[str]:
    for page in PAGES:
        yield f"=== page {page}"
        asked = {name: [value] for name, value in query.items()}
        drawn = AppTest.from_function(_script, default_timeout=120, args=(page, asked)).run()
        yield from (f"exception: {e.message}" for e in drawn.exception)
        yield from _elements(drawn.main)


def _elements(block: Any) -> Iterator[str]:
    """The text of every element in the order of the page."""
    for element in block.children.values():
        kind = str(element.type)
        if hasattr(element, "children"):
            if label := getattr(element, "label", ""):
                yield f"[{kind}] {_plain(label)}"
            yield from _elements(element)
        elif kind == "metric":
            yield f"[metric] {_plain(element.label)}: {_plain(element.value)}"
            if element.help:
                yield f"  help: {_plain(element.help)}"
        elif isinstance(getattr(element, "value", None), pd.DataFrame):
            yield f"[{kind}]"
            table = element.value.head(MOST_ROWS).to_csv(index=False, float_format=f"%.{DIGITS}g")
            yield from (f"  {_plain(line)}" for line in table.splitlines())
        elif kind in ("markdown", "caption", "subheader", "header", "info", "warning", "error"):
            first, *others = _plain(element.value).splitlines() or [""]
            yield f"[{kind}] {first}".rstrip()
            yield from (f"  {line}".rstrip() for line in others)


def _plain(text: object) -> str:
    return str(text).replace("\\", "").replace(_JOINER, "")


def differences(kept: str, now: str) -> list[str]:
    """Lines that differ, but for the last digit of a number in JSON."""
    before, after = kept.splitlines(), now.splitlines()
    if len(before) == len(after):
        pairs = zip(before, after, strict=True)
        return [f"- {a}\n+ {b}" for a, b in pairs if a != b and not _same(a, b)]
    lines = difflib.unified_diff(before, after, lineterm="", n=0)
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


_NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]\d+)?")


def _same(before: str, after: str) -> bool:
    """Whether two lines are the same but for rounding."""
    if _NUMBER.sub("#", before) != _NUMBER.sub("#", after):
        return False
    pairs = zip(_NUMBER.findall(before), _NUMBER.findall(after), strict=True)
    return all(math.isclose(float(a), float(b), rel_tol=SAME) for a, b in pairs)


def main() -> None:
    """Write every file."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as data:
        os.environ |= {"RUNCAST_TODAY": TODAY, "RUNCAST_DATA_DIR": data, "COLUMNS": "100"}
        for name in SCENARIOS:
            for file, text in texts_of(name).items():
                (FOLDER / file).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
