"""Fixtures for each port's implementations, which run on the fakes, on moto and on the embedded engine."""

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
    """Return clients whose requests moto serves while it is active."""
    session = boto3.Session(aws_access_key_id="none", aws_secret_access_key="none", region_name="us-east-1")  # noqa: S106 - none
    return Cloud(session.client("dynamodb"), session.client("s3"), session.client("sqs"))


@pytest.fixture
def moto_cloud(moto_clients: Cloud) -> Iterator[Cloud]:
    """Return an empty moto AWS for one test."""
    with mock_aws():
        yield moto_clients


@pytest.fixture(scope="session")
def engine_cloud(engine: Emulator) -> Cloud:
    """Return the embedded engine, shared by all tests, with the deployed functions' settings but longer timeouts.

    On a busy machine a response can take seconds, and retrying a table's creation would fail because the table exists.
    """
    session = boto3.Session(aws_access_key_id="none", aws_secret_access_key="none", region_name="us-east-1")  # noqa: S106 - none
    where: dict[str, Any] = {
        "endpoint_url": engine.endpoint_url,
        "config": aws_clients.CONFIG.merge(Config(read_timeout=300)),
    }
    return Cloud(session.client("dynamodb", **where), session.client("s3", **where), session.client("sqs", **where))


@pytest.fixture
def fake_cloud(monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """Return an empty fake AWS for one test; its responses contain no time, as in the other implementations."""
    monkeypatch.setattr(FakeDynamoDB, "_metadata", lambda _self: {"HTTPStatusCode": 200})
    began = time.monotonic_ns()
    session = FakeSession(lambda: NOW + (time.monotonic_ns() - began) // 1_000_000)
    return Cloud(session.client("dynamodb"), session.client("s3"), session.client("sqs"))


def cloud_of(request: pytest.FixtureRequest) -> Cloud:
    """Return the AWS implementation with this name."""
    cloud = request.getfixturevalue(f"{request.param}_cloud")
    assert isinstance(cloud, Cloud)
    return cloud


@pytest.fixture(params=IMPLEMENTATIONS)
def task_store(request: pytest.FixtureRequest) -> TaskStore:
    """Return an empty task store."""
    cloud = cloud_of(request)
    return DynamoTaskStore(cloud.dynamodb, cloud.table(), EXECUTOR, SILENT)


@pytest.fixture(params=[each for each in IMPLEMENTATIONS if each != "moto"])
def batch_store(request: pytest.FixtureRequest) -> TaskStore:
    """Return an empty task store that supports batches; moto does not support inserts with parameters."""
    cloud = cloud_of(request)
    return DynamoTaskStore(cloud.dynamodb, cloud.table(), EXECUTOR, SILENT)


@pytest.fixture(params=IMPLEMENTATIONS)
def content_store(request: pytest.FixtureRequest) -> ContentStore:
    """Return an empty content store."""
    cloud = cloud_of(request)
    return SplitContentStore(cloud.dynamodb, cloud.table(), cloud.s3, cloud.bucket())


@pytest.fixture(params=IMPLEMENTATIONS)
def key_store(request: pytest.FixtureRequest) -> KeyStore:
    """Return an empty store of idempotency keys."""
    cloud = cloud_of(request)
    return DynamoKeyStore(cloud.dynamodb, cloud.table())


@pytest.fixture(params=IMPLEMENTATIONS)
def cursor_store(request: pytest.FixtureRequest) -> CursorStore:
    """Return an empty cursor store."""
    cloud = cloud_of(request)
    return DynamoCursorStore(cloud.dynamodb, cloud.table(), SILENT)


@pytest.fixture(params=IMPLEMENTATIONS)
def shard_store(request: pytest.FixtureRequest) -> ShardStore:
    """Return an empty store of the number of shards."""
    cloud = cloud_of(request)
    return DynamoShardStore(cloud.dynamodb, cloud.table())


@pytest.fixture(params=IMPLEMENTATIONS)
def long_poll_store(request: pytest.FixtureRequest) -> LongPollStore:
    """Return an empty store of the slots in which long-poll requests wait."""
    cloud = cloud_of(request)
    return DynamoLongPollStore(cloud.dynamodb, cloud.table())


@pytest.fixture(params=IMPLEMENTATIONS)
def lock_store(request: pytest.FixtureRequest) -> LockStore:
    """Return an empty lock store."""
    cloud = cloud_of(request)
    return DynamoLockStore(cloud.dynamodb, cloud.table(), EXECUTOR)


@pytest.fixture(params=IMPLEMENTATIONS)
def topology_store(request: pytest.FixtureRequest) -> TopologyStore:
    """Return an empty topology store."""
    cloud = cloud_of(request)
    return DynamoTopologyStore(cloud.dynamodb, cloud.table())


@pytest.fixture(params=IMPLEMENTATIONS)
def schedule_store(request: pytest.FixtureRequest) -> ScheduleStore:
    """Return an empty schedule store."""
    cloud = cloud_of(request)
    return DynamoScheduleStore(cloud.dynamodb, cloud.table(), EXECUTOR)


@pytest.fixture(params=IMPLEMENTATIONS)
def calendar_store(request: pytest.FixtureRequest) -> CalendarStore:
    """Return an empty calendar store."""
    cloud = cloud_of(request)
    return DynamoCalendarStore(cloud.dynamodb, cloud.table(), EXECUTOR)


@pytest.fixture(params=IMPLEMENTATIONS)
def switch_store(request: pytest.FixtureRequest) -> SwitchStore:
    """Return an empty switch store."""
    cloud = cloud_of(request)
    return DynamoSwitchStore(cloud.dynamodb, cloud.table())


@pytest.fixture(params=IMPLEMENTATIONS)
def intake_rule_store(request: pytest.FixtureRequest) -> IntakeRuleStore:
    """Return an empty store of intake rules."""
    cloud = cloud_of(request)
    return DynamoIntakeRuleStore(cloud.dynamodb, cloud.table())


@pytest.fixture(params=IMPLEMENTATIONS)
def signal_store(request: pytest.FixtureRequest) -> SignalStore:
    """Return an empty signal store."""
    cloud = cloud_of(request)
    return DynamoSignalStore(cloud.dynamodb, cloud.table())


@pytest.fixture(params=IMPLEMENTATIONS)
def quota_store(request: pytest.FixtureRequest) -> QuotaStore:
    """Return an empty quota store."""
    cloud = cloud_of(request)
    return DynamoQuotaStore(cloud.dynamodb, cloud.table())


@pytest.fixture(params=IMPLEMENTATIONS)
def quota_use(request: pytest.FixtureRequest) -> QuotaUseStore:
    """Return an empty store of the owners' quota use."""
    cloud = cloud_of(request)
    return DynamoQuotaUse(cloud.dynamodb, cloud.table())


@pytest.fixture(params=IMPLEMENTATIONS)
def rate_store(request: pytest.FixtureRequest) -> RateStore:
    """Return an empty rate store."""
    cloud = cloud_of(request)
    return DynamoRateStore(cloud.dynamodb, cloud.table(), EXECUTOR)


@pytest.fixture(params=IMPLEMENTATIONS)
def circuit_store(request: pytest.FixtureRequest) -> CircuitStore:
    """Return an empty circuit store."""
    cloud = cloud_of(request)
    return DynamoCircuitStore(cloud.dynamodb, cloud.table())


@pytest.fixture(params=IMPLEMENTATIONS)
def receiver(request: pytest.FixtureRequest) -> Receiver:
    """Return empty queues and their receiving end."""
    cloud = cloud_of(request)
    return SqsReceiver(cloud.sqs, cloud.queues(), EXECUTOR)


@pytest.fixture
def metered_table(engine_cloud: Cloud) -> tuple[Cloud, str]:
    """Create a table in the embedded engine, which meters capacity correctly."""
    return engine_cloud, engine_cloud.table()


@pytest.fixture(params=IMPLEMENTATIONS)
def watch_store(request: pytest.FixtureRequest) -> WatchStore:
    """Return an empty store of live updates."""
    cloud = cloud_of(request)
    return DynamoWatchStore(cloud.dynamodb, cloud.table())
