"""The handlers of a team whose package runs in its own function.

The setting `handlers_packages` in `infra/environments.py` adds the function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.handlers import handler

if TYPE_CHECKING:
    from duetime.handlers import Context


@handler("billing.charge", timeout_seconds=120)
def charge(context: Context, payload: dict[str, Any]) -> dict[str, Any]:
    """Charge an amount only once over all attempts, and create a task for another package to send the receipt."""
    receipt: dict[str, Any] = context.step("charge", _charged, payload["amount"], context.idempotency_key)
    context.progress(50, "charged")
    sent = context.client.tasks.create("echo", payload=receipt)
    return {**receipt, "sent_by": sent.id}


def _charged(amount: int, key: str) -> dict[str, Any]:
    """Simulate a call to a bank, which charges only once for each key."""
    return {"amount": amount, "key": key}
