"""Tests the stack in a user's CDK app, with its attributes, permissions boundary, tags and custom domain."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.tasks.task_options import Priority
from duetime.settings import Authentication
from duetime_cdk.environments import LOCAL_STACK, FunctionName
from duetime_cdk.errors import UnsafeEnvironment
from infra import ROOT
from infra.environments import environment_named
from tests.infra.synthesis import Synthesis, add_stack, new_app, referred

if TYPE_CHECKING:
    from pathlib import Path

    from duetime_cdk.layers.build import Layers

BOUNDARY = "arn:aws:iam::123456789012:policy/Developers"
CERTIFICATE = "arn:aws:acm:eu-west-1:123456789012:certificate/0a1b2c3d-0000-1111-2222-333344445555"
PROD = replace(environment_named("prod"), handlers_folder="examples/handlers")


def test_every_attribute_of_the_stack_exists(layers: Layers, tmp_path: Path) -> None:
    """In a stack with every optional part, each attribute exists, and one line in the user's app grants access."""
    from aws_cdk import Stack
    from aws_cdk import aws_lambda as lambda_
    from aws_cdk import aws_sns_subscriptions as subscriptions

    app = new_app(tmp_path)
    stack = add_stack(app, replace(LOCAL_STACK, archive_days=30), layers)
    assert set(stack.queues) == set(Priority)
    assert set(stack.pulled_queues) == {"pulled"}
    assert set(stack.functions) == set(FunctionName) - {FunctionName.HANDLERS, FunctionName.ATTEMPTS}
    assert stack.functions[FunctionName.WORKER] is stack.worker
    assert stack.event_bus is not None
    assert stack.archive_bucket is not None
    assert stack.intake_queue is not None
    assert stack.api_domain is None
    own = Stack(app, "Own")
    function = lambda_.Function(
        own,
        "Caller",
        code=lambda_.Code.from_inline("def handler(event, context): ..."),
        handler="index.handler",
        runtime=lambda_.Runtime.PYTHON_3_13,
        environment={"DUETIME_URL": stack.api_url},
    )
    stack.grant_requests(function)
    stack.alarm_topic.add_subscription(subscriptions.EmailSubscription("ops@example.org"))
    template = app.synth().get_stack_artifact(own.artifact_id).template
    policies = [each for each in template["Resources"].values() if each["Type"] == "AWS::IAM::Policy"]
    assert [each["Properties"]["PolicyDocument"]["Statement"][0]["Action"] for each in policies] == [
        "execute-api:Invoke"
    ]


def test_every_attribute_is_documented() -> None:
    """Each attribute has a type and a sentence, which an editor shows."""
    from docs.sections.markdown import documented
    from duetime_cdk import stack

    told = documented(stack, "DuetimeStack")
    assert {"api", "table", "worker", "queues", "event_bus", "alarm_topic"} <= set(told)
    assert [name for name, text in told.items() if not text] == []


def test_a_permissions_boundary_applies_to_every_role(layers: Layers, tmp_path: Path) -> None:
    """The boundary also applies to the CDK's own functions, so an account that requires it accepts the stack."""
    from aws_cdk import aws_iam as iam

    app = new_app(tmp_path)
    stack = add_stack(app, PROD, layers)
    iam.PermissionsBoundary.of(app).apply(iam.ManagedPolicy.from_managed_policy_arn(stack, "Boundary", BOUNDARY))
    template = app.synth().get_stack_artifact(stack.artifact_id).template
    roles = [each for each in template["Resources"].values() if each["Type"] == "AWS::IAM::Role"]
    assert len(roles) > len(FunctionName) - 3
    assert {role["Properties"].get("PermissionsBoundary") for role in roles} == {BOUNDARY}


def test_resources_have_the_tags_of_the_app_and_of_duetime(layers: Layers, tmp_path: Path) -> None:
    """Billed resources have the app's tags, such as a cost center, in addition to the project and environment tags."""
    from aws_cdk import Tags

    app = new_app(tmp_path)
    stack = add_stack(app, PROD, layers)
    Tags.of(stack).add("cost-center", "4711")
    template = app.synth().get_stack_artifact(stack.artifact_id).template
    for type_ in ("AWS::Lambda::Function", "AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::SQS::Queue"):
        made = [each["Properties"]["Tags"] for each in template["Resources"].values() if each["Type"] == type_]
        assert made
        for tags in made:
            assert {"cost-center", "project", "environment"} <= {tag["Key"] for tag in tags}


def test_the_api_can_have_a_custom_domain(layers: Layers, tmp_path: Path) -> None:
    """The outputs have the domain's address for clients and the DNS alias's target; console links use the domain."""
    environment = replace(
        environment_named("dev"),
        domain_name="tasks.example.org",
        certificate_arn=CERTIFICATE,
        authentication=Authentication.JWT,
        jwt_issuer="https://id.example.org",
        jwt_audience=("duetime",),
        console=True,
    )
    synthesis = Synthesis(environment, layers, tmp_path)
    ((domain, properties),) = synthesis.properties("AWS::ApiGatewayV2::DomainName").items()
    assert properties["DomainName"] == "tasks.example.org"
    assert properties["DomainNameConfigurations"][0]["CertificateArn"] == CERTIFICATE
    (mapping,) = synthesis.properties("AWS::ApiGatewayV2::ApiMapping").values()
    assert referred(mapping["DomainName"]) == domain
    outputs = synthesis.template["Outputs"]
    assert outputs["ApiUrl"]["Value"] == "https://tasks.example.org"
    assert outputs["ApiDomainTarget"]["Value"] == {"Fn::GetAtt": [domain, "RegionalDomainName"]}
    variables = synthesis.functions()["worker"]["Environment"]["Variables"]
    assert variables["DUETIME_CONSOLE_URL"] == "https://tasks.example.org/console/index.html"


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"domain_name": "tasks.example.org"}, "need each other"),
        ({"certificate_arn": CERTIFICATE}, "need each other"),
        ({"domain_name": "https://x.org", "certificate_arn": CERTIFICATE}, "'https://x.org' is not a domain"),
        ({"domain_name": "x.org", "certificate_arn": "arn"}, "'arn' is not the ARN of a certificate"),
    ],
)
def test_an_invalid_domain_is_rejected_before_the_deployment(settings: dict[str, str], reason: str) -> None:
    """An invalid domain or certificate, or one without the other, is refused before the deployment."""
    with pytest.raises(UnsafeEnvironment, match=reason):
        replace(environment_named("dev"), **settings)  # type: ignore[arg-type]  # types match


def test_the_constructs_on_the_page_can_be_synthesised(layers: Layers, tmp_path: Path) -> None:
    """The page's two stacks, one that creates tasks and one with a schedule and a graph, can be synthesized."""
    page = (ROOT / "docs" / "how-to" / "use-the-stack-in-a-cdk-app.md").read_text()
    found: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        if "class " in block:
            # The CDK looks for assets in the folder in which its process was started.
            exec(block.replace('"checkout")', repr(str(tmp_path / "checkout")) + ")"), found)  # noqa: S102 - our own page
    (tmp_path / "checkout").mkdir()
    app = new_app(tmp_path / "out")
    stack = add_stack(app, PROD, layers)
    own = [found["Shop"](app, stack), found["Reports"](app, stack)]
    made = app.synth()
    types = [
        each["Type"] for one in own for each in made.get_stack_artifact(one.artifact_id).template["Resources"].values()
    ]
    assert {"AWS::S3::Bucket", "Custom::DuetimeSchedule", "Custom::DuetimeDefinition"} <= set(types)


def test_no_attribute_hides_an_attribute_of_the_cdk() -> None:
    """No attribute of the stack has the name of a CDK attribute, which would otherwise be hidden."""
    from aws_cdk import Stack

    from duetime_cdk import DuetimeStack

    names = set(vars(DuetimeStack).get("__annotations__", {}))
    assert {name for name in names if hasattr(Stack, name)} == set()
