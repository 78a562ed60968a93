"""Fixtures for a deployment, a client for the deployment, and the `duetime` command."""

from __future__ import annotations

from datetime import timedelta, timezone
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from duetime_client import Client
from duetime_client.commands.app import app
from duetime_client.commands.clock import Clock
from tests.client.deployment import NOW, Deployment, served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from typer.testing import Result


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    """Start a separate deployment for each test."""
    with served(Deployment()) as made:
        yield made


class Waits(list[float]):
    """Records a client's sleeps, and fails the test at once if a wait would be endless."""

    def append(self, seconds: float) -> None:
        """Record a sleep and return without waiting."""
        assert len(self) < 50, "waits forever"
        super().append(seconds)


@pytest.fixture
def waits() -> list[float]:
    """The recorded sleeps of the client."""
    return Waits()


@pytest.fixture
def client(deployment: Deployment, waits: list[float]) -> Iterator[Client]:
    """Return a client that does not really sleep and whose random numbers are always one half."""
    with Client(deployment.url, sleep=waits.append, random_source=lambda: 0.5, now=lambda: NOW) as made:
        yield made


@pytest.fixture
def duetime(deployment: Deployment, waits: list[float], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Return the command, at noon UTC in Tokyo's time zone, with the deployment's address in the environment."""
    for variable in ("DUETIME_AUTH", "DUETIME_TOKEN", "DUETIME_API_KEY", "DUETIME_OWNER"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("DUETIME_URL", deployment.url)
    clock = Clock(now=lambda: NOW, zone=timezone(timedelta(hours=9), "JST"), sleep=waits.append)

    def run(*arguments: str, typed: str | None = None) -> Result:
        return CliRunner().invoke(app, arguments, input=typed, obj=clock)

    return run
