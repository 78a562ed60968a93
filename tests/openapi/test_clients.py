"""Tests that clients from popular generators create, list, schedule and cancel tasks, and handle errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.openapi.conftest import STRANGER
from tests.openapi.generating import USES

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("generator", USES)
def test_a_generated_client_does_what_it_is_asked(openapi_json: Path, url: str, tmp_path: Path, generator: str) -> None:
    """Tags, due times and ids are sent correctly, bodies and responses are typed, and refusals are parsed."""
    USES[generator](openapi_json, tmp_path, url, "ann", STRANGER)
