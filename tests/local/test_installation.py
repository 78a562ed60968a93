"""Tests the folder with the embedded AWS in a project that uses duetime's wheels."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from duetime_local.emulator import EmulatorFailed, installation
from infra import ROOT


def test_a_checkout_uses_its_installed_embedded_aws() -> None:
    """In a checkout, `make setup` installs the embedded AWS and the command installs nothing."""
    assert installation.interpreter() == ROOT / ".venv-emulator" / "bin" / "python"
    assert not installation.is_missing()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project without a checkout."""
    (tmp_path / "cdk.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(installation, "CHECKOUT", None)
    return tmp_path


def test_a_project_installs_the_embedded_aws_once(project: Path) -> None:
    """The pinned packages are installed once into a folder in the project, and replace an earlier version."""
    former = project / ".duetime" / "emulator-0123456789ab"
    former.mkdir(parents=True)
    commands: list[list[str]] = []

    def run(command: list[str]) -> None:
        commands.append(command)
        if "venv" in command:
            python = Path(command[-1], "bin", "python")
            python.parent.mkdir(parents=True)
            python.touch()

    assert installation.is_missing()
    installation.install(run)
    assert not installation.is_missing()
    assert [path.name for path in (project / ".duetime").iterdir()] == [installation.interpreter().parents[1].name]
    made, filled = commands
    assert made[1:5] == ["venv", "--quiet", "--python", sys.executable]
    assert filled[-1] == str(installation.REQUIREMENTS)


def test_a_failed_installation_is_reported_and_removed(project: Path) -> None:
    """A failed installation is reported and removed, and the next start tries again."""

    def fail(_command: list[str]) -> None:
        installation.run_uv([sys.executable, "-c", "import sys; sys.exit('no such package')"])

    with pytest.raises(EmulatorFailed, match="cannot be installed\nno such package"):
        installation.install(fail)
    assert list((project / ".duetime").iterdir()) == []
    assert installation.is_missing()
