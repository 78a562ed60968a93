"""Tests that the project that `duetime init` creates works with this checkout's packages."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path, PurePosixPath

import pytest
from typer.testing import CliRunner

from duetime_client.commands.app import app
from duetime_client.new_project import ProjectRejected, create_project, package_name, project_files
from infra import ROOT


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a new project."""
    folder = tmp_path_factory.mktemp("projects") / "web-shop"
    create_project(folder)
    return folder


def run(project: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a tool of this environment in the project."""
    return subprocess.run(  # noqa: S603 - tools of this environment
        [sys.executable, "-m", *command], cwd=project, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_the_tests_of_a_new_project_pass(project: Path) -> None:
    """The new project's tests pass unchanged, with any warning as a failure."""
    done = run(project, "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", "--strict-markers", "--strict-config")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout


def test_a_new_project_is_formatted_and_has_no_findings(project: Path) -> None:
    """Linting the new project by the rules in its `pyproject.toml` has no findings."""
    for arguments in (("format", "--check", "."), ("check", ".")):
        done = run(project, "ruff", *arguments, "--no-cache")
        assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_a_new_project_passes_strict_type_checks(project: Path) -> None:
    """The new project's types pass strict checks against the types that the packages publish."""
    done = run(project, "mypy", "--cache-dir", str(ROOT / "build" / "mypy-of-projects"))
    assert done.returncode == 0, done.stdout


def test_a_new_project_has_every_documented_file() -> None:
    """Each file that the project's page names exists, and no placeholder from the template is left."""
    contents = project_files("web-shop")
    assert {
        PurePosixPath(name)
        for name in ("README.md", "app.py", "cdk.json", "settings.py", "handlers/web_shop/__init__.py")
    } <= set(contents)
    assert not [path for path, text in contents.items() if "@PACKAGE@" in text or "@PROJECT@" in text]


def test_a_new_project_pins_the_versions_of_this_checkout() -> None:
    """The project pins the packages to this version, and has the same Node tools and feature flags as this checkout."""
    contents = project_files("web-shop")
    settings = tomllib.loads(contents[PurePosixPath("pyproject.toml")])
    pinned = [*settings["project"]["dependencies"], *settings["dependency-groups"]["dev"]]
    ours = [requirement for requirement in pinned if requirement.startswith("duetime")]
    assert len(ours) == 5
    assert all(requirement.endswith(f"=={version('duetime-client')}") for requirement in ours)
    tools = json.loads(contents[PurePosixPath("package.json")])["devDependencies"]
    checkout = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["devDependencies"]
    assert tools == {name: checkout[name] for name in ("aws-cdk", "pyodide")}
    flags = json.loads(contents[PurePosixPath("cdk.json")])["context"]
    assert flags == json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]


def test_each_tool_finds_the_handlers() -> None:
    """The tests, the project's type checker and editors' type checkers find the handlers."""
    tool = tomllib.loads(project_files("web-shop")[PurePosixPath("pyproject.toml")])["tool"]
    folders = (tool["pytest"]["ini_options"]["pythonpath"], tool["mypy"]["mypy_path"], tool["pyright"]["extraPaths"])
    assert folders == (["handlers"],) * 3


@pytest.mark.parametrize("name", ["1shop", "web shop", "../shop", "", "web--shop", "shöp", "-x"])
def test_an_invalid_project_name_is_rejected(name: str) -> None:
    """A project's name must be a valid name for a Python distribution, in ASCII."""
    with pytest.raises(ProjectRejected, match="cannot name a project"):
        package_name(name)


@pytest.mark.parametrize("name", ["duetime", "Handlers", "tests", "json", "class", "aws-cdk"])
def test_a_handlers_package_hidden_by_another_package_is_rejected(name: str) -> None:
    """A handlers' package that another installed package could hide is refused."""
    with pytest.raises(ProjectRejected, match="there is another package"):
        package_name(name)


def test_a_folder_with_files_is_not_changed(tmp_path: Path) -> None:
    """Nothing is written into a folder with other files, except for a new Git repository."""
    folder = tmp_path / "web-shop"
    (folder / ".git").mkdir(parents=True)
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(ProjectRejected, match=r"has notes\.txt; nothing was written"):
        create_project(folder)
    assert sorted(path.name for path in folder.iterdir()) == [".git", "notes.txt"]
    (folder / "notes.txt").unlink()
    assert folder / "app.py" in create_project(folder)


def test_the_init_command_prints_the_next_steps(tmp_path: Path) -> None:
    """The command prints the next steps and exits with 0; if the folder is in use, it prints why and exits with 2."""
    folder = str(tmp_path / "web-shop")
    done = CliRunner().invoke(app, ["init", folder])
    assert done.exit_code == 0, done.output
    assert "uv sync" in done.output
    again = CliRunner().invoke(app, ["init", folder])
    assert again.exit_code == 2
    assert "is not empty" in again.output
