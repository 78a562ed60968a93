"""Checks permissions in tests, where a call that a function's role does not allow is refused, as in AWS.

`grants.json` has the policies of the synthesized stack for the tests' account; a test compares the file with the stack,
and `python -m tests.grants` writes the file again. Each call that a function makes, in the simulation or in the
functions' tests, is first looked up in these policies. Allowed calls are recorded in `USED`, so that a test can find
unused grants.
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, Any

from botocore import xform_name
from botocore.exceptions import ClientError

from duetime.domain.tasks.aws_jobs import JOB_SERVICES
from duetime.domain.tasks.task_options import Priority
from duetime.environment_variables import LIVE, QUEUE_VARIABLES, Variable
from duetime_testing.fakes.statements import inserted_item

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterator, Mapping

    import boto3

KEPT = Path(__file__).with_name("grants.json")
PLACE = "us-east-1:123456789012"
TABLE: str = f"arn:aws:dynamodb:{PLACE}:table/tasks"
BUCKET: str = "arn:aws:s3:::contents"
ARCHIVE: str = "arn:aws:s3:::archive"
MACHINE: str = f"arn:aws:states:{PLACE}:stateMachine:topologies"
SECRET: str = f"arn:aws:secretsmanager:{PLACE}:secret:signing"
SENT_SECRET: str = f"arn:aws:secretsmanager:{PLACE}:secret:crm-AbCdEf"
"""A secret that may be sent with calls to HTTP targets."""
LIVE_API: str = "live-updates"
CONNECTIONS: str = f"arn:aws:execute-api:{PLACE}:{LIVE_API}/live/POST/@connections"
BUSES = f"arn:aws:events:{PLACE}:event-bus"
POLLING = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
"""Actions that Lambda takes with a function's role on the queues that invoke it (Source: AWS Lambda Developer Guide,
SQS).
"""
POLLED = ("worker", "deadletter", "intake")
"""The functions that queues invoke."""
STREAM = f"{TABLE}/stream/latest"
STREAMED = ("broadcast", "archive")
"""The functions that the table's stream invokes."""
STREAMING = ("dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator")
"""Actions that Lambda takes with a function's role on the stream (Source: AWS Lambda Developer Guide, DynamoDB)."""

Use = tuple[str, str, str]
"""A function, an action, and the ARN of the resource."""
USED: set[Use] = set()
"""Allowed actions that functions have used in this process."""
_CHECKED: set[tuple[str, str, str | None, Hashable]] = set()
"""Functions with their DynamoDB calls, and the tables and indexes that these calls use."""
ELSEWHERE = {
    ("api", "lambda:InvokeFunction", f"arn:aws:lambda:{PLACE}:function:egress"),
    ("worker", "lambda:InvokeFunction", f"arn:aws:lambda:{PLACE}:function:egress"),
    ("worker", "lambda:InvokeFunction", f"arn:aws:lambda:{PLACE}:function:api"),
    ("trigger", "lambda:InvokeFunction", f"arn:aws:lambda:{PLACE}:function:trigger"),
    ("broadcast", "sqs:SendMessage", f"arn:aws:sqs:{PLACE}:lost"),
    ("archive", "s3:PutObject", f"{ARCHIVE}/aws/lambda/any"),
    ("archive", "s3:ListBucket", ARCHIVE),
}
"""Grants that are used where no call is recorded: by deployed tests (egress and API), by the trigger itself if there
are over sixteen shards (`tests/adapters/test_fan_out.py`), and by Lambda if it gives up on a batch from the stream.
"""
_ACTING: list[tuple[int, str]] = []
"""The threads in which a test has invoked a function, each with this function; in the simulation, each call names its
function.

A function can invoke another function in one thread while its other threads continue with its own calls.
"""


def queue(name: str) -> str:
    """Return the ARN of a queue."""
    return f"arn:aws:sqs:{PLACE}:{name}"


def function(name: str) -> str:
    """Return the ARN of a function."""
    return f"arn:aws:lambda:{PLACE}:function:{name}"


@cache
def granted() -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """Return the resource patterns that each function may use, by function and action."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    return {name: {action: tuple(patterns) for action, patterns in of.items()} for name, of in kept.items()}


@cache
def allows(name: str, action: str, resource: str) -> bool:
    """Return whether a function's role allows an action on a resource."""
    return any(fnmatchcase(resource, pattern) for pattern in granted().get(name, {}).get(action, ()))


def check(name: str, environ: Mapping[str, str], service: str, operation: str, request: Mapping[str, Any]) -> None:
    """Record a function's call, or refuse the call as AWS does.

    Args:
        name: the function's name.
        environ: the function's environment, which has the names of resources in this test.
        service: boto3's name for the service.
        operation: the operation, named like the client's method.
        request: the call's arguments.

    Raises:
        ClientError: the function's role does not allow it.
    """
    # A call on the same tables always needs the same grants, and nearly all calls in a scenario repeat such a call.
    places = _places(request) if service == "dynamodb" else None
    repeated = (name, operation, environ.get(Variable.TABLE), places)
    if places is not None and repeated in _CHECKED:
        return
    if service == "secretsmanager" and not environ.get(Variable.EGRESS_FUNCTION):
        name = "egress"  # in this test, the function makes the HTTP calls itself
    for action, resource in needed(environ, service, operation, request):
        if (name, action, resource) in USED:
            continue
        if any(fnmatchcase(resource, pattern) for pattern in _of_targets(environ)):
            continue  # the settings name the services that tasks call, as `tests/infra/test_calls.py` tests
        if not allows(name, action, resource):
            said = f"{name} is not authorized to perform: {action} on resource: {resource}"
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": said}}, operation)
        USED.add((name, action, resource))
    if places is not None:
        _CHECKED.add(repeated)


def _places(request: Mapping[str, Any]) -> Hashable:
    """Return the parts of a DynamoDB call that determine the needed actions, or `None` if they are not enough."""
    if "TransactItems" in request:
        return tuple((kind, one["TableName"]) for each in request["TransactItems"] for kind, one in each.items())
    if "RequestItems" in request:
        return tuple(request["RequestItems"])
    return (request["TableName"], request.get("IndexName")) if "TableName" in request else None


def forget(use: Use) -> None:
    """Forget a recorded call, so that a test can see whether the function repeats the call."""
    USED.discard(use)
    _CHECKED.clear()


def _of_targets(environ: Mapping[str, str]) -> list[str]:
    """Return the patterns of the services that tasks call, and of the jobs that run there."""
    patterns = environ.get(Variable.AWS_TARGETS, "").split()
    grants = [grant for row in JOB_SERVICES.values() for grant in row.grants if grant.on != "*"]
    found = [(re.fullmatch(grant.of, each), grant.on) for each in patterns for grant in grants]
    return [*patterns, *(match.expand(on) for match, on in found if match is not None)]


@contextmanager
def acting(name: str) -> Iterator[None]:
    """Attribute the calls of watched sessions to a function within this context.

    Calls in any thread belong to the function that was invoked first. If this function invokes another function in a
    thread, that thread's calls belong to the other function.
    """
    entry = (get_ident(), name)
    _ACTING.append(entry)
    try:
        yield
    finally:
        # Other functions may have been invoked in other threads since.
        _ACTING.remove(entry)


def acting_function() -> str | None:
    """Return the function that makes the call in this thread, or `None` for the test itself."""
    acting = list(_ACTING)
    ours = [name for thread, name in acting if thread == get_ident()]
    if ours:
        return ours[-1]
    return acting[0][1] if acting else None


def watch(session: boto3.Session) -> None:
    """Check each call of a session while a function acts, but not a test's own calls."""
    session.events.register("provide-client-params.*.*", _check_call, unique_id="grants")


def _check_call(params: dict[str, Any], model: Any, **_: Any) -> None:  # noqa: ANN401 - botocore's own
    check_acting(model.service_model.service_name, xform_name(model.name), params)


def check_acting(service: str, operation: str, request: Mapping[str, Any]) -> None:
    """Check a call if a function that tests invoke makes the call.

    Raises:
        ClientError: the function's role does not allow it.
    """
    if (name := acting_function()) is not None:
        # Imported only here, so that tests without a function do not wait for the import.
        from duetime.composition import composed  # noqa: PLC0415 - see the line above

        check(name, composed().platform.environ, service, operation, request)


def needed(
    environ: Mapping[str, str], service: str, operation: str, request: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Return the actions that a call needs, and the resources (Source: Service Authorization Reference)."""
    action = "".join(word.capitalize() for word in operation.removesuffix("_batch").split("_"))
    match service:
        case "dynamodb":
            yield from _of_items(environ, action, request)
        case "s3":
            yield from _of_objects(environ, action, request)
        case "sqs":
            yield f"sqs:{action}", queue(_queue_name(environ, request["QueueUrl"]))
        case "lambda":
            yield _of_function(environ, action, request)
        case "batch" | "codebuild" | "glue":
            yield from ((f"{service}:{action}", arn) for arn in _of_job(service, request))
        case "states" | "stepfunctions":
            yield f"states:{action}", _states_arn(environ, request)
        case "apigatewaymanagementapi":
            yield "execute-api:ManageConnections", f"{CONNECTIONS}/{request['ConnectionId']}"
        case "events":
            yield from (("events:PutEvents", f"{BUSES}/{entry['EventBusName']}") for entry in request["Entries"])
        case "secretsmanager":
            name = request["SecretId"]
            yield f"secretsmanager:{action}", name if name.startswith("arn:") else SECRET


def _of_items(environ: Mapping[str, str], action: str, request: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return a DynamoDB call's grants; a transaction or a batch of inserts needs the grants for all of its writes."""
    if action == "BatchExecuteStatement":
        tables = {inserted_item(each["Statement"], each["Parameters"])[0] for each in request["Statements"]}
        yield from (("dynamodb:PartiQLInsert", arn) for name in tables for arn in _tables(environ, {"TableName": name}))
        return
    writes = [one for each in request["TransactItems"] for one in each.items()] if "TransactItems" in request else None
    for kind, each in writes or [(action, request)]:
        name = action if writes is None else f"{kind}Item"
        yield from ((f"dynamodb:{name}", arn) for arn in _tables(environ, each))


def _tables(environ: Mapping[str, str], request: Mapping[str, Any]) -> Iterator[str]:
    for name in request.get("RequestItems") or [request["TableName"]]:
        arn = TABLE if name == environ[Variable.TABLE] else f"arn:aws:dynamodb:{PLACE}:table/{name}"
        yield f"{arn}/index/{request['IndexName']}" if "IndexName" in request else arn


def _of_objects(environ: Mapping[str, str], action: str, request: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return an S3 call's grants; a copy, tags, and a missing object each need an additional action."""
    if action == "GeneratePresignedUrl":
        # Signing needs no permission, but the signed request is made with the function's role.
        action, request = "".join(map(str.capitalize, request["ClientMethod"].split("_"))), request["Params"]
    bucket = ARCHIVE if request["Bucket"] == environ.get(Variable.ARCHIVE_BUCKET) else BUCKET
    if action == "CopyObject":
        yield "s3:GetObject", f"{bucket}/{request['CopySource']['Key']}"
    if action != "PutObject":
        yield "s3:ListBucket", bucket
    action = {"CopyObject": "PutObject", "HeadObject": "GetObject"}.get(action, action)
    if action == "ListObjectsV2":
        return
    yield f"s3:{action}", f"{bucket}/{request['Key']}"
    if action == "PutObject" and "Tagging" in request:
        yield "s3:PutObjectTagging", f"{bucket}/{request['Key']}"


def _of_function(environ: Mapping[str, str], action: str, request: Mapping[str, Any]) -> tuple[str, str]:
    if "DurableExecutionArn" in request:
        return f"lambda:{action}", request["DurableExecutionArn"]
    is_call = action.startswith("Invoke")
    return f"lambda:{'InvokeFunction' if is_call else action}", _function_arn(environ, request["FunctionName"])


def _of_job(service: str, request: Mapping[str, Any]) -> Iterator[str]:
    """Return the resources of a call to a service that runs jobs; a listing action may have no single resource."""
    place = f"arn:aws:{service}:{PLACE}"
    if service == "batch":
        yield from (request[field] for field in ("jobDefinition", "jobQueue") if "jobDefinition" in request)
        yield from (f"{place}:job/{request[field]}" for field in ("jobId",) if field in request)
    elif service == "codebuild":
        builds = request.get("ids") or [request.get("id", "")]
        yield f"{place}:project/{request.get('projectName') or builds[0].partition(':')[0]}"
    else:
        yield f"{place}:job/{request['JobName']}"


def _function_arn(environ: Mapping[str, str], name: str) -> str:
    names = {environ.get(Variable.EGRESS_FUNCTION): "egress", environ.get(Variable.BULK_FUNCTION): "bulk"}
    # The stored policies come from the local stack, whose functions have no aliases.
    return name if name.startswith("arn:") else function(names.get(name, name).removesuffix(f":{LIVE}"))


def _states_arn(environ: Mapping[str, str], request: Mapping[str, Any]) -> str:
    """Return the ARN of the state machine, of an execution, or of the machine to which a token is reported."""
    known = environ.get(Variable.TOPOLOGY_MACHINE) or MACHINE
    arn: str = request.get("stateMachineArn") or request.get("executionArn") or known
    executions = known.replace(":stateMachine:", ":execution:")
    return arn.replace(executions, MACHINE.replace(":stateMachine:", ":execution:")).replace(known, MACHINE)


def _queue_name(environ: Mapping[str, str], url: str) -> str:
    """Return the name of a queue in the stored policies."""
    names = {environ[variable]: priority.value for priority, variable in QUEUE_VARIABLES.items()}
    names |= dict.fromkeys(json.loads(environ.get(Variable.PULLED_QUEUES, "{}")).values(), "pulled")
    names[environ.get(Variable.INTAKE_REJECTS, "")] = "rejects"
    return names.get(url, url.rpartition("/")[2])


def unused(used: Collection[Use]) -> list[Use]:
    """Return the unused grants; one work queue stands for all work queues.

    Args:
        used: the grants that functions have used in all tests together.
    """
    known = {(name, action, _kind(resource)) for name, action, resource in {*used, *ELSEWHERE}}
    return [
        (name, action, pattern)
        for name, of in granted().items()
        for action, patterns in of.items()
        for pattern in patterns
        if not _is_for_lambda(name, action) and not _is_known(known, (name, action, pattern))
    ]


def _is_for_lambda(name: str, action: str) -> bool:
    """Return whether Lambda itself uses the grant to invoke the function."""
    return (name in POLLED and action in POLLING) or (name in STREAMED and action in STREAMING)


def _is_known(known: Collection[Use], grant: Use) -> bool:
    name, action, pattern = grant
    # The executions of a distributed map are attributed to the machine, because the tests' tokens do not distinguish
    # between executions.
    pattern = MACHINE if pattern == f"{MACHINE}/*" else _kind(pattern)
    return any(use[:2] == (name, action) and fnmatchcase(use[2], pattern) for use in known)


def _kind(resource: str) -> str:
    names = (*(priority.value for priority in Priority), "pulled")
    return queue("work") if resource in map(queue, names) else resource


def frozen(policies: Mapping[str, Mapping[str, Any]]) -> str:
    """Return policies in the form in which they are stored."""
    return json.dumps(policies, indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    from tempfile import TemporaryDirectory

    from tests.infra.policies import synthesised

    with TemporaryDirectory() as folder:
        KEPT.write_text(frozen(synthesised(Path(folder))), encoding="utf-8")
