"""What is stored beside tasks and topologies: a protocol for each kind, and all of them together."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duetime.domain.bulk.filter_action import BulkRequest, FilterAction, FilterResult
    from duetime.domain.bulk.operation import BulkKind, BulkOperation, BulkProgress, Latest
    from duetime.domain.circuit_breakers import Circuit
    from duetime.domain.dispatch.cursors import Cursors, ShardHistory
    from duetime.domain.ids import TaskId
    from duetime.domain.live_updates import Connection, Notice, Subscription, Ticket, Watched
    from duetime.domain.locks import Holder, Lock, LockName, Waiter
    from duetime.domain.rates import RateName, RateState, RateUpdate
    from duetime.domain.resource_generations import Incarnation
    from duetime.domain.schedules.calendars import Calendar
    from duetime.domain.schedules.run_history import Activity
    from duetime.domain.schedules.schedule_record import RemovedSchedule, StoredSchedule
    from duetime.domain.summary import CountedSteps, Generation, Group, OlderTasks, Recount, Step, StepSet, Summary
    from duetime.domain.switches import Switches
    from duetime.domain.tasks.action_history import Attribution
    from duetime.domain.tasks.content import Expiry
    from duetime.domain.times import Millis
    from duetime.domain.tracebacks import AttemptTraceback
    from duetime.ports.tasks import ContentStore, KeyStore, TaskStore, UniqueKeyStore
    from duetime.ports.topologies import DefinitionStore, TopologyStore


class Stores(Protocol):
    """The stores of a deployment. A function makes only those that it asks for."""

    @property
    def tasks(self) -> TaskStore:
        """Records of tasks and their timers."""
        ...

    @property
    def contents(self) -> ContentStore:
        """Payloads and results."""
        ...

    @property
    def keys(self) -> KeyStore:
        """Idempotency keys."""
        ...

    @property
    def unique_keys(self) -> UniqueKeyStore:
        """Unique keys of tasks."""
        ...

    @property
    def schedules(self) -> ScheduleStore:
        """Schedules, and which of their occurrences goes on."""
        ...

    @property
    def calendars(self) -> CalendarStore:
        """Calendars."""
        ...

    @property
    def topologies(self) -> TopologyStore:
        """How far the runs of topologies have come."""
        ...

    @property
    def definitions(self) -> DefinitionStore:
        """Topology definitions."""
        ...

    @property
    def bulk(self) -> BulkStore:
        """Bulk operations."""
        ...

    @property
    def locks(self) -> LockStore:
        """Locks and who waits for them."""
        ...

    @property
    def rates(self) -> RateStore:
        """How far the rates of tasks are used up."""
        ...

    @property
    def switches(self) -> SwitchStore:
        """Switches."""
        ...

    @property
    def circuit_breakers(self) -> CircuitStore:
        """The circuits of HTTP hosts that have failed."""
        ...

    @property
    def cursors(self) -> CursorStore:
        """How far the minutes of each group of shards have been read."""
        ...

    @property
    def shards(self) -> ShardStore:
        """How the number of shards has grown."""
        ...

    @property
    def long_polls(self) -> LongPollStore:
        """Which requests of the API wait."""
        ...

    @property
    def subscriptions(self) -> WatchStore:
        """Who watches what."""
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

        Safe to resend: a rejection by an item that bears the save's own nonce is a success.

        Args:
            lock: at the version that was read, with its new holders.
            nonce: of this save.
            expires_at: when the lock may be forgotten.
            taker: the attempt that takes it; rejected if a later attempt of the same task is among the stored holders.

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
        """Take a task out of a lock's line, unless it has joined again with a later generation."""
        ...

    def list_keys(self, owner: str, after: str, limit: int) -> list[str]:
        """Keys of an owner's locks in their order, eventually consistently; the list goes on behind `after`."""
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


class RateStore(Protocol):
    """How far rates are used up."""

    def apply(self, name: RateName, update: RateUpdate, expires_at: Millis) -> tuple[bool, RateState]:
        """Make an update, if what it requires holds. One that is sent twice may be made twice: a start is lost then.

        Args:
            name: the part.
            update: what it sets, adds and requires.
            expires_at: when the part may be forgotten.

        Returns:
            Whether it was made; and the state after it, or the one that has rejected it.

        Raises:
            Unavailable: the store throttles or fails after its own retries.
        """
        ...


class SwitchStore(Protocol):
    """The switches of a deployment, which are few."""

    def read(self, *, consistent: bool) -> Switches:
        """Read all switches; there are none while nothing is stored."""
        ...

    def save(self, switches: Switches, nonce: str) -> bool:
        """Store all switches, if they are still at the version that was read.

        Safe to resend: a rejection by an item that bears the save's own nonce is a success.

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

        Safe to resend: a rejection by an item that bears the save's own nonce is a success.

        Returns:
            Whether it is stored.
        """
        ...

    def list_open(self, limit: int) -> list[Circuit]:
        """Circuits that are not closed, by their hosts' names, eventually consistently."""
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

    def read_removed(self, owner: str, name: str) -> RemovedSchedule | None:
        """What was left of the schedule that was last removed under a name, for some hours, if no other has it now."""
        ...

    def save(self, stored: StoredSchedule, nonce: str) -> bool:
        """Store a schedule, if it is still itself and at the edition that was read; a new one, if the name is vacant.

        Its `uid` says which schedule it is: another one of the same name is left alone, whatever its edition.

        Safe to resend: a rejection by an item that bears the save's own nonce is a success.

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


class SummaryStore(Protocol):
    """The counts of each owner's tasks, in parts, and which steps are in them."""

    def counted(self, of: StepSet) -> CountedSteps:
        """Read which steps of a set are counted, consistently."""
        ...

    def count(self, of: StepSet, counted: CountedSteps, steps: Sequence[Step], nonce: str) -> bool:
        """Add steps to the counts and remember them, both or neither, if the set is still as it was read.

        Args:
            of: the set.
            counted: as it was read; none of the steps is in it.
            steps: about no more than `MOST_TYPES` types.
            nonce: of this write.

        Returns:
            Whether they are counted. If not, somebody else has counted, or counts at the same time: read again.
        """
        ...

    def read(self, owner: str, part: int, generation: int = 0) -> Summary:
        """Read one part of an owner's counts, eventually consistently."""
        ...

    def expire_counts(self, owner: str, part: int, generation: int, expires_at: Millis) -> None:
        """Give one part of an owner's counts of all generations before this one a time to live. Safe to resend."""
        ...


class SummaryRecounts(Protocol):
    """The generations of the counts, and what recounts of the table find."""

    def generation(self) -> Generation | None:
        """Read the generation of the counts, consistently; `None` if nothing was ever counted."""
        ...

    def save(self, generation: Generation, nonce: str) -> bool:
        """Store the generation's next version, if it is still as it was read.

        Returns:
            Whether it is stored.
        """
        ...

    def is_fresh(self, at: Millis) -> bool:
        """Whether the table is small, and has no task that was created before a time."""
        ...

    def older_tasks(self, cursor: str, since: Millis, pages: int) -> OlderTasks:
        """Read a part of the table, for tasks that were created before a time, eventually consistently.

        Args:
            cursor: where the part begins; empty for the beginning of the table.
            since: the time.
            pages: the most megabytes to read.
        """
        ...

    def add_older(
        self, generation: Generation, recount: Recount, owner: str, type_: str, numbers: Mapping[Group, int]
    ) -> None:
        """Add what the part of a recount that is being counted found. Safe to resend."""
        ...

    def read_older(self, generation: Generation, recount: Recount, owner: str) -> Summary:
        """What a recount found of an owner's tasks, eventually consistently."""
        ...

    def list_owner(self, owner: str) -> None:
        """Have an owner in the list of those that have tasks."""
        ...

    def owners(self, after: str, limit: int) -> Sequence[str]:
        """The owners that have, or had, tasks: those behind one, in their order."""
        ...


class TracebackStore(Protocol):
    """One traceback a task: that of the attempt with the highest fence."""

    def keep(self, task_id: TaskId, traceback: AttemptTraceback, expiry: Expiry) -> None:
        """Keep a traceback in the place of the one before; not in that of a later attempt. Safe to resend."""
        ...

    def find(self, task_id: TaskId) -> AttemptTraceback | None:
        """The traceback that is kept for a task; `None` for none."""
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

    def read(self, group: int) -> Cursors | None:
        """Read how far a group has been read, eventually consistently; `None` if nobody has read it yet."""
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


class BulkStore(Protocol):
    """Bulk operations. Every method may raise `duetime.domain.errors.Unavailable`."""

    def read(self, operation_id: TaskId) -> BulkOperation | None:
        """Read one, consistently; `None` if there is none."""
        ...

    def save(self, operation: BulkOperation, nonce: str) -> bool:
        """Store one, if it is still at the version that was read. Safe to resend.

        Returns:
            Whether it is stored, at the next version.
        """
        ...

    def list(self, owner: str, limit: int) -> list[BulkOperation]:
        """The latest of an owner's operations, newest first, eventually consistently."""
        ...

    def latest_of(self, topology: TaskId) -> Latest:
        """Which operation was started last on a topology, read consistently."""
        ...

    def set_latest(self, latest: Latest, nonce: str, expires_at: Millis) -> bool:
        """Note which operation is started on a topology, if nobody else's was since that was read. Safe to resend.

        Returns:
            Whether it is stored.
        """
        ...


class BulkStarter(Protocol):
    """Whoever carries operations out."""

    def start(self, operation_id: TaskId) -> None:
        """Have an operation run now, without waiting for it. Its timer stands in for a start that is lost."""
        ...


class BulkSteps(Protocol):
    """Does the steps of one kind of bulk operations. Two may be at one for a moment: a step may be done twice."""

    def step(self, operation: BulkOperation, until: Millis) -> BulkProgress:
        """Do as much of an operation as fits before an instant, and tell how far it is then.

        Raises:
            Replaced: another request has replaced it.
            RequestError: it cannot be run.
            Unavailable: the step is to be done again.
        """
        ...


class ScheduleActions(Protocol):
    """Pauses and resumes schedules by a filter."""

    def apply(self, owner: str, kind: BulkKind, action: FilterAction, by: Attribution) -> FilterResult:
        """Do a piece; doing it again does no harm.

        Raises:
            Unavailable: the store did not answer, and nothing was done yet.
        """
        ...


class BulkRequestReader(Protocol):
    """Makes requests of their stored bodies."""

    def __call__(self, kind: BulkKind, text: bytes) -> BulkRequest:
        """The request of a body that was accepted."""
        ...


class WatchStore(Protocol):
    """Tickets, connections and subscriptions."""

    def put_ticket(self, ticket: Ticket) -> None:
        """Keep a new ticket."""
        ...

    def redeem(self, digest: str, connection_id: str, now: Millis) -> str | None:
        """Use a ticket up. Safe to resend: the connection that has used it may do so again.

        Returns:
            The owner that it was issued to; `None` if it is unknown, expired, or used by another connection.
        """
        ...

    def open(self, connection: Connection) -> None:
        """Keep a new connection."""
        ...

    def connection(self, connection_id: str) -> Connection | None:
        """Read a connection, consistently."""
        ...

    def close(self, connection: Connection) -> None:
        """Remove a connection and its subscriptions; safe to resend."""
        ...

    def subscribe(self, subscription: Subscription) -> bool:
        """Store a subscription in its slot; safe to resend.

        Returns:
            `False` if the slot has a subscription of another name.
        """
        ...

    def unsubscribe(self, subscription: Subscription) -> None:
        """Remove a subscription, unless its slot has one of another name by now."""
        ...

    def subscriptions(self, owner: str) -> list[Subscription]:
        """Read the subscriptions of an owner, consistently: whatever was stored before is among them."""
        ...


class Delivery(Enum):
    """What became of a message to a connection."""

    SENT = "sent"
    GONE = "gone"
    """The connection is closed."""
    REFUSED = "refused"
    """The connection, or the gateway, takes no more for now, or did not answer."""


class ConnectionSender(Protocol):
    """Writes to connections."""

    def send(self, connection_id: str, text: str) -> Delivery:
        """Send a message to a connection. Never raises."""
        ...


class MessageEncoder(Protocol):
    """Puts what connections are told into the words of the protocol."""

    def snapshot(self, ref: str, record: Watched | None) -> str:
        """What a subscription begins with; no record for a list."""
        ...

    def unsubscribed(self, ref: str) -> str:
        """That a subscription has ended."""
        ...

    def pong(self, ref: str | None) -> str:
        """The answer to a sign of life."""
        ...

    def stale(self, refs: Sequence[str]) -> str:
        """That what some subscriptions are about should be read again."""
        ...

    def error(self, ref: str | None, error: Exception) -> str:
        """Why a message was refused."""
        ...

    def changes(self, notices: Sequence[Notice]) -> list[str]:
        """Changes, in as few messages as hold them."""
        ...
