from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from infra.environments import environment_named
from tests.infra.synthesis import Synthesis, as_list

if TYPE_CHECKING:
    from pathlib import Path

    from layers.build import Layers

OBSERVED = {"logs:CreateLogStream", "logs:PutLogEvents", "xray:PutTelemetryRecords", "xray:PutTraceSegments"}
MOVES = {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"}
READS = {"dynamodb:Query", "dynamodb:BatchGetItem"}
OBJECTS = {"s3:GetObject", "s3:PutObject", "s3:PutObjectTagging"}
CONSUMES = {
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibility",
    "sqs:GetQueueAttributes",
    "sqs:GetQueueUrl",
}
GRANTED = {
    "api": OBSERVED | MOVES | READS | OBJECTS | {"sqs:SendMessage"},
    "trigger": OBSERVED | MOVES | READS | {"sqs:SendMessage", "sqs:GetQueueAttributes", "lambda:InvokeFunction"},
    "worker": OBSERVED | MOVES | OBJECTS | CONSUMES | {"sqs:SendMessage"},
    "deadletter": OBSERVED | MOVES | CONSUMES | {"sqs:SendMessage"},
}


def actions_of(synthesis: Synthesis, function: str) -> set[str]:
    """All actions that a function's role is allowed."""
    return {action for statement in synthesis.statements_of(function) for action in as_list(statement["Action"])}


@pytest.mark.parametrize("function", GRANTED)
def test_a_function_may_do_what_it_does_and_no_more(every: Synthesis, function: str) -> None:
    """The actions granted to a function are the ones its code calls."""
    assert actions_of(every, function) == GRANTED[function]


def test_no_grant_has_a_wildcard_action(every: Synthesis) -> None:
    """Nothing is granted by a pattern of actions, so that a new action of AWS is not granted by itself."""
    statements = [statement for granted in every.statements().values() for statement in granted]
    assert statements
    for statement in statements:
        assert statement["Effect"] == "Allow"
        assert not [action for action in as_list(statement["Action"]) if "*" in action]


def test_only_tracing_is_granted_on_everything(every: Synthesis) -> None:
    """Every grant names its resource, but for X-Ray's, which knows none."""
    for granted in every.statements().values():
        for statement in granted:
            if "*" in as_list(statement["Resource"]):
                assert {action.split(":")[0] for action in as_list(statement["Action"])} == {"xray"}


def test_only_the_api_reads_indexes(every: Synthesis) -> None:
    """The lists of an owner are read by the API alone; the path of a task needs no index."""
    of_indexes = {
        function: {
            action
            for statement in every.statements_of(function)
            if "/index/" in json.dumps(statement["Resource"])
            for action in as_list(statement["Action"])
        }
        for function in GRANTED
    }
    assert of_indexes == {"api": {"dynamodb:Query"}, "trigger": set(), "worker": set(), "deadletter": set()}


def test_no_role_has_a_managed_policy(every: Synthesis) -> None:
    """What a role may do stands in this project, not in a policy that AWS changes."""
    for role in every.properties("AWS::IAM::Role").values():
        assert "ManagedPolicyArns" not in role


def test_grants_of_the_users_handlers_are_the_workers_alone(layers: Layers, tmp_path: Path) -> None:
    """A statement in the handlers' `grants.json` is given to the worker's role and to no other."""
    statement = {"Effect": "Allow", "Action": "ses:SendEmail", "Resource": "arn:aws:ses:eu-west-1:1:identity/x"}
    (tmp_path / "grants.json").write_text(json.dumps([statement]))
    environment = replace(environment_named("dev"), handlers_folder=str(tmp_path))
    synthesis = Synthesis(environment, layers, tmp_path / "out")
    assert {name for name in GRANTED if "ses:SendEmail" in actions_of(synthesis, name)} == {"worker"}
    assert statement in synthesis.statements_of("worker")
