"""Shows and closes groups."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.errors import FieldInvalid, GroupClosed, GroupNotFound, Unavailable
from duetime.domain.groups import OPEN_COUNT, GroupState, GroupStatus
from duetime.domain.limits import MAX_COUNTED_OPEN
from duetime.domain.tasks.creation import Order, Origin
from duetime.services.groups import opened
from duetime.services.tasks.read import FIRST_PAUSE, LONGEST_PAUSE
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.groups import Group
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.type_defaults import TaskSpec
    from duetime.domain.times import Millis
    from duetime.domain.topologies.trigger_rules import TriggerRule
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.services.groups import GroupMembers
    from duetime.services.long_poll_limit import LongPolls
    from duetime.services.tasks.create import TaskCreator

_TRIES = 10
_SOURCE = "duetime.group"
"""Source of the events from which completion tasks are created."""
_PLACE = "on_complete.task"


@frozen
class ClosingRequest:
    """A request to close a group.

    Attributes:
        spec: the task that runs once the group is complete; `None` if there is no such task.
        rule: how the members must have ended for the task to run.
        request_hash: hash of the request, which identifies repeats.
        traceparent: the trace context of the request.
    """

    spec: TaskSpec | None
    rule: TriggerRule
    request_hash: str
    traceparent: str | None = None


@frozen
class GroupManager:
    """Manages an owner's groups. Every method raises `Unavailable` if the store does not answer."""

    stores: Stores
    members: GroupMembers
    task_creator: TaskCreator
    long_polls: LongPolls
    runtime: Runtime

    def get(self, owner: str, group_id: str, wait: Millis = 0) -> GroupStatus:
        """Read a group with its counts; if requested, wait until the group is complete.

        Args:
            owner: owner of the group.
            group_id: id of the group.
            wait: longest wait, in milliseconds; if too many requests are already waiting, the call returns at once.

        Raises:
            GroupNotFound: the group does not exist, or belongs to another owner.
            QuotaExceeded: the owner already has as many waiting requests as its quota allows.
        """
        group = self._settled(self._read(owner, group_id))
        if wait and group.state is not GroupState.COMPLETED:
            with self.long_polls.place(owner, wait) as may_wait:
                group = self._awaited(group, wait) if may_wait else group
        return self._status(group)

    def require(self, owner: str, group_id: str) -> None:
        """Reject the id of a group that does not exist.

        Raises:
            GroupNotFound: the group does not exist, or belongs to another owner.
        """
        self._read(owner, group_id)

    def list(self, owner: str, after: str, limit: int) -> Sequence[Group]:
        """A page of an owner's groups, ordered by id; only the last page has fewer than `limit` groups."""
        now = self.runtime.now()
        found: list[Group] = []
        while len(found) < limit and (page := self.stores.groups.list_after(owner, after, limit - len(found))):
            found += [group for group in page if not group.has_expired(now)]
            after = page[-1].id
        return found

    def close(self, owner: str, group_id: str, request: ClosingRequest) -> GroupStatus:
        """Close a group, creating it if it does not exist, and create the task that waits for its members.

        Raises:
            GroupClosed: another request closed the group.
            FieldInvalid: the task is not allowed.
        """
        spec = None if request.spec is None else self._accepted(owner, request.spec)
        group = self._closed(owner, group_id, request)
        if spec is not None and group.completed_at is None:
            origin, trace = _origin(group, group.closed_at or 0), request.traceparent
            self.task_creator.create(owner, Order(spec, origin=origin, traceparent=trace, completes=group_id))
        return self._status(self._settled(group))

    def _accepted(self, owner: str, spec: TaskSpec) -> TaskSpec:
        """Check that the task can be created after the group is closed, which cannot be undone; returns the task."""
        rules = self.task_creator.rules
        try:
            rules.accept(owner, rules.resolved(owner, spec), None)
        except FieldInvalid as refusal:
            raise refusal.inside(_PLACE) from None
        return spec

    def _closed(self, owner: str, group_id: str, request: ClosingRequest) -> Group:
        for _ in range(_TRIES):
            now = self.runtime.now()
            group = opened(self.stores, self.runtime, owner, group_id, now)
            if not group.is_open:
                if group.request_hash != request.request_hash:
                    raise GroupClosed(group_id, "it was closed with another on_complete")
                return group
            completion = self._completion_id(group, now) if request.spec is not None else None
            wanted = replace(
                group,
                closed_at=now,
                expires_at=None,
                completion=completion,
                rule=request.rule,
                request_hash=request.request_hash,
            )
            if self.stores.groups.save(wanted, self.runtime.nonce()):
                return replace(wanted, version=wanted.version + 1)
        raise Unavailable(f"the group {group_id!r} has too many concurrent writes")

    def _completion_id(self, group: Group, at: Millis) -> TaskId:
        return _origin(group, at).task_id(at, self.task_creator.shards.at(at))

    def _read(self, owner: str, group_id: str) -> Group:
        group = self.stores.groups.read(owner, group_id)
        if group is None or group.has_expired(self.runtime.now()):
            raise GroupNotFound(group_id)
        return group

    def _settled(self, group: Group) -> Group:
        """Complete a closed group without open members, unless its completion task has not ended; returns the group."""
        if group.state is not GroupState.CLOSED:
            return group
        completion = None if group.completion is None else self.stores.tasks.read(group.completion)
        if group.completion is not None and (completion is None or not completion.is_terminal):
            return group
        return self.members.settle(group) or group

    def _awaited(self, group: Group, wait: Millis) -> Group:
        until, pause = self.runtime.now() + wait, FIRST_PAUSE
        while group.state is not GroupState.COMPLETED and (now := self.runtime.now()) < until:
            self.runtime.clock.sleep_until(min(now + pause, until))
            group = self._read(group.owner, group.id)
            pause = min(2 * pause, LONGEST_PAUSE)
        return self._settled(group)

    def _status(self, group: Group) -> GroupStatus:
        ended, ids, open_members = self.stores.groups.counts(group.owner, group.id, MAX_COUNTED_OPEN)
        counts = Counter({state.value: number for state, number in ended.items()})
        if open_members > MAX_COUNTED_OPEN:
            counts[OPEN_COUNT] += open_members
        elif ids:
            # If a member's item has no record, the creation of its task has crashed, so the item is not counted.
            counts.update(task.state.value for task in self.stores.tasks.read_many(ids, consistent=True).values())
        return GroupStatus(group, counts)


def _origin(group: Group, at: Millis) -> Origin:
    return Origin(_SOURCE, f"{group.owner}\0{group.id}\0{group.uid}", at)
