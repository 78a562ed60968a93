"""Tests of the logs of attempts on the deployed stack, as `duetime logs` reads them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from duetime_client.logs import LogFilter
from duetime_local.logs import reader_at
from tests.waiting import until

if TYPE_CHECKING:
    import pytest

    from duetime_client import Client
    from duetime_local.stack import Stack


def test_the_log_lines_of_an_attempt_are_found_by_task_id(
    deployed: Stack, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The traceback of a failed handler is stored with the attempt and in the worker's log, with the task's fields."""
    payload = {"job": "probe", "work_ms": 0, "fail_times": 9}
    task = client.tasks.create("ci.job", payload=payload, retry={"max_attempts": 1}, wait_seconds=20)
    assert until(lambda: client.tasks.get(task.id).state == "failed")
    (attempt,) = client.tasks.list_attempts(task.id)
    assert attempt.error is not None
    assert attempt.error.traceback is not None
    for name in deployed.emulator.environ:
        # The test restores this variable afterwards, whatever the log reader has set.
        monkeypatch.setenv(name, os.environ.get(name, ""))
    reader = reader_at(deployed.ready.aws_endpoint_url, LogFilter(task_id=task.id))
    lines = until(lambda: [line for line in reader.read(0) if line.traceback])
    assert [(line.fields["attempt"], line.fields["type"]) for line in lines] == [(1, "ci.job")]
    assert lines[0].traceback.splitlines()[-1] == attempt.error.traceback.splitlines()[-1]
