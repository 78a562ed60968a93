"""The api function over moto: its table, queues and bucket, fresh for each test."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import boto3
import pytest
from moto import mock_aws

from duetime import composition
from duetime.adapters.aws_clients import Clients
from duetime.composition import Runtime
from duetime.settings import QUEUE_VARIABLES, Variable
from tests import grants
from tests.adapters.tables import new_table
from tests.clocks import StandingClock
from tests.functions.api.gateway import Gateway

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BUCKET = "duetime-contents"
_NUMBERS = count()


@pytest.fixture
def clock() -> StandingClock:
    """The time: it stands until a test moves it."""
    return StandingClock()


@pytest.fixture(scope="module")
def session() -> Iterator[boto3.Session]:
    """An account in moto, for the tests of one module: to set up one for each would take most of their time."""
    with mock_aws():
        made = boto3.Session("testing", "testing", region_name="us-east-1")
        grants.watch(made)
        made.client("s3").create_bucket(Bucket=BUCKET)
        yield made


@pytest.fixture
def environ(session: boto3.Session) -> dict[str, str]:
    """The function's environment, with a table of its own; a test may change it before its first request."""
    number = next(_NUMBERS)
    table = new_table(session.client("dynamodb"))
    sqs = session.client("sqs")
    queues: dict[str, str] = {
        variable: sqs.create_queue(QueueName=f"{priority}-{number}")["QueueUrl"]
        for priority, variable in QUEUE_VARIABLES.items()
    }
    return {Variable.TABLE: table, Variable.BUCKET: BUCKET, Variable.AUTHENTICATION: "none", **queues}


@pytest.fixture
def compose(environ: dict[str, str], clock: StandingClock, session: boto3.Session) -> Iterator[Callable[[], None]]:
    """Composes the function over the real stores, in its environment as it is then."""
    yield lambda: composition.use(Runtime(environ=environ, clock=clock, clients=Clients(session)))
    composition.use(None)


@pytest.fixture
def api(compose: Callable[[], None]) -> Gateway:
    """The function, called by nobody in particular."""
    compose()
    return Gateway()
