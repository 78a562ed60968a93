from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from duetime.environment_variables import Variable
from duetime_cdk.environments import UnsafeEnvironment
from infra.environments import environment_named
from tests.infra.synthesis import Synthesis, add_stack, as_list, new_app

if TYPE_CHECKING:
    from pathlib import Path

    from duetime_cdk.layers.build import Layers

PLACE = "eu-west-1:123456789012"
PATTERNS = {
    "lambda:InvokeFunction": f"arn:aws:lambda:{PLACE}:function:report-*",
    "sqs:SendMessage": f"arn:aws:sqs:{PLACE}:reports",
    "sns:Publish": f"arn:aws:sns:*:{PLACE.split(':')[1]}:reports-?",
    "events:PutEvents": f"arn:aws:events:{PLACE}:event-bus/default",
    "states:StartExecution": f"arn:aws:states:{PLACE}:stateMachine:report",
}
SETTINGS = replace(environment_named("prod"), aws_targets=tuple(PATTERNS.values()))


@pytest.fixture(scope="module")
def calling(layers: Layers, tmp_path_factory: pytest.TempPathFactory) -> Synthesis:
    """A deployment whose tasks may call a resource of each service."""
    return Synthesis(SETTINGS, layers, tmp_path_factory.mktemp("calling"))


@pytest.mark.parametrize(("action", "pattern"), PATTERNS.items())
def test_the_worker_alone_may_call_what_the_settings_name(calling: Synthesis, action: str, pattern: str) -> None:
    """The service's one action, on the very pattern; nobody else has it on that."""
    granted = {
        function
        for function in calling.functions()
        for statement in calling.statements_of(function)
        if pattern in as_list(statement["Resource"])
    }
    assert granted == {"worker"}
    (statement,) = [one for one in calling.statements_of("worker") if pattern in as_list(one["Resource"])]
    # The CDK writes it into one statement with what is granted of that action besides.
    assert as_list(statement["Action"]) == [action]
    assert [each for each in as_list(statement["Resource"]) if isinstance(each, str)] == [pattern]


def test_who_accepts_and_who_calls_know_the_patterns(calling: Synthesis) -> None:
    """The API refuses by them, and the worker again when it calls."""
    for function in ("api", "worker"):
        variables = calling.functions()[function]["Environment"]["Variables"]
        assert variables[Variable.AWS_TARGETS.value].split() == list(PATTERNS.values())


def test_nothing_may_be_called_that_no_setting_names(dev: Synthesis) -> None:
    """Without patterns there are no grants for any of the services, but for the state machine of our own."""
    actions = {action for one in dev.statements_of("worker") for action in as_list(one["Action"])}
    assert actions.isdisjoint({"sns:Publish", "events:PutEvents"})
    machines = [
        one["Resource"] for one in dev.statements_of("worker") if "states:StartExecution" in as_list(one["Action"])
    ]
    assert [set(machine) for machine in machines] == [{"Ref"}]


def test_security_rules_find_nothing_in_patterns_that_the_settings_name(layers: Layers, tmp_path: Path) -> None:
    """Their wildcards are acknowledged one by one."""
    from aws_cdk import Validations
    from cdk_nag import AwsSolutionsChecks

    app = new_app(tmp_path)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    add_stack(app, SETTINGS, layers)
    app.synth()


@pytest.mark.parametrize(
    "pattern",
    [
        "*",
        "arn:aws:*:eu-west-1:123456789012:reports",
        "arn:aws:s3:::reports",
        "arn:*:sqs:eu-west-1:123456789012:reports",
        "arn:aws:sqs:eu-west-1:*:reports",
        "arn:aws:sqs:eu-west-1:123456789012:",
        "arn:aws:sqs:eu-west-1:123456789012:re ports",
    ],
)
def test_a_pattern_names_its_service_and_its_account(pattern: str) -> None:
    """A wildcard for either would open other services, or accounts of strangers."""
    with pytest.raises(UnsafeEnvironment, match="no ARN of a function"):
        replace(SETTINGS, aws_targets=(pattern,))
