from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.task_items import ATTRIBUTES, SchemaUnknown, item_of, key_of, task_of
from duetime.adapters.dynamodb.task_store import timer_item_of
from duetime.domain.conditional_writes import Guard, Write
from duetime.domain.dispatch.enqueue_plan import Entry, Timer
from duetime.domain.limits import ATTEMPTS_INLINE, MAX_ARN_LENGTH, MAX_DETAIL_TYPE_LENGTH, MAX_ERROR_MESSAGE_LENGTH
from duetime.domain.operating_parameters import TIMER_LIFE
from duetime.domain.tasks.attempt_records import AttemptOutcome
from duetime.domain.tasks.attempt_results import failure
from duetime.domain.tasks.attempt_run import Claimant, Run
from duetime.domain.tasks.states import Move, State
from duetime.domain.tasks.targets import AwsService, AwsTarget
from duetime.domain.tasks.task import Content, ContentPlace, Task
from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import DAY, MINUTE
from tests.adapters.examples import HOME, OWNER, numbered, task
from tests.adapters.strategies import TASKS
from tests.domain.write_semantics import applied
from tests.metering import WRITE_UNIT_BYTES, item_size

HOLDER = "3f6c9a1e2b7d"
"""A lease holder's name that is longer than the eight characters of a real worker's name."""
NONCE = "Q2hhbmNlLjEy"


@settings(deadline=None)
@given(TASKS)
def test_a_task_is_unchanged_after_conversion_to_an_item(any_task: Task) -> None:
    """A task is unchanged after it is converted to an item and back."""
    assert task_of(item_of(any_task)) == any_task


def test_every_task_field_has_a_unique_attribute_name() -> None:
    """Each field except the keys has an attribute name that neither another field nor the schema uses."""
    assert {field.name for field in fields(Task)} - {"id", "owner"} == set(ATTRIBUTES)
    names = [attribute.name for attribute in ATTRIBUTES.values() if attribute.field != "expires_at"]
    others = [schema.PARTITION_KEY, schema.SORT_KEY, schema.TTL, schema.OWNER_KEY, schema.FAILED_KEY]
    reserved = [*others, schema.VERSION_OF_SCHEMA, schema.TIMER_OWNER]
    assert len({*names, *reserved}) == len(names) + len(reserved)


def test_default_values_are_not_stored() -> None:
    """Default values are left out of the item, except those that conditions compare."""
    extras = {"priority", "target", "retry", "timeout_seconds", "name", "tags", "sent", "attempt_history"}
    assert {ATTRIBUTES[field].name for field in extras}.isdisjoint(item_of(task()))
    compared = {"generation", "version", "fence", "attempt", "nonce", "state", "next_at"}
    assert {ATTRIBUTES[field].name for field in compared} <= set(item_of(task()))


def test_only_a_failed_record_is_in_the_list_of_failed_tasks() -> None:
    """Only a task in state `failed` has the sparse index's key."""
    for state in State:
        assert (schema.FAILED_KEY in item_of(task(state=state))) == (state is State.FAILED)


@pytest.mark.parametrize(
    ("version", "readable"),
    [(schema.SCHEMA_VERSION, True), (schema.SCHEMA_VERSION - 1, True), (schema.SCHEMA_VERSION + 1, False), (-1, False)],
)
def test_readers_accept_the_current_and_the_previous_schema(version: int, *, readable: bool) -> None:
    """Reading a record with any other schema version raises an error that names the version."""
    item = item_of(task()) | {schema.VERSION_OF_SCHEMA: {"N": str(version)}}
    if readable:
        assert task_of(item) == task()
    else:
        with pytest.raises(SchemaUnknown, match=f"version {version} "):
            task_of(item)


@pytest.mark.parametrize("expires_at", [1_795_228_380_001, 1_795_228_380_999, 1_795_228_381_000])
def test_a_record_never_expires_early(expires_at: int) -> None:
    """The TTL is rounded up to whole seconds, so a record never expires early."""
    item = item_of(task(expires_at=expires_at))
    assert item[schema.TTL] == {"N": "1795228381"}
    assert task_of(item).expires_at == 1_795_228_381_000


def test_a_timer_expires_after_its_lifetime() -> None:
    """A timer is stored under its minute in its task's shard, and expires a fixed time after that minute."""
    item = timer_item_of(Timer(numbered(1), 4, HOME + MINUTE, Priority.LOW, OWNER))
    assert item[schema.TTL] == {"N": str((HOME + MINUTE + TIMER_LIFE) // 1_000 + 1)}
    assert item[schema.PARTITION_KEY] == {"S": "2026-11-21T02:34#0003"}
    assert item[schema.SORT_KEY] == {"S": f"{numbered(1)}#w#4.{HOME % MINUTE}.low.."}
    assert key_of(numbered(1))[schema.PARTITION_KEY] == {"S": "2026-11-21T02:33#0003"}


SMALL = (
    b'{"invoice":"INV-2026-004711","customer":"c-18293","amount":"1249.90",'
    b'"currency":"EUR","copies":2,"send_to":"a@b.example"}'
)
LARGE = json.dumps(
    {
        "event": "order.shipped",
        "id": "7c9e6679-7425-40de-944b-e07fc1f90ae7",
        "occurred_at": "2026-11-20T23:59:12.481Z",
        "order": {"number": "SO-2026-118204", "currency": "EUR", "total": "418.35", "channel": "web", "gift": False},
        "customer": {"id": 90817, "name": "Margarethe Oppenheimer", "locale": "de-AT", "tier": "gold"},
        "ship_to": {"street": "Landstrasser Hauptstrasse 146/12", "city": "Wien", "postcode": "1030", "country": "AT"},
        "lines": [
            {"sku": "KB-87-ISO-BLK", "quantity": 1, "unit_price": "129.00", "serial": "4Q7X-88120-ZZ"},
            {"sku": "MON-27-QHD-165", "quantity": 1, "unit_price": "259.90", "serial": "T9-5561-0042"},
            {"sku": "CBL-USBC-2M", "quantity": 3, "unit_price": "9.82", "serial": None},
        ],
        "carrier": {"code": "POST-AT", "tracking": "1028 4471 9930 2217", "weight_g": 7340, "label": "thermal-100x150"},
    },
    separators=(",", ":"),
).encode()


def created(payload: bytes) -> Task:
    """Return a task as the API accepts it."""
    content = Content(ContentPlace.RECORD, "payload", payload)
    return task(owner="team-payments", type="send-invoice", payload=content, nonce=NONCE)


def claimed(before: Task) -> Task:
    """Return a task after a claim."""
    message = Entry.of(before).message(before.next_at)
    start = before.next_at
    return applied(Claimant(HOLDER, start, 30_000).claim(message, NONCE), before)


def ended(before: Task, move: Move, outcome: AttemptOutcome, **sets: Any) -> Task:  # noqa: ANN401 - any field of a task
    """Return a task after the end of its attempt."""
    run = Run(before, before.next_at + 12, before.next_at + 4_321)
    ends: Any = {"finished_at": run.ended_at, "expires_at": run.ended_at + 30 * DAY, **sets}
    ends = {**run.changes(outcome), **ends}
    return applied(Write(before.id, move, NONCE, Guard(fence=before.fence), ends), before)


def size_of(any_task: Task) -> int:
    """Return the size of a task's record in bytes."""
    return item_size(item_of(any_task))


def test_an_ordinary_record_is_always_small() -> None:
    """A new task with a payload of 120 bytes takes at most 330 bytes, and at most 430 bytes after it has ended."""
    new = created(SMALL)
    running = claimed(new)
    done = ended(running, Move.SUCCEED, AttemptOutcome.SUCCEEDED, result=Content(ContentPlace.RECORD, "result", b"{}"))
    assert 118 <= len(SMALL) <= 122
    sizes = size_of(new), size_of(running), size_of(done)
    assert all(size <= limit for size, limit in zip(sizes, (330, 360, 430), strict=True)), sizes


def test_an_attempt_record_takes_about_forty_bytes() -> None:
    """Each additional attempt adds at most forty bytes to the record."""
    one = ended(claimed(created(SMALL)), Move.SUCCEED, AttemptOutcome.SUCCEEDED)
    assert size_of(replace(one, attempt_history=one.attempt_history * 2)) - size_of(one) <= 40


def test_a_record_with_many_failed_attempts_stays_within_one_write_unit() -> None:
    """With a payload of 750 bytes and five attempts with the longest errors, a record never exceeds a kilobyte."""
    sentence = "could not connect to orders.internal.example.org:5432 after {} tries (timeout 2000 ms, pool 7 of 8); "
    errors = [failure("OperationalError", sentence.format(number) * 4).error for number in range(ATTEMPTS_INLINE)]
    assert {len(error.message) for error in errors} == {MAX_ERROR_MESSAGE_LENGTH}
    assert 745 <= len(LARGE) <= 760
    now, sizes = created(LARGE), []
    for attempt in range(1, ATTEMPTS_INLINE + 1):
        now, error = claimed(now), errors[attempt - 1]
        sizes.append(size_of(now))
        if attempt < ATTEMPTS_INLINE:
            changes: dict[str, Any] = {"next_at": now.next_at + 90_000, "expires_at": None, "finished_at": None}
            now = ended(now, Move.RETRY, AttemptOutcome.RETRIED, error=error, generation=attempt, **changes)
        else:
            now = ended(now, Move.FAIL, AttemptOutcome.FAILED, error=error)
        sizes.append(size_of(now))
    assert (now.state, len(now.attempt_history), now.error) == (State.FAILED, ATTEMPTS_INLINE, errors[-1])
    assert [line.error is not None for line in now.attempt_history] == [True] * 4 + [False]
    assert max(sizes) <= WRITE_UNIT_BYTES, sizes


def test_a_task_with_the_longest_aws_target_stays_within_one_write_unit() -> None:
    """A record with the longest ARN and detail type and an ordinary payload and outcome fits into a write unit."""
    arn = "arn:aws:events:eu-west-1:123456789012:event-bus/".ljust(MAX_ARN_LENGTH, "a")
    target = AwsTarget(AwsService.EVENTBRIDGE, arn, detail_type="d" * MAX_DETAIL_TYPE_LENGTH)
    new = replace(created(SMALL), target=target)
    told = Content(ContentPlace.RECORD, "result", b'{"event_id":"7c9e6679-7425-40de-944b-e07fc1f90ae7"}')
    done = ended(claimed(new), Move.SUCCEED, AttemptOutcome.SUCCEEDED, result=told)
    assert size_of(new) - size_of(created(SMALL)) <= MAX_ARN_LENGTH + MAX_DETAIL_TYPE_LENGTH + 2
    assert size_of(done) <= WRITE_UNIT_BYTES
