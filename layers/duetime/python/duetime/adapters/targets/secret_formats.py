"""Formats of secrets: a user with a password, or an OAuth client."""

from __future__ import annotations

import json
from typing import Any


class CredentialUnavailable(Exception):
    """A secret cannot be read or used, or no token is granted for it."""


def user_and_password(name: str, text: str) -> tuple[str, str]:
    """The user's name and the password in a secret: `name:password`, or JSON of `username` and `password`.

    Raises:
        CredentialUnavailable: it has neither form.
    """
    if text.startswith("{"):
        found = _object(name, text)
        user, password = found.get("username"), found.get("password")
    else:
        user, _, password = text.partition(":")
    if not (isinstance(user, str) and isinstance(password, str) and password):
        raise CredentialUnavailable(f"the secret {name!r} has no user's name and password")
    return user, password


def client_of(name: str, text: str) -> dict[str, str]:
    """The OAuth client in a secret, and further fields of a token request, such as `scope`.

    Raises:
        CredentialUnavailable: it lacks a field of a token request.
    """
    client = _object(name, text)
    required = ("client_id", "client_secret", "token_url")
    if not all(isinstance(value, str) for value in client.values()) or any(not client.get(each) for each in required):
        raise CredentialUnavailable(f"the secret {name!r} needs the texts {', '.join(required)}")
    return client


def _object(name: str, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise CredentialUnavailable(f"the secret {name!r} is not a JSON object")
    return found
