"""What the page's server is set to, and that the headers fit the Streamlit that is pinned."""

from __future__ import annotations

import base64
import hashlib
import re
import tomllib
from pathlib import Path

import pytest
import streamlit
from streamlit import config

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "app/.streamlit/config.toml").read_text())
NGINX = ROOT / "deploy/nginx"
HEADERS = (NGINX / "runcast-headers.conf").read_text()
WANTED = {
    "server.enableCORS": True,
    "server.enableXsrfProtection": True,
    "server.xsrfCookieSameSite": "strict",
    "server.allowedHosts": ["localhost", "127.0.0.1", "::1"],
    "server.address": "localhost",
    "server.maxUploadSize": 2,
    "server.maxMessageSize": 20,
    "server.disconnectedSessionTTL": 120,
    "server.enableStaticServing": False,
    "server.enableAgentApi": False,
    "server.runOnSave": False,
    "server.fileWatcherType": "none",
    "client.showErrorDetails": "none",
    "client.showErrorLinks": False,
    "client.toolbarMode": "viewer",
    "client.allowedOrigins": [],
    "browser.gatherUsageStats": False,
    "runner.magicEnabled": False,
}


@pytest.mark.parametrize("name", WANTED)
def test_the_server_is_set_to(name):
    section, _, key = name.partition(".")
    assert SETTINGS[section][key] == WANTED[name]


@pytest.mark.parametrize("name", WANTED)
def test_streamlit_has_such_a_setting(name):
    """A name that a release of Streamlit drops would protect nothing."""
    known = config.get_config_options()[name]
    assert not known.is_expired()
    assert not known.deprecated


def policy() -> dict[str, list[str]]:
    """The directives of the Content-Security-Policy."""
    (said,) = re.findall(r'^add_header Content-Security-Policy "([^"]+)" always;$', HEADERS, re.M)
    return {name: rest for name, *rest in (d.split() for d in said.split(";"))}


def test_the_policy_lets_the_inline_script_of_streamlit_through_and_no_other():
    page = (Path(streamlit.__file__).parent / "static/index.html").read_text()
    inline = re.findall(r"<script>(.*?)</script>", page, re.S)
    digests = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in inline]
    assert [s for s in policy()["script-src"] if "sha256" in s] == [
        f"'sha256-{d}'" for d in digests
    ]


def test_the_policy_names_no_other_host_and_denies_what_the_page_does_not_use():
    directives = policy()
    assert directives["default-src"] == ["'none'"]
    assert directives["frame-ancestors"] == directives["base-uri"] == ["'none'"]
    assert directives["form-action"] == ["'none'"]
    sources = {source for given in directives.values() for source in given}
    assert "'unsafe-inline'" not in directives["script-src"]
    assert not {s for s in sources if not re.fullmatch(r"'[\w-]+(?:[+/=\w]*)'|data:|blob:", s)} - {
        s for s in sources if s.startswith("'sha256-")
    }


@pytest.mark.parametrize("file", ["processes.conf", "runcast.conf"])
def test_every_place_that_passes_the_page_on_has_the_headers(file):
    """nginx forgets the headers of a server wherever a location adds one of its own."""
    text = (NGINX / file).read_text()
    (page,) = re.findall(r"location / \{(.*?)\n    \}", text, re.S)
    assert "include runcast-headers.conf;" in page
    assert "Host $http_host" in page
    assert "server_tokens off;" in text
    assert text.index("(metrics|agent/|") < text.index("location / {")


def test_the_server_with_tls_asks_for_tls_for_a_year():
    text = (NGINX / "runcast.conf").read_text()
    assert 'Strict-Transport-Security "max-age=31536000" always;' in text
    assert "ssl_protocols TLSv1.2 TLSv1.3;" in text
