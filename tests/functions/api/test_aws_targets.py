from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.environment_variables import Variable

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.functions.api.gateway import Gateway

ALLOWED = {"kind": "sqs", "arn": "arn:aws:sqs:eu-west-1:123456789012:reports-daily"}
FORBIDDEN = {"kind": "sqs", "arn": "arn:aws:sqs:eu-west-1:123456789012:invoices"}
REASON = "is not among the resources that the settings let tasks call"


@pytest.fixture
def calling(environ: dict[str, str], compose: Callable[[], None], api: Gateway) -> Gateway:
    """A gateway to a deployment whose tasks may send messages to the queues for reports."""
    environ[Variable.AWS_TARGETS] = (
        "arn:aws:sqs:eu-west-1:123456789012:reports-* arn:aws:lambda:eu-west-1:123456789012:*"
    )
    compose()
    return api


def test_a_target_that_the_settings_allow_is_accepted(calling: Gateway) -> None:
    """A target that the settings allow is accepted, and the response shows the target as given."""
    created = calling.send("POST", "/v1/tasks", {"type": "report", "target": ALLOWED})
    assert (created.status, created.body["target"]) == (201, ALLOWED)


@pytest.mark.parametrize("target", [FORBIDDEN, {"kind": "sns", "arn": "arn:aws:sns:eu-west-1:123456789012:reports-a"}])
def test_a_target_that_the_settings_do_not_allow_is_rejected(calling: Gateway, target: dict[str, str]) -> None:
    """A target that the settings do not allow is refused, the error names its field, and no task is created."""
    answer = calling.send("POST", "/v1/tasks", {"type": "report", "target": target})
    assert (answer.status, answer.faults) == (422, {"target.arn": REASON})
    assert calling.send("GET", "/v1/tasks").body["tasks"] == []


def test_tasks_may_not_call_aws_resources_by_default(api: Gateway) -> None:
    """By default, tasks may not call any AWS resource."""
    assert api.send("POST", "/v1/tasks", {"type": "report", "target": ALLOWED}).faults == {"target.arn": REASON}


def test_a_forbidden_target_in_a_batch_is_rejected_with_the_tasks_index(calling: Gateway) -> None:
    """A forbidden target in a batch is refused with the task's index, and the other tasks are created."""
    tasks = [{"type": "report", "target": target} for target in (ALLOWED, FORBIDDEN)]
    created, refused = calling.send("POST", "/v1/tasks/batch", {"tasks": tasks}).body["results"]
    assert created["status"] == 201
    assert refused["problem"]["errors"] == [{"field": "tasks[1].target.arn", "reason": REASON, "code": "not_allowed"}]


def test_a_change_to_a_forbidden_target_is_rejected(calling: Gateway) -> None:
    """A change to a forbidden target is refused, and the task does not change."""
    created = calling.send("POST", "/v1/tasks", {"type": "report", "target": ALLOWED, "delay_seconds": 600})
    path = created.location
    assert calling.send("PATCH", path, {"target": FORBIDDEN}).faults == {"target.arn": REASON}
    assert calling.send("GET", path).body == created.body


@pytest.mark.parametrize(
    "target", [ALLOWED, {"kind": "lambda", "arn": "arn:aws:lambda:eu-west-1:123456789012:function:a"}]
)
def test_rollback_on_failure_is_rejected_for_aws_targets(calling: Gateway, target: dict[str, Any]) -> None:
    """`rollback_on_failure` is refused for AWS targets."""
    answer = calling.send("POST", "/v1/tasks", {"type": "report", "target": target, "rollback_on_failure": True})
    assert list(answer.faults) == ["rollback_on_failure"]
