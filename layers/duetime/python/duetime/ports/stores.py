"""Where tasks, their contents, idempotency keys and cursors are kept.

Every method may raise `duetime.domain.errors.Unavailable` if the store throttles or fails after its own retries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.circuit_breakers import Circuit
    from duetime.domain.conditional_writes import Write, WriteResult
    from duetime.domain.dispatch.cursors import Cursors
    from duetime.domain.dispatch.shards import ShardHistory
    from duetime.domain.dispatch.timers import BulkTimer, Entry, ScheduleTimer, Timer
    from duetime.domain.ids import TaskId
    from duetime.domain.incarnations import Incarnation
    from duetime.domain.locks import Holder, Lock, LockName, Waiter
    from duetime.domain.schedules.calendars import Calendar
    from duetime.domain.schedules.stored_schedule import Activity, StoredSchedule
    from duetime.domain.switches import Switches
    from duetime.domain.tasks.idempotency_keys import RememberedKey
    from duetime.domain.tasks.payload_expiry import Expiry
    from duetime.domain.tasks.task import AttemptRecord, Content, Task
    from duetime.domain.times import Millis

    MinuteItem: TypeAlias = Entry | Timer | ScheduleTimer | BulkTimer


@dataclass(frozen=True, slots=True)
class ListQuery:
    """Which of an owner's tasks to list, and in which order.

    Attributes:
        after: the last id of the page before; the list goes on behind it.
        descending: latest due first.
        failed_only: only tasks that are `failed`.
        limit: ids at the most.
    """

    owner: str
    after: TaskId | None = None
    descending: bool = True
    failed_only: bool = False
    limit: int = 100


@dataclass(frozen=True, slots=True)
class MinutePage:
    """A part of one shard of a minute.

    Attributes:
        items: what can be read of it, each with its sort key, in their order.
        last: the sort key after which the next page begins; `None` if this is the last one.
    """

    items: Sequence[tuple[str, MinuteItem]]
    last: str | None


class TaskStore(Protocol):
    """The records of tasks and their timers."""

    def create(self, task: Task) -> bool:
        """Write a new record, unless one of that id exists.

        Safe to resend: if the record exists with this task's own nonce, it was this call that wrote it.

        Returns:
            Whether the record is now this very task.
        """
        ...

    def read(self, task_id: TaskId) -> Task | None:
        """Read one record, consistently; `None` if there is none."""
        ...

    def read_many(self, task_ids: Sequence[TaskId], *, consistent: bool = False) -> dict[TaskId, Task]:
        """Read many records, eventually consistently unless asked otherwise; those that do not exist are left out."""
        ...

    def apply(self, write: Write) -> WriteResult:
        """Make one conditional write, in one request, with no read before or after it.

        Safe to resend: a refusal by a record that bears the write's own nonce is an application.
        """
        ...

    def add_timer(self, timer: Timer) -> None:
        """Write a timer into the minute of its look; writing it twice is writing it once.

        It replaces no timer that says anything else: that may be of a change that is accepted while this one is not.
        """
        ...

    def add_schedule_timer(self, timer: ScheduleTimer) -> None:
        """Write a schedule's timer into the minute of its look; writing it twice is writing it once."""
        ...

    def add_bulk_timer(self, timer: BulkTimer) -> None:
        """Write the timer of a bulk operation into its minute; writing it twice is writing it once."""
        ...

    def read_page(self, minute: int, shard: int, after: str, *, consistent: bool) -> MinutePage:
        """What the trigger needs of the next records and timers in one shard of one minute.

        Args:
            minute: the minute.
            shard: the shard.
            after: a sort key; the empty text for the first page.
            consistent: whether everything that was written before must be seen.
        """
        ...

    def list_ids(self, query: ListQuery) -> list[TaskId]:
        """Ids of an owner's tasks in order of their home times, eventually consistently."""
        ...


class ContentStore(Protocol):
    """Payloads and results too large for a record."""

    def keep(self, task_id: TaskId, name: str, data: bytes, expiry: Expiry | None = None) -> Content:
        """Keep bytes where their compressed size says; what belongs in the record is only handed back.

        Args:
            task_id: the task they belong to.
            name: what they are called; becomes `Content.name`. Keeping the same name twice is keeping it once: of
                what is there already, in an item, the expiry stays as it is.
            data: the bytes.
            expiry: when they may be removed if they lie outside; `None` for never.
        """
        ...

    def fetch(self, task_id: TaskId, content: Content) -> bytes:
        """The bytes of a content, wherever they lie.

        Raises:
            ContentExpired: they are not there.
        """
        ...

    def expire(self, task_id: TaskId, content: Content, expiry: Expiry) -> bool:
        """Let what lies outside the record be removed after an instant; says whether it is there."""
        ...

    def retain(self, task_id: TaskId, content: Content, expiry: Expiry | None = None) -> None:
        """Take the expiry of what lies outside the record away; in an item, only if it is this one, if one is named."""
        ...

    def expire_items(self, task_id: TaskId, expiry: Expiry) -> None:
        """Let all items beside a record be removed after an instant; those that expire later already stay so."""
        ...

    def store_attempt(self, task_id: TaskId, line: AttemptRecord) -> None:
        """Keep an attempt record that the record has no more room for; keeping it twice is keeping it once."""
        ...

    def attempts_outside(self, task_id: TaskId) -> list[Content]:
        """The attempt records of a task that were kept, as the items that they are."""
        ...

    def attempts_of(self, task_id: TaskId) -> list[AttemptRecord]:
        """The attempt records of a task that were kept, in no order; what has just been kept is among them."""
        ...


class KeyStore(Protocol):
    """Idempotency keys."""

    def remember(self, owner: str, key: str, wanted: RememberedKey, now: Millis) -> RememberedKey:
        """Keep what an owner's key stands for, unless the key is taken and not expired.

        Returns:
            What the key stands for now: `wanted`, or what was kept under it before.
        """
        ...


class SwitchStore(Protocol):
    """The switches of a deployment, which are few."""

    def read(self, *, consistent: bool) -> Switches:
        """Read all switches; there are none while nothing is stored."""
        ...

    def save(self, switches: Switches, nonce: str) -> bool:
        """Store all switches, if they are still at the version that was read.

        Safe to resend: a refusal by an item that bears the save's own nonce is a success.

        Returns:
            Whether they are stored.
        """
        ...


class CircuitStore(Protocol):
    """The circuits of HTTP hosts that have failed, each of one owner's calls."""

    def read(self, owner: str, host: str, *, consistent: bool) -> Circuit:
        """Read the circuit of an owner's calls to a host; it is closed while nothing is stored."""
        ...

    def save(self, circuit: Circuit, nonce: str, expires_at: Millis) -> bool:
        """Store a circuit, if it is still at the version that was read.

        Safe to resend: a refusal by an item that bears the save's own nonce is a success.

        Returns:
            Whether it is stored.
        """
        ...

    def list_open(self, limit: int) -> list[Circuit]:
        """Circuits that are not closed, by their hosts' names, eventually consistently."""
        ...


class CursorStore(Protocol):
    """How far each group of shards has been read, and by whom it is being read."""

    def take(self, group: int, holder: str, now: Millis, until: Millis, first: Cursors) -> Cursors | None:
        """Take a group for reading until the given instant, if nobody else holds it.

        Args:
            group: number of the group.
            holder: who takes it; unique to an invocation.
            now: the time by the taker's clock.
            until: when the hold ends by itself.
            first: the cursors of a group that has none yet.

        Returns:
            Its cursors, at a new epoch; `None` if somebody else holds it.

        Raises:
            ClockWrong: the store's own clock differs too much from `now`; the group is not taken.
        """
        ...

    def advance(self, group: int, cursors: Cursors, until: Millis) -> bool:
        """Store how far a group has been read, and keep the hold until `until` (0: let it go).

        Returns:
            Whether it is stored: not if the epoch is no longer the group's.
        """
        ...

    def join(self, group: int, cursors: Cursors) -> Cursors | None:
        """Add what was done to what is stored by now, whoever holds the group; the hold stays as it is.

        Returns:
            The cursors that are stored now, at a new epoch; `None` if somebody else holds the group.
        """
        ...


class LongPollStore(Protocol):
    """The places in which requests of the API wait: each is held by one at a time, until an instant."""

    def take(self, place: int, nonce: str, now: Millis, until: Millis) -> bool:
        """Take a place, unless another holds it. Safe to resend.

        Args:
            place: its number.
            nonce: of whoever takes it.
            now: a holder whose time was over by then has it no more.
            until: when this holder's time is over, should it not give the place back.
        """
        ...

    def give_back(self, place: int, nonce: str) -> None:
        """Let others have a place; it does nothing if another holds it by now."""
        ...


class ShardStore(Protocol):
    """How the number of shards has grown."""

    def read(self) -> ShardHistory:
        """Read every number that was announced, consistently."""
        ...

    def announce(self, shards: int, now: Millis) -> ShardHistory:
        """Make it known that there may be tasks in so many shards from now on. Safe to resend.

        Returns:
            Every number that was announced by now.
        """
        ...


class LockStore(Protocol):
    """Locks and the lines before them."""

    def read(self, name: LockName, waiters: int) -> tuple[Lock, list[Waiter]]:
        """Read a lock and the first of its line, consistently; one that is not stored has no holders."""
        ...

    def read_many(self, names: Sequence[LockName]) -> list[Lock]:
        """Read many locks without their lines, eventually consistently; those that are not stored are left out."""
        ...

    def save(self, lock: Lock, nonce: str, expires_at: Millis, taker: Holder | None = None) -> bool:
        """Store a lock's holders, if it is still at the version that was read.

        Safe to resend: a refusal by an item that bears the save's own nonce is a success.

        Args:
            lock: at the version that was read, with its new holders.
            nonce: of this save.
            expires_at: when the lock may be forgotten.
            taker: the attempt that takes it; refused if a later attempt of the same task is among the stored holders.

        Returns:
            Whether they are stored.
        """
        ...

    def renew(self, name: LockName, holder: Holder, expires_at: Millis) -> bool:
        """Let a hold last until the holder's new end; one that comes late takes back nothing that a later one gave.

        Args:
            name: the lock.
            holder: the task, its fence and its new end.
            expires_at: when the lock may be forgotten: not before any hold of it can end.

        Returns:
            Whether the task still holds the lock by this fence.
        """
        ...

    def join(self, name: LockName, waiter: Waiter, expires_at: Millis) -> None:
        """Put a task into a lock's line; joining twice is joining once."""
        ...

    def leave(self, name: LockName, waiter: Waiter) -> None:
        """Take a task out of a lock's line, unless it has joined again at a later turn."""
        ...

    def list_keys(self, owner: str, after: str, limit: int) -> list[str]:
        """Keys of an owner's locks in their order, eventually consistently; the list goes on behind `after`."""
        ...


class ScheduleStore(Protocol):
    """Schedules, and which of their occurrences goes on."""

    def read(self, owner: str, name: str) -> tuple[StoredSchedule | None, Activity]:
        """Read a schedule and its activity in one request, consistently."""
        ...

    def vacancy(self, owner: str, name: str) -> int | None:
        """The edition at which a schedule of this name is created, read consistently; `None` if there is one.

        It is 0 for a name that nothing has had lately, else the edition of the deletion marker: a creation names what
        it read, so that one which arrives late cannot replace what has come, or gone, in the meantime.
        """
        ...

    def save(self, stored: StoredSchedule, nonce: str) -> bool:
        """Store a schedule, if it is still itself and at the edition that was read; a new one, if the name is vacant.

        Its `uid` says which schedule it is: another one of the same name is left alone, whatever its edition.

        Safe to resend: a refusal by an item that bears the save's own nonce is a success.

        Returns:
            Whether it is stored, at the next edition.
        """
        ...

    def remove(self, stored: StoredSchedule, nonce: str, expires_at: Millis) -> bool:
        """Remove a schedule and its activity, if it is still at the edition that was read, or gone already.

        A deletion marker takes its place until `expires_at`; another schedule of its name is left alone.

        Returns:
            Whether it is gone.
        """
        ...

    def save_activity(self, owner: str, name: str, activity: Activity, nonce: str) -> bool:
        """Store which occurrence goes on, if that is still at the version that was read. Safe to resend.

        Returns:
            Whether it is stored, at the next version.
        """
        ...

    def list_after(self, owner: str, after: str, limit: int) -> list[StoredSchedule]:
        """An owner's schedules in order of their names, eventually consistently; the list goes on behind `after`."""
        ...


class CalendarStore(Protocol):
    """Calendars."""

    def put(self, owner: str, calendar: Calendar, incarnation: Incarnation, nonce: str) -> bool:
        """Store a calendar, if what is under its name is still at the edition that was read. Safe to resend.

        Returns:
            Whether it is stored, at the next edition.

        Raises:
            FieldInvalid: it is too large.
        """
        ...

    def read(self, owner: str, name: str) -> Calendar | None:
        """Read a calendar, consistently; `None` if there is none."""
        ...

    def read_edition(self, owner: str, name: str) -> tuple[Calendar | None, Incarnation]:
        """Read a calendar and the edition of what is under its name, consistently; a deletion marker has one too."""
        ...

    def remove(self, owner: str, calendar: Calendar, incarnation: Incarnation, nonce: str, expires_at: Millis) -> bool:
        """Remove a calendar, if it is still at the edition that was read, or gone already.

        A deletion marker takes its place until `expires_at`.

        Returns:
            Whether it is gone.
        """
        ...

    def list_after(self, owner: str, after: str, limit: int) -> list[Calendar]:
        """An owner's calendars in order of their names, eventually consistently; the list goes on behind `after`."""
        ...
