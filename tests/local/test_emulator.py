"""Tests the project's assumptions about the embedded AWS, so that an upgrade shows what broke."""

from __future__ import annotations

import io
import json
import socket
import time
import urllib.request
import zipfile
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit
from uuid import uuid4

import httpx
import pytest

from duetime_local import emulator
from duetime_local.emulator import EmulatorFailed
from duetime_local.emulator.differences import GENTLE_WAITS, api_url, complete_deployment
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_sqs import SQSClient

    from duetime_local.emulator import Emulator

THREADS = 8
ROUNDS = 25
FUNCTION_TIMEOUT = 30
FUNCTION: Any = {
    "Runtime": "python3.13",
    "Role": "arn:aws:iam::000000000000:role/probe",
    "Handler": "index.handler",
    "Timeout": FUNCTION_TIMEOUT,
}
VISIBILITY = 4
"""Seconds within which a function that has started always responds."""


def table(dynamodb: DynamoDBClient) -> str:
    """Create a table for a test."""
    name = f"probe-{uuid4()}"
    dynamodb.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return name


def queue(sqs: SQSClient, visibility: int = 1) -> str:
    """Create a queue for a test."""
    return sqs.create_queue(QueueName=f"probe-{uuid4()}", Attributes={"VisibilityTimeout": str(visibility)})["QueueUrl"]


def received(sqs: SQSClient, url: str) -> list[str]:
    """Return the bodies of the messages that are visible now."""
    return [message["Body"] for message in sqs.receive_message(QueueUrl=url).get("Messages", [])]


def collected(sqs: SQSClient, url: str, last: str) -> list[str]:
    """Receive a queue's messages until the message `last`, and return all of them sorted alphabetically."""
    bodies: list[str] = []

    def look() -> bool:
        bodies.extend(received(sqs, url))
        return last in bodies

    until(look)
    return sorted(bodies)


def left_in(sqs: SQSClient, url: str) -> int:
    """Return the number of visible and hidden messages on a queue."""
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    return int(attributes["ApproximateNumberOfMessages"]) + int(attributes["ApproximateNumberOfMessagesNotVisible"])


def _zipped(source: str) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("index.py", source)
    return archive.getvalue()


def consumer(engine: Emulator, queue_url: str, source: str) -> None:
    """Create a function that receives the queue's messages, and warm the function up."""
    functions, name = engine.client("lambda"), f"probe-{uuid4()}"
    functions.create_function(FunctionName=name, Code={"ZipFile": _zipped(source)}, **FUNCTION)
    # A cold start could take longer than the visibility timeout, which would deliver messages twice.
    assert "FunctionError" not in functions.invoke(FunctionName=name, Payload=json.dumps({"Records": []}).encode())
    sqs = engine.client("sqs")
    arn = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    functions.create_event_source_mapping(
        EventSourceArn=arn, FunctionName=name, BatchSize=10, FunctionResponseTypes=["ReportBatchItemFailures"]
    )


def test_exactly_one_of_concurrent_conditional_writes_wins(engine: Emulator) -> None:
    """A condition is checked and its write is applied as one step, while other writers are active."""
    dynamodb = engine.client("dynamodb")
    name, barrier = table(dynamodb), Barrier(THREADS)

    def put(round_: int) -> bool:
        barrier.wait()
        try:
            dynamodb.put_item(
                TableName=name, Item={"p": {"S": str(round_)}}, ConditionExpression="attribute_not_exists(p)"
            )
        except dynamodb.exceptions.ConditionalCheckFailedException:
            return False
        return True

    with ThreadPoolExecutor(THREADS) as threads:
        for round_ in range(ROUNDS):
            assert sum(threads.map(put, [round_] * THREADS)) == 1


def test_a_failed_condition_returns_the_old_item_on_request(engine: Emulator) -> None:
    """`ReturnValuesOnConditionCheckFailure` makes a read after a refusal unnecessary."""
    dynamodb = engine.client("dynamodb")
    name = table(dynamodb)
    item = {"p": {"S": "a"}, "nonce": {"S": "1"}}
    dynamodb.put_item(TableName=name, Item=item)

    with pytest.raises(dynamodb.exceptions.ConditionalCheckFailedException) as refused:
        dynamodb.put_item(
            TableName=name,
            Item={"p": {"S": "a"}},
            ConditionExpression="attribute_not_exists(p)",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )

    assert {**refused.value.response}["Item"] == item


def test_a_write_returns_its_consumed_units(engine: Emulator) -> None:
    """A kilobyte costs one write unit and one more byte costs a second unit, as the meter assumes."""
    dynamodb = engine.client("dynamodb")
    name = table(dynamodb)

    def units(size: int) -> float:
        # The names `p` and `v` and the key's value take one byte each.
        item = {"p": {"S": "a"}, "v": {"S": "x" * (size - 3)}}
        answer = dynamodb.put_item(TableName=name, Item=item, ReturnConsumedCapacity="TOTAL")
        dynamodb.delete_item(TableName=name, Key={"p": {"S": "a"}})
        return answer["ConsumedCapacity"]["CapacityUnits"]

    assert (units(1024), units(1025)) == (1, 2)


def test_a_delayed_message_is_received_only_after_its_delay(engine: Emulator) -> None:
    """`DelaySeconds` delays a message for the given time."""
    sqs = engine.client("sqs")
    url = queue(sqs)
    sent = time.time()
    sqs.send_message(QueueUrl=url, MessageBody="later", DelaySeconds=1)

    # The queue is polled all the time, so a message that became visible too early would be received too early.
    assert until(lambda: received(sqs, url)) == ["later"]
    assert time.time() - sent >= 1.0


def test_a_changed_visibility_timeout_redelivers_a_message(engine: Emulator) -> None:
    """A message becomes visible at once if its visibility timeout is set to zero."""
    sqs = engine.client("sqs")
    url = queue(sqs, visibility=600)
    sqs.send_message(QueueUrl=url, MessageBody="again")
    (message,) = sqs.receive_message(QueueUrl=url)["Messages"]

    assert received(sqs, url) == []
    sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0)

    assert until(lambda: received(sqs, url)) == ["again"]


STOPPING = """
def handler(event, context):
    import warnings
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        breakpoint()
    return [str(each.message) for each in caught]
"""


def test_a_breakpoint_reports_that_there_is_no_debugger(engine: Emulator) -> None:
    """A breakpoint only warns, because a debugger would wait for standard input until the function times out."""
    functions, name = engine.client("lambda"), f"probe-{uuid4()}"
    functions.create_function(FunctionName=name, Code={"ZipFile": _zipped(STOPPING)}, **FUNCTION)
    (warning,) = json.loads(functions.invoke(FunctionName=name)["Payload"].read())
    assert "no debugger here; run the handler in a test with pytest --pdb" in warning


ONE_BAD = """
import botocore.session
sqs = botocore.session.get_session().create_client("sqs", region_name="us-east-1")
def handler(event, context):
    failures = []
    for record in event["Records"]:
        receives = record["attributes"]["ApproximateReceiveCount"]
        sqs.send_message(QueueUrl=SEEN, MessageBody=record["body"] + receives)
        if record["body"] == "bad" and receives == "1":
            failures.append({"itemIdentifier": record["messageId"]})
    return {"batchItemFailures": failures}
"""


@pytest.mark.slow
def test_only_the_failed_messages_of_a_batch_are_redelivered(engine: Emulator) -> None:
    """A partial batch response deletes the successful messages and keeps the failed messages for a retry."""
    sqs = engine.client("sqs")
    work, seen = queue(sqs, VISIBILITY), queue(sqs, visibility=600)
    for body in ("good", "bad"):
        sqs.send_message(QueueUrl=work, MessageBody=body)

    consumer(engine, work, ONE_BAD.replace("SEEN", repr(seen)))

    assert collected(sqs, seen, "bad2") == ["bad1", "bad2", "good1"]
    assert until(lambda: left_in(sqs, work) == 0)


DYING = """
import os
import botocore.session
sqs = botocore.session.get_session().create_client("sqs", region_name="us-east-1")
def handler(event, context):
    if not event["Records"]:
        return {}
    receives = event["Records"][0]["attributes"]["ApproximateReceiveCount"]
    sqs.send_message(QueueUrl=SEEN, MessageBody=receives)
    if receives == "1":
        os._exit(1)
    return {}
"""


def test_messages_of_a_crashed_function_are_redelivered(engine: Emulator) -> None:
    """A worker process that ends itself in the middle of a batch loses no message."""
    sqs = engine.client("sqs")
    work, seen = queue(sqs, VISIBILITY), queue(sqs, visibility=600)
    sqs.send_message(QueueUrl=work, MessageBody="task")

    consumer(engine, work, DYING.replace("SEEN", repr(seen)))

    assert collected(sqs, seen, "2") == ["1", "2"]


TELLING = """
import json, os
import botocore.session
sqs = botocore.session.get_session().create_client("sqs", region_name="us-east-1")
def handler(event, context):
    for _ in event["Records"]:
        sqs.send_message(QueueUrl=SEEN, MessageBody=json.dumps(dict(os.environ)))
    return {}
"""


def test_a_function_does_not_inherit_the_environment_of_the_emulators_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server is started with a clean environment, because functions inherit the server's environment."""
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    monkeypatch.setenv("DUETIME_SECRET", "token")

    with emulator.running(port=0) as started:
        sqs = started.client("sqs")
        work, seen = queue(sqs), queue(sqs)
        sqs.send_message(QueueUrl=work, MessageBody="task")
        consumer(started, work, TELLING.replace("SEEN", repr(seen)))
        (told,) = until(lambda: received(sqs, seen))

    environ = json.loads(told)
    assert environ["AWS_ENDPOINT_URL"] == started.endpoint_url
    assert environ["HOME"].startswith(str(started.folder))
    assert not {"AWS_PROFILE", "DUETIME_SECRET"} & environ.keys()


TEMPLATE = {
    "Resources": {
        "Table": {
            "Type": "AWS::DynamoDB::GlobalTable",
            "Properties": {
                "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
                "TimeToLiveSpecification": {"AttributeName": "x", "Enabled": True},
                "Replicas": [
                    {
                        "Region": "us-east-1",
                        "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
                    }
                ],
            },
        }
    }
}


def test_settings_lost_by_the_emulators_cloudformation_are_set_after_the_deployment(engine: Emulator) -> None:
    """A deployment leaves out TTL and recovery, so a separate step sets both."""
    cloudformation, dynamodb = engine.client("cloudformation"), engine.client("dynamodb")
    stack = f"probe-{uuid4()}"
    cloudformation.create_stack(StackName=stack, TemplateBody=json.dumps(TEMPLATE))
    cloudformation.get_waiter("stack_create_complete").wait(StackName=stack, WaiterConfig={"Delay": 1})
    (resource,) = cloudformation.describe_stack_resources(StackName=stack)["StackResources"]
    name = resource["PhysicalResourceId"]

    def settings() -> tuple[str, str]:
        expiry = dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
        backups = dynamodb.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
        return expiry["TimeToLiveStatus"], backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"]

    assert settings() == ("DISABLED", "DISABLED")
    complete_deployment(engine, TEMPLATE, {"Table": name})
    assert settings() == ("ENABLED", "ENABLED")


def test_listed_origins_get_cors_headers_as_in_api_gateway(engine: Emulator) -> None:
    """The embedded CloudFormation loses CORS settings, but after the local deployment a preflight gets CORS headers."""
    origin, cloudformation = "http://localhost:5173", engine.client("cloudformation")
    properties = {"Name": "probe", "ProtocolType": "HTTP", "CorsConfiguration": {"AllowOrigins": [origin]}}
    template = {"Resources": {"Api": {"Type": "AWS::ApiGatewayV2::Api", "Properties": properties}}}
    stack = f"probe-{uuid4()}"
    cloudformation.create_stack(StackName=stack, TemplateBody=json.dumps(template))
    cloudformation.get_waiter("stack_create_complete").wait(StackName=stack, WaiterConfig={"Delay": 1})
    (resource,) = cloudformation.describe_stack_resources(StackName=stack)["StackResources"]
    api = resource["PhysicalResourceId"]

    def preflight(asker: str) -> httpx.Response:
        headers = {"Origin": asker, "Access-Control-Request-Method": "POST"}
        return httpx.options(f"{api_url(engine, api)}/v1/tasks", headers=headers, trust_env=False)

    assert preflight(origin).status_code == 403
    complete_deployment(engine, template, {"Api": api})
    answer = preflight(origin)
    assert (answer.status_code, answer.headers["Access-Control-Allow-Origin"]) == (204, origin)
    assert preflight("https://example.org").status_code == 403


def test_maps_of_the_local_state_machine_have_a_concurrency_limit(engine: Emulator) -> None:
    """After the deployment, the maps in duetime's state machine have a concurrency limit but are otherwise the same."""
    # The import starts a Node.js process, which should not happen in each process that collects this test.
    from duetime_cdk.topology_state_machine import definition  # noqa: PLC0415 - see above

    machines = engine.client("stepfunctions")
    role, function = "arn:aws:iam::000000000000:role/r", "arn:aws:lambda:us-east-1:000000000000:function:f"
    deployed = definition(function)
    made = machines.create_state_machine(name=f"probe-{uuid4()}", definition=json.dumps(deployed), roleArn=role)
    arn = made["stateMachineArn"]
    complete_deployment(
        engine, {"Resources": {"Machine": {"Type": "AWS::StepFunctions::StateMachine"}}}, {"Machine": arn}
    )
    kept = json.loads(machines.describe_state_machine(stateMachineArn=arn)["definition"])
    states, many = kept["States"], kept["States"]["ManyNodes"]
    chunk = many["ItemProcessor"]["States"]["Chunk"]
    assert (states["Nodes"]["MaxConcurrency"], many["MaxConcurrency"], chunk["MaxConcurrency"]) == (
        GENTLE_WAITS,
        1,
        GENTLE_WAITS,
    )
    for before, after in (
        (deployed["States"]["Nodes"], states["Nodes"]),
        (deployed["States"]["ManyNodes"]["ItemProcessor"]["States"]["Chunk"], chunk),
    ):
        assert {**after, "MaxConcurrency": 0} == {**before, "MaxConcurrency": 0}


def test_an_http_api_applies_the_throttle_of_its_stage(engine: Emulator) -> None:
    """Beyond its burst, a stage responds with 429 like API Gateway; the emulator itself accepts every request."""
    gateway: Any = cast("Any", engine).client("apigatewayv2")
    api = gateway.create_api(Name=f"probe-{uuid4()}", ProtocolType="HTTP")["ApiId"]
    throttle = {"ThrottlingRateLimit": 0.001, "ThrottlingBurstLimit": 3}
    gateway.create_stage(ApiId=api, StageName="$default", AutoDeploy=True, DefaultRouteSettings=throttle)

    answers = [httpx.get(f"{api_url(engine, api)}/nowhere", trust_env=False, timeout=60) for _ in range(5)]

    assert [answer.status_code for answer in answers] == [404, 404, 404, 429, 429]
    assert answers[-1].json() == {"message": "Too Many Requests"}


def test_a_proxy_in_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The emulator is started and called without a proxy, because a proxy cannot reach this machine's loopback."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with emulator.running(0) as running:
        assert running.client("s3").list_buckets()["Buckets"] == []
        for name, value in running.environ.items():
            monkeypatch.setenv(name, value)
        assert urllib.request.proxy_bypass(urlsplit(running.endpoint_url).netloc)


def test_the_error_for_a_used_port_names_the_port_option() -> None:
    """If the port is taken, the error names the option that chooses another port."""
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(EmulatorFailed, match="--port"):
        emulator.running(taken.getsockname()[1]).__enter__()


@pytest.mark.slow
def test_a_data_folder_keeps_tables_and_messages_after_a_restart(tmp_path: Path) -> None:
    """With a data folder, tables and messages are kept after a graceful stop."""
    with emulator.running(port=0, data_dir=tmp_path) as first:
        dynamodb, sqs = first.client("dynamodb"), first.client("sqs")
        name, url = table(dynamodb), queue(sqs)
        dynamodb.put_item(TableName=name, Item={"p": {"S": "kept"}})
        sqs.send_message(QueueUrl=url, MessageBody="kept")

    with emulator.running(port=0, data_dir=tmp_path) as second:
        assert second.client("dynamodb").scan(TableName=name)["Items"] == [{"p": {"S": "kept"}}]
        # The address that functions got in the first deployment is still the queue's address.
        assert until(lambda: received(second.client("sqs"), url)) == ["kept"]
