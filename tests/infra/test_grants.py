from __future__ import annotations

import json
import string
from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.environment_variables import Variable
from infra.environments import environment_named
from tests import grants
from tests.infra.policies import policies, polled, synthesised
from tests.infra.synthesis import Synthesis, as_list, referred

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from duetime_cdk.layers.build import Layers


MONITORING = ("trigger", "lambda:InvokeFunction", grants.function("egress"))
"""The trigger's grant that exists only if the settings name a monitor outside AWS."""

PACKAGED = ("worker", "lambda:InvokeFunction", grants.function("handlers"))
"""The worker's grant that exists only if some handlers have separate functions."""

SENDING = ("egress", "secretsmanager:GetSecretValue", grants.SENT_SECRET)
"""The egress function's grant that exists only if HTTP targets may be called with a secret."""


def actions_of(synthesis: Synthesis, function: str) -> set[str]:
    """Return all actions that a function's role allows."""
    return {action for statement in synthesis.statements_of(function) for action in as_list(statement["Action"])}


def test_the_stored_policies_equal_the_synthesized_policies(tmp_path: Path) -> None:
    """The file that the tests use has the deployed policies; run `python -m tests.grants` if this test fails."""
    assert json.loads(grants.KEPT.read_text()) == synthesised(tmp_path)


def test_no_environment_grants_more_than_the_tested_environment(every: Synthesis) -> None:
    """Without an intake, an archive, pulled types or a monitor, no function has the corresponding grants."""
    kept = {
        (name, action, each) for name, of in grants.granted().items() for action, all_ in of.items() for each in all_
    }
    found = {
        (name, action, each) for name, of in policies(every).items() for action, all_ in of.items() for each in all_
    }
    assert found <= kept
    lacking = {"intake", "archive", "attempts", "handlers", "authorizer"} - every.functions().keys()
    pulled = set() if every.environment.pulled_types else {grants.queue("pulled")}
    buses = set() if every.environment.event_bus else {"events:PutEvents"}
    unmonitored = set() if every.environment.heartbeat_url else {MONITORING}
    unsent = set() if every.environment.http_secrets else {SENDING}
    archived = set() if every.environment.archive_days else {use for use in kept if use[2].startswith(grants.ARCHIVE)}
    packaged = set() if every.environment.handlers_packages else {PACKAGED}
    left = kept - found - unmonitored - unsent - packaged - archived
    assert {use for use in left if use[0] not in lacking and use[2] not in pulled and use[1] not in buses} == set()


def test_each_queue_function_has_the_grants_that_lambda_requires(every: Synthesis) -> None:
    """The function of each mapping may receive, delete and count the messages on the mapping's queue."""
    for name, arn in polled(every):
        assert name in grants.POLLED
        assert all(arn in policies(every)[name][action] for action in grants.POLLING)


def test_a_grant_that_nothing_uses_is_found() -> None:
    """`tests/conftest.py` uses this check for grants that the complete test suite has not used."""
    everything = {
        (name, action, pattern.replace("*", "any"))
        for name, of in grants.granted().items()
        for action, patterns in of.items()
        for pattern in patterns
    }
    one = ("topology", "dynamodb:DeleteItem", grants.TABLE)
    assert grants.unused(everything) == []
    assert grants.unused(everything - {one}) == [one]


def test_the_state_machine_can_run_a_distributed_map(every: Synthesis) -> None:
    """The machine may start, monitor and stop its own executions, as in the Developer Guide's example policy."""
    (machine,) = every.of_type("AWS::StepFunctions::StateMachine").values()
    statements = every.statements()[referred(machine["Properties"]["RoleArn"])]
    granted = {action for one in statements for action in as_list(one["Action"])}
    assert {"states:StartExecution", "states:DescribeExecution", "states:StopExecution"} <= granted
    assert "lambda:InvokeFunction" in granted


def test_the_api_receives_only_from_queues_of_pulled_types(synthesis_of: Callable[[str], Synthesis]) -> None:
    """Pull workers have no access to the queues of worker functions."""
    local = synthesis_of("local")
    named = {
        referred(resource)
        for statement in local.statements_of("api")
        if "sqs:ReceiveMessage" in as_list(statement["Action"])
        for resource in as_list(statement["Resource"])
    }
    mapped = {referred(each["EventSourceArn"]) for each in local.properties("AWS::Lambda::EventSourceMapping").values()}
    told = local.functions()["intake"]["Environment"]["Variables"]
    rejects = referred(told[Variable.INTAKE_REJECTS.value])
    lost = {id_ for id_ in local.properties("AWS::SQS::Queue") if "Lost" in id_}
    assert named == set(local.properties("AWS::SQS::Queue")) - mapped - {rejects} - lost
    assert len(named) == len(local.environment.pulled_types) == 1


def test_no_grant_has_a_wildcard_action(every: Synthesis) -> None:
    """No grant has a wildcard in its actions, because a wildcard would include new AWS actions."""
    statements = [statement for granted in every.statements().values() for statement in granted]
    assert statements
    for statement in statements:
        assert statement["Effect"] == "Allow"
        assert not [action for action in as_list(statement["Action"]) if "*" in action]


def test_only_grants_without_resource_support_have_a_wildcard_resource(every: Synthesis) -> None:
    """Every grant names its resource, except those for X-Ray and log delivery, which have no resources."""
    for granted in every.statements().values():
        for statement in granted:
            if "*" in as_list(statement["Resource"]):
                assert {action.split(":")[0] for action in as_list(statement["Action"])} <= {"xray", "logs"}


def test_only_the_worker_and_the_api_can_invoke_the_egress(every: Synthesis) -> None:
    """The API and worker may invoke the egress, the trigger itself, and five functions may start bulk operations.

    Handlers in the worker call the API directly; handlers in packages call it through the attempts function.
    """
    may = {
        "api": {"egress", "bulk"},
        "worker": {"egress", "bulk", "api"},
        "trigger": {"trigger", "bulk"},
        "topology": {"bulk"},
        "intake": {"bulk"},
        "handlers": {"attempts"},
        "attempts": {"api"},
    }
    if every.environment.handlers_packages:
        may["worker"].add("handlers")
    for caller in every.functions():
        invoked = [one for one in every.statements_of(caller) if "lambda:InvokeFunction" in as_list(one["Action"])]
        named = {every.function_named(resource) for one in invoked for resource in as_list(one["Resource"])}
        assert named == may.get(caller, set())


def test_only_the_egress_and_the_api_can_read_the_signing_secret(every: Synthesis) -> None:
    """AWS generates one secret of 64 letters and digits, which receivers decode as the base64 form of 48 bytes."""
    ((id_, secret),) = every.properties("AWS::SecretsManager::Secret").items()
    generated = secret["GenerateSecretString"]
    assert (generated["ExcludePunctuation"], generated["IncludeSpace"], generated["PasswordLength"]) == (
        True,
        False,
        64,
    )
    assert set(generated["ExcludeCharacters"]) == set(string.punctuation)
    assert "SecretString" not in secret
    readers = {
        function
        for function in every.functions()
        for statement in every.statements_of(function)
        if statement["Action"] == "secretsmanager:GetSecretValue"
    }
    assert readers == {"egress", "api"}
    for reader in readers:
        (statement,) = [one for one in every.statements_of(reader) if "secretsmanager" in str(one["Action"])]
        assert statement["Resource"] == {"Ref": id_}


def test_no_function_on_the_path_of_a_task_reads_indexes(every: Synthesis) -> None:
    """Only the API, bulk operations and the stream's reader read the lists of an owner."""
    of_indexes = {
        function: {
            action
            for statement in every.statements_of(function)
            if "/index/" in json.dumps(statement["Resource"])
            for action in as_list(statement["Action"])
        }
        for function in every.functions()
    }
    for reader in ("api", "bulk", "broadcast"):
        assert of_indexes.pop(reader) == {"dynamodb:Query"}
    assert not any(of_indexes.values())


def test_no_role_has_a_managed_policy(every: Synthesis) -> None:
    """A role's permissions are defined in this project and not in an AWS managed policy, which AWS can change."""
    for role in every.properties("AWS::IAM::Role").values():
        assert "ManagedPolicyArns" not in role


def test_grants_of_the_users_handlers_are_added_only_to_the_worker(layers: Layers, tmp_path: Path) -> None:
    """A statement in the handlers' `grants.json` is added only to the worker's role."""
    statement = {"Effect": "Allow", "Action": "ses:SendEmail", "Resource": "arn:aws:ses:eu-west-1:1:identity/x"}
    (tmp_path / "grants.json").write_text(json.dumps([statement]))
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "__init__.py").touch()
    environment = replace(environment_named("dev"), handlers_folder=str(tmp_path))
    synthesis = Synthesis(environment, layers, tmp_path / "out")
    assert {name for name in synthesis.functions() if "ses:SendEmail" in actions_of(synthesis, name)} == {"worker"}
    assert statement in synthesis.statements_of("worker")
