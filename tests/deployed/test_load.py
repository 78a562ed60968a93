"""Tests that send more requests than the deployed stack admits."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from bench.load.load_step import NotThisMachine, Offer, made
from bench.load.lost_task_check import kept
from bench.load.throttled_stack import narrow_gateway, table_of_any_width
from duetime_client import ApiError, Client, Retries

if TYPE_CHECKING:
    from duetime_local.stack import Stack

NEARLY_CLOSED, BURST = 0.01, 3
"""The rate in requests per second and the burst, both so low that some of ten requests are refused at any pace."""
TABLE_RATE = 2
CALLERS = 2
EACH = 5

pytestmark = pytest.mark.deployed


def send(stack: Stack, count: int) -> tuple[list[str], list[ApiError]]:
    """Create tasks one by one without retries, and return the identifiers of the created tasks and the refusals."""
    accepted, refused = [], []
    with Client(stack.ready.api_url, retries=Retries(attempts=1)) as client:
        for _ in range(count):
            try:
                accepted.append(client.tasks.create("echo", delay_seconds=1).id)
            except ApiError as error:
                refused.append(error)
    return accepted, refused


@pytest.mark.slow
def test_a_request_beyond_the_stages_rate_creates_no_task(deployed: Stack, client: Client) -> None:
    """Beyond the stage's rate, the response is 429 and no task is created; every task with the response 201 runs."""
    with narrow_gateway(deployed, NEARLY_CLOSED, BURST):
        accepted, refused = send(deployed, 10)
    assert {error.status for error in refused} == {429}
    assert kept(client, accepted).ended == len(accepted) >= BURST


@pytest.mark.slow
def test_the_client_waits_while_the_table_throttles_and_loses_no_task(deployed: Stack) -> None:
    """While the table throttles requests, each refusal says when to retry; the client waits and loses no task.

    The fast tests of the client's retries are in `tests/client/test_retries.py`.
    """
    retries = Retries(attempts=20)
    with Client(deployed.ready.api_url, retries=retries) as client, table_of_any_width(deployed) as narrow:
        client.tasks.create("echo")
        narrow(TABLE_RATE)
        with ThreadPoolExecutor(CALLERS) as threads:
            made_ = [threads.submit(client.tasks.create, "echo", delay_seconds=1) for _ in range(CALLERS * EACH)]
            ids = [task.result().id for task in made_]
        narrow(0)
        accepted, refused = send(deployed, 5)
    assert (accepted, [error.status for error in refused]) == ([], [503] * 5)
    assert all(error.retry_after for error in refused)
    with Client(deployed.ready.api_url) as client:
        assert kept(client, ids).ended == len(ids) == CALLERS * EACH


def test_a_load_is_never_sent_to_another_machine() -> None:
    """The load test refuses to send its load to another machine."""
    with pytest.raises(NotThisMachine):
        made("https://api.example.org", Offer("Creator", 1))
