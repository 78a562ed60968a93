from __future__ import annotations

from dataclasses import replace
from typing import Any, get_type_hints

import pytest

from duetime.domain.change_events import (
    DOCUMENTS,
    Change,
    ChangeBatch,
    Event,
    EventKind,
    ScheduleSnapshot,
    TaskSnapshot,
    events_of,
)
from duetime.domain.operating_parameters import LATE_EVENT_AFTER
from duetime.domain.schedules.run_history import CalendarEnd, ExpectationState, Remark
from duetime.domain.schedules.schedule import ScheduleState
from duetime.domain.tasks.attempt_records import TaskError
from duetime.domain.tasks.states import TERMINAL, State
from duetime.domain.tasks.task import NodeRef, ScheduleRef
from duetime.domain.tasks.task_options import Priority
from tests.domain.factories import ID, NOW

RUNNING = TaskSnapshot(
    id=ID,
    owner="ann",
    type="report",
    state=State.RUNNING,
    version=2,
    due_at=NOW,
    created_at=NOW,
    priority=Priority.HIGH,
    name="monthly",
    tags={"team": "dba"},
    attempt=1,
    started_at=NOW + 20,
    schedule_ref=ScheduleRef("nightly", 1, NOW),
)
SCHEDULE = ScheduleSnapshot(
    owner="ann", name="nightly", uid=ID, state=ScheduleState.ACTIVE, version=1, edition=4, runs_skipped=1
)


def told(before: Any, after: Any) -> list[Event]:  # noqa: ANN401 - snapshots of one kind
    """The events for one change."""
    change = Change("c1", NOW, before, after)
    is_schedule = isinstance(before or after, ScheduleSnapshot)
    return events_of(ChangeBatch((), (change,)) if is_schedule else ChangeBatch((change,)))


def kinds(before: Any, after: Any) -> list[EventKind]:  # noqa: ANN401 - as above
    """The kinds of the events for one change."""
    return [event.kind for event in told(before, after)]


@pytest.mark.parametrize("state", State)
def test_entering_a_final_state_creates_one_event(state: State) -> None:
    """Entering a final state creates one event; staying in a final state or entering another creates no event."""
    before = replace(RUNNING, state=State.WAITING if state is State.RUNNING else State.RUNNING)
    after = replace(RUNNING, state=state, version=3)
    ended = [EventKind.TASK_ENDED] if state in TERMINAL else []
    failed = [EventKind.TASK_FAILED] if state is State.FAILED else []
    assert kinds(before, after) == ended + failed
    assert kinds(after, replace(after, version=4, finished_at=NOW)) == []
    assert kinds(after, None) == []


def test_an_event_has_owner_type_and_outcome_but_no_payload_or_result() -> None:
    """A task's event has the owner, type, outcome and the error's type, but neither payload, result nor message."""
    after = replace(RUNNING, state=State.FAILED, version=3, error=TaskError("Boom", "password=hunter2"))
    ended, failed = told(RUNNING, after)
    assert ended.detail == {
        "id": "c1-ended",
        "owner": "ann",
        "task_id": ID.text,
        "type": "report",
        "name": "monthly",
        "state": "failed",
        "version": 3,
        "priority": "high",
        "due_at": "2026-11-21T02:33:07.250Z",
        "started_at": "2026-11-21T02:33:07.270Z",
        "lateness_ms": 20,
        "attempt": 1,
        "tags": {"team": "dba"},
        "schedule": "nightly",
        "topology_id": None,
        "node": None,
        "error_type": "Boom",
    }
    assert failed.detail == {**ended.detail, "id": "c1-failed"}


def test_topology_events_and_node_events_have_different_kinds() -> None:
    """A topology's events have their own kind, and a node's events are task events that name the node."""
    whole = replace(RUNNING, is_topology=True)
    assert kinds(whole, replace(whole, state=State.FAILED)) == [EventKind.TOPOLOGY_ENDED]
    node = replace(RUNNING, node_ref=NodeRef(ID, 1, "extract"))
    (event,) = told(node, replace(node, state=State.SUCCEEDED))
    assert event.kind is EventKind.TASK_ENDED
    assert dict(event.detail)["topology_id"] == ID.text
    assert dict(event.detail)["node"] == "extract"


def test_a_late_start_creates_one_event() -> None:
    """A late start is reported by the write after the target's call, not by a claim, and with a single id."""
    claimed = replace(RUNNING, started_at=NOW + LATE_EVENT_AFTER)
    assert kinds(replace(RUNNING, state=State.SCHEDULED, started_at=None, attempt=0), claimed) == []
    said = replace(claimed, version=3, started_late=True)
    (event,) = told(claimed, said)
    assert (event.kind, event.detail["id"]) == (EventKind.TASK_LATE, f"{ID.text}-late")
    assert kinds(said, replace(said, attempt=2, version=5)) == []
    ended = replace(said, state=State.SUCCEEDED, version=4)
    assert kinds(claimed, ended) == [EventKind.TASK_LATE, EventKind.TASK_ENDED]


def test_the_event_of_a_skipped_occurrence_has_the_reason() -> None:
    """Each new skip of an occurrence creates an event with the reason; other writes create no event."""
    first, second = Remark(NOW, "2026-11-21T01:30+00:00", "the last run goes on"), Remark(NOW, "", "edited")
    before = replace(SCHEDULE, log=(Remark(1, "old", "calendar"),))
    after = replace(SCHEDULE, runs_skipped=2, edition=5, log=(*before.log, first, second))
    (event,) = told(before, after)
    assert event.kind is EventKind.SCHEDULE_SKIPPED
    assert event.detail == {
        "id": "c1-skipped-0",
        "owner": "ann",
        "schedule": "nightly",
        "occurrence": first.key,
        "reason": first.note,
        "skipped_at": "2026-11-21T02:33:07.250Z",
        "runs_skipped": 2,
    }
    assert told(None, after) == told(after, None) == told(after, replace(after, edition=6)) == []


def test_the_event_of_a_missed_expectation_has_the_deadline() -> None:
    """A miss is reported once, by the write that found it, and a changed expectation is not reported as a miss."""
    met = ExpectationState(1, 2, met_at=NOW - 1000)
    before = replace(SCHEDULE, expectation=met)
    after = replace(SCHEDULE, edition=5, expectation=replace(met, missed_at=NOW, misses=1))
    (event,) = told(before, after)
    assert event.kind is EventKind.EXPECTATION_MISSED
    assert event.detail == {
        "id": "c1-missed",
        "owner": "ann",
        "schedule": "nightly",
        "deadline": "2026-11-21T02:33:07.250Z",
        "met_at": "2026-11-21T02:33:06.250Z",
        "misses": 1,
    }
    assert kinds(SCHEDULE, after) == [EventKind.EXPECTATION_MISSED]
    assert told(after, replace(after, edition=6)) == told(after, before) == told(None, after) == []


def test_the_end_of_a_calendars_data_is_reported_once() -> None:
    """A calendar's end is reported when a schedule finds it, and again only if the end changes."""
    after = replace(SCHEDULE, edition=5, calendar_end=CalendarEnd("off", NOW))
    (event,) = told(SCHEDULE, after)
    assert event.kind is EventKind.CALENDAR_ENDING
    assert event.detail == {
        "id": "c1-calendar",
        "owner": "ann",
        "schedule": "nightly",
        "calendar": "off",
        "known_until": "2026-11-21T02:33:07.250Z",
    }
    assert told(after, replace(after, edition=6)) == told(after, SCHEDULE) == told(None, after) == []
    assert kinds(after, replace(after, calendar_end=CalendarEnd("off", NOW + 1))) == [EventKind.CALENDAR_ENDING]


def test_every_event_has_exactly_the_documented_fields() -> None:
    """An event has exactly the fields that the documentation of its kind lists."""
    failed = replace(RUNNING, state=State.FAILED)
    late = replace(RUNNING, started_at=NOW + LATE_EVENT_AFTER, started_late=True)
    whole = replace(RUNNING, is_topology=True)
    skipped = replace(SCHEDULE, runs_skipped=2, log=(Remark(NOW, "key", "why"),))
    missed = replace(SCHEDULE, expectation=ExpectationState(1, 2, missed_at=NOW, misses=1))
    found = [
        *told(RUNNING, failed),
        *told(None, late),
        *told(whole, replace(whole, state=State.SUCCEEDED)),
        *told(SCHEDULE, skipped),
        *told(SCHEDULE, missed),
        *told(SCHEDULE, replace(SCHEDULE, calendar_end=CalendarEnd("off", NOW))),
    ]
    assert {event.kind for event in found} == set(EventKind) == set(DOCUMENTS)
    for event in found:
        assert event.detail.keys() == get_type_hints(DOCUMENTS[event.kind]).keys()
