"""What no shipped module may call: a foreign file would run code, a foreign text reach a shell or
the page as markup, a foreign server pass for the right one. Read from the syntax tree, not from
the text, so that another spelling of an import does not get past."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.conftest import ROOT

PACKAGES = ("app", "core", "hardware", "pricing", "runners")

RUNS_A_FILE = "a foreign file would run code"
RUNS_A_TEXT = "a foreign text would run as code"
REACHES_A_SHELL = "a foreign text would reach a shell"
BECOMES_MARKUP = "a foreign text would reach the page as markup"
TRUSTS_ANYBODY = "a foreign server would pass for the right one"

MODULES = dict.fromkeys(
    ("pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"),
    RUNS_A_FILE,
)
CALLS = {
    **dict.fromkeys(("eval", "exec", "compile", "__import__", "runpy.run_path"), RUNS_A_TEXT),
    **dict.fromkeys(
        ("torch.load", "torch.jit.load", "torch.hub.load", "yaml.load", "yaml.load_all",
         "yaml.unsafe_load", "yaml.unsafe_load_all", "yaml.full_load", "yaml.full_load_all"),
        RUNS_A_FILE,
    ),
    **dict.fromkeys(
        ("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput",
         "asyncio.create_subprocess_shell", "pty.spawn"),
        REACHES_A_SHELL,
    ),
    **dict.fromkeys(
        ("streamlit.html", "streamlit.components.v1.html", "streamlit.components.v1.iframe"),
        BECOMES_MARKUP,
    ),
    "ssl._create_unverified_context": TRUSTS_ANYBODY,
    "tempfile.mktemp": "another process could make that file first",
}  # fmt: skip
METHODS = dict.fromkeys(("read_pickle", "to_pickle"), RUNS_A_FILE)
# A keyword and the value that makes it safe; None: no value does.
KEYWORDS = {
    "shell": (False, REACHES_A_SHELL),
    "unsafe_allow_html": (False, BECOMES_MARKUP),
    "unsafe_allow_javascript": (False, BECOMES_MARKUP),
    "allow_pickle": (False, RUNS_A_FILE),
    "weights_only": (True, RUNS_A_FILE),
    "trust_remote_code": (False, RUNS_A_FILE),
    "verify": (True, TRUSTS_ANYBODY),
    "check_hostname": (True, TRUSTS_ANYBODY),
    "trust_env": (False, "a proxy of the environment would see what is asked"),
    "persist": (None, "st.cache_data would keep pickles on the disk"),
}
# The page's own style sheet: a file of ours is no foreign text.
STYLE = 'st.html(Path(__file__).with_name("page.css"))'
# torch.distributed.checkpoint pickles the table of contents of a checkpoint.
CHECKPOINTS = "torch.distributed.checkpoint"
# The one module that reads checkpoints: the training script that is exported. It runs on nodes,
# never in the page, and reads the folder that it wrote itself.
READS_ITS_OWN_CHECKPOINTS = "runners/recipes/fsdp2_train.py"


def guilty(source: str) -> Iterator[str]:
    """What a source has that no module may have: line, name and what could happen."""
    tree = ast.parse(source)
    names = dict(_imported(tree))
    for name, full in names.items():
        if why := MODULES.get(full.split(".")[0]):
            yield f"import {name}: {why}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = _dotted(node.func, names)
            last = called.rpartition(".")[2]
            if why := CALLS.get(called) or METHODS.get(last):
                yield f"line {node.lineno}, {called}(): {why}"
            for given in node.keywords:
                yield from _of_keyword(given, called)
        elif isinstance(node, ast.Attribute | ast.Name):
            # Handed on to be called elsewhere.
            named = _dotted(node, names)
            if "." in named and (why := CALLS.get(named)):
                yield f"line {node.lineno}, {named}: {why}"


def _of_keyword(given: ast.keyword, called: str) -> Iterator[str]:
    if given.arg not in KEYWORDS:
        return
    safe, why = KEYWORDS[given.arg]
    value = given.value.value if isinstance(given.value, ast.Constant) else given.value
    if safe is None or value is not safe:
        yield f"line {given.value.lineno}, {called}({given.arg}=..): {why}"


def _imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Name in the module -> what it stands for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (
                    (alias.asname, alias.name)
                    if alias.asname
                    else (alias.name.split(".")[0], alias.name.split(".")[0])
                )
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _dotted(node: ast.expr, names: dict[str, str]) -> str:
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value, names)}.{node.attr}"
    return ""


@pytest.fixture(scope="module")
def modules(project_files) -> dict[str, str]:
    shipped = {p.relative_to(ROOT).as_posix(): p for p in project_files if p.suffix == ".py"}
    return {
        n: p.read_text().replace(STYLE, "")
        for n, p in shipped.items()
        if n.split("/")[0] in PACKAGES
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_calls_what_would_run_or_show_foreign_text(modules, package):
    mine = {n: source for n, source in modules.items() if n.startswith(package + "/")}
    assert mine
    assert {n: found for n, source in mine.items() if (found := list(guilty(source)))} == {}


def test_only_the_training_script_reads_checkpoints_and_they_are_its_own(modules):
    readers = [
        n
        for n, source in modules.items()
        if CHECKPOINTS in source
        for full in dict(_imported(ast.parse(source))).values()
        if full.startswith(CHECKPOINTS) and full.rpartition(".")[2].startswith("load")
    ]
    assert readers == [READS_ITS_OWN_CHECKPOINTS]
    used = [n for n, source in modules.items() if "fsdp2_train import" in source]
    assert [n for n in used if not n.startswith("runners/")] == []


# Each is what a rule is for, spelt as somebody might.
PLANTED = [
    "import pickle",
    "from pickle import loads as read",
    "import cloudpickle as cp",
    "import torch\ntorch.load('x')",
    "from torch import load\nload('x')",
    "import torch as t\nt.load('x', weights_only=False)",
    "import pandas as pd\npd.read_pickle('x')",
    "frame.to_pickle('x')",
    "import numpy as np\nnp.load('x', allow_pickle=True)",
    "import yaml\nyaml.load(text, Loader=yaml.SafeLoader)",
    "from yaml import full_load\nfull_load(text)",
    "eval(text)",
    "exec(text)",
    "run = [1]\n__import__(text)",
    "import os\nos.system(text)",
    "from os import popen as p\np(text)",
    "import subprocess\nsubprocess.run(text, shell=True)",
    "import subprocess as s\ns.Popen(text, shell=how)",
    "import subprocess\nmap(subprocess.getoutput, texts)",
    "import streamlit as st\nst.markdown(text, unsafe_allow_html=True)",
    "import streamlit as st\nst.html(text)",
    "import streamlit.components.v1 as c\nc.html(text)",
    "import streamlit as st\n@st.cache_data(persist='disk')\ndef f(): ...",
    "model.from_pretrained(name, trust_remote_code=True)",
    "import httpx\nhttpx.get(url, verify=False)",
    "import httpx\nhttpx.Client(trust_env=True)",
    "import ssl\nssl._create_unverified_context()",
    "import tempfile\ntempfile.mktemp()",
]
INNOCENT = [
    "import re\nre.compile(text)",
    "import yaml\nyaml.safe_load(text)",
    "import json\njson.load(file)",
    "import subprocess\nsubprocess.run([text], shell=False)",
    "import httpx\nhttpx.Client(trust_env=False)",
    "step = resumed(model)\nmodel.eval()",
]


@pytest.mark.parametrize("source", PLANTED)
def test_each_rule_finds_what_it_is_for(source):
    assert list(guilty(source))


@pytest.mark.parametrize("source", INNOCENT)
def test_no_rule_finds_what_is_harmless(source):
    assert list(guilty(source)) == []


# Where lines are written without `app.document.echo`: the writers themselves, what runs on nodes,
# a program of ours whose input is ours, and a process of ours whose pipe another one reads.
WRITERS = ("app/document/", "app/log/log.py", "runners/probes/", "runners/launchers/on_",
           "runners/recipes/fsdp2_train.py", "pricing/bundle.py",
           "pricing/backup/checking.py")  # fmt: skip
WRITES = {"print", "typer.echo", "typer.secho", "sys.stdout.write", "sys.stderr.write"}


def written(source: str) -> list[str]:
    """The calls of a module that write on a terminal."""
    tree = ast.parse(source)
    names = dict(_imported(tree))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [f"line {c.lineno}: {n}" for c in calls if (n := _dotted(c.func, names)) in WRITES]


def test_only_the_writers_write_on_a_terminal(modules):
    others = {n: s for n, s in modules.items() if not n.startswith(WRITERS)}
    assert {n: found for n, s in others.items() if (found := written(s))} == {}
    assert written("import sys\nprint(1, file=sys.stderr)") == ["line 2: print"]
    assert written("from typer import echo as e\ne(1)") == ["line 2: typer.echo"]


# Calls that turn bytes into values. What comes from outside goes through hardware/outside, which
# counts before it parses.
PARSES = {
    "json.load", "json.loads", "json.JSONDecoder", "orjson.loads", "pydantic_core.from_json",
    "csv.reader", "csv.DictReader", "yaml.parse", "yaml.scan", "yaml.compose", "yaml.safe_load",
    "yaml.safe_load_all", "yaml.SafeLoader", "yaml.CSafeLoader", "zipfile.ZipFile", "tarfile.open",
    "zlib.decompress", "zlib.decompressobj", "gzip.open", "gzip.decompress", "bz2.open",
    "lzma.open", "tomllib.load", "tomllib.loads", "xml.etree.ElementTree.parse",
    "xml.etree.ElementTree.fromstring", "pandas.read_csv", "pandas.read_json",
}  # fmt: skip
PARSING_METHODS = {"model_validate_json", "get_single_data"}
OUTSIDE = "hardware/outside/"
OTHERS = {
    "users' YAML, read as events: no object is built of it": """
        app/scenario/yaml.py app/prices/book_file.py""",
    "YAML of a feed, whose nodes are counted first": "pricing/providers/gcp_yaml.py",
    "rates of the ECB, in which no entity is read": "pricing/providers/exchange_rates.py",
    "members of a backup, each read to its listed size": "pricing/backup/archive.py",
    "tables that are shipped": """
        app/scenario/age.py app/operate/installed.py app/operate/settings.py hardware/efficiency.py
        hardware/measured.py
        hardware/measured_kernels.py hardware/tables.py pricing/price_life.py pricing/integrity.py
        pricing/bundle.py""",
    "text that the module, or another one of this program, has just written": """
        app/options/charts.py app/document/pictures.py app/calibration/calibrate_command.py
        app/sweep/folder.py app/watch/diagnosis.py runners/recipes/deepspeed.py
        runners/recipes/stack_rules.py
        runners/recipes/kubernetes.py runners/recipes/skypilot.py""",
    "archives that are written": "app/launch/files.py runners/launchers/ray_jobs.py",
    "what runs on a node, where nothing of ours is installed": """
        runners/launchers/on_node.py runners/probes/state.py runners/probes/plan.py
        runners/probes/result_file.py""",
}


def parsing(source: str) -> list[str]:
    """The calls of a module that parse bytes, or pass a parser on."""
    tree = ast.parse(source)
    names = dict(_imported(tree))
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            is_method = isinstance(node, ast.Attribute) and node.attr in PARSING_METHODS
            if (name := _dotted(node, names)) in PARSES or is_method:
                found.append(f"line {node.lineno}: {name}")
    return found


def test_only_one_reader_parses_what_comes_from_outside(modules):
    known = {name for names in OTHERS.values() for name in names.split()}
    guilty = {n: found for n, s in modules.items() if (found := parsing(s))}
    assert {n: g for n, g in guilty.items() if not n.startswith(OUTSIDE) and n not in known} == {}
    assert known - guilty.keys() == set(), "exceptions that are none any more"


@pytest.mark.parametrize(
    "source",
    [
        "import json as j\nj.loads(x)", "from json import load\nload(x)",
        "import orjson\norjson.loads(x)", "M.model_validate_json(x)",
        "import csv\nmap(csv.reader, x)", "import yaml\nyaml.safe_load(x)",
        "import zipfile\nzipfile.ZipFile(x)", "from pydantic_core import from_json\nfrom_json(x)",
        "import pandas as pd\npd.read_csv(x)",
    ],
)  # fmt: skip
def test_a_parser_of_ones_own_is_found(source):
    assert parsing(source)
