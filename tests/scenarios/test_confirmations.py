"""A dry run's token excludes tasks that were created or ended after the dry run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.services.bulk import filter_actions
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND
from tests.scenarios.tasks import Tasks

if TYPE_CHECKING:
    from tests.simulation.users import Reply

CANCEL, UPDATE, RETRY = "/v1/tasks/cancel", "/v1/tasks/update", "/v1/tasks/retry"
PLAINS: dict[str, Any] = {"filter": {"type": PLAIN}}


def _token(tasks: Tasks, path: str, body: dict[str, Any]) -> str:
    """The confirmation token of a dry run."""
    counted = tasks.ask("POST", path, {**body, "dry_run": True})
    assert counted.status == 200, counted
    token: str = counted.body["confirmation_token"]
    return token


def _confirmed(tasks: Tasks, path: str, body: dict[str, Any], token: str) -> Reply:
    return tasks.ask("POST", path, {**body, "confirmation_token": token})


@pytest.mark.parametrize("more", [{}, {"limit": 100}], ids=["whole", "piece"])
def test_a_task_created_after_the_dry_run_is_not_cancelled(more: dict[str, Any]) -> None:
    """A run with a token acts only on tasks from before the dry run, even if later tasks match the filter, too."""
    with Tasks() as tasks:
        shown = [tasks.create(HOUR) for _ in range(3)]
        token = _token(tasks, CANCEL, PLAINS)
        tasks.run(SECOND)
        later = tasks.create(HOUR)
        done = _confirmed(tasks, CANCEL, PLAINS | more, token)
        assert (done.body["matched"], done.body["affected"]) == (3, 3)
        assert {tasks.state(each) for each in shown} == {"cancelled"}
        assert tasks.state(later) == "scheduled"


def test_a_bulk_operation_in_the_background_respects_the_token() -> None:
    """A bulk operation in the background also skips tasks created after the dry run, as its stored token requires."""
    with Tasks() as tasks:
        shown = [tasks.create(HOUR) for _ in range(4)]
        token = _token(tasks, CANCEL, PLAINS)
        tasks.run(SECOND)
        later = tasks.create(HOUR)
        done = _confirmed(tasks, CANCEL, PLAINS | {"per_second": 0.1}, token)
        assert done.status == 202
        latest = tasks.create(HOUR)
        tasks.run(5 * MINUTE)
        assert {tasks.state(each) for each in shown} == {"cancelled"}
        assert (tasks.state(later), tasks.state(latest)) == ("scheduled", "scheduled")


def test_a_task_that_failed_after_the_dry_run_is_not_retried() -> None:
    """A task that was created before the dry run but failed later is not retried."""
    with Tasks() as tasks:
        tasks.fail(attempts=1)
        first = tasks.create(retry={"max_attempts": 1})
        second = tasks.create(2 * MINUTE, retry={"max_attempts": 1})
        tasks.run(MINUTE)
        token = _token(tasks, RETRY, PLAINS)
        tasks.run(3 * MINUTE)
        ended = tasks.record(second)
        assert ended.state == "failed"
        done = _confirmed(tasks, RETRY, PLAINS, token)
        assert (done.body["matched"], done.body["affected"]) == (1, 1)
        tasks.run(SECOND)
        assert tasks.record(first).fence == 2
        assert tasks.record(second) == ended


def test_all_pages_of_a_dry_run_have_the_same_cutoff_and_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a dry run's later pages get the first page's token, they count no newer tasks and return the same token."""
    monkeypatch.setattr(filter_actions, "MAX_EXAMINED", 100)
    with Tasks() as tasks:
        for number in range(105):
            tasks.create(HOUR + number * SECOND)
        dry = PLAINS | {"dry_run": True}
        first = tasks.ask("POST", CANCEL, dry).body
        tasks.run(SECOND)
        later = tasks.create(MINUTE)
        follows = {"next_token": first["next_token"]}
        second = tasks.ask("POST", CANCEL, {**dry, **follows, "confirmation_token": first["confirmation_token"]}).body
        assert (first["matched"], second["matched"], second["next_token"]) == (100, 5, None)
        assert second["confirmation_token"] == first["confirmation_token"]
        # Without the token, the pages would have different cutoffs, which one token cannot express.
        assert tasks.ask("POST", CANCEL, {**dry, **follows}).body["confirmation_token"] is None
        done = _confirmed(tasks, CANCEL, PLAINS, first["confirmation_token"])
        tasks.run(MINUTE)
        assert done.status in {200, 202}
        assert tasks.tally() == {"cancelled": 105, "succeeded": 1}
        assert tasks.state(later) == "succeeded"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CANCEL, {"filter": {"type": "mail"}}),
        (CANCEL, {"filter": {"type": PLAIN, "state": "scheduled"}}),
        (CANCEL, {"filter": {}, "all": True}),
        (CANCEL, {**PLAINS, "force": True}),
        (RETRY, PLAINS),
        (UPDATE, {**PLAINS, "update": {"name": "x"}}),
    ],
)
def test_a_token_is_valid_only_for_its_filter_and_action(path: str, body: dict[str, Any]) -> None:
    """A token is refused with a different filter or action, or if running tasks are included; no task changes."""
    with Tasks() as tasks:
        task = tasks.create(HOUR)
        refused = _confirmed(tasks, path, body, _token(tasks, CANCEL, PLAINS))
        assert refused.status == 422
        assert [fault["field"] for fault in refused.body["errors"]] == ["confirmation_token"]
        assert tasks.state(task) == "scheduled"


def test_a_token_is_bound_to_the_update() -> None:
    """The token covers the update (`null` differs from an omitted field), but neither the pace nor the order."""
    with Tasks() as tasks:
        tasks.create(HOUR)
        body = {**PLAINS, "update": {"priority": "low", "tags": {"b": "1", "a": "2"}}}
        token = _token(tasks, UPDATE, body)
        for other in ({"priority": "high"}, {"priority": "low"}, {"delay_seconds": 5}):
            assert _confirmed(tasks, UPDATE, {**PLAINS, "update": other}, token).status == 422
        same = {**PLAINS, "update": {"tags": {"a": "2", "b": "1"}, "priority": "low"}, "order": "asc", "all": False}
        assert _confirmed(tasks, UPDATE, same, token).body["affected"] == 1


@pytest.mark.parametrize("token", ["", "x", "MTE3OTUyMjgzODcyNTA", "é"])
def test_an_invalid_dry_run_token_is_rejected(token: str) -> None:
    """An invalid token is refused, and no task changes."""
    with Tasks() as tasks:
        made = [tasks.create(HOUR) for _ in range(2)]
        assert _confirmed(tasks, CANCEL, PLAINS, token).status == 422
        paged = tasks.ask("GET", "/v1/tasks", query="limit=1").body["next_token"]
        assert paged is not None
        assert _confirmed(tasks, CANCEL, PLAINS, paged).status == 422
        assert {tasks.state(each) for each in made} == {"scheduled"}


def test_only_a_dry_run_returns_a_token() -> None:
    """A real run returns no token, and a token from another owner is refused."""
    with Tasks() as tasks:
        tasks.create(HOUR)
        token = _token(tasks, CANCEL, PLAINS)
        other = tasks.ask(
            "POST", CANCEL, PLAINS | {"confirmation_token": token}, headers={"x-duetime-owner": "somebody-else"}
        )
        assert other.status == 422
        assert tasks.ask("POST", CANCEL, PLAINS).body["confirmation_token"] is None
