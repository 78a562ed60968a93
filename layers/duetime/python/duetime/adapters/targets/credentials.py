"""What a call proves its sender with: secrets of Secrets Manager, and tokens that are fetched with them.

Secrets and tokens are kept in this process only, and are read again after five minutes, or when an endpoint answers
401. Source: RFC 6749, 4.4 (client credentials) and 2.3.1 (how a client authenticates); RFC 7617 (basic).
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import quote_plus, urlencode, urlsplit

from botocore.exceptions import BotoCoreError, ClientError

from duetime.adapters.targets.http_messages import Call, HttpResponse
from duetime.adapters.targets.secret_formats import CredentialUnavailable, client_of, user_and_password
from duetime.domain.tasks.http_requests import AuthScheme
from duetime.domain.times import MINUTE, SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from mypy_boto3_secretsmanager import SecretsManagerClient

    from duetime.adapters.targets.http_messages import CallAuth
    from duetime.domain.tasks.allowed_targets import HttpSecrets
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Clock

_KEPT_FOR = 5 * MINUTE
_FRESH_FOR = 5 * SECOND
"""What was read so lately is not read again because of a 401: an endpoint that answers nothing else would have every
call read it."""
_TOKEN_MARGIN = MINUTE
_TOKEN_LIFE = 300
"""Seconds that a token is used whose life is not told."""
_TOKEN_BYTES = 65_536
_OK = 200
_VISIBLE = re.compile(r"[!-~]([ -~]*[!-~])?")


class CredentialRefused(Exception):
    """The settings do not let a call use its secret."""


@dataclass(frozen=True, slots=True)
class Credential:
    """What a call proves its sender with.

    Attributes:
        headers: what is sent.
        secrets: the texts that nobody else must see.
        made_at: when it was read or fetched.
    """

    headers: Mapping[str, str]
    secrets: tuple[str, ...]
    made_at: Millis


@dataclass(frozen=True, slots=True)
class _Kept:
    """A secret or token, and how long it is used."""

    text: str
    read_at: Millis
    until: Millis


class Credentials:
    """Makes the headers that prove who sends a call.

    Args:
        client: a client of Secrets Manager, made when it is first needed.
        allowed: the secrets that the settings let calls use.
        reachable: hosts that may be reached although they are not public, without TLS, too.
        clock: the time.
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
        """What a call is sent with.

        Args:
            call: the call.
            auth: the secret that it names.
            send: makes a call that fetches a token, under the rules and the time limit of the call itself.

        Raises:
            CredentialRefused: its secret is not for it.
            CredentialUnavailable: its secret cannot be read or used, or no token is given.
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
        """What a call is sent with after it was answered 401; nothing if that would be what it was sent with.

        Raises:
            CredentialRefused: as by `of`.
            CredentialUnavailable: as by `of`.
        """
        if self._clock.now() - used.made_at < _FRESH_FOR:
            return None
        self._forget(self._values, auth.secret)
        self._tokens.pop((auth.owner, auth.secret), None)
        found = self.of(call, auth, send)
        return None if found.headers == used.headers else found

    def _forget(self, kept: dict[str, _Kept], key: str) -> None:
        """Have a value read again; should that fail, it is still used."""
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
            # The secret may have been replaced since it was read.
            self._forget(self._values, auth.secret)
            reply = self._granted(call, auth, send)
        if reply is None:
            raise CredentialUnavailable(f"the client of the secret {auth.secret!r} is given no token")
        text, seconds = reply
        life = seconds * SECOND
        token = self._tokens[key] = _Kept(text, now, now + max(life - _TOKEN_MARGIN, life // 2))
        return token

    def _granted(self, call: Call, auth: CallAuth, send: Callable[[Call], HttpResponse]) -> tuple[str, int] | None:
        """A token and its life in seconds; nothing if the client is refused.

        Raises:
            CredentialUnavailable: there is no usable answer.
        """
        client = client_of(auth.secret, self._value(auth.secret).text)
        answer = send(_token_call(call, client, self._reachable))
        if answer.status in {400, 401, 403}:
            return None
        try:
            told = json.loads(answer.body) if answer.status == _OK else {}
            token, seconds = str(told["access_token"]), int(told.get("expires_in") or _TOKEN_LIFE)
        except (ValueError, TypeError, LookupError, AttributeError):
            why = f"{_host(client)} gave no token: it answered {answer.status}"
            raise CredentialUnavailable(why) from None
        return token, seconds


def _credential(auth: CallAuth, secret: str, at: Millis, header: str, value: str) -> Credential:
    if _VISIBLE.fullmatch(value) is None or not secret:
        raise CredentialUnavailable(f"the secret {auth.secret!r} is no text that a header can hold")
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
    return "it holds no text" if isinstance(error, KeyError) else type(error).__name__
