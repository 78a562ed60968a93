"""Purges tasks, or everything that an owner has, step by step in a bulk operation.

Every step can be repeated, because removed data is not found again. Data outside a record is removed before the record
that refers to it, so that a crash leaves no unreferenced data.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from duetime.domain.bulk import BulkKind, BulkProgress, FilterAction, PurgeStage, Removed
from duetime.domain.callers import Caller, Role
from duetime.domain.errors import OperatorRequired, RequestError, StateConflict, SwitchNotFound, TaskNotFound
from duetime.domain.limits import MAX_PAGE
from duetime.domain.operating_parameters import PURGE_PATIENCE
from duetime.domain.order_lines import LineName
from duetime.domain.switches import SwitchKey, SwitchScope
from duetime.domain.tasks.states import NOT_STARTED, State
from duetime.domain.tasks.task import unless_referenced
from duetime.domain.tasks.task_options import unique_of
from duetime.domain.times import HOUR, MINUTE
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime.domain.bulk import BulkOperation, PurgeRequest
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.change_consumers import ArchiveStore
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import PurgeRequestReader, Stores
    from duetime.services.bulk.filter_actions import FilteredTasks
    from duetime.services.bulk.manage import BulkOperations
    from duetime.services.rates import RateAdmin
    from duetime.services.schedules.calendars import CalendarManager
    from duetime.services.schedules.manage import ScheduleManager
    from duetime.services.switch_admin import SwitchAdmin
    from duetime.services.tasks.control import TaskControl
    from duetime.services.tasks.creation_rules import TypeAdmin
    from duetime.services.topologies.definitions import TopologyDefinitions
    from duetime.services.topologies.deletion import TopologyEraser

REQUEST = "request"
"""Name of the stored request body among an operation's contents."""
_ANY_STATE = tuple(State)


@frozen
class Purges:
    """Accepts purges."""

    operations: BulkOperations
    stores: Stores
    runtime: Runtime

    def start(self, caller: Caller, request: PurgeRequest, text: bytes) -> BulkOperation:
        """Start a purge.

        Args:
            caller: who requests the purge.
            request: what to purge.
            text: the request's body in UTF-8; later steps decode the request from it.

        Raises:
            OperatorRequired: the purge concerns another owner, and the caller is not an operator.
        """
        if request.owner != caller.owner:
            caller.require(Role.OPERATOR)
        operation = self.operations.new(caller.owner, BulkKind.PURGE)
        content = self.stores.contents.keep(operation.id, REQUEST, text, unless_referenced(self.runtime.now()))
        progress = BulkProgress(stage=request.first_stage)
        subject = "" if request.owner == caller.owner else request.owner
        return self.operations.start(
            replace(operation, request=content, progress=progress, subject=subject, actor=request.by.name)
        )


class Resources(Protocol):
    """An owner's resources other than tasks."""

    def remove(self, owner: str, until: Millis) -> Counter[str] | None:
        """Remove resources while time is left; returns the number removed by kind; `None` if no resource was left."""
        ...


@frozen
class TaskPurger:
    """Purges one task with its contents, attempts, nodes, unique key, ordered key and place in its group."""

    task_control: TaskControl
    task_eraser: TopologyEraser
    stores: Stores
    runtime: Runtime

    def purge(self, request: PurgeRequest, task: Task) -> None:
        """Erase a task.

        Raises:
            StateConflict: the task is open and the request does not cancel it; its attempt was just asked to stop; or
                the task cannot be erased now, for example because it is a topology node.
            VersionMismatch: the task has changed since it was read.
            TaskNotFound: the task was erased before.
        """
        if not task.is_terminal and not request.cancels:
            raise StateConflict(task, "purged: cancel it first, or set open_tasks to cancel")
        if not task.is_terminal and task.state not in NOT_STARTED:
            self.task_control.cancel_by_force(task.owner, task.id, task.version, request.by)
            raise StateConflict(task, "purged before its attempt has ended")
        self.task_eraser.erase(task.owner, task.id, task.version, first=self._remove_outside)

    def _remove_outside(self, task: Task) -> None:
        """Remove an ended task's data outside its record, while the record still has the keys of this data."""
        self.stores.contents.erase(task.id, task.contents_outside)
        unique = unique_of(task.unique, task.debounce)
        if unique is not None:
            self.stores.unique_keys.let_expire(task.owner, unique.key, task.id, task.fence, self.runtime.now())
        if task.group is not None:
            self.stores.groups.remove_member(task.owner, task.group, task.id)
        if task.order is not None:
            self.stores.order_lines.let_expire(LineName(task.owner, task.order.key), self.runtime.now())


@frozen
class PurgeSteps:
    """`duetime.ports.stores.BulkSteps` for purges.

    Attributes:
        archive: the archive; `None` if the deployment has no archive.
        read_request: decodes the body of a request.
    """

    filtered_tasks: FilteredTasks
    task_purger: TaskPurger
    resources: Callable[[], Resources]
    archive: ArchiveStore | None
    stores: Stores
    runtime: Runtime
    read_request: PurgeRequestReader

    def step(self, operation: BulkOperation, until: Millis) -> BulkProgress:
        """Run one more step of a purge."""
        text = b"" if operation.request is None else self.stores.contents.fetch(operation.id, operation.request)
        request = self.read_request(text, operation.subject or operation.owner)
        by = replace(request.by, name=operation.actor, operation=operation.id)
        return _PurgeStep(self, operation, replace(request, by=by), until).result()


@frozen
class _PurgeStep:
    steps: PurgeSteps
    operation: BulkOperation
    request: PurgeRequest
    until: Millis

    def result(self) -> BulkProgress:
        """Run the step, and return the progress after it."""
        progress = replace(self.operation.progress, next_at=0)
        match PurgeStage(progress.stage):
            case PurgeStage.RESOURCES:
                return self._remove_resources(progress)
            case PurgeStage.ARCHIVE:
                return self._rewrite_archive(progress)
            case _ if self.request.task_ids:
                return self._purge_named(progress)
            case _:
                return self._purge_page(progress)

    @property
    def _now(self) -> Millis:
        return self.steps.runtime.now()

    def _remove_resources(self, progress: BulkProgress) -> BulkProgress:
        removed = self.steps.resources().remove(self.request.owner, self.until)
        if removed is None:
            return replace(progress, stage=PurgeStage.TASKS)
        return replace(progress, removed=Counter(progress.removed) + removed)

    def _purge_page(self, progress: BulkProgress) -> BulkProgress:
        request = self.request
        action = FilterAction(
            replace(request.wanted, states=request.wanted.states or _ANY_STATE),
            after=progress.after,
            per_second=request.per_second,
            budget=max(0, self.until - self._now),
        )
        found = self.steps.filtered_tasks.purge(request.owner, action, self._purge_one)
        refused = [kind.__name__ for kind, count in found.refused.items() for _ in range(count)]
        after = progress.plus(examined=found.examined, matched=found.matched, affected=found.affected, refused=refused)
        after = _plus(after, Removed.TASKS, found.affected)
        return replace(after, after=found.after) if found.after else self._after_pass(after)

    def _purge_one(self, task: Task) -> None:
        # A purge of everything skips nodes, because every topology is erased together with its nodes.
        if not (self.request.is_whole and task.node_ref is not None):
            self.steps.task_purger.purge(self.request, task)

    def _purge_named(self, progress: BulkProgress) -> BulkProgress:
        """Purge the named tasks in one step; a request names at most one page of tasks."""
        refused: list[str] = []
        purged = 0
        for task in self._named_tasks():
            try:
                self.steps.task_purger.purge(self.request, task)
                purged += 1
            except TaskNotFound:
                continue
            except RequestError as refusal:
                refused.append(type(refusal).__name__)
        count = len(self.request.task_ids)
        after = progress.plus(examined=count, matched=purged + len(refused), affected=purged, refused=refused)
        return self._after_pass(_plus(after, Removed.TASKS, purged))

    def _named_tasks(self) -> Sequence[Task]:
        found = self.steps.stores.tasks.read_many(list(self.request.task_ids), consistent=True)
        own = [task for task in found.values() if task.owner == self.request.owner]
        for task in own:
            if task.erased:
                # The process that erased the task may have crashed before it erased the contents.
                self.steps.stores.contents.erase(task.id, ())
        return [task for task in own if not task.erased]

    def _after_pass(self, progress: BulkProgress) -> BulkProgress:
        """Begin another pass if more tasks may become erasable; otherwise begin the next stage."""
        is_first = progress.stage == PurgeStage.TASKS
        waited = self._now - self.operation.created_at
        conflicts = progress.refused.get(StateConflict.__name__, 0)
        if conflicts and (is_first or (self.request.cancels and waited < PURGE_PATIENCE)):
            # A pass over many tasks costs many reads, so the pause grows with the time since the purge began.
            pause = 0 if is_first and not self.request.cancels else min(max(waited, MINUTE), HOUR)
            return replace(
                progress,
                stage=PurgeStage.REMAINDER,
                after=None,
                # The next pass examines the tasks that are left, and counts them again.
                matched=progress.affected,
                refused={},
                next_at=self._now + pause if pause else 0,
            )
        if self.steps.archive is None or self._are_all_in_table():
            return replace(progress, after=None, is_complete=True)
        return replace(progress, stage=PurgeStage.ARCHIVE, after=None)

    def _are_all_in_table(self) -> bool:
        """Whether the request names the tasks, and all of them are still in the table, so none of them is archived."""
        ids = self.request.task_ids
        return bool(ids) and len(self.steps.stores.tasks.read_many(list(ids), consistent=True)) == len({*ids})

    def _rewrite_archive(self, progress: BulkProgress) -> BulkProgress:
        """Remove the rows of purged tasks from the next objects of the archive."""
        archive = self.steps.archive
        while archive is not None and (keys := archive.keys(progress.after_name, MAX_PAGE)):
            for key in keys:
                lines = archive.lines(key)
                kept = [line for line in lines if not self.steps.read_request.is_meant(self.request, line)]
                if len(kept) < len(lines):
                    archive.put(key, kept) if kept else archive.delete(key)
                    progress = _plus(progress, Removed.ARCHIVE_ROWS, len(lines) - len(kept))
                progress = replace(progress, after_name=key)
                if self._now >= self.until:
                    return progress
        return replace(progress, after_name="", is_complete=True)


@frozen
class OwnerResources:
    """Removes an owner's resources other than tasks, beginning with resources that use other resources."""

    schedules: ScheduleManager
    calendars: CalendarManager
    definitions: TopologyDefinitions
    types: TypeAdmin
    switches: SwitchAdmin
    rates: RateAdmin
    stores: Stores
    runtime: Runtime

    def remove(self, owner: str, until: Millis) -> Counter[str] | None:
        """Remove resources while time is left; returns the number removed by kind; `None` if no resource was left."""
        removed: Counter[str] = Counter()
        for kind, names, delete in (
            (Removed.SCHEDULES, self._schedules, self.schedules.delete),
            (Removed.CALENDARS, self._calendars, self.calendars.delete),
            (Removed.DEFINITIONS, self._definitions, self.definitions.delete),
            (Removed.GROUPS, self._groups, self.stores.groups.remove),
            (Removed.TYPE_DEFAULTS, self._types, self.types.delete),
            (Removed.RATES, self._rates, self.rates.clear),
        ):
            removed[kind] += self._remove_each(owner, names, delete, until)
        with suppress(OperatorRequired, SwitchNotFound):
            self.switches.delete(Caller(owner), SwitchKey(SwitchScope.OWNER, owner))
            removed[Removed.SWITCHES] += 1
        return +removed or None

    def _remove_each(
        self,
        owner: str,
        names: Callable[[str, str], Sequence[str]],
        delete: Callable[[str, str], object],
        until: Millis,
    ) -> int:
        """Delete named objects page by page; the lists are eventually consistent, so they may name deleted objects."""
        count = 0
        after = ""
        while self.runtime.now() < until and (page := names(owner, after)):
            for name in page:
                with suppress(RequestError):
                    delete(owner, name)
                    count += 1
            after = page[-1]
        return count

    def _schedules(self, owner: str, after: str) -> Sequence[str]:
        return [each.name for each in self.schedules.list(owner, after, MAX_PAGE)]

    def _calendars(self, owner: str, after: str) -> Sequence[str]:
        return [each.name for each in self.calendars.list(owner, after, MAX_PAGE)]

    def _definitions(self, owner: str, after: str) -> Sequence[str]:
        return [each.name for each in self.definitions.list(owner, after, MAX_PAGE)]

    def _groups(self, owner: str, after: str) -> Sequence[str]:
        return [each.id for each in self.stores.groups.list_after(owner, after, MAX_PAGE)]

    def _rates(self, owner: str, after: str) -> Sequence[str]:
        return self.rates.set_keys(owner, after, MAX_PAGE)

    def _types(self, owner: str, after: str) -> Sequence[str]:
        known = self.stores.type_defaults.read(owner, consistent=True).by_type
        return sorted(name for name in known if name > after)


def _plus(progress: BulkProgress, kind: Removed, count: int) -> BulkProgress:
    return replace(progress, removed=Counter(progress.removed) + Counter({kind.value: count}))
