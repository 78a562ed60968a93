"""The web site's use of duetime: it creates tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime_client import Conflict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime_client import Client

QUIET_SECONDS = 1800
"""How long a cart must be unchanged before its owner is reminded."""


def cart_changed(client: Client, cart: dict[str, str]) -> None:
    """Send a reminder of an abandoned cart: each change postpones the same e-mail (a debounce).

    The cart keeps the id of its reminder. A reminder that was already sent cannot be postponed: the change creates a
    new one.
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
    """Cancel the reminder of a cart that was bought."""
    if "reminder" in cart:
        try:
            client.tasks.cancel(cart.pop("reminder"), reason="bought")
        except Conflict:
            return


def place_order(client: Client, order: Mapping[str, Any], callback_url: str) -> str:
    """Run the steps of an order; if one fails for good, those before it are undone. The id of the topology.

    A repeated request of the same order is the same topology.
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
    """The nightly report, at half past one by London's clocks.

    In spring that time does not exist in one night: `shift_forward` runs it when the clocks have changed, instead of
    not at all. In autumn it occurs twice, and the report runs once.
    """
    client.schedules.create(
        name="nightly-report",
        cron="30 1 * * *",
        timezone="Europe/London",
        dst_gap="shift_forward",
        task={"type": "report", "payload": {}},
    )
