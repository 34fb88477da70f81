"""Foreign names on the real page: whatever a link, a saved name, a price book, a calibration, an
upload or a typed field says is shown as text. A script that ran would set `window.__xss`, a
picture would ask another host, a dialog would open: each fails the test
(tests/support/browsing.py)."""

from __future__ import annotations

import datetime as dt
from urllib.parse import urlencode

import orjson
import pytest

from app.calibration import added
from app.prices.book_file import read_book
from core.scenario import Scenario
from pricing.book.files import save_book
from pricing.store.opening import open_store
from pricing.store.saved import save_scenario
from runners.calibration.result import parse_result
from tests.made_up.results import H100, document, machine
from tests.pricing.book.test_price_book import OWNED, RATE, csv_of
from tests.support.browsing import served

pytestmark = pytest.mark.browser

PAYLOADS = (
    "<img src=x onerror=window.__xss=1>",
    "<script>window.__xss=2</script>",
    '"><svg onload=window.__xss=3>',
    "<details open ontoggle=window.__xss=4>",
    "<iframe srcdoc='<script>parent.__xss=5</script>'></iframe>",
    "[click](javascript:window.__xss=6)",
    "![x](http://evil.example/x.png)",
    "<http://evil.example>",
    "[x]: javascript:window.__xss=7",
    r"$\href{javascript:window.__xss=8}{x}$",
    ":red[x] :material/home: :cat: `code`",
    "</style></script><script>window.__xss=9</script>",
    "{{constructor.constructor('window.__xss=10')()}}",
    "javascript:window.__xss=11//",
    "| a | b |",
)
ALL = " ".join(PAYLOADS)
QUICK = {"v": "1", "model": "llama3.1-8b", "num_tokens": "1e11", "gpu": H100, "num_gpus": "16"}
BY_ADDRESS = ("/", "/calibration", "/audit", "/prices")  # those that read more than the scenario
# What a payload would leave behind if it were markup.
MARKUP = """() => {
  const found = [];
  if (window.__xss !== undefined) found.push(`script ${window.__xss} ran`);
  for (let i = 0; i < window.length; i++)
    if (window[i].__xss !== undefined) found.push('a script ran in a frame');
  for (const e of document.querySelectorAll('*')) {
    for (const a of e.attributes)
      if (a.name.startsWith('on') || (/^(href|src|action|xlink:href)$/.test(a.name)
          && /^\\s*(javascript|data:text|http:..evil)/i.test(a.value)))
        found.push(`${e.tagName} ${a.name}=${a.value}`);
    if (e.tagName === 'IFRAME' && e.srcdoc) found.push('an iframe with a document of its own');
    if (e.tagName === 'SCRIPT' && e.textContent.includes('__xss')) found.push('a script') }
  return found }"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("markup")


@pytest.fixture(scope="module")
def kept(folder):
    """A data folder in which every name that somebody else may give is hostile; ids of what is
    in it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RUNCAST_DATA_DIR", str(folder / "data"))
        store = open_store()
        batched = (PAYLOADS[n : n + 2] for n in range(0, len(PAYLOADS), 2))  # the list shows ten
        for name in map(" ".join, batched):
            save_scenario(store, owner="local", name=name, query=urlencode(QUICK))
        store.close()
        rows = [{**RATE, "note": PAYLOADS[1]}, {**OWNED, "note": PAYLOADS[5]}]
        content = csv_of(*rows)
        save_book(
            read_book(content, file_name="b.csv", name="acme", today=dt.datetime.now(dt.UTC).date())
        )
        found = document(machine())
        found["provenance"].update(host=ALL[:255], os=ALL[:200])
        for node in found["nodes"]:
            node["host"] = ALL[:255]
        result = parse_result(orjson.dumps(found))
        calibration = added.keep(result, note=ALL[:200]).calibration.id
    return {"price_book": "acme", "calibration": calibration}


@pytest.fixture(scope="module")
def base_url(folder, kept):
    with served(folder / "log", RUNCAST_DATA_DIR=str(folder / "data")) as server:
        yield server.url


def said(user) -> str:
    return user.page.inner_text("body").replace("\N{WORD JOINER}", "")


def unharmed(user) -> None:
    """No payload became more than text, on the page that is open."""
    assert user.page.get_by_test_id("stException").count() == 0
    assert user.page.evaluate(MARKUP) == []
    assert user.wrong == []


def opened(user, path: str, **query: str):
    user.open(f"{path}?{urlencode({**QUICK, **query})}")
    unharmed(user)
    return user


def test_the_sentinel_sees_each_kind_of_markup(browser):
    """The page that shows foreign text as markup is one of our own making here."""
    page = browser.new_page()
    page.on("dialog", lambda d: d.dismiss())
    for payload in (PAYLOADS[0], PAYLOADS[2], PAYLOADS[4], "<a href='javascript:1'>x</a>"):
        page.set_content(f"<body>{payload}</body>")
        page.wait_for_timeout(100)
        assert page.evaluate(MARKUP), payload
    page.close()


def test_a_link_of_payloads_is_text(new_user, kept):
    """Each text field of a scenario, what a page adds to the address, and fields that are none."""
    texts = [n for n, f in Scenario.model_fields.items() if f.annotation is str and n != "prices"]
    hostile = dict(zip(texts, PAYLOADS * 9, strict=False))
    hostile |= {"pinned": PAYLOADS[5], PAYLOADS[0]: PAYLOADS[1], "s": PAYLOADS[3]}
    shows = {
        f"show_{n}": p for n, p in zip(("model", "gpu", "cloud", "days"), PAYLOADS, strict=False)
    }
    user = new_user()
    for path in BY_ADDRESS:
        opened(user, path, **{**kept, **hostile, **shows, f"show_{PAYLOADS[0]}": PAYLOADS[5]})
        assert "__xss" in " ".join(user.notes()), path


def test_names_that_are_kept_here_are_text_on_every_page(new_user, kept):
    user = opened(new_user(), "/", **kept)
    user.page.get_by_text("Saved scenarios", exact=True).click()
    user.settle()
    rows = user.page.get_by_role("radiogroup", name="Which").inner_text()
    rows = rows.replace("\N{WORD JOINER}", "")
    assert [p for p in PAYLOADS if p not in rows] == []
    unharmed(user)
    for name in user.walk():
        unharmed(user)
        if name == "calibration":
            assert PAYLOADS[0] in said(user)
            assert PAYLOADS[1] in said(user)


def test_uploads_and_their_file_names_are_text(new_user, kept, tmp_path):
    name = "".join(c for c in PAYLOADS[0] + PAYLOADS[5] if c not in "/\0")
    user = opened(new_user(), "/", **kept)

    def upload(where, content: bytes, suffix: str) -> str:
        path = tmp_path / f"{name}{suffix}"
        path.write_bytes(content)
        where.locator('input[type="file"]').first.set_input_files(path)
        user.settle()
        unharmed(user)
        return said(user)

    user.unfold("Model from config.json")
    sidebar = user.page.get_by_test_id("stSidebar")
    for key, value in (("model_type", PAYLOADS[0]), (PAYLOADS[1], PAYLOADS[2])):
        text = upload(sidebar, orjson.dumps({key: value}), ".json")
        assert "model_type" in text
    user.follow("Accuracy", "/accuracy")
    rows = [",".join(['"' + p.replace('"', '""') + '"'] * 4 + ["8", "1"]) for p in PAYLOADS]
    head = "run_id,model_key,accelerator,framework,num_gpus,tokens_per_s_per_gpu\n"
    text = upload(user.page.get_by_test_id("stMain"), (head + "\n".join(rows)).encode(), ".csv")
    assert PAYLOADS[0] in text
    user.follow("Risk & money", "/risk")
    upload(user.page.get_by_test_id("stMain"), f"start_hours,{ALL}\n1,2\n".encode(), ".csv")
    user.follow("Calibrate", "/calibration")
    upload(user.page.get_by_test_id("stMain"), orjson.dumps({"schema": PAYLOADS[0]}), ".json")


def test_what_is_typed_is_text(new_user, kept):
    user = opened(new_user(), "/launch", **kept)
    user.page.get_by_text("Name and options").click()
    user.settle()
    for payload in PAYLOADS[:6]:
        user.type("Name of the job", payload)
        unharmed(user)
    claim = {"tokens": "1T", "gpu": H100, "num_gpus": "64", "days": "3", "model": "llama3.1-8b"}
    user.open("/audit?" + urlencode({f"show_{n}": v for n, v in claim.items()}))
    for field, payload in (("Days", PAYLOADS[2]), ("Dollars", PAYLOADS[5])):
        user.page.get_by_test_id("stMain").get_by_label(field, exact=True).fill(payload)
        user.page.get_by_role("button", name="Audit", exact=True).click()
        user.settle()
        unharmed(user)
        assert "__xss" in " ".join(user.notes())
