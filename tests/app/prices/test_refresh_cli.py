"""`runcast refresh`: what it prints, its exit statuses, its schedule."""

import json
import time
from types import SimpleNamespace

import pytest

from app import cli
from app.prices import refresh_command
from core.errors import ScenarioError
from pricing.lease import lease
from pricing.sources import SOURCES
from tests.feeds import shapes
from tests.feeds.server import Feed, Reply, serving

OCI_PATH = "/pls/apex/cetools/api/v1/products/"


@pytest.fixture
def feed(monkeypatch, tmp_path):
    """Every source on a loopback server, and an empty data folder."""
    feed = Feed(shapes.replica())
    with serving(feed) as base:
        for name, value in shapes.mirrors(base).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path))
        monkeypatch.setenv("COLUMNS", "120")
        yield feed


@pytest.fixture
def run(capfd):
    def _run(*arguments):
        with pytest.raises(SystemExit) as end:
            cli.main(arguments)
        out, err = capfd.readouterr()
        return end.value.code, out, err

    return _run


def test_one_line_per_source_and_the_snapshot_it_published(feed, run, tmp_path):
    status, out, err = run("refresh")
    assert (status, err) == (0, "")
    current = (tmp_path / "prices/snapshots/current").read_text().strip()
    assert out.rstrip().endswith(f"Published as price snapshot {current}.")
    for source in SOURCES:
        assert f"\n{source.name} " in out
    # A mirror is not the real server.
    assert out.count("never run live") == len(SOURCES)
    status, out, _ = run("offers", "--cloud", "verda", "--json")
    assert json.loads(out)["price_snapshot"]["id"] == current


def test_a_dry_run_of_one_source_publishes_nothing(feed, run, tmp_path):
    status, out, _ = run("refresh", "--source", "oci", "--dry-run")
    assert status == 0
    assert "A dry run: nothing was published." in out
    assert not (tmp_path / "prices").exists()
    assert {a.path for a in feed.asked} == {OCI_PATH}


def test_the_json_has_a_record_of_every_source(feed, run):
    status, out, err = run("refresh", "--json", "--source", "oci", "--source", "lambda")
    assert (status, err) == (0, "")
    told = json.loads(out)
    assert told["outcome"] == "refreshed"
    assert told["published"] is True
    assert [s["source"] for s in told["sources"]] == [s.name for s in SOURCES]
    by_name = {s["source"]: s for s in told["sources"]}
    assert (by_name["oci"]["status"], by_name["oci"]["rows"]) == ("refreshed", 2)
    assert by_name["oci"]["live"] is False
    assert by_name["vast"]["status"] == "not asked"
    assert by_name["vast"]["age_days"] is None
    assert {q["source"] for q in told["quarantine"]} == {"oci"}
    assert all(len(q["key"]) == 12 for q in told["quarantine"])
    assert told["store"] == ""


def test_the_exit_status_tells_some_from_all_from_busy_from_a_mistake(feed, run, tmp_path):
    feed.routes[OCI_PATH] = Reply(status=404)
    status, out, _ = run("refresh", "--source", "oci", "--source", "verda")
    assert status == refresh_command.IN_PART == 3
    assert "oci: The server answers 404." in out
    status, out, _ = run("refresh", "--source", "oci")
    assert status == refresh_command.FAILED == 4
    assert "No source answered" in out
    with lease(tmp_path / "prices"):
        status, out, err = run("refresh", "--source", "verda")
    assert (status, out) == (refresh_command.BUSY, "")
    assert err.startswith("runcast: Another refresh works (process ")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--source", "lamda"], "Unknown price source 'lamda'. Did you mean 'lambda'?"),
        (["--every", "often"], "--every 'often' is not a time like 30m, 6h or 1d."),
        (["--every", "5s"], "is less than a minute"),
        (["--source", "oci", "--accept", "vast"], "'vast' is not among the sources"),
        (["--accept", "nobody"], "Unknown price source 'nobody'"),
    ],
)
def test_a_mistake_is_one_sentence(feed, run, arguments, says):
    status, out, err = run("refresh", *arguments)
    assert (status, out) == (2, "")
    assert says in err
    assert feed.asked == []


def only_sleep(sleep):
    """The clock of the command with another pause: whatever else sleeps keeps its own."""
    return SimpleNamespace(**{**vars(time), "sleep": sleep})


def test_every_refreshes_again_and_again_until_it_is_stopped(feed, run, monkeypatch, tmp_path):
    pauses = []

    def sleep(seconds):
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(refresh_command, "time", only_sleep(sleep))
    status, out, err = run("refresh", "--source", "oci", "--every", "6h")
    assert status == 130
    assert out.count("Published as price snapshot") == 3
    assert err.count("the next refresh is at") == 3
    assert all(21500 < p <= 21600 for p in pauses)


def test_a_busy_folder_does_not_end_a_schedule(feed, run, monkeypatch, tmp_path):
    def stop(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(refresh_command, "time", only_sleep(stop))
    with lease(tmp_path / "prices"):
        status, _, err = run("refresh", "--source", "oci", "--every", "30m")
    assert status == 130
    assert "Another refresh works" in err
    assert "the next refresh is at" in err


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("30m", 1800), ("6H", 21600), ("1d", 86400)]
)
def test_times_are_read(text, seconds):
    assert refresh_command.seconds_between(text) == seconds


@pytest.mark.parametrize("text", ["", "6", "h", "-6h", "6 weeks", "0h", "1e9d"])
def test_times_that_are_none_are_refused(text):
    with pytest.raises(ScenarioError):
        refresh_command.seconds_between(text)


def test_no_key_is_in_what_is_printed_or_kept(feed, run, monkeypatch, tmp_path):
    monkeypatch.setenv("LAMBDA_API_KEY", "canary-s3cret")
    monkeypatch.setenv("GCP_API_KEY", "canary-s3cret")
    printed = [run("refresh", *more) for more in ([], ["--json"])]
    assert all("canary" not in out + err for _, out, err in printed)
    kept = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert len(kept) > 3
    assert not [p for p in kept if b"canary" in p.read_bytes()]
    assert [a for a in feed.asked if "canary-s3cret" in str(a.headers)]
