"""If the API dies at any call in a request about a schedule, repeating the request with its key has one effect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.times import DAY, MINUTE, SECOND, to_iso
from tests.parts import others_slow
from tests.scenarios.scenario import PLAIN
from tests.scenarios.schedules import NAME, PATH, Schedules, is_of_a_schedule

if TYPE_CHECKING:
    from duetime_testing.simulation.faults import Call

KEY = {"Idempotency-Key": "once"}
MINUTELY: dict[str, Any] = {"cron": "* * * * *", "task": {"type": PLAIN}}
LATER = 40 * SECOND
"""The time after which a client repeats its request."""


def dies_at(schedules: Schedules, number: int) -> list[Call]:
    """Have the API die at its nth call from now, and add its calls to the returned list."""
    calls: list[Call] = []

    def strike(call: Call) -> None:
        if call.machine.function == "api":
            calls.append(call)
            if len(calls) == number:
                call.machine.die()

    schedules.before_call = strike
    return calls


def repeated(schedules: Schedules, number: int, path: str, body: object = None) -> tuple[bool, Any]:
    """Send a request whose first try dies at the API's nth call; return whether it died, and the last response."""
    calls = dies_at(schedules, number)
    schedules.send("POST", path, body, headers=KEY)
    schedules.run(LATER)
    dies, schedules.before_call = len(calls) >= number, None
    answer = schedules.ask("POST", path, body, headers=KEY)
    assert answer.status == 201, answer.body
    return dies, answer.body


@pytest.mark.parametrize("name", others_slow([NAME, None]), ids=["named", "unnamed"])
def test_a_repeated_creation_creates_one_schedule(name: str | None) -> None:
    """If the API dies at any call in a creation that is repeated, there is one schedule, and each time runs once."""
    body = {**MINUTELY, **({"name": name} if name else {})}
    number, dies = 0, True
    while dies:
        number += 1
        with Schedules() as schedules:
            dies, known = repeated(schedules, number, "/v1/schedules", body)
            assert schedules.ask("POST", "/v1/schedules", body, headers=KEY).body["name"] == known["name"], number
            schedules.run(4 * MINUTE)
            listed = schedules.ask("GET", "/v1/schedules").body["schedules"]
            assert [each["name"] for each in listed] == [known["name"]], number
            assert set(schedules.ran().values()) == {1}, number
            assert len(schedules.ran()) >= 2, number
    assert number > 4


def test_a_repeated_request_for_a_run_creates_one_task() -> None:
    """If the API dies at any call in a request for a run that is repeated, there is one task, which runs once."""
    number, dies = 0, True
    while dies:
        number += 1
        with Schedules() as schedules:
            schedules.make(cron="0 0 1 * *")
            dies, task = repeated(schedules, number, f"{PATH}/run")
            schedules.run(5 * MINUTE)
            assert [each.id.text for each in schedules.placed()] == [task["id"]], number
            assert [effect.task_id for effect in schedules.effects] == [task["id"]], number
    assert number > 4


def test_a_repeated_backfill_runs_each_occurrence_once() -> None:
    """If the API dies at any call in a request for a backfill that is repeated, each occurrence runs once."""
    number, dies = 0, True
    while dies:
        number += 1
        with Schedules() as schedules:
            schedules.make(cron="0 0 1 1 *")
            schedules.amend(cron="0 12 * * *")
            noon = schedules.now // DAY * DAY - 4 * DAY
            body = {"scheduled_after": to_iso(noon), "scheduled_before": to_iso(noon + 3 * DAY), "per_minute": 60}
            dies, run = repeated(schedules, number, f"{PATH}/backfills", body)
            schedules.run(5 * MINUTE)
            (only,) = schedules.ask("GET", f"{PATH}/backfills").body["backfills"]
            assert (only["id"], only["runs_started"]) == (run["id"], 3), number
            assert sorted(schedules.ran().values()) == [1, 1, 1], number
    assert number > 4


def test_concurrent_requests_with_one_key_get_the_same_response() -> None:
    """Concurrent requests with the same key get the same response."""
    with Schedules() as schedules:
        replies = [schedules.send("POST", "/v1/schedules", {**MINUTELY, "name": NAME}, headers=KEY) for _ in range(2)]
        assert schedules.run_until(lambda: all(replies))
        assert [each[0].status for each in replies] == [201, 201]
        assert len({each[0].body["created_at"] for each in replies}) == 1
        key = {"Idempotency-Key": "other"}
        replies = [schedules.send("POST", f"{PATH}/run", None, headers=key) for _ in range(2)]
        assert schedules.run_until(lambda: all(replies))
        assert len({each[0].body["id"] for each in replies}) == 1
        schedules.run(SECOND)
        by_hand = [each for each in schedules.placed() if each.id.text == replies[0][0].body["id"]]
        assert len(by_hand) == 1
        assert schedules.schedule()["runs_started"] == len(schedules.ran())


def slow_on_its_schedule(schedules: Schedules, operation: str, duration: int) -> list[Call]:
    """Delay the API's first matching call about a schedule, and add the call to the returned list."""
    return schedules.slow(
        lambda call: call.machine.function == "api" and call.operation == operation and is_of_a_schedule(call), duration
    )


def test_a_repeat_that_overtakes_the_first_request_is_not_a_conflict() -> None:
    """The first request succeeds even if its own repeat has already used the name."""
    with Schedules() as schedules:
        slow = slow_on_its_schedule(schedules, "get_item", 3 * SECOND)
        body = {**MINUTELY, "name": NAME}
        replies = [schedules.send("POST", "/v1/schedules", body, headers=KEY)]
        assert schedules.run_until(lambda: slow)
        replies.append(schedules.send("POST", "/v1/schedules", body, headers=KEY))
        assert schedules.run_until(lambda: all(replies))
        assert [each[0].status for each in replies] == [201, 201]
        assert len({each[0].body["created_at"] for each in replies}) == 1


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_a_late_repeat_does_not_restart_a_backfill(is_cancelled: bool) -> None:  # noqa: FBT001 - a test parameter
    """The slower of two identical requests does not restart the backfill, even if it was cancelled meanwhile."""
    with Schedules() as schedules:
        schedules.make(cron="0 0 1 1 *")
        schedules.amend(cron="0 12 * * *")
        noon = schedules.now // DAY * DAY - 20 * DAY
        body = {"scheduled_after": to_iso(noon), "scheduled_before": to_iso(noon + 12 * DAY), "per_minute": 1}
        slow = slow_on_its_schedule(schedules, "put_item", 20 * SECOND)
        replies = [schedules.send("POST", f"{PATH}/backfills", body, headers=KEY)]
        assert schedules.run_until(lambda: slow)
        replies.append(schedules.send("POST", f"{PATH}/backfills", body, headers=KEY))
        assert schedules.run_until(lambda: replies[1])
        run = replies[1][0].body["id"]
        if is_cancelled:
            assert schedules.ask("DELETE", f"{PATH}/backfills/{run}").status == 200
        assert schedules.run_until(lambda: replies[0])
        assert replies[0][0].body["id"] == run
        schedules.run(20 * MINUTE)
        assert (len(schedules.ran()) < 12) is is_cancelled
        shown = schedules.schedule()
        assert shown["runs_started"] + shown["backfills"][-1]["runs_started"] == len(schedules.ran())


def test_only_one_of_a_request_and_its_concurrent_repeat_counts() -> None:
    """If a repeat runs concurrently with its first request, only one run starts and counts, and both succeed."""
    with Schedules() as schedules:
        schedules.make(cron="0 0 1 1 *")
        met = schedules.slow(
            lambda call: (
                call.machine.function == "api"
                and call.operation == "put_item"
                and not is_of_a_schedule(call)
                and not (call.partition or "").startswith("k#")
            ),
            5 * SECOND,
        )
        replies = [schedules.send("POST", f"{PATH}/run", None, headers=KEY)]
        assert schedules.run_until(lambda: met)
        replies.append(schedules.send("POST", f"{PATH}/run", None, headers=KEY))
        assert schedules.run_until(lambda: all(replies))
        assert [each[0].status for each in replies] == [201, 201]
        assert replies[0][0].body["state"] == "succeeded"
        assert (len(schedules.effects), schedules.schedule()["runs_started"]) == (1, 1)


@pytest.mark.parametrize("what", ["run", "backfills"])
def test_a_repeated_request_does_not_affect_a_new_schedule_of_that_name(what: str) -> None:
    """A repeated request to a deleted schedule does not affect a new schedule with the same name."""
    with Schedules() as schedules:
        schedules.make(cron="0 12 * * *", start_at="2020-01-01T00:00:00Z")
        noon = schedules.now // DAY * DAY - 4 * DAY
        period = {"scheduled_after": to_iso(noon), "scheduled_before": to_iso(noon + 3 * DAY), "per_minute": 60}
        body = period if what == "backfills" else None
        calls = dies_at(schedules, 4)
        schedules.send("POST", f"{PATH}/{what}", body, headers=KEY)
        schedules.run(LATER)
        schedules.before_call = None
        assert len(calls) == 4
        assert schedules.ask("DELETE", PATH).status == 200
        schedules.make(cron="0 12 * * *", start_at="2020-01-01T00:00:00Z")
        assert schedules.ask("POST", f"{PATH}/{what}", body, headers=KEY).status == 404
        schedules.run(5 * MINUTE)
        assert not schedules.effects
        assert schedules.ask("POST", f"{PATH}/{what}", body, headers={"Idempotency-Key": "new"}).status == 201


@pytest.mark.parametrize("key", [{}, KEY], ids=["without", "with-a-key"])
def test_a_manual_run_counts_once_wherever_its_request_dies(key: dict[str, str]) -> None:
    """If the API dies at any call in a requested run, a run that started counts once and has one note."""
    number, dies = 0, True
    while dies:
        number += 1
        with Schedules() as schedules:
            schedules.make(cron="0 0 1 * *")
            calls = dies_at(schedules, number)
            schedules.send("POST", f"{PATH}/run", headers=key)
            schedules.run(LATER)
            dies, schedules.before_call = len(calls) >= number, None
            if key:
                assert schedules.ask("POST", f"{PATH}/run", headers=key).status == 201
            schedules.run(10 * MINUTE)
            shown = schedules.schedule()
            remarks = [each["reason"] for each in shown["skipped_runs"] if "run by hand" in each["reason"]]
            assert (shown["runs_started"], len(remarks)) == (len(schedules.ran()), len(schedules.ran())), number
            assert len(schedules.ran()) <= 1
    assert number > 4


def test_a_manual_run_is_counted_despite_a_concurrent_change() -> None:
    """If the schedule changes while a requested run is being counted, the run is still counted once."""
    with Schedules() as schedules:
        schedules.make()
        schedules.run(SECOND)
        before = schedules.schedule()["runs_started"]

        def is_save(call: Call) -> bool:
            return call.machine.function == "api" and call.operation == "put_item" and is_of_a_schedule(call)

        slow = schedules.slow(is_save, 2 * SECOND)
        replies = schedules.send("POST", f"{PATH}/run")
        assert schedules.run_until(lambda: slow)
        assert schedules.amend(catch_up_seconds=70).status == 200
        assert schedules.run_until(lambda: replies)
        assert replies[0].status == 201
        schedules.run(2 * SECOND)
        assert schedules.schedule()["runs_started"] == before + 1


def test_a_repeated_request_for_a_run_succeeds_after_a_change() -> None:
    """If the first request died before creating its task, the repeat creates the task, even with an old version."""
    with Schedules() as schedules:
        schedules.make(cron="0 0 1 * *")
        headers = {**KEY, "If-Match": f'"{schedules.schedule()["version"]}"'}

        def is_task(call: Call) -> bool:
            return call.machine.function == "api" and call.operation == "put_item" and "H" in call.request["Item"]

        died = schedules.once(is_task, lambda call: call.machine.die())
        schedules.send("POST", f"{PATH}/run", headers=headers)
        schedules.run(SECOND)
        assert died
        assert schedules.amend(catch_up_seconds=70).status == 200
        assert schedules.ask("POST", f"{PATH}/run", headers={**headers, "Idempotency-Key": "other"}).status == 412
        made = schedules.ask("POST", f"{PATH}/run", headers=headers)
        assert made.status == 201, made.body
        assert schedules.ask("POST", f"{PATH}/run", headers=headers).body["id"] == made.body["id"]
        schedules.run(MINUTE)
        assert sum(schedules.ran().values()) == 1
