"""If queues are slow to accept messages, every message is sent, and no task is missed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.scenarios.scenario import MINUTE, PLAIN, SECOND, Scenario

if TYPE_CHECKING:
    from duetime_testing.simulation.faults import Call

TASKS = 60


def _slow_sends(scenario: Scenario, duration: int) -> None:
    """Make each send by the trigger take this long."""

    def slow(call: Call) -> None:
        if call.machine.function == "trigger" and call.operation == "send_message_batch":
            scenario.take(duration)

    scenario.before_call = slow


def test_a_send_longer_than_two_ticks_delays_only_its_own_task() -> None:
    """If sends take longer than two ticks, each task runs once, late by at most the duration of its own send."""
    with Scenario() as scenario:
        scenario.faulty = True
        batch = [{"type": PLAIN, "delay_seconds": 600} for _ in range(TASKS)]
        made = [
            each["task"]["id"] for each in scenario.ask("POST", "/v1/tasks/batch", {"tasks": batch}).body["results"]
        ]
        later = [
            scenario.ask("POST", "/v1/tasks", {"type": PLAIN, "delay_seconds": seconds}).body["id"]
            for seconds in (660, 780, 1500)
        ]
        _slow_sends(scenario, 130 * SECOND)
        scenario.run(30 * MINUTE)
        for task_id in [*made, *later]:
            assert scenario.record(task_id).state == "succeeded"
            assert (scenario.record(task_id).lateness or 0) <= 131 * SECOND
        sent = [line for line in scenario.lines if line[2:3] == ("send_message_batch",) and "trigger" in line[1]]
        assert sum(len(line[3]["Entries"]) for line in sent) <= 2 * (TASKS + 3)


def test_all_tasks_run_if_every_third_send_is_rejected() -> None:
    """If every third send is refused for half an hour, all tasks run, and few of them are late."""
    with Scenario() as scenario:
        scenario.faulty = True
        made = [
            scenario.ask("POST", "/v1/tasks", {"type": PLAIN, "delay_seconds": 300 + 20 * number}).body["id"]
            for number in range(TASKS)
        ]
        met: list[Call] = []

        def refuse(call: Call) -> None:
            if call.machine.function == "trigger" and call.operation == "send_message_batch":
                met.append(call)
                if len(met) % 3 == 0:
                    call.refuse()

        scenario.before_call = refuse
        scenario.run(30 * MINUTE)
        assert len(met) > 20
        assert {scenario.record(task_id).state for task_id in made} == {"succeeded"}
        # The next tick sends refused messages again, mostly in time. Some messages are refused twice.
        late = [lateness for each in made if (lateness := scenario.record(each).lateness or 0) >= SECOND]
        assert len(late) < TASKS // 6
        assert max(late, default=0) < MINUTE
