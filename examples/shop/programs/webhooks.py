"""Receives the callback that duetime sends to the web site when an order has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping


def receive(secret: str, headers: Mapping[str, str], body: bytes, ended: MutableMapping[str, str]) -> int:
    """Record how an order has ended, and return the HTTP status of the response.

    The body is verified exactly as it was received, before it is parsed. A callback can arrive more than once;
    recording it again has no effect.

    Args:
        secret: the deployment's signing secret.
        headers: the request's headers.
        body: the request's body, unchanged.
        ended: the state of each topology that has ended, by id; a real shop would use a database table.
    """
    try:
        call = Webhook(secret).verify(body, dict(headers))
    except WebhookVerificationError:
        return 401
    ended[call["data"]["id"]] = call["data"]["state"]
    return 204
