"""The report in a real Chromium: each file is downloaded from the page, opened and read."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pypdf
import pypdfium2
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from app.document.markdown import escaped
from app.scenario.file import read_scenario

pytestmark = pytest.mark.browser

FEW = "/?model=llama3.1-70b&gpu=H100-80GB-SXM&cloud=aws&num_gpus=256"


def download(user, label: str) -> tuple[str, bytes]:
    button = user.page.get_by_role("button", name=label, exact=True)
    with user.page.expect_download(timeout=60_000) as asked:
        button.click()
    return asked.value.suggested_filename, Path(asked.value.path()).read_bytes()


@pytest.fixture
def opened(new_user):
    user = new_user()
    user.open(FEW)
    return user


def test_the_markdown_and_the_pdf_say_what_the_page_says(opened):
    # A report gives the day of the price where the page gives its age.
    sentence, link = opened.sentence().partition("; price ")[0], opened.link()
    name, content = download(opened, "Report as Markdown")
    assert name == "runcast_report.md"
    text = content.decode()
    assert f"**{escaped(sentence)}" in text
    assert f"```text\n{link}\n```" in text
    name, content = download(opened, "Report as PDF")
    assert name == "runcast_report.pdf"
    said = "".join(p.extract_text() for p in pypdf.PdfReader(io.BytesIO(content)).pages)
    squeezed = "".join(said.split())
    assert "".join(sentence.split()) in squeezed
    assert link in squeezed
    pages = list(pypdfium2.PdfDocument(content))
    shades = [p.render(scale=0.3, grayscale=True).to_pil().histogram() for p in pages]
    assert all(sum(n > 0 for n in found) > 5 for found in shades)
    assert opened.notes() == []


def test_the_html_is_accessible_and_asks_nobody(opened, browser, tmp_path):
    name, content = download(opened, "Report as HTML")
    assert name == "runcast_report.html"
    path = tmp_path / name
    path.write_bytes(content)
    for scheme in ("light", "dark"):
        for width, height in ((1440, 900), (390, 844)):
            context = browser.new_context(
                viewport={"width": width, "height": height}, color_scheme=scheme
            )
            check_file(context.new_page(), path, opened.link())
            context.close()


def check_file(page, path: Path, link: str) -> None:
    """Opened from the disk: it shows its charts, asks nobody, has nothing that axe objects to."""
    asked, said = [], []
    page.on("request", lambda r: asked.append(r.url))
    page.on("console", lambda m: said.append(m.text))
    page.goto(path.as_uri())
    assert page.get_by_role("heading", level=1).inner_text().startswith("Training plan: ")
    loaded = "i => i.complete && i.naturalWidth > 100"
    assert all(i.evaluate(loaded) for i in page.get_by_role("img").all())
    assert page.get_by_role("link").get_attribute("href") == link
    violations = Axe().run(page).response["violations"]
    assert [(v["id"], v["nodes"][0]["html"]) for v in violations] == []
    assert said == []
    assert {u.partition(":")[0] for u in asked} <= {"file", "data"}
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_plans_and_scenario_are_downloaded_as_the_command_line_has_them(opened):
    name, content = download(opened, "All plans as JSON")
    assert name == "runcast_plan.json"
    found = json.loads(content)
    assert found["schema_version"] == 1
    assert found["link"] == opened.link().partition("?")[2]
    name, content = download(opened, "Scenario as YAML")
    assert name == "runcast_scenario.yaml"
    assert read_scenario(content).num_gpus == (256,)


def test_the_link_is_copied_by_the_keyboard(new_user):
    user = new_user(permissions=["clipboard-read", "clipboard-write"])
    user.open(FEW)
    button = user.page.get_by_role("button", name="Copy link")
    button.focus()
    user.page.keyboard.press("Enter")
    expect(user.page.get_by_text("Copied", exact=True)).to_be_visible()
    assert user.page.evaluate("navigator.clipboard.readText()") == user.link()


def test_the_link_is_copied_where_a_page_has_no_clipboard(new_user):
    """As over plain HTTP from another machine."""
    user = new_user(permissions=["clipboard-read", "clipboard-write"])
    user.page.add_init_script("delete Navigator.prototype.clipboard")
    user.open(FEW)
    user.page.get_by_role("button", name="Copy link").click()
    expect(user.page.get_by_text("Copied", exact=True)).to_be_visible()
