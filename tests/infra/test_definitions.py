"""Tests the template and the custom resource function for schedules and topology definitions in a user's CDK app."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from duetime.contract.schedules.bodies import ScheduleFields
from duetime_cdk.definition_resources import handler as function
from duetime_client.errors import NotFound
from infra.environments import environment_named
from tests.infra.synthesis import add_stack, new_app, referred

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from duetime_cdk.layers.build import Layers
    from duetime_testing import Duetime

DEV = replace(environment_named("dev"), handlers_folder="examples/handlers")
OWNER = "local"


def template_of(
    layers: Layers, folder: Path, add: Callable[[Any, Any], object]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the templates of the user's stack and of duetime's stack."""
    from aws_cdk import Stack

    app = new_app(folder)
    duetime = add_stack(app, DEV, layers)
    own = Stack(app, "Own")
    add(own, duetime)
    made = app.synth()
    return made.get_stack_artifact(own.artifact_id).template, made.get_stack_artifact(duetime.artifact_id).template


def test_a_schedule_is_a_resource_of_the_users_stack(layers: Layers, tmp_path: Path) -> None:
    """The custom resource's function is in duetime's stack and may invoke only the API function."""
    from duetime_cdk import Schedule, TopologyDefinition

    def add(own: Any, duetime: Any) -> None:  # noqa: ANN401 (stacks)
        Schedule(
            own, "Daily", stack=duetime, name="daily", cron="0 9 * * *", task={"type": "report", "payload": {"n": 1}}
        )
        TopologyDefinition(own, "Import", stack=duetime, name="import", nodes={"a": {"type": "report"}}, adopt=True)

    own, duetime = template_of(layers, tmp_path, add)
    made = {
        each["Type"]: each["Properties"] for each in own["Resources"].values() if each["Type"].startswith("Custom::")
    }
    schedule = made["Custom::DuetimeSchedule"]
    assert json.loads(schedule["Body"]) == {"cron": "0 9 * * *", "task": {"type": "report", "payload": {"n": 1}}}
    assert schedule["Name"] == "daily"
    assert "Adopt" not in schedule
    assert "duetime-dev-definitions" in json.dumps(schedule["Owner"])
    assert made["Custom::DuetimeDefinition"]["Adopt"] == "true"
    functions = {
        id_: body
        for id_, body in duetime["Resources"].items()
        if body.get("Properties", {}).get("Handler") == "handler.handler"
    }
    ((_, body),) = functions.items()
    role = referred(body["Properties"]["Role"])
    policies = [
        each["Properties"]["PolicyDocument"]["Statement"]
        for each in duetime["Resources"].values()
        if each["Type"] == "AWS::IAM::Policy" and {"Ref": role} in each["Properties"]["Roles"]
    ]
    invoked = [one["Resource"] for one in policies[0] if one["Action"] == "lambda:InvokeFunction"]
    api = next(id_ for id_ in duetime["Resources"] if id_.startswith("FunctionsApiLive"))
    assert invoked == [{"Ref": api}]


@pytest.fixture(scope="module")
def app_and_duetime(layers: Layers, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """Return an app with duetime's stack, which is not synthesized."""
    app = new_app(tmp_path_factory.mktemp("rejected"))
    return app, add_stack(app, DEV, layers)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"cron": "61 * * * *", "task": {"type": "report"}}, "Own0/Daily: cron "),
        ({"task": {"type": "report"}}, "Own1/Daily: .*cron"),
        ({"cron": "0 9 * * *", "task": {"typ": "report"}}, "Own2/Daily: .*task.typ"),
        ({"cron": "0 9 * * *", "tz": "Europe/London", "task": {"type": "report"}}, "Own3/Daily: tz"),
        ({"cron": "0 9 * * *", "task": {"type": "report"}, "owner": "two words"}, "Own4/Daily: 'two words' cannot own"),
    ],
)
def test_an_invalid_schedule_is_an_error_at_synthesis(
    app_and_duetime: tuple[Any, Any], fields: dict[str, Any], reason: str
) -> None:
    """The API's models reject a schedule at synthesis, and the error has the construct's path and the field."""
    from aws_cdk import Stack

    from duetime_cdk import DefinitionInvalid, Schedule

    app, duetime = app_and_duetime
    with pytest.raises(DefinitionInvalid, match=reason):
        Schedule(Stack(app, reason.partition("/")[0]), "Daily", stack=duetime, name="daily", **fields)


def test_an_invalid_definition_is_an_error_at_synthesis(app_and_duetime: tuple[Any, Any]) -> None:
    """A cycle in a definition is found before the deployment."""
    from aws_cdk import Stack

    from duetime_cdk import DefinitionInvalid, TopologyDefinition

    app, duetime = app_and_duetime
    nodes = {"a": {"type": "x", "depends_on": ["b"]}, "b": {"type": "x", "depends_on": ["a"]}}
    with pytest.raises(DefinitionInvalid, match=r"Circle/Import: nodes.* -> "):
        TopologyDefinition(Stack(app, "Circle"), "Import", stack=duetime, name="import", nodes=nodes)


def test_a_value_known_only_at_deployment_is_accepted(layers: Layers, tmp_path: Path) -> None:
    """A value that is unknown until the deployment, such as the ARN of a function in the app, is accepted."""
    from aws_cdk import aws_sqs as sqs

    from duetime_cdk import Schedule

    def add(own: Any, duetime: Any) -> None:  # noqa: ANN401 (stacks)
        target = {"kind": "sqs", "arn": sqs.Queue(own, "Work").queue_arn}
        Schedule(own, "Daily", stack=duetime, name="daily", rate="5 minutes", task={"type": "x", "target": target})

    own, _ = template_of(layers, tmp_path, add)
    (made,) = [each["Properties"] for each in own["Resources"].values() if each["Type"].startswith("Custom::")]
    assert "Fn::GetAtt" in json.dumps(made["Body"])


def test_a_field_removed_from_the_app_gets_its_default() -> None:
    """A field that is removed from the app returns to its default."""
    from duetime_cdk.definitions import DEFAULTS

    assert DEFAULTS["timezone"] == "UTC"
    assert DEFAULTS["overlap"] == "skip"
    assert set(DEFAULTS) < set(ScheduleFields.model_fields)


class CloudFormation:
    """Sends events to the function, with the API of a test account, and collects the function's results."""

    def __init__(self, duetime: Duetime, monkeypatch: pytest.MonkeyPatch) -> None:
        self.results: list[dict[str, Any]] = []
        monkeypatch.setenv(function.API_FUNCTION, "api")
        monkeypatch.setenv(function.AUTHENTICATION, "none")
        monkeypatch.setattr(function, "send", lambda _url, result: self.results.append(result))
        monkeypatch.setattr(function, "invoke", lambda _name, event: self._invoke(duetime, event))

    @staticmethod
    def _invoke(duetime: Duetime, event: dict[str, Any]) -> dict[str, Any]:
        account = duetime._begin()
        ends: list[Any] = []
        account.time.start_process(
            lambda: ends.append(account.wait_for(account.invoke("api", json.loads(json.dumps(event)))))
        )
        account.time.run_while(lambda: not ends, account.time.now() + 60_000)
        answer: dict[str, Any] = ends[0].answer
        return answer

    def send(self, kind: str, physical_id: str = "", *, request: str = "", **properties: object) -> dict[str, Any]:
        """Send an event and return the result."""
        body = {
            name: json.dumps(value) if name in {"Body", "Defaults"} else value for name, value in properties.items()
        }
        function.handler(
            {
                "RequestType": kind,
                "RequestId": request or f"request-{len(self.results)}",
                "StackId": "stack",
                "LogicalResourceId": "Daily",
                "ResponseURL": "https://cloudformation.example.org",
                "ResourceProperties": {"Owner": OWNER, **body},
                **({"PhysicalResourceId": physical_id} if physical_id else {}),
            },
            None,
        )
        return self.results[-1]

    def schedule(
        self,
        kind: str,
        physical_id: str = "",
        *,
        name: str = "daily",
        request: str = "",
        adopt: str = "",
        **body: object,
    ) -> dict[str, Any]:
        """Send an event for a schedule."""
        from duetime_cdk.definitions import DEFAULTS

        whole = {"task": {"type": "report"}, **body}
        more = {"Adopt": adopt} if adopt else {}
        return self.send(
            kind, physical_id, request=request, Kind="schedule", Name=name, Body=whole, Defaults=DEFAULTS, **more
        )


@pytest.fixture
def cloudformation(duetime: Duetime, monkeypatch: pytest.MonkeyPatch) -> CloudFormation:
    """Return CloudFormation for the test's account."""
    duetime.register("report", lambda _context, _payload: None)
    return CloudFormation(duetime, monkeypatch)


def test_a_schedule_is_created_updated_and_deleted(duetime: Duetime, cloudformation: CloudFormation) -> None:
    """An update sets omitted fields to their defaults and removes fields of the task; a deletion can be repeated."""
    task = {"type": "report", "tags": {"team": "a", "cost": "1"}, "timeout_seconds": 20, "payload": {"a": 1, "b": 2}}
    made = cloudformation.schedule("Create", cron="0 9 * * *", timezone="Europe/London", task=task)
    assert made["Status"] == "SUCCESS"
    schedule = duetime.client.schedules.get("daily")
    assert (schedule.cron, schedule.timezone) == ("0 9 * * *", "Europe/London")
    id_ = made["PhysicalResourceId"]
    updated = cloudformation.schedule(
        "Update", id_, rate="5 minutes", task={"type": "report", "tags": {"team": "b"}, "payload": {"a": 2}}
    )
    assert updated == {**made, "RequestId": updated["RequestId"]}
    document: Any = duetime.client.schedules.get("daily").document
    assert (document["rate"], document["timezone"], document.get("cron")) == ("5 minutes", "UTC", None)
    assert document["task"]["tags"] == {"team": "b"}
    assert document["task"]["timeout_seconds"] == 60
    assert document["task"]["payload"] == {"a": 2}
    for _ in range(2):
        assert cloudformation.schedule("Delete", id_)["Status"] == "SUCCESS"
    with pytest.raises(NotFound):
        duetime.client.schedules.get("daily")


def test_an_existing_schedule_is_taken_over_only_on_request(duetime: Duetime, cloudformation: CloudFormation) -> None:
    """The error of a failed creation says how to take the schedule over; the rollback does not delete the schedule."""
    duetime.client.schedules.create("daily", cron="0 1 * * *", task={"type": "report"})
    failed = cloudformation.schedule("Create", cron="0 2 * * *")
    assert failed["Status"] == "FAILED"
    assert "exists already" in failed["Reason"]
    assert "adopt=True" in failed["Reason"]
    assert cloudformation.schedule("Delete", failed["PhysicalResourceId"])["Status"] == "SUCCESS"
    assert duetime.client.schedules.get("daily").cron == "0 1 * * *"
    assert cloudformation.schedule("Create", cron="0 2 * * *", adopt="true")["Status"] == "SUCCESS"
    assert duetime.client.schedules.get("daily").cron == "0 2 * * *"


def test_a_repeated_cloudformation_event_has_the_same_result(duetime: Duetime, cloudformation: CloudFormation) -> None:
    """An event that CloudFormation repeats after a lost response has the same result as the first event."""
    results = [cloudformation.schedule("Create", cron="0 9 * * *", request="one") for _ in range(2)]
    assert results[0] == results[1]
    assert results[0]["Status"] == "SUCCESS"
    assert len(list(duetime.client.schedules.list())) == 1


def test_a_new_name_is_a_new_resource(duetime: Duetime, cloudformation: CloudFormation) -> None:
    """After a schedule's name changes, CloudFormation deletes the previous resource by its id."""
    before = cloudformation.schedule("Create", cron="0 9 * * *")["PhysicalResourceId"]
    after = cloudformation.schedule("Update", before, name="nightly", cron="0 9 * * *")["PhysicalResourceId"]
    assert after != before
    cloudformation.schedule("Delete", before)
    assert [each.name for each in duetime.client.schedules.list()] == ["nightly"]


def test_a_schedule_deleted_by_hand_is_created_again(duetime: Duetime, cloudformation: CloudFormation) -> None:
    """Updating a schedule that was deleted by hand creates the schedule again."""
    id_ = cloudformation.schedule("Create", cron="0 9 * * *")["PhysicalResourceId"]
    duetime.client.schedules.delete("daily")
    assert cloudformation.schedule("Update", id_, cron="0 8 * * *")["Status"] == "SUCCESS"
    assert duetime.client.schedules.get("daily").cron == "0 8 * * *"


def test_a_rejected_request_fails_the_deployment_with_the_field(cloudformation: CloudFormation) -> None:
    """A type without a handler, which only the deployment can detect, fails the deployment with the field's name."""
    failed = cloudformation.schedule("Create", cron="0 9 * * *", task={"type": "no such"})
    assert failed["Status"] == "FAILED"
    assert "task.type" in failed["Reason"]


def test_a_definition_is_created_updated_and_deleted(duetime: Duetime, cloudformation: CloudFormation) -> None:
    """An existing definition is taken over only on request."""

    def send(kind: str, id_: str = "", adopt: str = "", **node: object) -> dict[str, Any]:
        more = {"Adopt": adopt} if adopt else {}
        body = {"nodes": {"a": {"type": "report", **node}}}
        return cloudformation.send(kind, id_, Kind="definition", Name="import", Body=body, **more)

    made = send("Create")
    assert made["Status"] == "SUCCESS"
    assert send("Update", made["PhysicalResourceId"], timeout_seconds=30)["Status"] == "SUCCESS"
    assert duetime.client.topology_definitions.get("import").version == 2
    refused = send("Create")
    assert (refused["Status"], refused["PhysicalResourceId"]) == ("FAILED", function.NOTHING)
    assert send("Create", adopt="true")["Status"] == "SUCCESS"
    assert send("Delete", made["PhysicalResourceId"])["Status"] == "SUCCESS"
    with pytest.raises(NotFound):
        duetime.client.topology_definitions.get("import")


@pytest.mark.parametrize(
    ("authentication", "owner", "identity"),
    [
        ("jwt", "billing", {"jwt": {"claims": {"sub": "billing"}}}),
        (
            "iam",
            "123456789012:role/Billing",
            {"iam": {"userArn": "arn:aws:sts::123456789012:assumed-role/Billing/cloudformation"}},
        ),
        ("iam", "123456789012:user/ada", {"iam": {"userArn": "arn:aws:iam::123456789012:user/ada"}}),
    ],
)
def test_requests_of_custom_resources_are_made_for_the_owner(
    monkeypatch: pytest.MonkeyPatch, authentication: str, owner: str, identity: dict[str, Any]
) -> None:
    """The API determines the owner from the identity in the event that the gateway would send."""
    from duetime.settings import Settings
    from functions.api.requests import caller_of

    events: list[dict[str, Any]] = []
    monkeypatch.setenv(function.API_FUNCTION, "api")
    monkeypatch.setenv(function.AUTHENTICATION, authentication)

    def invoke(_name: str, event: dict[str, Any]) -> dict[str, Any]:
        events.append(event)
        return {"statusCode": 200}

    monkeypatch.setattr(function, "invoke", invoke)
    function.call(owner, "GET", "/v1/schedules/daily")
    assert events[0]["requestContext"]["authorizer"] == identity
    assert caller_of(events[0], Settings({"DUETIME_AUTHENTICATION": authentication})).owner == owner
