"""Clients that popular generators make of the document, used for real: create, list, schedule, cancel, fail."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.openapi.tools import CLIENTS, MODULES, PYTHON, node_program, run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture
def typescript(tmp_path: Path) -> Path:
    """A folder in which TypeScript can be compiled, with the generators' run-time parts."""
    shutil.copy(CLIENTS / "tsconfig.json", tmp_path)
    shutil.copy(MODULES.parent / "package.json", tmp_path)
    (tmp_path / "node_modules").symlink_to(MODULES)
    return tmp_path


def test_a_client_of_openapi_python_client_does_what_it_is_asked(openapi_json: Path, url: str, tmp_path: Path) -> None:
    """Tags arrive, due times and ids are taken, bodies are typed, and the gateway's refusals are read."""
    arguments = [
        "generate",
        "--path",
        str(openapi_json),
        "--output-path",
        str(tmp_path / "generated"),
        "--meta",
        "none",
    ]
    told = run(PYTHON / "openapi-python-client", *arguments, at=tmp_path)
    # A calendar's iCalendar file is the one body that it cannot send.
    assert told.count("WARNING") <= 1, told
    run(PYTHON / "python", str(CLIENTS / "use_python.py"), url, at=tmp_path, environ={"PYTHONPATH": str(tmp_path)})


def test_a_client_of_openapi_fetch_does_what_it_is_asked(openapi_json: Path, url: str, typescript: Path) -> None:
    """The least bodies compile under strict types, and answers have the types that they are said to have."""
    run(node_program("openapi-typescript"), str(openapi_json), "--output", "schema.d.ts", at=typescript)
    use(typescript, "use_fetch", url)


def test_a_client_of_hey_api_does_what_it_is_asked(openapi_json: Path, url: str, typescript: Path) -> None:
    """The same by a third generator, whose functions are named by the operations."""
    shutil.copy(CLIENTS / "openapi-ts.config.mjs", typescript)
    shutil.copy(openapi_json, typescript / "openapi.json")
    run(node_program("openapi-ts"), "--no-log-file", at=typescript)
    use(typescript, "use_hey_api", url)


def use(folder: Path, program: str, url: str) -> None:
    """Compile a program and run it."""
    shutil.copy(CLIENTS / f"{program}.ts", folder)
    run(node_program("tsc"), "--project", "tsconfig.json", at=folder)
    run("node", f"out/{program}.js", url, at=folder)
