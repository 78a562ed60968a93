"""Handlers of a team whose package has its own function, as set by `handlers_packages` in `infra/environments.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.handlers import handler

if TYPE_CHECKING:
    from duetime.handlers import Context


@handler("billing.charge", timeout_seconds=120)
def charge(context: Context, payload: dict[str, Any]) -> dict[str, Any]:
    """Charge an amount only once over all attempts, and create a task of another package that sends the receipt."""
    receipt: dict[str, Any] = context.step("charge", _charged, payload["amount"], context.idempotency_key)
    context.progress(50, "charged")
    sent = context.client.tasks.create("echo", payload=receipt)
    return {**receipt, "sent_by": sent.id}


def _charged(amount: int, key: str) -> dict[str, Any]:
    """Simulate a call of a bank that charges only once for each key."""
    return {"amount": amount, "key": key}
