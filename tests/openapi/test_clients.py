"""Clients that popular generators make of the document, used for real: create, list, schedule, cancel, fail."""

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
    """Tags arrive, due times and ids are taken, bodies and answers are typed, and the gateway's refusals are read."""
    USES[generator](openapi_json, tmp_path, url, "ann", STRANGER)
