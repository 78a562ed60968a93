"""Tests calls to services that run jobs; the fakes' requests, responses and errors are checked against AWS's models."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any

import botocore.session
import pytest
from botocore.exceptions import ClientError
from botocore.validate import ParamValidator

from duetime.adapters.targets.aws_jobs import JobRunner
from duetime.domain.tasks.attempt_results import Deferred, Failed
from duetime.domain.tasks.aws_jobs import JOB_STOPPED, TASK_VARIABLE, job_name
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import AwsService, AwsTarget
from duetime_testing.fakes.ecs import FakeEcs
from duetime_testing.fakes.job_services import FakeBatch, FakeCodeBuild, FakeDurableFunctions, FakeGlue
from tests.domain.factories import task
from tests.simulation.endpoints import (
    CLUSTER,
    DURABLE_FUNCTION,
    GLUE_JOB,
    JOB_DEFINITION,
    JOB_QUEUE,
    PROJECT,
    TASK_DEFINITION,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.tasks.task import Task

TARGETS = {
    "ecs": AwsTarget(AwsService.ECS, TASK_DEFINITION, is_job=True, place=CLUSTER, container="app"),
    "batch": AwsTarget(AwsService.BATCH, JOB_DEFINITION, is_job=True, place=JOB_QUEUE),
    "codebuild": AwsTarget(AwsService.CODEBUILD, PROJECT, is_job=True),
    "glue": AwsTarget(AwsService.GLUE, GLUE_JOB, is_job=True),
    "lambda": AwsTarget(AwsService.LAMBDA, DURABLE_FUNCTION, is_job=True),
}
FAKES: dict[str, Callable[[], Any]] = {
    "ecs": FakeEcs,
    "batch": FakeBatch,
    "codebuild": FakeCodeBuild,
    "glue": FakeGlue,
    "lambda": FakeDurableFunctions,
}


@cache
def model_of(service: str) -> Any:  # noqa: ANN401 - botocore's own
    """Return botocore's model of a service."""
    return botocore.session.get_session().get_service_model(service)


class Modeled:
    """A fake whose requests, responses and errors are checked against botocore's model of the service."""

    def __init__(self, service: str, fake: Any) -> None:  # noqa: ANN401 - a fake of any service
        self.requests: list[dict[str, Any]] = []
        self._model = model_of(service)
        self._operations = {botocore.xform_name(name): name for name in self._model.operation_names}
        self._fake = fake
        self.exceptions = fake.exceptions

    def __getattr__(self, name: str) -> Callable[..., dict[str, Any]]:
        operation = self._model.operation_model(self._operations[name])

        def call(**request: Any) -> dict[str, Any]:  # noqa: ANN401 - boto3's own
            self.requests.append(request)
            _check(request, operation.input_shape)
            try:
                answer: dict[str, Any] = getattr(self._fake, name)(**request)
            except ClientError as error:
                if error.response["Error"]["Code"] not in {shape.name for shape in operation.error_shapes}:
                    pytest.fail(f"{name} never raises {error}")
                raise
            _check(answer, operation.output_shape)
            return answer

        return call


def _check(values: dict[str, Any], shape: Any) -> None:  # noqa: ANN401 - botocore's own
    report = ParamValidator().validate(values, shape)
    assert not report.has_errors(), report.generate_report()


class Services:
    """Stands in for `Resources` with one service."""

    def __init__(self, service: str) -> None:
        self.fake = FAKES[service]()
        self.client = Modeled(service, self.fake)

    def jobs(self, _service: str, _arn: str) -> Modeled:
        """Return the client."""
        return self.client


def running(service: str, job: str = "", fence: int = 1) -> Task:
    """Return a task that was just claimed, or that waits for its job."""
    return task(target=TARGETS[service], state=State.RUNNING, fence=fence, job=job or None)


@pytest.mark.parametrize("service", TARGETS)
def test_a_job_is_started_once_read_and_stopped(service: str) -> None:
    """If a later claim for the task starts the job again, the service returns the first job."""
    services = Services(service)
    runner = JobRunner(services)  # type: ignore[arg-type]  # stands for the clients
    started = runner.start(TARGETS[service], running(service), b'{"attempt": 1}')
    assert isinstance(started, Deferred)
    assert runner.start(TARGETS[service], running(service, fence=2), b'{"attempt": 2}') == started
    waiting = running(service, started.job)
    assert runner.find(waiting) == started.job
    assert runner.ending(waiting) is None
    runner.stop(waiting)
    ending = runner.ending(waiting)
    assert isinstance(ending, Failed)
    assert (ending.error.type, ending.retriable) == (JOB_STOPPED, False)


ADDED: dict[str, dict[str, object]] = {
    "ecs": {
        "launchType": "FARGATE",
        "overrides.cpu": "256",
        "overrides.containerOverrides.0.environment.0.name": TASK_VARIABLE,
    },
    "batch": {
        "containerOverrides.command": ["sh"],
        "containerOverrides.environment.0.name": "A",
        "containerOverrides.environment.1.name": TASK_VARIABLE,
    },
    "codebuild": {
        "sourceVersion": "main",
        "environmentVariablesOverride.0.name": "A",
        "environmentVariablesOverride.2.name": TASK_VARIABLE,
    },
    "glue": {"WorkerType": "G.1X", "Arguments.--a": "1", "Arguments.--DUETIME_TASK": "{}"},
    "lambda": {"Payload": b"{}"},
}
"""Values in the requests of the next test, by their paths."""


@pytest.mark.parametrize("service", TARGETS)
def test_user_parameters_are_added_to_the_job_request(service: str) -> None:
    """The user's parameters are added to duetime's parameters; duetime's variables come last."""
    given = {
        "ecs": '{"launchType":"FARGATE","overrides":{"cpu":"256"}}',
        "batch": '{"containerOverrides":{"command":["sh"],"environment":[{"name":"A","value":"1"}]}}',
        "codebuild": '{"sourceVersion":"main","environmentVariablesOverride":[{"name":"A","value":"1"}]}',
        "glue": '{"WorkerType":"G.1X","NumberOfWorkers":2,"Arguments":{"--a":"1"}}',
        "lambda": "",
    }[service]
    services = Services(service)
    runner = JobRunner(services)  # type: ignore[arg-type]  # stands for the clients
    target = AwsTarget(**{**_fields(TARGETS[service]), "parameters": given})
    assert isinstance(runner.start(target, running(service), b"{}"), Deferred)
    (request,) = services.client.requests
    for path, added in ADDED[service].items():
        found: Any = request
        for name in path.split("."):
            found = found[int(name)] if isinstance(found, list) else found[name]
        assert found == added


def _fields(target: AwsTarget) -> dict[str, Any]:
    return {each.name: getattr(target, each.name) for each in fields(target)}


@pytest.mark.parametrize(
    ("service", "parameters"), [("batch", '{"containerOverrides":[1]}'), ("glue", '{"Arguments":7}')]
)
def test_invalid_job_parameters_fail_the_attempt_permanently(service: str, parameters: str) -> None:
    """Invalid parameters fail the attempt permanently, because neither retrying nor waiting would help."""
    runner = JobRunner(Services(service))  # type: ignore[arg-type]  # stands for the clients
    target = AwsTarget(**{**_fields(TARGETS[service]), "parameters": parameters})
    ending = runner.start(target, running(service), b"{}")
    assert isinstance(ending, Failed)
    assert not ending.retriable


@pytest.mark.parametrize("service", ["codebuild", "glue"])
def test_a_job_name_is_read_from_its_event_or_service(service: str) -> None:
    """A job's name is read from the job's event or requested from its service."""
    services = Services(service)
    runner = JobRunner(services)  # type: ignore[arg-type]  # stands for the clients
    runner.start(TARGETS[service], running(service), b"{}")
    (job,) = services.fake.jobs
    assert runner.name(tuple(services.fake.event(job))) == job_name(running(service))
    assert runner.name((service, "us-east-1", "report", "report:other")) == ""
    assert runner.name(("unknown", "us-east-1", "report", job)) == ""


def test_a_function_that_is_not_durable_fails_its_attempt() -> None:
    """A function that is not durable was invoked anyway, so its outcome is unknown and it is not invoked again."""
    services = Services("lambda")
    services.fake.invoke = lambda **_request: {"StatusCode": 202}
    runner = JobRunner(services)  # type: ignore[arg-type]  # stands for the clients
    ending = runner.start(TARGETS["lambda"], running("lambda"), b"{}")
    assert isinstance(ending, Failed)
    assert (ending.error.type, ending.retriable) == ("NoJob", False)


def test_a_build_that_is_not_listed_yet_is_not_started_again() -> None:
    """CodeBuild rejects a token reused with different parameters; this starts no second build and is not a failure."""
    services = Services("codebuild")

    def start_build(**_request: object) -> dict[str, Any]:
        raise services.fake.exceptions.make("InvalidInputException", "StartBuild", "Parameter mismatch for token")

    services.fake.start_build = start_build
    runner = JobRunner(services)  # type: ignore[arg-type]  # stands for the clients
    assert runner.start(TARGETS["codebuild"], running("codebuild", fence=2), b"{}") == Deferred()
