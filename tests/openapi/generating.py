"""Creates clients from the document with popular generators, each with a program that uses the client."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from tests.openapi.tools import CLIENTS, MODULES, PYTHON, node_program, run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


def use_python(openapi_json: Path, folder: Path, *arguments: str) -> None:
    """Generate a client with openapi-python-client, whose bodies are typed."""
    generated = folder / "generated"
    told = run(
        PYTHON / "openapi-python-client",
        *("generate", "--path", str(openapi_json), "--output-path", str(generated), "--meta", "none"),
        at=folder,
    )
    # The generated client cannot send the body of a calendar's iCalendar file.
    assert told.count("WARNING") <= 1, told
    run(PYTHON / "python", str(CLIENTS / "use_python.py"), *arguments, at=folder, environ={"PYTHONPATH": str(folder)})


def use_fetch(openapi_json: Path, folder: Path, *arguments: str) -> None:
    """Generate types with openapi-typescript; minimal bodies compile, and responses have the expected types."""
    _prepare(folder)
    run(node_program("openapi-typescript"), str(openapi_json), "--output", "schema.d.ts", at=folder)
    _use(folder, "use_fetch", arguments)


def use_hey_api(openapi_json: Path, folder: Path, *arguments: str) -> None:
    """Generate a client with @hey-api/openapi-ts, whose functions have the operations' names."""
    _prepare(folder)
    shutil.copy(CLIENTS / "openapi-ts.config.mjs", folder)
    shutil.copy(openapi_json, folder / "openapi.json")
    run(node_program("openapi-ts"), "--no-log-file", at=folder)
    _use(folder, "use_hey_api", arguments)


USES: Mapping[str, Callable[..., None]] = {
    "openapi-python-client": use_python,
    "openapi-fetch": use_fetch,
    "hey-api": use_hey_api,
}
"""For each generator, a function that creates a client in a folder and runs the client's program with arguments."""


def _prepare(folder: Path) -> None:
    """Prepare a folder in which TypeScript can be compiled, with the generators' runtime packages."""
    shutil.copy(CLIENTS / "tsconfig.json", folder)
    shutil.copy(MODULES.parent / "package.json", folder)
    (folder / "node_modules").symlink_to(MODULES)


def _use(folder: Path, program: str, arguments: tuple[str, ...]) -> None:
    """Compile a program and run it."""
    shutil.copy(CLIENTS / f"{program}.ts", folder)
    run(node_program("tsc"), "--project", "tsconfig.json", at=folder)
    run("node", f"out/{program}.js", *arguments, at=folder)
