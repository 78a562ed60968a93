"""Tests `duetime schedules apply` with the real API."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.client.test_worker import server as server_of_the_api

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

    from tests.client.api_server import ApiServer

    Run = Callable[..., Result]

server = server_of_the_api
HOOK = {"kind": "http", "url": "https://example.org/hook"}
PARTS: dict[str, dict[str, Any]] = {
    "batch": {"target": {**HOOK, "batch": {}}},
    "one-of-batch": {"target": {**HOOK, "batch": {"max_size": 7}}},
    "response": {"target": {**HOOK, "response": {"keep": "none"}}},
    "success": {"target": {**HOOK, "success": [204, 200]}},
    "method": {"target": {**HOOK, "method": "PUT", "headers": {"X-Shop": "web"}}},
    "retry": {"retry": {"max_attempts": 7}},
    "lock": {"lock": {"key": "shop"}},
    "shared-lock": {"lock": {"key": "shop", "mode": "shared"}},
    "locks": {"locks": [{"key": "shop"}, {"key": "bank", "scope": "run"}]},
    "rate": {"rate": {"key": "mail", "limit": 3}},
    "notify-on": {"notify_on": {"to": "https://example.org/alerts", "failed": True}},
    "handler": {"target": {"kind": "handler"}},
}
"""Tasks with as few fields in each part as the API accepts; the API adds the default values."""


@pytest.mark.parametrize("part", PARTS)
def test_defaults_added_by_the_api_are_not_a_difference(
    duetime: Run, server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """If a file omits defaults, applying the file a second time changes nothing."""
    monkeypatch.setenv("DUETIME_URL", server.url)
    path = tmp_path / "schedules.json"
    schedule = {"name": "nightly", "rate": "1 hour", "task": {"type": "any.report", **PARTS[part]}}
    path.write_text(json.dumps([schedule]), encoding="utf-8")
    first = duetime("schedules", "apply", str(path), "-y")
    assert "1 created" in first.stderr, first.stdout + first.stderr
    again = duetime("schedules", "apply", str(path), "-y")
    assert "1 unchanged" in again.stdout, again.stdout + again.stderr
