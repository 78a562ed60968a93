"""Contents stored outside the record are kept while they are needed, and then removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.domain.times import DAY
from duetime.environment_variables import Variable
from duetime.handlers import AttemptPaused
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND, UNDONE, Scenario

if TYPE_CHECKING:
    from duetime.handlers import Context
    from duetime_testing.simulation.faults import Call

BIG = ["%08x" % (number * 2654435761 % 2**32) for number in range(200)]
"""JSON that does not fit into a record."""
OTHER = BIG[::-1]
HUGE = ["%08x" % (number * 2654435761 % 2**32) for number in range(60_000)]
"""JSON that is too large for both a record and an item."""

UPLOADED = b"\x89PNG, in short"


def contents(scenario: Scenario) -> dict[str, int | None]:
    """The contents stored in items, each with its expiry in seconds, or `None` without an expiry."""
    return {
        item[schema.SORT_KEY]["S"]: int(item[schema.TTL]["N"]) if schema.TTL in item else None
        for item in scenario.items(schema.CONTENT_PREFIX)
    }


def tags(scenario: Scenario) -> list[str]:
    """The tags of all objects, with empty tags for objects that no lifecycle rule removes."""
    kept = "=".join(schema.KEPT_TAG)
    return [scenario.s3.tags.get(place, "").replace(kept, "") for place in scenario.s3.objects]


def lose(scenario: Scenario) -> None:
    """Remove all contents stored outside records, as TTL can do in any order after the expiry."""
    for item in scenario.items(schema.CONTENT_PREFIX):
        scenario.table.write(scenario.now, (item[schema.PARTITION_KEY]["S"], item[schema.SORT_KEY]["S"]), None)


def throttled(scenario: Scenario) -> Any:  # noqa: ANN401 - it raises
    """Return a function that throttles a call."""

    def throttle(_call: Call) -> None:
        raise scenario.dynamodb.exceptions.make("ProvisionedThroughputExceededException", "a call")

    return throttle


def until_asked(scenario: Scenario, leaves: object) -> Any:  # noqa: ANN401 - a handler
    """A handler that runs until a pause is requested, and then saves a checkpoint."""

    def work(_phase: str, context: Context) -> None:
        while context.requested_action is None:
            scenario.take(SECOND)
        raise AttemptPaused(leaves)

    return work


@pytest.mark.slow
def test_all_attempts_of_a_task_are_shown_while_it_is_open() -> None:
    """All attempts of a task that is retried for more than a day are shown, even if the retention is only one day."""
    with Scenario() as scenario:
        scenario.environ[Variable.RETENTION_DAYS] = "1"

        def fail(_phase: str, _context: Context) -> None:
            raise ValueError

        scenario.target = fail
        every = {"max_attempts": 30, "initial_seconds": 9_000, "multiplier": 1, "max_seconds": 9_000}
        task = scenario.ask("POST", "/v1/tasks", {"type": PLAIN, "retry": every}).body["id"]
        assert scenario.run_until(lambda: scenario.record(task).attempt == 12, within=2 * DAY, step=HOUR)
        scenario.expire()
        told = scenario.ask("GET", f"/v1/tasks/{task}/attempts").body["attempts"]
        assert [each["attempt"] for each in told] == list(range(1, 13))


def test_attempts_of_an_ended_task_expire_after_its_record() -> None:
    """The history lines and tracebacks of an ended task expire after its record."""
    with Scenario() as scenario:

        def fail(_phase: str, _context: Context) -> None:
            raise ValueError

        scenario.target = fail
        often = {"max_attempts": 9, "initial_seconds": 1, "multiplier": 1, "max_seconds": 1}
        task = scenario.ask("POST", "/v1/tasks", {"type": PLAIN, "retry": often}).body["id"]
        scenario.run(5 * MINUTE)
        record = scenario.record(task)
        assert (record.state, record.finished_at is not None) == ("failed", True)
        ends = contents(scenario)
        assert len(ends) == 4 + 1
        assert all(at is not None and at * SECOND > (record.expires_at or 0) for at in ends.values())


def test_payload_and_result_expire_days_after_the_record() -> None:
    """TTL removes items in any order, so payload and result expire days after the record."""
    with Scenario() as scenario:
        scenario.target = lambda _phase, _context: OTHER
        order = {"type": PLAIN, "payload": BIG, "delay_seconds": 10}
        task = scenario.ask("POST", "/v1/tasks", order).body["id"]
        assert list(contents(scenario).values()) == [None]
        scenario.run(MINUTE)
        expires_at = scenario.record(task).expires_at or 0
        ends = contents(scenario)
        assert len(ends) == 2
        assert all(at is not None and at * SECOND > expires_at + 5 * DAY for at in ends.values())


@pytest.mark.parametrize("size", [BIG, HUGE], ids=["item", "object"])
def test_a_task_shows_when_its_payload_and_result_have_expired(size: list[str]) -> None:
    """A task shows that its payload and result have expired, and its rollback is refused with `content_expired`."""
    with Scenario() as scenario:
        scenario.target = lambda _phase, _context: BIG
        task = scenario.ask("POST", "/v1/tasks", {"type": UNDONE, "payload": size}).body["id"]
        scenario.run(MINUTE)
        lose(scenario)
        scenario.s3.objects.clear()
        read = scenario.ask("GET", f"/v1/tasks/{task}")
        assert (read.status, read.body["payload"], read.body["result"]) == (200, None, None)
        assert read.body["content_expired"] == ["payload", "result"]
        assert scenario.ask("GET", "/v1/tasks").status == 200
        undone = scenario.ask("POST", f"/v1/tasks/{task}/rollback")
        assert (undone.status, undone.body["code"]) == (410, "content_expired")
        assert scenario.record(task).state == "succeeded"


def test_a_task_with_a_missing_payload_fails_with_content_expired() -> None:
    """A task with a missing payload fails at once with `ContentExpired`, and a retry is refused for that reason."""
    with Scenario() as scenario:
        task = scenario.ask("POST", "/v1/tasks", {"type": PLAIN, "payload": BIG, "delay_seconds": 60}).body["id"]
        lose(scenario)
        scenario.run(2 * MINUTE)
        record = scenario.record(task)
        assert record.error is not None
        assert (record.state, record.error.type, record.attempt) == ("failed", "ContentExpired", 1)
        again = scenario.ask("POST", f"/v1/tasks/{task}/retry")
        assert (again.status, again.body["code"]) == (410, "content_expired")


def test_a_reopened_task_keeps_its_contents() -> None:
    """When a rollback reopens a task, its payload no longer expires."""
    with Scenario() as scenario:
        task = scenario.ask("POST", "/v1/tasks", {"type": UNDONE, "payload": BIG}).body["id"]
        scenario.run(MINUTE)
        scenario.receiving = False
        assert scenario.ask("POST", f"/v1/tasks/{task}/rollback").status == 202
        assert contents(scenario) == {"payload": None}


def test_earlier_checkpoints_expire() -> None:
    """While a task is open, only its last large checkpoint is kept; after the task's end, no checkpoint is kept."""
    with Scenario() as scenario:
        scenario.target = until_asked(scenario, BIG)
        task = scenario.ask("POST", "/v1/tasks", {"type": PLAIN, "timeout_seconds": 800}).body["id"]
        path = f"/v1/tasks/{task}"
        for number in range(3):
            scenario.run(5 * SECOND)
            scenario.ask("POST", f"{path}/pause")
            assert scenario.run_until(lambda: scenario.record(task).state == "paused")
            scenario.run(SECOND)
            kept = [name for name, at in contents(scenario).items() if at is None]
            checkpoint = scenario.record(task).checkpoint
            assert checkpoint is not None
            assert (kept, len(contents(scenario))) == ([checkpoint.name], number + 1)
            scenario.ask("POST", f"{path}/resume")
        scenario.target = lambda _phase, _context: "done"
        assert scenario.run_until(lambda: scenario.record(task).finished_at is not None)
        assert None not in contents(scenario).values()


def test_both_copies_of_a_result_written_twice_expire() -> None:
    """If the write of an outcome is throttled once, both copies of the result get an expiry."""
    with Scenario() as scenario:
        scenario.target = lambda _phase, _context: BIG
        met = scenario.once(
            lambda call: call.machine.function == "worker" and "succeeded" in str(call.request), throttled(scenario)
        )
        task = scenario.ask("POST", "/v1/tasks", {"type": PLAIN}).body["id"]
        scenario.run(5 * MINUTE)
        assert (scenario.record(task).state, len(met), len(contents(scenario))) == ("succeeded", 1, 2)
        assert None not in contents(scenario).values()


@pytest.mark.parametrize("size", [BIG, HUGE], ids=["item", "object"])
def test_the_payload_of_a_failed_creation_expires(size: list[str]) -> None:
    """If the write of the record is throttled, the client gets 503 and the payload expires."""
    with Scenario() as scenario:
        scenario.once(
            lambda call: call.operation == "put_item" and schema.OWNER_KEY in call.request["Item"], throttled(scenario)
        )
        assert scenario.ask("POST", "/v1/tasks", {"type": PLAIN, "payload": size}).status == 503
        assert None not in contents(scenario).values()
        assert "" not in tags(scenario)
        assert len(contents(scenario)) + len(tags(scenario)) == 1


@pytest.mark.parametrize("size", [BIG, HUGE], ids=["item", "object"])
def test_the_payload_of_an_open_task_never_expires(size: list[str]) -> None:
    """A payload that a record refers to has no expiry, however late the due time, even after a replacement."""
    with Scenario() as scenario:
        task = scenario.ask("POST", "/v1/tasks", {"type": PLAIN, "payload": size, "delay_seconds": 86_400}).body["id"]
        assert (list(contents(scenario).values()) or tags(scenario)) in ([None], [""])
        assert scenario.ask("PATCH", f"/v1/tasks/{task}", {"payload": OTHER}).status == 200
        named = scenario.record(task).payload.name
        assert [name for name, at in contents(scenario).items() if at is None] == [named]
        assert "" not in tags(scenario)


def test_a_throttled_change_sets_no_expiry_on_the_payload() -> None:
    """If a change is throttled, the client gets 503, and the record's payload still has no expiry."""
    with Scenario() as scenario:
        task = scenario.ask("POST", "/v1/tasks", {"type": PLAIN, "payload": BIG, "delay_seconds": 86_400}).body["id"]
        scenario.once(
            lambda call: (
                (call.machine.function, call.operation) == ("api", "update_item")
                and schema.CONTENT_PREFIX not in str(call.request["Key"])
            ),
            throttled(scenario),
        )
        assert scenario.ask("PATCH", f"/v1/tasks/{task}", {"payload": OTHER}).status == 503
        ends = contents(scenario)
        assert len(ends) == 2
        assert [name for name, at in ends.items() if at is None] == [scenario.record(task).payload.name]


def test_an_occurrence_and_its_schedule_keep_their_payloads() -> None:
    """Payloads of a schedule and its open occurrence do not expire, but a replaced payload does."""
    with Scenario() as scenario:
        body = {"name": "hourly", "cron": "0 * * * *", "task": {"type": PLAIN, "payload": BIG}}
        assert scenario.ask("POST", "/v1/schedules", body).status == 201
        assert list(contents(scenario).values()) == [None]
        scenario.receiving = False
        scenario.run(HOUR)
        assert list(contents(scenario).values()) == [None, None]
        changed = {"task": {"type": PLAIN, "payload": OTHER}}
        assert scenario.ask("PATCH", "/v1/schedules/hourly", changed).status == 200
        assert sorted(at is None for at in contents(scenario).values()) == [False, True, True]


@pytest.mark.parametrize("how", ["create", "change", "retry"])
def test_every_payload_expires_after_a_cancel_during_its_replacement(how: str) -> None:
    """If a task is cancelled just before a new payload's expiry is removed, every payload still gets an expiry."""
    with Scenario() as scenario:
        scenario.ticking = False
        order = {"type": PLAIN, "payload": BIG, "delay_seconds": 600, "retry": {"max_attempts": 1}}
        if how == "retry":
            scenario.target = fail
            order |= {"delay_seconds": 0}
        task = None if how == "create" else scenario.ask("POST", "/v1/tasks", order).body["id"]
        scenario.run(MINUTE)

        def cancel(_call: Call) -> None:
            (stored,) = scenario.watching.tasks()
            reply = scenario.users.ask("POST", f"/v1/tasks/{stored.id}/cancel")
            assert reply is not None
            assert reply.status == 200

        met = scenario.once(is_kept, cancel)
        requests: dict[str, tuple[Any, ...]] = {
            "create": ("POST", "/v1/tasks", order),
            "change": ("PATCH", f"/v1/tasks/{task}", {"payload": OTHER}),
            "retry": ("POST", f"/v1/tasks/{task}/retry"),
        }
        scenario.receiving = False
        scenario.ask(*requests[how])
        assert met
        assert [each.state for each in scenario.watching.tasks()] == ["cancelled"]
        assert None not in contents(scenario).values()


def test_a_repeated_cancel_lets_the_payload_expire() -> None:
    """If a cancel fails before it sets the payload's expiry, a repeat of the cancel sets the expiry."""
    with Scenario() as scenario:
        task = scenario.ask("POST", "/v1/tasks", {"type": PLAIN, "payload": BIG, "delay_seconds": 600}).body["id"]
        met = scenario.once(
            lambda call: call.operation == "update_item" and schema.CONTENT_PREFIX in str(call.request["Key"]),
            throttled(scenario),
        )
        assert scenario.ask("POST", f"/v1/tasks/{task}/cancel").status == 503
        assert (len(met), scenario.record(task).state, list(contents(scenario).values())) == (1, "cancelled", [None])
        assert scenario.ask("POST", f"/v1/tasks/{task}/cancel").status == 200
        assert None not in contents(scenario).values()


def fail(_phase: str, _context: Context) -> None:
    """A handler that fails."""
    raise ValueError


def is_kept(call: Call) -> bool:
    """Whether a call removes the expiry of stored contents."""
    return call.operation == "update_item" and str(call.request["UpdateExpression"]).startswith("REMOVE")


def upload(scenario: Scenario) -> dict[str, object]:
    """Upload a payload, and return the body of a create request that refers to the upload."""
    body = {"id": "scan-17", "size": len(UPLOADED), "content_type": "image/png"}
    signed = scenario.ask("POST", "/v1/uploads", body).body
    assert scenario.s3.send_signed("PUT", signed["url"], signed["headers"], UPLOADED) == (200, b"")
    return {"type": PLAIN, "payload": {"$upload": "scan-17"}, "delay_seconds": 10}


def test_an_uploaded_payload_is_kept_as_long_as_its_task() -> None:
    """A lifecycle rule removes an uploaded payload only after the task has ended; the original upload is removed."""
    with Scenario() as scenario:
        task = scenario.ask("POST", "/v1/tasks", upload(scenario)).body["id"]
        ((_, key),) = scenario.s3.objects
        assert key.startswith(f"{task}/upload.")
        assert tags(scenario) == [""]
        scenario.run(MINUTE)
        assert scenario.record(task).state == "succeeded"
        assert tags(scenario) == ["=".join(schema.EXPIRING_TAG)]


@pytest.mark.parametrize("number", range(8))
def test_a_creation_with_an_upload_can_be_repeated_after_any_failure(number: int) -> None:
    """If any AWS call in a creation fails, a repeat with the same key creates one task with the uploaded payload."""
    with Scenario() as scenario:
        body, calls = upload(scenario), 0

        def refuse(_call: Call) -> None:
            nonlocal calls
            calls += 1
            if calls == number + 1:
                raise scenario.dynamodb.exceptions.make("ProvisionedThroughputExceededException", "a call")

        scenario.before_call = refuse
        headers = {"idempotency-key": "order-17"}
        scenario.ask("POST", "/v1/tasks", body, headers=headers)
        scenario.before_call = None
        assert calls > number
        answer = scenario.ask("POST", "/v1/tasks", body, headers=headers)
        assert answer.status == 201, answer.body
        assert answer.body["payload"]["$binary"]["size"] == len(UPLOADED)
        scenario.run(MINUTE)
        assert [each["state"] for each in scenario.ask("GET", "/v1/tasks").body["tasks"]] == ["succeeded"]


def test_concurrent_copies_of_a_creation_with_an_upload_create_one_task() -> None:
    """If one copy of a request finds its upload already used by another copy, both copies return the same task."""
    with Scenario() as scenario:
        body, headers = upload(scenario), {"idempotency-key": "order-17"}
        # The first copy looks for the upload after the second copy has used it.
        scenario.slow(lambda call: call.operation == "head_object", 5 * SECOND)
        first = scenario.send("POST", "/v1/tasks", body, headers=headers)
        scenario.run(SECOND)
        second = scenario.ask("POST", "/v1/tasks", body, headers=headers)
        assert (second.status, first) == (201, [])
        scenario.run(5 * SECOND)
        assert (first[0].status, first[0].body["id"]) == (201, second.body["id"])


@pytest.mark.parametrize("keys", [("order-17", "order-17"), ("order-17", "order-18")])
def test_two_creations_with_one_upload_each_get_an_object(keys: tuple[str, str]) -> None:
    """Two copies of one request create one task with one object; two requests create two tasks, each with an object."""
    with Scenario() as scenario:
        body = upload(scenario)
        # The first request has copied the upload, and writes its record after the second request has removed the
        # upload.
        scenario.slow(lambda call: call.operation == "put_item" and schema.STATE in call.request["Item"], 5 * SECOND)
        first = scenario.send("POST", "/v1/tasks", body, headers={"idempotency-key": keys[0]})
        scenario.run(SECOND)
        second = scenario.ask("POST", "/v1/tasks", body, headers={"idempotency-key": keys[1]})
        assert (second.status, first) == (201, [])
        scenario.run(5 * SECOND)
        assert first[0].status == 201
        tasks = {first[0].body["id"], second.body["id"]}
        assert len(tasks) == len(set(keys))
        assert {key.partition("/")[0] for _, key in scenario.s3.objects} == tasks
        assert set(scenario.s3.objects.values()) == {UPLOADED}
        assert tags(scenario) == [""] * len(tasks)
        scenario.run(MINUTE)
        assert {scenario.record(each).state for each in tasks} == {"succeeded"}
        assert tags(scenario) == ["=".join(schema.EXPIRING_TAG)] * len(tasks)
