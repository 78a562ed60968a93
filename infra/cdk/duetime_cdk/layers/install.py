"""Installs third-party packages for a layer with uv, for the layer's target, as wheels only."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from uv import find_uv_bin

from duetime_cdk.errors import NotDeployable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from duetime_cdk.layers.target import Target

AWS_SERVICES = frozenset(
    {
        *("apigatewaymanagementapi", "dynamodb", "events", "lambda", "logs"),
        *("s3", "secretsmanager", "sns", "sqs", "ssm", "stepfunctions", "sts"),
        # These services run the jobs of tasks.
        *("batch", "codebuild", "ecs", "glue"),
    }
)
"""The dependency layer contains only the API models of these services.

`sts` is for roles, and `ssm` is for handler secrets.
"""


class RequirementsUninstallable(NotDeployable):
    """A layer's requirement cannot be installed: it does not exist, contradicts a pin, or lacks a suitable wheel."""

    def __init__(self, output: str) -> None:
        lines = "\n".join(f"  {line}" for line in output.strip().splitlines())
        super().__init__(f"the requirements of a layer cannot be installed; nothing is deployed:\n{lines}")


def install(requirements: Sequence[str], constraints: Path, target: Target, into: Path) -> None:
    """Install `requirements`, at the versions that `constraints` pins, into the folder `into`.

    Args:
        requirements: arguments for `uv pip install`, which are requirements, or `--requirements` and a file.
        constraints: the file that pins every version.
        target: the platform of the wheels.
        into: the folder that is put on the import path.

    Raises:
        RequirementsUninstallable: uv cannot install the requirements.
    """
    command = [find_uv_bin(), "pip", "install", "--quiet", "--python", sys.executable]
    command += ["--target", str(into), "--constraints", str(constraints), "--only-binary", ":all:"]
    if target.wheels:
        command += ["--python-platform", target.wheels, "--python-version", target.python]
    # uv's path comes from its own package; the requirements come from this checkout's files.
    done = subprocess.run([*command, *requirements], capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise RequirementsUninstallable(done.stderr)
    shutil.rmtree(into / "bin", ignore_errors=True)
    (into / ".lock").unlink(missing_ok=True)


def drop_unused_data(packages: Path) -> None:
    """Remove data that no function reads, such as models of unused AWS services, examples and tests."""
    # The models of all other services would double the layer's size. A handlers layer with `boto3` in its requirements
    # contains all models, at the same version.
    for sdk in ("botocore", "boto3"):
        for model in (packages / sdk / "data").iterdir():
            # Top-level files are read for every client: endpoints, partitions, retries, defaults.
            if model.is_dir() and model.name not in AWS_SERVICES:
                shutil.rmtree(model)
    shutil.rmtree(packages / "boto3" / "examples")
    # The tests of `icalendar` are larger than the rest of the package.
    shutil.rmtree(packages / "icalendar" / "tests", ignore_errors=True)
