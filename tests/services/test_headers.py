"""The headers of a real nginx in Chromium: every page works, and nothing is blocked."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from websockets.exceptions import InvalidStatus

from tests.servers import nginx
from tests.support.browsing import FEW, Server, User, served

pytestmark = pytest.mark.services

# What Chromium says of anything that the policy blocked, wherever that was.
WATCH = """addEventListener('securitypolicyviolation',
  e => window.blocked(`${location.pathname}: ${e.effectiveDirective} ${e.blockedURI}`))"""
CHART = '[data-testid="stVegaLiteChart"]'
MARKS = f"{CHART} svg.marks, {CHART} canvas.marks"
# The pages with charts, and how many are drawn there at the least.
CHARTS = {"/": 3, "/options": 1, "/memory": 4, "/risk": 5, "/accuracy": 2, "/prices": 2}


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Iterator[Server]:
    """One process with the settings of the checkout."""
    folder = tmp_path_factory.mktemp("page")
    with served(folder / "log", RUNCAST_DATA_DIR=str(folder / "data")) as server:
        yield server


@pytest.fixture(scope="module")
def proxy(page, tmp_path_factory) -> Iterator[nginx.Proxy]:
    if nginx.program() is None:
        missing = "nginx is not installed: apt-get install nginx-light"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)
    with nginx.started(tmp_path_factory.mktemp("nginx"), (page.port, page.port)) as running:
        yield running


@pytest.mark.parametrize("path", ["/", "/risk", "/_stcore/health", "/_stcore/host-config"])
def test_every_answer_has_the_headers(proxy, path):
    status, headers, _ = proxy.get(path)
    assert status == 200
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "same-origin"
    assert "camera=()" in headers["permissions-policy"]
    assert headers["server"] == "nginx"


@pytest.mark.parametrize(
    "path",
    ["_stcore/metrics", "_stcore/agent/openapi.json", "_stcore/script-health-check", "readyz"],
)
def test_what_is_for_the_machine_itself_stays_there(proxy, page, path):
    assert proxy.get(f"/{path}")[0] == 404
    assert proxy.get(f"/risk/{path}")[0] == 404
    assert nginx.Proxy(page.port, proxy.folder).get("/_stcore/metrics")[0] == 200


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_make_run_is_reached_under_both_names_of_this_machine(page, tmp_path, name):
    direct = nginx.Proxy(page.port, tmp_path)
    origin = f"http://{name}:{page.port}"
    with nginx.websocket(direct, "", origin=origin, host=name) as line:
        assert nginx.rerun(line, FEW)[1] > 0


@pytest.mark.parametrize(
    "wrong", [{"host": "evil.example"}, {"origin": "https://evil.example"}, {"origin": "null"},
              {"host": "127.0.0.1.evil.example"}]
)  # fmt: skip
def test_another_name_and_another_page_are_refused_without_any_proxy(page, tmp_path, wrong):
    direct = nginx.Proxy(page.port, tmp_path)
    given = {"origin": f"http://{wrong.get('host', '127.0.0.1')}:{page.port}", **wrong}
    with pytest.raises(InvalidStatus, match="403"), nginx.websocket(direct, "", **given):
        pass


@pytest.mark.browser
def test_every_chart_is_drawn_under_the_policy_and_nothing_is_blocked(proxy, new_user):
    user: User = new_user()
    user.base_url, blocked = proxy.url, []
    user.page.context.expose_function("blocked", lambda said: blocked.append(said))
    user.page.add_init_script(WATCH)
    user.page.on("console", lambda m: blocked.extend([m.text] * ("Policy" in m.text)))
    drawn = {}
    for path in CHARTS:
        user.open(path + FEW)
        charts, marks = user.page.locator(CHART), user.page.locator(MARKS)
        expect(marks).to_have_count(charts.count())
        drawn[path] = marks.count()
        if path == "/":  # a component of its own, loaded as a blob
            user.page.get_by_role("button", name="Copy link").click()
            user.page.get_by_text("Copied", exact=True).wait_for()
    assert {n: drawn[n] for n, least in CHARTS.items() if drawn[n] < least} == {}
    assert blocked == []


@pytest.mark.browser
def test_an_upload_and_a_download_pass_the_policy(proxy, new_user):
    user: User = new_user()
    user.base_url, blocked = proxy.url, []
    user.page.context.expose_function("blocked", lambda said: blocked.append(said))
    user.page.add_init_script(WATCH)
    user.open("/calibration")
    user.page.locator('input[type="file"]').set_input_files(
        {"name": "x.json", "mimeType": "application/json", "buffer": b"{}"}
    )
    user.settle()
    assert user.notes()  # it was read: it is no result of a calibration
    user.open(f"/prices{FEW}")
    user.page.get_by_role("button", name="Chart as a file").first.click()
    user.settle()
    with user.page.expect_download() as download:
        user.page.get_by_role("button", name="Data as CSV").first.click()
    assert download.value.path().read_bytes()
    assert blocked == []


@pytest.mark.browser
def test_a_script_that_is_not_the_pages_own_is_blocked(proxy, new_user):
    """The policy is one: what a payload would try does not run."""
    user: User = new_user()
    user.base_url = proxy.url
    user.open("/method")
    ran = user.page.evaluate(
        """() => new Promise(done => {
          addEventListener('securitypolicyviolation', e => done(e.effectiveDirective));
          const script = document.createElement('script');
          script.textContent = 'window.ran = true';
          document.body.append(script);
          setTimeout(() => done(window.ran ? 'ran' : 'nothing'), 3000) })"""
    )
    assert ran == "script-src-elem"
