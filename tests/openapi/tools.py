"""Runs the linters and the client generators that `make openapi-tools` installs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = Path(__file__).resolve().parent
MODULES = FOLDER / "node_modules"
PYTHON = FOLDER.parents[1] / ".venv-openapi" / "bin"
CLIENTS = FOLDER / "clients"
_QUIET = {"REDOCLY_TELEMETRY": "off", "SCARF_ANALYTICS": "false", "DO_NOT_TRACK": "1"}


def run(program: Path | str, *arguments: str, at: Path, environ: Mapping[str, str] | None = None) -> str:
    """Run a program that must succeed, and return its output."""
    if isinstance(program, Path):
        assert program.exists(), f"{program.name} is not installed: run `make openapi-tools`"
    path = os.pathsep.join([str(PYTHON), str(MODULES / ".bin"), os.environ["PATH"]])
    ended = subprocess.run(  # noqa: S603 - our own
        [str(program), *arguments],
        cwd=at,
        env={**os.environ, **_QUIET, "PATH": path, **(environ or {})},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    told = f"{ended.stdout}\n{ended.stderr}"
    assert ended.returncode == 0, told
    return told


def node_program(name: str) -> Path:
    """Return a command from one of the Node.js packages."""
    return MODULES / ".bin" / name
