"""The stages on the Plan page: a table that reads back, an answer below it, and back to one run."""

import json
from urllib.parse import urlencode

import pytest

from app.document import format as fmt
from app.programme.rows import rows_of, stages_of, starting_rows
from core.scenario import Scenario
from tests.app.test_app import QUICK, link_of, opened, texts

STAGES = {"s1.name": "main", "s2.name": "long", "s2.share": "5%", "s2.seq_len": "32k"}


def test_edited_rows_read_back_as_the_stages():
    stages = Scenario.parse(
        {"stages": "main,tokens=15T,batch=0:512/252M:1024;long,share=5%,seq_len=128k,cp=16,tp=8"}
    ).stages
    assert stages_of(rows_of(stages)) == stages
    assert stages_of([*rows_of(stages), {"Stage": None, "Tokens": float("nan")}]) == stages
    assert len(Scenario.parse({"stages": stages_of(starting_rows("1T", 8192))}).stages) == 3


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"Stage": "a", "More": "seqlen=5"}, "seq_len is probably meant"),
        ({"Stage": "a", "Runs": "0"}, "count '0' is not a whole number"),
        ({"Stage": "a", "More": "tp=8;pp=4"}, "separated by commas"),
    ],
)
def test_a_wrong_cell_is_a_sentence(row, says):
    with pytest.raises(ValueError, match=says):
        stages_of([row])


def test_page_command_report_and_json_say_the_same_and_one_button_leads_back(run):
    page = opened(**QUICK, **STAGES)
    assert "Programme of runs (2 stages)" in [e.label for e in page.main.expander]
    assert len(page.error) == 0
    link = "?" + urlencode(link_of(page))
    made = json.loads(run("programme", "--link", link, "--json")[1])
    said = made["sentences"][0]
    drawn = [t.value for t in page.main.table]
    assert f"**{said}**" in texts(page.markdown)
    assert said in " ".join(run("programme", "--link", link)[1].split())
    report = run("report", "--link", link, "--to", "md")[1].replace("\\", "")
    assert f"**{said}**" in report
    for stage in made["contracts"][0]["stages"]:
        hours = fmt.count(stage["gpu_hours"])
        assert f"| {hours} |" in report
        assert any(hours in t.to_numpy() for t in drawn)
    page.button(key="programme_clear").click().run()
    assert not [name for name in link_of(page) if name.startswith("s2.")]


def test_one_run_has_the_section_closed():
    page = opened(**QUICK)
    assert "Programme of runs" in [e.label for e in page.main.expander]
    assert not [b for b in page.button if b.key == "programme_clear"]
