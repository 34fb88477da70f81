"""What the documentation's pages show is run: Python, commands, rows of tables, a price source.

Figures move a little with every better fit: those with a decimal point, a k or M behind them, or
above a thousand may differ by a tenth from what a page shows, all else may not. `...` is anything.
"""

import ast
import csv
import doctest
import json
import re
import shlex
from pathlib import Path

import pytest
import typer.main

from app import cli
from docs import site_pages
from hardware.facts import ACCELERATORS_CSV, NUMBERS, accelerators, load_accelerators
from hardware.names import NAMES_CSV
from pricing.fetch.session import Session
from pricing.integrity import BANDS_CSV
from tests.feeds.server import Feed, as_json, serving

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?[kM]?")
PAGES = ("tutorial.md", "python.md")


def blocks(page, *languages):
    found = FENCE.findall((DOCS / page).read_text(encoding="utf-8"))
    return [(language, text) for language, text in found if language in languages]


def value(number):
    return float(number.rstrip("kM").replace(",", ""))


def near(wanted, got):
    if re.search(r"[.kM]", wanted) or value(wanted) > 1000:
        return abs(value(got) - value(wanted)) <= 0.1 * value(wanted)
    return wanted == got


def same(wanted, got):
    """Whether a page shows what was printed: line breaks aside, figures as near as said above."""
    wanted, got = " ".join(wanted.split()), " ".join(got.split())
    plain = [re.escape(t) for t in NUMBER.split(wanted)]
    pattern = rf"({NUMBER.pattern})".join(plain).replace(re.escape("..."), ".*")
    match = re.fullmatch(pattern, got, re.S)
    return match is not None and all(map(near, NUMBER.findall(wanted), match.groups()))


class Near(doctest.OutputChecker):
    def check_output(self, want, got, optionflags):
        return want == got or same(want, got)


def commands(block):
    """Each command of a block with the output that is shown below it."""
    for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
        lines = part.splitlines()
        last = next(n for n, line in enumerate(lines) if not line.endswith("\\"))
        typed = " ".join(line.rstrip("\\") for line in lines[: last + 1])
        yield shlex.split(typed), "\n".join(lines[last + 1 :])


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_shows_is_what_comes(page, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    runner = doctest.DocTestRunner(checker=Near(), verbose=False)
    parser = doctest.DocTestParser()
    shown = blocks(page, "console", "pycon")
    assert len(shown) > 5
    for language, text in shown:
        if language == "pycon":
            # The runner empties the names it is given when it is done.
            test = parser.get_doctest(text, names, page, str(DOCS / page), 0)
            assert runner.run(test, clear_globs=False).failed == 0
            names = test.globs
            continue
        for (program, *arguments), output in commands(text):
            assert program == "runcast"
            status, out, err = run(*arguments)
            assert status == (2 if output.startswith("runcast: ") else 0), err
            assert same(output, out + err), out + err


def executed(source, names):
    """The value of a cell's last line, if it is an expression, as a notebook shows it."""
    *body, last = ast.parse(source).body
    kind = "eval" if isinstance(last, ast.Expr) else "exec"
    tree = ast.Expression(last.value) if kind == "eval" else ast.Module([last], [])
    exec(compile(ast.Module(body, []), "cell", "exec"), names)  # noqa: S102 - of our own notebook
    return eval(compile(tree, "cell", kind), names)  # noqa: S307


def test_the_notebook_shows_what_comes(capsys):
    cells = json.loads((DOCS / "tutorial.ipynb").read_text(encoding="utf-8"))["cells"]
    names: dict[str, object] = {}
    shown = 0
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        value = executed("".join(cell["source"]), names)
        printed = capsys.readouterr().out
        for output in cell["outputs"]:
            shown += 1
            assert output["output_type"] in ("execute_result", "stream")  # and no error
            data = output.get("data", {})
            if "image/png" in data:
                assert set(names["answer"].chart().to_dict()) >= {"layer"}
            elif "text/html" in data:
                assert "<table" in value._repr_html_()
                assert "<table" in "".join(data["text/html"])
            else:
                wanted = "".join(data.get("text/plain", output.get("text", "")))
                assert same(wanted, printed or repr(value)), wanted
    assert shown >= 7


# --- commands ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def options():
    """Whole name of every command -> its options."""
    found = site_pages.commands("runcast", typer.main.get_command(cli.app))
    return {
        name: {"--help", *(o for p in command.params for o in (*p.opts, *p.secondary_opts))}
        for name, command in found
    }


@pytest.mark.parametrize(
    "page",
    sorted(p.relative_to(ROOT).as_posix() for p in (*DOCS.rglob("*.md"), ROOT / "README.md")),
)
def test_the_commands_of_a_page_exist_with_their_options(page, options):
    text = (ROOT / page).read_text(encoding="utf-8").replace("\\\n", " ")
    for line in re.findall(r"^(?:    |\$ )(runcast [a-z].*)$", text, re.M):
        words = line.partition(" # ")[0].split()
        names = [" ".join(words[:n]) for n in range(len(words), 1, -1)]
        name = next((n for n in names if n in options), None)
        assert name, line
        given = {w.partition("=")[0] for w in words if w.startswith("--")}
        assert given <= options[name], line


# --- how-tos -------------------------------------------------------------------------------------


def rows_of(page):
    return [text for _, text in blocks(page, "csv")]


def test_the_gpu_of_the_how_to_loads_and_is_the_shipped_one(tmp_path):
    figures, spellings, prices = rows_of("how-to/add-a-gpu.md")
    table = tmp_path / "accelerators.csv"
    table.write_text(ACCELERATORS_CSV.read_text().splitlines(keepends=True)[0] + figures)
    ((name, told),) = load_accelerators(table).items()
    for number in NUMBERS:
        assert getattr(told, number) in (None, getattr(accelerators()[name], number)), number
    assert set(spellings.splitlines()) <= set(NAMES_CSV.read_text().splitlines())
    shipped = csv.DictReader(BANDS_CSV.read_text().splitlines())
    of_gpu = [list(row.values())[:5] for row in shipped if row["accelerator"] == name]
    assert [row[:5] for row in csv.reader(prices.splitlines())] == of_gpu


def test_the_price_source_of_the_how_to_yields_offers():
    ((_, code),) = blocks("how-to/add-a-price-source.md", "python")
    module: dict[str, object] = {"__name__": "example_cloud"}
    exec(compile(code, "example_cloud.py", "exec"), module)  # noqa: S102 - the page's own code
    row = {"name": "x8", "gpu": "H100 SXM5 80GB", "gpus": 8, "region": "eu-1", "usd_per_hour": 20.5}
    broken = {**row, "gpus": "many"}
    feed = Feed({"/v1/machines": as_json({"machines": [row, {**row, "region": "eu-2"}, broken]})})
    with serving(feed) as base:
        environ = {"RUNCAST_PRICE_URL_EXAMPLE": base}
        with Session(source="example", environ=environ, deadline_s=30.0) as session:
            offers = list(module["fetch"](session))
    assert [(o.accelerator, o.gpu_count, o.usd_per_hour, o.region) for o in offers] == [
        ("H100-80GB-SXM", 8, 20.5, "eu-1"),
        ("H100-80GB-SXM", 8, 20.5, "eu-2"),
    ]
