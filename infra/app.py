"""The app that `cdk` runs: `cdk deploy -c env=dev|staging|prod`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from aws_cdk import App, Tags

from infra.environments import UnknownEnvironment, environment_named
from infra.stack import DuetimeStack
from layers import build
from layers.handler_import import HandlersUnimportable

if TYPE_CHECKING:
    from infra.environments import Environment
    from layers.build import Layers

DEFAULT_ENVIRONMENT = "dev"


def add_stack(app: App, environment: Environment, layers: Layers) -> DuetimeStack:
    """The one stack of an environment, named and tagged after it."""
    stack = DuetimeStack(app, f"duetime-{environment.name}", environment=environment, layers=layers)
    Tags.of(stack).add("project", "duetime")
    Tags.of(stack).add("environment", environment.name)
    return stack


def main() -> None:
    """Synthesise the environment that the command line names, with layers built for it."""
    app = App()
    try:
        environment = environment_named(app.node.try_get_context("env") or DEFAULT_ENVIRONMENT)
    except UnknownEnvironment as unknown:
        sys.exit(str(unknown))
    handlers = build.ROOT / environment.handlers_folder / environment.handlers_package
    try:
        layers = build.build(environment.target, handlers, importing=environment.handlers_imported)
    except HandlersUnimportable as broken:
        sys.exit(str(broken))
    add_stack(app, environment, layers)
    app.synth()


if __name__ == "__main__":
    main()
