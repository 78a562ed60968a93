"""Handlers that list the secrets and public keys with which receivers verify HTTP calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.composition.invoked_functions import HttpServices
from duetime.contract.signing_secrets import KEYS, LIST, SigningKey, SigningKeyList, SigningSecret, SigningSecretList
from duetime.contract.tasks.encoding import json_text
from duetime.domain.times import to_iso

from .responses import Response, answer
from .routing import route

if TYPE_CHECKING:
    from duetime.contract.signing_secrets import SigningKeyQuery
    from duetime.domain.times import Millis

    from .requests import Request

_KEYS_CACHED = {"Cache-Control": "public, max-age=300"}
"""Responses are cached for five minutes, within which functions notice a rotation."""


def _text(at: Millis | None) -> str | None:
    return None if at is None else to_iso(at)


@route(LIST)
def list_signing_secrets(request: Request) -> Response:
    """List the caller's signing secrets."""
    found, rotates_at = composed(HttpServices).secrets_of(request.owner)
    secrets = [
        SigningSecret(secret=each.secret, public_key=each.public_key, is_current=not number)
        for number, each in enumerate(found)
    ]
    return answer(json_text(SigningSecretList(secrets=secrets, rotates_at=_text(rotates_at))))


@route(KEYS)
def list_signing_keys(request: Request[SigningKeyQuery]) -> Response:
    """List an owner's public keys."""
    owner = request.query.owner
    found, rotates_at = composed(HttpServices).secrets_of(owner)
    keys = [SigningKey(public_key=each.public_key, is_current=not number) for number, each in enumerate(found)]
    listed = SigningKeyList(owner=owner, keys=keys, rotates_at=_text(rotates_at))
    return answer(json_text(listed), headers=_KEYS_CACHED)
