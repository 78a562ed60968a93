"""Ended tasks are kept for as long as the setting for their type says."""

from __future__ import annotations

from duetime.domain.change_events import Change, task_snapshot
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task_lists import writes_of
from duetime.domain.times import DAY
from duetime.domain.type_settings import RetentionPolicy
from tests.domain.factories import NOW, task


def test_the_first_pattern_that_matches_decides() -> None:
    """Patterns apply in the order of the setting, and a type that matches no pattern has the default."""
    policy = RetentionPolicy(30, {"audit.login": 90, "audit.*": 400, "pin?": 2})
    found = {each: policy.of(each) for each in ("audit.login", "audit.logout", "ping", "pings", "report")}
    assert found == {"audit.login": 90, "audit.logout": 400, "ping": 2, "pings": 30, "report": 30}


def test_the_shortest_and_longest_retention_include_the_default() -> None:
    """The shortest and the longest retention take the default into account."""
    policy = RetentionPolicy(30, {"audit.*": 400, "ping": 2})
    assert (policy.shortest, policy.longest, policy.is_by_type) == (2, 400, True)
    assert (RetentionPolicy(30, {"ping": 50}).shortest, RetentionPolicy(30, {"ping": 2}).longest) == (30, 30)
    assert (RetentionPolicy(30).shortest, RetentionPolicy(30).longest, RetentionPolicy(30).is_by_type) == (
        30,
        30,
        False,
    )


def test_list_entries_are_kept_as_long_as_the_tasks_type_says() -> None:
    """Entries about a task's creation and end are kept for as long as the setting for the task's type says."""
    policy = RetentionPolicy(30 * DAY, {"report": 400 * DAY})
    made, ended = task(), task(state=State.SUCCEEDED, finished_at=NOW, name="n", tags={"a": "b"})
    changes = [
        Change("1", NOW, None, task_snapshot(made)),
        Change("2", NOW, task_snapshot(made), task_snapshot(ended)),
    ]
    blocks = writes_of(changes, policy).blocks
    assert len(blocks) > 3
    assert all(each.expires_at >= NOW + 400 * DAY for each in blocks)
