"""The handler for e-mails, which sends only one e-mail for each task, however many attempts the task has."""

from __future__ import annotations

from duetime.handlers import Context, handler

from shop.services import MAILBOX


@handler("email")
def send(context: Context, payload: dict[str, str]) -> None:
    """Send an e-mail with the task's id as the key, so that a repeated attempt does not send the e-mail again."""
    MAILBOX.send(context.task_id, payload["to"], payload["text"])
