"""Fixtures for the api function over AWS fakes; each test has its own table, queues and bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime import composition
from duetime.adapters.aws_clients import Clients
from duetime.composition import Platform
from duetime.environment_variables import QUEUE_VARIABLES, Variable
from duetime_testing.fakes.task_table import new_table
from tests.clocks import StandingClock
from tests.fakes.session import FakeSession
from tests.functions.api.gateway import Gateway

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BUCKET = "duetime-contents"


@pytest.fixture
def clock() -> StandingClock:
    """A clock whose time changes only when a test advances it."""
    return StandingClock()


@pytest.fixture
def session(clock: StandingClock) -> FakeSession:
    """A session of AWS fakes; each test has a separate account."""
    made = FakeSession(clock.now)
    made.s3.create_bucket(Bucket=BUCKET)
    return made


@pytest.fixture
def environ(session: FakeSession) -> dict[str, str]:
    """The function's environment, which a test may change before its first request."""
    table = new_table(session.client("dynamodb"))
    queues: dict[str, str] = {
        variable: session.sqs.create_queue(QueueName=priority.value)["QueueUrl"]
        for priority, variable in QUEUE_VARIABLES.items()
    }
    return {
        Variable.TABLE: table,
        Variable.BUCKET: BUCKET,
        Variable.AUTHENTICATION: "none",
        Variable.WATCH_URL: "wss://live.example.org/live",
        **queues,
    }


@pytest.fixture
def compose(environ: dict[str, str], clock: StandingClock, session: FakeSession) -> Iterator[Callable[[], None]]:
    """Compose the function with real stores over AWS fakes, from the current environment."""
    yield lambda: composition.use(
        Platform(
            environ=environ,
            clock=clock,
            clients=Clients(session),  # type: ignore[arg-type]  # a fake session
        )
    )
    composition.use(None)


@pytest.fixture
def api(compose: Callable[[], None]) -> Gateway:
    """A gateway to the api function, without authentication."""
    compose()
    return Gateway()
