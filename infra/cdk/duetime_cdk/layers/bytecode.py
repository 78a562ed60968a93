"""Writes a layer's bytecode with the Python version that will read it.

Without `.pyc` files, imports from a layer take at least twice as long, because `/opt` is read-only and every start
compiles the modules again. Assets lose their modification times on the way to Lambda, so the files are marked
`unchecked-hash`, and Python loads them without comparing anything. Only an interpreter with the same feature version
can write these files.
"""

from __future__ import annotations

import py_compile
import shutil
import subprocess
import sys
from itertools import islice
from pathlib import Path
from py_compile import PycInvalidationMode, PyCompileError

from duetime_cdk.errors import NotDeployable
from duetime_cdk.layers.target import RUNNING_PYTHON
from duetime_cdk.source_folders import node_package

COMPILE_IN_WASM = Path(__file__).with_name("compile.mjs")
MOUNT_POINT = "/opt"
"""The folder where Lambda unpacks layers, which tracebacks show."""
FEW = 50
"""Up to this many modules are compiled in this process, because starting another process would delay the reload of a
saved handler."""
_LINES = 15


class BytecodeUnwritable(RuntimeError):
    """No interpreter with the required version was found to write the bytecode."""

    def __init__(self, python: str) -> None:
        super().__init__(
            f"bytecode of Python {python} can be written by a `python{python}` on the PATH or, for 3.14, by Node"
            f" with the npm package `pyodide` (run `npm ci`); neither was found"
        )


class SourceUncompilable(NotDeployable):
    """A module of a layer is not valid in the layer's version of Python."""

    def __init__(self, python: str, output: str) -> None:
        lines = "\n".join(f"  {line}" for line in output.strip().splitlines()[-_LINES:])
        super().__init__(f"a module cannot be compiled by Python {python}; nothing is deployed:\n{lines}")


def write_bytecode(root: Path, python: str) -> None:
    """Compile every module under `root` for the feature version `python`.

    Raises:
        BytecodeUnwritable: no Python with that version was found.
        SourceUncompilable: a module is not valid in that version.
    """
    if python == RUNNING_PYTHON and len(list(islice(root.rglob("*.py"), FEW + 1))) <= FEW:
        _compile_here(root, python)
        return
    interpreter = _interpreter(python)
    if interpreter:
        command = [interpreter, "-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash"]
        command += ["-s", str(root), "-p", MOUNT_POINT, str(root)]
    else:
        command = _wasm_command(root, python)
    # The command consists of our own constants and paths; nothing in it is external input.
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise SourceUncompilable(python, done.stdout + done.stderr)


def _compile_here(root: Path, python: str) -> None:
    for path in root.rglob("*.py"):
        named = Path(MOUNT_POINT, path.relative_to(root))
        try:
            py_compile.compile(
                str(path), dfile=str(named), doraise=True, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH
            )
        except PyCompileError as error:
            raise SourceUncompilable(python, error.msg) from None


def _interpreter(python: str) -> str | None:
    if python == RUNNING_PYTHON:
        return sys.executable
    found = shutil.which(f"python{python}")
    # A version manager's shim may exist although this version is not installed.
    works = found and subprocess.run([found, "-c", ""], check=False, capture_output=True).returncode == 0  # noqa: S603 (a path found by which)
    return found if works else None


def _wasm_command(root: Path, python: str) -> list[str]:
    node = shutil.which("node")
    pyodide = node_package("pyodide") / "pyodide.mjs"
    if not node or not pyodide.is_file():
        raise BytecodeUnwritable(python)
    return [node, str(COMPILE_IN_WASM), pyodide.as_uri(), str(root), python, MOUNT_POINT]
