"""Starts tasks once the tasks listed in `after` allow a start, and ends tasks that can no longer start.

A worker checks a task with dependencies when it is created, and again whenever a recovery scan finds the task. If the
task has to wait, the check records the task as waiting for each of its open dependencies. The write that ends a
dependency leaves `finished_at` unset. The steps that follow the dependency's outcome check all tasks that are recorded
as waiting for the dependency, and are repeated after a crash. Each task is started by a single conditional write.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, Guard, Write
from duetime.domain.errors import FaultCode, FieldInvalid, Unavailable
from duetime.domain.operating_parameters import (
    DEPENDENT_LIFE,
    OUTCOME_REMEMBERED,
    SOONEST_NEXT_LOOK,
)
from duetime.domain.tasks.attempt_results import failure
from duetime.domain.tasks.dependency_outcomes import (
    SKIPPED,
    UPSTREAM_FAILED,
    Found,
    outcome_of,
    reason_of,
    remembered,
    verdict_of,
    waits,
)
from duetime.domain.tasks.states import Move
from duetime.domain.times import DAY
from duetime.domain.topologies.trigger_rules import Outcome, Verdict
from duetime.services.content_retention import note_end
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from duetime.domain.conditional_writes import WriteResult
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.dependencies import Dependencies, Dependency, OccurrenceRef
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.domain.type_settings import RetentionPolicy
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.ports.tasks import DependentStore, OccurrenceFinder, TaskStore
    from duetime.services.enqueue import Enqueuer

_TRIES = 5
_AT_ONCE = 100
"""Number of dependents that are read and checked together."""


@frozen
class DependencyReader:
    """Reads the dependencies of tasks.

    Attributes:
        occurrences: finds the tasks of occurrences.
    """

    tasks: TaskStore
    occurrences: Callable[[], OccurrenceFinder]

    def accepted(self, owner: str, dependencies: Dependencies) -> Dependencies:
        """The dependencies of a new task. A dependency on an occurrence that already has a task refers to that task.

        Raises:
            FieldInvalid: a dependency is neither one of the owner's tasks nor an occurrence that will have a task.
        """
        found = self.read(owner, dependencies)
        for place, each in enumerate(found):
            if each.task is not None and each.task.exists_for(owner):
                continue
            if each.expected_at is None or each.task is not None:
                reason = each.reason or "is not the id of an existing task"
                raise FieldInvalid(f"after[{place}]", reason, FaultCode.NOT_ALLOWED)
        return remembered(dependencies, found, 0)

    def read(self, owner: str, dependencies: Dependencies, known: Mapping[TaskId, Task] | None = None) -> list[Found]:
        """The current dependencies, read with strong consistency.

        Args:
            owner: owner of the task that waits.
            dependencies: what the task waits for.
            known: tasks already read, which are not read again.
        """
        tasks = dict(known or {})
        unread = [each for each in dependencies.task_ids if each not in tasks]
        if unread:
            tasks |= self.tasks.read_many(unread, consistent=True)
        return [self._found(owner, each, tasks) for each in dependencies.on]

    def _found(self, owner: str, dependency: Dependency, tasks: Mapping[TaskId, Task]) -> Found:
        task = None if dependency.task_id is None else tasks.get(dependency.task_id)
        if dependency.outcome is not None:
            return Found(dependency, task, dependency.outcome)
        if dependency.occurrence is not None and (task is None or task.was_dropped):
            # A schedule change may have replaced the task with another task for the same time.
            return self._occurrence(owner, dependency, dependency.occurrence, task)
        # A task whose record was removed had ended, but its outcome is unknown, so it counts as failed.
        return Found(dependency, task, Outcome.FAILED if task is None else outcome_of(task))

    def _occurrence(self, owner: str, dependency: Dependency, ref: OccurrenceRef, dropped: Task | None) -> Found:
        """Look up an occurrence that has no task, or whose task was dropped."""
        run = self.occurrences().find(owner, ref)
        if run.task is not None:
            return Found(dependency, run.task, outcome_of(run.task))
        if run.expected_at is not None:
            return Found(dependency, None, None, run.expected_at)
        return Found(dependency, dropped, Outcome.SKIPPED, reason=run.reason)


@frozen
class DependencyChecker:
    """`duetime.ports.targets.DependencyListener` that releases and ends tasks with dependencies.

    Attributes:
        retention: how long a finished task is kept.
    """

    reader: DependencyReader
    stores: Stores
    dependents: DependentStore
    enqueuer: Enqueuer
    runtime: Runtime
    retention: RetentionPolicy

    def check(self, task: Task) -> None:
        """Start or end a task if its dependencies allow that.

        Otherwise, record the task as waiting for each of its open dependencies.

        Args:
            task: the task as just read.

        Raises:
            Unavailable: the check must be repeated.
        """
        is_noted = False
        for _ in range(_TRIES):
            if (after := task.after) is None or not waits(task):
                return
            found = self.reader.read(task.owner, after)
            result = self._decide(task, after, found)
            if isinstance(result, Applied):
                self.enqueuer.send_due([result.task])
                return
            if result is not None:
                # A concurrent write has released, paused, cancelled or changed the task.
                task = result.task or task
            elif is_noted:
                self._look_again(task, found)
                return
            else:
                # The dependencies are read again after the note is stored, so each dependency that is still open will
                # find the note when it ends.
                task, is_noted = self._note(task, after, found), True
        raise Unavailable(f"the task {task.id} has too many concurrent writes")

    def follow(self, ended: Task) -> None:
        """Check the tasks that wait for a task that has ended. The check may be repeated.

        Raises:
            Unavailable: the call must be repeated.
        """
        after: TaskId | None = None
        while page := self.dependents.page(ended.id, after, _AT_ONCE):
            tasks = self.stores.tasks.read_many(page, consistent=True).values()
            decided = self.runtime.executor.map(partial(self._after_end, ended), tasks)
            self.enqueuer.send_due([each for each in decided if each is not None])
            after = page[-1]

    def _after_end(self, ended: Task, task: Task) -> Task | None:
        """Start or end a task after another task ended; returns a changed task, for which `send_due` must follow."""
        for _ in range(_TRIES):
            if task.after is None or not waits(task):
                return None
            found = self.reader.read(task.owner, task.after, {ended.id: ended})
            result = self._decide(task, task.after, found) or self._remember(task, task.after, found)
            if result is None:
                return None
            if isinstance(result, Applied):
                return None if waits(result.task) else result.task
            if result.task is None:
                return None
            task = result.task
        raise Unavailable(f"the task {task.id} has too many concurrent writes")

    def _decide(self, task: Task, after: Dependencies, found: Sequence[Found]) -> WriteResult | None:
        """Release or end a task without sending messages; returns `None` if the task has to wait."""
        now, guard = self.runtime.now(), Guard(version=task.version)
        verdict = verdict_of(after, found)
        if verdict is Verdict.WAIT:
            return None
        if verdict is Verdict.READY:
            due = max(now, task.due_at)
            released: TaskChanges = {"due_at": due, "after": replace(after, is_met=True)}
            return self.enqueuer.write(task, Move.RELEASE, due, guard, released)
        kind = UPSTREAM_FAILED if verdict is Verdict.UPSTREAM_FAILED else SKIPPED
        error = failure(kind, reason_of(after, verdict, found), retriable=False).error
        # A worker runs the steps that follow the end, because other tasks may wait for this task.
        ended: TaskChanges = {"error": error, "finished_at": None, "expires_at": now + self.retention.of(task.type)}
        result = self.enqueuer.write(task, Move.DISMISS, now, guard, ended)
        if isinstance(result, Applied):
            self.runtime.telemetry.count("tasks_skipped", reason=kind)
            note_end(self.stores, self.enqueuer, self.runtime, result.task)
        return result

    def _note(self, task: Task, after: Dependencies, found: Sequence[Found]) -> Task:
        """Record a task as waiting for each of its open dependencies, and return the task's record."""
        open_tasks = {each.task.id: each.task for each in found if each.task is not None and each.outcome is None}
        self.runtime.executor.map(partial(self._note_at, task.id), open_tasks.values())
        result = self._remember(task, after, found)
        return task if result is None else result.task or task

    def _note_at(self, dependent: TaskId, dependency: Task) -> None:
        """Record a dependent, then mark the dependency, so that its end triggers a check of its dependents."""
        self.dependents.add(dependency.id, dependent, self.runtime.now() + DEPENDENT_LIFE)
        if not dependency.has_dependents:
            marked: TaskChanges = {"has_dependents": True}
            self.stores.tasks.apply(Write(dependency.id, Move.LINK, self.runtime.nonce(), sets=marked))

    def _remember(self, task: Task, after: Dependencies, found: Sequence[Found]) -> WriteResult | None:
        """Store the outcomes and tasks that the next check may no longer find; returns `None` if nothing is new."""
        seen = remembered(after, found, self.runtime.now() + OUTCOME_REMEMBERED)
        if seen == after:
            return None
        sets: TaskChanges = {"after": seen}
        return self.stores.tasks.apply(
            Write(task.id, Move.LINK, self.runtime.nonce(), Guard(version=task.version), sets)
        )

    def _look_again(self, task: Task, found: Sequence[Found]) -> None:
        """Schedule a check at the due time of the next occurrence that has no task yet."""
        expected = [each.expected_at for each in found if each.expected_at is not None]
        if not expected:
            return
        now, at = self.runtime.now(), min(expected)
        self.enqueuer.remind(task, at if at > now else now + min(max(SOONEST_NEXT_LOOK, now - at), DAY))
