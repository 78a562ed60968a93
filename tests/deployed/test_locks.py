"""Tests of locks on the deployed stack, with real processes and real queues."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tests.deployed.test_path import TYPE, ended, reporting, soon
from tests.functions.receivers import receiving
from tests.waiting import until

if TYPE_CHECKING:
    from datetime import datetime

    from duetime_client import Client, LockSpec, Task
    from duetime_local.demo_receiver import Receiver


def span(client: Client, task: Task) -> tuple[datetime, float]:
    """The start of the last attempt, and the attempt's duration in milliseconds."""
    last = client.tasks.list_attempts(task.id)[-1]
    assert last.started_at is not None
    assert last.duration_ms is not None
    return last.started_at, last.duration_ms


@pytest.mark.slow
def test_tasks_of_one_lock_run_one_after_the_other_in_order(client: Client, counter: Receiver) -> None:
    """Eight tasks that wait for the lock of a ninth task run one at a time, in order of their due times."""
    lock: LockSpec = {"key": "deployed"}
    with receiving() as endpoint:
        # The target only accepts the work, so the task holds the lock until the end is reported.
        endpoint.answers["PUT", "/first?action=run"] = (202, b"")
        first = client.tasks.create("first", target={"kind": "http", "url": f"{endpoint.url}/first"}, lock=lock)
        assert until(lambda: client.tasks.get(first.id).awaiting_notification)
    dues = [soon(3 + number / 100) for number in range(8)]
    # The task that is due last is created first, because the order of creation must not matter.
    waiting = [
        client.tasks.create(TYPE, **reporting(counter, work_ms=50, due_at=due, lock=lock)) for due in reversed(dues)
    ]
    assert until(lambda: len(client.locks.get("deployed").waiters) == len(dues))
    client.tasks.notify_success(first.id, client.tasks.get(first.id).fence)
    tasks = [first, *waiting]
    assert {ended(client, task).state for task in tasks} == {"succeeded"}
    spans = sorted(span(client, task) for task in tasks)
    for (began, took), (next_began, _) in pairwise(spans):
        assert (next_began - began).total_seconds() * 1000 >= took
    by_start = sorted(tasks, key=lambda task: span(client, task)[0])
    assert [task.due_at for task in by_start] == sorted(task.due_at for task in tasks)
    assert client.locks.get("deployed").holders == []
