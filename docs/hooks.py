"""MkDocs events: the pages of docs/site_pages.py, and links that lead out of this folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docs.site_pages import (
    FORMULAS,
    LINK,
    ROOT,
    formula_modules,
    formula_page,
    generated,
    module_name,
)

MORE = "More"  # what the navigation of mkdocs.yml does not name


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the formula pages where the navigation names them, and every other page into it."""
    modules: list[Any] = [{module_name(m): formula_page(m)} for m in formula_modules()]
    nav = _replaced(config.nav or [], modules)
    docs = Path(config.docs_dir)
    written_pages = {p.relative_to(docs).as_posix() for p in docs.rglob("*.md")}
    if others := sorted(written_pages - {*_targets(nav)}):
        nav.append({MORE: others})
    config.nav = nav
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made here."""
    for path, content in generated().items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """A link to a file of the repository beside this folder is its name: the site has no copy."""
    return re.sub(LINK, lambda m: _inside(m, page.file.src_uri, files), markdown)


def _replaced(nav: Iterable[Any], modules: list[Any]) -> list[Any]:
    """The navigation with the formula pages in place of their name."""
    found: list[Any] = []
    for item in nav:
        if isinstance(item, dict):
            found.append(
                {
                    title: modules
                    if inner == FORMULAS
                    else _replaced(inner, modules)
                    if isinstance(inner, list)
                    else inner
                    for title, inner in item.items()
                }
            )
        else:
            found.append(item)
    return found


def _targets(nav: Iterable[Any]) -> Iterator[str]:
    for item in nav:
        for inner in item.values() if isinstance(item, dict) else [item]:
            yield from [inner] if isinstance(inner, str) else _targets(inner)


def _inside(match: re.Match[str], page: str, files: Files) -> str:
    text, target = match[1], match[2]
    if not target or ":" in target:
        return match[0]
    path = normpath((PurePosixPath(page).parent / target).as_posix())
    if files.get_file_from_path(path) is not None:
        return match[0]
    beside = normpath((PurePosixPath("docs") / PurePosixPath(page).parent / target).as_posix())
    if not (ROOT / beside).exists():
        return match[0]  # a mistake, which the strict build names
    return text if text.strip("`") == beside else f"{text} (`{beside}`)"
