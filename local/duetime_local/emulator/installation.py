"""Finds the Python environment of the embedded AWS, and installs the embedded AWS into a project outside a checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from uv import find_uv_bin

from duetime_cdk.source_folders import CHECKOUT, project_folder
from duetime_local.emulator.errors import EmulatorFailed

if TYPE_CHECKING:
    from collections.abc import Callable

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
"""The emulator's pinned requirements, which are separate because the emulator needs other library versions than the
project."""
_NAME = "emulator-"
_PYTHON = Path("bin", "python")
_LAST_LINES = 15


def interpreter() -> Path:
    """Return the path of the Python interpreter that runs the emulator, which need not be installed yet."""
    if CHECKOUT is not None:
        return CHECKOUT / ".venv-emulator" / _PYTHON
    # The environment's name contains a hash of the requirements and the Python version.
    inputs = REQUIREMENTS.read_bytes() + sys.version.encode()
    return project_folder() / ".duetime" / f"{_NAME}{sha256(inputs).hexdigest()[:12]}" / _PYTHON


def is_missing() -> bool:
    """Whether `install` must be called; in a checkout, `make setup` installs the emulator."""
    return CHECKOUT is None and not interpreter().exists()


def run_uv(command: list[str]) -> None:
    """Run a uv command.

    Raises:
        EmulatorFailed: the command ended with an error.
    """
    environ = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    # The path of uv comes from its own package, and the requirements file is part of this package.
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise EmulatorFailed("cannot be installed", "\n".join(done.stderr.splitlines()[-_LAST_LINES:]))


def install(run: Callable[[list[str]], object] = run_uv) -> None:
    """Install the emulator into the project, and remove earlier installations.

    Args:
        run: runs a uv command.

    Raises:
        EmulatorFailed: a package cannot be downloaded.
    """
    final = interpreter().parents[1]
    final.parent.mkdir(parents=True, exist_ok=True)
    uv = find_uv_bin()
    with tempfile.TemporaryDirectory(dir=final.parent, prefix=".installing-") as aside:
        made = Path(aside) / "environment"
        run([uv, "venv", "--quiet", "--python", sys.executable, str(made)])
        packages = ["--python", str(made / _PYTHON), "--no-deps", "--requirements", str(REQUIREMENTS)]
        run([uv, "pip", "install", "--quiet", *packages])
        for former in final.parent.glob(f"{_NAME}*"):
            shutil.rmtree(former, ignore_errors=True)
        made.rename(final)
