"""The app that `cdk` runs: `cdk deploy -c env=dev|staging|prod`, and `-c stack=NAME` for another stack."""

from __future__ import annotations

import sys

from aws_cdk import App

from duetime_cdk import DuetimeStack, NotDeployable
from infra.environments import environment_named

DEFAULT_ENVIRONMENT = "dev"


def main() -> None:
    """Synthesize the environment named on the command line, after building its layers."""
    app = App()
    try:
        environment = environment_named(app.node.try_get_context("env") or DEFAULT_ENVIRONMENT)
        name = app.node.try_get_context("stack") or f"duetime-{environment.name}"
        DuetimeStack(app, name, environment=environment)
    except NotDeployable as error:
        sys.exit(str(error))
    app.synth()


if __name__ == "__main__":
    main()
