"""The explanation of a time without a run claims only what was examined."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from duetime.domain.explanations.schedule_explanation import OccurrenceFacts, explain_occurrence, explain_permanent
from duetime.domain.ids import TaskId
from duetime.domain.schedules.definition import Written
from duetime.domain.schedules.expansion import decide_missed
from duetime.domain.schedules.runs import RunStatus, runs_remarked
from duetime.domain.schedules.schedule import ScheduleState
from duetime.domain.schedules.schedule_history import BY_OWNER, ScheduleAction
from duetime.domain.tasks.task import Cause, ScheduleRef
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND
from tests.domain.factories import task
from tests.domain.schedules.test_revisions import STORED

if TYPE_CHECKING:
    from duetime.domain.schedules.schedule_record import StoredSchedule

NOW = STORED.created_at + 30 * DAY
RETIMED = replace(STORED, updated_at=NOW - DAY, done=NOW - DAY).after_action(
    ScheduleAction.UPDATED, BY_OWNER, NOW - DAY, ("cron",)
)


@pytest.mark.parametrize("is_permanent", [False, True])
@pytest.mark.parametrize("offset", [0, 7 * MINUTE + 5 * SECOND], ids=["meant by the present timing", "not meant"])
def test_an_incomplete_examination_of_tasks_is_reported(*, offset: int, is_permanent: bool) -> None:
    """If not all tasks at a time were examined, the explanation says that it is incomplete."""
    stored = replace(RETIMED, spec=replace(STORED.spec, written=Written(permanent=60))) if is_permanent else RETIMED
    at = (NOW - 2 * DAY) // HOUR * HOUR + offset

    def said(*, is_complete: bool) -> str:
        facts = OccurrenceFacts((), (), NOW, NOW - 10 * DAY, is_complete=is_complete)
        if is_permanent:
            return explain_permanent(stored, at, facts).text
        return explain_occurrence(stored, stored.schedule(), at, facts).text

    assert "Not all tasks of that time were examined" in said(is_complete=False)
    assert "Not all tasks" not in said(is_complete=True)


def test_no_conclusion_is_drawn_if_tasks_may_have_expired() -> None:
    """No conclusion is drawn about a time whose tasks have expired and for which the timing may have been different."""
    at = (NOW - 20 * DAY) // HOUR * HOUR + 7 * MINUTE + 5 * SECOND
    found = explain_occurrence(RETIMED, RETIMED.schedule(), at, OccurrenceFacts((), (), NOW, NOW - 10 * DAY))
    assert found.outcome == "not_recorded"
    assert "another timing until" in found.text
    assert "The tasks of that time have expired." in found.text


@pytest.mark.parametrize(
    ("schedule", "outcome", "text"),
    [
        (replace(STORED, revision=2), "skipped", "It will not run: the schedule 'nightly' was changed or paused"),
        (replace(STORED, state=ScheduleState.PAUSED), "paused", "It will not run: the schedule has been paused since"),
    ],
    ids=["changed", "paused"],
)
def test_a_queued_run_that_will_be_skipped_is_not_shown_as_open(
    schedule: StoredSchedule, outcome: str, text: str
) -> None:
    """A queued run that will be skipped is not shown as open; a manual run at the same time is shown instead."""
    at = NOW // HOUR * HOUR
    ref = ScheduleRef(STORED.name, 1, at, Cause.SCHEDULE, STORED.mark)
    queued = replace(task(schedule_ref=ref), id=TaskId.of(at, 0, 1), due_at=at, created_at=at, next_at=at)
    found = explain_occurrence(schedule, schedule.schedule(), at, OccurrenceFacts((queued,), (), at + SECOND, 0))
    assert (found.outcome, found.task) == (outcome, queued)
    assert found.text.startswith(text)
    assert "resumed" not in found.text
    manual = replace(queued, id=TaskId.of(at, 0, 2), schedule_ref=replace(ref, cause=Cause.MANUAL))
    facts = OccurrenceFacts((queued, manual), (), at + SECOND, 0)
    by_hand = explain_occurrence(schedule, schedule.schedule(), at, facts)
    assert (by_hand.outcome, by_hand.task) == ("open", manual)


OUTAGE_END = NOW - DAY
"""When the trigger found the occurrences that were missed in the hour before."""


def missed_in_an_outage() -> StoredSchedule:
    """A schedule that runs every minute, after an outage of an hour; its only remark is about the outage."""
    stored = replace(STORED, done=OUTAGE_END - HOUR)
    return decide_missed(stored, stored.schedule(), OUTAGE_END, OUTAGE_END)[0]


def explained(stored: StoredSchedule, at: int, kept_since: int = 0) -> tuple[str, str]:
    """The outcome and text for a time without tasks."""
    found = explain_occurrence(stored, stored.schedule(), at, OccurrenceFacts((), (), NOW, kept_since))
    return found.outcome, found.text


@pytest.mark.parametrize("kept_since", [0, NOW], ids=["kept", "expired"])
def test_a_missed_run_that_was_caught_up_is_never_said_not_to_have_run(kept_since: int) -> None:
    """The explanation does not say that a caught-up run did not run, even if its task was removed."""
    stored = missed_in_an_outage()
    owed = stored.owed
    assert owed is not None
    outcome, text = explained(stored, owed.nominal, kept_since)
    assert outcome == "not_recorded"
    assert "did not run" not in text
    listed = runs_remarked(stored.log, frozenset(), OUTAGE_END - HOUR, OUTAGE_END + 1)
    assert [(each.nominal, each.status) for each in listed] == [(OUTAGE_END - HOUR + MINUTE, RunStatus.MISSED)]


@pytest.mark.parametrize(
    ("offset", "outcome"),
    [(-11 * HOUR, "not_recorded"), (-HOUR, "not_recorded"), (MINUTE - HOUR, "missed"), (-2 * MINUTE, "missed")],
    ids=["long before", "before", "first missed", "last missed"],
)
def test_only_occurrences_within_an_outage_are_explained_by_it(offset: int, outcome: str) -> None:
    """An occurrence that was dropped hours before an outage is not explained by the outage."""
    assert explained(missed_in_an_outage(), OUTAGE_END + offset)[0] == outcome


def test_a_reason_with_the_word_missed_is_not_taken_for_an_outage() -> None:
    """If a pause is said to have missed something, the outcome of an occurrence before or in it is not `missed`."""
    at = OUTAGE_END
    key = STORED.spec.clock.zone.text_at(at)
    stored = replace(STORED, done=OUTAGE_END, updated_at=at + 2 * HOUR)
    by_pause = stored.remarked(at + HOUR, "", "paused: vendor missed a deploy")
    assert explained(by_pause, at)[0] == "not_recorded"
    by_key = stored.remarked(at, key, "the schedule 'nightly' is paused: vendor missed a deploy")
    assert explained(by_key, at)[0] == "skipped"
