"""Tests the client's requests for signals, and the command's output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.client.deployment import Answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

    from tests.client.deployment import Deployment

    Run = Callable[..., Result]

SENT = {"id": "01M7XZ8CGJ0013P2ZBN3YDT3DX", "sent_at": "2026-11-26T11:00:00Z", "woken": 1}


def test_the_command_sends_a_signal_and_prints_how_many_tasks_it_woke(duetime: Run, deployment: Deployment) -> None:
    """The request has an idempotency key, so that repeating the request sends no second signal."""
    deployment.scripted += [Answer(200, SENT), Answer(200, {**SENT, "woken": 0})]
    ended = duetime("signals", "send", "order.paid", "--key", "o-17", "--payload", '{"amount": 17}')
    assert (ended.exit_code, ended.stdout) == (0, "woke 1 task\n")
    request = deployment.received[0]
    assert request.document == {"name": "order.paid", "key": "o-17", "payload": {"amount": 17}}
    assert request.headers["Idempotency-Key"]
    ended = duetime("signals", "send", "order.paid", "--idempotency-key", "k")
    assert ended.stdout == "woke 0 tasks\n"
    assert deployment.received[1].document == {"name": "order.paid", "key": "", "payload": None}
    assert deployment.received[1].headers["Idempotency-Key"] == "k"


def test_a_signal_continued_in_the_background_prints_its_bulk_operation(duetime: Run, deployment: Deployment) -> None:
    """The command prints the bulk operation that wakes the other tasks in the background."""
    operation = {
        "id": SENT["id"],
        "kind": "signal",
        "state": "running",
        "created_at": SENT["sent_at"],
        "created_by": "local",
        "affected": 300,
    }
    deployment.scripted += [Answer(202, operation)]
    ended = duetime("signals", "send", "order.paid")
    assert ended.stdout == f"woke 300 tasks\nother tasks follow in the background: duetime bulk show {SENT['id']}\n"
