"""Handlers that charge, confirm, print and publish orders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from duetime.handlers import Context, RetryIn, handler

from photo_lab.services import SERVICES, Busy, Declined

if TYPE_CHECKING:
    from duetime.handlers import RateSpec, RetryPolicy

MAIL_RATE: RateSpec = {"key": "smtp", "limit": 10}
"""The rate limit for e-mails, which is ten per second for all workers and task types together."""
MAIL_RETRY: RetryPolicy = {"max_attempts": 5, "initial_seconds": 1, "multiplier": 2, "max_seconds": 300}


@dataclass(frozen=True)
class Order:
    """A new order."""

    order: str
    email: str
    amount: int
    photos: list[str]


@handler("order.place", payload=Order)
def place(context: Context, payload: Order) -> dict[str, str]:
    """Create the tasks that charge and confirm an order, make its prints, and send a reminder in three days.

    A repeated attempt does not create a task or topology again.
    """
    contact = {"order": payload.order, "email": payload.email}
    prints = {f"resize-{number}": photo for number, photo in enumerate(payload.photos)}
    nodes: dict[str, Any] = {
        # chain(charge, confirm)
        "charge": {"type": "order.charge", "payload": {"order": payload.order, "amount": payload.amount}},
        "confirm": {"type": "order.confirm", "payload": contact, "depends_on": ["charge"], "inputs": ["charge"]},
        # chord(group(resize, …), sheet)
        **{name: {"type": "photo.resize", "payload": {"photo": photo}} for name, photo in prints.items()},
        "sheet": {
            "type": "order.sheet",
            "payload": {"order": payload.order},
            "depends_on": list(prints),
            "inputs": list(prints),
        },
    }
    # With `continue`, a declined card does not stop the prints. Celery's chain and chord were independent, too.
    graph = {"name": f"order-{payload.order}", "on_failure": "continue", "nodes": nodes}
    topology = context.client.topologies.create(graph)
    context.client.tasks.create("order.remind", payload=contact, delay_seconds=3 * 86_400)
    return {"topology": topology.id}


@handler("order.charge", retry={"max_attempts": 6}, no_retry_on=(Declined,))
def charge(context: Context, payload: dict[str, Any]) -> str:
    """Charge a card; if the bank is busy, retry in a minute."""
    try:
        return SERVICES.charge(payload["order"], payload["amount"])
    except Busy as error:
        raise RetryIn(60, str(error)) from error


@handler("order.confirm", retry=MAIL_RETRY, retry_on=(ConnectionError,), rate=MAIL_RATE)
def confirm(context: Context, payload: dict[str, str]) -> None:
    """Send the receipt to the customer."""
    SERVICES.mail(payload["email"], f"order {payload['order']}: {context.inputs['charge']}")


@handler("order.remind", retry=MAIL_RETRY, retry_on=(ConnectionError,), rate=MAIL_RATE)
def remind(context: Context, payload: dict[str, str]) -> str:
    """Send a reminder if the order has not been paid."""
    if payload["order"] in SERVICES.paid:
        return "paid"
    SERVICES.mail(payload["email"], f"please pay order {payload['order']}")
    return "reminded"


@handler("photo.resize", timeout_seconds=300, priority="high", retry_on=())
def resize(context: Context, payload: dict[str, Any]) -> str:
    """Create the file for a print."""
    return f"{payload['photo']}@{payload.get('width', 1200)}"


@handler("order.sheet", retry_on=())
def contact_sheet(context: Context, payload: dict[str, str]) -> int:
    """Put all prints on a contact sheet, and create the task that publishes the prints."""
    files = list((context.inputs or {}).values())
    SERVICES.sheets[payload["order"]] = files
    context.client.tasks.create("order.publish", payload={"order": payload["order"], "files": files})
    return len(files)


@handler("order.publish", retry={"max_attempts": 3, "initial_seconds": 30, "multiplier": 1})
def publish(context: Context, payload: dict[str, Any]) -> None:
    """Upload the files only once over all attempts, and send an e-mail."""
    context.step("upload", SERVICES.upload, payload["order"], payload["files"])
    SERVICES.mail("archive@example.org", f"order {payload['order']}: {len(payload['files'])} files")
