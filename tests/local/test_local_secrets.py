from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime_local import local_secrets
from duetime_local.local_secrets import FILE, LocalSecretsInvalid

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project's folder."""
    monkeypatch.setattr(local_secrets, "project_folder", lambda: tmp_path)
    return tmp_path


def test_local_secrets_are_read_from_the_file_and_the_shell(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell variable takes precedence over the file, and other shell variables are not passed on."""
    (project / FILE).write_text('{"stripe": "file", "shop/mail-key": "m"}')
    monkeypatch.setenv("DUETIME_SECRET_STRIPE", "shell")
    monkeypatch.setenv("DUETIME_URL", "x")
    assert local_secrets.local_secrets() == {"DUETIME_SECRET_STRIPE": "shell", "DUETIME_SECRET_SHOP_MAIL_KEY": "m"}


@pytest.mark.usefixtures("project")
def test_a_project_needs_no_secrets_file() -> None:
    """A project without a secrets file has no secrets, and this is not an error."""
    assert local_secrets.local_secrets() == {}


@pytest.mark.parametrize("text", ["{", "[]", '{"a": 1}'])
def test_an_invalid_secrets_file_is_rejected_with_its_name(project: Path, text: str) -> None:
    """Invalid JSON and values that are not strings cause errors that name the file."""
    (project / FILE).write_text(text)
    with pytest.raises(LocalSecretsInvalid, match=FILE):
        local_secrets.local_secrets()
