"""Decides which changes a WebSocket connection receives as live updates."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import field, replace
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING, TypeAlias

from duetime.domain.change_events import ScheduleSnapshot, TaskSnapshot
from duetime.domain.limits import MAX_PUSHED_CHANGES, WATCH_CONNECTION_LIFE, WATCH_TICKET_LIFE
from duetime.domain.tasks.filters import TaskFilter
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from duetime.domain.change_events import ChangeBatch, ScheduleChange, TaskChange
    from duetime.domain.times import Millis


Watched: TypeAlias = TaskSnapshot | ScheduleSnapshot
"""Records that can be watched."""


@frozen
class WatchedChange:
    """One write, or several consecutive writes, to one record.

    Attributes:
        subject: the record's topic.
        version: version of the record after the change; for a removal, the last version plus one.
        before: the record before the change; `None` if the record was created.
        after: the record after the change; `None` if the record was removed or is hidden from its owner.
    """

    owner: str
    subject: Topic
    version: int
    before: Watched | None
    after: Watched | None


@frozen
class Notice:
    """A change that is sent to a connection.

    Attributes:
        refs: names of the subscriptions that match the record after the change.
        left: names of the subscriptions that matched the record only before the change.
    """

    change: WatchedChange
    refs: tuple[str, ...]
    left: tuple[str, ...] = ()


@frozen
class Push:
    """The changes of a batch that are sent to one connection.

    Attributes:
        notices: the changes; empty if there are too many.
        stale: subscriptions whose subjects the client should read again, because there are too many changes.
    """

    connection: str
    notices: tuple[Notice, ...] = ()
    stale: tuple[str, ...] = ()

    @property
    def refs(self) -> tuple[str, ...]:
        """All affected subscriptions."""
        return self.stale or _refs_of(self.notices)


def watched(batch: ChangeBatch) -> list[WatchedChange]:
    """The changes to tasks and schedules that can be watched, as visible to the records' owners."""
    writes: list[TaskChange | ScheduleChange] = [*batch.tasks, *batch.schedules]
    found = map(_watched, writes)
    return [change for change in found if change is not None]


def topic_of(record: Watched) -> Topic:
    """The topic of a record."""
    if isinstance(record, ScheduleSnapshot):
        return Topic(TopicKind.SCHEDULE, record.name)
    return Topic(TopicKind.TASK, record.id.text)


def version_of(record: Watched) -> int:
    """A number that grows with every write of a record, even if the record's name is reused."""
    return record.edition if isinstance(record, ScheduleSnapshot) else record.version


def latest(changes: Iterable[WatchedChange]) -> list[WatchedChange]:
    """Merges changes, in any order, into one change per record, from its first to its last state.

    A batch may contain duplicates, and changes that have been processed before.
    """
    merged: dict[Topic, WatchedChange] = {}
    first: dict[Topic, int] = {}
    for change in changes:
        known = merged.get(change.subject)
        if known is None:
            merged[change.subject], first[change.subject] = change, change.version
            continue
        before = known.before
        if change.version < first[change.subject]:
            before, first[change.subject] = change.before, change.version
        merged[change.subject] = replace(max(known, change, key=lambda each: each.version), before=before)
    return list(merged.values())


def pushes(subscriptions: Iterable[Subscription], changes: Sequence[WatchedChange]) -> list[Push]:
    """The changes that each connection receives.

    Args:
        subscriptions: subscriptions of one owner.
        changes: changes of the same owner, one for each record.
    """
    of_connection: dict[str, list[Subscription]] = defaultdict(list)
    for each in subscriptions:
        of_connection[each.connection.id].append(each)
    found = (_push(connection, mine, changes) for connection, mine in of_connection.items())
    return [push for push in found if push.notices or push.stale]


def by_owner(changes: Iterable[WatchedChange]) -> Mapping[str, list[WatchedChange]]:
    """Groups changes by owner, with one merged change per record."""
    found: dict[str, list[WatchedChange]] = defaultdict(list)
    for change in changes:
        found[change.owner].append(change)
    return {owner: latest(of_owner) for owner, of_owner in found.items()}


def concerns(subscription: Subscription, record: Watched | None) -> bool:
    """Whether a subscription matches one state of a record."""
    topic = subscription.topic
    if record is None:
        return False
    if isinstance(record, ScheduleSnapshot):
        return topic == topic_of(record)
    match topic.kind:
        case TopicKind.TASK:
            return record.id.text == topic.name
        case TopicKind.TOPOLOGY:
            is_node = record.node_ref is not None and record.node_ref.topology.text == topic.name
            return is_node or record.id.text == topic.name
        case TopicKind.SCHEDULE:
            return record.schedule_ref is not None and record.schedule_ref.schedule == topic.name
        case TopicKind.MINE:
            return subscription.task_filter.matches(record)


def _watched(change: TaskChange | ScheduleChange) -> WatchedChange | None:
    record = change.after or change.before
    if record is None:
        return None
    before, after = _visible(change.before), _visible(change.after)
    version = version_of(record) + (1 if change.after is None else 0)
    return WatchedChange(record.owner, topic_of(record), version, before, after)


def _visible(record: Watched | None) -> Watched | None:
    """The record as visible to its owner. Erased tasks are kept in the table for a while, but are hidden."""
    return None if isinstance(record, TaskSnapshot) and record.erased else record


def _push(connection: str, subscriptions: Sequence[Subscription], changes: Sequence[WatchedChange]) -> Push:
    notices = [notice for change in changes if (notice := _notice(subscriptions, change)) is not None]
    if len(notices) <= MAX_PUSHED_CHANGES:
        return Push(connection, tuple(notices))
    return Push(connection, stale=_refs_of(notices))


def _refs_of(notices: Iterable[Notice]) -> tuple[str, ...]:
    return tuple(sorted({ref for notice in notices for ref in (*notice.refs, *notice.left)}))


def _notice(subscriptions: Sequence[Subscription], change: WatchedChange) -> Notice | None:
    refs = _concerned(subscriptions, change.after)
    left = tuple(ref for ref in _concerned(subscriptions, change.before) if ref not in refs)
    return Notice(change, refs, left) if refs or left else None


def _concerned(subscriptions: Sequence[Subscription], record: Watched | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.ref for each in subscriptions if concerns(each, record)))


TICKET_BITS = 256


class TopicKind(StrEnum):
    """The kind of a subscription's topic.

    Attributes:
        TASK: one task.
        TOPOLOGY: a topology and its nodes.
        SCHEDULE: a schedule and its runs.
        MINE: all tasks of the owner that match a filter.
    """

    TASK = "task"
    TOPOLOGY = "topology"
    SCHEDULE = "schedule"
    MINE = "mine"


@frozen
class Topic:
    """The topic of a subscription.

    Attributes:
        name: the id of the task or topology, or the name of the schedule; empty for all tasks of the owner.
    """

    kind: TopicKind
    name: str = ""

    def __str__(self) -> str:
        """The topic as written in messages, such as `task:01K...`."""
        return f"{self.kind}:{self.name}" if self.name else self.kind.value


@frozen
class Ticket:
    """A ticket that can be used once to open one connection.

    Attributes:
        digest: digest of the ticket's text. The text is not stored, so someone who can read the table still cannot
            connect.
        owner: the owner for whom the connection is opened.
        session_ends_at: when the caller's token expires; `None` if unknown.
    """

    digest: str
    owner: str
    expires_at: Millis
    session_ends_at: Millis | None = None

    @classmethod
    def issued(cls, text: str, owner: str, now: Millis, session_ends_at: Millis | None = None) -> Ticket:
        """A new ticket."""
        return cls(digest_of(text), owner, expires_at=now + WATCH_TICKET_LIFE, session_ends_at=session_ends_at)


@frozen
class Connection:
    """An open connection; it receives only its owner's changes, and no changes after the caller's token has expired."""

    id: str
    owner: str
    expires_at: Millis

    @classmethod
    def opened(cls, id_: str, ticket: Ticket, now: Millis) -> Connection:
        """A new connection."""
        ends = [] if ticket.session_ends_at is None else [ticket.session_ends_at]
        return cls(id_, ticket.owner, expires_at=min([now + WATCH_CONNECTION_LIFE, *ends]))


@frozen
class Subscription:
    """A subscription of a connection.

    Attributes:
        connection: the connection, whose owner's changes are sent.
        ref: the connection's name for the subscription; another subscription with the same name replaces it.
        task_filter: for the topic `mine`, the filter that selects the tasks.
        slot: its index among the connection's subscriptions.
    """

    connection: Connection
    ref: str
    topic: Topic
    task_filter: TaskFilter = field(default_factory=TaskFilter)
    slot: int = 0


def digest_of(ticket: str) -> str:
    """The digest under which a ticket is stored."""
    return sha256(ticket.encode("utf-8", "surrogatepass")).hexdigest()
