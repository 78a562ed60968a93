"""The settings of an environment, and what each function is told of them."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields, replace
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from docs.sections.markdown import code, documented, table
from duetime import environment_variables
from duetime.environment_variables import Variable
from duetime.settings import Authentication
from duetime_cdk import environments
from duetime_cdk.environments import SIZES, Environment, FunctionName
from duetime_cdk.layers.build import Layer, Layers
from duetime_cdk.layers.target import Target
from infra import ROOT
from infra.environments import ENVIRONMENTS, environment_named

if TYPE_CHECKING:
    from collections.abc import Mapping
    from dataclasses import Field

_APART = frozenset({"name", "sizes"})


def setting_table() -> str:
    """Each setting with its default."""
    meanings = documented(environments, "Environment")
    rows = [
        (code(field.name), "" if field.name in _APART else _shown(_default(field)), meanings[field.name])
        for field in fields(Environment)
    ]
    return table(("setting", "default", "meaning"), rows)


def difference_table() -> str:
    """What the environments set otherwise than the defaults."""
    rows = []
    for field in fields(Environment):
        if field.name in _APART:
            continue
        values = [getattr(environment, field.name) for environment in ENVIRONMENTS.values()]
        if any(value != _default(field) for value in values):
            rows.append((code(field.name), *(_shown(value) for value in values)))
    return table(("setting", *ENVIRONMENTS), rows)


def size_table() -> str:
    """How large each function is by default."""
    purposes = documented(environments, "FunctionName")
    rows = [
        (code(name), f"{size.memory_mb} MB", f"{size.timeout_seconds} s", purposes[name.name])
        for name, size in SIZES.items()
    ]
    return table(("function", "memory", "timeout", "does"), rows)


def variable_table() -> str:
    """Each environment variable, and which functions the deployed stack gives it to."""
    meanings = documented(environment_variables, "Variable")
    given = _given()
    rows = []
    for variable in Variable:
        names = [code(name) for name in FunctionName if variable.value in given[name]]
        whom = "all" if len(names) == len(FunctionName) else ", ".join(names)
        rows.append((code(variable.value), whom, meanings[variable.name]))
    return table(("variable", "given to", "meaning"), rows)


def _given() -> Mapping[str, frozenset[str]]:
    """The variables of each function in a synthesised stack, whose layers hold nothing."""
    # The import starts a process of Node; tests of other sections need none.
    from aws_cdk import App  # noqa: PLC0415 - see above
    from aws_cdk.assertions import Template  # noqa: PLC0415 - see above

    from duetime_cdk import DuetimeStack  # noqa: PLC0415 - see above

    with TemporaryDirectory() as name:
        folder = Path(name) / "layer"
        (folder / "python").mkdir(parents=True)
        flags: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text())["context"]
        layers = Layers(*(Layer(folder, digit * 64) for digit in "abc"))
        environment = replace(
            environment_named("dev"),
            intake_owner="events",
            heartbeat_url="https://monitor.example.org",
            otlp_endpoint="http://localhost:4318",
            otlp_layer="arn:aws:lambda:eu-west-1:123456789012:layer:otel:1",
            # Which has tokens: a console cannot sign requests.
            console=True,
            authentication=Authentication.JWT,
            jwt_issuer="https://id.example.org",
            jwt_audience=("duetime",),
            archive_days=30,
        )
        app = App(context=flags, outdir=str(Path(name) / "out"))
        stack = DuetimeStack(app, "duetime", environment=environment, layers=layers)
        functions = Template.from_stack(stack).find_resources("AWS::Lambda::Function").values()
    # Not the CDK's own, which has no environment: it empties a bucket that is to be deleted.
    found = [function["Properties"] for function in functions if "Environment" in function["Properties"]]
    return {one["Handler"].split(".")[0]: frozenset(one["Environment"]["Variables"]) for one in found}


def _default(field: Field[Any]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _plain(value: object) -> str:
    return " ".join(code(each) for each in value) if isinstance(value, tuple) else str(value)


def _shown(value: object) -> str:
    """A value as a reader would write it; the machine that this runs on is not named."""
    match value:
        case Target():
            return f"Python {value.python}, {value.architecture}" if value.wheels else "this machine's"
        case Enum():
            return code(value.value)
        case bool():
            return "yes" if value else "no"
        case dict():
            return ", ".join(f"{getattr(key, 'value', key)} {_plain(each)}" for key, each in value.items()) or "none"
        case tuple():
            return ", ".join(code(each) for each in value) or "none"
        case str():
            return code(value) if value else "none"
    return str(value)
