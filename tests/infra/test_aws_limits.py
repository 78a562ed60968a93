"""Tests that a deployment that AWS would refuse is already refused at synthesis, or cannot be defined at all."""

from __future__ import annotations

import json
from dataclasses import replace
from runpy import run_path
from typing import TYPE_CHECKING

import pytest

from duetime.domain.tasks.allowed_targets import HttpSecret
from duetime.environment_variables import Variable
from duetime.settings import Settings, with_settings_module
from duetime_cdk.aws_limits import LimitExceeded, split_variables, variables_size
from infra.environments import environment_named
from tests.infra.synthesis import Synthesis
from tests.parts import others_slow

if TYPE_CHECKING:
    from pathlib import Path

    from duetime_cdk.environments import Environment
    from duetime_cdk.layers.build import Layers

SETTINGS_MODULE = "duetime_settings"
DEV = environment_named("dev")
LONGEST = "a-type-whose-name-is-as-long-as-the-name-of-a-type-can-be-ok"
MANY = {
    f"{LONGEST}-{number:03}": ("123456789012:role/Workers-of-a-department-with-a-long-name",) for number in range(100)
}
NORMAL = "https://sqs.eu-west-1.amazonaws.com/123456789012/duetime-dev-QueuesNormal-ABC"


def variables_of(made: Synthesis, function: str) -> dict[str, str]:
    """Return a function's environment, with long strings for references, and the settings in its layer's module."""
    told = made.functions()[function]["Environment"]["Variables"]
    environ = {name: value if isinstance(value, str) else "x" * 150 for name, value in told.items()}
    assert sum(len(json.dumps(name)) + len(json.dumps(value)) + 2 for name, value in environ.items()) <= 4_096
    if SETTINGS_MODULE not in environ.values():
        return environ
    (layer,) = (each["Ref"] for each in made.functions()[function]["Layers"] if "Settings" in each["Ref"])
    key = made.template["Resources"][layer]["Properties"]["Content"]["S3Key"].removesuffix(".zip")
    module = run_path(str(made.folder / f"asset.{key}" / "python" / f"{SETTINGS_MODULE}.py"))
    return {**module["VARIABLES"], **environ}


def test_a_hundred_pulled_types_with_long_names_fit_into_every_function(layers: Layers, tmp_path: Path) -> None:
    """Settings that exceed 4,096 bytes are in a layer, where every function reads them."""
    made = Synthesis(replace(DEV, pulled_types=MANY), layers, tmp_path)
    named = {each["QueueName"] for each in made.properties("AWS::SQS::Queue").values() if "QueueName" in each}
    assert len(named) == 100
    assert max(map(len, named)) <= 80
    for function, body in made.functions().items():
        assert len(body["Layers"]) <= 5
        environ = variables_of(made, function)
        if Variable.PULLED_QUEUES in environ:
            settings = Settings({**environ, Variable.QUEUE_NORMAL: NORMAL})
            urls = settings.pulled_queue_urls
            assert urls.keys() == MANY.keys()
            assert {url.rpartition("/")[2] for url in urls.values()} == named
            assert {url.rpartition("/")[0] for url in urls.values()} == {NORMAL.rpartition("/")[0]}
    assert Settings(variables_of(made, "api")).pullers.by_type.keys() == MANY.keys()
    assert len(made.template["Resources"]) <= 500
    for role in made.of_type("AWS::IAM::Role").values():
        assert len(role.get("Properties", {}).get("ManagedPolicyArns", [])) <= 10


def test_small_settings_need_no_layer(every: Synthesis) -> None:
    """Small settings stay in the environment, where users look for them."""
    for function in every.functions():
        assert SETTINGS_MODULE not in variables_of(every, function).values()


def test_long_lists_of_secrets_and_targets_are_moved_to_a_layer(layers: Layers, tmp_path: Path) -> None:
    """Every setting that users can make long is moved to a layer, where its functions find it."""
    arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:a-secret-with-a-long-name-{:02}-AbCdEf"
    environment = replace(
        DEV,
        http_secrets={f"secret-{n}": HttpSecret(arn.format(n), hosts=(f"{n}.example.org",)) for n in range(30)},
        aws_targets=tuple(f"arn:aws:lambda:eu-west-1:123456789012:function:{LONGEST[:50]}-{n}" for n in range(40)),
        operators=tuple(f"123456789012:role/Operations-{n}" for n in range(20)),
        type_owners={f"team-{n}.*": (f"123456789012:role/Team{n}-*",) for n in range(100)},
        target_owners={f"arn:aws:*:team-{n}-*": (f"123456789012:role/Team{n}-*",) for n in range(100)},
    )
    made = Synthesis(environment, layers, tmp_path)
    for function in ("api", "worker", "trigger", "egress"):
        settings = Settings(variables_of(made, function))
        assert len(settings.http_secrets.by_name) == 30
        if function != "egress":
            reserved = (settings.type_owners.allow, settings.target_owners.allow)
            assert [
                allow(f"123456789012:role/Team{n}-a", name)
                for allow, name in zip(
                    reserved, ("team-99.a", "arn:aws:sqs:eu-west-1:123456789012:team-99-a"), strict=True
                )
                for n in (99, 9)
            ] == [True, False] * 2
    assert len(variables_of(made, "api")[Variable.AWS_TARGETS].split()) == 40


def test_settings_are_read_from_the_layer_and_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All settings are read from the layer unless the environment has them, and a missing module is an error."""
    (tmp_path / "settings_for_this_test.py").write_text(
        "VARIABLES = {'DUETIME_OPERATORS': 'ann', 'DUETIME_SHARDS': '9'}"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    environ: dict[str, str] = {Variable.SETTINGS_MODULE: "settings_for_this_test", Variable.SHARDS: "4"}
    found = Settings(with_settings_module(environ))
    assert (found.operators.include("ann"), found.shards) == (True, 4)
    with pytest.raises(ImportError):
        with_settings_module({Variable.SETTINGS_MODULE: "settings_that_no_layer_has"})


def test_the_error_for_variables_that_are_too_large_names_them() -> None:
    """The error for variables that are too large names the function, the size, the limit and the longest variables."""
    with pytest.raises(LimitExceeded, match=r"'api' would have 5\d{3} bytes.*4096.*DUETIME_CONSOLE_URL \(5000\)"):
        split_variables("api", {Variable.CONSOLE_URL: "x" * 5_000, Variable.OPERATORS: "y" * 5_000})
    kept, moved = split_variables("api", {Variable.PULLERS: "x" * 5_000, Variable.OPERATORS: "y"})
    assert (set(kept), set(moved)) == ({Variable.OPERATORS, Variable.SETTINGS_MODULE}, {Variable.PULLERS})
    assert variables_size(kept) < 100


@pytest.mark.parametrize(
    ("environment", "told"),
    others_slow(
        [
            (
                replace(DEV, pulled_types={f"type-{n}": ("*",) for n in range(200)}),
                "resources; CloudFormation allows 500.*`pulled_types`",
            ),
            (
                replace(
                    DEV,
                    aws_targets=tuple(
                        f"arn:aws:glue:eu-west-1:123456789012:job/{LONGEST}-{LONGEST}-{n:03}" for n in range(30)
                    ),
                ),
                "event pattern of .* EventBridge allows 2048.*`aws_targets`",
            ),
            (
                replace(
                    DEV,
                    aws_targets=tuple(
                        f"arn:aws:lambda:eu-west-1:123456789012:function:{LONGEST[:56]}-{n:04}" for n in range(600)
                    ),
                ),
                "the role .* would have .* IAM allows 61440.*`aws_targets`",
            ),
        ]
    ),
    ids=["resources", "pattern", "policies"],
)
def test_a_resource_that_is_too_large_is_rejected_before_a_deployment(
    environment: Environment, told: str, layers: Layers, tmp_path: Path
) -> None:
    """If a resource would be too large, the error names the resource, the limit and the setting."""
    with pytest.raises(LimitExceeded, match=told):
        Synthesis(environment, layers, tmp_path)
