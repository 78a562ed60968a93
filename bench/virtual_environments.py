"""Installs virtual environments for measured programs whose packages differ from the project's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_BUILD = Path(__file__).resolve().parents[1] / "build"


def programs_of(name: str, requirements: str) -> Path:
    """Return the folder with an environment's programs, and install the environment if it is new or has changed.

    Args:
        name: the environment's folder in `build`.
        requirements: content of a `requirements.txt`; when it changes, the environment is reinstalled.
    """
    folder = _BUILD / name
    programs, installed = folder / "bin", folder / "requirements.txt"
    if not installed.exists() or installed.read_text() != requirements:
        uv = Path(sys.executable).with_name("uv")
        subprocess.run([uv, "venv", "--quiet", "--clear", folder], check=True)  # noqa: S603 - our own
        install = [str(uv), "pip", "install", "--quiet", "--python", str(programs / "python")]
        subprocess.run([*install, "-r", "-"], input=requirements, text=True, check=True)  # noqa: S603 - our own
        installed.write_text(requirements)
    return programs
