"""After a deletion, a name can be reused, and no late write from before the deletion affects the new item."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from duetime.adapters.dynamodb import schema
from duetime.domain.operating_parameters import DELETION_MARKER_LIFE, LATEST_ARRIVAL
from duetime.domain.times import HOUR
from tests.scenarios.scenario import MINUTE, PLAIN, SECOND, UNDONE, Scenario

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from duetime_testing.simulation.faults import Call
    from tests.simulation.users import Reply

NIGHTLY = "/v1/schedules/nightly"
OLD = {"name": "nightly", "cron": "* * * * *", "overlap": "allow_all", "task": {"type": PLAIN}}
NEW = {"name": "nightly", "cron": "30 1 * * *", "task": {"type": UNDONE}}


def sort_key(call: Call) -> str:
    """The sort key of the item that a call writes; empty for other calls."""
    item = call.request.get("Item") or call.request.get("Key") or {}
    return str(item[schema.SORT_KEY]["S"]) if isinstance(item, dict) and schema.SORT_KEY in item else ""


def writes(function: str, key: str, *operations: str) -> Callable[[Call], bool]:
    """Whether a call by this function writes the item with this sort key."""
    wanted = operations or ("put_item", "update_item", "delete_item")
    return lambda call: call.machine.function == function and call.operation in wanted and sort_key(call) == key


def land_late(scenario: Scenario, matches: Callable[[Call], bool], after: int = LATEST_ARRIVAL) -> list[Call]:
    """Have the first matching call arrive long after its sender gave up."""

    def make(call: Call) -> None:
        scenario.take(after)
        with suppress(ClientError):
            getattr(getattr(scenario, call.service), call.operation)(**call.request)

    def lose(call: Call) -> None:
        scenario.time.start_process(partial(make, call))
        scenario.take(5 * SECOND)
        raise ReadTimeoutError(endpoint_url=call.service)

    return scenario.once(matches, lose)


def replaced(scenario: Scenario) -> dict[str, Any]:
    """Delete the schedule and create another with the same name; return the response."""
    assert scenario.ask("DELETE", NIGHTLY).status == 200
    created = scenario.ask("POST", "/v1/schedules", NEW)
    assert created.status == 201, created.body
    return dict(created.body)


def expect_new(scenario: Scenario, created: dict[str, Any]) -> None:
    """Check that the new schedule still exists exactly as it was accepted."""
    found = scenario.ask("GET", NIGHTLY)
    assert found.status == 200, found.body
    for field in ("cron", "task", "created_at", "state", "skipped_runs", "backfills", "version"):
        assert found.body[field] == created[field]


@pytest.mark.parametrize("is_lost", [False, True], ids=["slow", "lands late"])
def test_a_late_save_by_the_trigger_does_not_change_a_recreated_schedule(is_lost: bool) -> None:  # noqa: FBT001 - a test parameter
    """If the trigger's save arrives after the schedule's name was reused, the new schedule does not change."""
    with Scenario() as scenario:
        assert scenario.ask("POST", "/v1/schedules", OLD).status == 201
        save = writes("trigger", "#nightly", "put_item")
        met = land_late(scenario, save) if is_lost else scenario.slow(save, 3 * SECOND)
        assert scenario.run_until(lambda: met)
        created = replaced(scenario)
        scenario.run(2 * LATEST_ARRIVAL)
        expect_new(scenario, created)


PERIOD = {"scheduled_after": "2026-11-20T00:00:00Z", "scheduled_before": "2026-11-20T00:05:00Z"}
Request = tuple[str, str, "dict[str, Any] | None"]


@pytest.mark.parametrize(
    "request_to_old",
    [
        ("PATCH", NIGHTLY, {"cron": "*/2 * * * *"}),
        ("POST", f"{NIGHTLY}/pause", {"reason": "for now"}),
        ("POST", f"{NIGHTLY}/run", None),
        ("POST", f"{NIGHTLY}/backfills", PERIOD),
        ("DELETE", NIGHTLY, None),
    ],
    ids=["update", "pause", "run", "backfill", "delete"],
)
@pytest.mark.parametrize("is_lost", [False, True], ids=["slow", "lands late"])
def test_a_late_request_to_a_deleted_schedule_does_not_change_the_new(
    request_to_old: Request,
    is_lost: bool,  # noqa: FBT001 - as above
) -> None:
    """A request that read the old schedule does not write to a new schedule with the same name."""
    with Scenario() as scenario:
        assert scenario.ask("POST", "/v1/schedules", OLD).status == 201
        write = writes("api", "#nightly", "put_item", "delete_item")
        met = land_late(scenario, write) if is_lost else scenario.slow(write, 3 * SECOND)
        scenario.send(*request_to_old)
        assert scenario.run_until(lambda: met)
        created = replaced(scenario)
        scenario.run(2 * LATEST_ARRIVAL)
        expect_new(scenario, created)


def test_a_workers_late_note_is_not_added_to_a_recreated_schedule() -> None:
    """A note about an occurrence of a deleted schedule is not added to a new schedule with the same name."""
    with Scenario() as scenario:
        assert scenario.ask("POST", "/v1/schedules", OLD).status == 201
        assert scenario.ask("POST", f"{NIGHTLY}/pause").status == 200
        reads: list[Call] = []

        def is_second_read(call: Call) -> bool:
            """Whether this is the worker's second read; the first read checks whether the occurrence can begin."""
            if call.machine.function == "worker" and call.operation == "query":
                reads.append(call)
            return len(reads) == 2

        met = scenario.slow(is_second_read, 3 * SECOND)
        assert scenario.run_until(lambda: met)
        created = replaced(scenario)
        scenario.run(2 * LATEST_ARRIVAL)
        expect_new(scenario, created)


def test_a_late_creation_of_a_deleted_schedule_creates_nothing() -> None:
    """A late first try creates no schedule if the second try's schedule has since been deleted."""
    with Scenario() as scenario:
        met = land_late(scenario, writes("api", "#nightly", "put_item"), 36 * SECOND)
        scenario.send("POST", "/v1/schedules", OLD)
        assert scenario.run_until(lambda: met)
        assert scenario.ask("POST", "/v1/schedules", OLD).status == 201
        assert scenario.ask("DELETE", NIGHTLY).status == 200
        scenario.run(2 * LATEST_ARRIVAL)
        assert scenario.ask("GET", NIGHTLY).status == 404
        tasks = len(list(scenario.watching.tasks()))
        scenario.run(5 * MINUTE)
        assert len(list(scenario.watching.tasks())) == tasks


@pytest.mark.parametrize("what", ["create", "change"])
@pytest.mark.parametrize("is_made_again", [False, True], ids=["gone", "another"])
def test_a_schedule_deleted_just_after_a_write_returns_no_404(what: str, is_made_again: bool) -> None:  # noqa: FBT001 - as above
    """A creation or change succeeds even if its schedule is deleted while occurrences are created.

    The response shows the written schedule even if another schedule has the same name by then.
    """
    with Scenario() as scenario:
        if what == "change":
            assert scenario.ask("POST", "/v1/schedules", OLD).status == 201

        def delete(_call: Call) -> None:
            assert scenario.users.ask("DELETE", NIGHTLY).status == 200  # type: ignore[union-attr]  # the deletion gets a response
            if is_made_again:
                assert scenario.users.ask("POST", "/v1/schedules", NEW).status == 201  # type: ignore[union-attr]  # same

        saved: list[Call] = []
        scenario.after_call = lambda call: saved.append(call) if writes("api", "#nightly")(call) else None
        met = scenario.once(lambda call: bool(saved) and call.operation == "query", delete)
        requests = {
            "create": ("POST", "/v1/schedules", OLD),
            "change": ("PATCH", NIGHTLY, {"cron": "*/2 * * * *"}),
        }
        reply = scenario.ask(*requests[what])
        assert met
        assert reply.status == {"create": 201, "change": 200}[what]
        assert reply.body["cron"] == {"create": "* * * * *", "change": "*/2 * * * *"}[what]
        assert scenario.ask("GET", NIGHTLY).status == (200 if is_made_again else 404)


def test_a_schedule_name_can_be_reused_after_each_deletion() -> None:
    """A name can be reused right after a deletion, and again after the hidden deletion marker has expired."""
    with Scenario() as scenario:
        for _ in range(3):
            assert scenario.ask("POST", "/v1/schedules", OLD).status == 201
            assert scenario.ask("POST", "/v1/schedules", OLD).status == 409
            assert scenario.ask("DELETE", NIGHTLY).status == 200
            assert scenario.ask("DELETE", NIGHTLY).status == 404
            assert scenario.ask("GET", "/v1/schedules").body["schedules"] == []
        markers = scenario.items(schema.SCHEDULE_PREFIX)
        assert len(markers) == 2
        assert all(schema.TTL in item for item in markers)
        scenario.ticking = False
        scenario.run(DELETION_MARKER_LIFE + HOUR)
        scenario.expire()
        assert scenario.items(schema.SCHEDULE_PREFIX) == []
        assert scenario.ask("POST", "/v1/schedules", NEW).status == 201


def test_an_etag_of_a_deleted_schedule_does_not_match_the_new_schedule() -> None:
    """A change with a deleted schedule's ETag is refused, even if the new schedule has been changed equally often."""
    with Scenario() as scenario:
        assert scenario.ask("POST", "/v1/schedules", OLD).status == 201
        version = scenario.ask("PATCH", NIGHTLY, {"cron": "*/2 * * * *"}).body["version"]
        replaced(scenario)
        assert scenario.ask("PATCH", NIGHTLY, {"cron": "31 1 * * *"}).status == 200
        late = scenario.ask("PATCH", NIGHTLY, {"cron": "0 0 1 1 *"}, headers={"If-Match": f'"{version}"'})
        assert late.status == 412
        assert scenario.ask("GET", NIGHTLY).body["cron"] == "31 1 * * *"


@pytest.mark.slow
@pytest.mark.parametrize("is_lost", [False, True], ids=["slow", "lands late"])
def test_a_slow_deletion_does_not_affect_runs_of_the_new_schedule(is_lost: bool) -> None:  # noqa: FBT001 - as above
    """If a slow deletion continues after the name is reused, the new schedule's runs still do not overlap."""
    with Scenario() as scenario:
        running: set[str] = set()
        most: list[int] = []

        def target(_phase: str, context: Any) -> str:  # noqa: ANN401 - a `Context`
            running.add(context.task_id)
            most.append(len(running - of_old))
            scenario.take(150 * SECOND)
            running.discard(context.task_id)
            return "done"

        of_old: set[str] = set()
        scenario.target = target
        body = OLD | {"overlap": "skip", "task": {"type": PLAIN, "timeout_seconds": 300}}
        assert scenario.ask("POST", "/v1/schedules", body).status == 201
        half = writes("api", "a", "delete_item", "update_item")
        met = land_late(scenario, half, 20 * SECOND) if is_lost else scenario.slow(half, 20 * SECOND)
        scenario.run((scenario.now // MINUTE + 3) * MINUTE - 12 * SECOND - scenario.now)
        scenario.send("DELETE", NIGHTLY)
        assert scenario.run_until(lambda: met)
        scenario.run(2 * SECOND)
        of_old.update(task.id.text for task in scenario.watching.tasks())
        most.clear()
        assert scenario.ask("POST", "/v1/schedules", body).status == 201
        scenario.run(6 * MINUTE)
        assert max(most) == 1


CALENDAR = "/v1/calendars/off"


@pytest.mark.parametrize("is_lost", [False, True], ids=["slow", "lands late"])
@pytest.mark.parametrize("late", ["PUT", "DELETE"])
def test_a_late_calendar_request_does_not_affect_a_newer_calendar(late: str, is_lost: bool) -> None:  # noqa: FBT001 - as above
    """Neither a late replacement nor a late deletion affects a calendar created in between."""
    with Scenario() as scenario:
        assert scenario.ask("PUT", CALENDAR, {"dates": ["2027-01-01"]}).status == 201
        write = writes("api", "off", "put_item", "delete_item")
        met = land_late(scenario, write) if is_lost else scenario.slow(write, 3 * SECOND)
        replies: list[Reply] = scenario.send(late, CALENDAR, {"dates": ["2027-02-02"]} if late == "PUT" else None)
        assert scenario.run_until(lambda: met)
        assert scenario.ask("DELETE", CALENDAR).status == 200
        assert scenario.ask("PUT", CALENDAR, {"dates": ["2027-03-03"]}).status == 201
        scenario.run(2 * LATEST_ARRIVAL)
        found = scenario.ask("GET", CALENDAR)
        if late == "PUT" and not is_lost:
            # The delayed request is still in progress, so it writes the calendar after all other writes.
            assert replies[0].status == 200
            assert list(found.body["dates"]) == ["2027-02-02"]
        else:
            assert found.status == 200
            assert list(found.body["dates"]) == ["2027-03-03"]


def test_a_late_calendar_request_does_not_recreate_a_deleted_calendar() -> None:
    """A late first try creates no calendar if the second try's calendar has since been deleted."""
    with Scenario() as scenario:
        met = land_late(scenario, writes("api", "off", "put_item"))
        scenario.send("PUT", CALENDAR, {"dates": ["2027-01-01"]})
        assert scenario.run_until(lambda: met)
        assert scenario.ask("PUT", CALENDAR, {"dates": ["2027-01-01"]}).status == 201
        assert scenario.ask("DELETE", CALENDAR).status == 200
        scenario.run(2 * LATEST_ARRIVAL)
        assert scenario.ask("GET", CALENDAR).status == 404
        assert scenario.ask("GET", "/v1/calendars").body["calendars"] == []


def test_a_late_write_does_not_restore_a_deleted_switch() -> None:
    """A late write does not restore a deleted switch, because the version of the operators' item only grows."""
    with Scenario() as scenario:
        path, switch = "/v1/switches/owner/local", {"stopped": True}
        met = land_late(scenario, writes("api", "operators", "put_item"))
        scenario.send("PUT", path, switch)
        assert scenario.run_until(lambda: met)
        assert scenario.ask("PUT", path, switch).status == 200
        assert scenario.ask("DELETE", path).status == 200
        scenario.run(2 * LATEST_ARRIVAL)
        assert scenario.ask("GET", "/v1/switches").body["switches"] == []


def test_a_late_take_of_a_lock_fails_after_a_forced_release() -> None:
    """A late write that takes a lock fails after a forced release, because the version of the lock's item grows."""
    with Scenario() as scenario:
        scenario.faulty = True  # the first attempt ends and is retried
        met = land_late(scenario, writes("worker", "#db-17", "put_item"))
        first = scenario.ask("POST", "/v1/tasks", {"type": PLAIN, "lock": {"key": "db-17"}})
        assert scenario.run_until(lambda: met)
        assert scenario.run_until(lambda: scenario.record(first.body["id"]).finished_at is not None)
        assert scenario.ask("DELETE", "/v1/locks/db-17").status == 200
        scenario.run(2 * LATEST_ARRIVAL)
        assert scenario.ask("GET", "/v1/locks/db-17").body["holders"] == []


def test_a_late_save_of_an_idempotency_key_is_ignored() -> None:
    """If a first try arrives after the second try has created the task, a third try still returns that task."""
    with Scenario() as scenario:
        body, headers = {"type": PLAIN, "delay_seconds": 600}, {"Idempotency-Key": "once"}
        met = land_late(
            scenario,
            lambda call: call.operation == "put_item" and str(call.request["Item"]["p"]["S"]).startswith("k#"),
        )
        scenario.send("POST", "/v1/tasks", body, headers=headers)
        assert scenario.run_until(lambda: met)
        second = scenario.ask("POST", "/v1/tasks", body, headers=headers)
        assert second.status == 201
        assert scenario.ask("POST", f"/v1/tasks/{second.body['id']}/cancel").status == 200
        scenario.run(2 * LATEST_ARRIVAL)
        third = scenario.ask("POST", "/v1/tasks", body, headers=headers)
        assert third.body["id"] == second.body["id"]
        assert third.body["state"] == "cancelled"
        assert len(list(scenario.watching.tasks())) == 1
