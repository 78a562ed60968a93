"""Bulk requests repeated by another owner, for another filter, in another deployment or after an abort."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.environment_variables import Variable
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND
from tests.scenarios.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Sequence

CANCEL = "/v1/tasks/cancel"
KEY = {"Idempotency-Key": "once"}
YOU = {"X-Duetime-Owner": "you"}
PACED: dict[str, Any] = {"filter": {"type": PLAIN}, "per_second": 1}


def made(tasks: Tasks, count: int, headers: dict[str, str] | None = None) -> list[str]:
    """Create tasks that are due in an hour; return their ids."""
    body = {"tasks": [{"type": PLAIN, "delay_seconds": 3600 + number} for number in range(count)]}
    return [each["task"]["id"] for each in tasks.ask("POST", "/v1/tasks/batch", body, headers=headers).body["results"]]


def cancelled(tasks: Tasks, ids: Sequence[str]) -> int:
    """The number of these tasks that are cancelled."""
    return sum(tasks.state(each) == "cancelled" for each in ids)


@pytest.mark.parametrize("body", [PACED, {"filter": {"type": PLAIN}}], ids=["paced", "at once"])
def test_an_idempotency_key_of_one_owner_does_not_affect_other_owners(body: dict[str, Any]) -> None:
    """If two owners send the same request with the same key, each request cancels only its owner's tasks."""
    with Tasks() as tasks:
        mine, yours = made(tasks, 5), made(tasks, 3, YOU)
        tasks.ask("POST", CANCEL, body, headers=KEY)
        tasks.run(MINUTE)
        assert (cancelled(tasks, mine), cancelled(tasks, yours)) == (5, 0)
        tasks.ask("POST", CANCEL, body, headers=KEY | YOU)
        tasks.run(MINUTE)
        assert cancelled(tasks, yours) == 3


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CANCEL, {**PACED, "filter": {"type": PLAIN, "name": "x"}}),
        (CANCEL, {**PACED, "force": True}),
        ("/v1/tasks/retry", PACED),
        ("/v1/tasks/update", {**PACED, "update": {"priority": "low"}}),
    ],
    ids=["filter", "force", "retry", "update"],
)
def test_an_idempotency_key_cannot_be_reused_for_a_different_request(path: str, body: dict[str, Any]) -> None:
    """A key cannot be reused for a different request, whether the first request is running or was aborted."""
    with Tasks() as tasks:
        ids = made(tasks, 12)
        operation = f"/v1/bulk-operations/{tasks.ask('POST', CANCEL, PACED, headers=KEY).body['id']}"
        assert tasks.ask("POST", path, body, headers=KEY).status == 422
        tasks.run(4 * SECOND)
        assert tasks.ask("POST", f"{operation}/cancel").status == 200
        tasks.run(6 * SECOND)
        records = [tasks.record(each) for each in ids]
        assert tasks.ask("POST", path, body, headers=KEY).status == 422
        tasks.run(MINUTE)
        assert [tasks.record(each) for each in ids] == records


def test_an_aborted_operation_is_continued_with_the_token_of_its_dry_run() -> None:
    """After an abort, a request with the dry run's token cancels the rest of the counted tasks, but no newer task."""
    with Tasks() as tasks:
        shown = made(tasks, 12)
        token = tasks.ask("POST", CANCEL, PACED | {"dry_run": True}).body["confirmation_token"]
        tasks.run(SECOND)
        confirmed = PACED | {"confirmation_token": token}
        operation = f"/v1/bulk-operations/{tasks.ask('POST', CANCEL, confirmed, headers=KEY).body['id']}"
        tasks.run(4 * SECOND)
        assert tasks.ask("POST", f"{operation}/cancel").status == 200
        tasks.run(6 * SECOND)
        before, later = cancelled(tasks, shown), made(tasks, 3)
        assert 0 < before < len(shown)
        again = tasks.ask("POST", CANCEL, confirmed, headers={"Idempotency-Key": "again"}).body["id"]
        tasks.run(MINUTE)
        end = tasks.ask("GET", f"/v1/bulk-operations/{again}").body
        assert (end["state"], end["affected"]) == ("succeeded", len(shown) - before)
        assert (cancelled(tasks, shown), cancelled(tasks, later)) == (len(shown), 0)


def test_a_dry_run_token_of_another_deployment_is_rejected() -> None:
    """A dry run's token is refused by a deployment with another table."""
    with Tasks() as tasks:
        task = tasks.create(HOUR)
        body = {"filter": {"type": PLAIN}}
        token = tasks.ask("POST", CANCEL, body | {"dry_run": True}).body["confirmation_token"]
        tasks.dynamodb.tables["prod"] = tasks.dynamodb.tables["tasks"]
        tasks.environ[Variable.TABLE] = "prod"
        for machine in tasks.machines:
            machine.die()
        refused = tasks.ask("POST", CANCEL, body | {"confirmation_token": token})
        assert (refused.status, [each["field"] for each in refused.body["errors"]]) == (422, ["confirmation_token"])
        assert tasks.state(task) == "scheduled"
