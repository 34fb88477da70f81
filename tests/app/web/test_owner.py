"""Who is asking: nobody but one person, a login, a proxy; every doubt is no owner."""

import hashlib

import pytest
from streamlit.testing.v1 import AppTest

from app.web import owner
from app.web.owner import LOCAL, NoOwnerError, Owner, of_claims, of_header

ADA = {"is_logged_in": True, "iss": "https://id.example", "sub": "0001"}
HEADER = "X-Forwarded-Email"
SECRET = "canary-proxy-s3cret"


def header_owner(*values, header=HEADER, address="127.0.0.1", secret="", sent=()):
    headers = {HEADER.lower(): list(values), owner.SECRET_HEADER.lower(): list(sent)}
    return of_header(header, headers=headers, address=address, secret=secret)


# --- a login -------------------------------------------------------------------------------------


def test_a_person_is_issuer_and_subject_whatever_the_address_says():
    ada = of_claims(ADA | {"email": "ada@example.org", "email_verified": False})
    assert ada == Owner("oidc:https://id.example#0001", "ada@example.org")
    again = of_claims(ADA | {"email": "new@example.org"})
    other = of_claims(ADA | {"sub": "0002", "email": "ada@example.org"})
    elsewhere = of_claims(ADA | {"iss": "https://other.example"})
    assert again.id == ada.id
    assert len({ada.id, other.id, elsewhere.id}) == 3
    assert of_claims(ADA | {"email": "a\nb", "name": "Ada"}).name == "Ada"
    assert of_claims(ADA).name == "0001"


def test_a_long_subject_is_its_hash():
    long = of_claims(ADA | {"sub": "x" * 255})
    text = "oidc:https://id.example#" + "x" * 255
    assert long.id == "oidc:" + hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    "claims",
    [
        {},
        {"is_logged_in": False},
        ADA | {"is_logged_in": "yes"},
        ADA | {"sub": None},
        ADA | {"sub": " "},
        ADA | {"sub": 7},
        ADA | {"iss": "a\x00b"},
        {"is_logged_in": True, "email": "ada@example.org"},
    ],
)
def test_a_login_that_does_not_say_who_is_nobody(claims):
    with pytest.raises(NoOwnerError):
        of_claims(claims)


# --- a proxy -------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", "::1", "127.0.0.5"])
def test_a_proxy_of_this_machine_is_believed(address):
    found = header_owner("ada@example.org", address=address)
    assert found == Owner("proxy:ada@example.org", "ada@example.org")
    assert not found.is_local


@pytest.mark.parametrize("address", [None, "", "0.0.0.0", "::", "10.0.0.5", "example.org"])
def test_a_server_that_others_reach_needs_a_secret(address):
    with pytest.raises(NoOwnerError, match="listens on more than this machine"):
        header_owner("ada@example.org", address=address)
    given = {"address": address, "secret": SECRET}
    assert header_owner("ada@example.org", sent=[SECRET], **given).name == "ada@example.org"
    for sent in ([], [""], [SECRET + "x"], [SECRET, SECRET], ["ä" * 20]):
        with pytest.raises(NoOwnerError, match="did not come through the proxy") as error:
            header_owner("ada@example.org", sent=sent, **given)
        assert SECRET not in str(error.value)


def test_a_secret_is_asked_for_on_a_loopback_address_too():
    with pytest.raises(NoOwnerError, match="did not come through the proxy"):
        header_owner("ada@example.org", secret=SECRET)
    with pytest.raises(NoOwnerError, match="less than 16 characters"):
        header_owner("ada@example.org", secret="short", sent=["short"])


@pytest.mark.parametrize(
    "values", [(), ("",), ("  ",), ("ada", "eve"), ("a\tb",), ("x" * 195,)], ids=repr
)
def test_a_proxy_that_does_not_say_who_is_nobody(values):
    with pytest.raises(NoOwnerError, match="did not say who you are"):
        header_owner(*values)


@pytest.mark.parametrize("header", ["X Forwarded", "X-Forwarded:", "<b>", "x" * 65])
def test_a_header_that_cannot_be_is_nobody(header):
    with pytest.raises(NoOwnerError, match="which is no name of a header"):
        header_owner("ada@example.org", header=header)


def test_nobody_becomes_the_local_owner_or_one_of_the_other_way():
    assert header_owner("local") != LOCAL
    assert header_owner("local").id == "proxy:local"
    assert of_claims(ADA).id.startswith("oidc:")


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("/oauth2/sign_out?rd=%2F", "/oauth2/sign_out?rd=%2F"),
        ("https://id.example/out", "https://id.example/out"),
        ("", None),
        ("javascript:alert(1)", None),
        ("//evil.example", None),
        ("/\\evil.example", None),
        ("/a b", None),
    ],
)
def test_only_an_address_logs_out(monkeypatch, given, taken):
    monkeypatch.setenv(owner.LOGOUT_URL, given)
    assert owner.log_out_address() == taken


# --- on a page -----------------------------------------------------------------------------------


def door():
    import streamlit as st

    from app.web import login, owner

    if login.is_open():
        login.draw()
        try:
            st.text(owner.current().id)
        except owner.NoOwnerError as e:
            st.text(str(e))


def page(secrets=None, user=None):
    shown = AppTest.from_function(door)
    if secrets is not None:
        shown.secrets["auth"] = secrets
    if user is not None:
        shown.user = user
    return shown.run()


def said(shown):
    assert not shown.exception
    return [t.value for t in shown.text]


def test_without_a_login_there_is_one_person_and_no_button():
    shown = page()
    assert (said(shown), list(shown.button), list(shown.caption)) == (["local"], [], [])


def test_a_login_is_a_door_and_shows_who_is_in():
    shown = page({"client_id": "x"})
    assert [b.label for b in shown.button] == ["Log in"]
    assert said(shown) == []
    shown = page({"client_id": "x"}, ADA | {"email": "<b>ada</b>"})
    assert said(shown) == ["oidc:https://id.example#0001"]
    assert shown.caption[0].value == "Logged in as \\<b\\>ada\\</b\\>"
    assert [b.label for b in shown.button] == ["Log out"]


def test_several_providers_are_several_buttons_and_wrong_settings_a_sentence():
    shown = page({"cookie_secret": "x", "google": {"client_id": "a"}, "okta": {"client_id": "b"}})
    assert [b.label for b in shown.button] == ["Log in with google", "Log in with okta"]
    shown.button(key="login_okta").click().run()
    assert "settings of secrets.toml are not complete" in shown.error[0].value
    assert not shown.exception
    assert "is not set up" in page({}).error[0].value


def test_a_header_that_is_missing_is_said_and_nobody_is_local(monkeypatch):
    monkeypatch.setenv(owner.USER_HEADER, HEADER)
    (sentence,) = said(page())
    assert "listens on more than this machine" in sentence or "did not say who" in sentence
    (sentence,) = said(page({"client_id": "x"}, ADA))
    assert "Both RUNCAST_USER_HEADER and [auth]" in sentence
