"""The web site's functions that create tasks and schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime_client import Conflict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime_client import Client

QUIET_SECONDS = 1800
"""How long, in seconds, a cart must be unchanged before the customer is reminded."""


def cart_changed(client: Client, cart: dict[str, str]) -> None:
    """Schedule an e-mail reminder for an abandoned cart; each change to the cart postpones the e-mail (a debounce).

    The cart stores the id of the reminder's task. A reminder that was already sent cannot be postponed, so a new
    reminder is created.
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
    """Start a topology that runs the steps of an order, and return its id.

    If a step fails permanently, the earlier steps are undone. A repeated call for the same order returns the same
    topology.
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
    """Create the schedule for the nightly report, which runs at half past one in London.

    On one night in spring, this time does not exist. With `shift_forward`, the report then runs as soon as the clocks
    have changed. On one night in autumn, the time occurs twice, but the report runs only once.
    """
    client.schedules.create(
        name="nightly-report",
        cron="30 1 * * *",
        timezone="Europe/London",
        dst_gap="shift_forward",
        task={"type": "report", "payload": {}},
    )
