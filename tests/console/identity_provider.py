"""A small OpenID Connect provider that signs in any user and requires the code flow with PKCE."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

CLIENT = "console"
_RENEWAL = "renewal"


class IdentityProvider:
    """Issues tokens and records the requests.

    Attributes:
        serial: a number that each issued token contains; the test's API should accept only `token()`.
        grants: the grant types of received requests.
        renews: whether refresh tokens are accepted.
        nonce: a value that replaces the client's nonce in tokens.
    """

    def __init__(self) -> None:
        self.grants: list[str] = []
        self.renews = True
        self.nonce = ""
        self.serial = 1
        self.codes: dict[str, dict[str, str]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.issuer = f"http://127.0.0.1:{self._server.server_address[1]}"
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def settings(self) -> str:
        """The console's settings for this provider."""
        return json.dumps({"issuer": self.issuer, "client_id": CLIENT, "audience": ["api", CLIENT], "origins": []})

    def token(self, nonce: str = "") -> str:
        """Return the current token, for the API's audience."""
        claims = {"iss": self.issuer, "aud": "api", "sub": "ada", "serial": self.serial, "nonce": nonce}
        return f"e30.{_encoded(json.dumps(claims).encode())}.signature"

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()

    def authorize(self, asked: dict[str, str]) -> str:
        """Return the redirect address after the sign-in."""
        assert (asked["response_type"], asked["client_id"], asked["scope"]) == ("code", CLIENT, "openid")
        assert asked["code_challenge_method"] == "S256"
        code = f"code-{len(self.codes)}"
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def grant(self, asked: dict[str, str]) -> dict[str, Any] | None:
        """Return the tokens for a code or a refresh token, or `None` if it is refused."""
        self.grants.append(asked["grant_type"])
        if asked["grant_type"] == "refresh_token":
            return self._tokens("") if self.renews and asked["refresh_token"] == _RENEWAL else None
        began = self.codes.pop(asked["code"], None)
        if began is None or began["redirect_uri"] != asked["redirect_uri"]:
            return None
        if _encoded(sha256(asked["code_verifier"].encode()).digest()) != began["code_challenge"]:
            return None
        return self._tokens(self.nonce or began["nonce"])

    def _tokens(self, nonce: str) -> dict[str, Any]:
        return {"access_token": self.token(), "id_token": self.token(nonce), "refresh_token": _RENEWAL}


def _encoded(content: bytes) -> str:
    return urlsafe_b64encode(content).decode().rstrip("=")


def _handler(provider: IdentityProvider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Serves the provider's endpoints."""

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            """Log nothing."""

        def do_GET(self) -> None:
            """Serve the configuration and the sign-in page."""
            parts = urlsplit(self.path)
            if parts.path == "/authorize":
                self.send_response(302)
                self.send_header("Location", provider.authorize(_first(parts.query)))
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            assert parts.path == "/.well-known/openid-configuration"
            urls = {f"{name}_endpoint": f"{provider.issuer}/{path}" for name, path in _PATHS.items()}
            self._answer(200, {"issuer": provider.issuer, **urls})

        def do_POST(self) -> None:
            """Serve the token endpoint."""
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            tokens = provider.grant(_first(body))
            self._answer(400 if tokens is None else 200, tokens or {"error": "invalid_grant"})

        def _answer(self, status: int, content: dict[str, Any]) -> None:
            text = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    return Handler


_PATHS = {"authorization": "authorize", "token": "token"}


def _first(query: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(query).items()}
