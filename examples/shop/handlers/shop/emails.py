"""E-mails: one task is one e-mail, however often it is attempted."""

from __future__ import annotations

from duetime.handlers import Context, handler

from shop.services import MAILBOX


@handler("email")
def send(context: Context, payload: dict[str, str]) -> None:
    """Send an e-mail. A second attempt has the same task id, and so sends nothing."""
    MAILBOX.send(context.task_id, payload["to"], payload["text"])
