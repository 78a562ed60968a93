"""The example application: its own tests pass, and it is what `duetime init` makes, with work of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import PurePosixPath

import pytest

from duetime_client.new_project import project_files
from infra import ROOT

SHOP = ROOT / "examples" / "shop"


@pytest.mark.slow
def test_its_tests_pass() -> None:
    """In its own folder, with its own settings, and any warning is a failure."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", "--strict-markers"]
    done = subprocess.run(command, cwd=SHOP, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["app.py", "cdk.json", "package.json", ".gitignore", "handlers/requirements.txt"])
def test_what_is_not_its_own_is_as_new_projects_have_it(name: str) -> None:
    """So the example does not fall behind the template."""
    assert (SHOP / name).read_text(encoding="utf-8") == project_files("shop")[PurePosixPath(name)]


def test_its_page_names_files_that_exist() -> None:
    """Each path in the tables of its README."""
    page = (SHOP / "README.md").read_text(encoding="utf-8")
    named = [word for word in page.split("`") if word.endswith(".py")]
    assert len(named) >= 10
    assert [name for name in named if not (SHOP / name).is_file()] == []
