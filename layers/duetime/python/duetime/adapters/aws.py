"""How AWS is called: the clients' settings, and which of their errors mean "try again later"."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionError, HTTPClientError, IncompleteReadError  # noqa: A004 - its name

from duetime.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

CONFIG = Config(
    connect_timeout=1,
    read_timeout=5,
    retries={"mode": "standard", "total_max_attempts": 3},
    max_pool_connections=32,
    tcp_keepalive=True,
)
"""A request of ours takes milliseconds: what has not answered in seconds is sent again, which is safe."""

_SERVER_ERROR = 500
_TRANSIENT = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "ThrottlingException",
        "Throttling",
        "ThrottledException",
        "RequestThrottled",
        "RequestThrottledException",
        "RequestLimitExceeded",
        "TooManyRequestsException",
        "SlowDown",
        "TransactionConflictException",
        "TransactionInProgressException",
        "ReplicatedWriteConflictException",
        "InternalServerError",
        "InternalError",
        "ServiceUnavailable",
        "RequestTimeout",
    }
)
"""Codes of errors that a later repetition may not meet, whatever their HTTP status."""


class Clients:
    """Clients of the services that duetime calls, all with the same settings."""

    def __init__(self, session: boto3.Session | None = None) -> None:
        self._session = session or boto3.Session()

    def dynamodb(self) -> DynamoDBClient:
        """A client of DynamoDB."""
        return self._session.client("dynamodb", config=CONFIG)

    def sqs(self) -> SQSClient:
        """A client of SQS."""
        return self._session.client("sqs", config=CONFIG)

    def s3(self) -> S3Client:
        """A client of S3."""
        return self._session.client("s3", config=CONFIG)

    def lambdas(self) -> LambdaClient:
        """A client of Lambda."""
        return self._session.client("lambda", config=CONFIG)


@contextmanager
def translated() -> Iterator[None]:
    """Raise `Unavailable` in place of an error that a later repetition may not meet; others stay as they are."""
    try:
        yield
    except ClientError as error:
        if _is_transient(error):
            raise Unavailable(str(error)) from error
        raise
    except (ConnectionError, HTTPClientError, IncompleteReadError) as error:
        raise Unavailable(str(error)) from error


def _is_transient(error: ClientError) -> bool:
    code = error.response.get("Error", {}).get("Code", "")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return code in _TRANSIENT or status >= _SERVER_ERROR
