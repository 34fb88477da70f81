"""Links of every released version open to the numbers that they had then, or it is said why not."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from packaging.version import Version

from app.scenario.age import TABLE, Change, changes
from app.scenario.version import version
from core.scenario import Scenario
from pricing.offers import snapshot_ids
from tests.support import golden_links
from tests.support.golden_links import (
    FOLDER,
    NUMBERS,
    RELEASED,
    ROOT,
    TEXTS,
    differing,
    opened,
    rows_of,
    sha256_of,
)

FILES = sorted(FOLDER.glob("[0-9]*.csv"))
ROWS = [(path.stem, row) for path in FILES for row in rows_of(path)]
# What a link can carry that a golden link of the newest release must: groups of its fields.
CARRIED = (
    {"deadline_days", "budget_usd", "rank_by"}, {"cloud", "purchase"}, {"tp", "pp", "sharding"},
    {"schedule", "virtual_stages"}, {"cp", "context_parallel"}, {"ep", "moe_dispatcher"},
    {"task", "lora_rank", "lora_targets", "double_quantisation"}, {"num_examples", "epochs"},
    {"offload_optimizer", "offload_params"}, {"failures_per_node_day", "checkpoint_s", "spares"},
    {"preemptions_per_day", "spot_zones"}, {"pue", "experiment_share", "dataset_tb"},
    {"anchor_tokens_per_s_per_gpu", "anchor_layout"}, {"custom_tflop_per_s"},
    {"num_layers", "hidden_size"}, {"power_cap_watts", "network_gbit_per_gpu"}, {"precision"},
    {"optimizer", "gradient_dtype"}, {"compile", "cuda_graphs", "chunked_loss"}, {"stack"},
    {"software_date"}, {"plan", "pinned"}, {"prices"}, {"calibration"}, {"price_book"},
)  # fmt: skip


@pytest.mark.parametrize(
    ("release", "row"), ROWS, ids=[f"{release}: {row['about']}" for release, row in ROWS]
)
def test_a_released_link_opens_to_the_same_numbers_or_the_change_is_written_down(release, row):
    found = differing(row, opened(row["link"]))
    written = {c.number: c for c in changes() if (c.version, c.about) == (release, row["about"])}
    unsaid = {} if "*" in written else {n: v for n, v in found.items() if n not in written}
    assert not unsaid, f"not in app/scenario/link_changes.csv (then, now): {unsaid}"
    for number, (_, now) in found.items():
        if number in written:
            assert written[number].new == now
    assert not (set(written) - {"*"} - set(found)), "these are as they were"


def test_a_released_file_is_never_edited():
    known = {row["version"]: row["sha256"] for row in rows_of(RELEASED)}
    assert {path.stem for path in FILES} == set(known)
    assert {path.stem: sha256_of(path) for path in FILES} == known


def test_this_version_has_its_links():
    declared = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert declared[1] == version()
    assert version() in {path.stem for path in FILES}


def test_golden_links_use_every_part_of_a_link():
    rows = [row for release, row in ROWS if release == version()]
    assert len(rows) >= 25
    used = {pair.partition("=")[0] for row in rows for pair in row["link"].split("&")}
    assert [part for part in CARRIED if not part <= used] == []
    assert set().union(*CARRIED) <= set(Scenario.model_fields)
    assert any(row["num_plans"] == "0" for row in rows)
    assert any(row["bill_usd"] for row in rows)
    assert any(int(row["num_notes"]) > 3 for row in rows)


def test_the_prices_of_every_golden_link_are_still_here():
    named = {re.search(r"&prices=(\w+)", row["link"])[1] for _, row in ROWS}
    assert named <= set(snapshot_ids())


def test_a_moved_number_is_seen(monkeypatch):
    """The control: the comparison is not blind to one part in 100,000, nor to another layout."""
    row = ROWS[0][1]
    for name in NUMBERS:
        if row[name] and float(row[name]):
            moved = row | {name: repr(float(row[name]) * 1.00001)}
            assert list(differing(row, moved)) == [name]
    for name in TEXTS[:2]:
        assert list(differing(row, row | {name: "another"})) == [name]
    assert list(differing(row, row | {"usd": ""})) == ["usd"]
    assert differing(row, row) == {}


def test_every_change_names_a_released_number_a_reason_and_a_commit():
    known = {(release, row["about"]): row for release, row in ROWS}
    header = TABLE.read_text(encoding="utf-8").splitlines()[0]
    assert header.split(",") == list(Change.__slots__)
    example = Change(
        version="0.1.0", about=ROWS[0][1]["about"], number="usd", old="", new="1", since="0.2.0",
        reason="The all-to-all is counted once per micro-batch.", commit="ef33beb",
    )  # fmt: skip
    for change in (*changes(), replace(example, old=ROWS[0][1]["usd"])):
        row = known[change.version, change.about]
        assert change.number == "*" or row[change.number] == change.old
        assert len(change.reason) > 20
        assert change.reason.endswith(".")  # it is told whoever opens an older link
        assert Version(change.version) < Version(change.since)
        assert re.fullmatch(r"[0-9a-f]{7,40}", change.commit)


def test_a_released_file_is_not_written_again(monkeypatch, tmp_path):
    monkeypatch.setattr(golden_links, "FOLDER", tmp_path)
    monkeypatch.setattr(golden_links, "RELEASED", tmp_path / "released.csv")
    (tmp_path / "LINKS.csv").write_text(
        "about,link\nnothing fits,v=1&model=llama3.1-405b&gpu=A100-40GB-SXM&num_gpus=8\n"
    )
    golden_links.main("9.9.9")
    assert len(rows_of(tmp_path / "9.9.9.csv")) == 1
    assert sha256_of(tmp_path / "9.9.9.csv") in (tmp_path / "released.csv").read_text()
    with pytest.raises(SystemExit, match="never written again"):
        golden_links.main("9.9.9")
