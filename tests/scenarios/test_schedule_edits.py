"""If a schedule changes while its occurrence is due, only a change to the timing can drop the occurrence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND, Scenario
from tests.scenarios.test_schedule_catch_up import puts_occurrence

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task

HOURLY = "/v1/schedules/hourly"
BODY = {"name": "hourly", "cron": "0 * * * *", "overlap": "allow_all", "task": {"type": PLAIN}}
NEW_TASK = {"task": {"type": PLAIN, "payload": {"new": 1}}}
NOT_ABOUT_TIMING: list[dict[str, Any]] = [
    NEW_TASK,
    {"overlap": "skip"},
    {"catch_up_seconds": 7200},
    {"pause_on_failure": True},
    {"jitter_seconds": 0, "cron": "0 * * * *"},
    {"remaining_runs": 9},
]


def occurrences(scenario: Scenario) -> list[Task]:
    """The schedule's tasks, in order."""
    return sorted((task for task in scenario.watching.tasks() if task.schedule_ref), key=lambda task: task.id)


def ran(scenario: Scenario) -> list[Task]:
    """The schedule's successful tasks."""
    return [task for task in occurrences(scenario) if task.state == "succeeded"]


def let_workers_receive(scenario: Scenario) -> None:
    """Resume polling the queues."""
    scenario.receiving = True
    for poller in scenario._pollers.values():
        scenario.time.nudge(poller)


def changed_while_queued(scenario: Scenario, *changes: dict[str, Any]) -> None:
    """Ten seconds after the hour, while its occurrence is queued, make changes; then run for 50 minutes."""
    scenario.faulty = True  # workers are away for a while
    assert scenario.ask("POST", "/v1/schedules", BODY).status == 201
    hour = (scenario.now // HOUR + 1) * HOUR
    scenario.run(hour - 10 * SECOND - scenario.now)
    scenario.receiving = False
    scenario.run(20 * SECOND)
    for change in changes:
        assert scenario.ask("PATCH", HOURLY, change).status == 200
    scenario.run(10 * SECOND)
    let_workers_receive(scenario)
    scenario.run(50 * MINUTE)


@pytest.mark.parametrize("change", NOT_ABOUT_TIMING, ids=lambda change: next(iter(change)))
def test_a_change_other_than_of_the_timing_drops_no_queued_occurrence(change: dict[str, Any]) -> None:
    """After a change that is not about the timing, a queued occurrence runs once."""
    with Scenario() as scenario:
        changed_while_queued(scenario, change)
        assert len(ran(scenario)) == 1
        assert scenario.ask("GET", HOURLY).body["runs_skipped"] == 0


def test_a_change_of_the_timing_drops_queued_occurrences() -> None:
    """A queued occurrence that the new timing does not include is skipped."""
    with Scenario() as scenario:
        changed_while_queued(scenario, {"cron": "0 5 * * *"})
        assert ran(scenario) == []
        assert scenario.ask("GET", HOURLY).body["runs_skipped"] == 1


def test_several_changes_drop_no_queued_occurrence() -> None:
    """An occurrence that was due before several changes still runs once."""
    with Scenario() as scenario:
        changed_while_queued(scenario, *NOT_ABOUT_TIMING)
        assert len(ran(scenario)) == 1


@pytest.mark.parametrize("number", [25, 60])
def test_any_number_of_changes_drops_no_queued_occurrence(number: int) -> None:
    """After any number of changes within seconds, only the occurrence that was due before the changes runs, once."""
    with Scenario() as scenario:
        changed_while_queued(scenario, *({"catch_up_seconds": 100 + each} for each in range(number)))
        assert len(ran(scenario)) == 1
        assert scenario.ask("GET", HOURLY).body["runs_skipped"] == 0


@pytest.mark.slow
def test_a_change_between_any_two_occurrences_drops_none_of_them() -> None:
    """If a schedule changes between any two occurrences for half an hour, each occurrence still runs once."""
    with Scenario() as scenario:
        scenario.faulty = True  # workers are away for a while
        assert scenario.ask("POST", "/v1/schedules", {**BODY, "cron": "* * * * *"}).status == 201
        scenario.receiving = False
        scenario.run(MINUTE - scenario.now % MINUTE + 30 * SECOND)
        for each in range(30):
            assert scenario.ask("PATCH", HOURLY, {"catch_up_seconds": 100 + each}).status == 200
            scenario.run(MINUTE - scenario.now % MINUTE + 30 * SECOND)
        let_workers_receive(scenario)
        scenario.run(10 * MINUTE)
        began = [task.schedule_ref.nominal for task in ran(scenario) if task.schedule_ref]
        assert len(began) == len(set(began))
        wanted = range(min(began), scenario.now - 10 * SECOND, MINUTE)
        assert sorted(began) == list(wanted)
        assert len(began) >= 40


def test_a_pause_after_a_change_drops_queued_occurrences() -> None:
    """A pause after a change drops all occurrences that have not begun."""
    with Scenario() as scenario:
        scenario.faulty = True
        assert scenario.ask("POST", "/v1/schedules", BODY).status == 201
        scenario.run((scenario.now // HOUR + 1) * HOUR - 10 * SECOND - scenario.now)
        scenario.receiving = False
        scenario.run(20 * SECOND)
        assert scenario.ask("PATCH", HOURLY, NEW_TASK).status == 200
        assert scenario.ask("POST", f"{HOURLY}/pause").status == 200
        let_workers_receive(scenario)
        scenario.run(10 * MINUTE)
        assert ran(scenario) == []


def test_future_occurrences_run_with_the_changed_payload() -> None:
    """After a change to the payload, a future occurrence is placed again with the new payload, and runs once."""
    with Scenario() as scenario:
        assert scenario.ask("POST", "/v1/schedules", BODY).status == 201
        scenario.run((scenario.now // HOUR + 1) * HOUR - 10 * SECOND - scenario.now)
        assert scenario.ask("PATCH", HOURLY, NEW_TASK).status == 200
        scenario.run(10 * MINUTE)
        (task,) = ran(scenario)
        assert scenario.ask("GET", f"/v1/tasks/{task.id}").body["payload"] == {"new": 1}
        assert scenario.ask("GET", HOURLY).body["last_run"]["task_id"] == task.id.text


@pytest.mark.parametrize("crashes", [False, True], ids=["slow", "dies"])
def test_a_change_of_the_payload_drops_no_catch_up_run(crashes: bool) -> None:  # noqa: FBT001 - a test parameter
    """A change to the payload while the trigger catches up does not drop the catch-up run."""
    with Scenario() as scenario:
        scenario.faulty = True
        assert scenario.ask("POST", "/v1/schedules", BODY | {"catch_up_seconds": 3600}).status == 201
        hour = (scenario.now // HOUR + 2) * HOUR
        scenario.run(hour - 10 * MINUTE - scenario.now)
        before = len(ran(scenario))
        scenario.ticking = False
        scenario.run(30 * MINUTE)

        def wait(call: Any) -> None:  # noqa: ANN401 - a `Call`
            scenario.take(2 * SECOND)
            if crashes:
                call.machine.die()

        met = scenario.once(lambda call: puts_occurrence(call, "trigger"), wait)
        scenario.ticking = True
        assert scenario.run_until(lambda: met)
        assert scenario.ask("PATCH", HOURLY, NEW_TASK).status == 200
        scenario.run(hour + 50 * MINUTE - scenario.now)
        assert len(ran(scenario)) - before == 1


def test_a_change_of_a_permanent_schedule_keeps_the_time_of_its_next_run() -> None:
    """After a change, a permanent schedule's next run starts at the planned time with the new payload."""
    with Scenario() as scenario:
        body = {"name": "hourly", "permanent": {"gap_seconds": 120}, "task": {"type": PLAIN}}
        assert scenario.ask("POST", "/v1/schedules", body).status == 201
        scenario.run(30 * SECOND)
        assert len(ran(scenario)) == 1
        next_at = scenario.ask("GET", HOURLY).body["last_run"]["scheduled_at"]
        assert scenario.ask("PATCH", HOURLY, NEW_TASK).status == 200
        assert scenario.ask("GET", HOURLY).body["last_run"]["scheduled_at"] == next_at
        scenario.run(30 * SECOND)
        assert len(ran(scenario)) == 1
        scenario.run(2 * MINUTE)
        assert len(ran(scenario)) == 2
        assert scenario.ask("GET", f"/v1/tasks/{ran(scenario)[-1].id}").body["payload"] == {"new": 1}


def test_updates_that_change_nothing_drop_no_occurrence() -> None:
    """Updates with unchanged values neither drop the queued occurrence nor change the version."""
    with Scenario() as scenario:
        same: list[dict[str, Any]] = [
            {"overlap": "allow_all"},
            {"task": {"type": PLAIN, "payload": None}},
            {"cron": "0 * * * *"},
        ]
        changed_while_queued(scenario, *same * 8)
        assert len(ran(scenario)) == 1
        assert scenario.ask("GET", HOURLY).body["version"] == 1


def test_the_unused_of_two_concurrently_given_payloads_expires() -> None:
    """If two concurrent requests change a schedule's payload, only the payload in use does not expire."""
    with Scenario() as scenario:
        large = "".join(str(number) for number in range(3_000))
        body = {**BODY, "task": {"type": PLAIN, "payload": large}}
        assert scenario.ask("POST", "/v1/schedules", body).status == 201
        slow = scenario.slow(lambda call: call.operation == "put_item" and "r#" in (call.partition or ""), 3 * SECOND)
        late = scenario.send("PATCH", HOURLY, {"task": {"payload": large + "late"}})
        assert scenario.run_until(lambda: slow)
        assert scenario.ask("PATCH", HOURLY, {"task": {"payload": large + "soon"}}).status == 200
        assert scenario.run_until(lambda: late)
        shown = scenario.ask("GET", HOURLY).body["task"]["payload"]
        assert shown == large + "late"
        places = [item for item in scenario.items("x#") if item[schema.SORT_KEY]["S"].startswith("payload.")]
        assert (len(places), sum(schema.TTL not in item for item in places)) == (3, 1)


@pytest.mark.parametrize(
    "change", [{"pause_on_failure": True}, {"cron": "* * * * *"}], ids=lambda each: next(iter(each))
)
@pytest.mark.parametrize("more", [{}, {"remaining_runs": 4}], ids=["endless", "limited"])
def test_a_run_that_is_placed_again_counts_once(change: dict[str, Any], more: dict[str, Any]) -> None:
    """If a change places an occurrence again, the occurrence counts as a single run."""
    with Scenario() as scenario:
        body = {**BODY, **more, "cron": "*/2 * * * *" if "cron" in change else "* * * * *"}
        assert scenario.ask("POST", "/v1/schedules", body).status == 201
        scenario.run(30 * SECOND)
        for number in range(4):
            fields = {"catch_up_seconds": 60 + number} if number else change
            assert scenario.ask("PATCH", HOURLY, fields).status == 200
            scenario.run(5 * SECOND)
        scenario.run(10 * MINUTE)
        shown = scenario.ask("GET", HOURLY).body
        assert shown["runs_started"] == len(ran(scenario))
        assert not more or len(ran(scenario)) == 4


def test_occurrences_held_by_a_pause_do_not_count_as_runs() -> None:
    """Occurrences that were placed before a pause neither run nor count as runs."""
    with Scenario() as scenario:
        scenario.faulty = True
        body = {"name": "hourly", "permanent": {"gap_seconds": 100}, "task": {"type": PLAIN}}
        assert scenario.ask("POST", "/v1/schedules", body).status == 201
        scenario.run(150 * SECOND)
        assert scenario.ask("POST", f"{HOURLY}/pause").status == 200
        scenario.run(10 * MINUTE)
        assert scenario.ask("GET", HOURLY).body["runs_started"] == len(ran(scenario)) == 2


@pytest.mark.parametrize("change", [NEW_TASK, {"cron": "*/1 * * * *"}], ids=["task", "timing"])
def test_tasks_replaced_by_a_change_do_not_count_as_skipped(change: dict[str, Any]) -> None:
    """After a change, each time runs once, and replaced tasks do not count as skipped."""
    with Scenario() as scenario:
        scenario.run(MINUTE - scenario.now % MINUTE + 15 * SECOND)
        assert scenario.ask("POST", "/v1/schedules", {**BODY, "cron": "* * * * *"}).status == 201
        scenario.run(SECOND)
        assert len(occurrences(scenario)) > 2
        assert scenario.ask("PATCH", HOURLY, change).status == 200
        scenario.run(6 * MINUTE)
        shown = scenario.ask("GET", HOURLY).body
        assert (len(ran(scenario)), shown["runs_skipped"], shown["skipped_runs"]) == (6, 0, [])
