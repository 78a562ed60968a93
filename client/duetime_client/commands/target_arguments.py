"""From the options of a command line to the target of a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    if options.notifies or options.detail_type is not None:
        raise typer.BadParameter("needs --arn", param_hint="--async" if options.notifies else "--detail-type")
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


def _aws_target(arn: str, options: TaskOptions) -> AwsTarget:
    """A target of the kind of the ARN's service; options of other kinds are rejected."""
    segments = arn.split(":", _ARN_SEGMENTS - 1)
    service = segments[2] if len(segments) == _ARN_SEGMENTS else ""
    if options.notifies and service != "lambda":
        raise typer.BadParameter("is for Lambda functions", param_hint="--async")
    if options.detail_type is not None and service != "events":
        raise typer.BadParameter("is for event buses", param_hint="--detail-type")
    match service:
        case "lambda":
            return (
                {"kind": "lambda", "arn": arn, "mode": "async"} if options.notifies else {"kind": "lambda", "arn": arn}
            )
        case "sqs" | "sns":
            return {"kind": service, "arn": arn}
        case "events":
            kind: AwsTarget = {"kind": "eventbridge", "arn": arn}
            return kind if options.detail_type is None else {**kind, "detail_type": options.detail_type}
        case "states":
            return {"kind": "step_functions", "arn": arn}
    raise typer.BadParameter(
        "should be the ARN of a Lambda function, SQS queue, SNS topic, event bus or state machine", param_hint="--arn"
    )
