"""What is under deploy/: each file in the eyes of its own tool, every schedule the same command."""

import configparser
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
import yaml

from app.cli import app

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
SERVICE = DEPLOY / "systemd/runcast-refresh.service"
TIMER = DEPLOY / "systemd/runcast-refresh.timer"
CRONTAB = DEPLOY / "crontab"
CRONJOB = DEPLOY / "kubernetes/cronjob.yaml"
WORKFLOW = DEPLOY / "github-actions/refresh-prices.yml"
FORECAST = DEPLOY / "github-actions/forecast.yml"
PAGE = DEPLOY / "systemd/runcast@.service"
LOGIN = DEPLOY / "systemd/login.conf"
CONTAINERFILE = DEPLOY / "container/Containerfile"
COMPOSE = DEPLOY / "container/compose.yaml"
MOST_EXPOSED = 15  # tenths, of 100: what systemd calls "OK" ends at 20
COMMAND = ["runcast", "refresh", "--json"]
# minute, hour, day of the month, month, day of the week: crontab(5)
CRON_FIELDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)


def beside_python(name: str) -> str:
    """A tool of the environment that runs the tests."""
    return str(Path(sys.executable).with_name(name))


def tool(name: str) -> str:
    if found := shutil.which(name):
        return found
    pytest.skip(f"{name} is not installed here")


def unit(path: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read_string(path.read_text())
    return parser


def cron_lines(text: str) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Variables and (schedule, command) of a user's crontab; AssertionError for anything else."""
    variables, jobs = {}, []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if found := re.fullmatch(r"([A-Z_]+)=(\S+)", line):
            variables[found[1]] = found[2]
            continue
        *fields, command = line.split(None, len(CRON_FIELDS))
        assert len(fields) == len(CRON_FIELDS), line
        for field, (low, high) in zip(fields, CRON_FIELDS, strict=True):
            assert is_cron_field(field, low, high), field
        assert "%" not in command, "cron reads % as a line break"
        jobs.append((" ".join(fields), command))
    return variables, jobs


def is_cron_field(field: str, low: int, high: int) -> bool:
    found = re.fullmatch(r"(?:\*|(\d+)(?:-(\d+))?)(?:/(\d+))?", field)
    if not found:
        return False
    numbers = [int(g) for g in found.groups()[:2] if g is not None]
    return all(low <= n <= high for n in numbers) and found[3] != "0"


def github_lines() -> list[str]:
    job = yaml.safe_load(WORKFLOW.read_text())["jobs"]["refresh"]
    return [line for step in job["steps"] for line in step.get("run", "").splitlines()]


def kubernetes() -> list[dict]:
    return list(yaml.safe_load_all(CRONJOB.read_text()))


def container() -> dict:
    job = next(d for d in kubernetes() if d["kind"] == "CronJob")
    [only] = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    return only


def commands() -> dict[str, list[str]]:
    """The command of every schedule, without the redirection of its output."""
    _, jobs = cron_lines(CRONTAB.read_text())
    written = {
        "systemd": unit(SERVICE)["Service"]["ExecStart"],
        "cron": jobs[0][1],
        "github": next(line for line in github_lines() if "runcast refresh" in line),
    }
    found = {name: shlex.split(text.partition(" > ")[0]) for name, text in written.items()}
    return {**found, "kubernetes": container()["command"]}


@pytest.mark.parametrize("schedule", ["systemd", "cron", "kubernetes", "github"])
def test_every_schedule_runs_the_same_command_which_the_command_line_takes(schedule):
    program, *arguments = commands()[schedule]
    assert [Path(program).name, *arguments] == COMMAND
    refresh = typer.main.get_command(app).commands[arguments[0]]
    assert refresh.make_context("refresh", arguments[1:]).params["as_json"] is True


def verified(folder: Path, service: str, timer: str) -> subprocess.CompletedProcess[str]:
    analyze = tool("systemd-analyze")
    (folder / SERVICE.name).write_text(service)
    (folder / TIMER.name).write_text(timer)
    return run(analyze, "verify", folder / SERVICE.name, folder / TIMER.name)


def test_systemd_takes_the_service_and_its_timer(tmp_path):
    # The program is where the administrator installs it: here, one that is there.
    service = SERVICE.read_text().replace("/opt/runcast/.venv/bin/runcast", sys.executable)
    done = verified(tmp_path, service, TIMER.read_text())
    assert (done.returncode, done.stderr) == (0, "")


def test_the_service_ends_well_when_some_sources_failed_or_another_refresh_works():
    service = unit(SERVICE)["Service"]
    assert service["SuccessExitStatus"].split() == ["3", "5"]
    assert service["Environment"] == f"RUNCAST_DATA_DIR=/var/lib/{service['StateDirectory']}"
    assert unit(TIMER)["Timer"]["Persistent"] == "true"


def test_the_crontab_is_one():
    variables, jobs = cron_lines(CRONTAB.read_text())
    assert len(jobs) == 1
    assert set(variables) == {"SHELL", "RUNCAST_DATA_DIR"}
    assert CRONTAB.read_text().endswith("\n")
    assert run("sh", "-n", "-c", jobs[0][1]).returncode == 0


def test_cron_itself_takes_the_crontab():
    """Where this system's crontab can check a file (-T)."""
    crontab = tool("crontab")
    if "-T" not in run(crontab, "-h").stderr:
        pytest.skip("this crontab cannot check a file")
    assert run(crontab, "-T", CRONTAB).returncode == 0


CHECKS = {  # of each file, what its own tool says of it
    CRONJOB: ("kubernetes-validate", "--strict"),  # where an unknown field is an error
    WORKFLOW: ("check-jsonschema", "--builtin-schema", "vendor.github-workflows"),
    FORECAST: ("check-jsonschema", "--builtin-schema", "vendor.github-workflows"),
    COMPOSE: ("check-jsonschema", "--builtin-schema", "vendor.compose-spec"),
    CONTAINERFILE: ("hadolint", "--no-color"),
}


def checked(file: Path, path: Path) -> subprocess.CompletedProcess[str]:
    """What the tool of a file says of the one at `path`."""
    program, *options = CHECKS[file]
    return run(beside_python(program), *options, path)


@pytest.mark.parametrize("file", CHECKS, ids=lambda f: f.name)
def test_the_tool_of_a_file_takes_it(file):
    done = checked(file, file)
    assert done.returncode == 0, done.stdout + done.stderr


def test_kubectl_reads_the_cronjob():
    done = run(tool("kubectl"), "label", "--local", "-f", CRONJOB, "a=b", "-o", "name")
    assert done.stdout.split() == [
        "persistentvolumeclaim/runcast-data", "cronjob.batch/runcast-refresh",
    ], done.stderr  # fmt: skip


def test_the_cronjob_keeps_prices_on_the_claim_and_fits_cron():
    claim, job = kubernetes()
    assert [claim["kind"], job["kind"]] == ["PersistentVolumeClaim", "CronJob"]
    pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    named = {v["name"]: v for v in pod["volumes"]}
    mounts = {m["mountPath"]: m["name"] for m in container()["volumeMounts"]}
    [data] = [e["value"] for e in container()["env"] if e["name"] == "RUNCAST_DATA_DIR"]
    assert named[mounts[data]]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    cron_lines(f"{job['spec']['schedule']} true\n")
    assert job["spec"]["concurrencyPolicy"] == "Forbid"


def test_the_steps_of_the_workflow_are_shell_and_commit_prices_alone():
    job = yaml.safe_load(WORKFLOW.read_text())["jobs"]["refresh"]
    for step in job["steps"]:
        assert run("bash", "-n", "-c", step.get("run", "true")).returncode == 0
    added = [line for line in github_lines() if "git add" in line]
    assert added
    assert all('"data/prices/' in line for line in added)
    crons = [c["cron"] for c in yaml.safe_load(WORKFLOW.read_text())[True]["schedule"]]
    assert cron_lines(f"{crons[0]} true\n")[1]


def test_the_commit_step_commits_the_snapshot_once(tmp_path):
    """The step itself, in a repository whose remote is a folder."""
    origin, clone = tmp_path / "origin", tmp_path / "clone"
    assert run("git", "init", "-q", "--bare", origin).returncode == 0
    assert run("git", "clone", "-q", origin, clone).returncode == 0
    for place in ("snapshots", "cache"):
        (clone / "data/prices" / place).mkdir(parents=True)
        (clone / "data/prices" / place / "file").write_text("x")
    steps = yaml.safe_load(WORKFLOW.read_text())["jobs"]["refresh"]["steps"]
    script = next(s["run"] for s in steps if s.get("name") == "Commit the snapshot")
    for _ in range(2):
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", script],
            cwd=clone, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    listed = run("git", "-C", origin, "log", "--name-only", "--format=%s", "HEAD").stdout.split(
        "\n"
    )
    assert [line for line in listed if line] == ["Refresh prices", "data/prices/snapshots/file"]


# --- the page as a service -----------------------------------------------------------------------


def page_verified(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    """systemd's own check of one instance of the service, with the login beside it."""
    text = text.replace("/opt/runcast/.venv/bin/python", sys.executable)
    instance = folder / "runcast@8501.service"
    instance.write_text(text.replace("WorkingDirectory=/opt/runcast", "WorkingDirectory=/"))
    (folder / f"{instance.name}.d").mkdir()
    shutil.copy(LOGIN, folder / f"{instance.name}.d")
    return run(tool("systemd-analyze"), "verify", instance)


def test_systemd_takes_the_service_of_the_page_and_its_login(tmp_path):
    done = page_verified(tmp_path, PAGE.read_text())
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("path", [PAGE, SERVICE], ids=["page", "refresh"])
def test_systemd_finds_little_that_a_service_could_do_beyond_its_work(path):
    security = [tool("systemd-analyze"), "security", "--no-pager", "--offline=yes"]
    done = run(*security, f"--threshold={MOST_EXPOSED}", path)
    if "Unknown command" in done.stderr or "unrecognized option" in done.stderr:
        pytest.skip("this systemd cannot judge a file")
    assert done.returncode == 0, done.stdout


def test_both_services_keep_to_one_folder_and_one_user():
    page, refresh = unit(PAGE)["Service"], unit(SERVICE)["Service"]
    for name in ("User", "StateDirectory", "ProtectSystem", "NoNewPrivileges", "SystemCallFilter"):
        assert page[name] == refresh[name]
    assert f"RUNCAST_DATA_DIR=/var/lib/{page['StateDirectory']}" in PAGE.read_text()
    assert page["Restart"] == "on-failure"


def secrets_in(text: str) -> list[str]:
    """What is written beside a name of a secret and looks like one."""
    named = r"(?:secret|key|password|token)\w*[ =:\"']+([\w+/.=-]{12,})"
    return [v for v in re.findall(named, text, re.I) if re.search(r"\d", v)]


def test_no_file_of_deploy_holds_a_secret():
    files = [p for p in DEPLOY.rglob("*") if p.suffix not in (".lock", ".pyc") and p.is_file()]
    assert {p.name: found for p in files if (found := secrets_in(p.read_text()))} == {}
    assert secrets_in("STREAMLIT_SERVER_COOKIE_SECRET=k3jd9fkq2m5nzp0x") == ["k3jd9fkq2m5nzp0x"]


# --- the container -------------------------------------------------------------------------------


def test_hadolint_finds_nothing_to_say_of_the_container_file():
    assert checked(CONTAINERFILE, CONTAINERFILE).stdout == ""


def test_the_image_installs_from_the_locks_alone_and_runs_as_nobody_in_particular():
    text = CONTAINERFILE.read_text().replace("\\\n", " ")
    installs = [line for line in re.split(r"\n|&&", text) if "pip install" in line]
    assert len(installs) == 2
    assert "--require-hashes" in installs[0]
    assert {"deploy/build.lock", "deploy/requirements.lock"} <= set(installs[0].split())
    assert {"--no-deps", "--no-index", "--no-build-isolation"} <= set(installs[1].split())
    last = text[text.rindex("FROM ") :]
    assert re.search(r"^USER 10001:10001$", last, re.M)
    assert last.index("USER") < last.index("CMD")
    assert "HEALTHCHECK" in last
    assert not re.search(r"^ADD|--chown", text, re.M)


def test_the_image_has_every_package_and_only_what_it_copies():
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", CONTAINERFILE.read_text(), re.M)
    named = {name for line in copied for name in line.split()}
    assert all((ROOT / name).exists() for name in named)
    ignore = CONTAINERFILE.with_name("Containerfile.dockerignore").read_text().splitlines()
    assert ignore[1] == "*"
    assert {line[1:] for line in ignore if line.startswith("!")} == named
    assert {"app", "core", "hardware", "pricing", "runners"} <= named


def test_every_container_is_read_only_without_rights_and_with_limits():
    services = yaml.safe_load(COMPOSE.read_text())["services"]
    assert {"page-1", "page-2", "refresh", "nginx"} == set(services)
    for service in services.values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert {"mem_limit", "cpus", "pids_limit", "tmpfs"} <= set(service)
    published = {name: s["ports"] for name, s in services.items() if "ports" in s}
    assert set(published) == {"nginx"}


def test_the_proxy_of_compose_reaches_both_processes_and_has_its_headers():
    services = yaml.safe_load(COMPOSE.read_text())["services"]
    served = {services[n]["environment"]["STREAMLIT_SERVER_PORT"] for n in ("page-1", "page-2")}
    conf = (DEPLOY / "nginx/processes.conf").read_text()
    assert set(re.findall(r"server 127\.0\.0\.1:(\d+)", conf)) == served
    assert all(services[n]["network_mode"] == "service:nginx" for n in ("page-1", "page-2"))
    mounts = [mount.split(":")[0] for mount in services["nginx"]["volumes"]]
    assert all((COMPOSE.parent / mount).resolve().is_file() for mount in mounts)
