"""Fixtures for the complete stack, which is deployed to the embedded AWS once per session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from duetime_client import Client
from duetime_local import demo_receiver, stack
from duetime_local.terminal import Display

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime_local.demo_receiver import Receiver
    from duetime_local.stack import Stack


@pytest.fixture(scope="session")
def deployed() -> Iterator[Stack]:
    """The stack in `infra/`, deployed in the same way as by `duetime local up`."""
    with stack.running(Display(Console(quiet=True)), port=0) as running:
        yield running


@pytest.fixture
def client(deployed: Stack) -> Iterator[Client]:
    """The client from the published package, connected to the deployed API."""
    with Client(deployed.ready.api_url) as connected:
        yield connected


@pytest.fixture
def counter() -> Iterator[Receiver]:
    """The endpoint that tasks call, which records whether the tasks ran."""
    with demo_receiver.receiving() as started:
        yield started
