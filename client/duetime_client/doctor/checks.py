"""The checks of `duetime doctor`, which read data from AWS and the API and judge the data.

Each check has a function that reads data, and a pure function that judges the data. The checks are in the order in
which they run, because the first checks find causes that would make all other checks fail.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from importlib.metadata import version
from itertools import islice
from typing import TYPE_CHECKING, Any

from duetime_client.doctor.deployment import WINDOW, Deployment, NotAsked, log_group
from duetime_client.errors import ApiError, ClientError, Forbidden, RateLimited, Unauthenticated
from duetime_client.plurals import counted
from duetime_client.verification.access_denied_logs import DENIALS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from duetime_client.deployment_settings import DeploymentSettings
    from duetime_client.dispatch_status import DispatchStatus
    from duetime_client.doctor.deployment import Resource
    from duetime_client.switches import StopSwitches

_MINUTES = round(WINDOW.total_seconds() / 60)
_BY_HAND = "it was changed manually, which a deployment does not undo: change it back"
"""Advice for a manual change, which CloudFormation does not see because it compares a template only with the previous
template."""
_LEAST_UNRESERVED = 100
"""The concurrency that Lambda keeps for functions without reserved concurrency (Source: AWS Lambda Developer Guide)."""
_SKEW, _WRONG_CLOCK = timedelta(seconds=5), timedelta(minutes=1)
"""Clock differences above which two attempts of a task can overlap (a warning), and above which a clock is wrong."""
_TICK_AGE = timedelta(minutes=4)
"""Maximum age of the last tick before it is reported as a finding; there is a tick every minute, and a few failed ticks
are tolerated."""
_FIRST_TICK = timedelta(minutes=5)
"""How long after deployment it is acceptable that a trigger has not run yet, because its schedule is created after the
function."""
_BACKLOG = 1000
_IN_FLIGHT = 100_000
"""SQS does not deliver more messages if 120,000 messages are in flight (Source: Amazon SQS Developer Guide, quotas)."""
_QUEUE_AGE = 900.0
_STREAM_AGE_MS = 60_000.0
_DEAD_LETTERS = 500
"""The maximum number of dead letters that are read to count their causes."""
_SHOWN = 3
_GATEWAY_RATE = ("apigateway", "L-8A5B8E43")
"""The API Gateway quota "Throttle rate": requests per second over all APIs of the account in the Region."""
_LAMBDA_CONCURRENCY = ("lambda", "L-B99A9384")
"""The AWS Lambda quota "Concurrent executions"."""
_ERRORS = '?"Runtime." ?"Task timed out" ?"errorType" ?"OutOfMemory" ?"platform.report" ?"signal: killed"'
"""Filter pattern for the logs of failed invocations; at system log level WARN, Lambda reports only failed
invocations."""
_GONE = frozenset(
    {
        "ResourceNotFoundException", "AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist", "NoSuchBucket",
        "404", "NotFoundException", "NotFound", "StateMachineDoesNotExist", "ResourceNotFound",
    }
)  # fmt: skip
"""AWS error codes for a resource that does not exist."""


class Severity(StrEnum):
    """Severity of a finding."""

    OK = "ok"
    WARNING = "warning"
    """Tasks continue to run, but something is limited, at risk or was stopped on purpose."""
    PROBLEM = "problem"
    """Tasks do not run, or data may be lost."""
    UNKNOWN = "not known"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check.

    Attributes:
        seen: the observation.
        advice: what to do; empty if no action is needed.
    """

    check: str
    severity: Severity
    seen: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """One check.

    Attributes:
        name: the subject of the check.
        read: makes the read-only calls and returns the data.
        judge: yields severity, observation and advice for each finding in the data; yields no finding if all is well.
        asks: the IAM actions that the check needs; empty if the check only calls the API.
        is_for_cloud: whether the embedded AWS of a local stack lacks the subject of the check.
        healthy: returns the text for a deployment without findings, from the same data.
    """

    name: str
    read: Callable[[Deployment], Any]
    judge: Callable[[Any], Iterable[tuple[Severity, str, str]]]
    asks: tuple[str, ...] = ()
    is_for_cloud: bool = False
    healthy: Callable[[Any], str] = field(default=lambda _found: "")


_OK, _WARNING, _PROBLEM, _UNKNOWN = Severity.OK, Severity.WARNING, Severity.PROBLEM, Severity.UNKNOWN
_Judged = tuple[Severity, str, str]
"""Severity, observation, and advice."""


def _problem(seen: str, advice: str) -> _Judged:
    return _PROBLEM, seen, advice


def _warning(seen: str, advice: str) -> _Judged:
    return _WARNING, seen, advice


def examine(deployment: Deployment) -> Iterator[tuple[str, list[Finding]]]:
    """Run all checks in order and yield their findings; a check that cannot read its data has an unknown result."""
    for check in CHECKS:
        yield check.name, _findings(check, deployment)


def _findings(check: Check, deployment: Deployment) -> list[Finding]:
    try:
        if check.is_for_cloud and deployment.is_local:
            return []
        found = check.read(deployment)
        judged = [Finding(check.name, *each) for each in check.judge(found)]
        return judged or [Finding(check.name, _OK, check.healthy(found))]
    except NotAsked as error:
        return [Finding(check.name, _UNKNOWN, str(error))]
    except Forbidden as error:
        advice = (
            "use credentials of an operator (setting `operators`)"
            if error.code in {"role_required", "forbidden"}
            else ""
        )
        return [Finding(check.name, _UNKNOWN, f"the API refuses it: {error}", advice)]
    except ClientError as error:
        return [Finding(check.name, _UNKNOWN, f"the API does not report it: {error}")]
    except Exception as error:  # noqa: BLE001 - botocore is an extra: its errors are known by their shape
        return [_of_aws(check, error)]


def _of_aws(check: Check, error: Exception) -> Finding:
    """Return the finding for a botocore error; any other error is a bug in this program and is raised again."""
    if type(error).__module__.partition(".")[0] != "botocore":
        raise error
    response = getattr(error, "response", {})
    code = response.get("Error", {}).get("Code", "")
    operation = getattr(error, "operation_name", "")
    if code in _GONE:
        return Finding(
            check.name, _PROBLEM, f"it does not exist: {error}",
            "somebody deleted it; deploy the stack again, or restore it",
        )  # fmt: skip
    if "AccessDenied" in code or "Unauthorized" in code or "NotAuthorized" in code:
        return Finding(check.name, _UNKNOWN, f"{code} for {operation}", f"allow your identity {', '.join(check.asks)}")
    return Finding(check.name, _UNKNOWN, f"{code or type(error).__name__}: {error}")


# Credentials, the stack and the clock.


def _read_credentials(deployment: Deployment) -> Mapping[str, str]:
    if deployment.session is None:
        raise NotAsked('botocore is needed to call AWS: pip install "duetime-client[aws]"')
    if not deployment.region:
        deployment.is_broken_off = "no Region is set"
        return {"error": "no Region is set", "code": "NoRegion"}
    try:
        found = deployment.call("sts", "get_caller_identity")
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "botocore":
            raise
        code = getattr(error, "response", {}).get("Error", {}).get("Code", type(error).__name__)
        deployment.is_broken_off = "needs credentials"
        return {"error": str(error), "code": code}
    return {"arn": found["Arn"], "account": found["Account"], "region": deployment.region}


def _judge_credentials(found: Mapping[str, str]) -> Iterator[_Judged]:
    match found.get("code"):
        case None:
            return
        case "NoRegion":
            yield _problem(found["error"], "export AWS_REGION=… , the Region of the stack")
        case "NoCredentialsError":
            yield _problem("there are no AWS credentials", "run aws sso login, or export AWS_PROFILE=…")
        case "ExpiredToken" | "ExpiredTokenException" | "RequestExpired":
            yield _problem("the AWS credentials have expired", "run aws sso login, or get new credentials")
        case code:
            yield _problem(f"AWS does not accept the credentials ({code}): {found['error']}", "check AWS_PROFILE")


def _read_stack(deployment: Deployment) -> Mapping[str, Any]:
    try:
        found = deployment.description
    except NotAsked:
        if not deployment.stack:
            deployment.is_broken_off = "needs the name of the stack (--stack)"
        raise
    except Exception as error:
        code = getattr(error, "response", {}).get("Error", {}).get("Code", "")
        if code != "ValidationError":
            raise
        deployment.is_broken_off = f"needs the stack {deployment.stack}"
        return {"missing": deployment.stack, "region": deployment.region}
    return {"status": found["StackStatus"], "reason": found.get("StackStatusReason", ""), "name": deployment.stack}


def _judge_stack(found: Mapping[str, Any]) -> Iterator[_Judged]:
    if "missing" in found:
        yield _problem(
            f"there is no stack {found['missing']} in {found['region']}",
            "choose its Region (AWS_REGION), its account (AWS_PROFILE), or another --stack",
        )
        return
    status = str(found["status"])
    seen = f"{status} {found['reason']}".strip()
    if status.endswith("_IN_PROGRESS"):
        yield _warning(
            seen, "a deployment is under way, so findings may come from either version; wait until it has finished"
        )
    elif status not in {"CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE"}:
        judged = _warning if status == "UPDATE_ROLLBACK_COMPLETE" else _problem
        yield judged(
            seen, f"the last deployment failed: aws cloudformation describe-stack-events --stack-name {found['name']}"
        )


def _read_clock(deployment: Deployment) -> timedelta:
    if deployment.skew is None:
        raise NotAsked("needs a response of AWS to compare with")
    return deployment.skew


def _judge_clock(skew: timedelta) -> Iterator[_Judged]:
    if abs(skew) > _SKEW:
        seconds = abs(skew).total_seconds()
        side = "behind" if skew > timedelta() else "ahead of"
        judged = _problem if abs(skew) > _WRONG_CLOCK else _warning
        yield judged(
            f"the clock of this machine is {seconds:.0f} s {side} AWS's",
            "synchronize it (NTP): signed requests are refused beyond 5 minutes, and pull workers on it may overlap"
            " with others beyond 5 s",
        )


# The table, the bucket and the secret.


def _read_table(deployment: Deployment) -> Mapping[str, Any]:
    table, name = deployment.table, deployment.outputs["TableName"]
    readers = {
        logical: str(each.get("EventSourceArn", ""))
        for logical, each in deployment.mappings.items()
        if ":dynamodb:" in str(each.get("EventSourceArn", ""))
    }
    throttled = {
        metric: deployment.metrics("AWS/DynamoDB", metric, "Sum", "TableName", {"table": name}).get("table", 0)
        for metric in ("ReadThrottleEvents", "WriteThrottleEvents")
    }
    return {
        "status": table["TableStatus"],
        "stream": table.get("LatestStreamArn", "") if table.get("StreamSpecification", {}).get("StreamEnabled") else "",
        "indexes": {each["IndexName"]: each.get("IndexStatus", "ACTIVE") for each in _listed(table, "Indexes")},
        "readers": readers,
        "throttled": throttled,
    }


def _listed(table: Mapping[str, Any], suffix: str) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = table.get(f"GlobalSecondary{suffix}") or ()
    return found


def _judge_table(found: Mapping[str, Any]) -> Iterator[_Judged]:
    if found["status"] not in {"ACTIVE", "UPDATING"}:
        yield _problem(f"its status is {found['status']}", "the table serves no requests: look at it in the console")
    for name, status in found["indexes"].items():
        if status != "ACTIVE":
            yield _warning(f"the index {name} is {status}", "lists may be incomplete until it is ACTIVE")
    if not found["stream"]:
        yield _problem(
            "its stream is off",
            "live updates, events, lists, counts and the archive are not updated: deploy the stack again",
        )
    for logical, arn in found["readers"].items():
        if found["stream"] and arn != found["stream"]:
            yield _problem(
                f"{logical} reads an older stream of the table",
                "the stream was disabled and re-enabled: deploy the stack again so that the mapping reads the new "
                "stream",
            )
    throttled = sum(found["throttled"].values())
    if throttled:
        yield _warning(
            f"DynamoDB throttled {throttled:.0f} requests in {_MINUTES} minutes",
            "see respond-to-an-alarm.md#tablethrottled",
        )


def _read_protection(deployment: Deployment) -> Mapping[str, Any]:
    name = deployment.outputs["TableName"]
    (table,) = deployment.resources("AWS::DynamoDB::Table")
    backups = deployment.call("dynamodb", "describe_continuous_backups", TableName=name)["ContinuousBackupsDescription"]
    ttl = deployment.call("dynamodb", "describe_time_to_live", TableName=name)["TimeToLiveDescription"]
    return {
        "recovery": backups.get("PointInTimeRecoveryDescription", {}).get("PointInTimeRecoveryStatus", "DISABLED"),
        "ttl": ttl.get("TimeToLiveStatus", "DISABLED"),
        "protected": deployment.table.get("DeletionProtectionEnabled", False),
        "wanted": bool(table.properties.get("DeletionProtectionEnabled", False)),
    }


def _judge_protection(found: Mapping[str, Any]) -> Iterator[_Judged]:
    if found["recovery"] != "ENABLED":
        yield _warning(
            "point-in-time recovery of the table is off",
            "data lost by mistake could not be restored: aws dynamodb update-continuous-backups --table-name …"
            " --point-in-time-recovery-specification PointInTimeRecoveryEnabled=true",
        )
    if found["ttl"] not in {"ENABLED", "ENABLING"}:
        yield _warning(
            "TTL of the table is off",
            "ended tasks are never removed, and the table grows: aws dynamodb update-time-to-live --table-name …"
            " --time-to-live-specification Enabled=true,AttributeName=x",
        )
    if found["wanted"] and not found["protected"]:
        yield _warning("the table's deletion protection is off", "deploy the stack again")


def _read_bucket(deployment: Deployment) -> str:
    name = deployment.outputs["BucketName"]
    deployment.call("s3", "get_bucket_location", Bucket=name)
    return name


def _read_secrets(deployment: Deployment) -> Mapping[str, Mapping[str, Any]]:
    found = deployment.call("secretsmanager", "describe_secret", SecretId=deployment.outputs["SigningSecretArn"])
    return {"signing secret": found}


def _judge_secrets(found: Mapping[str, Mapping[str, Any]]) -> Iterator[_Judged]:
    for name, secret in found.items():
        if secret.get("DeletedDate"):
            yield _problem(
                f"the {name} is marked for deletion",
                f"HTTP calls cannot be signed: aws secretsmanager restore-secret --secret-id {secret.get('Name', '…')}",
            )
        elif not any("AWSCURRENT" in stages for stages in secret.get("VersionIdsToStages", {}).values()):
            yield _problem(f"the {name} has no current value", "duetime secrets rotate, or deploy the stack again")


# Queues, event sources and the tick.


def _read_queues(deployment: Deployment) -> Mapping[str, Any]:
    names = {logical: attributes["QueueArn"].rpartition(":")[2] for logical, attributes in deployment.queues.items()}
    ages = deployment.metrics("AWS/SQS", "ApproximateAgeOfOldestMessage", "Maximum", "QueueName", names)
    wanted = {each.logical_id: "RedrivePolicy" in each.properties for each in deployment.resources("AWS::SQS::Queue")}
    return {"attributes": deployment.queues, "ages": ages, "redrives": wanted}


def _judge_queues(found: Mapping[str, Any]) -> Iterator[_Judged]:
    for logical, attributes in found["attributes"].items():
        waiting = int(attributes.get("ApproximateNumberOfMessages", 0))
        in_flight = int(attributes.get("ApproximateNumberOfMessagesNotVisible", 0))
        if found["redrives"][logical] and "RedrivePolicy" not in attributes:
            yield _problem(
                f"{logical} has no redrive policy",
                "a message that always fails would be retried for four days, then deleted: deploy the stack again",
            )
        if found["redrives"][logical]:
            if waiting >= _BACKLOG:
                yield _warning(
                    f"{waiting} messages wait in {logical}",
                    "the workers do not keep up: see respond-to-an-alarm.md#backlog",
                )
            elif found["ages"].get(logical, 0) >= _QUEUE_AGE:
                age = found["ages"][logical] / 60
                yield _warning(
                    f"the oldest message in {logical} is {age:.0f} minutes old",
                    "the workers do not keep up, or a task is redelivered: duetime tasks list --state scheduled",
                )
            if in_flight >= _IN_FLIGHT:
                yield _problem(f"{in_flight} messages of {logical} are in flight", "SQS delivers no more than 120,000")
        elif waiting:
            yield _judged_letters(logical, waiting)


def _judged_letters(logical: str, waiting: int) -> _Judged:
    """Return the finding for messages in a queue that should be empty."""
    messages = counted(waiting, "message")
    if "Lost" in logical:
        return _problem(
            f"{messages} in {logical}: changes of the table that were not processed",
            "see respond-to-an-alarm.md#changeslost",
        )
    if "Reject" in logical:
        return _warning(
            f"{messages} in {logical}: events that could not become tasks", "see respond-to-an-alarm.md#eventsrefused"
        )
    return _warning(
        f"{messages} in {logical}",
        "the deadletter function works on them; if they stay, see respond-to-an-alarm.md#deadletterswaiting",
    )


def _read_sources(deployment: Deployment) -> Mapping[str, Any]:
    streams = {
        deployment.function_of(each["FunctionArn"])
        for each in deployment.mappings.values()
        if ":dynamodb:" in str(each.get("EventSourceArn", ""))
    }
    names = {name: deployment.functions[name].physical_id for name in sorted(streams & set(deployment.functions))}
    ages = deployment.metrics("AWS/Lambda", "IteratorAge", "Maximum", "FunctionName", names)
    return {"mappings": deployment.mappings, "ages": ages}


def _judge_sources(found: Mapping[str, Any]) -> Iterator[_Judged]:
    for logical, mapping in found["mappings"].items():
        state, last = str(mapping.get("State", "")), str(mapping.get("LastProcessingResult", ""))
        if state in {"Disabled", "Disabling"}:
            yield _problem(
                f"the event source {logical} is disabled",
                f"aws lambda update-event-source-mapping --uuid {mapping.get('UUID', '…')} --enabled",
            )
        elif last.startswith("PROBLEM"):
            yield _problem(f"the event source {logical}: {last}", "check the permissions of the function's role")
    for name, age in found["ages"].items():
        if age >= _STREAM_AGE_MS:
            yield _warning(
                f"{name} reads the table's stream {age / 60_000:.0f} minutes late",
                "a batch may fail repeatedly, see its log and respond-to-an-alarm.md#streambehind; the stream"
                " keeps records for 24 hours",
            )


def _read_tick(deployment: Deployment) -> Sequence[Mapping[str, Any]]:
    return [
        {
            "name": each.logical_id,
            "state": found["State"],
            "expression": found.get("ScheduleExpression", ""),
            "wanted": each.properties.get("ScheduleExpression", ""),
            "function": deployment.function_of(found["Target"]["Arn"]),
            "known": sorted(deployment.functions),
        }
        for each in deployment.resources("AWS::Scheduler::Schedule")
        for found in [deployment.call("scheduler", "get_schedule", Name=each.physical_id)]
    ]


def _judge_tick(found: Sequence[Mapping[str, Any]]) -> Iterator[_Judged]:
    for each in found:
        what = f"the schedule {each['name']} of EventBridge Scheduler"
        if each["state"] != "ENABLED":
            yield _problem(f"{what} is disabled", f"{_BY_HAND}; see respond-to-an-alarm.md#ticksincomplete")
        if each["expression"] != each["wanted"]:
            yield _problem(f"{what} is {each['expression']}, not {each['wanted']}", _BY_HAND)
        if each["function"] not in each["known"]:
            yield _problem(f"{what} invokes {each['function']}, which does not belong to the stack", _BY_HAND)


# Functions.


def _read_functions(deployment: Deployment) -> Mapping[str, Any]:
    names = {name: each.physical_id for name, each in deployment.functions.items()}
    sums = {
        metric: deployment.metrics("AWS/Lambda", metric, "Sum", "FunctionName", names)
        for metric in ("Errors", "Throttles", "Invocations")
    }
    lines = {name: deployment.log_lines(name, _ERRORS) for name in deployment.functions}
    return {"configurations": deployment.configurations, "sums": sums, "lines": lines}


def _judge_functions(found: Mapping[str, Any]) -> Iterator[_Judged]:
    sums = found["sums"]
    for name, configuration in found["configurations"].items():
        if configuration.get("State") == "Failed":
            yield _problem(
                f"{name} cannot be invoked: {configuration.get('StateReason', '')}", "deploy the stack again"
            )
        if configuration.get("LastUpdateStatus") == "Failed":
            reason = configuration.get("LastUpdateStatusReason", "")
            yield _problem(f"the last update of {name} failed: {reason}", "deploy the stack again")
        errors, lines = sums["Errors"].get(name, 0), found["lines"].get(name, ())
        if errors or lines:
            failed = (
                f"{errors:.0f} of {sums['Invocations'].get(name, errors):.0f} invocations" if errors else "invocations"
            )
            last = f"; for example: {_shortened(lines[-1])}" if lines else ""
            advice = _advice_for(name, lines, log_group(configuration))
            yield _problem(f"{failed} of {name} failed in {_MINUTES} minutes{last}", advice)
        if sums["Throttles"].get(name):
            yield _warning(
                f"Lambda refused {sums['Throttles'][name]:.0f} invocations of {name} in {_MINUTES} minutes",
                "see respond-to-an-alarm.md#functionsthrottled",
            )


def _advice_for(function: str, lines: Sequence[str], group: str) -> str:
    text = lines[-1] if lines else ""
    if "ImportModuleError" in text or "ImportError" in text:
        return "its package cannot be imported: correct it and deploy again"
    if "timed out" in text or "Status: timeout" in text:
        return "set `timeout_seconds` of tasks, or `context.stop_if_requested()` in long loops"
    if "OutOfMemory" in text or "signal: killed" in text:
        return f"give it more memory: the setting `sizes` for {function}"
    return f"aws logs tail {group} --since {_MINUTES}m"


def _shortened(line: str, most: int = 200) -> str:
    text = " ".join(line.split())
    return text if len(text) <= most else f"{text[:most]}…"


def _read_reservations(deployment: Deployment) -> Mapping[str, tuple[str, int | None, int | None]]:
    return {
        name: (
            each.physical_id,
            deployment.call("lambda", "get_function_concurrency", FunctionName=each.physical_id).get(
                "ReservedConcurrentExecutions"
            ),
            each.properties.get("ReservedConcurrentExecutions"),
        )
        for name, each in deployment.functions.items()
    }


def _judge_reservations(found: Mapping[str, tuple[str, int | None, int | None]]) -> Iterator[_Judged]:
    for name, (function, reserved, wanted) in found.items():
        if reserved == wanted:
            continue
        advice = f"aws lambda delete-function-concurrency --function-name {function}"
        if wanted is not None:
            advice = (
                f"aws lambda put-function-concurrency --function-name {function}"
                f" --reserved-concurrent-executions {wanted}"
            )
        if reserved == 0:
            yield _problem(f"{name} has a reserved concurrency of 0: it is stopped", advice)
        else:
            yield _warning(
                f"{name} has a reserved concurrency of {_number(reserved)}, not {_number(wanted)}",
                f"{advice}, or change the setting `reserved`",
            )


def _number(value: int | None) -> str:
    return "none" if value is None else str(value)


def _read_quotas(deployment: Deployment) -> Mapping[str, Any]:
    limits = deployment.call("lambda", "get_account_settings")["AccountLimit"]
    reserved = sum(each.properties.get("ReservedConcurrentExecutions", 0) for each in deployment.functions.values())
    shared = sum(
        each.properties.get("ScalingConfig", {}).get("MaximumConcurrency", 0)
        for each in deployment.resources("AWS::Lambda::EventSourceMapping")
    )
    rates = [
        each.properties.get("DefaultRouteSettings", {}).get("ThrottlingRateLimit", 0)
        for each in deployment.resources("AWS::ApiGatewayV2::Stage")
    ]
    return {
        "concurrency": limits["ConcurrentExecutions"],
        "granted": _quota(deployment, *_LAMBDA_CONCURRENCY),
        "needed": reserved + max(shared, _LEAST_UNRESERVED),
        "rate": _quota(deployment, *_GATEWAY_RATE),
        "rate_needed": max(rates, default=0),
    }


def _quota(deployment: Deployment, service: str, code: str) -> float:
    return float(
        deployment.call("service-quotas", "get_service_quota", ServiceCode=service, QuotaCode=code)["Quota"]["Value"]
    )


def _judge_quotas(found: Mapping[str, Any]) -> Iterator[_Judged]:
    if found["concurrency"] < found["needed"]:
        waits = found["granted"] > found["concurrency"]
        yield _warning(
            f"the account allows {found['concurrency']} concurrent executions of Lambda; the settings need"
            f" {found['needed']}",
            "a higher quota was granted and is not applied yet: wait, or ask AWS Support"
            if waits
            else "have the quota 'Concurrent executions' (L-B99A9384) raised, or lower `concurrency` and `reserved`",
        )
    if found["rate"] < found["rate_needed"]:
        yield _warning(
            f"the account allows {found['rate']:.0f} requests a second to all its APIs; `requests_per_second` is"
            f" {found['rate_needed']}",
            "have the quota 'Throttle rate' (L-8A5B8E43) raised, or lower the setting",
        )


def _read_versions(deployment: Deployment) -> Mapping[str, Any]:
    ids = deployment.physical_ids
    wanted = {
        name: sorted(ids.get(each["Ref"], "") for each in function.properties.get("Layers", ()) if set(each) == {"Ref"})
        for name, function in deployment.functions.items()
        if all(isinstance(each, dict) for each in function.properties.get("Layers", ()))
    }
    configurations = deployment.configurations
    return {
        "wanted": wanted,
        "layers": {name: sorted(each["Arn"] for each in configurations[name].get("Layers", ())) for name in wanted},
        "runtimes": sorted({str(each.get("Runtime", "")) for each in configurations.values()}),
        "client": version("duetime-client"),
    }


def _judge_versions(found: Mapping[str, Any]) -> Iterator[_Judged]:
    for name, wanted in found["wanted"].items():
        strange = sorted(set(found["layers"][name]) - set(wanted))
        missing = sorted(set(wanted) - set(found["layers"][name]))
        if strange or missing:
            has = ", ".join(each.rpartition("layer:")[2] for each in strange) or "fewer layers"
            yield _problem(
                f"{name} runs code that differs from the stack's: {has}",
                "a deployment was interrupted, or the function was changed by hand: deploy the stack again",
            )


def _described_versions(found: Mapping[str, Any]) -> str:
    client = f"duetime-client {found['client']} on Python {sys.version_info.major}.{sys.version_info.minor}"
    return f"{client}; {counted(len(found['layers']), 'function')} on {', '.join(found['runtimes'])}"


# Drift: differences between the template and the deployed resources.


def _read_drift(deployment: Deployment) -> Mapping[str, Any]:
    drift = deployment.description.get("DriftInformation", {})
    names = {each.logical_id: name for name, each in deployment.functions.items()}
    functions = [each for each in deployment.resources("AWS::Lambda::Function") if each.logical_id in names]
    pairs = [
        *(_function_pairs(each, deployment.configurations[names[each.logical_id]]) for each in functions),
        *(
            _attribute_pairs(each, deployment.queues[each.logical_id])
            for each in deployment.resources("AWS::SQS::Queue")
        ),
        *(
            _mapping_pairs(each, deployment.mappings[each.logical_id])
            for each in deployment.resources("AWS::Lambda::EventSourceMapping")
        ),
    ]
    return {"status": drift.get("StackDriftStatus", ""), "pairs": [pair for some in pairs for pair in some]}


_Pair = tuple[str, object, object]
"""The compared property, its value in the template, and its value in AWS."""


def _function_pairs(resource: Resource, found: Mapping[str, Any]) -> Iterator[_Pair]:
    for name in ("MemorySize", "Timeout", "Runtime", "Handler"):
        yield f"{name} of {resource.logical_id}", resource.properties.get(name), found.get(name)
    has = found.get("Environment", {}).get("Variables", {})
    for name, value in resource.properties.get("Environment", {}).get("Variables", {}).items():
        if isinstance(value, str):
            yield f"{name} of {resource.logical_id}", value, has.get(name)


def _attribute_pairs(resource: Resource, found: Mapping[str, str]) -> Iterator[_Pair]:
    for name in ("VisibilityTimeout", "MessageRetentionPeriod"):
        if name in resource.properties:
            yield f"{name} of {resource.logical_id}", resource.properties[name], int(found.get(name, 0))


def _mapping_pairs(resource: Resource, found: Mapping[str, Any]) -> Iterator[_Pair]:
    for name in ("BatchSize", "MaximumBatchingWindowInSeconds", "ScalingConfig", "MaximumRetryAttempts"):
        if name in resource.properties:
            yield f"{name} of {resource.logical_id}", resource.properties[name], found.get(name)


def _judge_drift(found: Mapping[str, Any]) -> Iterator[_Judged]:
    changed = [(what, wanted, has) for what, wanted, has in found["pairs"] if wanted is not None and wanted != has]
    for what, wanted, has in changed:
        yield _warning(f"{what} is {has}, not {wanted}", f"{_BY_HAND}, or change the setting")
    if found["status"] == "DRIFTED" and not changed:
        yield _warning(
            "CloudFormation's last drift detection found changes by hand",
            "aws cloudformation describe-stack-resource-drifts --stack-name …",
        )


# Alarms, denied calls, topologies.


def _read_alarms(deployment: Deployment) -> Mapping[str, Any]:
    wanted = {
        (each.physical_id.rpartition(":alarm:")[2] or each.physical_id): each.properties
        for each in deployment.resources("AWS::CloudWatch::Alarm")
    }
    names = list(wanted)
    found: dict[str, Mapping[str, Any]] = {}
    for start in range(0, len(names), 100):
        answer = deployment.call(
            "cloudwatch",
            "describe_alarms",
            AlarmNames=names[start : start + 100],
            AlarmTypes=["MetricAlarm"],
        )
        for each in answer.get("MetricAlarms", ()):
            found[each["AlarmName"]] = each
    return {"wanted": wanted, "found": found}


def _judge_alarms(read: Mapping[str, Any]) -> Iterator[_Judged]:
    for name, properties in read["wanted"].items():
        alarm = read["found"].get(name)
        # An alarm that only rolls back deployments has no action.
        notifies = bool(properties.get("AlarmActions"))
        if alarm is None:
            yield _warning(f"the alarm {name} was deleted", "deploy the stack again")
        elif alarm["StateValue"] == "ALARM" and notifies:
            says, _, runbook = str(alarm.get("AlarmDescription", "")).partition("See ")
            yield _warning(f"{name} is in ALARM: {says.strip()}", f"see {runbook}" if runbook else "")
        elif notifies and not alarm.get("ActionsEnabled", True):
            yield _warning(f"the actions of the alarm {name} are off", "aws cloudwatch enable-alarm-actions")


def _described_alarms(read: Mapping[str, Any]) -> str:
    return f"none of {counted(len(read['found']), 'alarm')} is in ALARM"


def _read_recipients(deployment: Deployment) -> Sequence[str]:
    topic = deployment.outputs["AlarmTopicArn"]
    return [
        str(each.get("SubscriptionArn", ""))
        for each in deployment.pages("sns", "list_subscriptions_by_topic", "Subscriptions", TopicArn=topic)
    ]


def _judge_recipients(subscriptions: Sequence[str]) -> Iterator[_Judged]:
    if any(each.startswith("arn:") for each in subscriptions):
        return
    if subscriptions:
        yield _warning("the subscription to the alarms is not confirmed", "follow the link in the mail from AWS")
    else:
        yield _warning("nobody receives the alarms", "set `alarm_email`, or subscribe to the topic AlarmTopicArn")


def _read_denials(deployment: Deployment) -> Mapping[str, Sequence[str]]:
    return {name: deployment.log_lines(name, DENIALS) for name in deployment.functions}


def _judge_denials(found: Mapping[str, Sequence[str]]) -> Iterator[_Judged]:
    for name, lines in found.items():
        if lines:
            yield _problem(f"{name} is denied a call: {_shortened(lines[-1])}", "add the permission to `grants.json`")


def _read_machine(deployment: Deployment) -> str:
    arn = deployment.outputs["TopologyMachineArn"]
    return str(deployment.call("stepfunctions", "describe_state_machine", stateMachineArn=arn)["status"])


def _judge_machine(status: str) -> Iterator[_Judged]:
    if status != "ACTIVE":
        yield _problem(f"the state machine of topologies is {status}", "deploy the stack again")


# The API and its dispatch status.


def _read_api(deployment: Deployment) -> DeploymentSettings | ClientError:
    try:
        return deployment.api.settings.get()
    except ClientError as error:
        return error


def _judge_api(found: DeploymentSettings | ClientError) -> Iterator[_Judged]:
    match found:
        case RateLimited():
            yield _problem(
                f"it rejects requests: {found}",
                "more requests arrive than `requests_per_second` allows: raise it, or back off",
            )
        case Unauthenticated() | Forbidden():
            yield _problem(f"it does not accept you: {found}", "duetime context show; see authorize-callers.md")
        case ApiError():
            yield _problem(f"it fails: {found}", "read the log of the api function")
        case ClientError():
            yield _problem(str(found), "duetime context show says which address is used and why")
        case _:
            return


def _described_api(found: DeploymentSettings) -> str:
    return f"{counted(found.shards, 'shard')}, precision {found.precision}, you act for {found.owner}"


def _read_stage(deployment: Deployment) -> Mapping[str, Any]:
    api = deployment.outputs["ApiId"]
    (wanted,) = [
        each.properties
        for each in deployment.resources("AWS::ApiGatewayV2::Stage")
        if deployment.physical_ids.get(each.properties["ApiId"].get("Ref", ""), "") == api
    ]
    found = deployment.call("apigatewayv2", "get_stage", ApiId=api, StageName=wanted["StageName"])
    return {"wanted": wanted.get("DefaultRouteSettings", {}), "found": found.get("DefaultRouteSettings", {})}


def _judge_stage(found: Mapping[str, Any]) -> Iterator[_Judged]:
    for name, setting in (("ThrottlingRateLimit", "requests_per_second"), ("ThrottlingBurstLimit", "request_burst")):
        wanted, has = found["wanted"].get(name), found["found"].get(name)
        if wanted is not None and has != wanted:
            judged = _warning if has else _problem
            yield judged(
                f"the API admits {has} ({name}), not {wanted}",
                f"{_BY_HAND}, or change the setting `{setting}`",
            )


def _read_dispatch(deployment: Deployment) -> tuple[DispatchStatus, datetime, timedelta | None]:
    status, now = deployment.api.dispatch.get_status(), deployment.now()
    return status, now, _age_of_trigger(deployment, now) if status.last_tick_at is None else None


def _age_of_trigger(deployment: Deployment, now: datetime) -> timedelta | None:
    """Return the time since the trigger's function was deployed; `None` if AWS cannot be asked."""
    try:
        modified = deployment.configurations["trigger"]["LastModified"]
    except NotAsked:
        return None
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "botocore":
            raise
        return None
    return now - datetime.fromisoformat(modified)


def _judge_dispatch(found: tuple[DispatchStatus, datetime, timedelta | None]) -> Iterator[_Judged]:
    status, now, deployed = found
    if status.last_tick_at is None:
        if deployed is not None and deployed < _FIRST_TICK:
            seconds = max(0, round(deployed.total_seconds()))
            yield _OK, f"the trigger has not run yet: it was deployed {seconds} s ago", "ask again in some minutes"
        else:
            yield _problem("the trigger has not run yet", "see respond-to-an-alarm.md#ticksincomplete")
        return
    stuck = [each for each in status.groups if each.dispatched_until is None or each.dispatched_until < now - _TICK_AGE]
    if now - status.last_tick_at > _TICK_AGE or stuck:
        groups = ", ".join(f"{each.first_shard}-{each.last_shard} (read by {each.read_by})" for each in stuck[:_SHOWN])
        seen = (
            f"the cursors of the shards {groups} do not advance"
            if stuck
            else "the trigger's last complete pass is too old"
        )
        age = round((now - status.last_tick_at).total_seconds() / 60)
        yield _problem(
            f"{seen}; the last tick was {age} minutes ago",
            "due tasks are not sent: see respond-to-an-alarm.md#ticksincomplete",
        )
    for queue in status.queues:
        if queue.pulled_type and queue.waiting >= _BACKLOG:
            yield _warning(
                f"{queue.waiting} tasks of the pulled type {queue.pulled_type} wait",
                "start more pull workers: duetime worker run",
            )


def _described_dispatch(found: tuple[DispatchStatus, datetime, timedelta | None]) -> str:
    status, now, _ = found
    assert status.last_tick_at is not None  # noqa: S101 - otherwise there is a finding
    return f"the last tick was {max(0, round((now - status.last_tick_at).total_seconds()))} s ago"


def _read_switches(deployment: Deployment) -> StopSwitches:
    return deployment.api.switches.list()


def _judge_switches(found: StopSwitches) -> Iterator[_Judged]:
    for switch in found.switches:
        if switch.stopped or switch.max_concurrent == 0:
            by = f" by {switch.updated_by}" if switch.updated_by else ""
            why = f": {switch.reason}" if switch.reason else ""
            what = "all tasks" if switch.scope == "all" else f"{switch.scope} {switch.name}"
            name = "" if switch.scope == "all" else f" {switch.name}"
            yield _warning(
                f"a switch has stopped {what} since {switch.updated_at:%Y-%m-%d %H:%M}{by}{why}",
                f"duetime switches delete {switch.scope}{name}",
            )


def _judge_circuits(found: StopSwitches) -> Iterator[_Judged]:
    for circuit in found.circuits:
        why = f": {circuit.reason}" if circuit.reason else ""
        yield _warning(
            f"the circuit of {circuit.host} has been {circuit.state} for {circuit.owner or 'all'} since"
            f" {circuit.opened_at:%Y-%m-%d %H:%M}{why}",
            "its endpoint fails; calls resume automatically once it responds",
        )


def _read_letters(deployment: Deployment) -> Counter[tuple[str, str]]:
    listed = islice(deployment.api.dead_letters.list(page_size=100), _DEAD_LETTERS)
    return Counter((each.type, each.error.type if each.error else "") for each in listed)


def _judge_letters(causes: Counter[tuple[str, str]]) -> Iterator[_Judged]:
    for (type_, error), count in causes.most_common():
        at_least = "at least " if causes.total() >= _DEAD_LETTERS else ""
        options = f"--type {type_}" + (f" --error-type {error}" if error else "")
        yield _warning(
            f"{at_least}{counted(count, 'task')} of type {type_} failed with {error or 'an unknown error'}",
            f"duetime dead-letters list {options}; then retry, or delete",
        )


# The other Region of a deployment with a standby Region.

_REPLICATED = {
    "BucketName": ("contents above 200 KB are not replicated", "after a takeover their tasks fail"),
    "ArchiveBucketName": (
        "the archive is not replicated",
        "queries there do not include what this Region has archived",
    ),
}
"""For each stack output with a bucket's name, the finding if the bucket is not replicated, and the consequence."""


def _read_regions(deployment: Deployment) -> Mapping[str, Any]:
    here, regions = deployment.region, deployment.outputs.get("Regions", "").split()
    if not regions:
        return {"regions": regions}
    (there,) = (each for each in regions if each != here)
    (stack,) = deployment.call("cloudformation", "describe_stacks", region=there, StackName=deployment.stack)["Stacks"]
    outputs = {each["OutputKey"]: each["OutputValue"] for each in stack.get("Outputs", ())}
    table = deployment.call("dynamodb", "describe_table", region=there, TableName=deployment.outputs["TableName"])
    both = {here: deployment.outputs, there: outputs}
    buckets = [(output, {region: each.get(output, "") for region, each in both.items()}) for output in _REPLICATED]
    return {
        "regions": regions,
        "there": there,
        "settings": [each.get("Regions", "") for each in (deployment.outputs, outputs)],
        "stack": stack["StackStatus"],
        "table": table["Table"]["TableStatus"],
        # A deployment without `archive_days` has no archive bucket.
        "archives": [region for region, each in both.items() if each.get("ArchiveBucketName")],
        "buckets": [
            (output, names, {each: _targets_of(deployment, each, name) for each, name in names.items()})
            for output, names in buckets
            if all(names.values())
        ],
    }


def _targets_of(deployment: Deployment, region: str, bucket: str) -> Sequence[str]:
    """Return the names of the buckets that a bucket is replicated to."""
    try:
        found = deployment.call("s3", "get_bucket_replication", region=region, Bucket=bucket)
    except Exception as error:
        code = getattr(error, "response", {}).get("Error", {}).get("Code")
        if code != "ReplicationConfigurationNotFoundError":
            raise
        return ()
    rules = found["ReplicationConfiguration"]["Rules"]
    return [each["Destination"]["Bucket"].rpartition(":")[2] for each in rules if each["Status"] == "Enabled"]


def _judge_regions(found: Mapping[str, Any]) -> Iterator[_Judged]:
    if not found["regions"]:
        return
    there, (here, other) = found["there"], found["settings"]
    if here != other:
        yield _problem(
            f"the stack in {there} has the Regions {other!r}, this one {here!r}",
            "they disagree on which Region is active: deploy both with the same `regions`",
        )
    if "FAILED" in found["stack"] or "ROLLBACK" in found["stack"]:
        yield _warning(f"the stack in {there} is {found['stack']}", "deploy it again, as it was deployed here")
    if found["table"] not in {"ACTIVE", "UPDATING"}:
        yield _problem(f"the replica in {there} is {found['table']}", "a takeover would lose tasks: duetime region add")
    if len(found["archives"]) == 1:
        (has,) = found["archives"]
        (lacks,) = (each for each in found["regions"] if each != has)
        yield _problem(
            f"only {has} has an archive: tasks that {lacks} removes by TTL are in no archive",
            f"deploy {lacks} with the `archive_days` of {has}, then duetime region replicate --stack …",
        )
    for output, every, targets in found["buckets"]:
        lacking = [each for each, own in every.items() if not {*every.values()} - {own} <= {*targets[each]}]
        if lacking:
            seen, follows = _REPLICATED[output]
            yield _warning(f"{seen} from {' and '.join(lacking)}", f"{follows}: duetime region replicate --stack …")


def _nothing(_found: object) -> Iterator[_Judged]:
    yield from ()


_STACK = ("cloudformation:DescribeStacks", "cloudformation:GetTemplate", "cloudformation:ListStackResources")
CHECKS: Sequence[Check] = (
    Check(
        "credentials",
        _read_credentials,
        _judge_credentials,
        ("sts:GetCallerIdentity",),
        healthy=lambda found: f"{found['arn']} in {found['region']}",
    ),
    Check(
        "stack",
        _read_stack,
        _judge_stack,
        ("cloudformation:DescribeStacks",),
        healthy=lambda found: f"{found['name']}: {found['status']}",
    ),
    Check("clock", _read_clock, _judge_clock, healthy=lambda skew: f"{abs(skew).total_seconds():.0f} s from AWS's"),
    Check("API", _read_api, _judge_api, healthy=_described_api),
    Check("API throttling", _read_stage, _judge_stage, (*_STACK, "apigateway:GET"), is_for_cloud=True),
    Check("dispatch", _read_dispatch, _judge_dispatch, healthy=_described_dispatch),
    Check("switches", _read_switches, _judge_switches),
    Check("circuits", _read_switches, _judge_circuits),
    Check("dead letters", _read_letters, _judge_letters),
    Check(
        "table",
        _read_table,
        _judge_table,
        (*_STACK, "dynamodb:DescribeTable", "lambda:GetEventSourceMapping", "cloudwatch:GetMetricData"),
    ),
    Check(
        "backups and TTL",
        _read_protection,
        _judge_protection,
        (*_STACK, "dynamodb:DescribeTable", "dynamodb:DescribeContinuousBackups", "dynamodb:DescribeTimeToLive"),
        is_for_cloud=True,
    ),
    Check("bucket", _read_bucket, _nothing, (*_STACK, "s3:GetBucketLocation")),
    Check("secrets", _read_secrets, _judge_secrets, (*_STACK, "secretsmanager:DescribeSecret")),
    Check(
        "tick",
        _read_tick,
        _judge_tick,
        (*_STACK, "scheduler:GetSchedule"),
        healthy=lambda found: ", ".join(each["expression"] for each in found),
    ),
    Check("queues", _read_queues, _judge_queues, (*_STACK, "sqs:GetQueueAttributes", "cloudwatch:GetMetricData")),
    Check(
        "event sources",
        _read_sources,
        _judge_sources,
        (*_STACK, "lambda:GetEventSourceMapping", "cloudwatch:GetMetricData"),
        healthy=lambda found: f"{len(found['mappings'])} enabled",
    ),
    Check(
        "functions",
        _read_functions,
        _judge_functions,
        (*_STACK, "lambda:GetFunctionConfiguration", "cloudwatch:GetMetricData", "logs:FilterLogEvents"),
        healthy=lambda found: f"{len(found['configurations'])} without a failure in {_MINUTES} minutes",
    ),
    Check("concurrency", _read_reservations, _judge_reservations, (*_STACK, "lambda:GetFunctionConcurrency")),
    Check(
        "quotas",
        _read_quotas,
        _judge_quotas,
        (*_STACK, "lambda:GetAccountSettings", "servicequotas:GetServiceQuota"),
        is_for_cloud=True,
        healthy=lambda found: f"{found['concurrency']} concurrent executions, {found['needed']} needed",
    ),
    Check(
        "versions",
        _read_versions,
        _judge_versions,
        (*_STACK, "lambda:GetFunctionConfiguration"),
        healthy=_described_versions,
    ),
    Check(
        "drift",
        _read_drift,
        _judge_drift,
        (*_STACK, "lambda:GetFunctionConfiguration", "lambda:GetEventSourceMapping", "sqs:GetQueueAttributes"),
        is_for_cloud=True,
        healthy=lambda found: f"{len(found['pairs'])} values are those of the template",
    ),
    Check("alarms", _read_alarms, _judge_alarms, (*_STACK, "cloudwatch:DescribeAlarms"), healthy=_described_alarms),
    Check(
        "recipients of alarms",
        _read_recipients,
        _judge_recipients,
        (*_STACK, "sns:ListSubscriptionsByTopic"),
        is_for_cloud=True,
    ),
    Check(
        "denied calls",
        _read_denials,
        _judge_denials,
        (*_STACK, "lambda:GetFunctionConfiguration", "logs:FilterLogEvents"),
    ),
    Check(
        "regions",
        _read_regions,
        _judge_regions,
        ("cloudformation:DescribeStacks", "dynamodb:DescribeTable", "s3:GetReplicationConfiguration"),
        is_for_cloud=True,
        healthy=lambda found: " and ".join(found["regions"]) or "one",
    ),
    Check("topologies", _read_machine, _judge_machine, (*_STACK, "states:DescribeStateMachine")),
)
"""All checks, in the order in which they run."""
