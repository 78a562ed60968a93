"""A task's history lists the actions on the task, with actor, time and reason, and the task's attempts."""

from __future__ import annotations

import itertools
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.task_items import ATTRIBUTES
from duetime.domain.limits import ACTIONS_INLINE, MAX_ACTION_REASON_LENGTH
from duetime.handlers import AttemptCancelled
from tests.scenarios.graphs import DIAMOND, Graphs
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND, UNDONE
from tests.scenarios.schedules import NAME, PATH, Schedules
from tests.scenarios.tasks import ONCE, Tasks

if TYPE_CHECKING:
    from duetime.handlers import Context
    from tests.scenarios.scenario import Scenario


def history(scenario: Scenario, task_id: str) -> dict[str, Any]:
    """The API's response with a task's events."""
    answer = scenario.ask("GET", f"/v1/tasks/{task_id}/events")
    assert answer.status == 200, answer.body
    body: dict[str, Any] = answer.body
    return body


def events(scenario: Scenario, task_id: str) -> list[dict[str, Any]]:
    """A task's events, after a check that they are in order."""
    found: list[dict[str, Any]] = history(scenario, task_id)["events"]
    times = [datetime.fromisoformat(each["at"]) for each in found if each["at"]]
    assert times == sorted(times)
    versions = [each["version"] for each in found if each["version"]]
    assert versions == sorted(set(versions))
    return found


def types(scenario: Scenario, task_id: str) -> list[str]:
    """The types of a task's events, in order."""
    return [each["type"] for each in events(scenario, task_id)]


def test_the_history_of_a_task_has_actions_attempts_and_its_end() -> None:
    """In the history, each action has its actor, time and reason, followed by the attempt and the end."""
    with Tasks() as tasks:
        task_id = tasks.create(HOUR)
        tasks.run(SECOND)
        tasks.ask("PATCH", f"/v1/tasks/{task_id}", {"priority": "high", "name": "", "payload": 2}, query="reason=typo")
        tasks.run(SECOND)
        tasks.do(task_id, "pause", {"reason": "the warehouse is closed"})
        tasks.run(SECOND)
        tasks.do(task_id, "resume")
        tasks.run(SECOND)
        tasks.do(task_id, "run", {"reason": "now, please"})
        tasks.run(MINUTE)
        found = events(tasks, task_id)
        assert [each["type"] for each in found] == [
            "created",
            "updated",
            "paused",
            "resumed",
            "run_requested",
            "attempt_started",
            "attempt_ended",
            "finished",
        ]
        owner = tasks.record(task_id).owner
        assert [each["actor"] for each in found] == [{"kind": "user", "name": owner}] * 5 + [None] * 3
        assert [each["reason"] for each in found[:5]] == [None, "typo", "the warehouse is closed", None, "now, please"]
        assert [each["version"] for each in found[:5]] == [1, 2, 3, 4, 5]
        assert found[1]["fields"] == ["payload", "priority"]
        assert (found[6]["attempt"], found[6]["fence"], found[6]["outcome"]) == (1, 1, "succeeded")
        assert found[5]["worker"] == found[6]["worker"]
        assert found[7]["state"] == "succeeded"
        assert history(tasks, task_id)["dropped"] == 0


def test_a_task_without_user_actions_has_no_stored_history() -> None:
    """If no user acts on a task, its events are derived from other data in its record."""
    with Tasks() as tasks:
        task_id = tasks.create()
        tasks.run(MINUTE)
        assert types(tasks, task_id) == ["created", "attempt_started", "attempt_ended", "finished"]
        (item,) = (each for each in tasks.items() if each[schema.SORT_KEY]["S"] == task_id)
        assert not {ATTRIBUTES[field].name for field in ("actions", "cancellation")} & set(item)


@pytest.mark.parametrize("condition", [{}, {"If-Match": '"1"'}])
def test_the_event_of_a_cancel_has_actor_and_reason(condition: dict[str, str]) -> None:
    """A cancel's event shows the reason, but shows a version only if the request had `If-Match`."""
    with Tasks() as tasks:
        task_id = tasks.create(HOUR)
        body = {"reason": "no longer needed"}
        assert tasks.ask("POST", f"/v1/tasks/{task_id}/cancel", body, headers=condition).status == 200
        *_, cancelled, finished = events(tasks, task_id)
        assert (cancelled["type"], cancelled["reason"]) == ("cancelled", "no longer needed")
        assert cancelled["version"] == (2 if condition else None)
        assert (finished["type"], finished["state"]) == ("finished", "cancelled")
        assert tasks.ask("POST", f"/v1/tasks/{task_id}/cancel", {"reason": "again"}).status == 200
        assert [each["reason"] for each in events(tasks, task_id)] == [None, "no longer needed", None]


def test_a_request_to_stop_a_running_task_is_one_event() -> None:
    """A user's request to stop is an event before the attempt's end, and a repeated request adds no event."""
    with Tasks() as tasks:

        def stop_when_asked(_phase: str, context: Context) -> str:
            while context.requested_action != "cancel":
                tasks.take(10 * SECOND)
                context.heartbeat()
            raise AttemptCancelled

        tasks.target = stop_when_asked
        task_id = tasks.create()
        tasks.run(5 * SECOND)
        assert types(tasks, task_id) == ["created", "attempt_started"]
        body = {"force": True, "reason": "wrong customer"}
        assert tasks.ask("POST", f"/v1/tasks/{task_id}/cancel", body).status == 202
        assert tasks.ask("POST", f"/v1/tasks/{task_id}/cancel", body).status == 202
        tasks.run(MINUTE)
        found = events(tasks, task_id)
        assert [each["type"] for each in found][1:] == [
            "attempt_started",
            "cancel_requested",
            "attempt_ended",
            "finished",
        ]
        assert found[2]["reason"] == "wrong customer"
        assert (found[3]["outcome"], found[4]["state"]) == ("cancelled", "cancelled")


def test_earlier_events_stay_listed_after_a_retry_and_a_rollback() -> None:
    """Earlier events stay listed after a user's retry and rollback."""
    with Tasks() as tasks:
        outcomes = itertools.chain([ValueError("no")], itertools.repeat(None))

        def work(phase: str, _context: Any) -> None:  # noqa: ANN401 - a handler gets it
            if phase == "run" and (error := next(outcomes)):
                raise error

        tasks.target = work
        task_id = tasks.create(kind=UNDONE, retry=ONCE)
        tasks.run(MINUTE)
        assert tasks.do(task_id, "retry", {"reason": "fixed"}).status == 200
        tasks.run(MINUTE)
        assert tasks.do(task_id, "rollback", {"reason": "by mistake"}).status == 202
        tasks.run(MINUTE)
        found = events(tasks, task_id)
        assert [(each["type"], each["outcome"] or each["reason"]) for each in found] == [
            ("created", None),
            ("attempt_started", None),
            ("attempt_ended", "failed"),
            ("retried", "fixed"),
            ("attempt_started", None),
            ("attempt_ended", "succeeded"),
            ("rollback_requested", "by mistake"),
            ("attempt_started", None),
            ("attempt_ended", "rolled_back"),
            ("finished", None),
        ]


def test_the_number_of_events_dropped_after_many_actions_is_shown() -> None:
    """After many actions, a record keeps the latest events, and `dropped` counts the events that were left out."""
    with Tasks() as tasks:
        task_id = tasks.create(30 * HOUR)
        for number in range(20):
            tasks.do(task_id, "pause", {"reason": f"pause {number}"})
            tasks.do(task_id, "resume")
        answer = history(tasks, task_id)
        kept = [each for each in answer["events"] if each["type"] != "created"]
        assert len(kept) == ACTIONS_INLINE
        assert answer["dropped"] + len(kept) == 40
        assert [each["reason"] for each in kept][-2:] == ["pause 19", None]
        for number in range(5):
            tasks.do(task_id, "pause", {"reason": "界" * MAX_ACTION_REASON_LENGTH})
            tasks.do(task_id, "resume", {"reason": f"{number}" * MAX_ACTION_REASON_LENGTH})
        answer = history(tasks, task_id)
        assert 0 < len(answer["events"]) - 1 < 4
        assert answer["dropped"] + len(answer["events"]) - 1 == 50


def test_a_nodes_pause_has_its_topology_as_the_actor() -> None:
    """A node's pause has its topology as the actor, and the user's reason."""
    with Graphs() as graphs:
        # Nodes that are held back begin late.
        graphs.faulty = True
        graphs.target = lambda _phase, _context: graphs.take(20 * SECOND)
        graphs.submit({**DIAMOND, "aside": {"type": PLAIN, "delay_seconds": 120}})
        graphs.run(5 * SECOND)
        pause = graphs.ask("POST", f"/v1/topologies/{graphs.topology}/pause", {"reason": "month end"})
        assert pause.status in (200, 202)
        graphs.run(MINUTE)
        graphs.ask("POST", f"/v1/topologies/{graphs.topology}/resume", {"reason": "books are closed"})
        graphs.run(10 * MINUTE)
        told = [each for each in events(graphs, graphs.topology) if each["reason"]]
        assert [(each["type"], each["reason"]) for each in told] == [
            ("pause_requested", "month end"),
            ("resumed", "books are closed"),
        ]
        aside = graphs.node("aside").id.text
        by = {"kind": "topology", "name": graphs.topology}
        held = [each for each in events(graphs, aside) if each["type"] in {"created", "paused", "resumed"}]
        assert [(each["type"], each["reason"], each["actor"]) for each in held] == [
            ("created", None, by),
            ("paused", "month end", by),
            ("resumed", "books are closed", by),
        ]


def test_a_runs_creation_and_skip_have_the_schedule_as_the_actor() -> None:
    """A run's creation and its skip after the schedule's deletion have the schedule as the actor."""
    with Schedules() as schedules:
        schedules.make()
        schedules.run(90 * SECOND)
        assert schedules.ask("DELETE", PATH).status == 200
        schedules.run(10 * MINUTE)
        skipped = next(task for task in schedules.placed() if task.state == "cancelled")
        created, cancelled, finished = events(schedules, skipped.id.text)
        by = {"kind": "schedule", "name": NAME}
        assert (created["actor"], cancelled["actor"]) == (by, by)
        assert (cancelled["type"], "deleted" in cancelled["reason"]) == ("cancelled", True)
        assert finished["state"] == "cancelled"


@pytest.mark.parametrize("count", [3, 400])
def test_the_events_of_an_action_by_filter_name_the_bulk_operation(count: int) -> None:
    """After an action by filter, each task's event shows the reason and the bulk operation, even in the background."""
    with Tasks() as tasks:
        made = [tasks.create(5 * HOUR) for _ in range(min(count, 30))]
        body = {"filter": {"type": PLAIN}, "reason": "clean up", **({"per_second": 0.5} if count > 3 else {})}
        answer = tasks.ask("POST", "/v1/tasks/cancel", body)
        tasks.run(3 * MINUTE)
        found = [next(each for each in events(tasks, one) if each["type"] == "cancelled") for one in made]
        assert {each["reason"] for each in found} == {"clean up"}
        operations = {each["bulk_operation_id"] for each in found}
        assert len(operations) == 1
        assert None not in operations
        if answer.status == 202:
            assert operations == {answer.body["id"]}
        assert (answer.status == 202) == (count > 3)


@pytest.mark.parametrize(
    "reason", ["x" * (MAX_ACTION_REASON_LENGTH + 1), "a\nb", "\x7f", 3, None, ["x"]], ids=lambda value: repr(value)[:9]
)
def test_an_error_for_an_invalid_reason_names_the_field(reason: object) -> None:
    """A reason that is not a short line of text is refused with the field's name, and no task changes."""
    with Tasks() as tasks:
        task_id = tasks.create(HOUR)
        for verb in ("pause", "resume", "run", "retry", "rollback", "cancel"):
            answer = tasks.do(task_id, verb, {"reason": reason})
            assert (answer.status, [each["field"] for each in answer.body["errors"]]) == (422, ["reason"])
        assert types(tasks, task_id) == ["created"]


def test_an_erased_task_has_no_history() -> None:
    """After a task is erased, the table contains none of its reasons."""
    with Tasks() as tasks:
        task_id = tasks.create(HOUR)
        tasks.do(task_id, "pause", {"reason": "a secret reason"})
        assert tasks.ask("DELETE", f"/v1/tasks/{task_id}").status == 204
        assert tasks.ask("GET", f"/v1/tasks/{task_id}/events").status == 404
        assert "a secret reason" not in repr(tasks.items())
        record = tasks.record(task_id)
        assert (record.actions.records, record.cancellation) == ((), None)
