from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from duetime.domain.task import Priority
from infra.environments import ENVIRONMENTS, Environment, UnknownEnvironment, environment_named
from layers.build import ROOT

if TYPE_CHECKING:
    from tests.infra.synthesis import Synthesis


def test_unknown_environment_is_refused_by_name() -> None:
    """A misspelt environment is refused, and the answer says which ones there are."""
    with pytest.raises(UnknownEnvironment, match=r"'pord'.*dev, local, prod, staging"):
        environment_named("pord")


@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=lambda environment: environment.name)
def test_settings_are_within_what_aws_allows(environment: Environment) -> None:
    """Concurrency caps, timeouts and handlers of every environment would be accepted by a deployment."""
    assert all(2 <= environment.concurrency[priority] <= 1000 for priority in Priority)
    assert all(0 < size.timeout_seconds <= 900 for size in environment.sizes.values())
    assert all(128 <= size.memory_mb <= 10_240 for size in environment.sizes.values())
    handlers = ROOT / environment.handlers_folder
    assert (handlers / environment.handlers_package / "__init__.py").is_file()
    assert (handlers / "grants.json").is_file()


def test_every_setting_is_documented() -> None:
    """Each field of an environment is followed by a sentence that says what it sets."""
    source = Path(ENVIRONMENTS["dev"].__class__.__module__.replace(".", "/")).with_suffix(".py")
    lines = (ROOT / source).read_text().splitlines()
    undocumented = [
        field.name
        for field in fields(Environment)
        if not any(
            line.startswith(f"    {field.name}: ") and _documented(lines[number + 1 :])
            for number, line in enumerate(lines)
        )
    ]
    assert undocumented == []


def _documented(following: list[str]) -> bool:
    """Whether the next line that is not a default's closing begins a docstring."""
    first = next(line for line in following if not line.startswith("        ") and line.strip() != ")")
    return first.startswith('    """')


def test_stack_says_where_its_parts_are(every: Synthesis) -> None:
    """The outputs name what a client and the local stack look for."""
    assert {
        "ApiUrl",
        "ApiId",
        "TableName",
        "BucketName",
        "QueueUrlHigh",
        "QueueUrlNormal",
        "QueueUrlLow",
        "DeadLetterQueueUrl",
        "ApiFunctionName",
        "TriggerFunctionName",
        "WorkerFunctionName",
        "DeadletterFunctionName",
    } <= set(every.template["Outputs"])


def test_stacks_of_two_environments_do_not_meet(every: Synthesis) -> None:
    """No resource but the API has a fixed name, and that one carries its environment's, so that two fit an account."""
    named = {
        value
        for body in every.template["Resources"].values()
        for key, value in body.get("Properties", {}).items()
        if key in {"Name", "TableName", "BucketName", "QueueName", "FunctionName", "RoleName", "LogGroupName"}
        if isinstance(value, str)
    }
    assert named <= {f"duetime-{every.environment.name}"}
