"""What may become of a time of a schedule."""

from __future__ import annotations

from enum import StrEnum


class OccurrenceOutcome(StrEnum):
    """What became of a time of a schedule.

    Attributes:
        RAN: its task has ended.
        OPEN: its task has not ended; its explanation says what it waits for.
        PLANNED: it will run.
        LATE: it is due, and has no task yet.
        SKIPPED: its task was skipped before it began, for the schedule or an earlier run of it.
        EXCLUDED: a calendar excludes it.
        CLOCK_CHANGE: the clock was set forward past it.
        MISSED: it was found too late.
        PAUSED: the schedule was paused, or is.
        NO_RUNS_LEFT: no runs remained, or remain.
        ENDED: the schedule had ended, or has.
        NOT_SCHEDULED: its timing does not mean that time.
        BEFORE_START: it lies before the start of the schedule.
        AFTER_END: it lies after the end of the schedule.
        BEFORE_CREATION: the schedule did not exist then.
        NOT_RECORDED: what is stored does not tell.
    """

    RAN = "ran"
    OPEN = "open"
    PLANNED = "planned"
    LATE = "late"
    SKIPPED = "skipped"
    EXCLUDED = "excluded"
    CLOCK_CHANGE = "clock_change"
    MISSED = "missed"
    PAUSED = "paused"
    NO_RUNS_LEFT = "no_runs_left"
    ENDED = "ended"
    NOT_SCHEDULED = "not_scheduled"
    BEFORE_START = "before_start"
    AFTER_END = "after_end"
    BEFORE_CREATION = "before_creation"
    NOT_RECORDED = "not_recorded"
