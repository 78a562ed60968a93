"""Tests of clients that popular generators create from a deployment's OpenAPI document, against that deployment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from tests.openapi.generating import USES

if TYPE_CHECKING:
    from pathlib import Path

    from duetime_local.stack import Stack


@pytest.mark.slow
@pytest.mark.parametrize("generator", USES)
def test_a_generated_client_does_what_it_is_asked(deployed: Stack, tmp_path: Path, generator: str) -> None:
    """A generated client works with the gateway and real queues in the same way as with the function in process."""
    url = deployed.ready.api_url
    document = tmp_path / "openapi.json"
    document.write_text(httpx.get(f"{url}/v1/openapi.json", timeout=60).raise_for_status().text, encoding="utf-8")
    folder = tmp_path / "client"
    folder.mkdir()
    USES[generator](document, folder, url, f"client-of-{generator}")
