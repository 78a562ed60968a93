"""Tests the deployed state machine that runs topologies."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.limits import MAX_DEADLINE_SECONDS, MAX_NODES
from duetime.domain.operating_parameters import TOPOLOGY_MARGIN, WAITS_AT_ONCE
from duetime.domain.times import SECOND
from duetime.environment_variables import LIVE
from duetime_testing.simulation.state_machine import DEFINITION
from infra import ROOT
from tests.infra.conftest import EVERY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.infra.synthesis import Synthesis

HISTORY = 25_000
"""The maximum number of events in an execution (Source: Step Functions Developer Guide, quotas)."""
EVENTS_OF_A_NODE = 8
EVENTS_OF_A_CHILD = 6
INLINE = 40
CONCURRENCY = 1_000
"""An account's default limit of concurrent invocations (Source: AWS Lambda quotas)."""

LONGEST_DEFINITION = 1_048_576
"""The maximum size of a definition in bytes (Source: Step Functions Developer Guide, quotas)."""
FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:topology"
VALIDATOR = ROOT / "node_modules" / "asl-validator" / "dist" / "bin" / "asl-validator.js"


def definition(function: str) -> dict[str, Any]:
    """Return the definition for the function with this ARN."""
    from duetime_cdk.topology_state_machine import definition as defined

    return defined(function)


def deployed_text(synthesis: Synthesis) -> str:
    """Return the definition in a template, with an ARN in place of each reference."""
    (machine,) = synthesis.properties("AWS::StepFunctions::StateMachine").values()
    _, parts = machine["DefinitionString"]["Fn::Join"]
    return "".join(part if isinstance(part, str) else FUNCTION for part in parts)


def test_the_log_of_executions_has_no_task_tokens(every: Synthesis) -> None:
    """The log has no execution data, because someone who reads a node's token in the log could end the node."""
    (machine,) = every.properties("AWS::StepFunctions::StateMachine").values()
    assert machine["LoggingConfiguration"]["IncludeExecutionData"] is False
    assert machine["LoggingConfiguration"]["Level"] == "ALL"


def test_services_assume_roles_for_this_account_only(every: Synthesis) -> None:
    """Roles are bound to the account, except those for Lambda, which sends no source when it assumes a role."""
    statements = [
        statement
        for role in every.properties("AWS::IAM::Role").values()
        for statement in role["AssumeRolePolicyDocument"]["Statement"]
    ]
    of_others = [each for each in statements if each["Principal"] != {"Service": "lambda.amazonaws.com"}]
    assert of_others
    assert all(
        each["Condition"]["StringEquals"] == {"aws:SourceAccount": {"Ref": "AWS::AccountId"}} for each in of_others
    )


def validated(definitions: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the validator for some definitions."""
    command = ["node", str(VALIDATOR)]
    for number, text in enumerate(definitions):
        path = folder / f"{number}.asl.json"
        path.write_text(text)
        command += ["--json-path", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (the pinned tool)


@pytest.mark.slow
def test_step_functions_accepts_the_definition_of_every_environment(
    synthesis_of: Callable[[str], Synthesis], tmp_path: Path
) -> None:
    """The definitions follow the rules that AWS checks when it creates a machine, including unique names of states."""
    definitions = [deployed_text(synthesis_of(name)) for name in EVERY]
    done = validated(definitions, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert max(len(text.encode()) for text in definitions) < LONGEST_DEFINITION


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        ({"StartAt": "Missing"}, "MISSING_TRANSITION_TARGET"),
        ({"TimeoutSeconds": "soon"}, "SCHEMA_VALIDATION_FAILED"),
    ],
)
def test_the_validator_finds_a_mistake_in_a_definition(broken: dict[str, Any], rule: str, tmp_path: Path) -> None:
    """The same check reports a mistake in a definition, which shows that the check runs."""
    done = validated([json.dumps({**definition(FUNCTION), **broken})], tmp_path)
    assert done.returncode == 1
    assert rule in done.stdout + done.stderr


def test_every_state_name_is_unique() -> None:
    """A state's name is unique in the complete machine, including its maps."""
    names = names_of(definition(FUNCTION))
    assert len(set(names)) == len(names)


def names_of(machine: dict[str, Any]) -> list[str]:
    """Return the names of all states of a machine, including those in maps."""
    inner = [state["ItemProcessor"] for state in machine["States"].values() if "ItemProcessor" in state]
    return [*machine["States"], *(name for each in inner for name in names_of(each))]


def test_an_execution_can_run_as_long_as_the_longest_topology(every: Synthesis) -> None:
    """The definition has a comment and a timeout, because the CDK adds neither to a machine that is given as text."""
    deployed = json.loads(deployed_text(every))
    assert deployed["TimeoutSeconds"] >= MAX_DEADLINE_SECONDS + TOPOLOGY_MARGIN // SECOND
    assert deployed["Comment"]


def test_maps_stay_within_their_concurrency_limits() -> None:
    """An inline map runs at most 40 iterations at once, and additional nodes run in separate executions.

    All executions together start at most half of an account's concurrent invocations, because workers need the other
    half.
    """
    states = definition("arn")["States"]
    chunk = states["ManyNodes"]["ItemProcessor"]["States"]["Chunk"]
    for inline in (states["Nodes"], chunk):
        assert inline["ItemProcessor"]["ProcessorConfig"] == {"Mode": "INLINE"}
        assert inline["MaxConcurrency"] == WAITS_AT_ONCE == INLINE
    assert states["ManyNodes"]["ItemProcessor"]["ProcessorConfig"]["Mode"] == "DISTRIBUTED"
    assert states["ManyNodes"]["MaxConcurrency"] * INLINE < CONCURRENCY / 2


def test_the_largest_graph_fits_into_the_history() -> None:
    """The parent execution and each child execution have far fewer than 25,000 events."""
    assert MAX_NODES / WAITS_AT_ONCE * EVENTS_OF_A_CHILD < HISTORY / 10
    assert WAITS_AT_ONCE * EVENTS_OF_A_NODE < HISTORY / 10


def test_every_wait_has_a_heartbeat_and_a_timeout() -> None:
    """If a token is lost, the heartbeat times out and the machine waits for the node again."""
    nodes = definition("arn")["States"]["Nodes"]["ItemProcessor"]["States"]["Node"]
    assert nodes["HeartbeatSeconds"] < nodes["TimeoutSeconds"]
    assert nodes["Retry"][0]["ErrorEquals"] == ["States.HeartbeatTimeout"]
    assert nodes["Resource"].endswith(".waitForTaskToken")


def test_the_machine_is_logged(every: Synthesis) -> None:
    """The machine is a Standard machine with its execution log turned on."""
    ((_, machine),) = every.properties("AWS::StepFunctions::StateMachine").items()
    assert machine["StateMachineType"] == "STANDARD"
    assert machine["LoggingConfiguration"]["Level"] == "ALL"


def test_the_deployed_state_machine_is_the_tested_one(every: Synthesis) -> None:
    """The template has the definition with the ARN of the function's alias."""
    invoked = FUNCTION if every.environment.name == "local" else f"{FUNCTION}:{LIVE}"
    assert json.loads(deployed_text(every)) == definition(invoked)


def test_the_simulated_state_machine_equals_the_deployed_one() -> None:
    """Simulations use a copy that needs no CDK; `python -m tests.simulation.topology_definition` writes it."""
    assert json.loads(DEFINITION.read_text(encoding="utf-8")) == definition("function")
