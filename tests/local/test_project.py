"""Tests which project the local stack uses, which is the checkout or the project in the current folder."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from duetime_cdk import HandlersNotFound
from duetime_cdk.handlers_folder import METADATA
from duetime_client.new_project import create_project
from duetime_local.project import ASSEMBLY, handlers_package, is_checkout, template_inputs
from infra import ROOT

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a separate project, and change to one of its subfolders."""
    folder = (tmp_path / "web-shop").resolve()
    create_project(folder)
    monkeypatch.chdir(folder / "tests")
    return folder


def test_in_the_checkout_the_settings_name_the_example_handlers() -> None:
    """In the checkout, the settings name the example handlers, for which the demo creates tasks."""
    assert is_checkout()
    assert handlers_package() == ROOT / "examples" / "handlers" / "example_handlers"


def test_in_a_project_the_template_depends_on_its_app_and_settings(project: Path) -> None:
    """A project's template depends on its app, its settings and duetime's packages, but not on its handlers."""
    assert not is_checkout()
    inputs = set(template_inputs())
    own = {path.relative_to(project).as_posix() for path in inputs if path.is_relative_to(project)}
    assert own == {"app.py", "settings.py", "cdk.json", "pyproject.toml", "handlers/grants.json"}
    assert ROOT / "infra/cdk/duetime_cdk/stack.py" in inputs
    assert ROOT / "functions/worker/handler.py" in inputs
    assert ROOT / "infra/environments.py" not in inputs


def test_the_handlers_of_a_project_are_named_by_its_assembly(project: Path) -> None:
    """The assembly names the handlers; if no assembly has the stack, the error says so."""
    with pytest.raises(HandlersNotFound, match="no stack 'duetime-local'"):
        handlers_package()
    folder = project / ASSEMBLY / "0123"
    folder.mkdir(parents=True)
    entry = {"type": METADATA, "data": str(project / "handlers" / "web_shop")}
    metadata = {"/duetime-local": [{"type": "aws:x", "data": 1}, entry], "/duetime-local/ApiUrl": []}
    (folder / "duetime-local.metadata.json").write_text(json.dumps(metadata))
    assert handlers_package() == project / "handlers" / "web_shop"
