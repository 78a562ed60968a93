"""Deploying the very stack of `infra/` to the embedded AWS, with the CDK's own command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from local.emulator import differences
from local.emulator.server import ACCOUNT, HOME, REGION, ROOT, TEMPORARY
from local.supervised_process import guarded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from local.emulator import Emulator

CDK = ROOT / "node_modules" / ".bin" / "cdk"
LAST_LINES = 25


class ToolFailed(RuntimeError):
    """A command of the deployment ended with an error; the message holds its last lines."""

    def __init__(self, step: str, last_lines: Sequence[str]) -> None:
        super().__init__("\n".join([f"{step} failed:", *last_lines]))


class ToolNotInstalled(RuntimeError):
    """The CDK's command is missing."""

    def __init__(self) -> None:
        super().__init__("the CDK is not installed: run `make setup`")


@dataclass(frozen=True, slots=True)
class Deployment:
    """The deployed stack."""

    api_url: str
    outputs: dict[str, str]
    """What the stack says of itself: names of its table, queues and functions."""
    resources: int
    watch_url: str = ""
    """Where clients connect for live updates."""


def deploy(emulator: Emulator, report: Callable[[str], None]) -> Deployment:
    """Bootstrap and deploy; `report` is given each line that the CDK prints."""
    if not CDK.exists():
        raise ToolNotInstalled
    assembly = emulator.folder / "cdk.out"
    environ = _environment(emulator)
    common = ["-c", "env=local", "--no-notices", "--ci"]
    # Without an app: bootstrapping in the app's folder would synthesise it for nothing.
    run_tool(
        "cdk bootstrap", [str(CDK), "bootstrap", f"aws://{ACCOUNT}/{REGION}", "--app", "", *common], environ, report
    )
    run_tool(
        "cdk deploy",
        [
            str(CDK),
            "deploy",
            "--all",
            "--require-approval",
            "never",
            "--method",
            "direct",
            "--output",
            str(assembly),
            *common,
        ],
        environ,
        report,
    )
    return _complete(emulator, assembly)


def _environment(emulator: Emulator) -> dict[str, str]:
    """The tools see this process's variables without its AWS settings, and write their caches into our folder."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))}
    return {
        **inherited,
        **emulator.environ,
        # cdk.json names the app's Python by its plain name.
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "HOME": str(emulator.folder / HOME),
        "TMPDIR": str(emulator.folder / TEMPORARY),
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "CDK_DISABLE_VERSION_CHECK": "true",
        "JSII_RUNTIME_PACKAGE_CACHE": "enabled",
        # Outlives the emulator's folder: unpacking the construct library takes ten seconds.
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(ROOT / "build" / "jsii"),
        "NODE_NO_WARNINGS": "1",
    }


def run_tool(step: str, command: list[str], environ: dict[str, str], report: Callable[[str], None]) -> None:
    """Run one of the tools that deploy; `report` is given each line it prints.

    Raises:
        ToolFailed: It ended with an error.
    """
    last_lines: deque[str] = deque(maxlen=LAST_LINES)
    with guarded(command, environ=environ, cwd=ROOT, output=subprocess.PIPE) as process:
        for line in map(_text, process.stdout or ()):
            if line:
                last_lines.append(line)
                report(line)
        if process.wait() != 0:
            raise ToolFailed(step, last_lines)


def _text(line: bytes) -> str:
    return line.decode(errors="replace").strip()


def _complete(emulator: Emulator, assembly: Path) -> Deployment:
    cloudformation = emulator.client("cloudformation")
    outputs: dict[str, str] = {}
    resources = 0
    for path in sorted(assembly.glob("*.template.json")):
        stack = path.name.removesuffix(".template.json")
        deployed = cloudformation.describe_stack_resources(StackName=stack)["StackResources"]
        ids = {resource["LogicalResourceId"]: resource.get("PhysicalResourceId", "") for resource in deployed}
        differences.complete_deployment(emulator, json.loads(path.read_text()), ids)
        (description,) = cloudformation.describe_stacks(StackName=stack)["Stacks"]
        outputs |= {output["OutputKey"]: output["OutputValue"] for output in description.get("Outputs", [])}
        resources += len(ids)
    api_url = differences.api_url(emulator, outputs["ApiId"])
    return Deployment(api_url, outputs, resources, differences.watch_url(emulator, outputs["LiveUrl"]))
