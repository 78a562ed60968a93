"""Virtual environments of what is measured beside duetime, whose packages are none of the project's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_BUILD = Path(__file__).resolve().parents[1] / "build"


def programs_of(name: str, requirements: str) -> Path:
    """The folder of the programs of an environment, which is installed when it is first asked for.

    Args:
        name: of its folder in `build`.
        requirements: what is installed, as in a `requirements.txt`; when that has changed, it is installed anew.
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
