"""The functions of the web site that create tasks and schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime_client import Conflict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime_client import Client

QUIET_SECONDS = 1800
"""How long a cart must be unchanged before the customer is reminded, in seconds."""


def cart_changed(client: Client, cart: dict[str, str]) -> None:
    """Schedule a reminder for an abandoned cart; each change postpones the same e-mail (a debounce).

    The cart stores the id of the reminder's task. A reminder that was already sent cannot be postponed, so the change
    creates a new reminder.
    """
    if "reminder" in cart:
        try:
            client.tasks.update(cart["reminder"], delay_seconds=QUIET_SECONDS, reason="the cart was changed")
        except Conflict:
            del cart["reminder"]
    if "reminder" not in cart:
        text = f"Your cart {cart['id']} is waiting for you."
        task = client.tasks.create(
            "email", payload={"to": cart["email"], "text": text}, delay_seconds=QUIET_SECONDS, tags={"cart": cart["id"]}
        )
        cart["reminder"] = task.id


def cart_bought(client: Client, cart: dict[str, str]) -> None:
    """Cancel the reminder for a cart that was bought."""
    if "reminder" in cart:
        try:
            client.tasks.cancel(cart.pop("reminder"), reason="bought")
        except Conflict:
            return


def place_order(client: Client, order: Mapping[str, Any], callback_url: str) -> str:
    """Run the steps of an order, and return the topology's id.

    If a step fails for good, the earlier steps are undone. A repeated request for an order returns the same topology.
    """
    retry = {"max_attempts": 3, "initial_seconds": 10}
    nodes = {
        "reserve": {"type": "order.reserve", "payload": order, "retry": retry},
        "charge": {"type": "order.charge", "payload": order, "retry": retry, "depends_on": ["reserve"]},
        "ship": {"type": "order.ship", "payload": order, "retry": retry, "depends_on": ["charge"]},
    }
    body = {"name": f"order-{order['order']}", "on_failure": "rollback", "callback_url": callback_url, "nodes": nodes}
    return client.topologies.create(body, idempotency_key=f"order-{order['order']}").id


def declare_schedules(client: Client) -> None:
    """Create the schedule of the nightly report, at half past one in London.

    In one night in spring this time does not exist; with `shift_forward`, the report runs as soon as the clocks have
    changed. In one night in autumn the time occurs twice, but the report runs once.
    """
    client.schedules.create(
        name="nightly-report",
        cron="30 1 * * *",
        timezone="Europe/London",
        dst_gap="shift_forward",
        task={"type": "report", "payload": {}},
    )
