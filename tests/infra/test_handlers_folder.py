from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import infra.environments
from duetime_cdk import DEV, PROD, HandlersNotFound, UnknownEnvironment, UnknownSetting
from duetime_cdk.environments import with_settings
from duetime_cdk.handlers_folder import METADATA, handlers_of
from infra import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.infra.synthesis import Synthesis


def add_package(folder: Path, name: str) -> Path:
    """Create an empty package."""
    (package := folder / name).mkdir(parents=True)
    (package / "__init__.py").touch()
    return package


def test_prod_has_no_handlers_until_the_settings_name_a_folder() -> None:
    """The settings of `prod` must name a folder, so that examples are not deployed; the error names the setting."""
    assert not infra.environments.ENVIRONMENTS["prod"].handlers_folder
    with pytest.raises(HandlersNotFound, match="'prod' names no handlers: set `handlers_folder`"):
        handlers_of(PROD)


def test_the_only_package_of_the_folder_is_found(tmp_path: Path) -> None:
    """The only package in a folder need not be named, and the grants file beside the package is found."""
    package = add_package(tmp_path / "handlers", "shop")
    found = handlers_of(replace(DEV, handlers_folder="handlers"), tmp_path)
    assert (found.package, found.grants) == (package, [])
    (tmp_path / "handlers" / "grants.json").write_text('[{"Effect": "Allow"}]')
    assert found.grants == [{"Effect": "Allow"}]


def test_one_of_two_handler_packages_must_be_selected(tmp_path: Path) -> None:
    """If a folder has two packages and none is named, the error lists both; a name selects one of the packages."""
    for name in ("one", "two"):
        add_package(tmp_path / "handlers", name)
    settings = replace(DEV, handlers_folder="handlers")
    with pytest.raises(HandlersNotFound, match=r"holds 2 packages \(one, two\)"):
        handlers_of(settings, tmp_path)
    assert handlers_of(replace(settings, handlers_package="two"), tmp_path).package.name == "two"


@pytest.mark.parametrize(("package", "reason"), [("", "holds no package"), ("absent", "no package of handlers")])
def test_a_missing_or_empty_handlers_folder_is_rejected(tmp_path: Path, package: str, reason: str) -> None:
    """If the handlers' folder has no package, or not the named package, the error names the folder's path."""
    settings = replace(DEV, handlers_folder="handlers", handlers_package=package)
    with pytest.raises(HandlersNotFound, match=reason) as refused:
        handlers_of(settings, tmp_path)
    assert str(tmp_path / "handlers") in str(refused.value)


def test_settings_replace_fields_of_a_preset() -> None:
    """Given settings replace fields of the preset, and the other fields are unchanged."""
    changed = with_settings("prod", {"alarm_email": "ops@example.org"})
    assert changed == replace(PROD, alarm_email="ops@example.org")
    assert with_settings(DEV, {}) == DEV


def test_unknown_names_are_rejected_with_a_suggestion() -> None:
    """An unknown preset or setting is an error with a suggestion, before anything is built."""
    with pytest.raises(UnknownEnvironment, match="'pord'"):
        with_settings("pord", {})
    with pytest.raises(UnknownSetting, match="'alarm_mail'; did you mean 'alarm_email'"):
        with_settings("prod", {"alarm_mail": "ops@example.org"})


def test_the_assembly_contains_the_path_of_the_handlers(dev: Synthesis) -> None:
    """The local stack reads the handlers' folder from the assembly; the template does not depend on this folder."""
    entries = json.loads((dev.folder / "duetime-dev.metadata.json").read_text(encoding="utf-8"))["/duetime-dev"]
    assert {"type": METADATA, "data": str(ROOT / "examples/handlers/example_handlers")} in entries
    assert str(ROOT) not in json.dumps(dev.template)
