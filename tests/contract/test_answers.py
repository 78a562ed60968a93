from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from pydantic import TypeAdapter

from duetime.contract.tasks.encoding import entry, json_text, task_text
from duetime.contract.tasks.responses import TaskResponse, TaskSummary
from duetime.domain.tasks.attempt_records import TaskError
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import HttpTarget, Phase, Query
from duetime.domain.tasks.task import Cause, Content, ContentPlace, Progress, RequestedAction, ScheduleRef
from tests.contract.properties import JSON, unhurried
from tests.domain.factories import NOW, task

DONE = task(
    state=State.FAILED,
    name="Nightly",
    tags={"team": "dba"},
    target=HttpTarget("https://example.org/", frozenset({Phase.ROLLBACK, Phase.PREPARE}), frozenset({Query.STATUS})),
    callback_url="https://example.org/ended",
    started_at=NOW + 12,
    finished_at=NOW + 500,
    attempt=5,
    fence=6,
    version=9,
    progress=Progress(40, "half way"),
    error=TaskError("Timeout", "took longer than 60 s"),
    result=Content(ContentPlace.RECORD, "result.5", b"[1.50]"),
)


def test_a_task_response_has_exactly_the_documented_fields() -> None:
    """The responses for a new and a failed task have exactly the documented fields, apart from optional ones."""
    for each in (task(), DONE):
        assert TypeAdapter(TaskResponse).validate_python(json.loads(task_text(each)))
        assert set(json.loads(task_text(each))) == set(TaskResponse.__annotations__) - {
            *("estimate", "children", "after", "trigger_rule", "locks", "fair_key", "fair_weight")
        }
        assert set(entry(each)) == set(TaskSummary.__annotations__) - {
            *("after", "trigger_rule", "locks", "fair_key", "fair_weight")
        }
        assert TypeAdapter(TaskSummary).validate_json(json_text(entry(each)))


def test_missing_values_of_a_waiting_task_are_null() -> None:
    """The start, end, outcome and lateness of a waiting task are null."""
    waiting = json.loads(task_text(task()))
    missing = {"name", "started_at", "finished_at", "progress", "error", "lateness_ms", "result", "lease"}
    missing |= {
        "lock",
        "rate",
        "waiting_for",
        "callback_url",
        "notify_on",
        "expires_seconds",
        "unique",
        "debounce",
        "order",
        "expires_at",
        "schedule",
        "topology",
        "parent_task_id",
        "group",
        "completes_group",
        "kept_until",
        "requested_action",
        "job",
        "traceparent",
    }
    assert {field for field, value in waiting.items() if value is None} == missing


def test_a_finished_task_shows_its_outcome() -> None:
    """Times are in UTC with milliseconds, the error has a class and a message, and an ended task has no next check."""
    done = json.loads(task_text(DONE))
    assert done["due_at"] == "2026-11-21T02:33:07.250Z"
    assert done["started_at"] == "2026-11-21T02:33:07.262Z"
    assert done["next_at"] is None
    assert done["lateness_ms"] == 12
    assert done["error"] == {"type": "Timeout", "message": "took longer than 60 s"}
    assert done["progress"] == {"percent": 40, "message": "half way"}
    assert done["target"] == {
        "kind": "http",
        "url": "https://example.org/",
        "phases": ["prepare", "rollback"],
        "queries": ["status"],
    }
    assert done["callback_url"] == "https://example.org/ended"


def test_a_running_task_shows_its_lease_and_requested_action() -> None:
    """A leased task's response has the holder, the end of the lease, and whether the target has accepted the task."""
    held: dict[str, Any] = {"lease_worker": "worker 1", "lease_expires_at": NOW + 30_000}
    running = entry(task(state=State.RUNNING, deferred_fence=0, requested_action=RequestedAction.PAUSE, **held))
    assert running["lease"] == {"worker": "worker 1", "expires_at": "2026-11-21T02:33:37.250Z"}
    assert (running["awaiting_notification"], running["requested_action"]) == (True, "pause")
    for state in (State.SUCCEEDED, State.WAITING):
        assert entry(task(state=state, **held))["lease"] is None
    assert entry(task(state=State.ROLLING_BACK, **held | {"lease_expires_at": None}))["lease"] is None


@unhurried
@given(JSON)
def test_stored_contents_are_returned_unchanged(value: Any) -> None:  # noqa: ANN401 - any JSON
    """The response contains a payload's stored text unchanged, and the text is read back as an equal value."""
    stored = json.dumps(value, ensure_ascii=False)
    text = task_text(task(payload=Content(ContentPlace.RECORD, "payload", stored.encode())))
    assert json.loads(text)["payload"] == value
    assert f'"payload":{stored},' in text


def test_a_task_of_a_schedule_shows_its_occurrence() -> None:
    """A scheduled task's response has the schedule's name and revision, nominal and neighboring times, and cause."""
    occurrence = entry(
        task(schedule_ref=ScheduleRef("nightly", 3, NOW, Cause.BACKFILL, "abc", reports=True, previous=NOW - 1_000))
    )
    assert occurrence["schedule"] == {
        "name": "nightly",
        "revision": 3,
        "scheduled_at": "2026-11-21T02:33:07.250Z",
        "previous_at": "2026-11-21T02:33:06.250Z",
        "next_at": None,
        "cause": "backfill",
    }
