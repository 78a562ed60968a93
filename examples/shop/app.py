"""The CDK app, which defines a duetime stack for the environment given with `-c env=NAME`."""

from __future__ import annotations

import sys

from aws_cdk import App
from duetime_cdk import DuetimeStack, NotDeployable, UnknownEnvironment

from settings import ENVIRONMENTS


def main() -> None:
    """Define an environment's stack, with this project's handlers."""
    app = App()
    name = app.node.try_get_context("env") or "dev"
    try:
        if name not in ENVIRONMENTS:
            raise UnknownEnvironment(name, ENVIRONMENTS)
        stack = app.node.try_get_context("stack") or f"duetime-{name}"
        DuetimeStack(app, stack, handlers="handlers", environment=ENVIRONMENTS[name])
    except NotDeployable as error:
        sys.exit(str(error))
    app.synth()


if __name__ == "__main__":
    main()
