"""Build the Lambda layers of an environment of this checkout: `python -m infra.layers --env dev`."""

from __future__ import annotations

import argparse
import sys

from duetime_cdk.errors import NotDeployable
from duetime_cdk.handlers_folder import handlers_of
from duetime_cdk.layers.build import Packages, build
from infra import ROOT
from infra.environments import ENVIRONMENTS, environment_named


def main() -> None:
    """Build the layers of one environment and print their sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", choices=sorted(ENVIRONMENTS), default="local")
    environment = environment_named(parser.parse_args().env)
    try:
        handlers = handlers_of(environment)
        package, packages = handlers.package, Packages.of(handlers, environment.handlers_packages)
        built = build(environment.target, package, importing=environment.handlers_imported, packages=packages)
    except NotDeployable as error:
        sys.exit(str(error))
    layers = (built.dependencies, built.duetime, built.handlers, built.types, *built.packages.values())
    for layer in filter(None, layers):
        size = sum(path.stat().st_size for path in layer.folder.rglob("*") if path.is_file())
        sys.stdout.write(f"{size / 1e6:6.1f} MB  {layer.folder.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
