"""Updates, pauses and deletes schedules.

A change first sets the schedule's next timer, then writes the schedule, and then expands the schedule at once. If the
caller crashes, the trigger completes the change at that timer.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.bulk import BulkKind, FilterResult
from duetime.domain.errors import RequestError, ScheduleNotFound, ScheduleStateConflict, Unavailable
from duetime.domain.limits import MAX_EXAMINED, MAX_PAGE
from duetime.domain.operating_parameters import DELETION_MARKER_LIFE
from duetime.domain.schedules.occurrence_actions import CHANGED_OCCURRENCES, kept_by
from duetime.domain.schedules.schedule import ScheduleState
from duetime.domain.schedules.schedule_changes import edited, paused, rescheduled, resumed, retimed, with_new_timing
from duetime.domain.schedules.schedule_history import BY_OWNER, ScheduleAction, changed_fields, new_values
from duetime.services.schedules.schedule_writer import TRIES, busy
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime.domain.bulk import FilterAction
    from duetime.domain.schedules.calendars import Calendar
    from duetime.domain.schedules.definition import ScheduleSpec, ScheduleUpdate
    from duetime.domain.schedules.occurrence_actions import OccurrenceRequest
    from duetime.domain.schedules.schedule_record import ScheduleFilter, StoredSchedule
    from duetime.domain.tasks.action_history import Attribution
    from duetime.domain.tasks.task import Content
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Clock, Runtime
    from duetime.ports.stores import Stores
    from duetime.services.schedules.schedule_writer import ScheduleWriter


def _accept(_stored: StoredSchedule) -> None:
    """Accepts any schedule."""


@frozen
class ScheduleManager:
    """Reads, updates, pauses and deletes schedules, each for its owner.

    Every method that names a schedule raises `ScheduleNotFound` if no schedule has that name, and every method with a
    version raises `ScheduleVersionMismatch` if the schedule has a different version. Every method may raise
    `Unavailable`.
    """

    writer: ScheduleWriter
    stores: Stores
    runtime: Runtime

    def get(self, owner: str, name: str) -> StoredSchedule:
        """Read a schedule with its payload."""
        return self.writer.read_with_payload(owner, name)

    def list(self, owner: str, after: str, limit: int) -> Sequence[StoredSchedule]:
        """An owner's schedules whose names follow `after`, by name and with eventual consistency."""
        return self.stores.schedules.list_after(owner, after, limit)

    def find(
        self, owner: str, wanted: ScheduleFilter, after: str, limit: int
    ) -> tuple[Sequence[StoredSchedule], str | None]:
        """An owner's matching schedules whose names follow `after`, by name and with eventual consistency.

        A page is full, unless more than `MAX_EXAMINED` schedules would have to be read to fill it.

        Returns:
            The schedules, and the name after which the next page begins; `None` on the last page.
        """
        found: list[StoredSchedule] = []
        last, examined = max(after, wanted.before_first), 0
        while examined < MAX_EXAMINED:
            size = MAX_PAGE if wanted.reads_more else limit - len(found)
            page = self.list(owner, last, size)
            for each in page:
                if not each.name.startswith(wanted.name_prefix):
                    return found, None
                if len(found) == limit:
                    return found, last
                found += [each] if wanted.matches(each) else []
                last = each.name
            examined += len(page)
            if len(page) < size:
                return found, None
            if len(found) == limit:
                break
        return found, last

    def update(
        self,
        owner: str,
        name: str,
        update: ScheduleUpdate,
        version: int | None = None,
        by: Attribution = BY_OWNER,
    ) -> StoredSchedule:
        """Update a schedule; upcoming occurrences that were already placed are placed again.

        Occurrences that are due but have not begun are dropped if the new timing does not include their time; otherwise
        they run.

        Raises:
            FieldInvalid: a field is invalid, or the schedule would never run.
        """
        before = self.writer.read(owner, name, version)
        seen = before
        stored_payload: Content | None = None
        replaced_payload: Content | None = None

        def updated(stored: StoredSchedule) -> StoredSchedule:
            nonlocal seen, stored_payload, replaced_payload
            known = self._with_payload(stored).spec if update.task else stored.spec
            spec = update.of(known)
            if _is_same(spec, known) and "remaining_runs" not in update.fields:
                # The revision does not change, because a new revision would needlessly place the upcoming occurrences
                # again. A repeat of an interrupted update also ends here.
                replaced_payload = stored.former_payload
                return stored
            if update.task is not None:
                self.writer.expander.planner.occurrence_tasks.accept(owner, spec.task)
            seen = self.writer.marked(stored)
            after = with_spec(seen, spec, self.runtime.now(), self.writer.expander.planner.known_calendars_of(seen))
            if "remaining_runs" in update.fields:
                after = after.limited_to(spec.remaining_runs)
            after = after.recounted(seen)
            self.writer.check(after)
            changed, values = changed_fields(known, spec), new_values(known, spec)
            after = after.after_action(ScheduleAction.UPDATED, by, self.runtime.now(), changed, values=values)
            if update.task is None or not update.task.has_payload:
                return after
            stored_payload = stored_payload or self.writer.store_payload(stored.uid, spec.task.payload)
            # This is the payload that the current try replaces; a concurrent change may have replaced the payload that
            # an earlier try saw.
            replaced_payload = stored.payload
            return replace(
                after, payload=stored_payload, former_payload=stored.payload if stored.payload.is_outside else None
            )

        after = self.writer.write(before, version, updated, with_timer=True)
        if replaced_payload is not None:
            self.writer.retain_payload(after)
            self.writer.expire_payload(after.uid, replaced_payload)
        return self.writer.expand(self.writer.with_stopped_since(seen, after))

    def _with_payload(self, stored: StoredSchedule) -> StoredSchedule:
        """The schedule with the payload in its specification, for merging an update."""
        payload = self.writer.with_payload(stored).payload.data or b""
        return replace(stored, spec=replace(stored.spec, task=replace(stored.spec.task, payload=payload)))

    def delete(self, owner: str, name: str, version: int | None = None) -> None:
        """Delete a schedule; placed occurrences that have not begun are dropped when they are due."""
        stored = self.writer.read(owner, name, version)
        if stored.outside_payloads:
            # If this process crashes, the trigger later expires the contents that are left.
            self.writer.write_timer(stored)
        for _ in range(TRIES):
            expires_at = self.runtime.now() + DELETION_MARKER_LIFE
            if self.stores.schedules.remove(stored, self.runtime.nonce(), expires_at):
                self.writer.expire_payloads(stored)
                return
            try:
                stored = self.writer.read_again(stored, version)
            except ScheduleNotFound:
                # A concurrent request has deleted the schedule; the name now belongs to another schedule.
                return
        raise busy(name)

    def get_for_deletion(self, owner: str, name: str) -> StoredSchedule:
        """Read a schedule, as `get` does; if it is already deleted, expire payloads that the deletion may have left."""
        try:
            return self.get(owner, name)
        except ScheduleNotFound:
            removed = self.stores.schedules.read_removed(owner, name)
            if removed is not None:
                self.writer.expire_payloads(removed)
            raise

    def pause(
        self,
        owner: str,
        name: str,
        by: Attribution = BY_OWNER,
        version: int | None = None,
        check: Callable[[StoredSchedule], None] = _accept,
    ) -> StoredSchedule:
        """Pause a schedule; placed occurrences that have not begun do not run.

        If the schedule is already paused for a different reason, the new reason replaces that reason.

        A schedule that is already paused for the same reason does not change, regardless of its version, because the
        first response may have been lost.

        `check` is called just before the schedule is written, and raises if the schedule must not be paused.

        Raises:
            ScheduleStateConflict: the schedule has ended.
        """
        seen: StoredSchedule | None = None
        reason = by.reason

        def held(stored: StoredSchedule) -> StoredSchedule:
            nonlocal seen
            check(stored)
            if stored.state is ScheduleState.ENDED:
                raise ScheduleStateConflict(name, stored.state, "paused")
            if stored.state is ScheduleState.PAUSED and stored.paused_reason == reason:
                return stored
            if stored.state is ScheduleState.PAUSED:
                after = replace(stored, paused_reason=reason, version=stored.version + 1)
                return after.after_action(ScheduleAction.PAUSED, by, self.runtime.now())
            seen = self.writer.marked(stored)
            planner, now = self.writer.expander.planner, self.runtime.now()
            calendars = planner.known_calendars_of(seen)
            still_due = planner.stopped_occurrences.still_due(seen, now, calendars)
            return paused(seen, now, reason, calendars, by, still_due)

        stored = self.writer.read(owner, name)
        check(stored)
        if stored.state is not ScheduleState.PAUSED or stored.paused_reason != reason:
            stored = self.writer.with_stopped_since(seen or stored, self.writer.write(stored, version, held))
        return self.writer.with_payload(stored)

    def resume(
        self,
        owner: str,
        name: str,
        version: int | None = None,
        by: Attribution = BY_OWNER,
        check: Callable[[StoredSchedule], None] = _accept,
    ) -> StoredSchedule:
        """Resume a schedule from now on; occurrences that came due during the pause do not run.

        An active schedule does not change, regardless of its version, as in `pause`.

        `check` is called just before the schedule is written, and raises if the schedule must not be resumed.

        Raises:
            ScheduleStateConflict: the schedule has ended.
            FieldInvalid: a calendar that the schedule names was deleted, or its task's target is no longer allowed.
        """

        def going_on(stored: StoredSchedule) -> StoredSchedule:
            check(stored)
            if stored.state is not ScheduleState.PAUSED:
                return stored
            planner, now = self.writer.expander.planner, self.runtime.now()
            planner.occurrence_tasks.check(stored)
            calendars = planner.calendars_of(stored)
            return resumed(stored, now, calendars, planner.stopped_occurrences.dropped(stored, now), by)

        stored = self.writer.read(owner, name)
        check(stored)
        if stored.state is ScheduleState.ENDED:
            raise ScheduleStateConflict(name, stored.state, "resumed")
        if stored.state is ScheduleState.ACTIVE:
            return self.writer.with_payload(stored)
        return self.writer.expand(self.writer.write(stored, version, going_on, with_timer=True))


def _is_same(after: ScheduleSpec, before: ScheduleSpec) -> bool:
    """Whether an update changes nothing that is stored; `allow_unknown_type` is not stored."""
    task = replace(after.task, allow_unknown_type=before.task.allow_unknown_type)
    return replace(after, task=task) == before


def with_spec(stored: StoredSchedule, spec: ScheduleSpec, now: Millis, calendars: Sequence[Calendar]) -> StoredSchedule:
    """The schedule in its next revision, with a new specification; an ended schedule becomes active again.

    Args:
        stored: the schedule, marked with the occurrences that its user stopped.
        spec: new specification; changes of single occurrences are kept if the new timing includes these occurrences.
        now: the current time.
        calendars: the known calendars.
    """
    has_same_timing = spec.has_timing_of(stored.spec)
    if spec.changed_occurrences and spec.changed_occurrences == stored.spec.changed_occurrences and not has_same_timing:
        # If the new specification names other calendars, these calendars are not known here.
        known = calendars if spec.calendars == stored.spec.calendars else ()
        schedule = replace(stored, spec=spec).schedule(known)
        spec = replace(spec, changed_occurrences=kept_by(schedule, spec.changed_occurrences, now))
    after = _in_next_revision(stored, spec)(stored, now, calendars)
    after = replace(after, spec=replace(spec, task=replace(spec.task, payload=b"")))
    if not has_same_timing:
        after = with_new_timing(after)
    elif stored.state is ScheduleState.PAUSED:
        # Occurrences that come due after the pause run, even if their scheduled instant is during the pause.
        after = replace(after, done=stored.done)
    return replace(after, state=ScheduleState.ACTIVE) if after.state is ScheduleState.ENDED else after


def _in_next_revision(
    stored: StoredSchedule, spec: ScheduleSpec
) -> Callable[[StoredSchedule, Millis, Sequence[Calendar]], StoredSchedule]:
    """The function that makes the next revision; it determines what happens to occurrences that are already due."""
    is_permanent = stored.is_permanent or spec.written.permanent is not None
    if stored.state is ScheduleState.ACTIVE and spec.has_timing_of(stored.spec):
        return edited
    return retimed if is_permanent or stored.state is ScheduleState.PAUSED else rescheduled


@frozen
class OccurrenceChanger:
    """Changes single upcoming occurrences for their schedule's owner."""

    writer: ScheduleWriter
    runtime: Runtime

    def change(
        self,
        owner: str,
        name: str,
        request: OccurrenceRequest,
        version: int | None = None,
        by: Attribution = BY_OWNER,
    ) -> StoredSchedule:
        """Skip a single upcoming occurrence, move it or run it early, or undo such a change; the call may be repeated.

        Raises:
            FieldInvalid: the time is not an upcoming occurrence of the schedule, or its new time is invalid.
        """
        before = seen = self.writer.read(owner, name, version)

        def changed(stored: StoredSchedule) -> StoredSchedule:
            nonlocal seen
            seen = self.writer.marked(stored)
            calendars = self.writer.expander.planner.known_calendars_of(seen)
            changes = request.changes_of(seen.schedule(calendars), self.runtime.now())
            if changes == stored.spec.changed_occurrences:
                return stored
            spec = replace(seen.spec, changed_occurrences=changes)
            after = with_spec(seen, spec, self.runtime.now(), calendars)
            if not request.is_ahead_of(changes, after.updated_at):
                # This process was suspended in the meantime, so the occurrence is no longer upcoming.
                raise busy(name)
            return after.after_action(ScheduleAction.UPDATED, by, after.updated_at, (CHANGED_OCCURRENCES,))

        after = self.writer.write(before, version, changed, with_timer=True)
        return self.writer.expand(self.writer.with_stopped_since(seen, after))


_MEANT = {BulkKind.PAUSE: ScheduleState.ACTIVE, BulkKind.RESUME: ScheduleState.PAUSED}


class _NotMeantError(Exception):
    """The schedule's current state does not match the request."""


@frozen
class FilteredSchedules:
    """Pauses or resumes, piece by piece, an owner's schedules that match a filter. Repeating a piece is safe."""

    manager: ScheduleManager
    clock: Clock

    def apply(self, owner: str, kind: BulkKind, action: FilterAction, by: Attribution) -> FilterResult:
        """Process one piece, which is at most a page of schedules, as time allows; repeating a piece is safe.

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
        """Pause or resume a schedule if it matches; returns whether it matches, and whether it was changed."""

        def check(stored: StoredSchedule) -> None:
            # The list lags behind, so the schedule may have other tags by now, or another schedule may have its name.
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
    """Whether the schedule's tasks have all the tags; a schedule created after the request does not match."""
    is_later = action.until is not None and stored.created_at > action.until
    return not is_later and action.wanted.tags.items() <= stored.spec.task.tags.items()
