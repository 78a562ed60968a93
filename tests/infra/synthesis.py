"""A synthesized stack for the tests, whose template is plain dictionaries.

`aws_cdk` is imported only where it is used, because the import starts a Node.js process and every pytest-xdist process
collects these tests.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from duetime_cdk.layers.build import Layer, Layers
from infra import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from aws_cdk import App

    from duetime_cdk import DuetimeStack
    from duetime_cdk.environments import Environment

Properties = dict[str, Any]
OF_THE_CDK = "Custom"
"""The prefix of the logical ids of the CDK's own functions and roles."""


class Synthesis:
    """The template and the assets of an environment."""

    def __init__(self, environment: Environment, layers: Layers, folder: Path) -> None:
        self.environment = environment
        self.folder = folder
        from aws_cdk.assertions import Template

        stack = add_stack(new_app(folder), environment, layers)
        self.template: dict[str, Any] = dict(Template.from_stack(stack).to_json())

    def of_type(self, type_: str) -> dict[str, dict[str, Any]]:
        """Return all resources of a CloudFormation type by logical id, without the CDK's own resources."""
        resources = self.template["Resources"].items()
        return {id_: body for id_, body in resources if body["Type"] == type_ and not id_.startswith(OF_THE_CDK)}

    def properties(self, type_: str) -> dict[str, Properties]:
        """Return the properties of all resources of a CloudFormation type, by logical id."""
        return {id_: body.get("Properties", {}) for id_, body in self.of_type(type_).items()}

    def functions(self) -> dict[str, Properties]:
        """Return the functions by the short name with which their handler begins."""
        functions = self.properties("AWS::Lambda::Function").values()
        return {function["Handler"].split(".")[0]: function for function in functions}

    def function_named(self, reference: Any) -> str:  # noqa: ANN401 (an intrinsic of the template)
        """Return the short name of the function to which an intrinsic refers, directly or by its alias."""
        body = self.template["Resources"][referred(reference)]
        if body["Type"] == "AWS::Lambda::Alias":
            return self.function_named(body["Properties"]["FunctionName"])
        handler: str = body["Properties"]["Handler"]
        return handler.partition(".")[0]

    def statements(self) -> dict[str, list[Properties]]:
        """Return the permissions of each role, by the role's logical id."""
        found: dict[str, list[Properties]] = {id_: [] for id_ in self.of_type("AWS::IAM::Role")}
        for policy in self.properties("AWS::IAM::Policy").values():
            for role in policy["Roles"]:
                found[referred(role)] += policy["PolicyDocument"]["Statement"]
        return found

    def statements_of(self, function: str) -> list[Properties]:
        """Return the permissions of a function's role."""
        return self.statements()[referred(self.functions()[function]["Role"])]


def add_stack(app: App, environment: Environment, layers: Layers) -> DuetimeStack:
    """Add the stack of an environment, with the example handlers if the environment names none."""
    from duetime_cdk import DuetimeStack

    named = environment.handlers_folder or "examples/handlers"
    layers = replace(layers, packages={each.name: layers.handlers for each in environment.handlers_packages})
    return DuetimeStack(
        app, f"duetime-{environment.name}", environment=environment, settings={"handlers_folder": named}, layers=layers
    )


def new_app(folder: Path) -> App:
    """Return an app with the feature flags from `cdk.json`, because only the CDK's command reads that file itself."""
    from aws_cdk import App

    flags: Mapping[str, Any] = json.loads((ROOT / "cdk.json").read_text())["context"]
    # Only the CDK's tools need the constructs' tree and statistics, which take a tenth of the time.
    return App(context=flags, outdir=str(folder), tree_metadata=False, analytics_reporting=False)


def empty_layers(folder: Path) -> Layers:
    """Return empty layers; templates do not depend on their contents."""
    (folder / "python").mkdir()
    dependencies, duetime, handlers, types = (Layer(folder, digit * 64) for digit in "abcd")
    return Layers(dependencies, duetime, handlers, types)


def referred(intrinsic: Any) -> str:  # noqa: ANN401 (an intrinsic of the template)
    """Return the logical id in a `Ref` or `Fn::GetAtt`, or the first logical id within another intrinsic function."""
    if "Ref" in intrinsic or "Fn::GetAtt" in intrinsic:
        id_: str = intrinsic["Ref"] if "Ref" in intrinsic else intrinsic["Fn::GetAtt"][0]
        return id_
    (arguments,) = intrinsic.values()
    parts = [part for each in arguments for part in (each if isinstance(each, list) else [each])]
    return referred(next(part for part in parts if isinstance(part, dict)))


def as_list(value: Any) -> list[Any]:  # noqa: ANN401 (IAM allows one or many)
    """Return a value as a list, because a policy can have a single value where IAM also allows a list."""
    return value if isinstance(value, list) else [value]
