"""The table's stream, the function that reads it, and the counts that it keeps, on the deployed stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime_client import Client
from tests.waiting import until

if TYPE_CHECKING:
    from local.stack import Stack

pytestmark = pytest.mark.deployed


def test_the_summary_follows_the_tasks_of_an_owner(deployed: Stack) -> None:
    """What was created, and what was cancelled since, is counted within seconds."""
    with Client(deployed.ready.api_url, owner="counted") as client:
        tasks = [client.create_task("ci.job", delay_seconds=3600) for _ in range(5)]
        client.cancel_task(tasks[0].id)
        until(lambda: client.get_summary().states == {"cancelled": 1, "scheduled": 4})
        assert client.get_summary().total == len(tasks)
