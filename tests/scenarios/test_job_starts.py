"""If a job's start gets no response, the worker searches for the job, so that none is lost or runs twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ReadTimeoutError

from duetime.domain.operating_parameters import JOB_SEARCH
from tests.scenarios.jobs import JOB_KINDS, LEASE, MACHINE, SOON, STARTS, Jobs
from tests.scenarios.scenario import MINUTE, SECOND
from tests.scenarios.tasks import ONCE, RECOVERY

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime_testing.simulation.faults import Call


@pytest.fixture
def tasks() -> Jobs:
    """An account."""
    return Jobs()


@pytest.fixture(params=JOB_KINDS)
def service(request: pytest.FixtureRequest) -> str:
    """A service that runs jobs, by its boto3 name."""
    return str(request.param)


@pytest.fixture(params=["batch", "codebuild", "glue"])
def repeating(request: pytest.FixtureRequest) -> str:
    """A service that would start a second job with the same name."""
    return str(request.param)


def fail(call: Call) -> None:
    """Lose the call's response."""
    raise ReadTimeoutError(endpoint_url=call.service)


def die(call: Call) -> None:
    """Kill the worker."""
    call.machine.die()


def at_start(tasks: Jobs, happens: Callable[[Call], None], *, is_made: bool = True) -> None:
    """Call a function at the next job start, either after the start or instead of the start."""

    def hook(call: Call) -> None:
        if call.operation in STARTS:
            tasks.before_call = tasks.after_call = None
            happens(call)

    if is_made:
        tasks.after_call = hook
    else:
        tasks.before_call = hook


@pytest.mark.parametrize("happens", [fail, die])
def test_a_cancel_stops_a_job_whose_start_got_no_response(
    tasks: Jobs, service: str, happens: Callable[[Call], None]
) -> None:
    """If a task is cancelled and its job's start got no response, the job is found by its name and stopped."""
    with tasks:
        at_start(tasks, happens)
        task_id = tasks.create(target=JOB_KINDS[service], notify_within_seconds=7200)
        tasks.run(SOON)
        assert len(tasks.running()) == 1
        assert tasks.cancel(task_id, force=True).status == 202
        tasks.run(RECOVERY + LEASE)
        assert (tasks.state(task_id), tasks.running()) == ("cancelled", [])
        assert tasks.record(task_id).error is None
        assert tasks.counts()["jobs_stopped"] == 1
        # The simulated death of a process is an exception, which the worker records before it stops completely.
        assert tasks.counts()["worker_errors"] == (happens is die)


def test_a_cancelled_task_without_a_found_job_ends_with_job_unknown(tasks: Jobs, service: str) -> None:
    """If no job is found for a cancelled task, the task ends after the search with `JobUnknown`."""
    with tasks:
        at_start(tasks, fail, is_made=False)
        task_id = tasks.create(target=JOB_KINDS[service], notify_within_seconds=7200)
        tasks.run(SOON)
        assert tasks.cancel(task_id, force=True).status == 202
        tasks.run(JOB_SEARCH - MINUTE)
        assert tasks.state(task_id) == "running"
        assert "is looked for until" in tasks.ask("GET", f"/v1/tasks/{task_id}/explain").body["text"]
        tasks.run(MINUTE + SOON)
        error = tasks.record(task_id).error
        assert (tasks.state(task_id), error and error.type, tasks.running()) == ("cancelled", "JobUnknown", [])


def test_the_same_attempt_starts_a_job_if_the_search_finds_none(tasks: Jobs, service: str) -> None:
    """If the search finds no job, the same attempt starts a job."""
    with tasks:
        at_start(tasks, fail, is_made=False)
        task_id = tasks.create(target=JOB_KINDS[service], notify_within_seconds=7200, retry=ONCE)
        tasks.run(JOB_SEARCH + 2 * SOON)
        assert tasks.record(task_id).job is not None
        tasks.end_running()
        tasks.run(SOON)
        assert (tasks.outcomes(task_id), tasks.record(task_id).attempt) == (["succeeded"], 1)


@pytest.mark.parametrize("happens", [fail, die])
def test_the_search_for_a_job_lasts_until_the_list_is_current(
    tasks: Jobs, repeating: str, happens: Callable[[Call], None]
) -> None:
    """For services that can start two jobs with one name, the search lasts until the service's list is current."""
    with tasks:
        tasks.job_services[repeating].listed_after = lambda: JOB_SEARCH - 10 * SECOND
        at_start(tasks, happens)
        task_id = tasks.create(target=JOB_KINDS[repeating], notify_within_seconds=7200, retry=ONCE)
        tasks.run(RECOVERY + LEASE + JOB_SEARCH)
        assert len(tasks.jobs.names) == 1
        tasks.end_running()
        tasks.run(SOON)
        assert (tasks.outcomes(task_id), tasks.record(task_id).attempt) == (["succeeded"], 1)


def test_a_task_keeps_its_lock_while_its_job_is_searched_for(tasks: Jobs) -> None:
    """While a job is searched for, the task keeps its lock, because the job may be running."""
    with tasks:
        at_start(tasks, fail)
        lock = {"key": "db"}
        tasks.create(target=MACHINE, notify_within_seconds=7200, lock=lock)
        tasks.run(SOON)
        other = tasks.create(lock=lock)
        tasks.run(10 * MINUTE)
        assert (len(tasks.running()), tasks.state(other)) == (1, "waiting")
        tasks.end_running()
        tasks.run(SOON)
        assert tasks.state(other) == "succeeded"


def test_a_lost_workers_job_is_found_despite_switch_and_expiry(tasks: Jobs) -> None:
    """A lost worker's job is found even if a switch is on and the task's expiry has passed."""
    with tasks:
        at_start(tasks, die)
        task_id = tasks.create(target=JOB_KINDS["batch"], notify_within_seconds=7200, expires_seconds=20)
        tasks.run(SOON)
        assert tasks.ask("PUT", "/v1/switches/all/all", {"stopped": True}).status == 200
        tasks.run(RECOVERY + LEASE)
        assert tasks.record(task_id).awaiting_notification
        tasks.end_running()
        tasks.run(SOON)
        assert tasks.outcomes(task_id) == ["succeeded"]
