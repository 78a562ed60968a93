"""How AWS is called: the clients' settings, and which of their errors mean "try again later"."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar, cast

import botocore.session
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionError, HTTPClientError, IncompleteReadError  # noqa: A004 - its name

from duetime.domain.errors import Unavailable
from duetime.domain.limits import MAX_TIMEOUT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import boto3
    from botocore.client import BaseClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_secretsmanager import SecretsManagerClient
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_stepfunctions import SFNClient

    from duetime.adapters.websocket import ConnectionsClient

C = TypeVar("C")

CONFIG = Config(
    connect_timeout=1,
    read_timeout=5,
    retries={"mode": "standard", "total_max_attempts": 3},
    max_pool_connections=32,
    tcp_keepalive=True,
    # The default is put together from 16 parts twice for each request, which takes a tenth of its processor time.
    user_agent=f"duetime Botocore/{botocore.__version__}",
)
"""A request of ours takes milliseconds: what has not answered in seconds is sent again, which is safe."""

OWN_CONFIG = CONFIG.merge(Config(parameter_validation=False))
"""For duetime's own table and queues: its code is type-checked, and the services validate all that they are sent."""

CALLING_CONFIG = CONFIG.merge(
    Config(read_timeout=MAX_TIMEOUT_SECONDS + 30, retries={"mode": "standard", "total_max_attempts": 1})
)
"""For a function that is waited for: as long as a target may take, and called once, for it acts outside."""

ONCE_CONFIG = CONFIG.merge(Config(retries={"mode": "standard", "total_max_attempts": 1}))
"""For what tasks call: only of a call that was made once does its rejection prove that nothing was done."""

PUSH_CONFIG = CONFIG.merge(Config(read_timeout=2, retries={"mode": "standard", "total_max_attempts": 1}))
"""For what nobody may wait long for: a connection that does not take a message reads again what it has missed."""

_SERVER_ERROR = 500
_THROTTLED = frozenset(
    {
        "ThrottlingException",
        "Throttling",
        "Throttled",
        "ThrottledException",
        "RequestThrottled",
        "RequestThrottledException",
        "RequestLimitExceeded",
        "TooManyRequestsException",
        # The key that a queue or topic is encrypted with.
        "KMSThrottling",
        "KmsThrottled",
        # Lambda, of its own calls before an invocation.
        "EC2ThrottledException",
        # Step Functions: too many executions run.
        "ExecutionLimitExceeded",
    }
)
"""Codes of rejections by which a service has done nothing, and may do it later (Source: their API references)."""
_NOT_INVOKED = frozenset(
    {"ResourceConflictException", "ResourceNotReadyException", "ResourceNotFoundException", "AccessDeniedException"}
)
"""Codes by which Lambda refuses to invoke a function whatever it is sent (Source: Lambda API Reference, Invoke)."""
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


class _BotocoreSession:
    """Makes the clients that a session of boto3 would, which asks botocore for them.

    Importing boto3 loads its transfers of S3 and its resources, too, which duetime never uses: a tenth of a start.
    """

    def __init__(self) -> None:
        # botocore loads its own parsers with the first client, not earlier.
        from duetime.adapters.dynamodb.response_parser import AttributeParserFactory  # noqa: PLC0415 - see above

        self._session = botocore.session.get_session()
        self._session.register_component("response_parser_factory", AttributeParserFactory())

    def client(
        self, service: str, *, config: Config, region_name: str | None = None, endpoint_url: str | None = None
    ) -> BaseClient:
        return self._session.create_client(service, region_name, endpoint_url=endpoint_url, config=config)


def _shareable(client: C) -> C:
    """Make the classes of a client's errors with it.

    botocore makes them when they are first asked for, without a lock: of two threads that ask at once, each gets
    classes of its own, and does not catch what is raised as one of the other's.
    """
    getattr(client, "exceptions", None)
    return client


class DeferredClient:
    """A client that is made when one of its methods is first asked for; threads may share it."""

    def __init__(self, make: Callable[[], object]) -> None:
        self._make = make
        self._lock = Lock()
        self._client: object = None

    def __getattr__(self, name: str) -> object:
        with self._lock:
            self._client = self._client or self._make()
        return getattr(self._client, name)


class Clients:
    """Clients of the services that duetime calls, all with the same settings.

    Args:
        session: makes the clients; by default, one of botocore.
    """

    def __init__(self, session: boto3.Session | None = None) -> None:
        self._session = session or cast("boto3.Session", _BotocoreSession())

    def dynamodb(self) -> DynamoDBClient:
        """A client of DynamoDB."""
        return _shareable(self._session.client("dynamodb", config=OWN_CONFIG))

    def sqs(self, region: str | None = None) -> SQSClient:
        """A client of SQS, in this region unless another is named."""
        config = OWN_CONFIG if region is None else ONCE_CONFIG
        return _shareable(self._session.client("sqs", config=config, region_name=region))

    def s3(self) -> S3Client:
        """A client of S3."""
        return _shareable(self._session.client("s3", config=CONFIG))

    def lambdas(self) -> LambdaClient:
        """A client of Lambda."""
        return _shareable(self._session.client("lambda", config=CONFIG))

    def calling_lambdas(self, region: str | None = None) -> LambdaClient:
        """A client of Lambda that waits for the functions it calls, in this region unless another is named."""
        return _shareable(self._session.client("lambda", config=CALLING_CONFIG, region_name=region))

    def sns(self, region: str | None = None) -> SNSClient:
        """A client of SNS, in this region unless another is named."""
        return _shareable(self._session.client("sns", config=_config(region), region_name=region))

    def events(self, region: str | None = None) -> EventBridgeClient:
        """A client of EventBridge, in this region unless another is named."""
        return _shareable(self._session.client("events", config=_config(region), region_name=region))

    def step_functions(self, region: str | None = None) -> SFNClient:
        """A client of Step Functions, in this region unless another is named."""
        return _shareable(self._session.client("stepfunctions", config=_config(region), region_name=region))

    def jobs(self, service: str, region: str) -> Any:  # noqa: ANN401 - the types of each would be a package more
        """A client of a service that runs jobs, by boto3's name of it."""
        client: Any = self._session.client(service, config=ONCE_CONFIG, region_name=region)  # type: ignore[call-overload]
        return _shareable(client)

    def connections(self, endpoint: str) -> ConnectionsClient:
        """A client that writes to the connections of a WebSocket API."""
        client: ConnectionsClient = self._session.client(
            "apigatewaymanagementapi", config=PUSH_CONFIG, endpoint_url=endpoint
        )
        return _shareable(client)

    def secrets(self) -> SecretsManagerClient:
        """A client of Secrets Manager."""
        return _shareable(self._session.client("secretsmanager", config=CONFIG))


def _config(region: str | None) -> Config:
    """Only what tasks call is in a region that is named."""
    return CONFIG if region is None else ONCE_CONFIG


@contextmanager
def translated() -> Iterator[None]:
    """Raise `Unavailable` in place of an error that a later repetition may not meet; others stay as they are."""
    try:
        yield
    except ClientError as error:
        if is_transient(error):
            raise Unavailable(str(error)) from error
        raise
    except (ConnectionError, HTTPClientError, IncompleteReadError) as error:
        raise Unavailable(str(error)) from error


def is_throttled(error: ClientError) -> bool:
    """Whether a service has rejected a call for now, without doing anything of it."""
    return error.response.get("Error", {}).get("Code", "") in _THROTTLED


def is_refused_invocation(error: ClientError) -> bool:
    """Whether Lambda has refused to invoke a function of ours: it is throttled, being changed, or not there."""
    return is_throttled(error) or error.response.get("Error", {}).get("Code", "") in _NOT_INVOKED


def is_transient(error: ClientError) -> bool:
    """Whether a later repetition may not meet an error of a service."""
    code = error.response.get("Error", {}).get("Code", "")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return code in _TRANSIENT or status >= _SERVER_ERROR
