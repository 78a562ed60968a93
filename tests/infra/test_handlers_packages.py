from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from duetime.environment_variables import LIVE, Variable
from duetime_cdk import DEV, HandlersEnvironment, HandlersMisplaced, HandlersPackage, UnsafeEnvironment, Vpc
from duetime_cdk.handlers_folder import handlers_of
from duetime_cdk.layers.build import Packages, types_layer, types_of
from duetime_cdk.layers.handler_import import reject_misplaced
from duetime_cdk.layers.target import Target
from duetime_cdk.source_folders import NO_HANDLERS
from infra.environments import environment_named
from tests.infra.policies import policies
from tests.infra.synthesis import Synthesis, add_stack, as_list, new_app, referred

if TYPE_CHECKING:
    from pathlib import Path

    from duetime_cdk.layers.build import Layers

BILLING = HandlersPackage(
    name="billing",
    folder="examples/billing",
    types=("billing.*",),
    environment=HandlersEnvironment(
        variables={"BANK_URL": "https://bank.example.org"},
        secrets={"bank": "prod/bank"},
        vpc=Vpc(subnets=("subnet-0a1b2c3d",), security_groups=("sg-0e3f5a6b",)),
        memory_mb=1024,
    ),
    reserved=20,
)
MAIL = HandlersPackage(name="mail", folder="examples/shop/handlers", types=("mail.*", "greet"))


@pytest.fixture(scope="module")
def resources(layers: Layers, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Return the functions in a stack with two packages, by their descriptions, and the statements of each role."""
    environment = replace(environment_named("dev"), handlers_packages=(BILLING, MAIL))
    made = Synthesis(environment, layers, tmp_path_factory.mktemp("packages"))
    statements = made.statements()
    return {
        function["Description"].partition(": ")[2]: {**function, "Statements": statements[referred(function["Role"])]}
        for function in made.properties("AWS::Lambda::Function").values()
        if "Description" in function
    }


def granted(function: dict[str, Any]) -> set[str]:
    """Return the actions that a function's role allows, without those for logs and traces."""
    actions = {action for statement in function["Statements"] for action in as_list(statement["Action"])}
    return {each for each in actions if not each.startswith(("logs:", "xray:"))}


def test_a_package_has_its_own_environment(resources: dict[str, dict[str, Any]]) -> None:
    """A package's function has the memory and concurrency in its settings, and alone has its variables and network."""
    billing = resources["handlers billing"]
    assert billing["Environment"]["Variables"]["BANK_URL"] == "https://bank.example.org"
    assert billing["Environment"]["Variables"][Variable.HANDLERS.value] == "billing"
    assert billing["VpcConfig"]["SubnetIds"] == ["subnet-0a1b2c3d"]
    assert (billing["MemorySize"], billing["ReservedConcurrentExecutions"]) == (1024, 20)
    for name in ("handlers mail", "worker"):
        assert "BANK_URL" not in resources[name]["Environment"]["Variables"]
        assert "VpcConfig" not in resources[name]


def test_a_package_has_neither_table_nor_queues(local: Synthesis) -> None:
    """A package's role may only invoke the attempts function, and its variables do not name the table."""
    assert policies(local)["handlers"] == {
        "lambda:InvokeFunction": ["arn:aws:lambda:us-east-1:123456789012:function:attempts"]
    }
    variables = local.functions()["handlers"]["Environment"]["Variables"]
    assert not {Variable.TABLE, Variable.BUCKET, Variable.QUEUE_HIGH, Variable.API_FUNCTION} & variables.keys()


def test_packages_have_only_the_permissions_in_their_settings(resources: dict[str, dict[str, Any]]) -> None:
    """A package has neither the secret nor the network of the other package."""
    network = {action for action in granted(resources["handlers billing"]) if action.startswith("ec2:")}
    assert granted(resources["handlers billing"]) - network == {
        "lambda:InvokeFunction",
        "secretsmanager:GetSecretValue",
    }
    assert network
    assert "secretsmanager:GetSecretValue" not in granted(resources["handlers mail"])


def test_the_worker_knows_the_function_of_each_pattern(resources: dict[str, dict[str, Any]]) -> None:
    """A variable of the worker maps patterns for types to functions, which the worker may invoke."""
    worker = resources["worker"]
    variable = worker["Environment"]["Variables"][Variable.HANDLER_PACKAGES.value]
    text = "".join(each if isinstance(each, str) else each["Ref"] for each in variable["Fn::Join"][1])
    patterns: dict[str, str] = json.loads(text)
    assert list(patterns) == ["billing.*", "mail.*", "greet"]
    assert patterns["mail.*"] == patterns["greet"] != patterns["billing.*"]
    invoked = {
        f"{referred(each)}:{LIVE}"
        for statement in worker["Statements"]
        if "lambda:InvokeFunction" in as_list(statement["Action"])
        for each in as_list(statement["Resource"])
    }
    assert set(patterns.values()) <= invoked


def test_without_packages_nothing_is_added(dev: Synthesis) -> None:
    """Without packages, there is no additional function and no additional variable of the worker."""
    assert not {"handlers", "attempts"} & dev.functions().keys()
    assert Variable.HANDLER_PACKAGES not in dev.functions()["worker"]["Environment"]["Variables"]


def test_the_attributes_have_the_function_of_each_package(layers: Layers, tmp_path: Path) -> None:
    """The stack has each package's function by name, so that a user's app can grant a permission to one package."""
    stack = add_stack(new_app(tmp_path), replace(environment_named("dev"), handlers_packages=(BILLING, MAIL)), layers)
    assert list(stack.packages) == ["billing", "mail"]


def test_all_handlers_can_be_in_packages() -> None:
    """If all handlers are in packages, the worker, which can read the complete table, runs no user code."""
    found = handlers_of(replace(DEV, handlers_packages=(BILLING,)))
    assert found.package == NO_HANDLERS
    assert found.packages["billing"].package.name == "billing"


def test_the_types_of_all_packages_are_known() -> None:
    """The module in the types layer lists the types of all packages."""
    handlers = handlers_of(environment_named("local"))
    packages = Packages.of(handlers, environment_named("local").handlers_packages)
    types = types_of(types_layer(Target.of_this_machine(), handlers.package, packages=packages))
    assert {"echo", "billing.charge"} <= set(types)


@pytest.mark.parametrize(
    ("types", "package", "message"),
    [
        (["mail.send"], "billing", "'billing' has a handler for 'mail.send', but that type belongs to 'mail'"),
        (["report"], "billing", "'report', but that type belongs to none of `handlers_packages`"),
        (["billing.charge"], "", "`handlers_folder` has a handler for 'billing.charge', but that type belongs to 'bi"),
        (["mail.bill"], "mail", "belongs to 'mail' and 'bills'"),
    ],
)
def test_a_handler_in_the_wrong_package_is_not_deployed(types: list[str], package: str, message: str) -> None:
    """A handler in a package that its type's pattern does not choose is an error with the type and the packages."""
    patterns = {"billing": ["billing.*"], "mail": ["mail.*"], "bills": ["*.bill"]}
    with pytest.raises(HandlersMisplaced, match=message.replace("*", r"\*")):
        reject_misplaced(types, package, patterns)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "Billing"}, "lower-case letters"),
        ({"types": ()}, "`types` must be"),
        ({"types": ("billing.?",)}, "`types` must be"),
        ({"reserved": 0}, "`reserved` must be at least 1"),
        ({"name": "mail"}, "the same name"),
        ({"types": ("greet",)}, "one of its patterns"),
        ({"environment": HandlersEnvironment(memory_mb=1)}, "the memory of handlers"),
    ],
)
def test_invalid_settings_of_a_package_are_rejected(changes: dict[str, Any], message: str) -> None:
    """The error for an invalid package setting names the package and the rule."""
    package = replace(BILLING, **changes)
    with pytest.raises(UnsafeEnvironment, match=f"handlers '{package.name}'.*{message}"):
        replace(DEV, handlers_packages=(MAIL, package))
