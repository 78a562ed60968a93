"""Finds an AWS CDK project, and runs the project's CDK command to synthesize, compare and deploy stacks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from duetime_client.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_PROJECT_FILE = "cdk.json"
_STACK = "aws:cloudformation:stack"
OUTPUT = Path("build", "deploy")
"""The output folder for templates and assets, relative to the project."""


class ProjectNotFound(ClientError):
    """No CDK project was found in the folder or above it, or the project's CDK command is not installed."""


class CdkFailed(ClientError):
    """The CDK command failed; its own output shows the error."""

    def __init__(self, step: str, code: int) -> None:
        super().__init__(f"cdk {step} failed with exit code {code}")


class StackNotFound(ClientError):
    """The project has no stack with the given name, or it has several stacks and no name was given."""


def _run(command: Sequence[str], folder: Path) -> int:
    environ = {"CDK_DISABLE_VERSION_CHECK": "true", "NODE_NO_WARNINGS": "1", **os.environ}
    return subprocess.run(command, cwd=folder, env=environ, check=False).returncode  # noqa: S603 - the project's own tool


@dataclass(frozen=True, slots=True)
class CdkProject:
    """A CDK project in a folder with a `cdk.json`."""

    folder: Path
    command: str
    """The path of the CDK command, from the project or else from the PATH."""
    run: Callable[[Sequence[str], Path], int] = _run

    def synthesize(self, environment: str) -> Sequence[str]:
        """Write the templates of an environment, and return the names of its stacks.

        Raises:
            CdkFailed: the CDK app rejects the environment.
        """
        context = ["-c", f"env={environment}"] if environment else []
        self._cdk("synth", "--quiet", *context, "--output", str(OUTPUT))
        return self.stacks()

    def stacks(self) -> Sequence[str]:
        """The names of the synthesized stacks."""
        artifacts: Mapping[str, Mapping[str, object]] = json.loads(
            (self.folder / OUTPUT / "manifest.json").read_text(encoding="utf-8")
        )["artifacts"]
        found = {id_: artifact for id_, artifact in artifacts.items() if artifact["type"] == _STACK}
        return sorted(_name_of(id_, artifact) for id_, artifact in found.items())

    def diff(self, stack: str) -> None:
        """Print the differences between the stack's synthesized and deployed templates."""
        self._cdk("diff", stack, "--app", str(OUTPUT), "--method", "template", "--exclusively")

    def prepare(self, stack: str, change_set: str) -> None:
        """Upload the assets and create a change set, unless there is nothing to change."""
        self._deploy("prepare-change-set", stack, change_set)

    def execute(self, stack: str, change_set: str) -> None:
        """Execute the change set that `prepare` created."""
        self._deploy("execute-change-set", stack, change_set)

    def _deploy(self, method: str, stack: str, change_set: str) -> None:
        options = ["--method", method, "--change-set-name", change_set, "--require-approval", "never"]
        self._cdk("deploy", stack, "--app", str(OUTPUT), "--exclusively", *options)

    def _cdk(self, step: str, *arguments: str) -> None:
        code = self.run([self.command, step, *arguments], self.folder)
        if code:
            raise CdkFailed(step, code)


def project_here(start: Path | None = None) -> CdkProject:
    """Find the project that contains a folder; by default, the folder is the working directory.

    Raises:
        ProjectNotFound: there is no project, or the CDK command is not installed.
    """
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if (folder / _PROJECT_FILE).is_file():
            own = folder / "node_modules" / ".bin" / "cdk"
            command = str(own) if own.exists() else shutil.which("cdk")
            if command is None:
                raise ProjectNotFound("the CDK command is not installed: run `npm install` in the project's folder")
            return CdkProject(folder, command)
    raise ProjectNotFound(f"there is no {_PROJECT_FILE} in {here} or above it; `duetime init` creates a project")


def chosen_stack(stacks: Sequence[str], name: str) -> str:
    """The stack to deploy.

    Raises:
        StackNotFound: no stack has that name, or there are several stacks and no name was given.
    """
    if name in stacks:
        return name
    if not name and len(stacks) == 1:
        return stacks[0]
    known = ", ".join(stacks) or "none"
    raise StackNotFound(
        f"there is no stack {name!r}; known stacks: {known}" if name else f"choose one with --stack: {known}"
    )


def _name_of(id_: str, artifact: Mapping[str, object]) -> str:
    properties = artifact.get("properties")
    return str(properties.get("stackName", id_)) if isinstance(properties, dict) else id_
