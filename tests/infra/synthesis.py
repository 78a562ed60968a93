"""A synthesised stack for the tests: plain dictionaries of its template.

Only the code that uses `aws_cdk` imports it: each process of pytest-xdist collects these tests, one of them runs them,
and the import starts a process of Node.
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
"""What the logical ids of the CDK's own functions and roles begin with."""


class Synthesis:
    """The template and the assets of one environment."""

    def __init__(self, environment: Environment, layers: Layers, folder: Path) -> None:
        self.environment = environment
        self.folder = folder
        from aws_cdk.assertions import Template

        stack = add_stack(new_app(folder), environment, layers)
        self.template: dict[str, Any] = dict(Template.from_stack(stack).to_json())

    def of_type(self, type_: str) -> dict[str, dict[str, Any]]:
        """All resources of a CloudFormation type, whole, by logical id, without those of the CDK's deployment."""
        resources = self.template["Resources"].items()
        return {id_: body for id_, body in resources if body["Type"] == type_ and not id_.startswith(OF_THE_CDK)}

    def properties(self, type_: str) -> dict[str, Properties]:
        """The properties of all resources of a CloudFormation type, by logical id."""
        return {id_: body.get("Properties", {}) for id_, body in self.of_type(type_).items()}

    def functions(self) -> dict[str, Properties]:
        """The functions by their short name, which their handler begins with."""
        functions = self.properties("AWS::Lambda::Function").values()
        return {function["Handler"].split(".")[0]: function for function in functions}

    def function_named(self, reference: Any) -> str:  # noqa: ANN401 (an intrinsic of the template)
        """The short name of the function that an intrinsic refers to, itself or by its alias."""
        body = self.template["Resources"][referred(reference)]
        if body["Type"] == "AWS::Lambda::Alias":
            return self.function_named(body["Properties"]["FunctionName"])
        handler: str = body["Properties"]["Handler"]
        return handler.partition(".")[0]

    def statements(self) -> dict[str, list[Properties]]:
        """The permissions of each role, by the logical id of the role."""
        found: dict[str, list[Properties]] = {id_: [] for id_ in self.of_type("AWS::IAM::Role")}
        for policy in self.properties("AWS::IAM::Policy").values():
            for role in policy["Roles"]:
                found[referred(role)] += policy["PolicyDocument"]["Statement"]
        return found

    def statements_of(self, function: str) -> list[Properties]:
        """The permissions of a function's role."""
        return self.statements()[referred(self.functions()[function]["Role"])]


def add_stack(app: App, environment: Environment, layers: Layers) -> DuetimeStack:
    """The stack of an environment, with the example handlers if it names none."""
    from duetime_cdk import DuetimeStack

    named = environment.handlers_folder or "examples/handlers"
    layers = replace(layers, packages={each.name: layers.handlers for each in environment.handlers_packages})
    return DuetimeStack(
        app, f"duetime-{environment.name}", environment=environment, settings={"handlers_folder": named}, layers=layers
    )


def new_app(folder: Path) -> App:
    """An app with the feature flags of `cdk.json`, which only the CDK's command reads by itself."""
    from aws_cdk import App

    flags: Mapping[str, Any] = json.loads((ROOT / "cdk.json").read_text())["context"]
    # The tree and the statistics of constructs are for the CDK's tools; they take a tenth of the time.
    return App(context=flags, outdir=str(folder), tree_metadata=False, analytics_reporting=False)


def empty_layers(folder: Path) -> Layers:
    """Empty layers: templates do not depend on their contents."""
    (folder / "python").mkdir()
    dependencies, duetime, handlers, types = (Layer(folder, digit * 64) for digit in "abcd")
    return Layers(dependencies, duetime, handlers, types)


def referred(intrinsic: Any) -> str:  # noqa: ANN401 (an intrinsic of the template)
    """The logical id that a `Ref` or `Fn::GetAtt` names, or the first one within another function."""
    if "Ref" in intrinsic or "Fn::GetAtt" in intrinsic:
        id_: str = intrinsic["Ref"] if "Ref" in intrinsic else intrinsic["Fn::GetAtt"][0]
        return id_
    (arguments,) = intrinsic.values()
    parts = [part for each in arguments for part in (each if isinstance(each, list) else [each])]
    return referred(next(part for part in parts if isinstance(part, dict)))


def as_list(value: Any) -> list[Any]:  # noqa: ANN401 (IAM allows one or many)
    """IAM writes a list of one without the brackets."""
    return value if isinstance(value, list) else [value]
