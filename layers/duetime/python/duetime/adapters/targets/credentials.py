"""Provides credentials for calls: secrets from Secrets Manager, and tokens that are fetched with these secrets.

Secrets and tokens are kept only in this process. A secret is read again after five minutes, a token is fetched again
before it expires, and both are renewed when an endpoint answers 401.

Source: RFC 6749, 4.4 (client credentials) and 2.3.1 (how a client authenticates); RFC 7617 (basic).
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote_plus, urlencode, urlsplit

from botocore.exceptions import BotoCoreError, ClientError

from duetime.adapters.targets.http_messages import Call, HttpResponse, NoResponse
from duetime.domain.tasks.targets import AuthScheme
from duetime.domain.times import MINUTE, SECOND
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from mypy_boto3_secretsmanager import SecretsManagerClient

    from duetime.adapters.targets.http_messages import CallAuth, Reply
    from duetime.domain.tasks.allowed_targets import HttpSecrets
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Clock


class CredentialUnavailable(Exception):
    """A secret cannot be read or used, or the token endpoint grants no token for the secret."""


def user_and_password(name: str, text: str) -> tuple[str, str]:
    """Parse a secret's user name and password, from `name:password` or from JSON with `username` and `password`.

    Raises:
        CredentialUnavailable: the secret has neither form.
    """
    if text.startswith("{"):
        found = _object(name, text)
        user, password = found.get("username"), found.get("password")
    else:
        user, _, password = text.partition(":")
    if not (isinstance(user, str) and isinstance(password, str) and password):
        raise CredentialUnavailable(f"the secret {name!r} contains no user name and password")
    return user, password


def client_of(name: str, text: str) -> dict[str, str]:
    """Parse the OAuth client in a secret, with additional fields for a token request, such as `scope`.

    Raises:
        CredentialUnavailable: the secret is not a JSON object of strings with the fields of a token request.
    """
    client = _object(name, text)
    required = ("client_id", "client_secret", "token_url")
    if not all(isinstance(value, str) for value in client.values()) or any(not client.get(each) for each in required):
        raise CredentialUnavailable(f"the secret {name!r} needs the string fields {', '.join(required)}")
    return client


def _object(name: str, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise CredentialUnavailable(f"the secret {name!r} is not a JSON object")
    return found


_KEPT_FOR = 5 * MINUTE
_FRESH_FOR = 5 * SECOND
"""A value that was read less than this time ago, in milliseconds, is not read again after a 401. Otherwise, an endpoint
that always returns 401 would cause a read for every call.
"""
_TOKEN_MARGIN = MINUTE
_TOKEN_LIFE = 300
"""Lifetime of a token in seconds if the response does not contain a lifetime."""
_TOKEN_BYTES = 65_536
_OK = 200
_VISIBLE = re.compile(r"[!-~]([ -~]*[!-~])?")


class CredentialRefused(Exception):
    """The settings do not allow the call to use its secret."""


@frozen
class Credential:
    """The credentials for a call.

    Attributes:
        headers: the headers to send.
        secrets: the strings that must not be stored or logged.
        made_at: when the credentials were read or fetched, in milliseconds.
    """

    headers: Mapping[str, str]
    secrets: tuple[str, ...]
    made_at: Millis


@frozen
class _Kept:
    """A cached secret or token, with its expiry."""

    text: str
    read_at: Millis
    until: Millis


class Credentials:
    """Creates the headers that authenticate a call.

    Args:
        client: returns a client for Secrets Manager, which is created at first use.
        allowed: the secrets that the settings allow.
        reachable: the non-public hosts that may be called, even without TLS.
        clock: the clock.
    """

    def __init__(
        self,
        client: Callable[[], SecretsManagerClient],
        allowed: HttpSecrets,
        reachable: Collection[str],
        clock: Clock,
    ) -> None:
        self._client = client
        self._allowed = allowed
        self._reachable = reachable
        self._clock = clock
        self._values: dict[str, _Kept] = {}
        self._tokens: dict[tuple[str, str], _Kept] = {}

    def of(self, call: Call, auth: CallAuth, send: Callable[[Call], HttpResponse]) -> Credential:
        """The credentials for a call.

        Args:
            call: the call.
            auth: the name of the call's secret, and how to send it.
            send: makes the call that fetches a token, with the same rules and time limit as the call itself.

        Raises:
            CredentialRefused: the call may not use its secret.
            CredentialUnavailable: the secret cannot be read or used, or no token is granted.
        """
        refusal = self._allowed.refusal_of_owner(auth.secret, auth.owner)
        if why := refusal or self._allowed.refusal(auth.secret, call.url, self._reachable):
            raise CredentialRefused(f"the secret {why}")
        if auth.scheme == AuthScheme.OAUTH_CLIENT:
            token = self._token(call, auth, send)
            return _credential(auth, token.text, token.read_at, "Authorization", f"Bearer {token.text}")
        kept = self._value(auth.secret)
        if auth.scheme == AuthScheme.BASIC:
            user, password = user_and_password(auth.secret, kept.text)
            value = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
            return _credential(auth, password, kept.read_at, "Authorization", value)
        if auth.scheme == AuthScheme.BEARER:
            return _credential(auth, kept.text, kept.read_at, "Authorization", f"Bearer {kept.text}")
        return _credential(auth, kept.text, kept.read_at, auth.header, kept.text)

    def renewed(
        self, call: Call, auth: CallAuth, used: Credential, send: Callable[[Call], HttpResponse]
    ) -> Credential | None:
        """The new credentials for a call after a 401; `None` if the credentials are recent or did not change.

        Raises:
            CredentialRefused: as in `of`.
            CredentialUnavailable: as in `of`.
        """
        if self._clock.now() - used.made_at < _FRESH_FOR:
            return None
        self._forget(self._values, auth.secret)
        self._tokens.pop((auth.owner, auth.secret), None)
        found = self.of(call, auth, send)
        return None if found.headers == used.headers else found

    def _forget(self, kept: dict[str, _Kept], key: str) -> None:
        """Let a value be read again at its next use. If this read fails, the old value is still used."""
        if key in kept:
            kept[key] = replace(kept[key], until=0)

    def _value(self, name: str) -> _Kept:
        now, kept = self._clock.now(), self._values.get(name)
        if kept is None or now >= kept.until:
            try:
                text = self._client().get_secret_value(SecretId=self._allowed.by_name[name].arn)["SecretString"].strip()
                kept = self._values[name] = _Kept(text, now, now + _KEPT_FOR)
            except (ClientError, BotoCoreError, KeyError) as error:
                if kept is None:
                    raise CredentialUnavailable(f"the secret {name!r} cannot be read: {_reason(error)}") from error
        return kept

    def _token(self, call: Call, auth: CallAuth, send: Callable[[Call], HttpResponse]) -> _Kept:
        now, key = self._clock.now(), (auth.owner, auth.secret)
        token = self._tokens.get(key)
        if token is not None and now < token.until:
            return token
        reply = self._granted(call, auth, send)
        if reply is None:
            # The secret is read again, because it may have been replaced since the last read.
            self._forget(self._values, auth.secret)
            reply = self._granted(call, auth, send)
        if reply is None:
            raise CredentialUnavailable(f"the client of the secret {auth.secret!r} gets no token")
        text, seconds = reply
        life = seconds * SECOND
        token = self._tokens[key] = _Kept(text, now, now + max(life - _TOKEN_MARGIN, life // 2))
        return token

    def _granted(self, call: Call, auth: CallAuth, send: Callable[[Call], HttpResponse]) -> tuple[str, int] | None:
        """Fetch a token and its lifetime in seconds; `None` if the client is rejected.

        Raises:
            CredentialUnavailable: the response contains no valid token.
        """
        client = client_of(auth.secret, self._value(auth.secret).text)
        answer = send(_token_call(call, client, self._reachable))
        if answer.status in {400, 401, 403}:
            return None
        try:
            granted = json.loads(answer.body) if answer.status == _OK else {}
            token, seconds = str(granted["access_token"]), int(granted.get("expires_in") or _TOKEN_LIFE)
        except (ValueError, TypeError, LookupError, AttributeError):
            why = f"{_host(client)} returned no token: it answered {answer.status}"
            raise CredentialUnavailable(why) from None
        return token, seconds


def _credential(auth: CallAuth, secret: str, at: Millis, header: str, value: str) -> Credential:
    if _VISIBLE.fullmatch(value) is None or not secret:
        raise CredentialUnavailable(
            f"the secret {auth.secret!r} is empty or contains characters that a header cannot contain"
        )
    shown = value.rpartition(" ")[2] if auth.scheme == AuthScheme.BASIC else secret
    return Credential({header: value}, tuple({secret, shown}), at)


def _token_call(call: Call, client: Mapping[str, str], reachable: Collection[str]) -> Call:
    """The request for a token."""
    parts = urlsplit(client["token_url"])
    if parts.scheme != "https" and parts.hostname not in reachable:
        raise CredentialUnavailable("the `token_url` of the secret is not an https URL")
    user = f"{quote_plus(client['client_id'])}:{quote_plus(client['client_secret'])}"
    more = {name: text for name, text in client.items() if name not in {"client_id", "client_secret", "token_url"}}
    return Call(
        id=call.id,
        method="POST",
        url=client["token_url"],
        headers={
            "Authorization": "Basic " + base64.b64encode(user.encode()).decode(),
            "Content-Type": "application/x-www-form-urlencoded",
            "Accept": "application/json",
            "User-Agent": "duetime",
        },
        body=urlencode({"grant_type": "client_credentials", **more}).encode(),
        most=_TOKEN_BYTES,
        signed=False,
    )


def _host(client: Mapping[str, str]) -> str:
    return urlsplit(client["token_url"]).hostname or ""


def _reason(error: Exception) -> str:
    if isinstance(error, ClientError):
        return str(error.response.get("Error", {}).get("Code", "unknown"))
    return "it contains no string" if isinstance(error, KeyError) else type(error).__name__


_UNAUTHORIZED = 401
_REFUSED = "SecretRefused"


class Sender(Protocol):
    """Makes one request."""

    def __call__(self, call: Call, *, credential: Credential | None = None) -> HttpResponse:
        """Make a call with its credentials."""
        ...


def authenticated_reply(
    credentials: Callable[[], Credentials] | None, call: Call, auth: CallAuth, send: Sender
) -> Reply:
    """Make a call with a secret. After a 401, read the secret again, and if it has changed, repeat the call once.

    A request with a 401 response was not carried out (Source: RFC 9110, 15.5.2), so it may be sent again.
    """
    if credentials is None:
        return NoResponse(_REFUSED, "this function is not allowed to read secrets", retriable=False)
    kept = credentials()

    def send_for_token(request: Call) -> HttpResponse:
        try:
            return send(request)
        except Exception as error:  # noqa: BLE001 - its message may contain the URL, which is part of the secret
            raise CredentialUnavailable(f"no token for {auth.secret!r}: {type(error).__name__}") from None

    try:
        used = kept.of(call, auth, send_for_token)
        answer = send(call, credential=used)
        if answer.status == _UNAUTHORIZED and (renewed := kept.renewed(call, auth, used, send_for_token)):
            answer = send(call, credential=renewed)
    except CredentialRefused as error:
        return NoResponse(_REFUSED, str(error), retriable=False)
    except CredentialUnavailable as error:
        return NoResponse("SecretUnavailable", str(error))
    return answer
