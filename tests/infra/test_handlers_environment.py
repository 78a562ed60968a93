from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from duetime.environment_variables import Variable
from duetime_cdk.environments import SIZES, FunctionName, FunctionSize
from duetime_cdk.errors import UnsafeEnvironment
from duetime_cdk.handlers_environment import HandlersEnvironment, Vpc
from duetime_cdk.handlers_function import NETWORK_INTERFACES
from infra.environments import environment_named
from tests.infra.synthesis import Synthesis, add_stack, as_list, new_app, referred

if TYPE_CHECKING:
    from pathlib import Path

    from duetime_cdk.layers.build import Layers

CRM = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:crm-AbCdEf"
LAYER = "arn:aws:lambda:eu-west-1:123456789012:layer:fonts:3"
POLICY = "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"
FULL = HandlersEnvironment(
    variables={"SHOP_URL": "https://shop.example.org"},
    secrets={"stripe": "prod/stripe", "crm": CRM, "mail": "ssm:/shop/mail-key"},
    vpc=Vpc(subnets=("subnet-0a1b2c3d", "subnet-0c2d4e5f"), security_groups=("sg-0e3f5a6b",)),
    memory_mb=2048,
    layers=(LAYER,),
    policies=(POLICY,),
)


@pytest.fixture(scope="module")
def full(layers: Layers, tmp_path_factory: pytest.TempPathFactory) -> Synthesis:
    """Return a stack whose handlers use every setting."""
    environment = replace(environment_named("dev"), handlers_environment=FULL)
    return Synthesis(environment, layers, tmp_path_factory.mktemp("full"))


def arn(text: Any) -> str:  # noqa: ANN401 (an intrinsic of the template)
    """Return an ARN in the template, with `*` for partition, Region and account."""
    return (
        text
        if isinstance(text, str)
        else "".join("*" if isinstance(each, dict) else each for each in text["Fn::Join"][1])
    )


def test_only_the_worker_has_the_environment_of_handlers(full: Synthesis) -> None:
    """Only the worker has the variables, memory, network and layer in the handlers' settings."""
    functions = full.functions()
    worker = functions.pop("worker")
    variables = worker["Environment"]["Variables"]
    assert variables["SHOP_URL"] == "https://shop.example.org"
    assert json.loads(variables[Variable.HANDLER_SECRETS.value]) == FULL.secrets
    assert worker["MemorySize"] == 2048
    assert worker["VpcConfig"] == {
        "SubnetIds": ["subnet-0a1b2c3d", "subnet-0c2d4e5f"],
        "SecurityGroupIds": ["sg-0e3f5a6b"],
    }
    assert LAYER in worker["Layers"]
    for other in functions.values():
        assert not {"SHOP_URL", Variable.HANDLER_SECRETS.value} & other["Environment"]["Variables"].keys()
        assert "VpcConfig" not in other
        assert LAYER not in other["Layers"]


def test_the_worker_can_read_exactly_the_secrets_in_the_settings(full: Synthesis) -> None:
    """The worker may read only a secret by name, to whose ARN AWS adds a suffix, a secret by ARN, and a parameter."""
    granted = {
        action: sorted(arn(each) for each in as_list(statement["Resource"]))
        for statement in full.statements_of("worker")
        for action in as_list(statement["Action"])
        if action.startswith(("secretsmanager:", "ssm:"))
    }
    assert granted == {
        "secretsmanager:GetSecretValue": sorted([CRM, "arn:*:secretsmanager:*:*:secret:prod/stripe-??????"]),
        "ssm:GetParameter": ["arn:*:ssm:*:*:parameter/shop/mail-key"],
    }


def test_the_worker_can_use_network_interfaces_and_has_the_managed_policies(full: Synthesis) -> None:
    """Lambda needs network interfaces in a VPC, and the user's managed policies are attached to no other role."""
    (network,) = [one for one in full.statements_of("worker") if "ec2:CreateNetworkInterface" in as_list(one["Action"])]
    assert set(network["Action"]) == set(NETWORK_INTERFACES)
    roles = full.properties("AWS::IAM::Role")
    worker = referred(full.functions()["worker"]["Role"])
    assert {id_: role["ManagedPolicyArns"] for id_, role in roles.items() if "ManagedPolicyArns" in role} == {
        worker: [POLICY]
    }


def test_the_synthesis_names_the_endpoints_that_a_vpc_needs(layers: Layers, tmp_path: Path) -> None:
    """The synthesis names the endpoints without which no task would run in a VPC and no message would say why."""
    environment = replace(environment_named("dev"), handlers_environment=FULL)
    stack = add_stack(new_app(tmp_path), environment, layers)
    notes = [str(each.data) for construct in stack.node.find_all() for each in construct.node.metadata]
    (text,) = [each for each in notes if "in a VPC" in each]
    assert "endpoints for dynamodb, s3" in text
    assert "endpoints for sqs, lambda, states, secretsmanager, ssm" in text


def test_without_handler_settings_the_worker_is_unchanged(dev: Synthesis) -> None:
    """Without settings for the handlers' environment, the worker is unchanged."""
    worker = dev.functions()["worker"]
    assert "VpcConfig" not in worker
    assert Variable.HANDLER_SECRETS.value not in worker["Environment"]["Variables"]
    assert worker["MemorySize"] == SIZES[FunctionName.WORKER].memory_mb


@pytest.mark.parametrize(
    ("own", "reason"),
    [
        ({"variables": {"1ST": "x"}}, "'1ST' cannot be the name of a variable"),
        ({"variables": {"A": "x"}}, "'A' cannot be the name"),
        ({"variables": {"AWS_REGION": "x"}}, r"'AWS_REGION' is reserved"),
        ({"variables": {"DUETIME_TABLE": "x"}}, "'DUETIME_TABLE' is reserved"),
        ({"variables": {"OTEL_EXPORTER_OTLP_ENDPOINT": "x"}}, "is reserved"),
        ({"variables": {"PYTHONPATH": "x"}}, "'PYTHONPATH' is reserved"),
        ({"variables": {"PORT": 80}}, "must be a string, not 80"),
        ({"secrets": {"a b": "x"}}, "the name of the secret 'a b'"),
        ({"secrets": {"stripe": "prod/*"}}, "without wildcards, not 'prod/\\*'"),
        ({"secrets": {"stripe": "ssm:*"}}, "without wildcards"),
        ({"memory_mb": 64}, "128 to 10240 MB, not 64"),
        ({"vpc": Vpc((), ("sg-0e3f5a6b",))}, "at least one subnet"),
        ({"vpc": Vpc(("subnet-0a1b2c3d",), ())}, "at least one subnet and one security group"),
        ({"vpc": Vpc(("vpc-1",), ("sg-0e3f5a6b",))}, "'vpc-1' is not the id of a subnet"),
        ({"vpc": Vpc(("subnet-0a1b2c3d",), ("x",))}, "'x' is not the id of a security group"),
        ({"layers": ("fonts",)}, "'fonts' is not the ARN of a layer's version"),
        ({"policies": ("ReadOnlyAccess",)}, "'ReadOnlyAccess' is not the ARN of a managed policy"),
    ],
)
def test_invalid_handler_settings_are_rejected_before_the_deployment(own: dict[str, Any], reason: str) -> None:
    """The error for an invalid handler setting names the environment and the mistake."""
    with pytest.raises(UnsafeEnvironment, match=f"environment 'dev': .*{reason}"):
        replace(environment_named("dev"), handlers_environment=HandlersEnvironment(**own))


def test_a_handler_variable_can_be_unknown_until_the_deployment(layers: Layers, tmp_path: Path) -> None:
    """The name of a bucket in the user's app can be a variable of the handlers."""
    from aws_cdk import Stack
    from aws_cdk import aws_s3 as s3

    app = new_app(tmp_path)
    bucket = s3.Bucket(Stack(app, "Shop"), "Bucket", bucket_name="shop-bucket")
    own = HandlersEnvironment(variables={"BUCKET": bucket.bucket_name})
    stack = add_stack(app, replace(environment_named("dev"), handlers_environment=own), layers)
    template = app.synth().get_stack_artifact(stack.artifact_id).template
    environments = [each["Properties"].get("Environment", {}) for each in template["Resources"].values()]
    (value,) = [each["Variables"]["BUCKET"] for each in environments if "BUCKET" in each.get("Variables", {})]
    assert "Fn::ImportValue" in value


def test_the_workers_timeout_cannot_be_changed() -> None:
    """A different worker timeout is refused, because a shorter timeout would end long tasks without saving anything."""
    sizes = {**SIZES, FunctionName.WORKER: FunctionSize(memory_mb=1024, timeout_seconds=300)}
    with pytest.raises(UnsafeEnvironment, match=r"the worker's timeout is 900 s, not 300.*`timeout_seconds`"):
        replace(environment_named("dev"), sizes=sizes)
