"""Protocols for all stores except the stores for tasks and topologies, and one protocol for a deployment's stores."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from duetime.domain import groups
    from duetime.domain.api_keys import ApiKey
    from duetime.domain.bulk import (
        BulkKind,
        BulkOperation,
        BulkProgress,
        BulkRequest,
        FilterAction,
        FilterResult,
        Latest,
        PurgeRequest,
    )
    from duetime.domain.circuit_breakers import Circuit
    from duetime.domain.conditional_writes import Incarnation
    from duetime.domain.dispatch.cursors import Cursors, ShardHistory
    from duetime.domain.groups import Member
    from duetime.domain.ids import TaskId
    from duetime.domain.intake_rules import IntakeRules
    from duetime.domain.links import Link
    from duetime.domain.live_updates import Connection, Notice, Subscription, Ticket, Watched
    from duetime.domain.locks import Holder, Lock, LockName, Waiter
    from duetime.domain.order_lines import LineName, LinePlace, OrderLine
    from duetime.domain.quotas import Hold, Quota, StoredQuotas, WindowCounts
    from duetime.domain.rates import RateName, RateState, RateUpdate
    from duetime.domain.schedules.calendars import Calendar
    from duetime.domain.schedules.run_history import Activity
    from duetime.domain.schedules.schedule_record import RemovedSchedule, StoredSchedule
    from duetime.domain.summary import CountedSteps, Generation, Group, OlderTasks, Recount, Step, StepSet, Summary
    from duetime.domain.switches import StoredSwitches, Switches
    from duetime.domain.tasks.action_history import Attribution
    from duetime.domain.tasks.event_waits import AwaitedEvent, SentSignal, WaitingTask
    from duetime.domain.tasks.states import State
    from duetime.domain.tasks.steps import StepResult
    from duetime.domain.tasks.task import Expiry
    from duetime.domain.tasks.type_defaults import OwnerTypes
    from duetime.domain.times import Millis
    from duetime.domain.tracebacks import AttemptTraceback
    from duetime.ports.tasks import ContentStore, KeyStore, TaskListStore, TaskStore, UniqueKeyStore, UploadStore
    from duetime.ports.topologies import DefinitionStore, TopologyStore


class GroupStore(Protocol):
    """Groups. Each member has an item that shows whether the member's task has ended, and in which state.

    Every method raises `Unavailable` if the store does not answer.
    """

    def read(self, owner: str, group_id: str, *, consistent: bool = True) -> groups.Group | None:
        """Read a group without its members; `None` if it does not exist."""
        ...

    def save(self, group: groups.Group, nonce: str) -> bool:
        """Write a group's next version if it still has the version that was read; return whether it was written."""
        ...

    def list_after(self, owner: str, after: str, limit: int) -> Sequence[groups.Group]:
        """An owner's groups in order of id, read with eventual consistency.

        Fewer than `limit` groups are returned only at the end.
        """
        ...

    def add_member(self, owner: str, group_id: str, task_id: TaskId, now: Millis) -> bool:
        """Write the item of a member that joins, or joins again before its end; return whether it was written."""
        ...

    def note(
        self, owner: str, group_id: str, member: Member, expires_at: Millis | None, read: Member | None = None
    ) -> None:
        """Store the outcome of a member, or that the member is open again, unless a later version is stored.

        Args:
            owner: owner of the group.
            group_id: id of the group.
            member: the new values.
            expires_at: when the item may be removed; `None` while the task is open.
            read: the item as read, which must still be unchanged; `None` to replace any version that is not later.
        """
        ...

    def remove_member(self, owner: str, group_id: str, task_id: TaskId, read: Member | None = None) -> None:
        """Remove a member's item.

        If `read` is given, the item is removed only if it has not changed since it was read.
        """
        ...

    def open_members(self, owner: str, group_id: str, limit: int, near: TaskId | None = None) -> Sequence[Member]:
        """Some of a group's open members, read with strong consistency; empty only if no member is open.

        Args:
            owner: owner of the group.
            group_id: id of the group.
            limit: maximum number of members.
            near: a member; the partition that contains this member is read first.
        """
        ...

    def counts(self, owner: str, group_id: str, most_open: int) -> tuple[Mapping[State, int], Sequence[TaskId], int]:
        """Count all members with strong consistency.

        Args:
            owner: owner of the group.
            group_id: id of the group.
            most_open: maximum number of ids of open members.

        Returns: The number of ended members by state, the ids of some open members, and the number of open members.
        """
        ...

    def remove(self, owner: str, group_id: str) -> bool:
        """Remove some members of a group, and the group itself when no member is left.

        Returns:
            Whether the group is removed.
        """
        ...


class Stores(Protocol):
    """The stores of a deployment, each of which is created when it is first used."""

    @property
    def tasks(self) -> TaskStore:
        """Records of tasks and their timers."""
        ...

    @property
    def task_lists(self) -> TaskListStore:
        """Lists of tasks by state, type, name, tag and more."""
        ...

    @property
    def contents(self) -> ContentStore:
        """Payloads and results."""
        ...

    @property
    def uploads(self) -> UploadStore:
        """Uploaded payloads."""
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
    def groups(self) -> GroupStore:
        """Groups of tasks, and their members."""
        ...

    @property
    def schedules(self) -> ScheduleStore:
        """Schedules and their active runs."""
        ...

    @property
    def calendars(self) -> CalendarStore:
        """Calendars."""
        ...

    @property
    def topologies(self) -> TopologyStore:
        """Run states of topologies."""
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
        """Locks and their lines."""
        ...

    @property
    def signals(self) -> SignalStore:
        """Signals, and the tasks that wait for them."""
        ...

    @property
    def order_lines(self) -> OrderLineStore:
        """Lines of ordered keys."""
        ...

    @property
    def rates(self) -> RateStore:
        """States of rates."""
        ...

    @property
    def switches(self) -> SwitchStore:
        """Switches."""
        ...

    @property
    def intake_rules(self) -> IntakeRuleStore:
        """Intake rules."""
        ...

    @property
    def quotas(self) -> QuotaStore:
        """Quotas of owners."""
        ...

    @property
    def quota_use(self) -> QuotaUseStore:
        """Usage of quotas."""
        ...

    @property
    def type_defaults(self) -> TypeDefaultsStore:
        """Defaults of task types."""
        ...

    @property
    def circuit_breakers(self) -> CircuitStore:
        """Circuits of HTTP hosts whose calls have failed."""
        ...

    @property
    def cursors(self) -> CursorStore:
        """The read position of each group of shards."""
        ...

    @property
    def shards(self) -> ShardStore:
        """Announced numbers of shards."""
        ...

    @property
    def long_polls(self) -> LongPollStore:
        """Places for waiting API requests."""
        ...

    @property
    def subscriptions(self) -> WatchStore:
        """Connections and subscriptions of live updates."""
        ...


class LockStore(Protocol):
    """Locks and their lines."""

    def read(self, name: LockName, waiters: int) -> tuple[Lock, list[Waiter]]:
        """Read a lock and the first tasks in its line (strong consistency); a missing lock has no holders."""
        ...

    def read_many(self, names: Sequence[LockName]) -> list[Lock]:
        """Read many locks without their lines (eventual consistency); missing locks are left out."""
        ...

    def save(self, lock: Lock, nonce: str, expires_at: Millis, taker: Holder | None = None) -> bool:
        """Store a lock's holders, if the lock still has the version that was read.

        The call is safe to resend, because a rejection by an item with the save's own nonce counts as success.

        Args:
            lock: the lock with the version that was read and the new holders.
            nonce: nonce of this save.
            expires_at: when the lock may be removed.
            taker: the attempt that takes the lock; the call is rejected if a later attempt of the same task is already
                a holder.

        Returns:
            Whether the holders are stored.
        """
        ...

    def renew(self, name: LockName, holder: Holder, expires_at: Millis) -> bool:
        """Extend a hold to the new end given in `holder`; a delayed renewal does not shorten the hold.

        Args:
            name: name of the lock.
            holder: the task, its fence and its new end.
            expires_at: when the lock may be removed; no hold may end later than this time.

        Returns:
            Whether the task still holds the lock with this fence.
        """
        ...

    def join(self, name: LockName, waiter: Waiter, expires_at: Millis) -> None:
        """Add a task to a lock's line; adding it again changes nothing."""
        ...

    def leave(self, name: LockName, waiter: Waiter) -> None:
        """Remove a task from a lock's line, unless it has joined again with a later generation."""
        ...

    def list_keys(self, owner: str, after: str, limit: int) -> list[str]:
        """The keys of an owner's locks that follow `after`, in order, read with eventual consistency."""
        ...


class SignalStore(Protocol):
    """Signals about events, and the tasks that wait for these events."""

    def put(self, event: AwaitedEvent, signal: SentSignal, expires_at: Millis) -> None:
        """Store a signal; storing it again changes nothing."""
        ...

    def since(self, event: AwaitedEvent, first: TaskId, page: int) -> Iterator[SentSignal]:
        """The signals about an event from the given id on, in order of ids, read with strong consistency.

        Args:
            event: the event.
            first: the lowest id.
            page: how many signals one request reads; the next request is sent when all these signals have been
                returned.
        """
        ...

    def join(self, event: AwaitedEvent, waiting: WaitingTask, expires_at: Millis) -> None:
        """Store that a task waits for an event; a later claim of the task replaces the entry."""
        ...

    def leave(self, event: AwaitedEvent, waiting: WaitingTask) -> None:
        """Remove the entry of a waiting task, unless a later claim has replaced the entry."""
        ...

    def waiting(self, event: AwaitedEvent, after: TaskId, limit: int) -> Sequence[WaitingTask]:
        """The next tasks that wait for an event, by id, read with strong consistency."""
        ...


class OrderLineStore(Protocol):
    """Lines of ordered keys."""

    def next_number(self, name: LineName, count: int, now: Millis) -> int:
        """Take the next numbers of a key, and return the first number.

        If a request is sent twice, some numbers are skipped.

        Args:
            name: name of the line.
            count: how many consecutive numbers to take.
            now: the time, after which the numbers of a key begin if it has no numbers yet, so that later numbers are
                always greater.
        """
        ...

    def join(self, name: LineName, place: LinePlace) -> None:
        """Add a place to a line; adding the place again changes nothing."""
        ...

    def leave(self, name: LineName, number: int) -> None:
        """Remove a place from a line; the place may already be removed."""
        ...

    def read(self, name: LineName, limit: int) -> OrderLine:
        """Read the turn and the first places of a line with strong consistency."""
        ...

    def read_many(self, names: Sequence[LineName]) -> list[OrderLine]:
        """Read the turns of many lines without their places (eventual consistency); missing lines are left out."""
        ...

    def list_keys(self, owner: str, after: str, limit: int) -> list[str]:
        """The ordered keys of an owner that follow `after`, in order, read with eventual consistency."""
        ...

    def give_turn(self, line: OrderLine, task_id: TaskId, nonce: str, now: Millis) -> bool:
        """Give the turn to a task, unless the turn has been given to a task since the line was read.

        The call is safe to resend, because a rejection by an item with the write's own nonce counts as success.

        Returns:
            Whether the task has the turn.
        """
        ...

    def let_expire(self, name: LineName, at: Millis) -> None:
        """Let the counter and the turn of a line expire, unless they are used again; places do not expire."""
        ...

    def list_before(self, name: LineName, number: int, limit: int) -> list[LinePlace]:
        """The places before a given number, nearest first, up to a limit, read with eventual consistency."""
        ...


class LongPollStore(Protocol):
    """Places for waiting API requests. Each place has at most one holder at a time."""

    def take(self, place: int, nonce: str, now: Millis, until: Millis) -> bool:
        """Take a place, unless another request holds it. The call is safe to resend.

        Args:
            place: number of the place.
            nonce: nonce of the request.
            now: the current time; a hold that has ended by this time does not count.
            until: when the hold ends if the place is not released.
        """
        ...

    def give_back(self, place: int, nonce: str) -> None:
        """Release a place, unless another request holds the place."""
        ...


class RateStore(Protocol):
    """States of rates."""

    def read_many(self, names: Sequence[RateName], *, consistent: bool = False) -> Mapping[RateName, RateState]:
        """Read parts, eventually consistent by default; missing parts are left out."""
        ...

    def list_keys(self, owner: str, after: str, limit: int) -> list[str]:
        """The keys of an owner's rates that follow `after`, in order, read with eventual consistency."""
        ...

    def apply(self, name: RateName, update: RateUpdate, expires_at: Millis | None) -> tuple[bool, RateState]:
        """Make an update, if its conditions are met.

        An update that is sent twice may be made twice, which wastes a start.

        Args:
            name: name of the part.
            update: values to set and to add, and their conditions.
            expires_at: when the part may be removed; `None` for no expiry.

        Returns: Whether the update was made, and the state after the update, or the state that caused its rejection.

        Raises:
            Unavailable: the store throttles or fails after its own retries.
        """
        ...


class TypeDefaultsStore(Protocol):
    """The defaults that owners set for the types of their tasks."""

    def read(self, owner: str, *, consistent: bool) -> OwnerTypes:
        """Read all defaults of an owner; empty while nothing is stored."""
        ...

    def save(self, owner: str, types: OwnerTypes, nonce: str) -> bool:
        """Store all defaults of an owner, if they still have the version that was read.

        The call is safe to resend, because a rejection by an item with the save's own nonce counts as success.

        Returns:
            Whether the defaults are stored.
        """
        ...


class SwitchStore(Protocol):
    """The switches of a deployment."""

    def read(self, *, consistent: bool) -> StoredSwitches:
        """Read all switches; empty while nothing is stored."""
        ...

    def save(self, switches: Switches, nonce: str) -> bool:
        """Store the switches of a setter, if they still have the version that was read.

        The call is safe to resend, because a rejection by an item with the save's own nonce counts as success.

        Returns:
            Whether the switches are stored.
        """
        ...


class IntakeRuleStore(Protocol):
    """The intake rules of a deployment."""

    def read(self, *, consistent: bool) -> IntakeRules:
        """Read all intake rules; empty while nothing is stored."""
        ...

    def save(self, rules: IntakeRules, nonce: str) -> bool:
        """Store all intake rules, if they still have the version that was read.

        The call is safe to resend, because a rejection by an item with the save's own nonce counts as success.

        Returns:
            Whether the rules are stored.

        Raises:
            IntakeRulesFull: the rules are too large in total.
        """
        ...


class QuotaStore(Protocol):
    """The quotas of the owners that have their own quotas."""

    def read(self, *, consistent: bool) -> StoredQuotas:
        """Read all owners' quotas; empty while nothing is stored."""
        ...

    def save(self, quotas: StoredQuotas, nonce: str) -> bool:
        """Store all owners' quotas, if they still have the version that was read.

        The call is safe to resend, because a rejection by an item with the save's own nonce counts as success.

        Returns:
            Whether the quotas are stored.
        """
        ...


class QuotaUseStore(Protocol):
    """The owners' usage of their quotas."""

    def counts(self, owner: str, now: Millis) -> WindowCounts:
        """Read an owner's usage in the current window and the two previous windows (eventual consistency)."""
        ...

    def add(
        self, owner: str, window: int, quota: Quota, amount: int, below: int | None, expires_at: Millis
    ) -> tuple[bool, Mapping[Quota, int]]:
        """Add to a count of a window. A request that is sent twice may be counted twice.

        Args:
            owner: the owner.
            window: number of the window.
            quota: the quota.
            amount: usage to add.
            below: add only if the count is below this number; `None` to add in any case.
            expires_at: when the counts may be removed.

        Returns:
            Whether the amount was added, and the counts of the window.
        """
        ...

    def holds(self, owner: str, quota: Quota) -> Mapping[str, Hold]:
        """Read an owner's stored holds for a quota, by name, with strong consistency; some may have ended."""
        ...

    def hold(self, owner: str, quota: Quota, name: str, hold: Hold, expires_at: Millis) -> None:
        """Store a hold, which counts towards an owner's quota. The call is safe to resend."""
        ...

    def take(self, owner: str, quota: Quota, place: int, nonce: str, now: Millis, until: Millis) -> bool:
        """Take a place, unless another taker has it; the same taker renews its hold. The call is safe to resend.

        Args:
            owner: the owner.
            quota: the quota that the place belongs to.
            place: number of the place.
            nonce: identifies the taker.
            now: the current time; a hold that has ended by this time does not count.
            until: when the hold ends if the place is not released before.

        Returns:
            Whether the place is taken.
        """
        ...

    def drop(self, owner: str, quota: Quota, name: str, nonce: str = "") -> None:
        """Remove a hold; if a nonce is given, do so only if the taker with this nonce has the hold.

        The call is safe to resend.
        """
        ...


class CircuitStore(Protocol):
    """The circuits of HTTP hosts whose calls have failed, with one circuit for each owner and host."""

    def read(self, owner: str, host: str, *, consistent: bool) -> Circuit:
        """Read the circuit for an owner's calls to a host; if no circuit is stored, it is closed."""
        ...

    def save(self, circuit: Circuit, nonce: str, expires_at: Millis) -> bool:
        """Store a circuit, if it still has the version that was read.

        The call is safe to resend, because a rejection by an item with the save's own nonce counts as success.

        Returns:
            Whether the circuit is stored.
        """
        ...

    def list_open(self, limit: int) -> list[Circuit]:
        """Circuits that are not closed, in order of host name, read with eventual consistency."""
        ...


class ScheduleStore(Protocol):
    """Schedules and their active runs."""

    def read(self, owner: str, name: str) -> tuple[StoredSchedule | None, Activity]:
        """Read a schedule and its activity in one request with strong consistency."""
        ...

    def vacancy(self, owner: str, name: str) -> int | None:
        """The edition for creating a schedule with this name (strong consistency); `None` if the name is taken.

        The edition is 0 for an unused name, and otherwise the deletion marker's edition. A request to create a schedule
        passes the edition that it read, so that a late request cannot replace a schedule that was created or deleted in
        the meantime.
        """
        ...

    def read_removed(self, owner: str, name: str) -> RemovedSchedule | None:
        """Data left over from the last schedule deleted under a name.

        The data is kept until the deletion marker expires, unless the name is reused.
        """
        ...

    def save(self, stored: StoredSchedule, nonce: str) -> bool:
        """Store a schedule if its identity and edition are unchanged, or store a new schedule if the name is free.

        The `uid` identifies the schedule, so another schedule with the same name is not changed, regardless of its
        edition.

        The call is safe to resend, because a rejection by an item with the save's own nonce counts as success.

        Returns:
            Whether the schedule is stored, at the next edition.
        """
        ...

    def remove(self, stored: StoredSchedule, nonce: str, expires_at: Millis) -> bool:
        """Remove a schedule and its activity if its edition has not changed since it was read.

        If the schedule is already deleted, only its activity is removed.

        A deletion marker replaces the schedule until `expires_at`; another schedule with its name is not changed.

        Returns:
            Whether the schedule is deleted.
        """
        ...

    def save_activity(self, owner: str, name: str, activity: Activity, nonce: str) -> bool:
        """Store the activity, if it still has the version that was read. The call is safe to resend.

        Returns:
            Whether the activity is stored, at the next version.
        """
        ...

    def count(self, owner: str, most: int) -> int:
        """The number of an owner's schedules, counted up to `most`, read with eventual consistency."""
        ...

    def list_after(self, owner: str, after: str, limit: int) -> list[StoredSchedule]:
        """The schedules of an owner that follow `after`, in order of name, read with eventual consistency.

        Fewer than `limit` schedules are returned only at the end.
        """
        ...


class CalendarStore(Protocol):
    """Calendars."""

    def put(self, owner: str, calendar: Calendar, incarnation: Incarnation, nonce: str) -> bool:
        """Store a calendar, if its name still has the edition that was read. The call is safe to resend.

        Returns:
            Whether the calendar is stored, at the next edition.

        Raises:
            FieldInvalid: the calendar is too large.
        """
        ...

    def read(self, owner: str, name: str) -> Calendar | None:
        """Read a calendar with strong consistency; `None` if it does not exist."""
        ...

    def read_edition(self, owner: str, name: str) -> tuple[Calendar | None, Incarnation]:
        """Read a calendar and the edition of its name (strong consistency). A deletion marker also has an edition."""
        ...

    def remove(self, owner: str, calendar: Calendar, incarnation: Incarnation, nonce: str, expires_at: Millis) -> bool:
        """Delete a calendar if its edition has not changed since it was read; do nothing if it is already deleted.

        A deletion marker replaces the calendar until `expires_at`.

        Returns:
            Whether the calendar is deleted.
        """
        ...

    def list_after(self, owner: str, after: str, limit: int) -> list[Calendar]:
        """The calendars of an owner that follow `after`, in order of name, read with eventual consistency.

        Fewer than `limit` calendars are returned only at the end.
        """
        ...


class SummaryStore(Protocol):
    """The counts of each owner's tasks, divided into parts, and the steps that have been counted."""

    def counted(self, of: StepSet) -> CountedSteps:
        """Read with strong consistency which steps of a set have been counted."""
        ...

    def count(self, of: StepSet, counted: CountedSteps, steps: Sequence[Step], nonce: str) -> bool:
        """Add steps to the counts and record them in one transaction, if the set is unchanged since it was read.

        Args:
            of: set to which the steps belong.
            counted: the counted steps as read, which must not include any of `steps`.
            steps: steps of at most `SUMMARY_TYPES_AT_ONCE` types.
            nonce: nonce of this write.

        Returns:
            Whether the steps are counted. If they are not, a concurrent write came first, and the set must be read
                again.
        """
        ...

    def read(self, owner: str, part: int, generation: int = 0) -> Summary:
        """Read one part of an owner's counts with eventual consistency."""
        ...

    def expire_counts(self, owner: str, part: int, generation: int, expires_at: Millis) -> None:
        """Set the TTL of one part of an owner's counts in all earlier generations. The call is safe to resend."""
        ...


class SummaryRecounts(Protocol):
    """The generations of the counts, and the results of recounts."""

    def generation(self) -> Generation | None:
        """Read the generation of the counts with strong consistency; `None` before the first count."""
        ...

    def save(self, generation: Generation, nonce: str) -> bool:
        """Store the generation's next version, if the generation is unchanged since it was read.

        Returns:
            Whether the generation is stored.
        """
        ...

    def is_fresh(self, at: Millis) -> bool:
        """Whether the table is small and has no task that was created before the given time."""
        ...

    def older_tasks(self, cursor: str, since: Millis, pages: int) -> OlderTasks:
        """Read a part of the table, with eventual consistency, for tasks created before a given time.

        Args:
            cursor: start of the part; empty for the start of the table.
            since: the given time.
            pages: maximum number of megabytes to read.
        """
        ...

    def add_older(
        self, generation: Generation, recount: Recount, owner: str, type_: str, numbers: Mapping[Group, int]
    ) -> None:
        """Add the result of the current part to a recount. The call is safe to resend."""
        ...

    def read_older(self, generation: Generation, recount: Recount, owner: str) -> Summary:
        """The result of a recount for an owner's tasks, read with eventual consistency."""
        ...

    def list_owner(self, owner: str) -> None:
        """Add an owner to the list of owners with tasks."""
        ...

    def owners(self, after: str, limit: int) -> Sequence[str]:
        """The owners that have or had tasks and follow the given owner, in order."""
        ...


class TracebackStore(Protocol):
    """One traceback per task: the traceback of the attempt with the highest fence."""

    def keep(self, task_id: TaskId, traceback: AttemptTraceback, expiry: Expiry) -> None:
        """Store a traceback, which replaces an earlier attempt's traceback, but not a later attempt's traceback.

        The call is safe to resend.
        """
        ...

    def find(self, task_id: TaskId) -> AttemptTraceback | None:
        """The stored traceback of a task; `None` if there is none."""
        ...


class StepStore(Protocol):
    """The results of handlers' steps, which are erased together with the contents of their tasks."""

    def list_of(self, task_id: TaskId) -> list[StepResult]:
        """The steps of a task in the order in which they ended, read with strong consistency."""
        ...

    def keep(self, task_id: TaskId, step: StepResult) -> StepResult:
        """Store a step, unless it is already stored, and return the stored step. The call is safe to resend."""
        ...

    def extend(self, task_id: TaskId, step: StepResult, expires_at: Millis) -> None:
        """Set the expiry of a step, if it is still stored. The call is safe to resend."""
        ...


class CursorStore(Protocol):
    """The read position of each group of shards, and the invocation that holds the group."""

    def take(self, group: int, holder: str, now: Millis, until: Millis, first: Cursors) -> Cursors | None:
        """Take a group for reading until the given instant, unless another invocation holds the group.

        Args:
            group: number of the group.
            holder: unique id of the invocation.
            now: the current time according to the taker's clock.
            until: when the hold expires.
            first: cursors for a group without stored cursors.

        Returns:
            The group's cursors, at a new epoch; `None` if another invocation holds the group.

        Raises:
            ClockWrong: the store's own clock differs too much from `now`; the group is not taken.
        """
        ...

    def advance(self, group: int, cursors: Cursors, until: Millis) -> bool:
        """Store the read position of a group, and keep the group until `until` (0 releases the group).

        Returns: Whether the position is stored; `False` if the group has a different epoch.
        """
        ...

    def join(self, group: int, cursors: Cursors) -> Cursors | None:
        """Add progress to the stored cursors, whoever holds the group; the hold does not change.

        Returns:
            The stored cursors, at a new epoch; `None` if another invocation holds the group.
        """
        ...

    def read(self, group: int) -> Cursors | None:
        """Read a group's read position with eventual consistency; `None` if the group has never been read."""
        ...

    def replace(self, group: int, cursors: Cursors) -> None:
        """Replace any stored cursors, and remove the holder; an invocation that holds the group loses the group."""
        ...


class ShardStore(Protocol):
    """The announced numbers of shards."""

    def read(self) -> ShardHistory:
        """Read every announced number with strong consistency."""
        ...

    def announce(self, shards: int, now: Millis) -> ShardHistory:
        """Announce that tasks may be in this number of shards from now on. The call is safe to resend.

        Returns:
            All announced numbers.
        """
        ...

    def announce_type_defaults(self) -> None:
        """Announce that an owner sets type defaults. The number of shards must have been announced before."""
        ...


class BulkStore(Protocol):
    """Bulk operations. Every method may raise `duetime.domain.errors.Unavailable`."""

    def read(self, operation_id: TaskId) -> BulkOperation | None:
        """Read an operation with strong consistency; `None` if it does not exist."""
        ...

    def save(self, operation: BulkOperation, nonce: str) -> bool:
        """Store an operation, if it still has the version that was read. The call is safe to resend.

        Returns:
            Whether the operation is stored, at the next version.
        """
        ...

    def list(self, owner: str, limit: int) -> list[BulkOperation]:
        """An owner's latest operations, newest first, read with eventual consistency."""
        ...

    def latest_of(self, topology: TaskId) -> Latest:
        """The latest operation on a topology, read with strong consistency."""
        ...

    def set_latest(self, latest: Latest, nonce: str, expires_at: Millis) -> bool:
        """Store which operation starts on a topology, unless another operation has been stored since the last read.

        The call is safe to resend.

        Returns:
            Whether the start is stored.
        """
        ...


class BulkStarter(Protocol):
    """Starts bulk operations."""

    def start(self, operation_id: TaskId) -> None:
        """Start an operation asynchronously. If the request to start it is lost, the operation's timer starts it."""
        ...


class BulkSteps(Protocol):
    """Runs steps of one kind of bulk operation. Two processes may run the same step, so a step may run twice."""

    def step(self, operation: BulkOperation, until: Millis) -> BulkProgress:
        """Run as much of an operation as is possible before `until`, and return the operation's progress.

        Raises:
            Replaced: a later request has replaced the operation.
            RequestError: the operation cannot be carried out.
            Unavailable: the step must be repeated.
        """
        ...


class ScheduleActions(Protocol):
    """Pauses and resumes the schedules that match a filter."""

    def apply(self, owner: str, kind: BulkKind, action: FilterAction, by: Attribution) -> FilterResult:
        """Process one piece; processing a piece again is safe.

        Raises:
            Unavailable: the store did not answer, and nothing was done.
        """
        ...


class BulkRequestReader(Protocol):
    """Parses stored request bodies."""

    def __call__(self, kind: BulkKind, text: bytes) -> BulkRequest:
        """Decode the request in a body that was accepted before."""
        ...


class PurgeRequestReader(Protocol):
    """Decodes purge requests, and finds the archive rows that they remove."""

    def __call__(self, text: bytes, owner: str) -> PurgeRequest:
        """Decode the request in a body that was accepted before, for the data of an owner."""
        ...

    def is_meant(self, request: PurgeRequest, line: str) -> bool:
        """Whether a purge removes a line from the archive; an unreadable line is kept."""
        ...


class AuditLog(Protocol):
    """The audit log, to which lines can only be added."""

    def add(self, at: Millis, line: str) -> None:
        """Add a line to the log.

        Raises:
            Unavailable: the line could not be stored.
        """
        ...


class LinkStore(Protocol):
    """The store of links, which let people without credentials act on a task."""

    def put(self, link: Link) -> None:
        """Store a new link. The call is safe to resend."""
        ...

    def read(self, task_id: TaskId, id_: str) -> Link | None:
        """Read a link with strong consistency; `None` if it does not exist."""
        ...

    def list_of(self, task_id: TaskId) -> list[Link]:
        """The links of a task, in order of creation, read with strong consistency."""
        ...

    def note_use(self, link: Link) -> None:
        """Store when and for what a link was used, unless a use is already stored or the link is deleted.

        The call is safe to resend.
        """
        ...

    def delete(self, task_id: TaskId, id_: str) -> None:
        """Delete a link; deleting it again changes nothing."""
        ...


class ApiKeyStore(Protocol):
    """API keys."""

    def put(self, key: ApiKey) -> None:
        """Store a new key. The call is safe to resend."""
        ...

    def read(self, id_: str) -> ApiKey | None:
        """Read a key with strong consistency; `None` if it does not exist."""
        ...

    def revoke(self, key: ApiKey) -> bool:
        """Store that a key is revoked; an earlier revocation time is kept. The call is safe to resend.

        Returns:
            `False` if the key does not exist.
        """
        ...

    def note_use(self, id_: str, at: Millis, unless_since: Millis) -> None:
        """Store when a key was used, unless a time after `unless_since` is stored or the key is deleted.

        The call is safe to resend.
        """
        ...

    def list(self, after: str, limit: int) -> tuple[Sequence[ApiKey], str | None]:
        """The keys after the given id, in order of creation, and the last id if more keys may follow."""
        ...


class WatchStore(Protocol):
    """Tickets, connections and subscriptions."""

    def put_ticket(self, ticket: Ticket) -> None:
        """Store a new ticket."""
        ...

    def redeem(self, digest: str, connection_id: str, now: Millis) -> Ticket | None:
        """Use a ticket. The call is safe to resend, because the connection that used a ticket may use it again.

        Returns:
            The ticket; `None` if it is unknown, has expired, or was used by another connection.
        """
        ...

    def open(self, connection: Connection) -> None:
        """Store a new connection."""
        ...

    def connection(self, connection_id: str) -> Connection | None:
        """Read a connection with strong consistency."""
        ...

    def close(self, connection: Connection) -> None:
        """Remove a connection and its subscriptions. The call is safe to resend."""
        ...

    def subscribe(self, subscription: Subscription) -> bool:
        """Store a subscription in its slot. The call is safe to resend.

        Returns:
            `False` if the slot has a subscription with a different name.
        """
        ...

    def unsubscribe(self, subscription: Subscription) -> None:
        """Remove a subscription, unless its slot now contains a subscription with a different name."""
        ...

    def subscriptions(self, owner: str) -> list[Subscription]:
        """Read an owner's subscriptions (strong consistency), including all that were stored before this call."""
        ...


class Delivery(Enum):
    """The result of sending a message to a connection."""

    SENT = "sent"
    GONE = "gone"
    """The connection is closed."""
    REFUSED = "refused"
    """The connection or the gateway accepts no more messages for now, or has not answered."""


class ConnectionSender(Protocol):
    """Sends messages to connections."""

    def send(self, connection_id: str, text: str) -> Delivery:
        """Send a message to a connection. This method never raises."""
        ...

    def close(self, connection_id: str) -> None:
        """Close a connection. This method never raises.

        A connection that cannot be closed receives no more messages.
        """
        ...


class MessageEncoder(Protocol):
    """Encodes messages to connections in the protocol's format."""

    def snapshot(self, ref: str, record: Watched | None) -> str:
        """The first message of a subscription, with its record; a subscription to a list has no record."""
        ...

    def unsubscribed(self, ref: str) -> str:
        """The message that says that a subscription has ended."""
        ...

    def pong(self, ref: str | None) -> str:
        """The response to a ping."""
        ...

    def stale(self, refs: Sequence[str]) -> str:
        """The message that says that the subjects of some subscriptions should be read again."""
        ...

    def error(self, ref: str | None, error: Exception) -> str:
        """The message that says why a client's message was rejected."""
        ...

    def changes(self, notices: Sequence[Notice]) -> list[str]:
        """Packs changes into as few messages as possible."""
        ...
