"""A task with `after` starts once other tasks allow it, ends without running if they never can, and is never lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.task_items import ATTRIBUTES
from duetime.domain.operating_parameters import DEPENDENT_LIFE
from duetime.domain.tasks.states import State
from duetime.domain.times import DAY, to_iso
from duetime.services import dependencies
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND
from tests.scenarios.schedules import NAME, PATH, Schedules
from tests.scenarios.tasks import ONCE, RECOVERY, Tasks

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime_testing.simulation.faults import Call

FLAG = ATTRIBUTES["has_dependents"].name


def refused(tasks: Tasks, **fields: Any) -> tuple[str, str]:  # noqa: ANN401 - JSON
    """The field and the reason in the response to a refused creation."""
    reply = tasks.ask("POST", "/v1/tasks", {"type": PLAIN, **fields})
    assert reply.status == 422, reply.body
    fault = reply.body["errors"][0]
    return fault["field"], fault["reason"]


def test_a_task_starts_within_a_second_of_its_last_dependencys_end() -> None:
    """A task with dependencies is blocked past its due time; its lateness counts from the last dependency's end."""
    with Tasks() as tasks:
        tasks.last(30)
        first, second = tasks.create(), tasks.create(10 * SECOND)
        third = tasks.create(after=[first, second])
        shown = tasks.ask("GET", f"/v1/tasks/{third}").body
        assert (shown["state"], shown["after"], shown["trigger_rule"]) == ("blocked", [first, second], "all_success")
        tasks.run(35 * SECOND)
        assert [tasks.state(each) for each in (first, second, third)] == ["succeeded", "running", "blocked"]
        tasks.run(MINUTE)
        ended = tasks.done(second).outcome_at
        (started,) = tasks.effect_times(third)
        assert 0 <= started - ended < SECOND
        assert (tasks.done(third).lateness or 0) < SECOND


def test_a_dependent_does_not_start_before_its_due_time() -> None:
    """A task whose dependency ends before the task's due time still waits for its due time."""
    with Tasks() as tasks:
        first = tasks.create()
        second = tasks.create(10 * MINUTE, after=[first])
        due = tasks.record(second).due_at
        tasks.run(5 * SECOND)
        assert tasks.state(second) is State.SCHEDULED
        tasks.run(HOUR)
        assert 0 <= tasks.effect_times(second)[0] - due < SECOND


def test_a_dependency_that_ended_before_the_creation_counts() -> None:
    """A new task starts at once if its dependency has already succeeded, and ends at once if the dependency failed."""
    with Tasks() as tasks:
        done = tasks.create()
        tasks.run(5 * SECOND)
        tasks.fail()
        failed = tasks.create(retry=ONCE)
        tasks.run(5 * SECOND)
        tasks.target = lambda _phase, _context: "done"
        runs, never = tasks.create(after=[done]), tasks.create(after=[failed])
        tasks.run(5 * SECOND)
        assert (tasks.state(runs), tasks.state(never)) == (State.SUCCEEDED, State.CANCELLED)
        error = tasks.ask("GET", f"/v1/tasks/{never}").body["error"]
        assert error == {"type": "upstream_failed", "message": f"all_success: the task {failed} is failed"}


def test_a_failure_ends_dependents_unless_they_run_after_failures() -> None:
    """A failure ends all direct and indirect dependents, but tasks with `all_done` or `one_failed` run."""
    with Tasks() as tasks:
        tasks.fail(attempts=1)
        first = tasks.create(20 * SECOND, retry=ONCE)
        second = tasks.create(after=[first])
        third = tasks.create(after=[second])
        done = tasks.create(after=[third], trigger_rule="all_done", retry={"initial_seconds": 0})
        handler = tasks.create(after=[first], trigger_rule="one_failed", retry={"initial_seconds": 0})
        skipped = tasks.create(after=[done], trigger_rule="one_failed")
        after_skipped = tasks.create(after=[skipped])
        tasks.run(2 * MINUTE)
        states = {each: tasks.state(each).value for each in (first, second, third, done, handler, skipped)}
        assert list(states.values()) == ["failed", "cancelled", "cancelled", "succeeded", "succeeded", "cancelled"]
        errors = [tasks.record(each).error for each in (second, third, skipped, after_skipped)]
        assert [each and each.type for each in errors] == ["upstream_failed", "upstream_failed", "skipped", "skipped"]


@pytest.mark.parametrize("length", [10, pytest.param(1_000, marks=pytest.mark.slow)])
def test_the_tasks_of_a_chain_run_in_order(length: int) -> None:
    """Each task in a chain starts soon after the previous task ends."""
    with Tasks() as tasks:
        chain = [tasks.create(MINUTE)]
        for _ in range(length - 1):
            chain.append(tasks.create(after=[chain[-1]]))
        began = tasks.now
        tasks.run_until(lambda: tasks.state(chain[-1]).value == "succeeded", step=SECOND)
        assert [each.task_id for each in tasks.effects] == chain
        assert tasks.now - began < MINUTE + len(chain) * SECOND


@pytest.mark.slow
def test_a_task_has_fifty_dependencies_and_two_hundred_dependents() -> None:
    """A task with fifty dependencies runs after the last of them ends, and then its two hundred dependents run."""
    with Tasks() as tasks:
        tasks.last(20)
        many = [tasks.create() for _ in range(50)]
        last = tasks.create(after=many)
        field, reason = refused(tasks, after=[*many, last])
        assert field == "after"
        assert "50" in reason
        fan = [tasks.create(after=[last]) for _ in range(200)]
        tasks.run(10 * MINUTE)
        assert {tasks.state(each) for each in (*many, last, *fan)} == {State.SUCCEEDED}
        assert len(tasks.effects) == 251


def test_an_error_for_an_invalid_dependency_names_the_field() -> None:
    """Unknown, foreign, deleted and repeated dependencies are refused, and so is `debounce` with `after`."""
    with Tasks() as tasks:
        mine = tasks.create()
        tasks.run(5 * SECOND)
        foreign = tasks.ask("POST", "/v1/tasks", {"type": PLAIN}, headers={"X-Duetime-Owner": "bob"})
        unknown = mine[:-4] + "0000"
        assert refused(tasks, after=[mine, unknown]) == ("after[1]", "is not the id of an existing task")
        assert tasks.ask("DELETE", f"/v1/tasks/{mine}").status == 204
        assert refused(tasks, after=[mine])[0] == "after[0]"
        assert refused(tasks, after=[mine, mine])[0] == "after"
        assert refused(tasks, after=["x"])[0].startswith("after[0]")
        assert refused(tasks, after=[mine], debounce={"key": "k", "seconds": 5})[0] == "after"
        assert refused(tasks, after=[foreign.body["id"]])[0] == "after[0]"


def test_a_task_of_an_ordered_key_cannot_wait_for_an_occurrence() -> None:
    """An ordered task cannot depend on an occurrence: if the occurrence were later in line, both would wait forever."""
    with Tasks() as tasks:
        occurrence = {"schedule": "nightly", "occurrence": "2026-12-01T02:00:00Z"}
        field, reason = refused(tasks, after=[occurrence], order={"key": "k"})
        assert (field, "together with order" in reason) == ("after", True)


@pytest.mark.parametrize("then", ["retry", "nothing"])
def test_an_ended_dependent_stays_ended_when_its_dependency_is_retried(then: str) -> None:
    """A dependent that has ended stays ended when its dependency is retried, until a user retries the dependent."""
    with Tasks() as tasks:
        tasks.fail(attempts=99)
        first = tasks.create(retry=ONCE)
        second = tasks.create(after=[first])
        tasks.run(10 * SECOND)
        assert (tasks.state(first), tasks.state(second)) == (State.FAILED, State.CANCELLED)
        tasks.last(30)
        assert tasks.do(first, "retry").status == 200
        if then == "retry":
            again = tasks.do(second, "retry")
            assert (again.status, again.body["state"], again.body["error"]) == (200, "blocked", None)
            assert tasks.do(second, "retry").status == 200
        tasks.run(2 * MINUTE)
        assert tasks.state(first) is State.SUCCEEDED
        assert tasks.state(second) is (State.SUCCEEDED if then == "retry" else State.CANCELLED)


def test_a_blocked_task_can_be_changed_paused_resumed_and_cancelled() -> None:
    """A paused dependent stays paused when its dependency ends; a blocked task cannot be run early."""
    with Tasks() as tasks:
        tasks.last(30)
        first = tasks.create()
        second, third = tasks.create(after=[first]), tasks.create(after=[first])
        tasks.run(2 * SECOND)
        assert tasks.change(second, priority="high", due_at=to_iso(tasks.now + SECOND)).status == 200
        assert tasks.state(second) is State.BLOCKED
        assert tasks.do(second, "run").status == 409
        assert tasks.do(second, "pause").body["state"] == "paused"
        assert tasks.do(second, "run").status == 409
        assert tasks.do(second, "resume").body["state"] == "blocked"
        assert tasks.do(second, "pause").body["state"] == "paused"
        assert tasks.cancel(third).body["state"] == "cancelled"
        tasks.run(2 * MINUTE)
        assert (tasks.state(first), tasks.state(second)) == (State.SUCCEEDED, State.PAUSED)
        assert tasks.do(second, "resume").status == 200
        tasks.run(MINUTE)
        assert (tasks.state(second), tasks.state(third)) == (State.SUCCEEDED, State.CANCELLED)


def test_a_cancelled_dependency_ends_its_dependents() -> None:
    """Dependents end when their dependency is cancelled, whether before its first start or between two attempts."""
    with Tasks() as tasks:
        tasks.fail()
        waiting, failing = tasks.create(HOUR), tasks.create(retry={"initial_seconds": 300, "max_seconds": 300})
        dependents = [tasks.create(after=[waiting]), tasks.create(after=[failing])]
        tasks.run(5 * SECOND)
        assert tasks.cancel(waiting).status == 200
        assert tasks.cancel(failing).status == 200
        tasks.run(10 * SECOND)
        assert [tasks.state(each) for each in dependents] == [State.CANCELLED, State.CANCELLED]


def of_the_dependents(call: Call) -> bool:
    """Whether a call reads the tasks that depend on a task."""
    return call.operation == "query" and "after#" in str(call.request)


def notes_it(call: Call) -> bool:
    """Whether a call records a task's dependent."""
    return call.operation == "put_item" and "after#" in str(call.request)


def marks_it(call: Call) -> bool:
    """Whether a call marks a task as having dependents."""
    return (
        call.operation == "update_item"
        and FLAG in call.request["ExpressionAttributeNames"].values()
        and (":has_dependents" in call.request["ExpressionAttributeValues"])
    )


def releases_it(call: Call) -> bool:
    """Whether a call releases a blocked task."""
    return (
        call.operation == "update_item"
        and ":from_blocked" in call.request["ExpressionAttributeValues"]
        and (":state" in call.request["ExpressionAttributeValues"])
    )


def closes_it(call: Call) -> bool:
    """Whether a call marks a task as finished after its outcome."""
    return call.operation == "update_item" and (
        call.request["ExpressionAttributeNames"].get("#finished_at") == "F"
        and ":from_succeeded" in call.request["ExpressionAttributeValues"]
    )


@pytest.mark.parametrize("at", [of_the_dependents, notes_it, marks_it, releases_it, closes_it])
@pytest.mark.parametrize("lose", [False, True])
def test_a_crash_at_any_point_loses_no_task(at: Callable[[Call], bool], *, lose: bool) -> None:
    """After a crash at any point, even with lost messages, the dependent still runs exactly once."""
    with Tasks() as tasks:
        tasks.last(5)
        first = tasks.create()

        def die(call: Call) -> None:
            if lose:
                tasks.lose_messages()
            call.machine.die()

        died = tasks.once(at, die)
        second = tasks.create(after=[first])
        tasks.run(20 * SECOND)
        assert died
        tasks.run(2 * RECOVERY + 2 * MINUTE)
        assert [tasks.state(each) for each in (first, second)] == [State.SUCCEEDED, State.SUCCEEDED]
        assert len(tasks.effect_times(second)) == 1


def test_a_dependency_that_ends_while_its_dependent_is_recorded_counts() -> None:
    """If a dependency ends while its dependent is being recorded, the dependent still starts."""
    with Tasks() as tasks:
        tasks.last(5)
        first = tasks.create()
        slowed = tasks.slow(notes_it, 20 * SECOND)
        second = tasks.create(after=[first])
        tasks.run(30 * SECOND)
        assert slowed
        assert tasks.state(second) is State.SUCCEEDED


def test_a_dependent_starts_although_its_dependency_was_read_before_the_mark() -> None:
    """A worker that read a dependency's record before the record was marked still starts the dependent."""
    with Tasks() as tasks:
        tasks.last(5)
        first = tasks.create()
        tasks.run(2 * SECOND)
        second = tasks.create(after=[first])
        tasks.run(10 * SECOND)
        assert (tasks.state(first), tasks.state(second)) == (State.SUCCEEDED, State.SUCCEEDED)


def test_a_lost_first_message_is_found_by_the_first_scan() -> None:
    """A scan finds a blocked task whose first message was lost, and records the task at its dependency."""
    with Tasks() as tasks:
        first = tasks.create(HOUR)
        second = tasks.create(after=[first])
        tasks.lose_messages()
        tasks.run(10 * MINUTE)
        assert any(item[schema.SORT_KEY]["S"].startswith("after#") for item in tasks.items(schema.CONTENT_PREFIX))
        assert tasks.state(second) is State.BLOCKED


def test_a_dependencys_outcome_counts_after_its_record_has_expired(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dependency's outcome counts even if its record is removed before another dependency ends."""
    monkeypatch.setattr(dependencies, "OUTCOME_REMEMBERED", 31 * DAY)
    with Tasks() as tasks:
        first, second = tasks.create(), tasks.create(5 * MINUTE)
        third = tasks.create(after=[first, second])
        tasks.run(MINUTE)
        key = tasks.record(first).id.partition, first
        tasks.table.write(tasks.now, key, None)
        # The record has not really expired, so its removal is reported as a violation.
        tasks.watching.violations.clear()
        tasks.run(10 * MINUTE)
        assert tasks.state(third) is State.SUCCEEDED


def test_the_item_of_a_dependent_is_kept_past_the_next_check() -> None:
    """The item that records a dependent is kept until well after the next check, which renews the item."""
    with Tasks() as tasks:
        tasks.create(after=[tasks.create(3 * DAY)])
        # The last scan of the minute, which comes after a day, is the second check.
        for passes in (5 * SECOND, DAY + 5 * MINUTE):
            tasks.run(passes)
            (note,) = [
                each for each in tasks.items(schema.CONTENT_PREFIX) if each[schema.SORT_KEY]["S"].startswith("after#")
            ]
            assert int(note[schema.TTL]["N"]) * SECOND > tasks.now + DEPENDENT_LIFE - HOUR


def test_a_task_can_wait_for_a_future_occurrence() -> None:
    """A task can wait for an occurrence that has no task yet; `task_id` is shown once the task exists."""
    with Schedules() as schedules:
        schedules.last(5)
        schedules.make(cron="*/15 * * * *")
        at = (schedules.now // (15 * MINUTE) + 2) * 15 * MINUTE
        task = schedules.create(after=[{"schedule": NAME, "occurrence": to_iso(at)}])
        assert schedules.ask("GET", f"/v1/tasks/{task}").body["after"] == [
            {"schedule": NAME, "occurrence": to_iso(at), "task_id": None}
        ]
        schedules.run(at - schedules.now + 2 * SECOND)
        assert schedules.state(task) is State.BLOCKED
        schedules.run(10 * SECOND)
        (run,) = [each for each in schedules.placed() if each.schedule_ref and each.schedule_ref.nominal == at]
        assert schedules.ask("GET", f"/v1/tasks/{task}").body["after"][0]["task_id"] == run.id.text
        assert schedules.state(task) is State.SUCCEEDED
        assert 5 * SECOND <= schedules.effect_times(task)[0] - at < 7 * SECOND


def test_an_occurrence_that_never_comes_skips_its_dependents() -> None:
    """If a schedule is deleted before the occurrence, tasks that depend on the occurrence are skipped."""
    with Schedules() as schedules:
        schedules.make(cron="*/15 * * * *")
        at = (schedules.now // (15 * MINUTE) + 2) * 15 * MINUTE
        task = schedules.create(after=[{"schedule": NAME, "occurrence": to_iso(at)}])
        schedules.run(MINUTE)
        assert schedules.ask("DELETE", PATH).status == 200
        schedules.run(2 * HOUR)
        record = schedules.record(task)
        assert (record.state, record.error and record.error.type) == (State.CANCELLED, "skipped")


def test_invalid_occurrences_as_dependencies_are_rejected() -> None:
    """Unknown schedules, times that are not in the schedule, and past occurrences without a task are refused."""
    with Schedules() as schedules:
        schedules.make(cron="*/15 * * * *")
        at = (schedules.now // (15 * MINUTE) + 2) * 15 * MINUTE
        faults = [
            refused(schedules, after=[{"schedule": name, "occurrence": to_iso(time)}])
            for name, time in (("other", at), (NAME, at + MINUTE), (NAME, at - DAY))
        ]
        assert [field for field, _ in faults] == ["after[0]"] * 3
        assert faults[0][1] == "is of a schedule that does not exist"
