"""What is said of a time of a schedule for which no run is found: never more than what was looked at."""

from __future__ import annotations

from dataclasses import replace

import pytest

from duetime.domain.explanations.schedule_explanation import OccurrenceFacts, explain_occurrence, explain_permanent
from duetime.domain.schedules.definition import Written
from duetime.domain.schedules.schedule_history import BY_OWNER, ScheduleAction
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND
from tests.domain.schedules.test_revisions import STORED

NOW = STORED.created_at + 30 * DAY
RETIMED = replace(STORED, updated_at=NOW - DAY, done=NOW - DAY).after_action(
    ScheduleAction.UPDATED, BY_OWNER, NOW - DAY, ("cron",)
)


@pytest.mark.parametrize("is_permanent", [False, True])
@pytest.mark.parametrize("offset", [0, 7 * MINUTE + 5 * SECOND], ids=["meant by the present timing", "not meant"])
def test_what_was_not_examined_is_not_denied(*, offset: int, is_permanent: bool) -> None:
    """If not all tasks of the time were examined, the answer says so, and otherwise it does not."""
    stored = replace(RETIMED, spec=replace(STORED.spec, written=Written(permanent=60))) if is_permanent else RETIMED
    at = (NOW - 2 * DAY) // HOUR * HOUR + offset

    def said(*, is_complete: bool) -> str:
        facts = OccurrenceFacts((), (), NOW, NOW - 10 * DAY, is_complete=is_complete)
        if is_permanent:
            return explain_permanent(stored, at, facts).text
        return explain_occurrence(stored, stored.schedule(), at, facts).text

    assert "Not all tasks of that time were examined" in said(is_complete=False)
    assert "Not all tasks" not in said(is_complete=True)


def test_expired_tasks_are_not_denied() -> None:
    """Of a time whose tasks may be gone, and before another timing, nothing is concluded."""
    at = (NOW - 20 * DAY) // HOUR * HOUR + 7 * MINUTE + 5 * SECOND
    found = explain_occurrence(RETIMED, RETIMED.schedule(), at, OccurrenceFacts((), (), NOW, NOW - 10 * DAY))
    assert found.outcome == "not_recorded"
    assert "The tasks of that time have expired." in found.text
