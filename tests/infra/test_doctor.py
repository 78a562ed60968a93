"""Tests `duetime doctor` on broken deployments, with the stack on the embedded AWS and an API in virtual time.

Each test breaks one part of a healthy deployment, and the doctor must name exactly this part.
"""

from __future__ import annotations

import io
import json
import shlex
import zipfile
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

import botocore.session
import httpx
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders

from duetime_client import Client, ClientError, Unreachable
from duetime_client.doctor.checks import CHECKS, Finding, Severity, examine
from duetime_client.doctor.deployment import Deployment
from duetime_client.retries import Retries
from duetime_local.emulator import server
from duetime_testing import Duetime
from infra import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from duetime_client import RetryPolicy
    from duetime_local.emulator.server import Emulator
    from tests.infra.synthesis import Synthesis

BAD = {Severity.WARNING, Severity.PROBLEM}
QUOTAS = {"L-B99A9384": 1000.0, "L-8A5B8E43": 10_000.0}
NUMBERS = count()
REGION = "us-east-1"


@dataclass
class Account:
    """A healthy deployment, with its stack on the embedded AWS and an API in virtual time.

    Attributes:
        session: the botocore session that the doctor uses.
        ahead: the time by which this machine's clock is ahead of AWS's clock.
        client: if set, the doctor uses this client instead of the API in virtual time.
    """

    emulator: Emulator
    session: Any
    stack: str
    duetime: Duetime
    ahead: timedelta = timedelta()
    client: Client | ClientError | None = None
    region: str = REGION
    _clients: dict[str, Any] = field(default_factory=dict)

    def aws(self, service: str) -> Any:  # noqa: ANN401 - botocore has no types
        """Return a service's client, with which a test breaks something."""
        if service not in self._clients:
            self._clients[service] = self.session.create_client(service)
        return self._clients[service]

    @property
    def outputs(self) -> dict[str, str]:
        """Return the stack's outputs."""
        (stack,) = self.aws("cloudformation").describe_stacks(StackName=self.stack)["Stacks"]
        return {each["OutputKey"]: each["OutputValue"] for each in stack["Outputs"]}

    def id_of(self, beginning: str, type_: str) -> str:
        """Return the physical id of the resource whose logical id has this prefix."""
        pages = self.aws("cloudformation").get_paginator("list_stack_resources").paginate(StackName=self.stack)
        every = [each for page in pages for each in page["StackResourceSummaries"] if each["ResourceType"] == type_]
        (found,) = [each["PhysicalResourceId"] for each in every if each["LogicalResourceId"].startswith(beginning)]
        return str(found)

    def metric(self, namespace: str, name: str, value: float, **dimension: str) -> None:
        """Make CloudWatch return a value for one of AWS's own metrics, which the embedded AWS does not record."""
        ((key, of),) = dimension.items()
        wanted = {"Namespace": namespace, "MetricName": name, "Dimensions": [{"Name": key, "Value": of}]}

        def answer(params: dict[str, Any], **_: object) -> tuple[Any, dict[str, Any]]:
            queries = json.loads(params["body"])["MetricDataQueries"]
            found = [
                {"Id": each["Id"], "Values": [value] if each["MetricStat"]["Metric"] == wanted else []}
                for each in queries
            ]
            return _answer(MetricDataResults=found)

        self.session.register("before-call.cloudwatch.GetMetricData", answer)

    def log(self, function: str, line: str) -> None:
        """Put a line into a function's log; the embedded AWS itself cannot search for one of several terms."""
        group = self.aws("lambda").get_function_configuration(
            FunctionName=self.outputs[f"{function.capitalize()}FunctionName"]
        )["LoggingConfig"]["LogGroup"]

        def answer(params: dict[str, Any], **_: object) -> tuple[Any, dict[str, Any]]:
            asked = json.loads(params["body"])
            terms = [each.removeprefix("?") for each in shlex.split(asked["filterPattern"])]
            is_found = asked["logGroupName"] == group and any(each in line for each in terms)
            return _answer(events=[{"message": line}] if is_found else [])

        self.session.register("before-call.logs.FilterLogEvents", answer)

    def findings(self) -> list[Finding]:
        """Return the doctor's findings."""
        client = self.duetime.client if self.client is None else self.client
        deployment = Deployment(self.session, self.stack, client, lambda: datetime.now(UTC) + self.ahead)
        return [each for _, found in examine(deployment) for each in found]


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    """Return the embedded AWS."""
    with server.running() as running:
        yield running


@pytest.fixture(scope="module")
def template(synthesis_of: Callable[[str], Synthesis], emulator: Emulator) -> dict[str, Any]:
    """Return the template of `dev` without parts that the embedded AWS lacks, with empty functions and layers."""
    made = deepcopy(synthesis_of("dev").template)
    s3 = emulator.client("s3")
    s3.create_bucket(Bucket="assets")
    for id_, resource in list(made["Resources"].items()):
        properties = resource.get("Properties", {})
        if (
            resource["Type"] == "AWS::CloudWatch::Dashboard"
            or resource["Type"].startswith("Custom::")
            or "Metrics" in properties
        ):
            del made["Resources"][id_]
        elif resource["Type"] == "AWS::Lambda::LayerVersion":
            s3.put_object(Bucket="assets", Key="layer.zip", Body=_archive("python/nothing.py", ""))
            properties["Content"] = {"S3Bucket": "assets", "S3Key": "layer.zip"}
        elif resource["Type"] == "AWS::Lambda::Function":
            file = f"{properties['Handler'].split('.')[0]}/handler.py"
            s3.put_object(
                Bucket="assets", Key=file, Body=_archive(file, "def handler(event, context):\n    return {}\n")
            )
            properties["Code"] = {"S3Bucket": "assets", "S3Key": file}
    made.pop("Parameters", None)
    made.pop("Rules", None)
    return made


@pytest.fixture
def account(emulator: Emulator, template: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    """Return a healthy deployment for each test."""
    for name, value in emulator.environ.items():
        monkeypatch.setenv(name, value)
    session = botocore.session.get_session()
    session.register("before-call.service-quotas.GetServiceQuota", _quota)  # type: ignore[arg-type] # it may respond
    name = f"duetime-dev{next(NUMBERS)}"
    key = f"{name}.json"
    emulator.client("s3").put_object(Bucket="assets", Key=key, Body=json.dumps(template).encode())
    # The account has been running for about ten minutes.
    duetime = Duetime(start=datetime.now(UTC) - timedelta(minutes=10))
    duetime._account.leaves_out_idle_ticks = False
    duetime.advance(minutes=2)
    made = Account(emulator, session, name, duetime)
    formation = made.aws("cloudformation")
    url = f"{emulator.endpoint_url}/assets/{key}"
    formation.create_stack(StackName=name, TemplateURL=url, Capabilities=["CAPABILITY_IAM"])
    formation.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 0.05, "MaxAttempts": 600})
    _complete(made, template)
    yield made
    formation.delete_stack(StackName=name)
    duetime.close()


def _complete(account: Account, template: dict[str, Any]) -> None:
    """Set the properties that the embedded CloudFormation ignores, and confirm a subscription to the alarms."""
    outputs = account.outputs
    dynamodb, table = account.aws("dynamodb"), outputs["TableName"]
    ttl = {"Enabled": True, "AttributeName": "x"}
    dynamodb.update_time_to_live(TableName=table, TimeToLiveSpecification=ttl)
    recovery = {"PointInTimeRecoveryEnabled": True}
    dynamodb.update_continuous_backups(TableName=table, PointInTimeRecoverySpecification=recovery)
    queue = account.aws("sqs").create_queue(QueueName=f"{account.stack}-mail")["QueueUrl"]
    arn = f"arn:aws:sqs:{REGION}:{server.ACCOUNT}:{queue.rpartition('/')[2]}"
    account.aws("sns").subscribe(TopicArn=outputs["AlarmTopicArn"], Protocol="sqs", Endpoint=arn)
    for resource in template["Resources"].values():
        properties = resource.get("Properties", {})
        if resource["Type"] == "AWS::ApiGatewayV2::Stage" and properties["StageName"] == "$default":
            account.aws("apigatewayv2").update_stage(
                ApiId=outputs["ApiId"], StageName="$default", DefaultRouteSettings=properties["DefaultRouteSettings"]
            )


def _quota(params: dict[str, Any], **_: object) -> tuple[Any, dict[str, Any]]:
    """Return a quota from Service Quotas, which the embedded AWS lacks."""
    return _answer(Quota={"Value": QUOTAS[json.loads(params["body"])["QuotaCode"]]})


def _answer(**content: object) -> tuple[Any, dict[str, Any]]:
    """Return an AWS response for botocore."""
    return AWSResponse("", 200, HTTPHeaders(), None), {
        **content,
        "ResponseMetadata": {"HTTPStatusCode": 200, "HTTPHeaders": {}},
    }


def _archive(name: str, text: str) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr(name, text)
    return written.getvalue()


# Each of these functions breaks the part that its name describes.


def no_credentials(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: D103 - see the line above
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    account.session = botocore.session.get_session()


def other_region(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: D103
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    account.session = botocore.session.get_session()


def stream_off(account: Account, _: pytest.MonkeyPatch) -> None:  # noqa: D103
    off = {"StreamEnabled": False}
    account.aws("dynamodb").update_table(TableName=account.outputs["TableName"], StreamSpecification=off)


def ttl_off(account: Account, _: pytest.MonkeyPatch) -> None:  # noqa: D103
    off = {"Enabled": False, "AttributeName": "x"}
    account.aws("dynamodb").update_time_to_live(TableName=account.outputs["TableName"], TimeToLiveSpecification=off)


def recovery_off(account: Account, _: pytest.MonkeyPatch) -> None:  # noqa: D103
    off = {"PointInTimeRecoveryEnabled": False}
    table = account.outputs["TableName"]
    account.aws("dynamodb").update_continuous_backups(TableName=table, PointInTimeRecoverySpecification=off)


def queue_without_redrive(account: Account, _: pytest.MonkeyPatch) -> None:  # noqa: D103
    account.aws("sqs").set_queue_attributes(
        QueueUrl=account.outputs["QueueUrlNormal"], Attributes={"RedrivePolicy": ""}
    )


def event_source_disabled(account: Account, _: pytest.MonkeyPatch) -> None:  # noqa: D103
    mapping = account.id_of("FunctionsWorkerLiveFromNormal", "AWS::Lambda::EventSourceMapping")
    account.aws("lambda").update_event_source_mapping(UUID=mapping, Enabled=False)


def tick_disabled(account: Account, _: pytest.MonkeyPatch) -> None:  # noqa: D103
    scheduler, name = account.aws("scheduler"), account.id_of("Tick", "AWS::Scheduler::Schedule")
    found = scheduler.get_schedule(Name=name)
    kept = {key: found[key] for key in ("FlexibleTimeWindow", "ScheduleExpression", "Target")}
    scheduler.update_schedule(Name=name, State="DISABLED", **kept)


def worker_stopped(account: Account, _: pytest.MonkeyPatch) -> None:  # noqa: D103
    worker = account.outputs["WorkerFunctionName"]
    account.aws("lambda").put_function_concurrency(FunctionName=worker, ReservedConcurrentExecutions=0)


def quota_too_low(account: Account, _: pytest.MonkeyPatch) -> None:  # noqa: D103
    account.session.register("before-call.lambda.GetAccountSettings", _ten_executions)


def _ten_executions(**_: object) -> tuple[Any, dict[str, Any]]:
    return _answer(AccountLimit={"ConcurrentExecutions": 10, "UnreservedConcurrentExecutions": 10})


def old_layer(account: Account, _: pytest.MonkeyPatch) -> None:  # noqa: D103
    functions, worker = account.aws("lambda"), account.outputs["WorkerFunctionName"]
    (*others, last) = [each["Arn"] for each in functions.get_function_configuration(FunctionName=worker)["Layers"]]
    name = last.split(":")[-2]
    older = functions.publish_layer_version(LayerName=name, Content={"ZipFile": _archive("python/old.py", "")})
    functions.update_function_configuration(FunctionName=worker, Layers=[*others, older["LayerVersionArn"]])


def import_error(account: Account, _: pytest.MonkeyPatch) -> None:  # noqa: D103
    account.metric("AWS/Lambda", "Errors", 3, FunctionName=account.outputs["WorkerFunctionName"])
    account.log(
        "worker", '[ERROR] Runtime.ImportModuleError: Unable to import module "worker.handler": No module named x'
    )


def out_of_memory(account: Account, _: pytest.MonkeyPatch) -> None:  # noqa: D103
    account.log("topology", "RequestId: 1 Error: Runtime exited with error: signal: killed Runtime.ExitError")


def access_denied(account: Account, _: pytest.MonkeyPatch) -> None:  # noqa: D103
    account.log("worker", "AccessDeniedException: not authorized to perform: dynamodb:Query")


def three_causes(account: Account, _: pytest.MonkeyPatch) -> None:  # noqa: D103
    def fail(_context: object, number: int) -> None:
        raise [ValueError, KeyError, OSError][number]("no")

    account.duetime.register("report", fail)
    for number in range(3):
        account.duetime.client.tasks.create("report", payload=number, retry={"max_attempts": 1})
    account.duetime.advance(seconds=30)


def circuit_open(account: Account, _: pytest.MonkeyPatch) -> None:  # noqa: D103
    account.duetime.at(datetime.now(UTC) - timedelta(minutes=1))
    url = "https://down.example.org/run"
    account.duetime.http.respond(url, status=503)
    retry: RetryPolicy = {"max_attempts": 9, "initial_seconds": 1}
    for _number in range(8):
        account.duetime.client.tasks.create("call", target={"kind": "http", "url": url}, retry=retry)
    account.duetime.advance(seconds=30)


def switch_left_on(account: Account, _: pytest.MonkeyPatch) -> None:  # noqa: D103
    account.duetime.client.switches.put("type", "report", stopped=True, reason="migration")


def cursor_stuck(account: Account, _: pytest.MonkeyPatch) -> None:  # noqa: D103
    account.duetime._account.ticking = False


def alarm_on(account: Account, _: pytest.MonkeyPatch) -> None:  # noqa: D103
    name = account.id_of("AlarmsWorkerFailing", "AWS::CloudWatch::Alarm")
    account.aws("cloudwatch").set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason="a test")


def alarm_deleted(account: Account, _: pytest.MonkeyPatch) -> None:  # noqa: D103
    name = account.id_of("AlarmsWorkerFailing", "AWS::CloudWatch::Alarm")
    account.aws("cloudwatch").delete_alarms(AlarmNames=[name])


def nobody_subscribed(account: Account, _: pytest.MonkeyPatch) -> None:  # noqa: D103
    sns = account.aws("sns")
    for each in sns.list_subscriptions_by_topic(TopicArn=account.outputs["AlarmTopicArn"])["Subscriptions"]:
        sns.unsubscribe(SubscriptionArn=each["SubscriptionArn"])


def clock_wrong(account: Account, _: pytest.MonkeyPatch) -> None:  # noqa: D103
    account.ahead = -timedelta(minutes=5)


def stream_unread(account: Account, _: pytest.MonkeyPatch) -> None:  # noqa: D103
    account.metric("AWS/Lambda", "IteratorAge", 600_000, FunctionName=account.outputs["BroadcastFunctionName"])


def memory_changed(account: Account, _: pytest.MonkeyPatch) -> None:  # noqa: D103
    name = account.outputs["ApiFunctionName"]
    account.aws("lambda").update_function_configuration(FunctionName=name, MemorySize=128)


def secret_deleted(account: Account, _: pytest.MonkeyPatch) -> None:  # noqa: D103
    account.aws("secretsmanager").delete_secret(SecretId=account.outputs["SigningSecretArn"], RecoveryWindowInDays=7)


def bucket_deleted(account: Account, _: pytest.MonkeyPatch) -> None:  # noqa: D103
    account.aws("s3").delete_bucket(Bucket=account.outputs["BucketName"])


def api_throttled(account: Account, _: pytest.MonkeyPatch) -> None:  # noqa: D103
    def reject(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(429, json={"message": "Too Many Requests"})

    transport = httpx.MockTransport(reject)
    account.client = Client("http://localhost", retries=Retries(0), http_transport=transport)


def api_unreachable(account: Account, _: pytest.MonkeyPatch) -> None:  # noqa: D103
    account.client = Unreachable("https://tasks.example.org", "name not known", sent=False)


def stage_throttled(account: Account, _: pytest.MonkeyPatch) -> None:  # noqa: D103
    none = {"ThrottlingRateLimit": 0.0, "ThrottlingBurstLimit": 0}
    gateway = account.aws("apigatewayv2")
    gateway.update_stage(ApiId=account.outputs["ApiId"], StageName="$default", DefaultRouteSettings=none)


def changes_lost(account: Account, _: pytest.MonkeyPatch) -> None:  # noqa: D103
    lost = account.id_of("FunctionsStreamLost", "AWS::SQS::Queue")
    account.aws("sqs").send_message(QueueUrl=lost, MessageBody="{}")


def backlog_old(account: Account, _: pytest.MonkeyPatch) -> None:  # noqa: D103
    queue = account.outputs["QueueUrlNormal"].rpartition("/")[2]
    account.metric("AWS/SQS", "ApproximateAgeOfOldestMessage", 3600, QueueName=queue)


BROKEN: list[tuple[Callable[[Account, pytest.MonkeyPatch], None], str, str]] = [
    (no_credentials, "credentials", "no AWS credentials"),
    (other_region, "stack", "no stack duetime-dev"),
    (clock_wrong, "clock", "s behind AWS"),
    (api_throttled, "API", "429"),
    (api_unreachable, "API", "cannot reach"),
    (stage_throttled, "API throttling", "ThrottlingRateLimit"),
    (cursor_stuck, "dispatch", "do not advance"),
    (switch_left_on, "switches", "has stopped type report"),
    (circuit_open, "circuits", "down.example.org has been open"),
    (three_causes, "dead letters", "type report failed with ValueError"),
    (stream_off, "table", "stream is off"),
    (ttl_off, "backups and TTL", "TTL of the table is off"),
    (recovery_off, "backups and TTL", "point-in-time recovery"),
    (bucket_deleted, "bucket", "does not exist"),
    (secret_deleted, "secrets", "marked for deletion"),
    (tick_disabled, "tick", "is disabled"),
    (queue_without_redrive, "queues", "no redrive policy"),
    (changes_lost, "queues", "changes of the table that were not processed"),
    (backlog_old, "queues", "60 minutes old"),
    (event_source_disabled, "event sources", "is disabled"),
    (stream_unread, "event sources", "10 minutes late"),
    (import_error, "functions", "ImportModuleError"),
    (out_of_memory, "functions", "signal: killed"),
    (worker_stopped, "concurrency", "is stopped"),
    (quota_too_low, "quotas", "10 concurrent executions"),
    (old_layer, "versions", "worker runs code that differs"),
    (memory_changed, "drift", "MemorySize of FunctionsApi"),
    (alarm_on, "alarms", "is in ALARM"),
    (alarm_deleted, "alarms", "was deleted"),
    (nobody_subscribed, "recipients of alarms", "nobody receives"),
    (access_denied, "denied calls", "dynamodb:Query"),
]


def test_the_page_states_the_number_of_tested_broken_deployments() -> None:
    """The how-to page states how many broken deployments this module tests."""
    page = ROOT / "docs" / "how-to" / "diagnose-a-deployment.md"
    assert f"{len(BROKEN)} broken deployments" in page.read_text(encoding="utf-8")


def _set_time(account: Account) -> None:
    """Advance the virtual time to about the current time."""
    account.duetime.at(datetime.now(UTC))


@pytest.mark.slow
def test_a_healthy_deployment_has_no_findings(account: Account) -> None:
    """All checks run without a finding, and the listed IAM actions are exactly the actions that the calls need."""
    _set_time(account)
    asked: set[str] = set()
    account.session.register("before-parameter-build", lambda model, **_: asked.add(_action(model)))
    found = account.findings()
    assert {each.check: (each.severity, each.seen) for each in found if each.severity is not Severity.OK} == {}
    assert [each.check for each in found] == [each.name for each in CHECKS]
    # This action is used only in a deployment with a standby; see `test_region_command.py`.
    assert {action for check in CHECKS for action in check.asks} - asked == {"s3:GetReplicationConfiguration"}
    assert asked <= {action for check in CHECKS for action in check.asks}


def _action(model: Any) -> str:  # noqa: ANN401 - botocore has no types
    """Return the IAM action of a call."""
    service = model.service_model
    if service.service_name == "apigatewayv2":
        return f"apigateway:{model.http['method']}"
    return f"{service.signing_name.replace('monitoring', 'cloudwatch')}:{model.name}"


@pytest.mark.slow
def test_a_trigger_that_has_not_run_is_a_problem_only_after_some_minutes(account: Account) -> None:
    """In a new stack's first minute, a trigger that has not run yet is no problem, and the finding gives the reason."""
    account.duetime.close()
    account.duetime = Duetime(start=datetime.now(UTC))
    account.duetime._account.ticking = False
    for minutes, severity in ((0, Severity.OK), (6, Severity.PROBLEM)):
        account.ahead = timedelta(minutes=minutes)
        (found,) = (each for each in account.findings() if each.check == "dispatch")
        assert found.severity is severity, found
        assert found.seen.startswith("the trigger has not run yet")
        assert ("it was deployed" in found.seen) == (severity is Severity.OK)


@pytest.mark.slow
def test_a_check_without_permission_is_reported_as_not_known(account: Account) -> None:
    """If a check's call is denied, the missing permission is named and the other checks are still run."""
    _set_time(account)

    def deny(**_: object) -> tuple[Any, dict[str, Any]]:
        answer = {"Error": {"Code": "AccessDenied", "Message": "no"}, "ResponseMetadata": {"HTTPHeaders": {}}}
        return AWSResponse("", 403, HTTPHeaders(), None), answer

    account.session.register("before-call.scheduler.GetSchedule", deny)
    found = {each.check: each for each in account.findings() if each.severity is not Severity.OK}
    assert found.keys() == {"tick"}
    assert found["tick"].severity is Severity.UNKNOWN
    assert found["tick"].seen == "AccessDenied for GetSchedule"
    assert "scheduler:GetSchedule" in found["tick"].advice


@pytest.mark.slow
@pytest.mark.parametrize(("break_it", "check", "seen"), BROKEN, ids=[each[0].__name__ for each in BROKEN])
def test_the_finding_for_a_broken_deployment_names_the_broken_part(
    account: Account,
    break_it: Callable[[Account, pytest.MonkeyPatch], None],
    check: str,
    seen: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only the check for the broken part has a finding, which names the part and says what to do."""
    break_it(account, monkeypatch)
    _set_time(account)
    found = [each for each in account.findings() if each.severity in BAD]
    assert {each.check for each in found} == {check}, found
    assert seen in " ".join(each.seen for each in found)
    assert all(each.advice for each in found)
