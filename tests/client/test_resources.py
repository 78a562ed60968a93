"""Tests operations grouped by resource, such as `client.tasks.create(...)` and `client.schedules.pause(...)`."""

from __future__ import annotations

from inspect import getmembers, signature
from typing import TYPE_CHECKING

import pytest

from duetime_client import AsyncClient, Client
from duetime_client.resource import AsyncResource, Resource, SyncResource
from tests.client.deployment import Answer
from tests.client.test_contract import METHODS

if TYPE_CHECKING:
    from tests.client.deployment import Deployment


def _resources(client: Client | AsyncClient) -> dict[str, Resource]:
    return {name: value for name, value in getmembers(client) if isinstance(value, Resource)}


def test_both_clients_have_the_same_resources() -> None:
    """Each resource exists under the same name in the blocking and in the asynchronous client."""
    client, async_client = (_resources(made("http://localhost")) for made in (Client, AsyncClient))
    assert client.keys() == async_client.keys()
    for name, resource in client.items():
        assert isinstance(resource, SyncResource)
        assert isinstance(async_client[name], AsyncResource)
        assert type(resource).__mro__[1] is type(async_client[name]).__mro__[1], "one source"


@pytest.mark.parametrize("method", sorted(METHODS))
def test_the_help_of_a_method_shows_parameters_and_documentation(client: Client, method: str) -> None:
    """`help(client.tasks.create)` shows the method's parameters and documentation."""
    resource, name = method.split(".")
    found = getattr(getattr(client, resource), name)
    assert found.__doc__
    assert found.__name__ == name
    assert "self" not in signature(found).parameters


def test_a_task_is_created_read_and_waited_for(client: Client, deployment: Deployment) -> None:
    """Creating a task, reading it, and waiting for a task that has ended each send one request."""
    task = client.tasks.create("report", payload={"month": "2026-11"})
    assert client.tasks.get(task.id).payload == {"month": "2026-11"}
    deployment.tasks[task.id]["state"] = "succeeded"
    assert client.tasks.wait(task.id).state == "succeeded"
    assert [each.method for each in deployment.received] == ["POST", "GET", "GET"]


def test_a_task_is_polled_at_the_interval_suggested_by_the_api(
    client: Client, deployment: Deployment, waits: list[float]
) -> None:
    """A task due in an hour is polled every 30 s instead of 5 s, and pauses for a due task grow beyond 3 s."""
    far = client.tasks.create("report", delay_seconds=3600)
    due = client.tasks.create("report")
    for task, polls in ((far, 2), (due, 10)):
        document = deployment.tasks[task.id]
        deployment.scripted.extend([Answer(200, dict(document), {"Retry-After": "30"})] * polls)
        deployment.scripted.append(Answer(200, {**document, "state": "succeeded"}))
        client.tasks.wait(task.id)
    assert waits[:2] == [30, 30]
    assert [round(each, 1) for each in waits[2:]] == [0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.3, 3.4, 5.1, 7.7]


def test_a_schedule_is_created_with_its_name_as_a_keyword(client: Client, deployment: Deployment) -> None:
    """The keyword argument `name` is sent as the name in the body."""
    with pytest.raises(Exception, match="404"):
        client.schedules.create(name="nightly", cron="30 1 * * *", task={"type": "report"})
    assert deployment.received[-1].document["name"] == "nightly"
