"""The web site's receiver of callbacks: what duetime posts when an order has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping


def receive(secret: str, headers: Mapping[str, str], body: bytes, ended: MutableMapping[str, str]) -> int:
    """Note how an order has ended; the status of the response.

    The body is verified as it came, before anything is made of it. The same callback may come again, and is then noted
    again: that changes nothing.

    Args:
        secret: the deployment's signing secret.
        headers: of the request.
        body: of the request, unchanged.
        ended: the state of each topology that has ended, by its id: a table, in a real shop.
    """
    try:
        call = Webhook(secret).verify(body, dict(headers))
    except WebhookVerificationError:
        return 401
    ended[call["data"]["id"]] = call["data"]["state"]
    return 204
