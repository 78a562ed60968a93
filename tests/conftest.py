"""Fixtures of every folder: the embedded AWS, started once a session and only if a test asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from local import emulator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from local.emulator import Emulator


@pytest.fixture(scope="session")
def engine() -> Iterator[Emulator]:
    """MiniStack's services without a deployment: atomic and rightly metered, unlike moto.

    `engine.client("dynamodb")` is a boto3 client. The engine is shared: name tables and queues freshly.
    """
    with emulator.running(port=0) as started:
        yield started


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what starts real processes, and keep the tests of one deployment in one process of pytest-xdist."""
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if "engine" in fixtures:
            item.add_marker(pytest.mark.engine)
        if "deployed" in fixtures:
            item.add_marker(pytest.mark.deployed)
            item.add_marker(pytest.mark.xdist_group("deployed"))
