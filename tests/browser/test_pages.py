"""The rest of the browser suite: bad links, choices, themes, the keyboard, small screens."""

import csv
import json
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

FEW = "/?gpu=H100-80GB-SXM,A100-80GB-SXM&cloud=aws&num_gpus=64,512"
CONFIGS = Path(__file__).parent.parent / "golden/configs"


def test_a_wrong_value_is_a_sentence_under_its_field(new_user):
    user = new_user()
    user.open(FEW)
    before, query = user.headlines(), user.query()
    user.type("Training tokens", "lots")
    assert "'lots' is not a number" in " ".join(user.notes())
    assert (user.headlines(), user.query()) == (before, query)
    user.type("Training tokens", "15T")
    assert user.notes() == []
    assert user.value("Training tokens") == "15T"


def selected(user):
    """The rank of the selected plan, as the page says it; it is silent about the first."""
    found = re.findall(r"selected plan: #(\d+)", user.page.inner_text("body"))
    return int(found[0]) if found else 1


def test_a_row_of_the_table_selects_its_plan(new_user):
    user = new_user()
    user.open(FEW)
    assert user.table()
    grid = user.page.get_by_test_id("stDataFrame").first
    grid.scroll_into_view_if_needed()
    box = grid.bounding_box()
    user.page.mouse.click(box["x"] + 18, box["y"] + 35 * 2.5)  # the marker of the second row
    user.settle()
    assert "plan=" in user.query()
    rank = selected(user)
    assert rank > 1  # a product is listed once: the second row need not be the second plan
    chosen = user.headlines()
    other = new_user()
    other.page.goto(user.link())
    other.settle()
    assert other.headlines() == chosen
    assert selected(other) == rank
    user.back()
    assert "plan=" not in user.query()
    assert selected(user) == 1


def plan_of(user):
    """What the list of plans shows, without the rank."""
    chosen = user.page.get_by_test_id("stMain").get_by_test_id("stSelectbox").locator("input")
    return chosen.input_value().partition(": ")[2]


def test_another_order_draws_what_depends_on_it_and_nothing_else(new_user):
    user = new_user()
    user.open(FEW)
    address, answer, cells = user.page.url, user.headlines(), user.table()
    chart = user.page.get_by_test_id("stVegaLiteChart").first
    chart.evaluate("e => { e.dataset.mine = 'yes'; }")
    sorts = user.page.get_by_test_id("stMain").get_by_test_id("stRadio").locator("label")
    plan = plan_of(user)
    assert plan

    sorts.filter(has_text="Time").click()
    user.settle()
    assert user.headlines() != answer
    assert user.table() != cells
    assert plan_of(user) == plan
    for part in ("Runner-up", "On the command line", "Rank by", "Pinned"):
        assert user.page.get_by_test_id("stMain").get_by_text(part).count() == 1
    assert chart.evaluate("e => e.dataset.mine") == "yes"
    asked = parse_qs(user.query())
    assert asked["rank_by"] == ["time"]
    assert parse_qs(urlsplit(user.link()).query) == asked
    for name in ("Compare", "Launch", "Where its bytes and seconds go"):
        led = user.page.get_by_role("link", name=name, exact=True).get_attribute("href")
        assert parse_qs(urlsplit(led).query) == asked

    other = new_user()
    other.open(f"/?{user.query()}")
    assert (other.headlines(), other.table()) == (user.headlines(), user.table())
    assert plan_of(other) == plan

    part = user.page.get_by_test_id("stMain").locator("summary").filter(has_text="Runner-up")
    part.click()
    expect(user.page.get_by_text("Against the other plan")).to_be_visible()
    sorts.filter(has_text="Cost").click()
    expect(user.page.get_by_text("Against the next plan")).to_be_visible()
    user.settle()
    assert (user.page.url, user.headlines(), user.table()) == (address, answer, cells)
    user.back()
    assert parse_qs(user.query()) == asked
    assert user.headlines() == other.headlines()
    user.follow("Launch", "/launch")
    assert parse_qs(user.query()) == asked


def test_a_pin_reaches_every_link_of_the_page(new_user):
    user = new_user()
    user.open(FEW)
    user.page.get_by_test_id("stMain").get_by_test_id("stCheckbox").locator("input").click(
        force=True
    )
    user.settle()
    pinned = parse_qs(user.query())["pinned"]
    led = user.page.get_by_role("link", name="Compare", exact=True).get_attribute("href")
    assert parse_qs(urlsplit(led).query)["pinned"] == pinned
    assert parse_qs(urlsplit(user.link()).query)["pinned"] == pinned


def test_a_point_of_the_frontier_selects_its_plan(new_user):
    user = new_user()
    user.open("/?gpu=H100-80GB-SXM&cloud=aws&purchase=on_demand,spot&num_gpus=8,64,512")
    chart = user.page.get_by_test_id("stVegaLiteChart").first
    frontier = chart.locator('path[aria-label*="gpu:"]')
    assert frontier.count() > 1
    frontier.first.click(force=True)  # the fastest
    user.settle()
    assert "plan=" in user.query()
    assert selected(user) > 1
    assert user.notes() == []


def test_the_csv_holds_the_table_and_the_link(new_user):
    user = new_user()
    user.open(FEW)
    with user.page.expect_download() as download:
        user.page.get_by_role("button", name="Download CSV").click()
    rows = list(csv.DictReader(Path(download.value.path()).read_text().splitlines()))
    assert float(rows[0]["Cost (USD)"]) > 0
    assert rows[0]["Link"] == user.link()


def test_an_uploaded_config_becomes_the_model(new_user, tmp_path):
    user = new_user()
    user.open(FEW)
    user.unfold("Model from config.json")
    config = next(p for p in sorted(CONFIGS.glob("*.json")) if "70b" in p.name.lower())
    user.page.locator('input[type="file"]').first.set_input_files(config)
    expect(user.page).to_have_url(re.compile("model=custom"))
    user.settle()
    wrong = tmp_path / "config.json"
    wrong.write_text(json.dumps({"hidden_size": 4096}))
    user.page.locator('input[type="file"]').first.set_input_files(wrong)
    expect(user.page.get_by_test_id("stAlert")).to_be_visible()
    user.settle()
    assert "model=custom" in user.query()


def test_a_scenario_goes_out_as_a_file_and_comes_back(new_user, tmp_path):
    ann = new_user()
    ann.open(FEW + "&compile=1&tp=4")
    ann.unfold("Scenario file")
    with ann.page.expect_download() as download:
        ann.page.get_by_role("button", name="Download as YAML").click()
    path = tmp_path / "scenario.yaml"
    path.write_bytes(Path(download.value.path()).read_bytes())
    bob = new_user()
    bob.open()
    bob.unfold("Scenario file")
    bob.page.locator('input[type="file"]').last.set_input_files(path)
    expect(bob.page).to_have_url(re.compile("tp=4"))
    bob.settle()
    assert bob.notes() == []
    assert bob.query() == ann.query()
    assert bob.headlines() == ann.headlines()
    path.write_text("tp: many\n")
    bob.page.locator('input[type="file"]').last.set_input_files(path)
    bob.settle()
    expect(bob.page.get_by_test_id("stAlert")).to_contain_text("'many'")
    assert bob.query() == ann.query()


def test_the_method_page_keeps_the_scenario_and_back_works(new_user):
    user = new_user()
    user.open(FEW + "&tp=8")
    user.type("Training tokens", "2T")
    query, before = user.query(), user.headlines()
    user.follow("Method", "/method")
    assert user.query() == query
    assert user.page.title() == "Runcast: Method"
    user.back()
    assert (user.query(), user.headlines()) == (query, before)
    assert user.value("Training tokens") == "2T"
    user.back()
    assert user.value("Training tokens") == "100B"
    user.forward()
    user.forward()
    user.follow("Plan", "/")
    assert (user.query(), user.headlines()) == (query, before)
    user.unfold("Parallelism")
    assert user.value("Tensor parallel") == "8"
    assert user.notes() == []


def test_a_link_to_the_method_page_keeps_what_was_wrong_with_it(new_user):
    user = new_user()
    user.open("/method" + FEW[1:] + "&seq_len=-1")
    user.follow("Plan", "/")
    assert "seq_len" in " ".join(user.notes())
    assert len(user.headlines()) == 4


def test_the_first_screen_answers_without_scrolling(new_user):
    user = new_user()
    user.open()
    chart = user.page.get_by_test_id("stVegaLiteChart").first.bounding_box()
    assert chart["y"] + chart["height"] <= 900
