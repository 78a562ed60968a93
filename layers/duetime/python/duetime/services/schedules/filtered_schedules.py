"""Pauses and resumes all schedules with given tags, in bounded pieces, in order of name."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.bulk.filter_action import FilterResult
from duetime.domain.bulk.operation import BulkKind
from duetime.domain.errors import RequestError, Unavailable
from duetime.domain.limits import MAX_PAGE
from duetime.domain.schedules.errors import ScheduleNotFound
from duetime.domain.schedules.schedule import ScheduleState

if TYPE_CHECKING:
    from duetime.domain.bulk.filter_action import FilterAction
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.action_history import Attribution
    from duetime.ports.runtime import Clock
    from duetime.services.schedules.manage import ScheduleManager

_MEANT = {BulkKind.PAUSE: ScheduleState.ACTIVE, BulkKind.RESUME: ScheduleState.PAUSED}


class _NotMeantError(Exception):
    """The schedule does not match the request in its present state."""


@dataclass(frozen=True, slots=True)
class FilteredSchedules:
    """Pauses or resumes an owner's schedules; repeating a piece is safe."""

    manager: ScheduleManager
    clock: Clock

    def apply(self, owner: str, kind: BulkKind, action: FilterAction, by: Attribution) -> FilterResult:
        """Process one piece: a page of schedules, or as many of them as the time allows.

        Raises:
            Unavailable: the store did not answer, and nothing was done.
        """
        until = self.clock.now() + action.budget
        result, refused = FilterResult(0, 0, 0, {}, None, action.after_name), Counter[type[RequestError]]()
        page = self.manager.list(owner, action.after_name, MAX_PAGE)
        try:
            for each in page:
                if result.examined and self.clock.now() >= until:
                    return replace(result, refused=refused)
                matched, affected = self._applied(each, kind, action, by, refused)
                result = FilterResult(
                    *(result.examined + 1, result.matched + matched, result.affected + affected), {}, None, each.name
                )
        except Unavailable:
            if not result.affected:
                raise
            return replace(result, refused=refused)
        return replace(result, refused=refused, after_name=result.after_name if len(page) == MAX_PAGE else "")

    def _applied(
        self,
        listed: StoredSchedule,
        kind: BulkKind,
        action: FilterAction,
        by: Attribution,
        refused: Counter[type[RequestError]],
    ) -> tuple[bool, bool]:
        """Whether a schedule matches, and was paused or resumed."""

        def check(stored: StoredSchedule) -> None:
            # The list lags behind: the schedule may have other tags by now, or another one may have its name.
            if stored.state is not _MEANT[kind] or not _is_named(stored, action):
                raise _NotMeantError

        try:
            check(listed)
            if kind is BulkKind.PAUSE:
                self.manager.pause(listed.owner, listed.name, by, check=check)
            else:
                self.manager.resume(listed.owner, listed.name, by=by, check=check)
        except (_NotMeantError, ScheduleNotFound):
            return False, False
        except RequestError as refusal:
            refused[type(refusal)] += 1
            return True, False
        return True, True


def _is_named(stored: StoredSchedule, action: FilterAction) -> bool:
    """Whether its tasks have all of the tags; a schedule created after the request does not match."""
    is_later = action.until is not None and stored.created_at > action.until
    return not is_later and action.wanted.tags.items() <= stored.spec.task.tags.items()
