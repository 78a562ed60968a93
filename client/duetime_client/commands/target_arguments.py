"""Converts command-line options to the target of a task."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from duetime_client.commands.task_options import TaskOptions
    from duetime_client.task_request_fields import (
        ApprovalTarget,
        AwsTarget,
        DefinitionRun,
        EventTarget,
        HttpAuth,
        HttpTarget,
        Target,
    )

_ARN_SEGMENTS = 6


def target_of(options: TaskOptions) -> Target | None:
    """The target set by options; `None` if the task's type decides it."""
    given = {
        "--http-url": options.http_url is not None,
        "--arn": options.arn is not None,
        "--pull": options.pull,
        "--topology": options.topology is not None,
        "--definition": options.definition is not None,
        "--approval": options.approval is not None,
        "--event": options.event is not None,
    }
    if sum(given.values()) > 1:
        both = " or ".join(option for option, is_given in given.items() if is_given)
        raise typer.BadParameter(f"give either {both}, not both")
    _reject_http_options(options)
    _reject_options_of_others(options)
    if options.arn is not None:
        return _aws_target(options.arn, options)
    if given_options := _aws_options(options):
        raise typer.BadParameter("needs --arn", param_hint=next(iter(given_options)))
    if options.http_url is not None:
        return _http_target(options.http_url, options)
    if options.definition is not None:
        return {"kind": "topology", "definition": _definition_run(options.definition, options.parameter or [])}
    if options.topology is not None:
        return {"kind": "topology"}
    if options.approval is not None:
        return _approval_target(options.approval, options)
    if options.event is not None:
        return _event_target(options.event, options)
    return {"kind": "pull"} if options.pull else None


def _reject_options_of_others(options: TaskOptions) -> None:
    """Reject options of a definition, an approval or an event, if no definition, approval or event is given."""
    if options.definition is None and options.parameter:
        raise typer.BadParameter("needs --definition", param_hint="--parameter")
    if options.approval is None and options.on_timeout is not None:
        raise typer.BadParameter("needs --approval", param_hint="--on-timeout")
    if options.event is None and (given := _event_options(options)):
        raise typer.BadParameter("needs --event", param_hint=f"--event-{next(iter(given))}")


def _definition_run(text: str, parameters: Sequence[str]) -> DefinitionRun:
    """The run of a definition: its name, optional `@version`, and parameter values."""
    name, at, version = text.partition("@")
    if not name or (at and not (version.isascii() and version.isdigit() and int(version))):
        raise typer.BadParameter("should be NAME or NAME@VERSION, such as nightly@3", param_hint="--definition")
    run: DefinitionRun = {"name": name}
    if at:
        run["version"] = int(version)
    if parameters:
        run["parameters"] = values_of(parameters)
    return run


def values_of(texts: Sequence[str], types: Mapping[str, object] | None = None) -> dict[str, object]:
    """Parse the parameters of a run: declared text stays text, other values are parsed as JSON where possible.

    Args:
        texts: `name=value` pairs.
        types: declared types by parameter name, if known.
    """
    values: dict[str, object] = {}
    for each in texts:
        name, equals, text = each.partition("=")
        if not (name and equals):
            raise typer.BadParameter("should be NAME=VALUE", param_hint="--parameter")
        values[name] = text if types and types.get(name) == "string" else _json_or_text(text)
    return values


def _json_or_text(text: str) -> object:
    try:
        return json.loads(text, parse_constant=reject_constant)
    except (ValueError, RecursionError):
        return text


def json_object_in(file: Path) -> dict[str, Any]:
    """The JSON object in the file of an argument.

    Raises:
        BadParameter: the file does not contain a JSON object.
    """
    try:
        body = json.loads(file.read_bytes(), parse_constant=reject_constant)
    except (ValueError, RecursionError, OSError) as error:
        raise typer.BadParameter(f"not JSON: {error}", param_hint="FILE") from error
    if not isinstance(body, dict):
        raise typer.BadParameter("should be a JSON object", param_hint="FILE")
    return body


def reject_constant(name: str) -> NoReturn:
    """Reject `NaN` and `Infinity`, which Python accepts but JSON does not."""
    raise ValueError(f"{name} is not a JSON number")


def _approval_target(timeout: int, options: TaskOptions) -> ApprovalTarget:
    target: ApprovalTarget = {"kind": "approval", "timeout_seconds": timeout}
    return target if options.on_timeout is None else {**target, "on_timeout": options.on_timeout.value}


def _event_target(event: str, options: TaskOptions) -> EventTarget:
    target: EventTarget = {"kind": "wait_for_event", "event": event}
    if options.event_key is not None:
        target["key"] = options.event_key
    if options.event_timeout is not None:
        target["timeout_seconds"] = options.event_timeout
    if options.event_lookback is not None:
        target["lookback_seconds"] = options.event_lookback
    if options.event_when is not None:
        target["when"] = options.event_when
    return target


def _event_options(options: TaskOptions) -> dict[str, object]:
    """The given options of an event, by the last part of their name."""
    found = {
        "key": options.event_key,
        "timeout": options.event_timeout,
        "lookback": options.event_lookback,
        "when": options.event_when,
    }
    return {name: value for name, value in found.items() if value is not None}


def _reject_http_options(options: TaskOptions) -> None:
    """Reject options that apply only to an HTTP endpoint, if no endpoint is given."""
    of_http = {
        "--http-phase": options.http_phase,
        "--http-query": options.http_query,
        "--http-method": options.http_method,
        "--http-header": options.http_header,
        "--http-auth": options.http_auth,
    }
    given = [option for option, value in of_http.items() if value]
    if options.http_url is None and given:
        raise typer.BadParameter("needs --http-url", param_hint=given[0])


def _http_target(url: str, options: TaskOptions) -> HttpTarget:
    target: HttpTarget = {"kind": "http", "url": url}
    if options.http_phase:
        target["phases"] = [*options.http_phase]
    if options.http_query:
        target["queries"] = [*options.http_query]
    if options.http_method:
        target["method"] = options.http_method.value
    if options.http_header:
        target["headers"] = dict(_pair(text, "--http-header", "NAME=VALUE") for text in options.http_header)
    if options.http_auth:
        target["auth"] = _auth(*_pair(options.http_auth, "--http-auth", "SCHEME=SECRET"))
    return target


def _auth(scheme: str, secret: str) -> HttpAuth:
    """The secret to send; an unknown scheme is taken as a header name."""
    if scheme in {"bearer", "basic", "oauth_client"}:
        return {"secret": secret, "scheme": scheme}  # type: ignore[typeddict-item]  # the value is one of the literals
    return {"secret": secret, "scheme": "header", "header": scheme}


def _pair(text: str, option: str, form: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not (name and sign and value):
        raise typer.BadParameter(f"should be {form}", param_hint=option)
    return name, value


_OF_SERVICE = {
    "--async": (("lambda",), "Lambda functions"),
    "--detail-type": (("events",), "event buses"),
    "--job": (("states", "lambda"), "state machines and durable functions"),
    "--cluster": (("ecs",), "task definitions"),
    "--container": (("ecs",), "task definitions"),
    "--job-queue": (("batch",), "job definitions"),
    "--job-parameters": (
        ("ecs", "batch", "codebuild", "glue"),
        "task definitions, job definitions, build projects and Glue jobs",
    ),
}
"""Options that apply only to some AWS services, with the services' names in ARNs and a display name."""


def _aws_options(options: TaskOptions) -> dict[str, object]:
    """The service-specific options that are given, by name."""
    every: dict[str, object] = {
        "--async": options.notifies or None,
        "--detail-type": options.detail_type,
        "--job": options.job or None,
        "--cluster": options.cluster,
        "--container": options.container,
        "--job-queue": options.job_queue,
        "--job-parameters": options.job_parameters,
    }
    return {option: value for option, value in every.items() if value is not None}


def _aws_target(arn: str, options: TaskOptions) -> AwsTarget:
    """The target for the ARN's service; options of other services are rejected."""
    segments = arn.split(":", _ARN_SEGMENTS - 1)
    service = segments[2] if len(segments) == _ARN_SEGMENTS else ""
    for option in _aws_options(options):
        services, names = _OF_SERVICE[option]
        if service not in services:
            raise typer.BadParameter(f"is for {names}", param_hint=option)
    match service:
        case "lambda":
            return _lambda_target(arn, options)
        case "sqs" | "sns":
            return {"kind": service, "arn": arn}
        case "events":
            kind: AwsTarget = {"kind": "eventbridge", "arn": arn}
            return kind if options.detail_type is None else {**kind, "detail_type": options.detail_type}
        case "states":
            return (
                {"kind": "step_functions", "arn": arn, "wait": True}
                if options.job
                else {"kind": "step_functions", "arn": arn}
            )
        case "ecs" | "batch" | "codebuild" | "glue":
            target = _job_target(service, arn, options)
            parameters = options.job_parameters
            return target if parameters is None else {**target, "parameters": _json_object(parameters)}
    raise typer.BadParameter(
        "should be the ARN of a Lambda function, SQS queue, SNS topic, event bus, state machine, task definition, job"
        " definition, build project or Glue job",
        param_hint="--arn",
    )


def _lambda_target(arn: str, options: TaskOptions) -> AwsTarget:
    if options.notifies and options.job:
        raise typer.BadParameter("give either --async or --job, not both")
    if options.job:
        return {"kind": "lambda", "arn": arn, "mode": "durable"}
    return {"kind": "lambda", "arn": arn, "mode": "async"} if options.notifies else {"kind": "lambda", "arn": arn}


def _job_target(service: Literal["ecs", "batch", "codebuild", "glue"], arn: str, options: TaskOptions) -> AwsTarget:
    if service == "ecs":
        if options.cluster is None or options.container is None:
            raise typer.BadParameter("of a task definition needs --cluster and --container", param_hint="--arn")
        return {"kind": "ecs", "arn": arn, "cluster": options.cluster, "container": options.container}
    if service == "batch":
        if options.job_queue is None:
            raise typer.BadParameter("of a job definition needs --job-queue", param_hint="--arn")
        return {"kind": "batch", "arn": arn, "queue": options.job_queue}
    return {"kind": service, "arn": arn}


def _json_object(text: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"is not JSON: {error}", param_hint="--job-parameters") from None
    if not isinstance(value, dict):
        raise typer.BadParameter("should be a JSON object", param_hint="--job-parameters")
    return value
