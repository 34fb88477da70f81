"""No text from outside commands the terminal of whoever runs a command."""

from __future__ import annotations

import json
import re

import pytest

from app import cli
from app.document.echo import echo
from app.document.terminal import console, print_table
from app.forecast import calibrations
from app.log import log
from core.errors import RuncastError
from runners.calibration.result import CalibResult
from runners.launchers.follow import _status
from runners.launchers.launcher import Progress
from tests.made_up.results import document, machine

SENT = {
    "a title": "\x1b]0;owned\x07", "the clipboard": "\x1b]52;c;Y3VybCBldmls\x07",
    "a link": "\x1b]8;;http://evil\x1b\\here\x1b]8;;\x1b\\", "C1": "\x9b31m\x9d0;owned\x9c",
    "bidi": "a\u202eb\u2066c", "overwritten": "safe\rrm -rf", "a tag": "a\U000e0041b",
}  # fmt: skip
COMMANDS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)
STYLES = re.compile(r"\x1b\[[0-9;]*m")


def sound():
    return document(machine(matmul=0.8, attention=0.9, memory=0.9, elementwise=1.3, scale_up=0.8))


def said(capsys):
    out, err = capsys.readouterr()
    return STYLES.sub("", out + err)


@pytest.fixture(params=SENT)
def text(request):
    return SENT[request.param]


@pytest.fixture
def kept(text, monkeypatch, tmp_path):
    """A calibration with that text as its host, kept by a version that took it."""
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path))
    raw = sound()
    raw["provenance"]["host"] = raw["provenance"]["os"] = raw["nodes"][0]["host"] = text
    result = CalibResult.model_validate(raw)
    monkeypatch.setattr(calibrations, "parse", lambda content: result)
    return calibrations.keep(result)


def run(*arguments):
    with pytest.raises(SystemExit) as ended:
        cli.main(list(arguments))
    return ended.value.code


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_kept_calibration_writes_nothing_but_text(kept, capsys, more):
    assert run("calibrations", "list", *more) == 0
    assert run("calibrations", "show", kept, *more) == 0
    found = said(capsys)
    assert len(found) > 500
    assert not COMMANDS.search(found)


def test_json_keeps_the_value_that_it_escapes(kept, capsys, text):
    assert run("calibrations", "show", kept, "--json") == 0
    assert json.loads(capsys.readouterr().out)["provenance"]["host"] == text


def test_every_option_that_a_sentence_repeats(text, capsys):
    for arguments in (
        ("plan", "--model", text), ("plan", "--gpu", text), ("plan", "--link", f"?gpu={text}"),
        ("offers", "--cloud", text), ("calibrations", "show", text), ("export", "--to", text),
        ("compare", f"/nowhere/{text}"), ("import", f"/nowhere/{text}"), (text,),
    ):  # fmt: skip
        assert run(*arguments) != 0
    found = said(capsys)
    assert found.count("runcast: ") >= 9
    assert not COMMANDS.search(found)


def test_the_writers_of_lines_tables_and_logs(text, capsys, monkeypatch):
    from app.document.table import Column, Table

    echo(text)
    echo(text, err=True)
    out = console()
    out.print(text)
    print_table(
        out, Table(caption="t", columns=(Column(name="n", head="h", value=str),), rows=(text,))
    )
    log.configure({})
    log.event("x", level=40, said=text)
    found = said(capsys)
    assert found.count("\n") >= 6
    assert not COMMANDS.search(found)


def test_what_a_node_prints_is_shown_as_text(text):
    before = type("S", (), {"group": "", "done": 0, "total": 0})
    log_ = f"runcast: group {text.split()[0]} 1/2 \nruncast: group matmul 2/2 \n"
    status = _status(Progress("running", text, log_), before)
    assert (status.group, status.done) == ("matmul", 2)
    assert status.sentence.isprintable()
    assert _status(Progress("running", "", f"runcast: group {text} 1/2 \n"), before).group == ""


def test_a_result_with_such_a_text_is_refused(text):
    raw = sound()
    raw["provenance"]["host"] = text
    with pytest.raises(RuncastError, match=r"has the character U\+"):
        calibrations.parse(json.dumps(raw).encode())
