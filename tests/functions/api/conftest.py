"""The api function over moto: its table, queues and bucket, fresh for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import boto3
import pytest
from moto import mock_aws

from duetime import composition
from duetime.adapters.dynamodb import schema
from duetime.composition import Outside
from duetime.settings import QUEUE_VARIABLES, Variable
from tests.functions.api.gateway import Gateway
from tests.functions.api.world import NOW, StandingClock

if TYPE_CHECKING:
    from collections.abc import Iterator

REGION = "us-east-1"
TABLE = "tasks"
BUCKET = "duetime-contents"


@pytest.fixture
def clock() -> StandingClock:
    """The time: it stands until a test moves it."""
    return StandingClock(NOW)


@pytest.fixture
def environ(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The function's environment, in an account of its own; a test may change it before its first request."""
    for name, value in (
        ("AWS_DEFAULT_REGION", REGION),
        ("AWS_ACCESS_KEY_ID", "testing"),
        ("AWS_SECRET_ACCESS_KEY", "testing"),
    ):
        monkeypatch.setenv(name, value)
    with mock_aws():
        _create_table()
        boto3.client("s3", region_name=REGION).create_bucket(Bucket=BUCKET)
        sqs = boto3.client("sqs", region_name=REGION)
        yield {
            Variable.TABLE: TABLE,
            Variable.BUCKET: BUCKET,
            Variable.AUTHENTICATION: "none",
            **{
                variable: sqs.create_queue(QueueName=priority)["QueueUrl"]
                for priority, variable in QUEUE_VARIABLES.items()
            },
        }


@pytest.fixture
def api(environ: dict[str, str], clock: StandingClock) -> Iterator[Gateway]:
    """The function, composed over the real stores, called by nobody in particular."""
    composition.use(Outside(environ=environ, clock=clock))
    yield Gateway()
    composition.use(None)


def _create_table() -> None:
    keys = {schema.PARTITION_KEY, schema.SORT_KEY, *(index.partition_key for index in schema.INDEXES)}
    boto3.client("dynamodb", region_name=REGION).create_table(
        TableName=TABLE,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in sorted(keys)],
        KeySchema=[
            {"AttributeName": schema.PARTITION_KEY, "KeyType": "HASH"},
            {"AttributeName": schema.SORT_KEY, "KeyType": "RANGE"},
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": index.name,
                "KeySchema": [
                    {"AttributeName": index.partition_key, "KeyType": "HASH"},
                    {"AttributeName": schema.SORT_KEY, "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
            for index in schema.INDEXES
        ],
    )
