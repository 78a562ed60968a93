"""Tests that the example projects pass their tests, and equal new projects from `duetime init` with additions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import PurePosixPath

import pytest
from typer.testing import CliRunner

from duetime_client.commands.app import app
from duetime_client.new_project import project_files
from infra import ROOT

EXAMPLES = ROOT / "examples"
PROJECTS = {"shop": "shop", "celery-migration": "photo-lab"}
"""The projects' folders, with the names with which the projects were created."""
MIGRATION = EXAMPLES / "celery-migration"


@pytest.mark.slow
@pytest.mark.parametrize("project", PROJECTS)
def test_the_tests_of_the_example_projects_pass(project: str) -> None:
    """Each project's tests pass in the project's folder with its settings, and any warning is a failure."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", "--strict-markers"]
    folder = EXAMPLES / project
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["app.py", "cdk.json", "package.json", ".gitignore", "handlers/requirements.txt"])
@pytest.mark.parametrize("project", PROJECTS)
def test_unchanged_files_of_example_projects_equal_those_of_new_projects(project: str, name: str) -> None:
    """Files that an example has not changed equal the files in a new project."""
    made = project_files(PROJECTS[project])[PurePosixPath(name)]
    assert (EXAMPLES / project / name).read_text(encoding="utf-8") == made


@pytest.mark.parametrize(("project", "least"), [("shop", 10), ("celery-migration", 6)])
def test_paths_in_the_readmes_of_example_projects_exist(project: str, least: int) -> None:
    """Each Python or JSON Lines file that a README names exists."""
    page = (EXAMPLES / project / "README.md").read_text(encoding="utf-8")
    named = [word for word in page.split("`") if word.endswith((".py", ".jsonl")) and " " not in word]
    assert len(named) >= least
    assert [name for name in named if not (EXAMPLES / project / name).is_file()] == []


def test_the_migrated_schedules_equal_the_output_of_the_importer() -> None:
    """The migrated schedules equal the importer's output with renamed types and without the handlers' options."""
    done = CliRunner().invoke(
        app, ["import", "celery", *(str(MIGRATION / "before" / f"{n}.py") for n in ("app", "tasks"))]
    )
    imported = [json.loads(line) for line in done.stdout.splitlines()]
    kept = [json.loads(line) for line in (MIGRATION / "schedules.jsonl").read_text(encoding="utf-8").splitlines()]
    renamed = {"lab.tasks.nightly_report": "report.nightly", "lab.tasks.sync_partners": "partner.sync-all"}
    for entry in imported:
        task = entry["task"]
        options = {name: value for name, value in task.items() if name in {"payload", "expires_seconds"}}
        entry["task"] = {"type": renamed[task["type"]], **options}
    assert imported == kept
