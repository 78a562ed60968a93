"""A test of the table's stream, the function that reads it, and the function's counts, on the deployed stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime_client import Client
from tests.waiting import until

if TYPE_CHECKING:
    from duetime_local.stack import Stack

pytestmark = pytest.mark.deployed


def test_the_summary_follows_the_tasks_of_an_owner(deployed: Stack) -> None:
    """Creations and cancellations of an owner's tasks are counted in the summary."""
    with Client(deployed.ready.api_url, owner="counted") as client:
        tasks = [client.tasks.create("ci.job", delay_seconds=3600) for _ in range(5)]
        client.tasks.cancel(tasks[0].id)
        assert until(lambda: client.summary.get().states == {"cancelled": 1, "scheduled": 4})
        assert client.summary.get().total == len(tasks)
