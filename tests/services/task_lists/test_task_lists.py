from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb.task_items import item_of
from duetime.adapters.dynamodb.task_lists import DynamoTaskLists
from duetime.adapters.dynamodb.task_store import DynamoTaskStore
from duetime.domain.change_events import Change, ChangeBatch, task_snapshot
from duetime.domain.ids import TaskId
from duetime.domain.limits import MAX_NAME_LENGTH, MAX_TAG_KEY_LENGTH, MAX_TAG_VALUE_LENGTH
from duetime.domain.operating_parameters import LIST_BUILD_DELAY, LIST_KNOWN, OWNER_SPREAD, SUMMARY_GAP
from duetime.domain.tasks.filters import Range, TaskFilter
from duetime.domain.tasks.states import TERMINAL, State
from duetime.domain.tasks.targets import TopologyTarget
from duetime.domain.tasks.task import NodeRef, ScheduleRef
from duetime.domain.tasks.task_lists import place_of
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND
from duetime.domain.type_settings import RetentionPolicy
from duetime.ports.runtime import Runtime
from duetime.ports.tasks import ListQuery
from duetime.services.task_lists.updater import TaskListUpdater
from duetime.services.tasks.read import Page, TaskReader
from duetime_testing.fakes.dynamodb import FakeDynamoDB
from duetime_testing.fakes.task_table import new_table
from duetime_testing.fakes.telemetry import FakeTelemetry
from duetime_testing.simulation.virtual_time import SeededRandom, VirtualTime
from tests.adapters.examples import task as example
from tests.clocks import NOW, StandingClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime.domain.change_events import TaskChange
    from duetime.domain.tasks.task import Task

RETENTION = 30 * DAY
TYPES, NAMES, TEAMS = ("report", "mail", "rare#type=report"), ("", "", "close"), ("red", "blue")
TOPOLOGY = TaskId.of(NOW, 1, 99)
SEEDS = range(12)


@dataclass
class Account:
    """An owner's tasks with their lists, in a fake table; `changes` has those that the stream has not delivered."""

    random: Random
    begin_at: int = 1
    clock: StandingClock = field(default_factory=StandingClock)
    records: dict[TaskId, Task] = field(default_factory=dict)
    changes: list[TaskChange] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.fake = FakeDynamoDB()
        client: Any = self.fake
        self.table = new_table(client)
        self.telemetry = FakeTelemetry()
        runtime = Runtime(self.clock, SeededRandom(), VirtualTime(NOW), self.telemetry)
        self.tasks = DynamoTaskStore(client, self.table, runtime.executor, runtime.telemetry)
        self.lists = DynamoTaskLists(client, self.table, runtime.executor, 1)
        self.updater = TaskListUpdater(self.tasks, self.lists, runtime, RetentionPolicy(RETENTION), self.begin_at)
        stores: Any = SimpleNamespace(tasks=self.tasks, task_lists=self.lists)
        self.reader = TaskReader(stores, None, self.clock, runtime.executor)

    def write(self, before: Task | None, after: Task | None) -> None:
        """Write a record, and put the change on the stream."""
        task = after or before
        assert task is not None
        if after is None:
            self.fake.delete_item(TableName=self.table, Key={name: item_of(task)[name] for name in ("p", "s")})
            del self.records[task.id]
        else:
            self.fake.put_item(TableName=self.table, Item=item_of(after))
            self.records[task.id] = after
        old, new = (None if each is None else task_snapshot(each) for each in (before, after))
        self.changes.append(Change(str(len(self.changes)), self.clock.at // SECOND * SECOND, old, new))

    def create(self, **fields: Any) -> Task:  # noqa: ANN401 - any field of a task
        """Create a task with these fields."""
        home = max(fields.get("due_at", self.clock.at), self.clock.at)
        new = TaskId.of(home, self.random.randrange(1, OWNER_SPREAD), self.random.getrandbits(64))
        given = {"id": new, "created_at": self.clock.at, "due_at": home, "next_at": home}
        created = example(**(given | fields))
        self.write(None, created)
        return created

    def create_any(self) -> None:
        """Create a random task of any kind."""
        random = self.random
        due = self.clock.at + random.choice([-HOUR, 0, 0, 0, 200, 30 * SECOND, HOUR, 40 * DAY])
        fields: dict[str, Any] = {"due_at": due, "type": random.choice(TYPES), "name": random.choice(NAMES)}
        fields["tags"] = {"team": random.choice(TEAMS)} if random.random() < 0.5 else {}
        kind = random.random()
        if kind < 0.2:
            fields["node_ref"] = NodeRef(TOPOLOGY, 1, f"n{len(self.records)}")
            fields["state"] = State.BLOCKED
        elif kind < 0.3:
            fields["schedule_ref"] = ScheduleRef("nightly", 1, due)
        elif kind < 0.4:
            fields["target"] = TopologyTarget()
        self.create(**fields)

    def change_any(self) -> None:
        """Change a random task in a random way."""
        before = self.random.choice(list(self.records.values()))
        kind = self.random.random()
        if kind < 0.03:
            self.write(before, None)
        elif kind < 0.08:
            self.write(before, replace(before, erased=True))
        elif kind < 0.2:
            self.write(before, replace(before, name=self.random.choice(NAMES), tags={"team": "red"}))
        elif kind < 0.3 and before.state not in TERMINAL:
            moved = self.clock.at + self.random.choice([0, HOUR, DAY])
            self.write(before, replace(before, due_at=moved))
        else:
            self.move(before, self.random.choice(list(State)))

    def move(self, before: Task, state: State) -> None:
        """Write a task with another state."""
        finished = self.clock.at if state in TERMINAL and self.random.random() < 0.9 else None
        self.write(before, replace(before, state=state, finished_at=finished))

    def deliver(self, size: int = 0) -> None:
        """Let the stream deliver some or all of the changes; each batch may come twice."""
        size = size or len(self.changes)
        batch, self.changes = self.changes[:size], self.changes[size:]
        for _ in range(2 if self.random.random() < 0.2 else 1):
            self.updater.consume(ChangeBatch(tuple(batch)))

    def pass_time(self, milliseconds: int) -> None:
        """Move the clock."""
        self.clock.at += milliseconds

    def build(self) -> None:
        """Let the lists be created and completed."""
        # The first partition shows that there are enough tasks to use lists.
        first = TaskId.of(self.clock.at, 0, self.random.getrandbits(64))
        self.pass_time(LIST_KNOWN)
        for wait in (0, LIST_BUILD_DELAY + SECOND, SECOND):
            self.pass_time(wait)
            self.create(**({"id": first} if first not in self.records else {}))
            self.deliver()
        head = self.lists.head("ann")
        assert head is not None
        assert head.is_complete

    def pages(self, query: ListQuery, wanted: TaskFilter) -> Iterator[Page]:
        """The tasks on all pages of a list."""
        while True:
            page = self.reader.list(query, wanted)
            yield page
            if page.after is None:
                return
            query = replace(query, after=page.after)

    def expected(self, query: ListQuery, wanted: TaskFilter) -> list[TaskId]:
        """The ids that a list should have, computed from every record."""
        found = [
            each
            for each in self.records.values()
            if wanted.matches(each)
            and not each.erased
            and (query.with_nodes or each.node_ref is None)
            and (not query.by_end or each.finished_at is not None)
        ]
        places = {each.id: place_of(each.finished_at or 0, each.id) if query.by_end else each.id for each in found}
        return sorted(places, key=lambda each: places[each], reverse=query.descending)


def filters(account: Account) -> Iterator[TaskFilter]:
    """Filters of every kind, and some combinations of filters."""
    random, now = account.random, account.clock.at
    for state in State:
        yield TaskFilter(states=(state,))
    yield TaskFilter(states=(State.SCHEDULED, State.SUCCEEDED))
    yield TaskFilter(states=(State.RUNNING, State.WAITING, State.SCHEDULED))
    yield TaskFilter(states=(State.SUCCEEDED, State.FAILED, State.PAUSED))
    yield TaskFilter(states=(State.FAILED, State.CANCELLED))
    for due in (Range(before=now), Range(now - HOUR, now + DAY), Range(after=now - MINUTE)):
        yield TaskFilter(states=(State.SCHEDULED, State.WAITING), due=due)
        yield TaskFilter(states=(State.SUCCEEDED,), due=due)
        yield TaskFilter(states=(State.FAILED, State.RUNNING), due=due)
    for state in (State.RUNNING, State.FAILED, State.SCHEDULED, State.CANCELLED):
        yield TaskFilter(is_topology=True, states=(state,))
    for each in TYPES:
        yield TaskFilter(type=each)
        yield TaskFilter(type=each, states=(random.choice(list(State)),))
    yield TaskFilter(name="close")
    yield TaskFilter(tags={"team": "red"})
    yield TaskFilter(schedule="nightly")
    yield TaskFilter(parent=TOPOLOGY)
    yield TaskFilter(parent=TOPOLOGY, states=(State.RUNNING,))
    yield TaskFilter(is_topology=True)
    yield TaskFilter(due=Range(now - HOUR, now + MINUTE))
    yield TaskFilter(due=Range(before=now))
    yield TaskFilter(due=Range(after=now), type="mail")
    yield TaskFilter(created=Range(now - MINUTE, now))
    yield TaskFilter(finished=Range(after=now - MINUTE))
    yield TaskFilter()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_filter_lists_its_matching_tasks_once_in_order(seed: int) -> None:
    """However changes are delivered, each filter lists its matching tasks once and in order."""
    account = Account(Random(seed))  # noqa: S311 - repeatable on purpose
    for _ in range(20):
        account.create_any()
    account.deliver()
    assert account.lists.head("ann") is None
    account.build()
    for _ in range(120):
        if account.random.random() < 0.4:
            account.create_any()
        else:
            account.change_any()
        if account.random.random() < 0.2:
            account.pass_time(account.random.choice([300, 2 * SECOND, 20 * SECOND, 10 * MINUTE]))
        if account.random.random() < 0.2:
            account.deliver(account.random.randrange(1, 40))
    account.deliver()
    for wanted in filters(account):
        for descending in (True, False):
            for by_end in (False, True):
                query = ListQuery("ann", None, descending=descending, limit=7, by_end=by_end)
                query = replace(query, with_nodes=wanted.parent is not None or account.random.random() < 0.5)
                found = [each.id for page in account.pages(query, wanted) for each in page.tasks]
                assert found == account.expected(query, wanted), (query, wanted)


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_a_filter_finds_the_same_tasks_without_stored_lists(seed: int) -> None:
    """If an owner has too few tasks for lists, filters find the same tasks in the same order."""
    account = Account(Random(seed), begin_at=1_000)  # noqa: S311 - as above
    for _ in range(60):
        account.create_any()
        account.change_any()
        account.deliver()
    assert account.lists.head("ann") is None
    for wanted in filters(account):
        for by_end in (False, True):
            query = ListQuery("ann", None, limit=7, by_end=by_end, with_nodes=wanted.parent is not None)
            found = [each.id for page in account.pages(query, wanted) for each in page.tasks]
            assert found == account.expected(query, wanted), (query, wanted)


def test_a_short_run_leaves_no_entry() -> None:
    """A task that starts and ends within one batch is not written to the lists of states."""
    account = Account(Random(0))  # noqa: S311 - as above
    account.build()
    for _ in range(50):
        task = account.create()
        for state in (State.RUNNING, State.SUCCEEDED):
            account.move(account.records[task.id], state)
    account.deliver()
    stored = [item["p"]["S"] for item in account.fake.tables[account.table].every()]
    assert not [partition for partition in stored if "state=running" in partition]


def test_all_tasks_are_added_again_after_possibly_lost_changes() -> None:
    """After a change that is a day old, when the stream may have lost others, all tasks are added again."""
    account = Account(Random(0))  # noqa: S311 - as above
    account.build()
    lost = account.create(type="mail")
    account.changes.clear()
    wanted, query = TaskFilter(type="mail"), ListQuery("ann", None, with_nodes=False)
    assert not account.reader.list(query, wanted).tasks
    account.create()
    account.pass_time(SUMMARY_GAP + SECOND)
    account.deliver()
    assert [each.id for each in account.reader.list(query, wanted).tasks] == [lost.id]
    account.build()
    found = account.reader.list(query, wanted)
    assert [each.id for each in found.tasks] == [lost.id]
    assert found.changed_at == account.clock.at


def test_throttled_lists_are_added_again_while_filters_read_all_tasks() -> None:
    """While an owner's lists are throttled, filters read all of that owner's tasks."""
    account = Account(Random(0))  # noqa: S311 - as above
    account.build()
    account.fake.processed = lambda _asked: 0
    lost = account.create(type="mail")
    account.deliver()
    account.fake.processed = lambda asked: asked
    assert account.telemetry.counts["task_lists_begun_anew"] == 1
    wanted, query = TaskFilter(type="mail"), ListQuery("ann", None, with_nodes=False)
    for is_complete in (False, True):
        found = account.reader.list(query, wanted)
        assert ([each.id for each in found.tasks], found.changed_at is not None) == ([lost.id], is_complete)
        account.build()


def test_no_change_of_throttled_lists_is_lost_if_another_process_saves_progress() -> None:
    """If lists are throttled, an unwritten change is not lost even if another process stores its progress."""
    account = Account(Random(0))  # noqa: S311 - as above
    account.build()

    def throttle(_asked: int) -> int:
        head = account.lists.head("ann")
        assert head is not None
        account.lists.save_head(replace(head, changed_at=head.changed_at + 1), "another process")
        return 0

    account.fake.processed = throttle
    lost = account.create(type="mail")
    account.deliver()
    account.fake.processed = lambda asked: asked
    head = account.lists.head("ann")
    assert head is not None
    assert not head.is_complete
    account.build()
    found = account.reader.list(ListQuery("ann", None, with_nodes=False), TaskFilter(type="mail"))
    assert ([each.id for each in found.tasks], found.changed_at is not None) == ([lost.id], True)


def test_a_filter_reads_a_page_of_its_tasks_among_many() -> None:
    """A filter's page of ten tasks examines exactly ten records."""
    account = Account(Random(0))  # noqa: S311 - as above
    account.build()
    for number in range(600):
        account.pass_time(100)
        kinds: dict[str, Any] = {"type": "rare", "name": "close", "tags": {"team": "red"}} if number % 40 == 7 else {}
        task = account.create(**kinds)
        if number % 40 == 3:
            account.move(task, State.RUNNING)
        account.deliver()
        if number % 40 != 3:
            account.move(task, State.SUCCEEDED)
        account.deliver()
    for wanted in (
        TaskFilter(type="rare"),
        TaskFilter(name="close"),
        TaskFilter(tags={"team": "red"}),
        TaskFilter(states=(State.RUNNING,)),
    ):
        page = account.reader.list(ListQuery("ann", None, limit=10, with_nodes=False), wanted)
        assert (len(page.tasks), page.examined) == (10, 10), wanted


def test_failed_and_due_tasks_are_listed_before_the_stream_delivers_a_change() -> None:
    """Failed and due tasks are listed at once, because the table's indexes are updated at once.

    A task that has left a state is no longer listed in that state, and is listed in its new state when its change is
    delivered.
    """
    account = Account(Random(0))  # noqa: S311 - as above
    account.build()
    task = account.create(due_at=account.clock.at + MINUTE)
    query = ListQuery("ann", None)

    def listed(state: State) -> bool:
        found = account.reader.list(query, TaskFilter(states=(state,), due=Range(after=task.due_at)))
        return task.id in {each.id for each in found.tasks}

    assert listed(State.SCHEDULED)
    account.move(account.records[task.id], State.RUNNING)
    assert (listed(State.SCHEDULED), listed(State.RUNNING)) == (False, False)
    account.deliver()
    assert listed(State.RUNNING)
    account.move(account.records[task.id], State.FAILED)
    assert (listed(State.RUNNING), listed(State.FAILED)) == (False, True)


def test_a_scheduled_node_is_listed_in_order_of_due_times() -> None:
    """Until it starts, a node that is due later is listed with other tasks in the order of due times."""
    account = Account(Random(0))  # noqa: S311 - as above
    account.build()
    later = account.clock.at + HOUR
    node = account.create(due_at=later, node_ref=NodeRef(TOPOLOGY, 1, "n"))
    others = [account.create(due_at=later + each) for each in (-1, 1)]
    account.deliver()
    query, wanted = ListQuery("ann", None), TaskFilter(states=(State.SCHEDULED,), due=Range(after=later - 1))
    listed = [each.id for each in account.reader.list(query, wanted).tasks]
    assert listed == [others[1].id, node.id, others[0].id]
    account.move(account.records[node.id], State.RUNNING)
    assert node.id not in {each.id for each in account.reader.list(query, wanted).tasks}


@pytest.mark.parametrize("late", [0, DAY, 60 * DAY, 150 * DAY])
def test_a_tasks_list_entries_are_kept_for_longer_than_its_record(late: int) -> None:
    """A task's entries in lists are kept longer than its record."""
    account = Account(Random(0))  # noqa: S311 - as above
    account.build()
    task = account.create(type="mail")
    account.deliver()
    account.pass_time(late)
    account.move(task, State.CANCELLED)
    account.deliver()
    removed_at = account.clock.at + RETENTION
    items = [item for item in account.fake.tables[account.table].every() if item["p"]["S"].startswith("i#")]
    for name in ("type=mail", "ended=", "state=cancelled"):
        expiries = [int(each["x"]["N"]) * SECOND for each in items if each["p"]["S"].endswith(f"#{name}")]
        assert max(expiries) > removed_at, name


def test_long_names_that_differ_only_at_the_end_have_separate_lists() -> None:
    """Long names that differ only at the end have separate lists."""
    account = Account(Random(0))  # noqa: S311 - as above
    account.build()
    letter = "\U0001f4a5"
    tags = [{letter * MAX_TAG_KEY_LENGTH: letter * (MAX_TAG_VALUE_LENGTH - 1) + end} for end in "ab"]
    first, _ = (account.create(name=letter * MAX_NAME_LENGTH, tags=each) for each in tags)
    account.deliver()
    query = ListQuery("ann", None, with_nodes=False)
    assert [each.id for each in account.reader.list(query, TaskFilter(tags=tags[0])).tasks] == [first.id]
    assert len(account.reader.list(query, TaskFilter(name=letter * MAX_NAME_LENGTH)).tasks) == 2


@pytest.mark.parametrize("has_lists", [False, True])
def test_a_descending_list_reads_no_task_before_the_start_time(has_lists: bool) -> None:  # noqa: FBT001 - a test parameter
    """A descending list with a start time reads no earlier task, as required for a schedule's history."""
    account = Account(Random(0), begin_at=1 if has_lists else 1_000)  # noqa: S311 - as above
    if has_lists:
        account.build()
    runs = []
    for _ in range(6):
        account.pass_time(MINUTE)
        runs.append(account.create(schedule_ref=ScheduleRef("nightly", 1, account.clock.at)))
    account.deliver()
    query = ListQuery("ann", None, limit=10, since=runs[3].id.home)
    page = account.reader.list(query, TaskFilter(schedule="nightly"))
    assert [each.id for each in page.tasks] == [each.id for each in reversed(runs[3:])]
    assert (page.after, page.examined) == (None, 3)
