from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from duetime.composition import Composition, Outside
from duetime.settings import Variable
from infra.environments import FunctionName
from layers.build import ROOT
from tests.infra.synthesis import referred

if TYPE_CHECKING:
    from pathlib import Path

    from tests.infra.synthesis import Synthesis

EVERYWHERE = {
    Variable.SERVICE_NAME,
    Variable.METRICS_NAMESPACE,
    Variable.LOG_LEVEL,
    Variable.TABLE,
    Variable.QUEUE_HIGH,
    Variable.QUEUE_NORMAL,
    Variable.QUEUE_LOW,
    Variable.SHARDS,
    Variable.LOOK_AHEAD_SECONDS,
    Variable.PRECISION,
}
USED = {
    "api": EVERYWHERE | {Variable.BUCKET, Variable.RETENTION_DAYS, Variable.AUTHENTICATION},
    "trigger": EVERYWHERE,
    "worker": EVERYWHERE
    | {Variable.BUCKET, Variable.RETENTION_DAYS, Variable.LEASE_SECONDS, Variable.HANDLERS, Variable.HTTP_ALLOW},
    "deadletter": EVERYWHERE | {Variable.BUCKET, Variable.RETENTION_DAYS},
}

PARTS = {
    "api": ("creating", "reading", "changing", "steering"),
    "trigger": ("dispatching",),
    "worker": ("working",),
    "deadletter": ("burying",),
}
"""What each function asks the composition root for."""


def code_of(synthesis: Synthesis, function: str) -> Path:
    """The folder that is uploaded as a function's code."""
    key: str = synthesis.functions()[function]["Code"]["S3Key"]
    return synthesis.folder / f"asset.{key.removesuffix('.zip')}"


@pytest.mark.parametrize(("function", "parts"), sorted(PARTS.items()))
def test_a_function_is_composed_from_the_variables_it_declares(
    every: Synthesis, function: str, parts: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that a function does asks for a variable that it is not given."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    declared = every.functions()[function]["Environment"]["Variables"]
    # What the template only refers to, names and addresses, is any text.
    environ = {name: value if isinstance(value, str) else "https://example.org/any" for name, value in declared.items()}
    composition = Composition(Outside(environ={**environ, Variable.HANDLERS: ""}))
    for part in (*parts, "queues", "telemetry"):
        assert getattr(composition, part)


def test_the_functions_are_the_four_doors(every: Synthesis) -> None:
    """There is one function for each name that the environments give a size to, and no other."""
    assert set(every.functions()) == {name.value for name in FunctionName} == set(USED)


def test_every_function_has_its_own_role(every: Synthesis) -> None:
    """No function can do what another one was granted, because no two share a role, or one with the tick."""
    roles = [referred(function["Role"]) for function in every.functions().values()]
    assert len(set(roles)) == len(roles) == len(every.of_type("AWS::IAM::Role")) - 1


def test_every_function_has_its_own_log_group_that_expires(every: Synthesis) -> None:
    """Logs of one function are found in one place, and no log is kept for ever."""
    groups = every.properties("AWS::Logs::LogGroup")
    used = [referred(function["LoggingConfig"]["LogGroup"]) for function in every.functions().values()]
    assert len(set(used)) == len(used)
    assert set(used) < set(groups)
    assert all(group["RetentionInDays"] > 0 for group in groups.values())


@pytest.mark.parametrize("function", USED)
def test_a_function_is_told_what_it_uses_and_no_more(every: Synthesis, function: str) -> None:
    """The declared environment of a function is exactly the set of variables that it reads."""
    declared = every.functions()[function]["Environment"]["Variables"]
    assert set(declared) == {variable.value for variable in USED[function]}


def test_settings_reach_the_functions(every: Synthesis) -> None:
    """What the environment's settings say is what the functions are told."""
    environment = every.environment
    told = every.functions()["worker"]["Environment"]["Variables"]
    assert told[Variable.SHARDS.value] == str(environment.shards)
    assert told[Variable.PRECISION.value] == environment.precision.value
    assert told[Variable.LEASE_SECONDS.value] == str(environment.lease_seconds)
    assert told[Variable.HANDLERS.value] == environment.handlers_package
    assert told[Variable.HTTP_ALLOW.value].split(",") == list(environment.http_allow or [""])
    told = every.functions()["api"]["Environment"]["Variables"]
    assert told[Variable.AUTHENTICATION.value] == environment.authentication.value


def test_cloud_functions_run_on_the_newest_python_on_arm(cloud: Synthesis) -> None:
    """Functions and layers are for Python 3.14 on arm64, all of them."""
    for function in cloud.functions().values():
        assert (function["Runtime"], function["Architectures"]) == ("python3.14", ["arm64"])
    for layer in cloud.properties("AWS::Lambda::LayerVersion").values():
        assert layer["CompatibleRuntimes"] == ["python3.14"]
        assert layer["CompatibleArchitectures"] == ["arm64"]


def test_only_the_worker_carries_the_users_handlers(every: Synthesis) -> None:
    """Every function has our two layers, and the worker alone the third, over them."""
    layers = {name: [referred(layer) for layer in body["Layers"]] for name, body in every.functions().items()}
    assert layers["api"] == layers["trigger"] == layers["deadletter"] == layers["worker"][:-1]
    assert len(layers["worker"]) == len(every.of_type("AWS::Lambda::LayerVersion"))


@pytest.mark.parametrize("function", ["trigger", "worker", "deadletter"])
def test_retries_through_a_queue_are_no_runaway_loop(every: Synthesis, function: str) -> None:
    """Lambda does not stop a function that sends to the queue it is woken by after sixteen hops."""
    assert every.functions()[function]["RecursiveLoop"] == "Allow"


def test_functions_are_traced_and_log_json_at_their_level(every: Synthesis) -> None:
    """Tracing is on, and Lambda is told the same log level as the function: its own would win."""
    for function in every.functions().values():
        assert function["TracingConfig"] == {"Mode": "Active"}
        assert function["LoggingConfig"]["LogFormat"] == "JSON"
        level = function["Environment"]["Variables"][Variable.LOG_LEVEL.value]
        assert function["LoggingConfig"]["ApplicationLogLevel"] == level


def test_a_failed_tick_is_not_repeated(every: Synthesis) -> None:
    """The next tick catches up, so Lambda does not invoke the trigger again for one that failed."""
    (config,) = every.properties("AWS::Lambda::EventInvokeConfig").values()
    assert every.function_named(config["FunctionName"]) == "trigger"
    assert config["MaximumRetryAttempts"] == 0


@pytest.mark.parametrize("function", USED)
def test_a_function_is_uploaded_with_the_handler_it_names(dev: Synthesis, function: str) -> None:
    """The handler's file is in the uploaded code, defines the function that is called, and is ours."""
    *modules, name = dev.functions()[function]["Handler"].split(".")
    path = code_of(dev, function).joinpath(*modules).with_suffix(".py")
    defined = {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}
    assert name in defined
    assert path.read_bytes() == (ROOT / "functions" / function / "handler.py").read_bytes()


@pytest.mark.parametrize("function", USED)
def test_a_function_is_uploaded_without_the_others(dev: Synthesis, function: str) -> None:
    """The code of a function is its own folder and nothing else, without bytecode of this machine."""
    code = code_of(dev, function)
    assert [path.name for path in code.iterdir()] == [function]
    assert not list(code.rglob("__pycache__"))
