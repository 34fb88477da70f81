"""A small OpenID Connect provider on the loopback: discovery, authorize, token, keys, logout.

It logs in whoever `who` names without asking, as a provider does that knows its browser already.
Codes are used once, PKCE and the redirect address are checked, id tokens are signed with RS256.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT_ID, CLIENT_SECRET = "runcast", "canary-client-s3cret"


@dataclass
class Provider:
    """What it knows: its key, who is logged in, codes that are not used yet."""

    url: str
    redirect_uri: str
    who: dict[str, str] = field(default_factory=dict)  # claims of the next login
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one"}))
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    logins: int = 0

    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        }

    def authorize(self, asked: dict[str, str]) -> str:
        """Where the browser goes on, with a code."""
        given = (asked["client_id"], asked["redirect_uri"], asked["response_type"])
        if given != (CLIENT_ID, self.redirect_uri, "code") or "openid" not in asked["scope"]:
            raise ValueError(f"no request of this client: {asked}")
        code = secrets.token_urlsafe(16)
        self.codes[code] = {**asked, **{f"claim {k}": v for k, v in self.who.items()}}
        return f"{self.redirect_uri}?{urlencode({'code': code, 'state': asked['state']})}"

    def token(self, asked: dict[str, str], authorization: str) -> dict[str, Any]:
        """The tokens of a code."""
        user, _, password = _basic(authorization).partition(":")
        user, password = user or asked["client_id"], password or asked["client_secret"]
        if (user, password) != (CLIENT_ID, CLIENT_SECRET):
            raise ValueError("another client")
        given = self.codes.pop(asked["code"])
        digest = hashlib.sha256(asked["code_verifier"].encode()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != given["code_challenge"]:
            raise ValueError("another verifier")
        now = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT_ID, "iat": now, "exp": now + 600}
        if nonce := given.get("nonce"):
            claims["nonce"] = nonce
        claims |= {k.removeprefix("claim "): v for k, v in given.items() if k.startswith("claim ")}
        signed = jwt.encode({"alg": "RS256", "kid": "one"}, claims, self.key)
        self.logins += 1
        return {
            "access_token": secrets.token_urlsafe(16),
            "id_token": signed,
            "token_type": "Bearer",
            "expires_in": 600,
        }


def _basic(header: str) -> str:
    kind, _, value = header.partition(" ")
    return base64.b64decode(value).decode() if kind == "Basic" else ""


@contextmanager
def provider(redirect_uri: str) -> Iterator[Provider]:
    """A running provider that sends its users back to one address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            address = urlsplit(self.path)
            asked = dict(parse_qsl(address.query))
            if address.path == "/.well-known/openid-configuration":
                self._answer(known.metadata())
            elif address.path == "/keys":
                self._answer({"keys": [known.key.as_dict(private=False) | {"alg": "RS256"}]})
            elif address.path == "/authorize":
                self.send_response(302)
                self.send_header("Location", known.authorize(asked))
                self.end_headers()
            else:
                self.send_error(404)

        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            try:
                said = known.token(dict(parse_qsl(sent)), self.headers.get("Authorization", ""))
            except (KeyError, ValueError):
                self._answer({"error": "invalid_grant"}, status=400)
            else:
                self._answer(said)

        def _answer(self, value: object, status: int = 200) -> None:
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing on the terminal of the tests."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        known = Provider(f"http://127.0.0.1:{server.server_port}", redirect_uri)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield known
        finally:
            server.shutdown()
            thread.join()
