"""`runcast report`: what it writes and prints, and what it refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

JOB = ["report", "--model", "llama3.1-8b", "--tokens", "100B", "--seq-len", "8k"]
JOB += ["--global-batch-size", "512", "--gpu", "h100", "--num-gpus", "64", "--cloud", "aws"]
KINDS = ("md", "html", "pdf")


def files(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def test_the_files_are_written_and_their_link_gives_them_again(run, tmp_path):
    first, again = tmp_path / "a", tmp_path / "b"
    status, out, err = run(*JOB, "--out", first, "--date", "2026-05-24", "--name", "Run 1")
    assert (status, err) == (0, "")
    assert out.splitlines() == [str(first / f"runcast_report.{k}") for k in KINDS]
    text = (first / "runcast_report.md").read_text()
    assert "\nWritten on 2026-05-24 by Runcast" in text
    assert "\n**Run 1**\n" in text
    link = re.search(r"runcast plan --link '(\?v=1&[^']+)'", text)[1]
    status, _, err = run("report", "--link", link, "--out", again, "--name", "Run 1",
                         "--date", "2026-05-24")  # fmt: skip
    assert (status, err) == (0, "")
    assert files(first) == files(again)


def test_the_day_is_that_of_the_environment(run, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    status, out, _ = run(*JOB, "--to", "md")
    assert status == 0
    assert "\nWritten on 2023-11-14 by Runcast" in out


def test_one_text_form_is_printed_with_a_link_that_can_be_clicked(run):
    status, out, err = run(*JOB, "--to", "html", "--address", "https://example.org/runcast/")
    assert (status, err) == (0, "")
    assert out.startswith("<!DOCTYPE html>")
    assert '<a href="https://example.org/runcast/?v=1&amp;' in out


def test_nothing_that_is_there_is_replaced_unless_asked_for(run, tmp_path):
    there = tmp_path / "runcast_report.md"
    there.write_text("mine")
    status, _, err = run(*JOB, "--to", "md", "--out", tmp_path)
    assert (status, there.read_text()) == (2, "mine")
    assert "is there already: --force replaces it." in err
    kept = tmp_path / "elsewhere"
    kept.write_text("mine")
    there.unlink()
    there.symlink_to(kept)
    status, _, _ = run(*JOB, "--to", "md", "--out", tmp_path, "--force")
    assert (status, kept.read_text()) == (0, "mine")
    assert there.read_text().startswith("# Training plan: ")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--to", "docx"], "'docx'"),
        (["--to", ","], "--to without a value: md, html, pdf."),
        ([], "--out DIR takes the files (md, html, pdf)"),
        (["--to", "pdf"], "--out DIR takes the files (pdf)"),
        (["--to", "md", "--date", "soon"], "--date 'soon' is no day like 2026-05-24."),
        (["--to", "md", "--address", "javascript:alert(1)"], "is no address like https://host/."),
        (["--to", "md", "--address", 'https://a/"><b>'], "is no address like https://host/."),
        (["--to", "md", "--name", "x" * 81], "has 81 characters; at most 80 are allowed."),
        (["--to", "md", "--set", "plan=gone"], "The plan 'gone' is not among the ranked plans"),
    ],
)
def test_a_mistake_is_one_sentence(run, options, sentence):
    status, out, err = run(*JOB, *options)
    assert (status, out) == (2, "")
    assert err.startswith("runcast: ")
    assert err.count("\n") == 1
    assert sentence in err


def test_an_epoch_that_is_none_is_a_sentence(run, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "tomorrow")
    status, _, err = run(*JOB, "--to", "md")
    assert status == 2
    assert "SOURCE_DATE_EPOCH='tomorrow' is no number of seconds since 1970." in err
