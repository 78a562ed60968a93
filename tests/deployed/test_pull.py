"""Tests of pull workers against the deployed stack, each in a separate process."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from duetime.domain.operating_parameters import MAX_CLOCK_DIFFERENCE
from tests.waiting import PATIENCE_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime_client import Client, Task
    from duetime_local.stack import Stack

TYPE = "pulled"
LEASE_SECONDS = 5
SOON = timedelta(minutes=5)
"""The longest time after a dead worker's lease and the clock margin until another worker must have the task."""
WORKER = """
import time
from pathlib import Path
from duetime_client.worker import Worker

worker = Worker(concurrency=1, lease_seconds={lease}, wait_seconds=5, stop_seconds=60, name="{name}")

@worker.task("pulled")
def sleep(context, payload):
    Path("begun").touch()
    context.progress(1)
    if context.attempt == 1:
        time.sleep(payload["first"])
    return {{"by": "{name}", "attempt": context.attempt}}
"""


@contextmanager
def worker(stack: Stack, folder: Path, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """The process of a worker with this name, started by the published command."""
    (folder / f"{name}.py").write_text(dedent(WORKER.format(lease=LEASE_SECONDS, name=name)))
    duetime = Path(sys.executable).with_name("duetime")
    arguments = ["worker", "run", f"{name}:worker", "--url", stack.ready.api_url]
    with subprocess.Popen([duetime, *arguments], cwd=folder, stderr=subprocess.DEVNULL) as process:  # noqa: S603 - ours
        try:
            yield process
            process.terminate()
            process.wait(PATIENCE_SECONDS)
        finally:
            process.kill()


def ended(client: Client, task: Task) -> Task:
    """Wait for the task's end, and return the task, also if the wait times out."""
    until(lambda: client.tasks.get(task.id).is_terminal)
    return client.tasks.get(task.id)


@pytest.mark.slow
def test_another_worker_gets_a_killed_workers_task_soon_after_its_lease(
    deployed: Stack, client: Client, tmp_path: Path
) -> None:
    """After a worker's SIGKILL, another worker gets the task soon after the lease and the clock margin, never before.

    The fast test of this behavior, in virtual time, is in `tests/scenarios/test_pull_leases.py`.
    """
    task = client.tasks.create(TYPE, payload={"first": 600})
    with worker(deployed, tmp_path, "killed") as killed:
        # From the first progress report on, the lease counts as an attempt.
        assert until(lambda: client.tasks.get(task.id).progress)
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait(PATIENCE_SECONDS)
    lease = client.tasks.get(task.id).lease
    assert lease is not None
    assert lease.worker == "killed"

    with worker(deployed, tmp_path, "heir"):
        task = ended(client, task)

    assert (task.state, task.attempt, task.fence) == ("succeeded", 2, 2)
    assert task.result == {"by": "heir", "attempt": 2}
    lost, second = client.tasks.list_attempts(task.id)
    assert (lost.outcome, second.outcome, second.worker) == ("lost", "succeeded", "heir")
    assert second.started_at is not None
    margin = timedelta(milliseconds=MAX_CLOCK_DIFFERENCE)
    assert lease.expires_at + margin <= second.started_at <= lease.expires_at + margin + SOON


@pytest.mark.slow
def test_a_task_leased_to_a_disconnected_client_succeeds_in_its_first_attempt(
    deployed: Stack, client: Client, tmp_path: Path
) -> None:
    """If a client disconnects while it waits, the API still leases the task, which succeeds in its first attempt."""
    address = urlsplit(deployed.ready.api_url)
    wanted = {"types": [TYPE], "wait_seconds": 20, "lease_seconds": 30, "acknowledge_within_seconds": 5}
    body = json.dumps({**wanted, "worker": "vanished"}).encode()
    head = f"POST {address.path}/v1/leases HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: application/json\r\n"
    with socket.create_connection((address.hostname or "", address.port or 80)) as connection:
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        connection.settimeout(2)
        with suppress(TimeoutError):
            connection.recv(1)
    task = client.tasks.create(TYPE, payload={"first": 0}, retry={"max_attempts": 1})
    assert until(lambda: (lease := client.tasks.get(task.id).lease) and lease.worker == "vanished")
    with worker(deployed, tmp_path, "heir"):
        task = ended(client, task)
    assert (task.state, task.attempt, task.fence) == ("succeeded", 1, 2)
    assert task.result == {"by": "heir", "attempt": 1}
    assert task.started_at is not None
    assert task.started_at - task.created_at >= timedelta(seconds=5)


@pytest.mark.slow
def test_a_worker_that_is_asked_to_stop_finishes_its_task_and_ends(
    deployed: Stack, client: Client, tmp_path: Path
) -> None:
    """After SIGTERM during a task, the task succeeds in its first attempt, and the process exits with code 0."""
    task = client.tasks.create(TYPE, payload={"first": 8})
    with worker(deployed, tmp_path, "patient") as process:
        # The task must also have started, because a worker that stops earlier releases the task.
        assert until((tmp_path / "begun").exists)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 0
    task = client.tasks.get(task.id)
    assert (task.state, task.attempt, task.result) == ("succeeded", 1, {"by": "patient", "attempt": 1})
