"""The operations of the API by resource: each method of the client is one of a resource, and the same."""

from __future__ import annotations

from inspect import getmembers, ismethod
from typing import TYPE_CHECKING

import pytest

from duetime_client import resources

if TYPE_CHECKING:
    from duetime_client import Client
    from tests.client.deployment import Deployment

NAMES = {
    "bulk_operations": resources.BulkOperationResource,
    "calendars": resources.CalendarResource,
    "dead_letters": resources.DeadLetterResource,
    "leases": resources.LeaseResource,
    "locks": resources.LockResource,
    "schedules": resources.ScheduleResource,
    "switches": resources.SwitchResource,
    "tasks": resources.TaskResource,
    "topologies": resources.TopologyResource,
}
OF_THE_CLIENT = {"close", "watch", "create_watch_ticket", "get_summary", "list_owner_summaries"}
"""What is about no resource."""


def _operations(resource: object) -> dict[str, object]:
    return {name: value for name, value in getmembers(resource, ismethod) if not name.startswith("_")}


def test_every_operation_is_in_a_resource(client: Client) -> None:
    """A method that is added to the client is added to a resource, too: to `client/duetime_client/resources.py`."""
    methods = {name for name in _operations(client) if name not in OF_THE_CLIENT}
    found = {
        value.__name__  # type: ignore[attr-defined]  # of a method
        for resource in NAMES
        for value in _operations(getattr(client, resource)).values()
    }
    assert methods - found == set()


@pytest.mark.parametrize("name", NAMES)
def test_a_resource_is_made_once(client: Client, name: str) -> None:
    """It is typed, and the same whenever it is asked for."""
    resource = getattr(client, name)
    assert type(resource) is NAMES[name]
    assert getattr(client, name) is resource


def test_a_task_is_created_read_and_waited_for(client: Client, deployment: Deployment) -> None:
    """The short names send the requests of the long ones."""
    task = client.tasks.create("report", payload={"month": "2026-11"})
    assert client.tasks.get(task.id).payload == {"month": "2026-11"}
    deployment.tasks[task.id]["state"] = "succeeded"
    assert client.tasks.wait(task.id).state == "succeeded"
    assert [each.method for each in deployment.received] == ["POST", "GET", "GET"]


def test_a_schedule_is_created_with_its_name_as_a_keyword(client: Client, deployment: Deployment) -> None:
    """`name=` is the body's name."""
    with pytest.raises(Exception, match="404"):
        client.schedules.create(name="nightly", cron="30 1 * * *", task={"type": "report"})
    assert deployment.received[-1].document["name"] == "nightly"
