"""Synthesizes this machine's stack with the `cdk` command, and caches the result until the inputs change.

The user's handlers are not inputs, because they change often and are deployed separately
(`duetime_local/handler_reload.py`).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections import deque
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duetime_cdk.environments import LOCAL
from duetime_cdk.source_folders import node_package, project_folder
from duetime_local.project import ASSEMBLY, STACK, template_inputs
from duetime_local.supervised_process import guarded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

LAST_LINES = 25


class ToolFailed(RuntimeError):
    """A deployment command failed; the message contains the last lines of its output."""

    def __init__(self, step: str, last_lines: Sequence[str]) -> None:
        super().__init__("\n".join([f"{step} failed:", *last_lines]))


class ToolNotInstalled(RuntimeError):
    """The CDK command is not installed."""

    def __init__(self) -> None:
        super().__init__("the CDK is not installed: run `make setup`, or `npm install` in a project of your own")


@dataclass(frozen=True, slots=True)
class Asset:
    """A file or folder in the assembly that the deployment uploads."""

    key: str
    source: Path

    def content(self) -> bytes:
        """The content to upload; a folder is packed when its content is first read."""
        if self.source.is_file():
            return self.source.read_bytes()
        kept = self.source.with_name(f"{self.source.name}.zip")
        if not kept.exists():
            aside = kept.with_name(f".{kept.name}.{os.getpid()}")
            aside.write_bytes(packed(self.source))
            aside.replace(kept)
        return kept.read_bytes()


@dataclass(frozen=True, slots=True)
class Assembly:
    """A cloud assembly, which is the CDK's output folder."""

    folder: Path

    @property
    def template(self) -> dict[str, Any]:
        """The stack's template."""
        template: dict[str, Any] = json.loads((self.folder / f"{STACK}.template.json").read_text())
        return template

    @property
    def assets(self) -> list[Asset]:
        """The assets that the template refers to."""
        files = json.loads((self.folder / f"{STACK}.assets.json").read_text())["files"].values()
        return [
            Asset(destination["objectKey"], self.folder / file["source"]["path"])
            for file in files
            for destination in file["destinations"].values()
        ]


def synthesize(report: Callable[[str], None]) -> Assembly:
    """Synthesize the current stack, or reuse the cached assembly.

    `report` receives each line that the CDK prints.

    Raises:
        ToolFailed: The CDK rejects the stack.
        ToolNotInstalled: The CDK is missing.
    """
    folder = project_folder() / ASSEMBLY
    kept = folder / fingerprint(template_inputs())
    if not kept.exists():
        cdk = node_package(".bin/cdk")
        if not cdk.exists():
            raise ToolNotInstalled
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".making-") as aside:
            made = Path(aside) / "cdk.out"
            command = [str(cdk), "synth", "--quiet", "--no-notices", "--ci", "-c", f"env={LOCAL}", "--output"]
            run_tool("cdk synth", [*command, str(made)], _environment(Path(aside)), report)
            _keep(made, kept)
    return Assembly(kept)


def fingerprint(paths: Iterator[Path]) -> str:
    """Return a hash of the files' names, the files' contents and the Python version."""
    digest = sha256(sys.version.encode())
    for path in sorted(set(paths)):
        digest.update(f"\0{path.as_posix()}\0".encode())
        digest.update(sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _keep(made: Path, kept: Path) -> None:
    """Replace all earlier assemblies with a new assembly."""
    former = [path for path in kept.parent.iterdir() if not path.name.startswith(".")]
    try:
        made.rename(kept)
    except OSError:
        # Another process may have created the same assembly in the meantime.
        if not kept.exists():
            raise
    for path in former:
        if path != kept:
            shutil.rmtree(path, ignore_errors=True)


def packed(folder: Path) -> bytes:
    """Pack a folder into a ZIP archive, uncompressed because the archive stays on this machine."""
    content = BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            # The CDK also gives all files in its archives this time.
            entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (path.stat().st_mode & 0xFFFF) << 16
            archive.writestr(entry, path.read_bytes())
    return content.getvalue()


def _environment(folder: Path) -> dict[str, str]:
    """Return the environment variables for the CDK, with separate folders and without this process's AWS settings."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))}
    return {
        **inherited,
        # cdk.json calls `python` without a path.
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "CDK_DISABLE_VERSION_CHECK": "true",
        # The validation only prints warnings but takes longer than the rest of the synthesis.
        "CDK_VALIDATION": "false",
        "JSII_RUNTIME_PACKAGE_CACHE": "enabled",
        # This cache is kept outside the temporary folder, because unpacking the construct library takes ten seconds.
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(project_folder() / "build" / "jsii"),
        "NODE_NO_WARNINGS": "1",
    }


def run_tool(step: str, command: list[str], environ: dict[str, str], report: Callable[[str], None]) -> None:
    """Run a deployment tool; `report` receives each line that the tool prints.

    Raises:
        ToolFailed: The tool ended with an error.
    """
    last_lines: deque[str] = deque(maxlen=LAST_LINES)
    with guarded(command, environ=environ, cwd=project_folder(), output=subprocess.PIPE) as process:
        for line in map(_text, process.stdout or ()):
            if line:
                last_lines.append(line)
                report(line)
        if process.wait() != 0:
            raise ToolFailed(step, last_lines)


def _text(line: bytes) -> str:
    return line.decode(errors="replace").strip()
