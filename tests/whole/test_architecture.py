"""The rules of the house that no linter checks: see CONTRIBUTING.md."""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("app", "core", "hardware", "pricing", "runners", "runcast")
TEXT = {".py", ".md", ".toml", ".txt", ".csv", ".json", ".yml", ".yaml", ".cfg", ".sh", ""}
README = ROOT / "README.md"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PINS = (ROOT / "requirements.txt").read_text().splitlines()

# Written in two halves, so that this file does not hold what it forbids.
FORBIDDEN_IN_CODE = {
    "unsafe_allow" + "_html": "foreign text would reach the page as markup",
    "except " + "Exception": "a bug would be taken for a user's mistake",
    "except" + ":": "a bug would be taken for a user's mistake",
    "shell" + "=True": "foreign text would reach a shell",
    "pic" + "kle": "a foreign file would run code",
    "yaml" + ".load(": "a foreign file would run code",
    "use_container" + "_width": "Streamlit has retired it: width='stretch'",
}
# The outermost edge of a command and of a rerun, where a bug is logged and shown by its id.
EDGES = {"except " + "Exception": {"app/command/command_log.py", "app/web/rerun_log.py"}}
CHECK = r"raises$|warns$|fail$|expect$|assert_"  # attributes that check, as in pytest.raises
MACHINE_PATH = re.compile(r"(?<![\w./:-])/(?:wo" + r"rk|root|home|Users)/[\w.]|\.\./sha" + "red")
REGISTRY = re.compile(
    r"py" + r"pi\.org|pythonho" + r"sted\.org|deb\.deb" + r"ian\.org|npm" + r"js\.(?:org|com)"
)


@pytest.fixture(scope="module")
def texts(project_files) -> dict[str, str]:
    """Path inside the project -> text, of every text file."""
    return {
        p.relative_to(ROOT).as_posix(): p.read_text()
        for p in project_files
        if p.suffix in TEXT and p.name != "LICENSE"
    }


@pytest.fixture(scope="module")
def modules(texts) -> dict[str, str]:
    """Path -> source, of every module that is shipped."""
    return {n: t for n, t in texts.items() if n.endswith(".py") and n.split("/")[0] in PACKAGES}


@cache
def imported(source: str) -> set[str]:
    """Top-level packages that a source imports, wherever it does so."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"a relative import of {node.module} hides its layer"
            names.add(str(node.module).split(".")[0])
    return names


def normal(distribution: str) -> str:
    """The name of a distribution as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


EXTRAS = ("ui", "report", "postgres", "auth", "mcp", "metrics")  # of the app
IMPORTED_AS = {
    "arro3-core": "arro3",
    "prometheus-client": "prometheus_client",
    "mcp": "mcp_types",  # its own distribution, of one version with it
    "pyyaml": "yaml",
    "vl-convert-python": "vl_convert",
}  # distributions whose package has another name


def declared(*extras: str) -> dict[str, str]:
    """Distributions that pyproject.toml asks for -> what it says of their version."""
    project = PYPROJECT["project"]
    lists = [project["dependencies"], *(project["optional-dependencies"][e] for e in extras)]
    wanted = (line.partition(";")[0] for lines in lists for line in lines)
    found = (re.fullmatch(r"([\w.-]+)(\W.+)", line) for line in wanted)
    return {normal(match[1]): match[2] for match in found}


def pins() -> dict[str, str]:
    return {normal(line.partition("==")[0]): line.partition("==")[2] for line in PINS}


# --- names and sizes -----------------------------------------------------------------------------


def test_no_app_module_shadows_a_package(modules):
    """`streamlit run app/main.py` puts app/ first on sys.path."""
    stems = {Path(name).parts[1].removesuffix(".py") for name in modules if name.startswith("app/")}
    used = set().union(*map(imported, modules.values()))
    assert not stems & {*used, *PACKAGES, "tests", *sys.stdlib_module_names}


def test_there_is_no_utils(project_files):
    vague = {"util", "utils", "helpers", "helper", "common", "misc", "manager", "factory"}
    paths = [p.relative_to(ROOT) for p in project_files]
    assert not [p for p in paths if vague & {p.stem, *p.parts}]


def test_no_module_outgrows_a_sitting(modules):
    lines = {name: len(source.splitlines()) for name, source in modules.items()}
    assert not {name: n for name, n in lines.items() if n > 600}


# --- imports -------------------------------------------------------------------------------------


def test_nothing_outside_runners_imports_torch(modules):
    users = [name for name, source in modules.items() if "torch" in imported(source)]
    assert not [name for name in users if not name.startswith("runners/")]


def test_a_probe_needs_only_torch_and_its_siblings(modules):
    """It is copied to a node, as one file, on which nothing of ours is installed."""
    probes = {n: source for n, source in modules.items() if n.startswith("runners/probes/")}
    foreign = {n: imported(source) - sys.stdlib_module_names for n, source in probes.items()}
    assert set().union(*foreign.values()) == {"torch", "runners"}, foreign
    ours = re.compile(r"^\s*(?:from|import) (runners\b[\w.]*)", re.M)
    assert {m for source in probes.values() for m in ours.findall(source)} <= {
        n.removesuffix(".py").replace("/", ".") for n in probes
    }


def test_what_is_imported_is_declared(modules):
    """A package that only happens to be installed is missing on the next machine."""
    asked = declared(*EXTRAS)
    known = {*asked, *PACKAGES, *sys.stdlib_module_names}
    known |= {IMPORTED_AS[name] for name in asked if name in IMPORTED_AS}
    users = {n: imported(source) for n, source in modules.items() if not n.startswith("runners/")}
    assert not {n: extra for n, names in users.items() if (extra := names - known)}


@pytest.mark.parametrize(
    ("package", "never"),
    [
        ("core", {"pandas", "pyarrow", "streamlit", "altair", "httpx", "torch", "sqlite3"}),
        ("hardware", {"streamlit", "altair", "torch"}),
        ("pricing", {"streamlit", "altair", "torch"}),
        ("app", {"torch"}),
    ],
)
def test_importing_a_package_loads_nothing_heavy(modules, package, never):
    """What a fresh interpreter really loads, of every module but the page itself."""
    names = sorted(
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name in modules
        if name.startswith(package + "/") and name != "app/main.py"
    )
    program = f"import importlib, sys\nfor n in {names}: importlib.import_module(n)\n"
    program += "print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert package in done.stdout.split()
    assert not never & set(done.stdout.split())


# Floors of the app that draw or take commands: whatever else loads Streamlit or Typer makes every
# import of the library, and every command, wait for them.
DRAWN = re.compile(
    r"app/(main|cli|server|api/door|(web|command)/\w+|\w+/(page|figures|sidebar|form|filters|command|"
    r"\w+_section|\w+_command))\.py"
)


def test_what_draws_nothing_loads_neither_typer_nor_streamlit(modules):
    names = sorted(
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name in modules
        if name.startswith("app/") and not DRAWN.fullmatch(name)
    )
    program = (
        "import importlib, sys\n"
        f"for n in {names}:\n"
        "    importlib.import_module(n)\n"
        "    if found := {'streamlit', 'typer'} & {*sys.modules}:\n"
        "        sys.exit(f'{n} loads {found}')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


# --- what no file says ---------------------------------------------------------------------------


@pytest.mark.parametrize("text", FORBIDDEN_IN_CODE)
def test_no_code_contains(modules, text):
    guilty = {name for name, source in modules.items() if text in source}
    assert guilty == EDGES.get(text, set()), FORBIDDEN_IN_CODE[text]


def test_no_file_names_a_path_of_one_machine(texts):
    assert not {n: found[0] for n, t in texts.items() if (found := MACHINE_PATH.search(t))}


def test_no_file_names_a_package_registry(texts):
    """Which registry a machine uses is that machine's setting."""
    assert not {n: found[0] for n, t in texts.items() if (found := REGISTRY.search(t))}


def checks(function: ast.FunctionDef, names: set[str]) -> bool:
    """Whether a function asserts, or uses one of the names that do."""
    return any(
        isinstance(node, ast.Assert)
        or (isinstance(node, ast.Name) and node.id in names)
        or (isinstance(node, ast.Attribute) and re.match(CHECK, node.attr) is not None)
        for node in ast.walk(function)
    )


def test_every_test_can_fail(texts):
    """A test without a check passes whatever the code does."""
    empty = []
    for name, source in texts.items():
        if not re.fullmatch(r"tests/(.+/)?test_\w+\.py", name):
            continue
        functions = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef)]
        checking = {"expect", *(f.name for f in functions if checks(f, set()))}
        empty += [
            f"{name}: {f.name}"
            for f in functions
            if f.name.startswith("test_") and not checks(f, checking - {f.name})
        ]
    assert not empty


# --- packaging -----------------------------------------------------------------------------------


def test_requirements_are_pins_and_nothing_else():
    """It is also a constraints file, in which pip refuses options, paths and extras."""
    assert not [line for line in PINS if not re.fullmatch(r"[A-Za-z][\w.-]*==\d[\w.]*", line)]
    assert len(pins()) == len(PINS)
    assert not [name for name in pins() if re.match(r"nvidia|triton|cuda", name)]


def test_every_declared_package_is_pinned_at_a_version_that_fits():
    for name, wanted in declared(*EXTRAS, "calibrate", "dev").items():
        least = [int(x) for x in re.findall(r"\d+", wanted)]
        pinned = [int(x) for x in re.findall(r"\d+", pins()[name])]
        assert pinned >= least, f"{name}{wanted}"


def test_only_the_runners_ask_for_torch():
    assert "torch" not in declared(*EXTRAS, "dev")
    assert declared("calibrate")["torch"] == "==" + pins()["torch"]


# --- documents -----------------------------------------------------------------------------------


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_every_local_link_of_a_document_leads_somewhere(document):
    targets = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", (ROOT / document).read_text())
    assert targets
    assert not [target for target in targets if not (ROOT / target).exists()]
