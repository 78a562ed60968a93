"""Tests of the webhook receiver, which accepts only callbacks that the deployment has signed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from standardwebhooks.webhooks import Webhook

from webhooks import receive

SECRET = "whsec_c2VjcmV0IG9mIHRoZSB0ZXN0cyBvZiB0aGUgc2hvcA=="
BODY = b'{"type": "task.succeeded", "data": {"id": "01M7YXRMFX00364F3R8C6BAZYP", "state": "succeeded"}}'


def signed(body: bytes = BODY, secret: str = SECRET, age: timedelta = timedelta()) -> dict[str, str]:
    """Return the headers of a signed callback."""
    sent = datetime.now(tz=UTC) - age
    signature = Webhook(secret).sign("01M7YXRMFX00364F3R8C6BAZYP-1-callback", sent, body.decode())
    return {
        "webhook-id": "01M7YXRMFX00364F3R8C6BAZYP-1-callback",
        "webhook-timestamp": str(int(sent.timestamp())),
        "webhook-signature": signature,
    }


def test_a_signed_callback_is_accepted_even_if_repeated() -> None:
    """A signed callback is accepted, and receiving it again has no effect."""
    ended: dict[str, str] = {}
    assert [receive(SECRET, signed(), BODY, ended) for _ in range(2)] == [204, 204]
    assert ended == {"01M7YXRMFX00364F3R8C6BAZYP": "succeeded"}


def test_a_callback_without_a_valid_signature_is_refused() -> None:
    """A callback with a wrong secret or body, an old timestamp or no signature is rejected and not recorded."""
    ended: dict[str, str] = {}
    other = "whsec_YW5vdGhlciBzZWNyZXQsIG9mIHNvbWVib2R5IGVsc2U="
    forged = BODY.replace(b"succeeded", b"failed")
    attempts = [
        (signed(secret=other), BODY),
        (signed(), forged),
        (signed(age=timedelta(minutes=10)), BODY),
        ({}, BODY),
    ]
    assert [receive(SECRET, headers, body, ended) for headers, body in attempts] == [401] * 4
    assert ended == {}
