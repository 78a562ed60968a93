from __future__ import annotations

from dataclasses import fields, replace
from datetime import date
from typing import TYPE_CHECKING

import pytest

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.schedule_items import item_of, key_of, stored_of
from duetime.adapters.dynamodb.schedules import DynamoCalendarStore, DynamoScheduleStore
from duetime.domain.conditional_writes import Incarnation
from duetime.domain.errors import FieldInvalid
from duetime.domain.limits import MAX_CALENDAR_DATES, MAX_NAME_LENGTH, MAX_REMARKS
from duetime.domain.schedules.backfill import Backfill, BackfillCursor
from duetime.domain.schedules.calendars import Calendar, CalendarMode, Span, Window
from duetime.domain.schedules.cron_dialects import Dialect
from duetime.domain.schedules.definition import (
    CatchUpMode,
    ChangedOccurrence,
    OnExcluded,
    Overlap,
    ScheduleSpec,
    Written,
)
from duetime.domain.schedules.occurrences import Occurrence
from duetime.domain.schedules.recurrences import Clock
from duetime.domain.schedules.run_history import (
    Activity,
    BackfillRun,
    BegunRun,
    CalendarEnd,
    ExpectationState,
    LastRun,
    Remark,
)
from duetime.domain.schedules.schedule import RevisionEnd, ScheduleState, StoppedOccurrence
from duetime.domain.schedules.schedule_history import ScheduleAction, ScheduleActionRecord, ScheduleHistory
from duetime.domain.schedules.schedule_record import RemovedSchedule, StoredSchedule
from duetime.domain.schedules.time_zones import Fold, Gap, zone_named
from duetime.domain.tasks.action_history import ActorType, Attribution
from duetime.domain.tasks.targets import (
    Auth,
    AuthScheme,
    BodyKind,
    CallBatch,
    HandlerTarget,
    HttpRequest,
    HttpTarget,
    Keep,
    Phase,
    RequestBody,
    ResponseOptions,
)
from duetime.domain.tasks.task import Content, ContentPlace
from duetime.domain.tasks.task_options import (
    AfterFailure,
    LockMode,
    LockScope,
    LockSpec,
    NotifyOn,
    OrderKey,
    Priority,
    Rate,
    RetryPolicy,
)
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND
from tests.adapters.clouds import EXECUTOR, Cloud
from tests.adapters.examples import HOME, OWNER, numbered
from tests.adapters.test_races import CONTENDERS, in_rounds, winners
from tests.metering import item_size

if TYPE_CHECKING:
    from duetime.ports.stores import CalendarStore, ScheduleStore

PLAIN = StoredSchedule(
    owner=OWNER,
    uid=numbered(7),
    shards=16,
    spec=ScheduleSpec(Written(cron="*/5 * * * *"), TaskSpec("report", b""), "nightly"),
    payload=Content(ContentPlace.RECORD, "payload", b'{"any":"json"}'),
    created_at=HOME,
    updated_at=HOME,
    done=HOME,
    tzdata="2026f",
)
FULL = StoredSchedule(
    owner="an#owner",
    uid=numbered(8),
    shards=64,
    spec=ScheduleSpec(
        Written(cron="cron(0 10 * * ? *)", dialect=Dialect.EVENTBRIDGE),
        TaskSpec(
            "report",
            b"",
            priority=Priority.LOW,
            explicit=frozenset({"lock", "unique"}),
            target=HttpTarget(
                "https://example.org/x",
                frozenset({Phase.CLEAN}),
                request=HttpRequest(
                    "PUT",
                    (("X-A", "a"),),
                    (("b", "c"),),
                    RequestBody(BodyKind.TEXT, "t"),
                    (200, 404),
                    Auth("crm", AuthScheme.HEADER, "X-Key"),
                    ResponseOptions(Keep.ALL, 9, truncates=True),
                ),
                batch=CallBatch(9, 0.5),
            ),
            retry=RetryPolicy(2, 1.5, 3.0, 60.0, 90),
            timeout_seconds=7,
            notify_within_seconds=8,
            rollback_on_failure=True,
            lock=LockSpec("db-17", 2, wait_seconds=30),
            locks=(LockSpec("db-18"), LockSpec("gpu", None, LockScope.RUN, mode=LockMode.SHARED)),
            rate=Rate("crm", 50, 2, 10),
            order=OrderKey("customer-17", AfterFailure.STOP),
            callback_url="https://example.org/y",
            notify_on=NotifyOn("https://example.org/z", failed=True, late_seconds=600, running_seconds=900),
            expires_seconds=600,
            fair_key="customer-17",
            fair_weight=3,
            name="nice",
            tags={"team": "dba"},
        ),
        "a.b:c-d_9",
        Clock(zone_named("Europe/London"), Gap.SHIFT_FORWARD, Fold.BOTH),
        ("one", "two"),
        OnExcluded.NEXT_DAY,
        extra_dates=("2026-12-27T12:00:00",),
        excluded_dates=("2026-12-25", "2026-12-31T10:00:00"),
        spread_seconds=11,
        jitter_seconds=9,
        start_at=HOME,
        end_at=HOME + DAY,
        remaining_runs=10,
        overlap=Overlap.BUFFER_ONE,
        catch_up_seconds=60,
        catch_up_mode=CatchUpMode.ALL,
        pause_on_failure=True,
        expect_success_by="06:00",
        expect_every_seconds=7200,
        expect_duration_factor=2.5,
        changed_occurrences=(ChangedOccurrence(HOME + HOUR), ChangedOccurrence(HOME + 2 * HOUR, HOME + 9)),
    ),
    payload=Content(ContentPlace.ITEM, "payload.x"),
    created_at=HOME + 1,
    updated_at=HOME + 2,
    done=HOME + 3,
    state=ScheduleState.PAUSED,
    paused_reason="wegen Störung",
    revision=4,
    version=5,
    generation=6,
    tzdata="2026f",
    remaining_runs=0,
    runs_limit=13,
    latest_run=BegunRun(numbered(4), HOME + 6, HOME + 7),
    runs_before=14,
    last_run=LastRun(numbered(9), HOME + 4, 4),
    owed=Occurrence(HOME, HOME + 1, HOME + 2, "2026-11-21T02:33:00+00:00", note="why"),
    backfills=(
        BackfillRun(
            "b1",
            Backfill(HOME - DAY, HOME, 60, HOME, only_missing=True, overlap=Overlap.BUFFER_ALL),
            12,
            BackfillCursor(HOME, 3, 2),
            HOME + 5,
        ),
        BackfillRun("b2", Backfill(HOME - DAY, HOME, 60, HOME), 12),
    ),
    log=(Remark(HOME, "", "paused"), Remark(HOME, "2026-11-21T02:33:00+00:00", "étrange")),
    runs_started=11,
    runs_skipped=12,
    revision_ends=(RevisionEnd(HOME + 1, 2, 1), RevisionEnd(HOME + 2, 3, 3)),
    expectation=ExpectationState(HOME, HOME + 1, HOME + 2, HOME + 3, 4, HOME + 4, HOME + 5, (numbered(5), numbered(6))),
    calendar_end=CalendarEnd("off", HOME + 5),
    former_payload=Content(ContentPlace.OBJECT, "payload.w"),
    traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    later_options=(("zz", {"N": "7"}),),
    stopped=(StoppedOccurrence(HOME + 4, numbered(8), 3), StoppedOccurrence(HOME + 5, numbered(9), 0)),
    actions=ScheduleHistory(
        (
            *(
                ScheduleActionRecord(
                    action, HOME + number, Attribution(name="ann/phone", reason="why"), number, ("cron",), "id"
                )
                for number, action in enumerate(ScheduleAction)
            ),
            ScheduleActionRecord(ScheduleAction.PAUSED, HOME, Attribution(ActorType.SYSTEM), 9),
        ),
        dropped=2,
    ),
)


@pytest.mark.parametrize("wanted", [PLAIN, FULL], ids=["plain", "full"])
def test_a_schedule_is_read_back_unchanged(schedule_store: ScheduleStore, wanted: StoredSchedule) -> None:
    """Every field of a schedule is read back with the next revision, alone and in the list."""
    assert schedule_store.save(wanted, "n1")
    assert schedule_store.read(wanted.owner, wanted.name) == (replace(wanted, incarnation=1), Activity())
    assert schedule_store.list_after(wanted.owner, "", 10) == [replace(wanted, incarnation=1)]


def test_unknown_task_options_of_a_schedule_are_kept() -> None:
    """A process that does not know some of a task's options keeps these options when it writes the schedule."""
    item = item_of(PLAIN) | {"e": {"N": "1"}}
    item["T"]["M"]["zz"] = {"N": "7"}
    changed = replace(stored_of(PLAIN.owner, item), state=ScheduleState.PAUSED)
    assert changed.spec == PLAIN.spec
    assert item_of(changed)["T"] == item["T"]


CREATION_ONLY = ("unique", "debounce", "parent_task_id", "after", "group", "upload")
"""Fields of a task request that a schedule's task does not have."""


def test_each_field_of_the_full_example_differs_from_its_default() -> None:
    """Each field of the example differs from its default, so that a forgotten field is noticed."""
    for value in (FULL, FULL.spec, FULL.spec.task):
        same = [each.name for each in fields(value) if getattr(value, each.name) == each.default]
        assert set(same) <= {
            "activity",
            "incarnation",
            "due_at",
            "delay",
            "payload",
            "allow_unknown_type",
            *CREATION_ONLY,
        }, same


@pytest.mark.parametrize(
    "written",
    [
        Written(rate="5 minutes"),
        Written(interval="R/PT1H"),
        Written(dates=("2026-12-24T09:00:00", "2027-01-01")),
        Written(permanent=0),
    ],
)
def test_a_timing_is_read_back_unchanged(schedule_store: ScheduleStore, written: Written) -> None:
    """Each kind of timing is read back unchanged."""
    wanted = replace(PLAIN, spec=replace(PLAIN.spec, written=written))
    assert schedule_store.save(wanted, "n1")
    found, _ = schedule_store.read(OWNER, PLAIN.name)
    assert found == replace(wanted, incarnation=1)


def test_an_explicit_handler_target_is_kept(schedule_store: ScheduleStore) -> None:
    """A target given explicitly as a handler is kept as given."""
    wanted = replace(PLAIN, spec=replace(PLAIN.spec, task=replace(PLAIN.spec.task, target=HandlerTarget())))
    assert schedule_store.save(wanted, "n1")
    found, _ = schedule_store.read(OWNER, PLAIN.name)
    assert found is not None
    assert found.spec.task.target == HandlerTarget()


def test_only_the_revision_of_a_schedule_that_was_read_is_replaced(schedule_store: ScheduleStore) -> None:
    """If two saves or creations are based on one revision, the second is refused; repeating the same save succeeds."""
    assert schedule_store.save(PLAIN, "n1")
    assert schedule_store.save(PLAIN, "n1")
    assert not schedule_store.save(replace(PLAIN, paused_reason="other"), "n2")
    read, _ = schedule_store.read(OWNER, PLAIN.name)
    assert read is not None
    assert schedule_store.save(replace(read, generation=1), "n3")
    assert not schedule_store.save(replace(read, generation=2), "n4")
    found, _ = schedule_store.read(OWNER, PLAIN.name)
    assert found == replace(PLAIN, generation=1, incarnation=2)


def test_a_schedule_is_removed_with_its_activity(schedule_store: ScheduleStore) -> None:
    """A schedule is removed only at the revision that was read, and a repeated removal succeeds."""
    assert schedule_store.save(PLAIN, "n1")
    schedule_store.save_activity(OWNER, PLAIN.name, Activity(PLAIN.uid, numbered(1)), "n2")
    assert not schedule_store.remove(replace(PLAIN, incarnation=5), "n3", HOME + DAY)
    assert schedule_store.remove(replace(PLAIN, incarnation=1), "n4", HOME + DAY)
    assert schedule_store.remove(replace(PLAIN, incarnation=1), "n4", HOME + DAY)
    assert schedule_store.remove(replace(PLAIN, incarnation=1), "n5", HOME + DAY)
    assert schedule_store.read(OWNER, PLAIN.name) == (None, Activity(PLAIN.uid, version=2))
    assert schedule_store.list_after(OWNER, "", 10) == []


def test_a_creation_after_a_deletion_requires_the_deletion_marker(schedule_store: ScheduleStore) -> None:
    """After a deletion, a creation is refused unless it is based on the deletion marker."""
    assert schedule_store.vacancy(OWNER, PLAIN.name) == 0
    assert schedule_store.save(PLAIN, "n1")
    assert schedule_store.vacancy(OWNER, PLAIN.name) is None
    assert schedule_store.remove(replace(PLAIN, incarnation=1), "n2", HOME + DAY)
    vacancy = schedule_store.vacancy(OWNER, PLAIN.name)
    assert vacancy == 2
    other = replace(PLAIN, uid=numbered(9))
    assert not schedule_store.save(other, "n3")
    assert schedule_store.save(replace(other, incarnation=vacancy), "n4")
    assert schedule_store.read(OWNER, PLAIN.name)[0] == replace(other, incarnation=3)


def test_no_write_to_a_removed_schedule_affects_its_successor(schedule_store: ScheduleStore) -> None:
    """No save, removal or activity for a removed schedule affects a later schedule with the same name."""
    assert schedule_store.save(PLAIN, "n1")
    schedule_store.save_activity(OWNER, PLAIN.name, Activity(PLAIN.uid, numbered(1)), "n2")
    assert schedule_store.remove(replace(PLAIN, incarnation=1), "n3", HOME + DAY)
    other = replace(PLAIN, uid=numbered(9), incarnation=2)
    assert schedule_store.save(other, "n4")
    for incarnation in range(1, 5):
        assert not schedule_store.save(replace(PLAIN, generation=1, incarnation=incarnation), f"n5{incarnation}")
        assert schedule_store.remove(replace(PLAIN, incarnation=incarnation), f"n6{incarnation}", HOME + DAY)
    assert not schedule_store.save_activity(OWNER, PLAIN.name, Activity(PLAIN.uid, numbered(2), version=1), "n7")
    assert schedule_store.save_activity(OWNER, PLAIN.name, Activity(other.uid, numbered(3), version=2), "n8")
    assert schedule_store.remove(replace(PLAIN, incarnation=1), "n9", HOME + DAY)
    expected = Activity(other.uid, numbered(3), version=3)
    assert schedule_store.read(OWNER, PLAIN.name) == (replace(other, incarnation=3), expected)


def test_a_deletion_marker_names_the_external_payloads_of_a_schedule(moto_cloud: Cloud) -> None:
    """A deletion marker is not listed, expires, and names the payloads that are to be deleted with the schedule."""
    table = moto_cloud.table()
    store = DynamoScheduleStore(moto_cloud.dynamodb, table, EXECUTOR)
    assert store.save(FULL, "n1")
    assert store.remove(replace(FULL, incarnation=1), "n2", HOME + DAY)
    (marker,) = (item for item in moto_cloud.dynamodb.scan(TableName=table)["Items"] if schema.DELETED in item)
    assert schema.OWNER_KEY not in marker
    assert 0 <= int(marker[schema.TTL]["N"]) * SECOND - (HOME + DAY) < SECOND
    removed = store.read_removed(FULL.owner, FULL.name)
    assert removed == RemovedSchedule(FULL.uid, FULL.outside_payloads)
    assert len(FULL.outside_payloads) == 2
    assert store.read(FULL.owner, FULL.name)[0] is None


def test_an_activity_is_stored_separately_from_its_schedule(schedule_store: ScheduleStore) -> None:
    """An activity is refused unless it is based on the stored version, and storing it does not change the schedule."""
    assert schedule_store.save(PLAIN, "n1")
    wanted = Activity(
        PLAIN.uid,
        numbered(1),
        (numbered(2), numbered(3), numbered(4)),
        0,
        5,
        6,
        (numbered(7),),
        BegunRun(numbered(6), HOME, HOME + 1),
    )
    assert schedule_store.save_activity(OWNER, PLAIN.name, wanted, "n2")
    assert schedule_store.save_activity(OWNER, PLAIN.name, wanted, "n2")
    assert not schedule_store.save_activity(OWNER, PLAIN.name, wanted, "n3")
    stored, activity = schedule_store.read(OWNER, PLAIN.name)
    (listed,) = schedule_store.list_after(OWNER, "", 9)
    assert (stored, activity) == (replace(PLAIN, incarnation=1), replace(wanted, version=1))
    assert stored is not None
    assert stored.activity == listed.activity == activity
    assert schedule_store.save_activity(OWNER, PLAIN.name, Activity(PLAIN.uid, version=1), "n4")
    assert schedule_store.read(OWNER, PLAIN.name)[1] == Activity(PLAIN.uid, version=2)


def test_a_page_is_full_despite_deleted_schedules_in_the_index(moto_cloud: Cloud) -> None:
    """If the index still lists deleted schedules, more entries are read so that only the last page is short."""
    table = moto_cloud.table()
    store = DynamoScheduleStore(moto_cloud.dynamodb, table, EXECUTOR)
    names = [f"job-{number}" for number in range(6)]
    made = [replace(PLAIN, spec=replace(PLAIN.spec, name=name)) for name in names]
    for stored in made:
        store.save(stored, stored.name)
    for stored in made[1:3]:
        store.remove(replace(stored, incarnation=1), "n1", HOME + DAY)
        moto_cloud.dynamodb.update_item(
            TableName=table,
            Key=key_of(OWNER, stored.name),
            UpdateExpression="SET #o = :o",
            ExpressionAttributeNames={"#o": schema.OWNER_KEY},
            ExpressionAttributeValues={":o": item_of(stored)[schema.OWNER_KEY]},
        )
    assert [each.name for each in store.list_after(OWNER, "", 2)] == ["job-0", "job-3"]
    assert [each.name for each in store.list_after(OWNER, "job-0", 9)] == ["job-3", "job-4", "job-5"]


def test_schedules_are_listed_in_order_of_their_names(schedule_store: ScheduleStore) -> None:
    """The list is ordered by name, is read in pages, and contains only one owner's schedules."""
    names = [f"job-{number:03}" for number in range(23)]
    for name in reversed(names):
        schedule_store.save(replace(PLAIN, spec=replace(PLAIN.spec, name=name)), name)
    schedule_store.save(replace(PLAIN, owner="other"), "other")
    first = schedule_store.list_after(OWNER, "", 10)
    assert [each.name for each in first] == names[:10]
    assert [each.name for each in schedule_store.list_after(OWNER, first[-1].name, 100)] == names[10:]
    assert [each.name for each in schedule_store.list_after("other", "", 10)] == [PLAIN.name]


def test_a_schedule_fits_in_one_write_unit(moto_cloud: Cloud) -> None:
    """A schedule with a long name and a log is below a kilobyte, so that an expansion costs one write unit."""
    table = moto_cloud.table()
    log = tuple(Remark(HOME + at, f"2026-11-21T02:{at:02}:00+00:00", "the run of the one before") for at in range(5))
    name = "n" * (MAX_NAME_LENGTH // 2)
    wanted = replace(
        PLAIN, spec=replace(PLAIN.spec, name=name), log=log, last_run=LastRun(numbered(1), HOME, 1), runs_started=99
    )
    assert DynamoScheduleStore(moto_cloud.dynamodb, table, EXECUTOR).save(wanted, "0" * 16)
    (item,) = moto_cloud.dynamodb.scan(TableName=table)["Items"]
    assert item_size(item) <= 1024
    full = replace(wanted, log=log * (MAX_REMARKS // len(log)), incarnation=1)
    assert DynamoScheduleStore(moto_cloud.dynamodb, table, EXECUTOR).save(full, "1" * 16)
    (item,) = moto_cloud.dynamodb.scan(TableName=table)["Items"]
    assert item_size(item) <= 1024


@pytest.mark.engine
@in_rounds
def test_one_creation_of_a_name_wins(engine_cloud: Cloud, rounds: int) -> None:
    """If sixteen concurrent creations have the same name, exactly one creation succeeds."""
    store = DynamoScheduleStore(engine_cloud.dynamodb, engine_cloud.table(), EXECUTOR)

    def contend(number: int, who: int) -> bool:
        return store.save(replace(PLAIN, spec=replace(PLAIN.spec, name=f"n{number}")), f"{number} {who}")

    assert winners(contend, rounds) == [1] * rounds
    assert CONTENDERS > 1


CALENDAR = Calendar(
    "uk-holidays",
    CalendarMode.INCLUDES,
    zone_named("Europe/London"),
    dates={date(2026, 12, 25): "Christmas", date(2026, 12, 26): ""},
    except_dates=frozenset({date(2026, 1, 1)}),
    weekdays=frozenset({5, 6}),
    windows=(Window(22 * HOUR, 6 * HOUR, frozenset({0, 1}), "night"),),
    spans=(Span(HOME, HOME + MINUTE, "bake-off"),),
)


def test_a_calendar_is_read_back_unchanged(calendar_store: CalendarStore) -> None:
    """Every field is read back, alone and in the list; a second put replaces a calendar, and a removal deletes it."""
    assert calendar_store.put("an#owner", CALENDAR, Incarnation(), "n1")
    assert calendar_store.put("an#owner", CALENDAR, Incarnation(), "n1")
    assert calendar_store.read("an#owner", CALENDAR.name) == CALENDAR
    assert calendar_store.list_after("an#owner", "", 10) == [CALENDAR]
    assert calendar_store.read(OWNER, CALENDAR.name) is None
    other = Calendar(CALENDAR.name)
    assert calendar_store.put("an#owner", other, Incarnation(1, 1), "n2")
    assert calendar_store.read("an#owner", CALENDAR.name) == other
    assert not calendar_store.remove("an#owner", other, Incarnation(1, 1), "n3", HOME + DAY)
    assert calendar_store.remove("an#owner", other, Incarnation(2, 1), "n4", HOME + DAY)
    assert calendar_store.remove("an#owner", other, Incarnation(2, 1), "n5", HOME + DAY)
    assert calendar_store.list_after("an#owner", "", 10) == []


def test_a_calendar_write_based_on_an_older_state_is_rejected(calendar_store: CalendarStore) -> None:
    """A write that is based on the state before a change, removal or creation is refused."""
    assert calendar_store.put(OWNER, CALENDAR, Incarnation(), "n1")
    assert calendar_store.remove(OWNER, CALENDAR, Incarnation(1, 1), "n2", HOME + DAY)
    assert calendar_store.read_edition(OWNER, CALENDAR.name) == (None, Incarnation(2))
    assert not calendar_store.put(OWNER, CALENDAR, Incarnation(), "n3")
    assert not calendar_store.put(OWNER, CALENDAR, Incarnation(1, 1), "n4")
    assert calendar_store.put(OWNER, Calendar(CALENDAR.name), Incarnation(2), "n5")
    assert not calendar_store.remove(OWNER, CALENDAR, Incarnation(1, 1), "n6", HOME + DAY)
    assert calendar_store.read_edition(OWNER, CALENDAR.name) == (Calendar(CALENDAR.name), Incarnation(3, 3))


def test_a_calendar_too_large_for_an_item_is_rejected(moto_cloud: Cloud) -> None:
    """If a calendar is too large for an item, the error names the field, and no calendar is stored."""
    labels = {date.fromordinal(800_000 - at): f"{hash((at, 'x')) % 10**18:018}" * 7 for at in range(MAX_CALENDAR_DATES)}
    store = DynamoCalendarStore(moto_cloud.dynamodb, moto_cloud.table(), EXECUTOR)
    text = {
        day: "".join(chr(0x4E00 + (ord(c) * 331 + at) % 20_000) for at, c in enumerate(label))
        for day, label in labels.items()
    }
    with pytest.raises(FieldInvalid, match="dates"):
        store.put(OWNER, Calendar("large", dates=text), Incarnation(), "n1")
    assert store.list_after(OWNER, "", 1) == []
