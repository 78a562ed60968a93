"""Handles requests that select tasks by a filter. If a request takes too long, a bulk operation does the rest."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Protocol

from duetime.domain.bulk import BulkKind, BulkOperation, BulkProgress, BulkState, FilterResult
from duetime.domain.errors import FieldInvalid, KeyReused, RequestError, Unavailable, VersionMismatch
from duetime.domain.limits import MAX_EXAMINED, MAX_PAGE
from duetime.domain.operating_parameters import BULK_INLINE
from duetime.domain.tasks.action_history import BY_SYSTEM
from duetime.domain.tasks.creation import Accepted, RememberedKey
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import Task, unless_referenced
from duetime.domain.times import SECOND
from duetime.ports.tasks import ListQuery
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime.domain.bulk import BulkRequest, FilterAction
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.action_history import Attribution
    from duetime.domain.tasks.creation import IdempotencyKey, TaskUpdate
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Clock, Runtime
    from duetime.ports.stores import BulkRequestReader, ScheduleActions, Stores
    from duetime.ports.tasks import TaskStore
    from duetime.services.bulk.manage import BulkOperations
    from duetime.services.signals import Signals
    from duetime.services.tasks.control import TaskControl
    from duetime.services.tasks.read import TaskReader
    from duetime.services.tasks.update import TaskUpdater


REQUEST = "request"
"""Name of the stored request body among an operation's contents."""


@frozen
class BulkRequests:
    """Accepts requests, and continues large requests in the background.

    Attributes:
        filtered_schedules: pauses and resumes schedules.
        signals: returns the service that wakes tasks that wait for an event.
        read_request: parses a stored request body.
    """

    operations: BulkOperations
    filtered_tasks: FilteredTasks
    filtered_schedules: Callable[[], ScheduleActions]
    signals: Callable[[], Signals]
    stores: Stores
    runtime: Runtime
    read_request: BulkRequestReader

    def piece(self, owner: str, request: BulkRequest) -> FilterResult:
        """Process one piece of the request, without starting a bulk operation for the rest."""
        return self._piece(owner, request, replace(request.action, budget=BULK_INLINE), request.by)

    def take(
        self, owner: str, request: BulkRequest, key: IdempotencyKey | None, *, at_once: bool = True
    ) -> Accepted[BulkOperation]:
        """Process a request at once if it is small and a client waits for it; otherwise start a bulk operation.

        Returns:
            The operation, ended or still running. An operation that ended at once is not stored if it has no key or
            sends a signal.

        Raises:
            FieldInvalid: the change is invalid for the first task; no task was changed.
            KeyReused: the request's idempotency key was used with a different body.
            Unavailable: the store did not answer. Either nothing was done, or the request must be repeated.
        """
        new = self.operations.new(owner, request.kind)
        operation = replace(new, progress=BulkProgress(after=request.action.after), actor=request.by.name)
        if key is not None:
            operation, known = self._remembered(operation, key)
            if known is not None:
                return Accepted(known, is_replay=True)
        progress = self._done_at_once(operation, request) if at_once else operation.progress
        operation = replace(operation, progress=progress)
        if not progress.is_complete:
            # The body's expiry is late enough that the body does not expire while the operation runs.
            expiry = unless_referenced(self.runtime.now())
            content = self.stores.contents.keep(operation.id, REQUEST, request.text, expiry)
            return Accepted(self.operations.start(replace(operation, request=content)))
        operation = operation.ended(BulkState.SUCCEEDED, self.runtime.now())
        if request.signal is not None:
            # The operation is not stored, because there may be many signals each second, and a repeated signal does no
            # harm.
            return Accepted(operation, is_replay=operation.id != new.id)
        if key is None or self.stores.bulk.save(operation, self.runtime.nonce()):
            return Accepted(operation)
        # A concurrent repeat of the same request stored its outcome first.
        return Accepted(self.stores.bulk.read(operation.id) or operation, is_replay=True)

    def step(self, operation: BulkOperation, until: Millis) -> BulkProgress:
        """Run one more step of an operation."""
        content = operation.request
        text = b"" if content is None else self.stores.contents.fetch(operation.id, content)
        request = self.read_request(operation.kind, text)
        return self._go_on(operation, request, max(0, until - self.runtime.now()))

    def _done_at_once(self, operation: BulkOperation, request: BulkRequest) -> BulkProgress:
        """Process as many tasks as fit into the time that the client waits for a response."""
        until = self.runtime.now() + BULK_INLINE
        step = SECOND / request.action.per_second if request.action.per_second else 0
        # With a slow pace, the pause after the first task would already exceed the time for the response.
        while step < BULK_INLINE and not operation.progress.is_complete:
            try:
                progress = self._go_on(operation, request, max(0, until - self.runtime.now()))
            except Unavailable:
                if not operation.progress.affected:
                    raise
                break
            operation = replace(operation, progress=progress)
            if self.runtime.now() + step >= until:
                break
        return operation.progress

    def _go_on(self, operation: BulkOperation, request: BulkRequest, budget: Millis) -> BulkProgress:
        before = operation.progress
        until = min((each for each in (request.action.until, operation.until) if each is not None), default=None)
        action = replace(request.action, after=before.after, limit=MAX_PAGE, budget=budget, until=until)
        action = replace(action, after_name=before.after_name)
        by = replace(request.by, name=operation.actor, operation=operation.id)
        if request.signal is not None:
            until = self.runtime.now() + budget
            result = self.signals().wake(operation.owner, request.signal, operation.id, before.after, until)
        else:
            result = self._piece(operation.owner, request, action, by)
        counted: list[str] = [kind.__name__ for kind, count in result.refused.items() for _ in range(count)]
        after = before.plus(examined=result.examined, matched=result.matched, affected=result.affected, refused=counted)
        is_complete = result.after is None and not result.after_name
        return replace(after, after=result.after or before.after, after_name=result.after_name, is_complete=is_complete)

    def _piece(self, owner: str, request: BulkRequest, action: FilterAction, by: Attribution) -> FilterResult:
        if request.kind.is_of_schedules:
            return self.filtered_schedules().apply(owner, request.kind, action, by)
        if request.kind is BulkKind.CANCEL:
            return self.filtered_tasks.cancel(owner, action, force=request.force, by=by)
        if request.update is not None:
            return self.filtered_tasks.update(owner, action, request.update, by)
        if request.kind is BulkKind.DELETE:
            return self.filtered_tasks.delete(owner, action)
        return self.filtered_tasks.retry(owner, action, by)

    def _remembered(self, operation: BulkOperation, key: IdempotencyKey) -> tuple[BulkOperation, BulkOperation | None]:
        """The operation that belongs to the idempotency key, and its stored copy, if any."""
        now = operation.created_at
        wanted = RememberedKey(operation.id, now, now, key.body_hash, expires_at=now + key.life)
        known = self.stores.keys.remember(operation.owner, key.text, wanted, now)
        if known.body_hash != key.body_hash:
            raise KeyReused
        if known.task_id == operation.id:
            return operation, None
        # The request does not cover tasks that were created after the request was first sent.
        since = known.created_at
        operation = replace(operation, id=known.task_id, created_at=since, until=since)
        return operation, self.stores.bulk.read(operation.id)


_AT_ONCE = 48
"""Number of tasks processed between two checks of the remaining time."""
_TRIES = 5
"""How often a change is tried if a task has concurrent writes."""


class NoLongerMatched(Exception):
    """A task matched the filter when it was read, but no longer matches, so it is neither changed nor reported."""


@dataclass(slots=True)
class Counts:
    """The counts of one piece so far."""

    after: TaskId | None
    examined: int = 0
    matched: int = 0
    affected: int = 0
    refused: Counter[type[RequestError]] = field(default_factory=Counter)

    def add(self, segment: Sequence[Task], matched: int) -> None:
        """Count examined tasks, some of which may match."""
        self.matched += matched
        self.examined += len(segment)
        self.after = segment[-1].id if segment else self.after


class FilteredTaskEraser(Protocol):
    """Erases tasks."""

    def erase(self, owner: str, task_id: TaskId, version: int | None = None) -> None:
        """Erase an ended task, with its nodes if it is a topology.

        Raises:
            TaskNotFound: the task was erased before.
            StateConflict: the task cannot be erased now.
            VersionMismatch: the task is not at the required version.
        """
        ...


class TopologyGates(Protocol):
    """Passes requests on topologies on to their nodes."""

    def apply_gate(self, task: Task) -> object:
        """Apply a request on a topology's task to its nodes; other tasks have no nodes."""
        ...


@frozen
class FilteredTasks:
    """Applies one action, piece by piece, to all of an owner's tasks that match a filter. Repeating a piece is safe."""

    tasks: TaskStore
    task_reader: TaskReader
    task_updater: TaskUpdater
    task_control: TaskControl
    task_eraser: Callable[[], FilteredTaskEraser]
    topologies: Callable[[], TopologyGates]
    runtime: Runtime

    def cancel(self, owner: str, action: FilterAction, *, force: bool, by: Attribution = BY_SYSTEM) -> FilterResult:
        """Cancel a piece of the tasks; with `force`, also ask running tasks to stop, and the nodes of topologies."""
        if not force:
            return self._apply(owner, action, lambda task: self.task_updater.cancel(owner, task.id, task.version, by))
        topologies = self.topologies()

        def stop(task: Task) -> None:
            topologies.apply_gate(self.task_control.cancel_by_force(owner, task.id, task.version, by))

        return self._apply(owner, action, stop)

    def update(self, owner: str, action: FilterAction, wanted: TaskUpdate, by: Attribution = BY_SYSTEM) -> FilterResult:
        """Change a piece of the tasks.

        Raises:
            FieldInvalid: the change is invalid for the first task; no task was changed. Rejections for later tasks are
                counted.
        """
        update = self.task_updater.update
        return self._apply(owner, action, lambda task: update(owner, task.id, wanted, task.version, by))

    def retry(self, owner: str, action: FilterAction, by: Attribution = BY_SYSTEM) -> FilterResult:
        """Retry a piece of the failed tasks; the filter selects failed tasks only."""
        return self._apply(owner, action, lambda task: self.task_control.retry(owner, task.id, task.version, by))

    def delete(self, owner: str, action: FilterAction) -> FilterResult:
        """Delete a piece of the ended tasks; the filter selects ended tasks only."""
        erase = self.task_eraser().erase
        return self._apply(owner, action, lambda task: erase(owner, task.id, task.version))

    def purge(self, owner: str, action: FilterAction, purge: Callable[[Task], object]) -> FilterResult:
        """Purge a piece of the tasks with a function that purges one task; the filter names the states to purge."""
        return self._apply(owner, action, purge)

    def _apply(self, owner: str, action: FilterAction, act: Callable[[Task], object]) -> FilterResult:
        """Process one piece; raises `Unavailable` only if no changed task was counted."""
        counts = Counts(action.after)
        try:
            self._go_through(owner, action, counts, partial(_act_while_meant, action, act))
        except Unavailable:
            if not counts.affected:
                raise
        return FilterResult(counts.examined, counts.matched, counts.affected, dict(counts.refused), counts.after)

    def _go_through(self, owner: str, action: FilterAction, counts: Counts, act: Callable[[Task], object]) -> None:
        pace = Pace(self.runtime.clock, action)
        failed_only = action.wanted.states == (State.FAILED,)
        while counts.examined < MAX_EXAMINED:
            query = ListQuery(
                owner,
                counts.after,
                descending=action.descending,
                limit=MAX_PAGE,
                failed_only=failed_only,
                in_group=action.wanted.group or "",
            )
            ids = self.tasks.list_ids(query)
            tasks: Sequence[Task] = self.task_reader.get_many(owner, ids)
            while tasks:
                if pace.is_over(counts):
                    return
                segment, tasks = _split(tasks, action, self._at_once(action, counts))
                self._do(segment, action, counts, pace, act)
            if len(ids) < MAX_PAGE:
                counts.after = None
                return
            counts.after = ids[-1]

    def _at_once(self, action: FilterAction, counts: Counts) -> int:
        """How many tasks to process in parallel. The first task is processed alone, because the change may be rejected.

        If a pace is set, all tasks are processed one at a time.
        """
        if action.is_dry:
            return MAX_EXAMINED
        is_first = not counts.affected and action.after is None
        return 1 if action.per_second or is_first else min(_AT_ONCE, action.limit - counts.matched)

    def _do(
        self,
        segment: Sequence[Task],
        action: FilterAction,
        counts: Counts,
        pace: Pace,
        act: Callable[[Task], object],
    ) -> None:
        """Process the matching tasks of a segment. If the store fails, count only what will not be counted again."""
        meant = [task for task in segment if action.means(task)]
        if action.is_dry:
            counts.add(segment, matched=len(meant))
            return
        attempt = partial(_attempted, act)
        ends = self.runtime.executor.map(attempt, meant) if len(meant) > 1 else [attempt(each) for each in meant]
        failures = [(place, end) for place, end in enumerate(ends) if isinstance(end, Unavailable)]
        if not failures:
            _count(segment, ends, action, counts)
            if any(not isinstance(end, NoLongerMatched) for end in ends):
                pace.keep(counts)
            return
        failed, error = failures[0]
        # The next piece begins with the task that failed. It processes the tasks after that task again, which is
        # harmless, unless they no longer match.
        passed = [*ends[:failed], *(end for end in ends[failed:] if _no_longer_matches(end, action))]
        _count(segment[: segment.index(meant[failed])], passed, action, counts)
        raise error


def _count(segment: Sequence[Task], ends: Sequence[object], action: FilterAction, counts: Counts) -> None:
    """Count the examined tasks of a segment, and how tasks were processed.

    Raises:
        FieldInvalid: the change is invalid for the first task.
    """
    refusals = [end for end in ends if isinstance(end, RequestError)]
    for refusal in refusals:
        if isinstance(refusal, FieldInvalid) and not counts.affected and action.after is None:
            raise refusal
        counts.refused[type(refusal)] += 1
    matched = sum(not isinstance(end, NoLongerMatched) for end in ends)
    counts.affected += matched - len(refusals)
    counts.add(segment, matched)


def _attempted(act: Callable[[Task], object], task: Task) -> object:
    """The result of changing a task, or the error that kept the task from being changed."""
    try:
        return act(task)
    except (NoLongerMatched, RequestError, Unavailable) as error:
        return error


def _no_longer_matches(end: object, action: FilterAction) -> bool:
    """Whether a task was changed so that it no longer matches, for example because it was erased."""
    return not isinstance(end, Exception) and not (isinstance(end, Task) and action.means(end))


def _split(tasks: Sequence[Task], action: FilterAction, most: int) -> tuple[Sequence[Task], Sequence[Task]]:
    """Split off the first tasks, which may be processed in parallel."""
    meant = 0
    for number, task in enumerate(tasks):
        meant += action.means(task)
        if meant == most:
            return tasks[: number + 1], tasks[number + 1 :]
    return tasks, ()


def _act_while_meant(action: FilterAction, act: Callable[[Task], object], task: Task) -> object:
    """Act on the version of a task that the filter matched; if the task has changed, match the new version first.

    Raises:
        NoLongerMatched: a user or an attempt changed the task so that it no longer matches.
        VersionMismatch: concurrent writes kept changing the task.
    """
    for _ in range(_TRIES - 1):
        try:
            return act(task)
        except VersionMismatch as refusal:
            task = refusal.task
            if not action.means(task):
                raise NoLongerMatched from None
    return act(task)


class Pace:
    """Limits the rate and the duration of a piece."""

    def __init__(self, clock: Clock, action: FilterAction) -> None:
        self._clock = clock
        self._apply = action
        self._started = clock.now()

    def is_over(self, counts: Counts) -> bool:
        """Whether the piece must end now; at least one task is always processed, even at a slow pace."""
        if not self._apply.is_dry and counts.matched >= self._apply.limit:
            return True
        is_late = self._clock.now() + self._step > self._started + self._apply.budget
        return is_late and counts.examined > 0

    def keep(self, counts: Counts) -> None:
        """Wait after a task, so that the pace holds even if the next piece follows immediately."""
        if self._pace:
            self._clock.sleep_until(self._started + ceil(counts.matched * SECOND / self._pace))

    @property
    def _pace(self) -> float | None:
        return None if self._apply.is_dry else self._apply.per_second

    @property
    def _step(self) -> Millis:
        return ceil(SECOND / self._pace) if self._pace else 0
