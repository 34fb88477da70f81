"""The documentation's pages that are made from code, and the site: strict, whole, of one host."""

import ast
import functools
import http.server
import os
import re
import subprocess
import sys
import threading
from html.parser import HTMLParser
from pathlib import Path

import pytest

from docs import docstring_markdown as written
from docs import site_pages
from hardware.claims import formulas

ROOT = Path(__file__).parents[2]
RESOURCES = {"script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data"}
LOADED = {
    "stylesheet",
    "icon",
    "preload",
    "modulepreload",
    "preconnect",
    "dns-prefetch",
    "manifest",
}


# --- docstrings ----------------------------------------------------------------------------------


# --- pages made from code ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pages():
    return site_pages.generated()


def test_every_formula_has_its_page(pages):
    for f in formulas():
        assert f"({site_pages.formula_page(f.module)})" in pages["method.md"]
        page = pages[site_pages.formula_page(f.module)]
        for node in written.public(ast.parse((ROOT / f.module).read_text())):
            assert f"## {node.name}\n" in page


# --- the site ------------------------------------------------------------------------------------


class Resources(HTMLParser):
    """Addresses from which a page loads something by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if address := given.get(RESOURCES.get(tag, "")):
            self.found.append(address)
        if tag == "link" and LOADED & set((given.get("rel") or "").split()):
            self.found.append(given["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as `make docs` does; whatever it says is a failure."""
    folder = tmp_path_factory.mktemp("site") / "site"
    build = [sys.executable, "-W", "error", "-m", "mkdocs", "build", "--strict", "-d", folder]
    environ = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # as the Makefile has it
    done = subprocess.run(build, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    said = (done.stdout + done.stderr).splitlines()
    assert done.returncode == 0, said
    assert [line for line in said if not line.startswith("INFO ")] == []
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("broken", ["[a](no.md)", "[a](#nowhere)", "[a](index.md#nowhere)"])
def test_a_broken_link_fails_the_build(tmp_path, broken):
    """The settings that the site is built with let none through."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text(f"# A page\n\n{broken}\n")
    (tmp_path / "mkdocs.yml").write_text(
        f"INHERIT: {ROOT / 'mkdocs.yml'}\nhooks: []\nnav: [index.md]\ndocs_dir: docs\n"
        "theme: {name: mkdocs}\nplugins: []\n"
    )
    build = [sys.executable, "-m", "mkdocs", "build", "-d", tmp_path / "site"]
    done = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "1 warning" in done.stdout + done.stderr


@pytest.mark.slow
def test_every_page_is_built_and_can_be_reached(site):
    sources = {p.relative_to(ROOT / "docs") for p in (ROOT / "docs").rglob("*.md")}
    sources |= {Path(p) for p in site_pages.generated()}
    menu = (site / "index.html").read_text()
    for page in sources:
        address = page.with_suffix(".html").as_posix()
        assert (site / address).is_file()
        assert f'href="{address}"' in menu, address
    assert not list(site.rglob("*.py"))


@pytest.mark.slow
def test_no_page_loads_anything_from_another_host(site):
    seen = 0
    for page in site.rglob("*.html"):
        parser = Resources()
        parser.feed(page.read_text())
        seen += len(parser.found)
        foreign = [a for a in parser.found if re.match(r"(?:[a-z]+:)?//", a)]
        assert not foreign, (page.name, foreign)
    assert seen > 100
    for sheet in site.rglob("*.css"):
        assert not re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", sheet.read_text())


@pytest.mark.slow
def test_in_a_browser_it_asks_nobody_else_and_can_be_searched(site, browser):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}/"
        page = browser.new_page(viewport={"width": 390, "height": 844})
        asked: list[str] = []
        said: list[str] = []
        page.on("request", lambda r: asked.append(r.url))
        page.on("console", lambda m: said.append(m.text) if m.type == "error" else None)
        for path in ("index.html", "method.html", "reference/python.html", "python.html"):
            page.goto(base + path)
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
        page.set_viewport_size({"width": 1440, "height": 900})
        box = page.get_by_role("textbox", name="Search")
        box.click()
        box.press_sequentially("in_switch_all_reduce_s")
        page.get_by_text("1 matching document").wait_for()
        page.close()
        server.shutdown()
    assert said == []
    assert [a for a in asked if not a.startswith((base, "data:", "blob:"))] == []
    assert any("search" in a for a in asked)
