"""Tests that linters for OpenAPI documents have no findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.openapi.tools import FOLDER, node_program, run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def test_spectral_has_no_findings(openapi_json: Path) -> None:
    """The rules `spectral:oas`, which also check examples, find no error and no warning."""
    rules = str(FOLDER / "spectral.yaml")
    told = run(node_program("spectral"), "lint", "-r", rules, "-F", "hint", str(openapi_json), at=openapi_json.parent)
    assert "No results with a severity of 'hint' or higher found" in told


def test_redocly_has_no_findings(openapi_json: Path) -> None:
    """Redocly's recommended rules find no error and no warning."""
    rules = str(FOLDER / "redocly.yaml")
    told = run(node_program("redocly"), "lint", "--config", rules, str(openapi_json), at=openapi_json.parent)
    assert "Your API description is valid" in told
    assert "warning" not in told.lower().replace("deprecation warning", ""), told
