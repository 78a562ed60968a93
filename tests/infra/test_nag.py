from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from duetime.settings import Authentication
from duetime_cdk.canary import Canary
from infra.environments import environment_named
from tests.infra.conftest import CLOUD
from tests.infra.synthesis import add_stack, new_app
from tests.infra.test_handlers_environment import FULL

if TYPE_CHECKING:
    from pathlib import Path

    from aws_cdk import App

    from duetime_cdk.environments import Environment
    from duetime_cdk.layers.build import Layers

PROD = environment_named("prod")


def checked(folder: Path) -> App:
    """Return an app whose synthesis raises an error for every finding that is not acknowledged with a reason."""
    from aws_cdk import Validations
    from cdk_nag import AwsSolutionsChecks, ServerlessChecks

    app = new_app(folder)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app), ServerlessChecks(app))
    return app


@pytest.mark.parametrize(
    "environment",
    [
        pytest.param(PROD, id="prod"),
        pytest.param(
            replace(
                PROD,
                authentication=Authentication.JWT,
                jwt_issuer="https://id.example.org",
                jwt_audience=("duetime",),
                pulled_types={"pulled": ("*",)},
                intake_owner="123456789012:role/Events",
                archive_days=30,
                handlers_environment=FULL,
                canary=Canary(),
            ),
            id="everything",
        ),
        *(
            pytest.param(environment_named(name), id=name, marks=pytest.mark.slow)
            for name in CLOUD
            if name != PROD.name
        ),
    ],
)
def test_security_rules_have_no_findings(environment: Environment, layers: Layers, tmp_path: Path) -> None:
    """AWS Solutions and Serverless rules find nothing that is not acknowledged, with a reason, beside the resource."""
    app = checked(tmp_path)
    add_stack(app, environment, layers)
    app.synth()


@pytest.mark.parametrize("rule", ["AwsSolutions-SQS4", "Serverless-SQSRedrivePolicy"])
def test_both_packs_are_checked(rule: str, tmp_path: Path) -> None:
    """Both rule packs are checked, because a queue without TLS and without a dead-letter queue is refused by both."""
    app = checked(tmp_path)
    from aws_cdk import Stack
    from aws_cdk import aws_sqs as sqs

    sqs.Queue(Stack(app, "careless"), "Queue")
    with pytest.raises(RuntimeError, match=rule):
        app.synth()
