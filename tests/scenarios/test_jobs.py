"""Jobs that AWS runs for tasks: how their ends come about, and that an attempt has one of them at most."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.operating_parameters import SHORTEST_CHECK_INTERVAL
from duetime_testing.fakes.stepfunctions import Status
from tests.scenarios.scenario import HOUR, MINUTE, SECOND
from tests.scenarios.tasks import ONCE, RECOVERY, Tasks
from tests.simulation.account import LEASE_SECONDS
from tests.simulation.endpoints import CLUSTER, JOBS, TASK_DEFINITION

if TYPE_CHECKING:
    from duetime_testing.fakes.stepfunctions import Execution
    from duetime_testing.simulation.faults import Call

MACHINE = {"kind": "step_functions", "arn": JOBS, "wait": True}
CONTAINER = {"kind": "ecs", "arn": TASK_DEFINITION, "cluster": CLUSTER, "container": "report"}
LEASE = LEASE_SECONDS * SECOND
SOON = 5 * SECOND


class Jobs(Tasks):
    """An account with tasks whose targets are jobs."""

    def create_job(self, target: dict[str, Any] = MACHINE, **fields: Any) -> str:  # noqa: ANN401 - JSON
        """Create a task with a job and let it start."""
        task_id = self.create(target=target, **{"notify_within_seconds": 7200, **fields})
        assert self.run_until(lambda: self.record(task_id).awaiting_notification, MINUTE)
        return task_id

    @property
    def executions(self) -> list[Execution]:
        """The executions that tasks have started."""
        return list(self.executions_of_tasks.executions.values())

    def end(self, status: Status = Status.SUCCEEDED, output: str = '{"rows": 7}', *, heard: bool = True) -> None:
        """End the one execution that runs; without its event, if that is not heard."""
        (execution,) = self.executions_of_tasks.running()
        if heard:
            self.end_execution(execution, status, output)
        else:
            execution.output = output
            execution.end(status, self.now, "Boom")

    def end_container(self, code: int | None, stop_code: str = "EssentialContainerExited") -> None:
        """End the latest task of ECS, with its event."""
        arn = list(self.ecs.tasks)[-1]
        self.ecs.end(arn, code, stop_code, "why")
        self.send_job_event(self.ecs.tasks[arn]["startedBy"])


@pytest.fixture
def tasks() -> Jobs:
    """An account."""
    return Jobs()


def test_the_end_of_an_execution_is_the_outcome_of_its_task(tasks: Jobs) -> None:
    """Its output is the result; until then the task runs, for longer than a function could, and no worker waits."""
    with tasks:
        task_id = tasks.create_job(payload={"n": 1})
        (execution,) = tasks.executions
        assert json.loads(execution.input)["payload"] == {"n": 1}
        tasks.run(HOUR)
        shown = tasks.ask("GET", f"/v1/tasks/{task_id}").body
        assert (shown["state"], shown["awaiting_notification"], shown["attempt"]) == ("running", True, 1)
        assert shown["job"]["arn"] == execution.arn
        assert execution.arn in shown["job"]["console_url"]
        tasks.end()
        tasks.run(SOON)
        shown = tasks.ask("GET", f"/v1/tasks/{task_id}").body
        assert (shown["state"], shown["result"]) == ("succeeded", {"rows": 7})


def test_an_execution_that_fails_is_tried_again_under_another_name(tasks: Jobs) -> None:
    """A name is given once: the next attempt has an execution of its own."""
    with tasks:
        task_id = tasks.create_job(retry={"max_attempts": 2, "initial_seconds": 0})
        tasks.end(Status.FAILED)
        tasks.run(SOON)
        tasks.end()
        tasks.run(SOON)
        assert tasks.outcomes(task_id) == ["retried", "succeeded"]
        assert len({each.name for each in tasks.executions}) == 2


def test_an_end_whose_event_is_lost_is_found_by_a_check(tasks: Jobs) -> None:
    """Five minutes after its start at the latest, later after longer runs."""
    with tasks:
        task_id = tasks.create_job()
        tasks.run(MINUTE)
        tasks.end(heard=False)
        tasks.run(SHORTEST_CHECK_INTERVAL + MINUTE)
        assert tasks.state(task_id) == "succeeded"


def test_events_that_come_twice_or_too_early_do_no_harm(tasks: Jobs) -> None:
    """What they say is looked up: a running job goes on, and an outcome is not written twice."""
    with tasks:
        task_id = tasks.create_job(retry={"max_attempts": 3, "initial_seconds": 0})
        (execution,) = tasks.executions
        tasks.send_job_event(execution.name)
        tasks.run(2 * MINUTE)
        assert tasks.state(task_id) == "running"
        tasks.end(Status.FAILED)
        tasks.send_job_event(execution.name)
        tasks.run(SOON)
        # The next attempt runs: an event of the first is not its end.
        tasks.send_job_event(execution.name)
        tasks.run(2 * MINUTE)
        assert tasks.outcomes(task_id) == ["retried"]
        tasks.end()
        tasks.run(SOON)
        assert tasks.outcomes(task_id) == ["retried", "succeeded"]


@pytest.mark.parametrize("target", [MACHINE, CONTAINER], ids=["execution", "container"])
@pytest.mark.parametrize("is_last", [False, True])
def test_a_start_whose_worker_is_lost_is_one_job_and_one_attempt(
    tasks: Jobs, target: dict[str, Any], *, is_last: bool
) -> None:
    """Whoever claims the task after it finds the job that it has started, also if no other attempt is allowed."""
    with tasks:

        def die(call: Call) -> None:
            if call.operation in {"start_execution", "run_task"}:
                tasks.after_call = None
                call.machine.die()

        tasks.after_call = die
        retry = {"max_attempts": 1 if is_last else 3}
        task_id = tasks.create(target=target, notify_within_seconds=7200, retry=retry)
        tasks.run(RECOVERY + LEASE)
        assert len(tasks.executions) + len(tasks.ecs.tasks) == 1
        assert tasks.record(task_id).awaiting_notification
        if target is MACHINE:
            tasks.end()
        else:
            tasks.end_container(0)
        tasks.run(SOON)
        assert tasks.outcomes(task_id) == ["succeeded"]
        assert tasks.record(task_id).attempt == 1


@pytest.mark.parametrize("target", [MACHINE, CONTAINER], ids=["execution", "container"])
def test_a_cancel_stops_the_job(tasks: Jobs, target: dict[str, Any]) -> None:
    """At once, not with the next check; the task is cancelled when the job has ended."""
    with tasks:
        task_id = tasks.create_job(target)
        assert tasks.cancel(task_id, force=True).status == 202
        tasks.run(SOON)
        assert tasks.state(task_id) == "cancelled"
        assert [each.status for each in tasks.executions] == [Status.ABORTED] * (target is MACHINE)
        assert [each["stopCode"] for each in tasks.ecs.tasks.values()] == ["UserInitiated"] * (target is CONTAINER)
        assert (tasks.counts()["worker_errors"], tasks.counts()["jobs_stopped"]) == (0, 1)


def test_a_cancel_that_comes_while_the_job_starts_stops_it(tasks: Jobs) -> None:
    """There was no job to stop yet when it was requested."""
    with tasks:

        def cancel(call: Call) -> None:
            if call.operation == "start_execution":
                tasks.after_call = None
                tasks.send("POST", f"/v1/tasks/{task_id}/cancel", {"force": True})
                tasks.take(SECOND)

        task_id = tasks.create(MINUTE, target=MACHINE)
        tasks.after_call = cancel
        tasks.run(2 * MINUTE)
        assert tasks.state(task_id) == "cancelled"
        assert [each.status for each in tasks.executions] == [Status.ABORTED]


def test_a_job_that_takes_too_long_is_stopped_before_the_next_attempt(tasks: Jobs) -> None:
    """It is a timeout, and never do two jobs of a task run at once."""
    with tasks:
        task_id = tasks.create_job(notify_within_seconds=600, retry={"max_attempts": 2, "initial_seconds": 0})
        tasks.run(11 * MINUTE)
        first, second = tasks.executions
        assert (first.status, second.status) == (Status.ABORTED, Status.RUNNING)
        assert first.stopped is not None
        assert second.began >= first.stopped
        tasks.run(11 * MINUTE)
        task = tasks.record(task_id)
        assert task.error is not None
        assert (task.state, task.error.type, tasks.outcomes(task_id)) == ("failed", "Timeout", ["retried", "failed"])


def test_a_job_that_a_person_stops_is_not_tried_again(tasks: Jobs) -> None:
    """They would have to stop each of its attempts."""
    with tasks:
        task_id = tasks.create_job(retry={"max_attempts": 3, "initial_seconds": 0})
        (execution,) = tasks.executions
        tasks.executions_of_tasks.stop_execution(executionArn=execution.arn, cause="wrong month")
        tasks.run(SOON)
        task = tasks.record(task_id)
        assert task.error is not None
        assert (task.state, task.error.type, task.error.message) == ("failed", "JobStopped", "wrong month")


@pytest.mark.parametrize(
    ("code", "stop_code", "expected"),
    [
        (0, "EssentialContainerExited", None),
        (3, "EssentialContainerExited", "ExitCode"),
        (None, "SpotInterruption", "SpotInterruption"),
        (137, "UserInitiated", "JobStopped"),
    ],
)
def test_the_exit_code_of_its_container_is_the_outcome(
    tasks: Jobs, code: int | None, stop_code: str, expected: str | None
) -> None:
    """Zero is success; without one, the reason why the task has stopped says what went wrong."""
    with tasks:
        task_id = tasks.create_job(CONTAINER, retry=ONCE, payload={"n": 1})
        (request,) = tasks.ecs.requests.values()
        (container,) = request["overrides"]["containerOverrides"]
        (variable,) = container["environment"]
        assert (container["name"], variable["name"]) == ("report", "DUETIME_TASK")
        assert json.loads(variable["value"])["payload"] == {"n": 1}
        tasks.end_container(code, stop_code)
        tasks.run(SOON)
        error = tasks.record(task_id).error
        assert (error and error.type) == expected


def test_a_container_waits_for_capacity_without_using_up_attempts(tasks: Jobs) -> None:
    """Nothing has been started; the task says what it waits for."""
    with tasks:
        tasks.ecs.has_capacity = False
        task_id = tasks.create(target=CONTAINER, retry=ONCE)
        tasks.run(MINUTE)
        assert tasks.state(task_id) == "waiting"
        assert "RESOURCE:MEMORY" in (tasks.record(task_id).waiting_for or "")
        tasks.ecs.has_capacity = True
        tasks.run(2 * MINUTE)
        assert tasks.record(task_id).awaiting_notification
        tasks.end_container(0)
        tasks.run(SOON)
        assert tasks.record(task_id).attempt == 1
