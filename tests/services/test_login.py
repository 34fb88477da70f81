"""Real logins: Streamlit's own against a provider on the loopback, and a proxy that is nginx."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest

from pricing.store.opening import open_store
from pricing.store.saved import saved_scenarios
from tests.servers.openid import CLIENT_ID, CLIENT_SECRET, provider
from tests.servers.signing_proxy import signing_proxy
from tests.support.browsing import FEW, Server
from tests.support.processes import free_port

pytestmark = pytest.mark.services

COOKIE_SECRET = "canary-cookie-s3cret-of-many-characters"
ADA = {"sub": "0001", "email": "ada@example.org"}
BOB = {"sub": "0002", "email": "bob@example.org"}
SECTION = "Saved scenarios"
NOT_THROUGH = "The proxy did not say who you are"


@pytest.fixture
def server(tmp_path):
    """A server with a store of its own, not started: its port is known, its settings are not."""
    log = tmp_path / "log"
    made = Server(log, env={"RUNCAST_DATA_DIR": str(tmp_path / "data")}, port=free_port())
    yield made
    made.stop()
    # Authlib warns of its own future when a login begins.
    assert [c for c in made.complaints() if "AuthlibDeprecationWarning" not in c] == []


@pytest.fixture
def base_url(server):
    return server.url


def body(user):
    return user.page.inner_text("body").replace("\N{WORD JOINER}", "")


def save(user, name):
    user.unfold(SECTION)
    user.type("Name", name)
    user.press("Save")


def names(folder, owner):
    store = open_store(folder=folder / "data/prices", environ={})
    return [s.name for s in saved_scenarios(store, owner=owner)]


def log_in(user, link):
    """Log in, and open a link: the first page, where that leads, searches everything."""
    with user.page.expect_navigation(url=f"{user.base_url}/"):
        user.page.get_by_role("button", name="Log in", exact=True).click()
    user.page.goto(link)
    user.settle()


def test_a_login_with_openid_connect(tmp_path, server, new_user):
    redirect = f"{server.url}/oauth2callback"
    with provider(redirect) as known:
        secrets = tmp_path / "secrets.toml"
        secrets.write_text(
            f'[auth]\nredirect_uri = "{redirect}"\ncookie_secret = "{COOKIE_SECRET}"\n'
            f'client_id = "{CLIENT_ID}"\nclient_secret = "{CLIENT_SECRET}"\n'
            f'server_metadata_url = "{known.url}/.well-known/openid-configuration"\n'
            'client_kwargs = { code_challenge_method = "S256" }\n'
        )
        server.options = (f"--secrets.files={secrets}",)
        server.start()
        ada = new_user()
        ada.open("/" + FEW)
        assert "Log in to see this page." in body(ada)
        assert ada.page.get_by_test_id("stMetric").count() == 0
        known.who = ADA
        log_in(ada, f"{server.url}/{FEW}")
        assert "gpu=H100-80GB-SXM" in ada.query()
        assert "Logged in as ada@example.org" in body(ada)
        save(ada, "Ada's own")
        short = ada.short_link()
        assert names(tmp_path, f"oidc:{known.url}#0001") == ["Ada's own"]

        known.who = BOB
        bob = new_user()
        bob.page.goto(short)
        bob.settle()
        assert "Log in to see this page." in body(bob)
        assert "open your link again after it" in body(bob)
        log_in(bob, short)
        assert bob.query() == ada.query()
        bob.unfold(SECTION)
        assert "Nothing is saved yet." in body(bob)
        assert "Ada" not in body(bob)

        with ada.page.expect_navigation(url=f"{server.url}/"):
            ada.page.get_by_role("button", name="Log out", exact=True).click()
        ada.settle()
        assert "Log in to see this page." in body(ada)
        ada.page.reload()
        ada.settle()
        assert "Log in to see this page." in body(ada)
        assert known.logins == 2
        for user in (ada, bob):  # they went to the provider, and nowhere else
            user.wrong = [w for w in user.wrong if not w.startswith(known.url)]
    said = server.log.read_text()
    assert CLIENT_SECRET not in said
    assert COOKIE_SECRET not in said


def test_a_login_whose_settings_cannot_be_read_lets_nobody_in(tmp_path, server, new_user):
    secrets = tmp_path / "secrets.toml"
    secrets.write_text("[auth\n")
    server.options = (f"--secrets.files={secrets}",)
    server.start()
    user = new_user()
    user.open("/" + FEW)
    assert "The login of this page is not set up" in body(user)
    assert user.page.get_by_test_id("stMetric").count() == 0


def test_a_login_by_a_proxy(tmp_path, server, new_user):
    server.env["RUNCAST_USER_HEADER"] = "X-Forwarded-Email"
    server.start()
    with signing_proxy(tmp_path, server.port) as url:
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{url}/{FEW}")
        assert refused.value.code == 403
        assert refused.value.read().decode() == f"Sign in, then /{FEW}"

        ada = at(new_user, url, "ada@example.org", forged="eve@example.org")
        ada.open("/" + FEW)
        assert "Logged in as ada@example.org" in body(ada)
        save(ada, "Ada's own")
        assert names(tmp_path, "proxy:ada@example.org") == ["Ada's own"]
        assert names(tmp_path, "proxy:eve@example.org") == []
        short = ada.short_link()
        assert short.startswith(url)

        bob = at(new_user, url, "bob@example.org")
        bob.page.goto(short)
        bob.settle()
        assert bob.query() == ada.query()
        bob.unfold(SECTION)
        assert "Nothing is saved yet." in body(bob)

    past = new_user()  # on the machine itself, not through the proxy
    past.open("/" + FEW)
    assert "Logged in as" not in body(past)
    past.unfold(SECTION)
    assert NOT_THROUGH in " ".join(past.notes())
    assert past.page.get_by_test_id("stMetric").count() == 4


def at(new_user, url, who, forged=""):
    """Somebody whom the proxy knows by a cookie, and who may send the proxy's own header."""
    headers = {"X-Forwarded-Email": forged} if forged else {}
    user = new_user(extra_http_headers=headers)
    user.base_url = url
    user.page.context.add_cookies([{"name": "who", "value": who, "url": url}])
    return user
