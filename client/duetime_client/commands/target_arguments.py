"""From the options of a command line to the target of a task."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

import typer

if TYPE_CHECKING:
    from duetime_client.commands.task_options import TaskOptions
    from duetime_client.task_request_fields import AwsTarget, HttpAuth, HttpTarget, Target

_ARN_SEGMENTS = 6


def target_of(options: TaskOptions) -> Target | None:
    """The target that the options give; none if the task's type decides it."""
    given = {
        "--http-url": options.http_url is not None,
        "--arn": options.arn is not None,
        "--pull": options.pull,
        "--topology": options.topology is not None,
    }
    if sum(given.values()) > 1:
        both = " or ".join(option for option, is_given in given.items() if is_given)
        raise typer.BadParameter(f"give either {both}, not both")
    _reject_http_options(options)
    if options.arn is not None:
        return _aws_target(options.arn, options)
    if given_options := _aws_options(options):
        raise typer.BadParameter("needs --arn", param_hint=next(iter(given_options)))
    if options.pull:
        return {"kind": "pull"}
    if options.topology is not None:
        return {"kind": "topology"}
    return None if options.http_url is None else _http_target(options.http_url, options)


def _reject_http_options(options: TaskOptions) -> None:
    """Reject options of an endpoint that is not given."""
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
    """The secret to send; a scheme that is none of the known ones is the name of a header."""
    if scheme in {"bearer", "basic", "oauth_client"}:
        return {"secret": secret, "scheme": scheme}  # type: ignore[typeddict-item]  # one of those
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
    "--parameters": (
        ("ecs", "batch", "codebuild", "glue"),
        "task definitions, job definitions, build projects and Glue jobs",
    ),
}
"""Options of some kinds of AWS resources: the services in their ARNs, and what they are called."""


def _aws_options(options: TaskOptions) -> dict[str, object]:
    """The options of kinds of AWS resources that are given, by what they are called."""
    every: dict[str, object] = {
        "--async": options.notifies or None,
        "--detail-type": options.detail_type,
        "--job": options.job or None,
        "--cluster": options.cluster,
        "--container": options.container,
        "--job-queue": options.job_queue,
        "--parameters": options.parameters,
    }
    return {option: value for option, value in every.items() if value is not None}


def _aws_target(arn: str, options: TaskOptions) -> AwsTarget:
    """A target of the kind of the ARN's service; options of other kinds are rejected."""
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
            parameters = options.parameters
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
        raise typer.BadParameter(f"is not JSON: {error}", param_hint="--parameters") from None
    if not isinstance(value, dict):
        raise typer.BadParameter("should be a JSON object", param_hint="--parameters")
    return value
