"""Purges remove as much as possible of the stored data of tasks or of an owner, despite any crash."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.domain.archive_objects import KEPT_DAYS_TAG
from duetime.domain.bulk import BACKUP_RETENTION
from duetime.domain.limits import PURGE_RETENTION
from duetime.domain.times import to_iso
from duetime.environment_variables import Variable
from duetime.handlers import Accepted
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND
from tests.scenarios.test_archive import DAY, Archived
from tests.scenarios.test_bulk_operations import killing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime_testing.fakes.attribute_values import Item
    from duetime_testing.simulation.faults import Call

PATIENT = "the-name-of-a-patient"
LARGE = PATIENT + "".join(sha256(str(number).encode()).hexdigest() for number in range(8_000))
"""A payload that is so large that it is stored in S3."""
OTHER = {"X-Duetime-Owner": "somebody"}


@pytest.fixture
def account() -> Iterator[Archived]:
    """An account with an archive."""
    with Archived() as account:
        yield account


def purged(account: Archived, body: dict[str, Any], within: int = HOUR) -> dict[str, Any]:
    """Purge, and wait for the end; return the final state."""
    answer = account.ask("POST", "/v1/purges", body)
    assert answer.status == 202, answer.body
    path = f"/v1/purges/{answer.body['id']}"
    assert account.run_until(lambda: account.ask("GET", path).body["state"] != "running", within, SECOND)
    found: dict[str, Any] = account.ask("GET", path).body
    return found


def stored_with(account: Archived, text: str) -> list[str]:
    """The keys of all items, objects and archive rows that contain a string."""
    items = [
        f"{partition}/{key}"
        for partition, found in account.table.partitions.items()
        for key, item in found.items()
        if text in json.dumps(item, default=str)
    ]
    rows = [str(row["id"]) for row in account.rows() if text in json.dumps(row)]
    return items + rows


def of_task(account: Archived, task_id: str) -> list[Item]:
    """A task's items outside its record."""
    return list(account.table.partitions.get(f"{schema.CONTENT_PREFIX}{task_id}", {}).values())


def content_objects(account: Archived) -> list[str]:
    """The keys of objects with large contents."""
    return [key for bucket, key in account.s3.objects if bucket != "archive"]


def test_a_purged_task_leaves_only_a_record_without_data(account: Archived) -> None:
    """A purged task's payload, name and tags are removed at once; the receipt says what is left, and how long."""
    task = account.create(
        payload=LARGE,
        name=PATIENT,
        tags={"patient": PATIENT},
        unique={"key": PATIENT},
        order={"key": PATIENT},
        fair_key=PATIENT,
        group={"id": "g"},
    )
    assert account.run_until(lambda: account.record(task).finished_at is not None, MINUTE)
    assert content_objects(account)
    kept = account.create(name="kept")
    end = purged(account, {"task_ids": [task], "reason": "request 17"})
    assert (end["state"], end["receipt"]["removed"], end["refused"]) == ("succeeded", {"tasks": 1}, {})
    left = {each["kind"]: each["until"] for each in end["receipt"]["left"]}
    assert set(left) == {"records", "keys", "signals", "names", "stream", "backups"}
    assert min(left.values()) > to_iso(account.now)
    assert (content_objects(account), of_task(account, task), account.record(task).group) == ([], [], None)
    keys = [key for key in stored_with(account, PATIENT) if not key.startswith(schema.LIST_PREFIX)]
    line, unique = schema.ORDER_LINE_PREFIX, schema.UNIQUE_KEY_PREFIX
    assert sorted(keys) == [f"{line}local#{PATIENT}/#{PATIENT}", f"{unique}local#{PATIENT}/local"]
    account.run(MINUTE)
    account.stand_still()
    account.run(3 * DAY)
    account.expire()
    assert stored_with(account, PATIENT) == []
    assert account.ask("GET", f"/v1/tasks/{task}").status == 404
    assert account.record(kept).name == "kept"


def test_a_purge_rejects_an_open_task_unless_it_cancels_open_tasks(account: Archived) -> None:
    """A purge counts an open task as refused, or with `open_tasks: cancel` cancels and erases the task."""
    task = account.create(delay_seconds=7200)
    end = purged(account, {"task_ids": [task]})
    assert (end["refused"], end["receipt"]["removed"]) == ({"state_conflict": 1}, {})
    assert end["matched"] == 1
    assert account.record(task).state == "scheduled"
    end = purged(account, {"task_ids": [task], "open_tasks": "cancel"})
    assert (end["refused"], end["receipt"]["removed"]) == ({}, {"tasks": 1})
    assert account.record(task).erased


def test_a_purged_running_task_is_stopped_and_then_erased(account: Archived) -> None:
    """A purge of a running task waits for the attempt to end, and succeeds without a refusal."""
    account.target = lambda _phase, _context: Accepted()
    task = account.create(notify_within_seconds=600)
    account.run(SECOND)
    assert account.record(task).state == "running"
    end = purged(account, {"task_ids": [task], "open_tasks": "cancel"})
    assert (end["state"], end["refused"], end["receipt"]["removed"]) == ("succeeded", {}, {"tasks": 1})
    assert (end["matched"], account.record(task).erased) == (1, True)


def test_a_purge_by_filter_removes_archive_rows(account: Archived) -> None:
    """Archive rows of matching tasks are removed, other rows stay, and an object without rows is deleted."""
    kept = [account.create(tags={} if number % 2 else {"patient": PATIENT}) for number in range(20)][1::2]
    assert account.run_until(lambda: account.record(kept[-1]).finished_at is not None, MINUTE)
    account.run(DAY)
    alone = account.create(tags={"patient": PATIENT}, name="alone")
    assert account.run_until(lambda: account.record(alone).finished_at is not None, MINUTE)
    account.pass_retention()
    account.read_stream()
    assert len(account.tasks()) == 21
    shared = [body for body in account.objects().values() if PATIENT.encode() in body and any_of(kept, body)]
    assert shared
    lately = account.create(tags={"patient": PATIENT}, delay_seconds=7200)
    end = purged(account, {"filter": {"tags": {"patient": PATIENT}}, "open_tasks": "cancel"})
    assert end["receipt"]["removed"] == {"tasks": 1, "archive_rows": 11}
    assert set(account.tasks()) == set(kept)
    assert account.record(lately).erased
    assert purged(account, {"task_ids": kept})["receipt"]["removed"] == {"archive_rows": 10}
    assert account.objects() == {}


def test_a_purge_by_group_removes_archive_rows(account: Archived) -> None:
    """Archive rows of a group's members are removed, and rows of other tasks stay."""
    member, other = account.create(group={"id": "patient-7"}), account.create()
    assert account.run_until(lambda: account.record(other).finished_at is not None, MINUTE)
    account.pass_retention()
    account.read_stream()
    assert set(account.tasks()) == {member, other}
    assert purged(account, {"filter": {"group": "patient-7"}})["receipt"]["removed"]["archive_rows"] == 1
    assert set(account.tasks()) == {other}


def test_an_archive_object_rewritten_by_a_purge_keeps_its_lifecycle_tag(account: Archived) -> None:
    """A purge rewrites an archive object with the tag for its lifecycle rule."""
    account.environ[Variable.ARCHIVE_DAYS_BY_TYPE] = '{"*": 7}'
    kept = [account.create(tags={} if number % 2 else {"patient": PATIENT}) for number in range(20)][1::2]
    assert account.run_until(lambda: account.record(kept[-1]).finished_at is not None, MINUTE)
    account.pass_retention()
    account.read_stream()
    before = account.objects()
    purged(account, {"filter": {"tags": {"patient": PATIENT}}})
    assert set(account.tasks()) == set(kept)
    assert any(body != before[key] for key, body in account.objects().items())
    assert {account.s3.tags[("archive", key)] for key in account.objects()} == {f"{KEPT_DAYS_TAG}=7"}


def any_of(task_ids: list[str], body: bytes) -> bool:
    """Whether an object has a row about one of the tasks."""
    return any(task_id.encode() in body for task_id in task_ids)


def resources_of(account: Archived) -> dict[str, list[str]]:
    """Create one resource of each kind that an owner can have; return the lists' paths, with their JSON keys."""
    calendar = {"dates": ["2027-01-01"]}
    assert account.ask("PUT", "/v1/calendars/holidays", calendar).status in {200, 201}
    nightly = {"name": "nightly", "rate": "rate(1 hour)", "calendars": ["holidays"], "task": {"type": PLAIN}}
    assert account.ask("POST", "/v1/schedules", nightly).status == 201
    graph = {"nodes": {"a": {"type": PLAIN}, "b": {"type": PLAIN, "depends_on": ["a"]}}}
    assert account.ask("PUT", "/v1/topologies/definitions/etl", graph).status in {200, 201}
    assert account.ask("PUT", f"/v1/types/{PLAIN}", {"priority": "low"}).status == 200
    assert account.ask("POST", "/v1/topologies", graph).status == 201
    assert account.ask("PUT", "/v1/rates/crm", {"limit": 5}).status == 200
    assert account.ask("POST", "/v1/rates/crm/pause").status == 200
    return {
        "/v1/calendars": ["calendars"],
        "/v1/schedules": ["schedules"],
        "/v1/topologies/definitions": ["definitions"],
        "/v1/tasks": ["tasks"],
    }


def test_only_an_operator_can_purge_everything_of_an_owner(account: Archived) -> None:
    """Only an operator can purge all resources, tasks and nodes of an owner; other owners' data is kept."""
    account.environ |= {Variable.OPERATORS: "somebody", Variable.ADMINS: ""}
    lists = resources_of(account)
    other = account.ask("POST", "/v1/tasks", {"type": PLAIN}, headers=OTHER).body["id"]
    account.run(2 * HOUR)
    refused = account.ask("POST", "/v1/purges", {"all": True, "owner": "somebody"})
    assert (refused.status, refused.body["code"]) == (403, "operator_required")
    answer = account.ask("POST", "/v1/purges", {"all": True, "owner": "local", "open_tasks": "cancel"}, headers=OTHER)
    path = f"/v1/purges/{answer.body['id']}"
    ended = lambda: account.ask("GET", path, headers=OTHER).body["state"] == "succeeded"  # noqa: E731 - short
    assert account.run_until(ended, HOUR, SECOND)
    receipt = account.ask("GET", path, headers=OTHER).body["receipt"]
    one_each = {"schedules": 1, "calendars": 1, "topology_definitions": 1, "type_defaults": 1, "rates": 1}
    assert {**receipt["removed"], "tasks": 0} == {**one_each, "tasks": 0}
    assert (receipt["owner"], account.ask("GET", path).status) == ("local", 404)
    for listed, (name,) in lists.items():
        assert account.ask("GET", listed).body[name] == [], listed
    left = account.ask("GET", "/v1/rates/crm").body
    assert (left["pinned"], left["paused_at"]) == (None, None)
    assert all(task.erased for task in account.watching.tasks() if task.owner == "local")
    assert account.ask("GET", f"/v1/tasks/{other}", headers=OTHER).status == 200


@pytest.mark.parametrize("number", range(1, 21))
def test_a_purge_completes_wherever_its_function_dies(account: Archived, number: int) -> None:
    """Wherever the purge function dies, all task data is removed in the end, and the receipt is written."""
    task = account.create(
        payload=LARGE, name=PATIENT, unique={"key": PATIENT}, order={"key": PATIENT}, group={"id": "g"}
    )
    assert account.run_until(lambda: account.record(task).finished_at is not None, MINUTE)
    calls: list[Call] = []
    account.before_call = killing("bulk", number, calls)
    end = purged(account, {"filter": {"type": PLAIN}})
    assert len(calls) >= number
    assert end["state"] == "succeeded"
    assert (content_objects(account), of_task(account, task), account.record(task).name) == ([], [], "")
    parts = account.table.partitions
    assert [item for key, found in parts.items() if key.startswith(schema.GROUP_MEMBERS_PREFIX) for item in found] == []
    key, line = f"{schema.UNIQUE_KEY_PREFIX}local#{PATIENT}", f"{schema.ORDER_LINE_PREFIX}local#{PATIENT}"
    kept = [int(item[schema.TTL]["N"]) for place in (key, line) for item in parts[place].values()]
    assert max(kept) * SECOND <= account.now + SECOND


def test_a_purges_receipt_is_kept_longer_than_backups(account: Archived) -> None:
    """A purge's receipt expires after the table's backups."""
    assert PURGE_RETENTION > BACKUP_RETENTION
    task = account.create()
    account.run(MINUTE)
    end = purged(account, {"task_ids": [task]})
    account.stand_still()
    account.run(60 * DAY)
    account.expire()
    assert account.ask("GET", f"/v1/purges/{end['id']}").body["receipt"] == end["receipt"]


def test_a_purge_does_not_reach_other_owners_tasks(account: Archived) -> None:
    """A purge by ids or by filter does not reach other owners' tasks."""
    other = account.ask("POST", "/v1/tasks", {"type": PLAIN, "name": "theirs"}, headers=OTHER).body["id"]
    account.run(MINUTE)
    for body in ({"task_ids": [other]}, {"filter": {"name": "theirs"}}):
        assert purged(account, body)["receipt"]["removed"] == {}
    assert account.record(other).name == "theirs"


def test_the_stored_receipt_of_a_purge_does_not_contain_the_filter(account: Archived) -> None:
    """The stored receipt does not contain the filter, which may name a person."""
    task = account.create(tags={"patient": PATIENT})
    account.run(MINUTE)
    end = purged(account, {"filter": {"tags": {"patient": PATIENT}}})
    assert end["receipt"]["removed"] == {"tasks": 1}
    partition = account.table.partitions[f"{schema.BULK_PREFIX}{end['id']}"]
    assert "b" not in partition[end["id"]]
    assert account.record(task).erased
