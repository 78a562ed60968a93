from __future__ import annotations

import gzip
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.attribute_values import deflated
from duetime.adapters.dynamodb.task_items import key_of
from duetime.domain.archive_objects import KEPT_DAYS_TAG, TASKS_PREFIX, UNREADABLE_PREFIX
from duetime.environment_variables import Variable
from duetime_testing.simulation.table_stream import SimulatedTableStream
from tests.scenarios.scenario import HOUR, MINUTE, PHASED, PLAIN, UNDONE, Scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime_testing.fakes.attribute_values import Item

DAY = 24 * HOUR
BUCKET = "archive"


class Archived(Scenario):
    """An account with an archive, whose records expire when a test chooses."""

    def __init__(self) -> None:
        super().__init__()
        self.s3.create_bucket(Bucket=BUCKET)
        self.environ[Variable.ARCHIVE_BUCKET] = BUCKET
        self.stream = SimulatedTableStream(self, function="archive")

    def objects(self, prefix: str = TASKS_PREFIX) -> dict[str, bytes]:
        """The archive's objects."""
        found = {key: body for (bucket, key), body in self.s3.objects.items() if bucket == BUCKET}
        return {key: gzip.decompress(body) for key, body in found.items() if key.startswith(prefix)}

    def rows(self) -> list[dict[str, Any]]:
        """The archive's lines, including duplicates."""
        return [json.loads(line) for body in self.objects().values() for line in body.splitlines()]

    def tasks(self) -> dict[str, dict[str, Any]]:
        """The archived tasks as readers get them, without duplicates that share an id and a version."""
        found = {(line["id"], line["version"]): line for line in self.rows()}
        assert len(found) == len({task_id for task_id, _ in found})
        return {task_id: line for (task_id, _), line in found.items()}

    def create(self, **fields: Any) -> str:  # noqa: ANN401 - fields of a task
        """Create a task that is due now."""
        return str(self.ask("POST", "/v1/tasks", {"type": PLAIN, **fields}).body["id"])

    def damage(self, task_id: str, attributes: Item) -> None:
        """Overwrite a record's attributes with values that this version's code never writes."""
        key = key_of(self.record(task_id).id)
        self.table.partitions[key[schema.PARTITION_KEY]["S"]][task_id] |= attributes

    def pass_retention(self) -> None:
        """Let the records of ended tasks expire, and be removed."""
        self.stand_still()
        self.run(31 * DAY)
        assert self.expire()

    def read_stream(self) -> None:
        """Let time pass until the stream is read to its end."""
        assert self.run_until(lambda: self.stream.is_read, within=2 * DAY, step=MINUTE)
        self.run(MINUTE)


@contextmanager
def archived() -> Iterator[Archived]:
    """An account with an archive."""
    with Archived() as account:
        yield account


def test_a_task_removed_by_ttl_is_archived_as_the_api_returned_it() -> None:
    """An archived line has every field of the last API response, the owner, the attempts and the events."""
    with archived() as account:
        account.target = lambda _phase, _context: {"done": [1, 2.5, "ü"]}
        task_id = account.create(payload={"big": "x" * 4_000, "text": "line\nbreak"}, tags={"team": "dba"}, name="n")
        assert account.run_until(lambda: account.record(task_id).finished_at)
        path = f"/v1/tasks/{task_id}"
        last = account.ask("GET", path).body
        attempts, events = (account.ask("GET", f"{path}/{each}").body for each in ("attempts", "events"))
        assert account.objects() == {}
        account.pass_retention()
        account.read_stream()
        line = account.tasks()[task_id]
        assert {name: line.get(name) for name in last} == last
        assert line["payload"] == {"big": "x" * 4_000, "text": "line\nbreak"}
        assert line["result"] == {"done": [1, 2.5, "ü"]}
        assert (line["owner"], line["archive_format"]) == ("local", 1)
        assert (line["attempts"], line["events"]) == (attempts["attempts"], events["events"])


def test_objects_are_named_by_the_day_on_which_their_tasks_ended() -> None:
    """If TTL removes tasks from two days at once, they are archived in two objects, one per day."""
    with archived() as account:
        first = account.create()
        account.run(MINUTE)
        account.stand_still()
        account.run(DAY)
        second = account.create(delay_seconds=600)
        assert account.ask("POST", f"/v1/tasks/{second}/cancel").status == 200
        days = [account.ask("GET", f"/v1/tasks/{each}").body["finished_at"][:10] for each in (first, second)]
        account.pass_retention()
        account.read_stream()
        named = {key: [json.loads(line)["id"] for line in body.splitlines()] for key, body in account.objects().items()}
        assert days[0] < days[1]
        assert sorted((key.split("/")[1], ids) for key, ids in named.items()) == [
            (f"day={days[0]}", [first]),
            (f"day={days[1]}", [second]),
        ]


def test_each_type_has_its_own_archive_retention() -> None:
    """Objects for types with a shorter retention are tagged for their lifecycle rule; 0 days means no archive."""
    with archived() as account:
        account.environ[Variable.ARCHIVE_DAYS_BY_TYPE] = json.dumps({PLAIN: 7, UNDONE: 0})
        short, _, long = (account.create(type=kind) for kind in (PLAIN, UNDONE, PHASED))
        account.run(MINUTE)
        account.pass_retention()
        account.read_stream()
        found = {json.loads(body)["id"]: account.s3.tags.get((BUCKET, key)) for key, body in account.objects().items()}
        assert found == {short: f"{KEPT_DAYS_TAG}=7", long: None}


def test_redacted_fields_are_not_archived() -> None:
    """Fields that a task type redacts are missing from the archived payload and result; other fields are unchanged."""
    with archived() as account:
        account.environ[Variable.REDACT] = json.dumps({PLAIN: ["card"]})
        account.target = lambda _phase, _context: {"card": "the secret", "left": 12.5}
        redacted = account.create(payload={"card": "the secret", "name": "ü"})
        whole = account.create(type=UNDONE, payload={"card": 1})
        account.run(MINUTE)
        account.pass_retention()
        account.read_stream()
        tasks, gone = account.tasks(), {"$redacted": True}
        assert (tasks[redacted]["payload"], tasks[redacted]["result"]) == (
            {"card": gone, "name": "ü"},
            {"card": gone, "left": 12.5},
        )
        assert tasks[whole]["payload"] == {"card": 1}
        assert tasks[redacted].keys() == tasks[whole].keys()


def test_a_payload_with_line_breaks_is_one_line() -> None:
    """Line breaks in a client's JSON are removed, so that each task is one line of the archive."""
    with archived() as account:
        body = f'{{"type": "{PLAIN}", "payload": {{\r\n "a":\n 1}}}}'.encode()
        task_id = str(account.ask("POST", "/v1/tasks", body).body["id"])
        account.run(MINUTE)
        account.pass_retention()
        account.read_stream()
        (text,) = account.objects().values()
        assert text.count(b"\n") == 1
        assert json.loads(text)["id"] == task_id
        assert json.loads(text)["payload"] == {"a": 1}


def test_a_repeated_or_split_batch_is_read_from_the_archive_once() -> None:
    """A repeated batch overwrites its object; if it is split differently, readers drop the equal lines."""
    with archived() as account:
        account.stream.repeats = 0.6
        ids = {account.create() for _ in range(40)}
        account.run(MINUTE)
        account.pass_retention()
        account.read_stream()
        assert account.tasks().keys() == ids
        assert len(account.rows()) > len(ids)
        by_key: dict[tuple[str, int], list[dict[str, Any]]] = {}
        for line in account.rows():
            by_key.setdefault((line["id"], line["version"]), []).append(line)
        assert all(line == lines[0] for lines in by_key.values() for line in lines)


def test_the_name_and_bytes_of_an_object_depend_only_on_its_tasks() -> None:
    """The name and the bytes of an object depend only on its tasks."""
    with archived() as account:
        account.create()
        account.run(MINUTE)
        account.pass_retention()
        account.read_stream()
        before = dict(account.s3.objects)
        account.run(DAY)
        again = account.invoke("archive", {"Records": account.stream.records})
        assert account.run_until(lambda: not again.failed)
        assert account.s3.objects == before


def test_tasks_removed_during_an_outage_are_archived_afterwards() -> None:
    """Removals by TTL while the function is down are read from the stream and archived later."""
    with archived() as account:
        ids = {account.create() for _ in range(5)}
        account.run(MINUTE)
        account.stream.dead_until = account.now + 40 * DAY
        account.pass_retention()
        account.run(HOUR)
        assert account.objects() == {}
        account.stream.dead_until = 0
        account.run(10 * DAY)
        account.read_stream()
        assert account.tasks().keys() == ids


def test_a_batch_is_delivered_again_while_the_bucket_fails() -> None:
    """If S3 refuses a write, the invocation fails and no record is skipped."""
    with archived() as account:
        task_id = account.create()
        account.run(MINUTE)
        account.s3.buckets.discard(BUCKET)
        account.pass_retention()
        account.run(HOUR)
        assert not account.stream.is_read
        account.s3.create_bucket(Bucket=BUCKET)
        account.read_stream()
        assert account.tasks().keys() == {task_id}


def test_the_stream_data_of_an_unreadable_record_is_kept() -> None:
    """An unreadable record does not block other records, and its stream data is kept for later code to read."""
    with archived() as account:
        poisoned, fine = account.create(), account.create()
        account.run(MINUTE)
        account.damage(poisoned, {schema.VERSION_OF_SCHEMA: {"N": "99"}})
        account.pass_retention()
        account.read_stream()
        assert account.tasks().keys() == {fine}
        (text,) = account.objects(UNREADABLE_PREFIX).values()
        assert json.loads(text)["dynamodb"]["OldImage"][schema.SORT_KEY] == {"S": poisoned}


def test_a_task_with_a_damaged_payload_is_archived_without_contents() -> None:
    """A task with a damaged payload is archived without contents, and its object stays readable."""
    with archived() as account:
        damaged = [account.create() for _ in range(3)]
        account.run(MINUTE)
        for task_id, data in zip(damaged, (b"{", b"\xff\xfe", b"[" * 200_000), strict=True):
            account.damage(task_id, {"b": {"B": deflated(data)}})
        account.pass_retention()
        account.read_stream()
        tasks = account.tasks()
        assert tasks.keys() == set(damaged)
        assert {(task["payload"], tuple(task["content_expired"])) for task in tasks.values()} == {
            (None, ("payload", "result"))
        }


def test_a_deleted_task_is_not_archived() -> None:
    """If a user deletes a task before TTL does, neither the task nor its payload is archived."""
    with archived() as account:
        deleted, kept = account.create(payload="the secret"), account.create()
        account.run(MINUTE)
        assert account.ask("DELETE", f"/v1/tasks/{deleted}").status == 204
        account.pass_retention()
        account.read_stream()
        assert account.tasks().keys() == {kept}
        assert all(b"the secret" not in body for body in account.objects("").values())


def test_all_attempts_are_archived() -> None:
    """The archive includes the attempts that are stored in items outside the record."""

    def fail(_phase: str, _context: object) -> None:
        raise ValueError("no")

    with archived() as account:
        account.target = fail
        task_id = account.create(retry={"max_attempts": 8, "initial_seconds": 1, "multiplier": 1})
        assert account.run_until(lambda: account.record(task_id).finished_at, within=HOUR)
        attempts = account.ask("GET", f"/v1/tasks/{task_id}/attempts").body["attempts"]
        assert len(attempts) == 8
        account.pass_retention()
        account.read_stream()
        # An archived attempt does not include its traceback, which is only in the logs.
        for each in attempts:
            each["error"]["traceback"] = None
        assert account.tasks()[task_id]["attempts"] == attempts


def test_the_error_for_an_archived_task_has_the_command_to_find_it() -> None:
    """The problem for an archived task contains a command that finds the task; for an unknown id, it has no command."""
    with archived() as account:
        task_id = account.create()
        deleted = account.create()
        account.run(MINUTE)
        unknown = f"{task_id[:10]}{'0' * 16}"
        problem = account.ask("GET", f"/v1/tasks/{unknown}").body
        assert (problem["code"], "duetime archive" in problem["detail"]) == ("task_not_found", False)
        assert account.ask("DELETE", f"/v1/tasks/{deleted}").status == 204
        account.stand_still()
        account.run(31 * DAY)
        assert account.ask("GET", f"/v1/tasks/{deleted}").body["code"] == "task_not_found"
        day = account.ask("GET", f"/v1/tasks/{task_id}").body["due_at"][:10]
        stranger = {"x-duetime-owner": "stranger"}
        before = account.ask("GET", f"/v1/tasks/{task_id}", headers=stranger)
        account.pass_retention()
        account.read_stream()
        for path in ("", "/attempts", "/events"):
            reply = account.ask("GET", f"/v1/tasks/{task_id}{path}")
            assert (reply.status, reply.body["code"]) == (404, "task_archived")
            assert f"duetime archive query --where \"id = '{task_id}'\" --from {day}" in reply.body["detail"]
        after = account.ask("GET", f"/v1/tasks/{task_id}", headers=stranger)
        assert after.body == before.body, "it is not told whether another owner's task is still there"


@pytest.mark.parametrize(
    ("days", "by_type", "said"),
    [
        (
            "400",
            {PLAIN: 7, UNDONE: 0},
            f"tasks that ended more than 30 days ago are archived, except those of the types {UNDONE}",
        ),
        ("0", {PLAIN: 7, UNDONE: 0}, f"tasks of the types {PLAIN} that ended more than 30 days ago are archived"),
    ],
)
def test_the_error_for_a_task_of_unknown_type_names_unarchived_types(
    days: str, by_type: dict[str, int], said: str
) -> None:
    """If a removed task's type is unknown, the response names the types that are, or are not, archived."""
    with archived() as account:
        account.environ |= {Variable.ARCHIVE_DAYS: days, Variable.ARCHIVE_DAYS_BY_TYPE: json.dumps(by_type)}
        task_id = account.create()
        account.run(MINUTE)
        account.pass_retention()
        assert f"; {said}: duetime archive query" in account.ask("GET", f"/v1/tasks/{task_id}").body["detail"]


@pytest.mark.parametrize("archived_type", [PLAIN, UNDONE])
def test_is_archived_is_true_only_if_the_schedules_type_is_archived(archived_type: str) -> None:
    """`is_archived` is true only if runs of the schedule's type are archived."""
    with archived() as account:
        account.environ |= {Variable.ARCHIVE_DAYS: "0", Variable.ARCHIVE_DAYS_BY_TYPE: json.dumps({archived_type: 7})}
        schedule = {"name": "nightly", "rate": "1 day", "task": {"type": PLAIN}}
        assert account.ask("POST", "/v1/schedules", schedule).status == 201
        applied = account.ask("GET", "/v1/schedules/nightly/runs").body["applied"]
        assert applied["is_archived"] is (archived_type == PLAIN)


def test_a_removed_task_is_not_found_if_no_archive_is_configured() -> None:
    """If no archive is configured, the response for a removed task says only that the task was not found."""
    with Scenario() as account:
        task_id = account.ask("POST", "/v1/tasks", {"type": PLAIN}).body["id"]
        account.run(MINUTE)
        account.stand_still()
        account.run(31 * DAY)
        assert account.expire()
        assert account.ask("GET", f"/v1/tasks/{task_id}").body["code"] == "task_not_found"
