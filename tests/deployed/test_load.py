"""More requests than the deployed stack lets through."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from bench.load.keeping import kept
from bench.load.offering import NotThisMachine, Offer, made
from bench.load.squeezing import narrow_gateway, table_of_any_width
from duetime_client import Client, Retries

if TYPE_CHECKING:
    from local.stack import Stack

RATE, BURST = 1, 3
CALLERS = 2
EACH = 5
# One user, so that no cold start of a second process stands between its requests.
TOO_MUCH = Offer("Creator", 30, seconds=4, users=1, delay_seconds=1)

pytestmark = pytest.mark.deployed


def test_what_a_narrow_gateway_turns_away_is_not_there_and_the_rest_ends(deployed: Stack, client: Client) -> None:
    """Beyond the stage's rate callers are answered 429; every task that was answered 201 runs."""
    client.create_task("echo")
    with narrow_gateway(deployed, RATE, BURST):
        came = made(deployed.ready.api_url, TOO_MUCH)
    assert set(came.answers) == {201, 429}
    assert kept(client, came.accepted).ended == len(came.accepted) == came.counted(201) > 0


def test_the_client_waits_out_a_narrow_table(deployed: Stack) -> None:
    """While the table throttles, each refusal says when to come back; the client does, and loses nothing."""
    retries = Retries(attempts=20)
    with Client(deployed.ready.api_url, retries=retries) as client, table_of_any_width(deployed) as narrow:
        client.create_task("echo")
        narrow(2 * RATE)
        with ThreadPoolExecutor(CALLERS) as threads:
            made_ = [threads.submit(client.create_task, "echo", delay_seconds=1) for _ in range(CALLERS * EACH)]
            ids = [task.result().id for task in made_]
        narrow(0)
        shut = made(deployed.ready.api_url, TOO_MUCH)
    assert set(shut.answers) == {503}
    assert shut.answers[503].coming_back == shut.answers[503].count
    with Client(deployed.ready.api_url) as client:
        assert kept(client, ids).ended == len(ids) == CALLERS * EACH


def test_a_load_is_sent_to_this_machine_only() -> None:
    """Whatever address was meant, nobody else is loaded."""
    with pytest.raises(NotThisMachine):
        made("https://api.example.org", Offer("Creator", 1))
