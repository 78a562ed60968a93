"""Lets tasks join groups and notes their ends; the last end completes a closed group and wakes its waiters.

A task joins before its record is written: its creator first writes a member item, then reads the group consistently. A
closing request writes the group first and reads the items later. Therefore, either the creator sees that the group is
closed, or the closing request sees the member.

The end of a task is noted after its outcome, by the process that wrote the outcome. If that process crashes, the item
still says that the member is open; the next check of the group reads the records of its first open members, and
corrects their items.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from duetime.domain.conditional_writes import Applied, Guard
from duetime.domain.errors import GroupClosed, Unavailable
from duetime.domain.groups import Group, Member
from duetime.domain.limits import GROUP_LIFE
from duetime.domain.operating_parameters import GROUP_CHECKED, GROUP_WAKE_PAUSE, GROUP_WAKE_TRIES
from duetime.domain.tasks.attempt_results import Postponed, SkipCode, Skipped
from duetime.domain.tasks.states import LEASED, STARTABLE, Move, State
from duetime.domain.tasks.wait_reasons import GROUP_AWAITED
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from duetime.domain.conditional_writes import WriteResult
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.creation import Identity, Order
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores

_TRIES = 10


class Mover(Protocol):
    """Makes moves that set a new check of a task, as `Enqueuer` does."""

    def move(self, task: Task, move: Move, at: Millis, guard: Guard, sets: TaskChanges) -> WriteResult:
        """Schedule a check of an existing task, and send its message if it is due soon."""
        ...


def join(stores: Stores, runtime: Runtime, owner: str, order: Order, identity: Identity) -> None:
    """Let a task that is about to be written join the group named in its request; a missing group is created.

    Raises:
        GroupClosed: the group takes no more members.
        Unavailable: the store did not answer.
    """
    groups, group_id, now = stores.groups, order.spec.group or "", runtime.now()
    known = groups.read(owner, group_id, consistent=False)
    if known is None or known.is_open or opened(stores, runtime, owner, group_id, identity.due_at).is_open:
        is_new = groups.add_member(owner, group_id, identity.task_id, now)
        if opened(stores, runtime, owner, group_id, identity.due_at).is_open:
            return
        if is_new and order.key is None and order.origin is None:
            # The item is removed only if no other request can create this task. If the request may be repeated, a later
            # check corrects the item instead.
            groups.remove_member(owner, group_id, identity.task_id)
    raise GroupClosed(group_id)


def opened(stores: Stores, runtime: Runtime, owner: str, group_id: str, due_at: Millis) -> Group:
    """Return the group with this id, open or closed, and create a missing group.

    Raises:
        Unavailable: the store did not answer, or the group has too many concurrent writes.
    """
    for _ in range(_TRIES):
        now = runtime.now()
        expires_at = max(now, due_at) + GROUP_LIFE
        group = stores.groups.read(owner, group_id)
        if group is None or group.has_expired(now):
            version = 0 if group is None else group.version
            uid = runtime.nonce()
            wanted = Group(owner=owner, id=group_id, uid=uid, created_at=now, expires_at=expires_at, version=version)
        elif group.is_open and group.expires_at is not None and group.expires_at < expires_at - GROUP_LIFE // 2:
            wanted = replace(group, expires_at=expires_at)
        else:
            return group
        if stores.groups.save(wanted, runtime.nonce()):
            return replace(wanted, version=wanted.version + 1)
    raise Unavailable(f"the group {group_id!r} has too many concurrent writes")


@frozen
class GroupMembers:
    """Notes the ends of members, and completes closed groups whose members have all ended."""

    stores: Stores
    enqueuer: Mover
    runtime: Runtime

    def note_end(self, task: Task) -> None:
        """Note the outcome of a member; if no other member is open, complete the group or wake its completion task.

        If the store does not answer, a later check of the group finds the end.
        """
        try:
            self._note(task)
        except Unavailable as error:
            self.runtime.telemetry.note("the end of a member was not noted", task=task.id.text, error=str(error))

    def note_completion(self, task: Task) -> None:
        """If no member is open, complete the group of a completion task that ended without completing the group.

        For example, a user may have cancelled that task. If members are open, the end of the last open member completes
        the group.
        """
        try:
            group = self.stores.groups.read(task.owner, task.completes or "")
            if group is not None and group.completion == task.id:
                self.settle(group)
        except Unavailable as error:
            self.runtime.telemetry.note("a group was not completed", task=task.id.text, error=str(error))

    def note_reopening(self, task: Task) -> None:
        """Note that an ended member is about to be reopened and counts as open until its next outcome.

        Raises:
            Unavailable: the store did not answer.
        """
        member = Member(task.id, None, task.version + 1, self.runtime.now())
        self.stores.groups.note(task.owner, task.group or "", member, None)

    def settle(self, group: Group) -> Group | None:
        """Complete a closed group if no member is open; returns `None` if a member is open.

        Raises:
            Unavailable: the store did not answer.
        """
        groups = self.stores.groups
        for _ in range(_TRIES):
            if group.completed_at is not None:
                return group
            if self._are_any_open(group):
                return None
            counts, _, open_members = groups.counts(group.owner, group.id, 0)
            if open_members:
                # A member was reopened in the meantime.
                return None
            now = self.runtime.now()
            completed = replace(group, completed_at=now, counts=counts, expires_at=now + GROUP_LIFE)
            if groups.save(completed, self.runtime.nonce()):
                return replace(completed, version=completed.version + 1)
            found = groups.read(group.owner, group.id)
            if found is None:
                return None
            group = found
        raise Unavailable(f"the group {group.id!r} has too many concurrent writes")

    def _note(self, task: Task) -> None:
        groups, owner, group_id = self.stores.groups, task.owner, task.group or ""
        now = self.runtime.now()
        groups.note(owner, group_id, Member(task.id, task.state, task.version, now), now + GROUP_LIFE)
        group = groups.read(owner, group_id)
        if group is None or group.is_open or group.completed_at is not None:
            return
        # The task's own partition is read first, so that members that end at the same time read different partitions.
        if groups.open_members(owner, group_id, 1, near=task.id):
            return
        if group.completion is None:
            self.settle(group)
        else:
            self._wake(group, group.completion)

    def _wake(self, group: Group, completion: TaskId) -> None:
        """Let a group's completion task run now; retry while a worker checks it, as that check may be too early.

        The task is due now, because it could not start earlier. If the completion task has already ended, this call
        completes the group instead.
        """
        for attempt in range(GROUP_WAKE_TRIES):
            task = self.stores.tasks.read(completion)
            if task is not None and task.is_terminal:
                self.settle(group)
            if task is None or task.state not in STARTABLE | LEASED:
                return
            if task.state in STARTABLE:
                # Its user may have set a later due time.
                at, guard = max(self.runtime.now(), task.due_at), Guard(version=task.version)
                sets: TaskChanges = {"due_at": at, "waiting_for": None}
                if isinstance(self.enqueuer.move(task, Move.EXPEDITE, at, guard, sets), Applied):
                    return
            if attempt < GROUP_WAKE_TRIES - 1:
                self.runtime.clock.sleep_until(self.runtime.now() + GROUP_WAKE_PAUSE)

    def _are_any_open(self, group: Group) -> bool:
        """Whether the record of any member is open; corrects the items of members whose tasks have ended."""
        groups = self.stores.groups
        while members := groups.open_members(group.owner, group.id, GROUP_CHECKED):
            found = self.stores.tasks.read_many([member.task_id for member in members], consistent=True)
            now = self.runtime.now()
            outdated = [member for member in members if member.is_outdated(found.get(member.task_id), now)]
            for member in outdated:
                self._correct(group, member, found.get(member.task_id), now)
            if len(outdated) < len(members):
                return True
        return False

    def _correct(self, group: Group, member: Member, task: Task | None, now: Millis) -> None:
        if task is None:
            self.stores.groups.remove_member(group.owner, group.id, member.task_id, member)
            return
        outcome = Member(task.id, task.state, max(task.version, member.version), now)
        self.stores.groups.note(group.owner, group.id, outcome, now + GROUP_LIFE, member)


@frozen
class CompletionGate:
    """Holds a group's completion task until all members have ended."""

    stores: Stores
    members: GroupMembers
    runtime: Runtime

    def held(self, task: Task) -> Postponed | Skipped | None:
        """Whether a just-claimed task must wait for members or be skipped, and why; `None` if the task may begin.

        Raises:
            Unavailable: the store did not answer.
        """
        if task.completes is None or task.state is State.ROLLING_BACK:
            return None
        group = self.stores.groups.read(task.owner, task.completes)
        if group is None or group.completion != task.id:
            return Skipped(f"its group {task.completes} was removed", SkipCode.GROUP)
        completed = self.members.settle(group)
        if completed is None:
            return Postponed(group.next_check(self.runtime.now()), f"{GROUP_AWAITED}{group.id}")
        if not completed.is_rule_met:
            return Skipped(f"the members of {group.id} did not end as the rule {group.rule} asks", SkipCode.GROUP)
        return None


def summary_of(stores: Stores, task: Task) -> bytes:
    """The summary that a group's completion task receives, as one JSON object in UTF-8."""
    group = stores.groups.read(task.owner, task.completes or "")
    return json.dumps({"group": _summary(task, group)}, separators=(",", ":")).encode()


def _summary(task: Task, group: Group | None) -> dict[str, object]:
    counts = {} if group is None else {state.value: number for state, number in sorted(group.counts.items())}
    return {"id": task.completes, "total": sum(counts.values()), "counts": counts}
