"""Every port's implementation over the fakes, over moto, and over the embedded engine."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from moto import mock_aws

from duetime.adapters import aws_clients
from duetime.adapters.content_store import SplitContentStore
from duetime.adapters.dynamodb.circuit_breakers import DynamoCircuitStore
from duetime.adapters.dynamodb.intake_rules import DynamoIntakeRuleStore
from duetime.adapters.dynamodb.keys import DynamoKeyStore
from duetime.adapters.dynamodb.live_updates import DynamoWatchStore
from duetime.adapters.dynamodb.locks import DynamoLockStore
from duetime.adapters.dynamodb.long_polls import DynamoLongPollStore
from duetime.adapters.dynamodb.quotas import DynamoQuotaStore, DynamoQuotaUse
from duetime.adapters.dynamodb.rates import DynamoRateStore
from duetime.adapters.dynamodb.schedules import DynamoCalendarStore, DynamoScheduleStore
from duetime.adapters.dynamodb.signals import DynamoSignalStore
from duetime.adapters.dynamodb.switches import DynamoSwitchStore
from duetime.adapters.dynamodb.task_store import DynamoTaskStore
from duetime.adapters.dynamodb.topology_run_state import DynamoTopologyStore
from duetime.adapters.dynamodb.trigger_cursors import DynamoCursorStore, DynamoShardStore
from duetime_testing.fakes.dynamodb import FakeDynamoDB
from tests.adapters.clouds import EXECUTOR, SILENT, Cloud
from tests.adapters.receivers import Receiver, SqsReceiver
from tests.clocks import NOW
from tests.fakes.session import FakeSession

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime.ports.stores import (
        CalendarStore,
        CircuitStore,
        CursorStore,
        IntakeRuleStore,
        LockStore,
        LongPollStore,
        QuotaStore,
        QuotaUseStore,
        RateStore,
        ScheduleStore,
        ShardStore,
        SignalStore,
        SwitchStore,
        WatchStore,
    )
    from duetime.ports.tasks import ContentStore, KeyStore, TaskStore
    from duetime.ports.topologies import TopologyStore
    from duetime_local.emulator import Emulator

IMPLEMENTATIONS = ["fake", "moto", pytest.param("engine", marks=pytest.mark.engine)]


@pytest.fixture(scope="session")
def moto_clients() -> Cloud:
    """Clients that moto serves while it is active."""
    session = boto3.Session(aws_access_key_id="none", aws_secret_access_key="none", region_name="us-east-1")  # noqa: S106 - none
    return Cloud(session.client("dynamodb"), session.client("s3"), session.client("sqs"))


@pytest.fixture
def moto_cloud(moto_clients: Cloud) -> Iterator[Cloud]:
    """An empty AWS of moto's, for one test."""
    with mock_aws():
        yield moto_clients


@pytest.fixture(scope="session")
def engine_cloud(engine: Emulator) -> Cloud:
    """The embedded engine, shared by all tests, called with the settings of the deployed functions, but patiently.

    On a busy machine a response may take seconds, and a retried creation of the table fails because it exists.
    """
    session = boto3.Session(aws_access_key_id="none", aws_secret_access_key="none", region_name="us-east-1")  # noqa: S106 - none
    where: dict[str, Any] = {
        "endpoint_url": engine.endpoint_url,
        "config": aws_clients.CONFIG.merge(Config(read_timeout=300)),
    }
    return Cloud(session.client("dynamodb", **where), session.client("s3", **where), session.client("sqs", **where))


@pytest.fixture
def fake_cloud(monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """An empty AWS of fakes for one test; like the others, it leaves the time out of its responses."""
    monkeypatch.setattr(FakeDynamoDB, "_metadata", lambda _self: {"HTTPStatusCode": 200})
    began = time.monotonic_ns()
    session = FakeSession(lambda: NOW + (time.monotonic_ns() - began) // 1_000_000)
    return Cloud(session.client("dynamodb"), session.client("s3"), session.client("sqs"))


def cloud_of(request: pytest.FixtureRequest) -> Cloud:
    """The AWS of this implementation."""
    cloud = request.getfixturevalue(f"{request.param}_cloud")
    assert isinstance(cloud, Cloud)
    return cloud


@pytest.fixture(params=IMPLEMENTATIONS)
def task_store(request: pytest.FixtureRequest) -> TaskStore:
    """An empty store of tasks."""
    cloud = cloud_of(request)
    return DynamoTaskStore(cloud.dynamodb, cloud.table(), EXECUTOR, SILENT)


@pytest.fixture(params=[each for each in IMPLEMENTATIONS if each != "moto"])
def batch_store(request: pytest.FixtureRequest) -> TaskStore:
    """An empty store of tasks that supports batches, because moto does not support insertions with parameters."""
    cloud = cloud_of(request)
    return DynamoTaskStore(cloud.dynamodb, cloud.table(), EXECUTOR, SILENT)


@pytest.fixture(params=IMPLEMENTATIONS)
def content_store(request: pytest.FixtureRequest) -> ContentStore:
    """An empty store of contents."""
    cloud = cloud_of(request)
    return SplitContentStore(cloud.dynamodb, cloud.table(), cloud.s3, cloud.bucket())


@pytest.fixture(params=IMPLEMENTATIONS)
def key_store(request: pytest.FixtureRequest) -> KeyStore:
    """An empty store of idempotency keys."""
    cloud = cloud_of(request)
    return DynamoKeyStore(cloud.dynamodb, cloud.table())


@pytest.fixture(params=IMPLEMENTATIONS)
def cursor_store(request: pytest.FixtureRequest) -> CursorStore:
    """An empty store of cursors."""
    cloud = cloud_of(request)
    return DynamoCursorStore(cloud.dynamodb, cloud.table(), SILENT)


@pytest.fixture(params=IMPLEMENTATIONS)
def shard_store(request: pytest.FixtureRequest) -> ShardStore:
    """An empty store of the number of shards."""
    cloud = cloud_of(request)
    return DynamoShardStore(cloud.dynamodb, cloud.table())


@pytest.fixture(params=IMPLEMENTATIONS)
def long_poll_store(request: pytest.FixtureRequest) -> LongPollStore:
    """An empty store of the places in which requests wait."""
    cloud = cloud_of(request)
    return DynamoLongPollStore(cloud.dynamodb, cloud.table())


@pytest.fixture(params=IMPLEMENTATIONS)
def lock_store(request: pytest.FixtureRequest) -> LockStore:
    """An empty store of locks."""
    cloud = cloud_of(request)
    return DynamoLockStore(cloud.dynamodb, cloud.table(), EXECUTOR)


@pytest.fixture(params=IMPLEMENTATIONS)
def topology_store(request: pytest.FixtureRequest) -> TopologyStore:
    """An empty store of topologies."""
    cloud = cloud_of(request)
    return DynamoTopologyStore(cloud.dynamodb, cloud.table())


@pytest.fixture(params=IMPLEMENTATIONS)
def schedule_store(request: pytest.FixtureRequest) -> ScheduleStore:
    """An empty store of schedules."""
    cloud = cloud_of(request)
    return DynamoScheduleStore(cloud.dynamodb, cloud.table(), EXECUTOR)


@pytest.fixture(params=IMPLEMENTATIONS)
def calendar_store(request: pytest.FixtureRequest) -> CalendarStore:
    """An empty store of calendars."""
    cloud = cloud_of(request)
    return DynamoCalendarStore(cloud.dynamodb, cloud.table(), EXECUTOR)


@pytest.fixture(params=IMPLEMENTATIONS)
def switch_store(request: pytest.FixtureRequest) -> SwitchStore:
    """An empty store of switches."""
    cloud = cloud_of(request)
    return DynamoSwitchStore(cloud.dynamodb, cloud.table())


@pytest.fixture(params=IMPLEMENTATIONS)
def intake_rule_store(request: pytest.FixtureRequest) -> IntakeRuleStore:
    """An empty store of intake rules."""
    cloud = cloud_of(request)
    return DynamoIntakeRuleStore(cloud.dynamodb, cloud.table())


@pytest.fixture(params=IMPLEMENTATIONS)
def signal_store(request: pytest.FixtureRequest) -> SignalStore:
    """An empty store of signals."""
    cloud = cloud_of(request)
    return DynamoSignalStore(cloud.dynamodb, cloud.table())


@pytest.fixture(params=IMPLEMENTATIONS)
def quota_store(request: pytest.FixtureRequest) -> QuotaStore:
    """An empty store of quotas."""
    cloud = cloud_of(request)
    return DynamoQuotaStore(cloud.dynamodb, cloud.table())


@pytest.fixture(params=IMPLEMENTATIONS)
def quota_use(request: pytest.FixtureRequest) -> QuotaUseStore:
    """An empty store of what owners use."""
    cloud = cloud_of(request)
    return DynamoQuotaUse(cloud.dynamodb, cloud.table())


@pytest.fixture(params=IMPLEMENTATIONS)
def rate_store(request: pytest.FixtureRequest) -> RateStore:
    """An empty store of rates."""
    cloud = cloud_of(request)
    return DynamoRateStore(cloud.dynamodb, cloud.table(), EXECUTOR)


@pytest.fixture(params=IMPLEMENTATIONS)
def circuit_store(request: pytest.FixtureRequest) -> CircuitStore:
    """An empty store of circuits."""
    cloud = cloud_of(request)
    return DynamoCircuitStore(cloud.dynamodb, cloud.table())


@pytest.fixture(params=IMPLEMENTATIONS)
def receiver(request: pytest.FixtureRequest) -> Receiver:
    """Empty queues, and their receiving end."""
    cloud = cloud_of(request)
    return SqsReceiver(cloud.sqs, cloud.queues(), EXECUTOR)


@pytest.fixture
def metered_table(engine_cloud: Cloud) -> tuple[Cloud, str]:
    """A fresh table of the engine, which meters rightly."""
    return engine_cloud, engine_cloud.table()


@pytest.fixture(params=IMPLEMENTATIONS)
def watch_store(request: pytest.FixtureRequest) -> WatchStore:
    """An empty store of live updates."""
    cloud = cloud_of(request)
    return DynamoWatchStore(cloud.dynamodb, cloud.table())
