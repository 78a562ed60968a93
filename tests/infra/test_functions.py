from __future__ import annotations

import ast
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from duetime.composition import Composition, Part, Platform
from duetime.composition.api import ApiKeyServices, BulkExecutorServices, FilterActionServices, IntakeServices
from duetime.composition.attempts import DeadLetterServices, LockServices, OutcomeServices, PullServices, SwitchServices
from duetime.composition.core import BulkServices, CoreServices, DispatchStatusServices, SummaryServices
from duetime.composition.invoked_functions import AttemptServices, HttpServices, PackageServices
from duetime.composition.schedules import ScheduleServices, TriggerServices
from duetime.composition.stream import ArchiveServices, BroadcastServices, WatchServices
from duetime.composition.tasks import TaskServices, TopologyServices
from duetime.composition.worker import WorkerServices
from duetime.environment_variables import Variable
from duetime_cdk.environments import FunctionName
from duetime_cdk.errors import UnsafeEnvironment
from duetime_cdk.layers.handler_import import MODULE
from infra import ROOT
from infra.environments import environment_named
from tests.infra.synthesis import Synthesis, as_list, referred

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from duetime_cdk.layers.build import Layers

OTLP_LAYER = "arn:aws:lambda:eu-west-1:901920570463:layer:aws-otel-python-arm64-ver-1-32-0:2"
MONITOR = "https://monitor.example.org/ping"
RETENTION = Variable.RETENTION_DAYS, Variable.RETENTION_DAYS_BY_TYPE
EVERYWHERE = {
    Variable.SERVICE_NAME,
    Variable.METRICS_NAMESPACE,
    Variable.LOG_LEVEL,
    Variable.TABLE,
    Variable.QUEUE_HIGH,
    Variable.QUEUE_NORMAL,
    Variable.QUEUE_LOW,
    Variable.PULLED_QUEUES,
    Variable.SHARDS,
    Variable.LOOK_AHEAD_SECONDS,
    Variable.PRECISION,
    Variable.METRIC_OWNERS,
    Variable.METRIC_TYPES,
}
OF_PACKAGES = {Variable.HANDLER_PACKAGES, Variable.HANDLER_TYPES}
"""Variables that the worker has only if some handlers have separate functions."""
LIVE = {Variable.SERVICE_NAME, Variable.METRICS_NAMESPACE, Variable.LOG_LEVEL, Variable.TABLE, Variable.WATCH_URL}
USED = {
    "api": EVERYWHERE
    | {Variable.BUCKET, *RETENTION, Variable.AUTHENTICATION, Variable.OPERATORS, Variable.EGRESS_FUNCTION}
    | {
        Variable.ADMINS,
        Variable.API_KEYS,
        Variable.TEAMS,
        Variable.TEAMS_CLAIM,
        Variable.PULLERS,
        Variable.AWS_TARGETS,
        Variable.TYPE_OWNERS,
        Variable.TARGET_OWNERS,
        Variable.HTTP_ALLOW,
        Variable.HTTP_SECRETS,
        Variable.BULK_FUNCTION,
        Variable.HANDLER_TYPES,
        Variable.INTAKE_OWNER,
        Variable.SIGNING_SECRET,
    }
    | {
        Variable.LONG_POLLS,
        Variable.QUOTAS,
        Variable.REQUESTS_PER_SECOND,
        Variable.SUMMARY_SPREAD,
        Variable.TASK_LISTS,
        Variable.WATCH_URL,
        Variable.API_URL,
    }
    | {Variable.TRACEBACKS, Variable.TRACES, Variable.PYDANTIC_PLUGINS}
    | {Variable.ARCHIVE_BUCKET, Variable.ARCHIVE_DAYS, Variable.ARCHIVE_DAYS_BY_TYPE}
    | {Variable.REDACT, Variable.AUDIT_LOG_GROUP, Variable.STACK, Variable.WORKER_LOGS},
    "trigger": EVERYWHERE
    | {
        Variable.QUOTAS,
        Variable.BUCKET,
        Variable.AWS_TARGETS,
        Variable.TYPE_OWNERS,
        Variable.TARGET_OWNERS,
        Variable.HTTP_ALLOW,
        Variable.HTTP_SECRETS,
        Variable.BULK_FUNCTION,
    },
    "worker": EVERYWHERE
    | {Variable.BUCKET, *RETENTION, Variable.LEASE_SECONDS, Variable.HANDLERS, Variable.EGRESS_FUNCTION}
    | {
        Variable.AWS_TARGETS,
        Variable.TYPE_OWNERS,
        Variable.TARGET_OWNERS,
        Variable.HTTP_ALLOW,
        Variable.HTTP_SECRETS,
        Variable.TOPOLOGY_MACHINE,
        Variable.API_FUNCTION,
        Variable.BULK_FUNCTION,
        Variable.TRACEBACKS,
        Variable.QUOTAS,
    },
    "topology": EVERYWHERE
    | {
        Variable.QUOTAS,
        Variable.BUCKET,
        *RETENTION,
        Variable.AWS_TARGETS,
        Variable.TYPE_OWNERS,
        Variable.TARGET_OWNERS,
        Variable.HTTP_ALLOW,
        Variable.HTTP_SECRETS,
        Variable.BULK_FUNCTION,
    },
    "bulk": EVERYWHERE
    | {Variable.QUOTAS}
    | {
        Variable.BUCKET,
        *RETENTION,
        Variable.AWS_TARGETS,
        Variable.TYPE_OWNERS,
        Variable.TARGET_OWNERS,
        Variable.HTTP_ALLOW,
        Variable.HTTP_SECRETS,
        Variable.ARCHIVE_BUCKET,
    },
    "deadletter": EVERYWHERE | {Variable.BUCKET, *RETENTION},
    "broadcast": LIVE
    | {Variable.TASK_LISTS, *RETENTION}
    | {Variable.SUMMARY_SPREAD, Variable.SUMMARY_RECOUNT_MEGABYTES, Variable.EVENT_BUS},
    "watch": LIVE | {Variable.PYDANTIC_PLUGINS},
    "console": (LIVE - {Variable.TABLE}) | {Variable.SIGN_IN, Variable.CODEC_ENDPOINT, Variable.UPLOAD_URL},
    "archive": {
        Variable.SERVICE_NAME,
        Variable.METRICS_NAMESPACE,
        Variable.LOG_LEVEL,
        Variable.TABLE,
        Variable.ARCHIVE_BUCKET,
        Variable.ARCHIVE_DAYS,
        Variable.REDACT,
        Variable.ARCHIVE_DAYS_BY_TYPE,
    },
    "authorizer": {
        Variable.SERVICE_NAME,
        Variable.METRICS_NAMESPACE,
        Variable.LOG_LEVEL,
        Variable.TABLE,
    },
    "egress": {
        Variable.SERVICE_NAME,
        Variable.METRICS_NAMESPACE,
        Variable.LOG_LEVEL,
        Variable.HTTP_ALLOW,
        Variable.HTTP_SECRETS,
        Variable.SIGNING_SECRET,
    },
    "handlers": {
        Variable.SERVICE_NAME,
        Variable.METRICS_NAMESPACE,
        Variable.LOG_LEVEL,
        Variable.HANDLERS,
        Variable.ATTEMPTS_FUNCTION,
    },
    "attempts": {
        Variable.SERVICE_NAME,
        Variable.METRICS_NAMESPACE,
        Variable.LOG_LEVEL,
        Variable.TABLE,
        Variable.BUCKET,
        *RETENTION,
        Variable.LEASE_SECONDS,
        Variable.API_FUNCTION,
    },
    "intake": EVERYWHERE
    | {
        Variable.BUCKET,
        Variable.AWS_TARGETS,
        Variable.TYPE_OWNERS,
        Variable.TARGET_OWNERS,
        Variable.HTTP_ALLOW,
        Variable.HTTP_SECRETS,
        Variable.HANDLER_TYPES,
    }
    | {Variable.INTAKE_OWNER, Variable.INTAKE_REJECTS, Variable.INTAKE_DETAIL_TYPE, Variable.INTAKE_QUEUES}
    | {Variable.BULK_FUNCTION, Variable.PYDANTIC_PLUGINS},
}

PARTS: dict[str, dict[type[Part], tuple[str, ...]]] = {
    "api": {
        TaskServices: ("creator", "reader", "updater", "control", "attempt_reports", "waiter", "target_queries"),
        PullServices: ("leases", "reports"),
        ScheduleServices: ("creator", "manager", "manual_runs", "preview", "calendar_manager"),
        FilterActionServices: ("requests",),
        BulkServices: ("operations",),
        TopologyServices: ("service",),
        LockServices: ("admin",),
        SwitchServices: ("admin",),
        CoreServices: ("stores", "tracebacks"),
        SummaryServices: ("reader",),
        DispatchStatusServices: ("reader",),
    },
    "trigger": {TriggerServices: ("dispatcher",)},
    "worker": {WorkerServices: ("batch_worker",), CoreServices: ("queues",)},
    "topology": {TopologyServices: ("state_machine_steps",)},
    "bulk": {BulkExecutorServices: ("executor",)},
    "deadletter": {DeadLetterServices: ("dead_letters",), CoreServices: ("queues",)},
    "broadcast": {BroadcastServices: ("broadcaster",)},
    "watch": {WatchServices: ("connections", "sender", "encoder")},
    "archive": {ArchiveServices: ("archiver",)},
    "egress": {HttpServices: ("egress",)},
    "authorizer": {ApiKeyServices: ("check",)},
    "handlers": {PackageServices: ("function",)},
    "attempts": {AttemptServices: ("function",), OutcomeServices: ("attempt_steps",)},
    "intake": {IntakeServices: ("event_tasks",)},
}
"""The parts of the composition that each function uses."""


def code_of(synthesis: Synthesis, function: str) -> Path:
    """Return the folder that is uploaded as a function's code."""
    key: str = synthesis.functions()[function]["Code"]["S3Key"]
    return synthesis.folder / f"asset.{key.removesuffix('.zip')}"


@pytest.mark.parametrize("function", sorted(PARTS))
def test_a_function_is_composed_from_the_variables_it_declares(
    every: Synthesis, function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A function needs no variable that its template does not set."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    declared = deployed(every, function)["Environment"]["Variables"]
    # References to names and addresses in the template can be any string.
    environ = {name: value if isinstance(value, str) else "https://example.org/any" for name, value in declared.items()}
    composition = Composition(Platform(environ={**environ, Variable.HANDLERS: "", Variable.HANDLER_PACKAGES: ""}))
    assert composition.telemetry
    for part, names in PARTS[function].items():
        for name in names:
            assert getattr(composition.part(part), name)


def test_every_function_that_sends_knows_the_queues_of_the_pulled_types(every: Synthesis) -> None:
    """Each declared type has a queue that functions know, and the API also knows who may pull the type."""
    functions = every.functions()
    pulled = every.environment.pulled_types
    named = {each["QueueName"] for each in every.properties("AWS::SQS::Queue").values() if "QueueName" in each}
    apart = {"egress", "broadcast", "watch", "archive", "console", "handlers", "attempts", "authorizer"}
    for name in functions.keys() - apart:
        told = json.loads(functions[name]["Environment"]["Variables"][Variable.PULLED_QUEUES.value])
        assert told.keys() == pulled.keys()
        assert set(told.values()) == named
    told = json.loads(functions["api"]["Environment"]["Variables"][Variable.PULLERS.value])
    assert told == {name: sorted(who) for name, who in pulled.items()}


def deployed(synthesis: Synthesis, function: str) -> dict[str, Any]:
    """Return a deployed function, or skip the test if the environment has no such function."""
    if function not in synthesis.functions():
        pytest.skip(f"no {function}")
    return synthesis.functions()[function]


def test_the_stack_has_a_function_for_each_name(every: Synthesis) -> None:
    """The stack has each named function; the intake, the archive and the console exist if the settings say so."""
    assert {name.value for name in FunctionName} == set(USED)
    environment = every.environment
    without = {
        "intake": not environment.intake_owner,
        "archive": not environment.archive_days,
        "console": not environment.console,
        "handlers": not environment.handlers_packages,
        "attempts": not environment.handlers_packages,
        "authorizer": not environment.api_keys,
    }
    assert set(every.functions()) == {name for name in USED if not without.get(name)}


def test_every_function_has_its_own_role(every: Synthesis) -> None:
    """No function shares its role with another function, a schedule or the state machine."""
    roles = [referred(function["Role"]) for function in every.functions().values()]
    assert len(set(roles)) == len(roles) == len(every.of_type("AWS::IAM::Role")) - 3


def test_every_function_has_its_own_log_group_that_expires(every: Synthesis) -> None:
    """Each function's logs are in a separate group, and no log is kept forever."""
    groups = every.properties("AWS::Logs::LogGroup")
    used = [referred(function["LoggingConfig"]["LogGroup"]) for function in every.functions().values()]
    assert len(set(used)) == len(used)
    assert set(used) < set(groups)
    assert all(group["RetentionInDays"] > 0 for group in groups.values())


def test_the_trigger_reaches_a_monitor_through_the_egress_function(layers: Layers, tmp_path: Path) -> None:
    """The trigger gets the monitor's address and may invoke the egress function; a plain HTTP address is refused."""
    synthesis = Synthesis(replace(environment_named("dev"), heartbeat_url=MONITOR), layers, tmp_path)
    told = synthesis.functions()["trigger"]["Environment"]["Variables"]
    assert told[Variable.HEARTBEAT_URL.value] == MONITOR
    assert synthesis.function_named(told[Variable.EGRESS_FUNCTION.value]) == "egress"
    invoked = [
        synthesis.function_named(resource)
        for statement in synthesis.statements_of("trigger")
        if statement["Action"] == "lambda:InvokeFunction"
        for resource in as_list(statement["Resource"])
    ]
    assert "egress" in invoked
    with pytest.raises(UnsafeEnvironment, match="https://"):
        replace(environment_named("dev"), heartbeat_url="http://monitor.example.org")


def test_spans_are_exported_by_a_layer_that_the_settings_name(layers: Layers, tmp_path: Path) -> None:
    """Each function has the layer and the endpoint; an endpoint alone, or plain HTTP not to localhost, is refused."""
    dev = environment_named("dev")
    settings = replace(dev, otlp_endpoint="http://localhost:4318", otlp_layer=OTLP_LAYER, xray=False)
    for function in Synthesis(settings, layers, tmp_path).functions().values():
        assert function["Layers"][0] == OTLP_LAYER
        assert function["Environment"]["Variables"][Variable.OTLP_ENDPOINT.value] == "http://localhost:4318"
        assert function.get("TracingConfig", {"Mode": "PassThrough"}) == {"Mode": "PassThrough"}
    with pytest.raises(UnsafeEnvironment, match="need each other"):
        replace(dev, otlp_endpoint="http://localhost:4318")
    with pytest.raises(UnsafeEnvironment, match="https://"):
        replace(dev, otlp_endpoint="http://collector.example.org", otlp_layer=OTLP_LAYER)


@pytest.mark.parametrize("function", USED)
def test_a_function_gets_exactly_the_variables_that_it_reads(every: Synthesis, function: str) -> None:
    """A function's environment has exactly the variables that the function reads."""
    declared = deployed(every, function)["Environment"]["Variables"]
    packaged = function == "worker" and every.environment.handlers_packages
    assert set(declared) == {variable.value for variable in USED[function] | (OF_PACKAGES if packaged else set())}


def test_settings_reach_the_functions(every: Synthesis) -> None:
    """The functions get the environment's settings."""
    environment = every.environment
    told = every.functions()["worker"]["Environment"]["Variables"]
    assert told[Variable.SHARDS.value] == str(environment.shards)
    assert told[Variable.PRECISION.value] == environment.precision.value
    assert told[Variable.LEASE_SECONDS.value] == str(environment.lease_seconds)
    assert told[Variable.TRACEBACKS.value] == ("keep" if environment.keep_tracebacks else "log")
    assert told[Variable.HANDLERS.value] == "example_handlers"
    told = every.functions()["egress"]["Environment"]["Variables"]
    assert told[Variable.HTTP_ALLOW.value].split(",") == list(environment.http_allow or [""])
    told = every.functions()["api"]["Environment"]["Variables"]
    assert told[Variable.AUTHENTICATION.value] == environment.authentication.value


def test_cloud_functions_run_on_the_newest_python_on_arm(cloud: Synthesis) -> None:
    """Functions and layers are for Python 3.14 on arm64."""
    for function in cloud.functions().values():
        assert (function["Runtime"], function["Architectures"]) == ("python3.14", ["arm64"])
    for layer in cloud.properties("AWS::Lambda::LayerVersion").values():
        assert layer["CompatibleRuntimes"] == ["python3.14"]
        assert layer["CompatibleArchitectures"] == ["arm64"]


def test_only_the_worker_contains_the_users_handlers(every: Synthesis) -> None:
    """Every function has duetime's layers, the worker has the handlers, and functions that create tasks have the types.

    A package's function has the package, and the worker knows the types of the package's handlers.
    """
    layers = {name: [referred(layer) for layer in body["Layers"]] for name, body in every.functions().items()}
    own, event_tasks = layers["trigger"], {"api", "intake"} & set(layers)
    assert len(own) == 2
    assert all(given[:2] == own for given in layers.values())
    packages = len(every.environment.handlers_packages)
    assert {name for name, given in layers.items() if len(given) > 2} - {"handlers"} == {"worker"} | event_tasks
    assert len(every.of_type("AWS::Lambda::LayerVersion")) == 4 + packages
    if packages:
        assert len(layers["handlers"]) == 3
        assert layers["handlers"][2] not in layers["worker"]
        assert layers["worker"][3:] == layers["api"][2:]
    for name in event_tasks:
        assert layers[name][2:] == layers["api"][2:] != layers["worker"][2:]
        assert every.functions()[name]["Environment"]["Variables"][Variable.HANDLER_TYPES.value] == MODULE


@pytest.mark.parametrize("function", ["trigger", "worker", "deadletter", "api"])
def test_lambda_loop_detection_does_not_stop_retries_through_a_queue(every: Synthesis, function: str) -> None:
    """Lambda's loop detection, after sixteen invocations, does not stop functions that send to work queues."""
    assert every.functions()[function]["RecursiveLoop"] == "Allow"


def test_functions_log_json_at_the_configured_level(every: Synthesis) -> None:
    """Lambda's log level is set to the function's level, because Lambda would otherwise filter by its own."""
    for function in every.functions().values():
        assert function["LoggingConfig"]["LogFormat"] == "JSON"
        level = function["Environment"]["Variables"][Variable.LOG_LEVEL.value]
        assert function["LoggingConfig"]["ApplicationLogLevel"] == level


def test_a_failed_tick_is_not_repeated(every: Synthesis) -> None:
    """Lambda retries neither the trigger, because the next tick catches up, nor `bulk`, which has a timer."""
    configs = list(every.properties("AWS::Lambda::EventInvokeConfig").values())
    assert {every.function_named(config["FunctionName"]) for config in configs} == {"trigger", "bulk"}
    assert {config["MaximumRetryAttempts"] for config in configs} == {0}


@pytest.mark.parametrize("function", USED)
def test_the_uploaded_code_of_a_function_contains_its_handler(
    synthesis_of: Callable[[str], Synthesis], function: str
) -> None:
    """The uploaded code contains duetime's file with the handler function that the template names."""
    local = synthesis_of("prod" if function == "archive" else "local")
    *modules, name = local.functions()[function]["Handler"].split(".")
    path = code_of(local, function).joinpath(*modules).with_suffix(".py")
    defined = {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}
    assert name in defined
    assert path.read_bytes() == (ROOT / "functions" / function / "handler.py").read_bytes()


@pytest.mark.parametrize("function", USED)
def test_the_uploaded_code_of_a_function_contains_only_its_folder(
    synthesis_of: Callable[[str], Synthesis], function: str
) -> None:
    """A function's uploaded code contains only its own folder, without bytecode from this machine."""
    code = code_of(synthesis_of("prod" if function == "archive" else "local"), function)
    assert [path.name for path in code.iterdir()] == [function]
    assert not list(code.rglob("__pycache__"))
