"""AWS runs jobs for tasks; each attempt has at most one job, and the job's end is the attempt's outcome."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.operating_parameters import SHORTEST_CHECK_INTERVAL
from duetime_testing.fakes.job_services import FakeBatch, FakeCodeBuild, FakeDurableFunctions, FakeGlue
from duetime_testing.fakes.stepfunctions import Status
from tests.scenarios.jobs import CONTAINER, LEASE, MACHINE, SOON, Jobs
from tests.scenarios.scenario import HOUR, MINUTE, SECOND
from tests.scenarios.tasks import ONCE, RECOVERY
from tests.simulation.endpoints import JOB_TARGETS

if TYPE_CHECKING:
    from duetime_testing.simulation.faults import Call


@pytest.fixture
def tasks() -> Jobs:
    """An account."""
    return Jobs()


def test_the_end_of_an_execution_is_the_outcome_of_its_task(tasks: Jobs) -> None:
    """A task runs without a worker until its execution ends, and the execution's output is the result."""
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


def test_a_failed_execution_is_retried_under_another_name(tasks: Jobs) -> None:
    """An execution's name can be used only once, so the next attempt's execution has another name."""
    with tasks:
        task_id = tasks.create_job(retry={"max_attempts": 2, "initial_seconds": 0})
        tasks.end(Status.FAILED)
        tasks.run(SOON)
        tasks.end()
        tasks.run(SOON)
        assert tasks.outcomes(task_id) == ["retried", "succeeded"]
        assert len({each.name for each in tasks.executions}) == 2


def test_a_check_finds_the_end_of_a_job_without_its_event(tasks: Jobs) -> None:
    """If the event for a job's end is lost, a check of the job finds the end within minutes."""
    with tasks:
        task_id = tasks.create_job()
        tasks.run(MINUTE)
        tasks.end(heard=False)
        tasks.run(SHORTEST_CHECK_INTERVAL + MINUTE)
        assert tasks.state(task_id) == "succeeded"


def test_early_and_repeated_job_events_have_no_effect(tasks: Jobs) -> None:
    """Events are verified, so neither an early event nor a repeated event has an effect."""
    with tasks:
        task_id = tasks.create_job(retry={"max_attempts": 3, "initial_seconds": 0})
        (execution,) = tasks.executions
        tasks.send_job_event(execution.name)
        tasks.run(2 * MINUTE)
        assert tasks.state(task_id) == "running"
        tasks.end(Status.FAILED)
        tasks.send_job_event(execution.name)
        tasks.run(SOON)
        # The next attempt runs; an event for the first attempt's execution does not end the next attempt.
        tasks.send_job_event(execution.name)
        tasks.run(2 * MINUTE)
        assert tasks.outcomes(task_id) == ["retried"]
        tasks.end()
        tasks.run(SOON)
        assert tasks.outcomes(task_id) == ["retried", "succeeded"]


@pytest.mark.parametrize("target", [MACHINE, CONTAINER], ids=["execution", "container"])
@pytest.mark.parametrize("is_last", [False, True])
def test_a_worker_lost_during_a_start_causes_no_second_job(
    tasks: Jobs, target: dict[str, Any], *, is_last: bool
) -> None:
    """If a worker is lost during a start, the next worker finds the job, even if only one attempt is allowed."""
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
    """When a task is cancelled, its job is stopped at once, and the task ends when the job has ended."""
    with tasks:
        task_id = tasks.create_job(target)
        assert tasks.cancel(task_id, force=True).status == 202
        tasks.run(SOON)
        assert tasks.state(task_id) == "cancelled"
        assert [each.status for each in tasks.executions] == [Status.ABORTED] * (target is MACHINE)
        assert [each["stopCode"] for each in tasks.ecs.tasks.values()] == ["UserInitiated"] * (target is CONTAINER)
        assert (tasks.counts()["worker_errors"], tasks.counts()["jobs_stopped"]) == (0, 1)


def test_a_cancel_during_the_start_of_a_job_stops_the_job(tasks: Jobs) -> None:
    """A job whose task is cancelled during the start is stopped afterwards."""
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
    """If a job takes too long, the attempt times out, and two jobs of a task never run at the same time."""
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


def test_a_job_that_a_person_stops_is_not_retried(tasks: Jobs) -> None:
    """A task whose job is stopped by a person fails with `JobStopped`, without another attempt."""
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
def test_the_exit_code_of_a_container_decides_the_tasks_outcome(
    tasks: Jobs, code: int | None, stop_code: str, expected: str | None
) -> None:
    """A container's exit code zero is a success; if there is no exit code, the error says why the container stopped."""
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
        assert tasks.state(task_id) == ("failed" if expected else "succeeded")
        assert (error and error.type) == expected


def test_a_container_waits_for_capacity_without_using_up_attempts(tasks: Jobs) -> None:
    """If there is no capacity for a container, the task waits, shows the reason, and uses up no attempt."""
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


@pytest.fixture(params=JOB_TARGETS)
def service(request: pytest.FixtureRequest) -> str:
    """A service that runs jobs, by its boto3 name."""
    return str(request.param)


def test_the_end_of_a_job_is_the_outcome_of_its_task(tasks: Jobs, service: str) -> None:
    """Each service's job gets the task's facts, and an event about the job ends the attempt."""
    with tasks:
        task_id = tasks.create_job(JOB_TARGETS[service], payload={"n": 1})
        jobs = tasks.job_services[service]
        (job,) = jobs.jobs
        assert json.loads(jobs.facts[job])["payload"] == {"n": 1}
        tasks.end_job(jobs, job, well=True)
        tasks.run(SOON)
        shown = tasks.ask("GET", f"/v1/tasks/{task_id}").body
        assert (shown["state"], shown["attempt"]) == ("succeeded", 1)
        assert shown["job"]["arn"].endswith(job)
        assert shown["job"]["console_url"].startswith("https://us-east-1.console.aws.amazon.com/")
        assert (
            shown["result"]
            == {
                "batch": {"job_arn": shown["job"]["arn"], "exit_code": 0},
                "codebuild": {"build_arn": shown["job"]["arn"], "variables": {"ROWS": "7"}},
                "glue": {"job_name": "report", "run_id": job},
                "lambda": {"rows": 7},
            }[service]
        )


def test_a_failed_job_is_retried_under_another_name(tasks: Jobs, service: str) -> None:
    """After a failed job, the next attempt starts a job with another name, and the error states the reason."""
    with tasks:
        task_id = tasks.create_job(JOB_TARGETS[service], retry={"max_attempts": 2, "initial_seconds": 0})
        jobs = tasks.job_services[service]
        for _ in range(2):
            tasks.end_job(jobs, jobs.running()[0], well=False)
            tasks.run(SOON)
        task = tasks.record(task_id)
        assert task.error is not None
        assert (task.error.type, task.error.message) == {
            "batch": ("ExitCode", "the container ended with 3: Essential container in task exited"),
            "codebuild": ("BuildFailed", "BUILD: exit 1"),
            "glue": ("JobRunFailed", "no table"),
            "lambda": ("Boom", "why"),
        }[service]
        assert tasks.outcomes(task_id) == ["retried", "failed"]
        assert len(set(jobs.names.values())) == 2


def test_a_job_whose_start_was_lost_is_found_by_name(tasks: Jobs, service: str) -> None:
    """If a worker dies after starting a job, the job is found in the service's list, and no second job is started."""
    with tasks:

        def die(call: Call) -> None:
            if call.operation in {"submit_job", "start_build", "start_job_run", "invoke"}:
                tasks.after_call = None
                call.machine.die()

        tasks.after_call = die
        task_id = tasks.create(target=JOB_TARGETS[service], notify_within_seconds=7200, retry=ONCE)
        tasks.run(RECOVERY + LEASE)
        jobs = tasks.job_services[service]
        (job,) = jobs.jobs
        tasks.end_job(jobs, job, well=True)
        tasks.run(SOON)
        assert (tasks.outcomes(task_id), tasks.record(task_id).attempt) == (["succeeded"], 1)


def test_a_cancel_stops_the_job_of_any_service(tasks: Jobs, service: str) -> None:
    """When a task is cancelled, its job is stopped in any service, and the job's end cancels the task."""
    with tasks:
        task_id = tasks.create_job(JOB_TARGETS[service])
        assert tasks.cancel(task_id, force=True).status == 202
        tasks.run(SOON)
        assert tasks.state(task_id) == "cancelled"
        assert not tasks.job_services[service].running()
        assert (tasks.counts()["worker_errors"], tasks.counts()["jobs_stopped"]) == (0, 1)


def test_a_job_that_a_person_stops_fails_its_task_at_once(tasks: Jobs, service: str) -> None:
    """After a person stops a job, its task fails without another attempt."""
    with tasks:
        task_id = tasks.create_job(JOB_TARGETS[service], retry={"max_attempts": 3, "initial_seconds": 0})
        jobs = tasks.job_services[service]
        (job,) = jobs.jobs
        match jobs:
            case FakeBatch():
                jobs.terminate_job(jobId=job, reason="wrong month")
            case FakeCodeBuild():
                jobs.stop_build(id=job)
            case FakeGlue():
                jobs.batch_stop_job_run(JobName="report", JobRunIds=[job])
            case FakeDurableFunctions():
                jobs.stop_durable_execution(DurableExecutionArn=job, Error={"ErrorMessage": "wrong month"})
        tasks.run(SOON)
        error = tasks.record(task_id).error
        assert (error and error.type, tasks.outcomes(task_id)) == ("JobStopped", ["failed"])


@pytest.mark.parametrize("service", ["codebuild", "glue"])
def test_events_of_jobs_that_no_task_started_are_ignored(tasks: Jobs, service: str) -> None:
    """Events about jobs that no task started cause no error, and their messages are deleted."""
    with tasks:
        jobs = tasks.job_services[service]
        if isinstance(jobs, FakeGlue):
            jobs.jobs["1"] = {"JobName": "report", "JobRunState": "SUCCEEDED"}
        else:
            jobs.jobs["report:1"] = {"projectName": "report", "buildStatus": "SUCCEEDED"}
        (job,) = jobs.jobs
        for known in (job, job.replace("1", "2")):
            tasks.send_job_event([service, "us-east-1", "report", known])
        tasks.run(SOON)
        assert (tasks.messages(), tasks.counts()["worker_errors"]) == ([], 0)


@pytest.mark.parametrize("service", ["codebuild", "glue"])
def test_a_service_with_too_many_jobs_uses_up_no_attempt(tasks: Jobs, service: str) -> None:
    """If a service has too many jobs, the task waits, shows the reason, and uses up no attempt."""
    with tasks:
        jobs = tasks.job_services[service]
        jobs.has_capacity = False
        task_id = tasks.create(target=JOB_TARGETS[service], retry=ONCE)
        tasks.run(MINUTE)
        assert "too many" in (tasks.record(task_id).waiting_for or "")
        jobs.has_capacity = True
        tasks.run(2 * MINUTE)
        assert (tasks.record(task_id).awaiting_notification, tasks.record(task_id).attempt) == (True, 1)


def test_only_a_jobs_start_counts_for_the_rate(tasks: Jobs) -> None:
    """Only a job's start counts toward the rate, but not the job's checks and end."""
    with tasks:
        rate = {"key": "crm", "limit": 1, "per_seconds": 600}
        made = [tasks.create(target=MACHINE, notify_within_seconds=7200, rate=rate) for _ in range(3)]
        tasks.run(15 * MINUTE)
        for execution in tasks.executions_of_tasks.running():
            tasks.end_execution(execution, Status.SUCCEEDED)
        tasks.run(10 * MINUTE)
        began = [each.began // SECOND for each in tasks.executions]
        assert [at - began[0] for at in began] == [0, 600, 1200]
        assert [tasks.state(each) for each in made] == ["succeeded", "succeeded", "running"]
