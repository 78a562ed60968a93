"""Tickets, connections and subscriptions: who may watch, for how long, and what."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING

from duetime.domain.limits import WATCH_CONNECTION_LIFE, WATCH_TICKET_LIFE
from duetime.domain.tasks.filters import TaskFilter

if TYPE_CHECKING:
    from duetime.domain.times import Millis

TICKET_BITS = 256


class TopicKind(StrEnum):
    """What a subscription is about.

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


@dataclass(frozen=True, slots=True)
class Topic:
    """What is watched.

    Attributes:
        name: the id of the task or topology, the name of the schedule; empty for all tasks of the owner.
    """

    kind: TopicKind
    name: str = ""

    def __str__(self) -> str:
        """As messages have it, such as `task:01K...`."""
        return f"{self.kind}:{self.name}" if self.name else self.kind.value


@dataclass(frozen=True, slots=True)
class Ticket:
    """Opens one connection, once.

    Attributes:
        digest: of the ticket's text, which is not stored: who can read the table cannot connect.
        owner: on whose behalf the connection is opened.
    """

    digest: str
    owner: str
    expires_at: Millis

    @classmethod
    def issued(cls, text: str, owner: str, now: Millis) -> Ticket:
        """A new ticket."""
        return cls(digest_of(text), owner, expires_at=now + WATCH_TICKET_LIFE)


@dataclass(frozen=True, slots=True)
class Connection:
    """An open connection; what it may see is its owner's."""

    id: str
    owner: str
    expires_at: Millis

    @classmethod
    def opened(cls, id_: str, owner: str, now: Millis) -> Connection:
        """A new connection."""
        return cls(id_, owner, expires_at=now + WATCH_CONNECTION_LIFE)


@dataclass(frozen=True, slots=True)
class Subscription:
    """What one connection wants to be told of.

    Attributes:
        connection: which also says whose changes: those of other owners are never looked at.
        ref: the connection's own name for it; a second subscription of this name replaces it.
        task_filter: of `mine`: which tasks.
        slot: its place among those of the connection, which are few.
    """

    connection: Connection
    ref: str
    topic: Topic
    task_filter: TaskFilter = field(default_factory=TaskFilter)
    slot: int = 0


def digest_of(ticket: str) -> str:
    """By which a ticket is known."""
    return sha256(ticket.encode("utf-8", "surrogatepass")).hexdigest()
