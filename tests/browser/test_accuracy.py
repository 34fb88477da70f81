"""The Accuracy page in a real Chromium: filters, an upload with mistakes in it, small screens."""

import csv
from pathlib import Path

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

PAGE = "/accuracy?gpu=H100-80GB-SXM&cloud=aws&num_gpus=64"
HEAD = (
    "run_id,model_key,accelerator,num_gpus,seq_len,micro_batch,global_batch,tp,pp,framework,"
    "tokens_per_s_per_gpu\n"
)
RUNS = HEAD + (
    "good,llama3.1-8b,H100-80GB-SXM,8,8192,1,16,1,1,torchtitan,5000\n"
    "degrees,llama3.1-8b,H100-80GB-SXM,8,8192,1,16,3,1,torchtitan,5000\n"
    "good,llama3.1-8b,H100-80GB-SXM,8,8192,1,16,1,1,torchtitan,5000\n"
    "negative,llama3.1-8b,H100-80GB-SXM,8,8192,1,16,1,1,torchtitan,-1\n"
    "<img src=x onerror=alert(1)>,**m** [x](javascript:alert(1)),$H$,8,8192,1,16,1,1,t,1\n"
)


def upload(user, path):
    user.page.locator('input[type="file"]').first.set_input_files(path)
    expect(user.page.get_by_text(path.name).first).to_be_visible()
    user.settle()


def test_a_filter_by_hand_changes_the_chart_and_its_csv(new_user):
    user = new_user()
    user.open(PAGE)
    marks = user.page.get_by_test_id("stVegaLiteChart").first.locator('path[aria-label*="Run:"]')
    all_runs = marks.count()
    box = user.page.get_by_role("combobox", name="Dense or MoE")
    box.scroll_into_view_if_needed()
    user.settle()  # charts below it still grow, which closes an open list
    box.click()
    user.page.get_by_role("option", name="moe", exact=True).click()
    user.page.keyboard.press("Escape")
    user.settle()
    assert 0 < marks.count() < all_runs
    user.page.get_by_role("button", name="Chart as a file").first.click()
    user.settle()
    with user.page.expect_download() as download:
        user.page.get_by_role("button", name="Data as CSV").press("Enter")
    rows = list(csv.DictReader(Path(download.value.path()).read_text().splitlines()))
    assert len(rows) == marks.count()
    assert {row["architecture"] for row in rows} == {"moe"}


def test_an_upload_names_its_bad_rows_and_runs_nothing(new_user, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(RUNS)
    user = new_user()
    user.open(PAGE)
    upload(user, path)
    text = user.page.get_by_test_id("stMain").inner_text().replace("\N{WORD JOINER}", "")
    assert "5 rows: 1 used, 4 named with a reason." in text
    for sentence in (
        "tp x pp x cp = 3 does not divide the 8 GPUs of the run.",
        "run_id 'good' is already the run of line 2.",
        "tokens_per_s_per_gpu='-1' is not above zero.",
        "Unknown model '**m** [x](javascript:alert(1))'",
        "<img src=x onerror=alert(1)>",
    ):
        assert sentence in text
    assert user.page.locator('a[href^="javascript"], img[src="x"]').count() == 0
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("a,b\n1,2\n")
    upload(user, wrong)
    assert ["'wrong.csv' has no column 'run_id'." in note for note in user.notes()] == [True]


def test_what_one_person_uploads_no_other_sees(new_user, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(RUNS)
    ann, bob = new_user(), new_user()
    ann.open(PAGE)
    upload(ann, path)
    bob.open(PAGE)
    assert "named with a reason" in ann.page.inner_text("body")
    assert "named with a reason" not in bob.page.inner_text("body")
