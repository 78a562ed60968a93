"""Creates AWS clients, and defines which AWS errors mean that a call can be retried later."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar, cast

import botocore.session
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionError, HTTPClientError, IncompleteReadError  # noqa: A004 - botocore's name
from botocore.httpsession import create_urllib3_context, get_cert_path

from duetime.domain.errors import Unavailable
from duetime.domain.limits import MAX_TIMEOUT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from ssl import SSLContext

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
    # botocore would build the default user agent twice per request, which takes a tenth of a request's CPU time.
    user_agent=f"duetime Botocore/{botocore.__version__}",
)
"""Default settings. Requests normally take milliseconds, so a request that has no response after some seconds is
repeated, which is safe."""

OWN_CONFIG = CONFIG.merge(Config(parameter_validation=False))
"""Settings for duetime's own table and queues. botocore does not validate parameters, because the services validate
them."""

CALLING_CONFIG = CONFIG.merge(
    Config(read_timeout=MAX_TIMEOUT_SECONDS + 30, retries={"mode": "standard", "total_max_attempts": 1})
)
"""Settings for calls to functions whose result is awaited. Calls can last as long as the longest target timeout, and
are not repeated."""

ONCE_CONFIG = CONFIG.merge(Config(retries={"mode": "standard", "total_max_attempts": 1}))
"""Settings for tasks' targets. A call is made only once, so that a rejection proves that the call had no effect."""

PUSH_CONFIG = CONFIG.merge(Config(read_timeout=2, retries={"mode": "standard", "total_max_attempts": 1}))
"""Settings for calls that send messages to WebSocket connections. The calls must be short, and clients that miss a
message read the changes later."""

_S3_CONFIG = CONFIG.merge(
    Config(signature_version="s3v4", s3={"addressing_style": "path", "us_east_1_regional_endpoint": "regional"})
)
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
        # KMS throttles the key that encrypts a queue or topic.
        "KMSThrottling",
        "KmsThrottled",
        # EC2 throttles Lambda's own calls before an invocation.
        "EC2ThrottledException",
        # Step Functions returns this code if too many executions are running.
        "ExecutionLimitExceeded",
    }
)
"""Error codes for requests that a service has not carried out, but may carry out if they are repeated later (Source:
the API references)."""
_NOT_INVOKED = frozenset(
    {"ResourceConflictException", "ResourceNotReadyException", "ResourceNotFoundException", "AccessDeniedException"}
)
"""Error codes with which Lambda refuses to invoke a function, regardless of the event (Source: Lambda API Reference,
Invoke)."""
_TRANSIENT = _THROTTLED | {
    "ProvisionedThroughputExceededException",
    "SlowDown",
    "TransactionConflictException",
    "TransactionInProgressException",
    "ReplicatedWriteConflictException",
    "InternalServerError",
    "InternalError",
    "ServiceUnavailable",
    "RequestTimeout",
}
"""Error codes of temporary errors, regardless of the HTTP status."""
_THROTTLED_WRITES = frozenset({"ThrottlingError", "ProvisionedThroughputExceeded"})
"""Reasons for which DynamoDB cancels a transaction and may carry it out later (Source: DynamoDB API Reference,
TransactWriteItems)."""


class _BotocoreSession:
    """Creates the same clients as a boto3 session, but uses botocore directly.

    Importing boto3 takes a tenth of the start time, because it also loads S3 transfers and resources, which duetime
    never uses. The clients' connections share a TLS context.
    """

    def __init__(self) -> None:
        # The module is imported here, because botocore also loads its own parsers only with the first client.
        from duetime.adapters.dynamodb.response_parser import AttributeParserFactory  # noqa: PLC0415 - see above

        self._session = botocore.session.get_session()
        self._session.register_component("response_parser_factory", AttributeParserFactory())

    def client(
        self, service: str, *, config: Config, region_name: str | None = None, endpoint_url: str | None = None
    ) -> BaseClient:
        client = self._session.create_client(service, region_name, endpoint_url=endpoint_url, config=config)
        return _reads_certificates_once(client)


def _reads_certificates_once(client: BaseClient) -> BaseClient:
    """Let the client's connections share a TLS context that has already read the trusted certificates.

    By default, botocore reads the certificates for each connection, which takes 14 ms with a full vCPU, and 50 ms with
    512 MB of memory.
    """
    http = cast("Any", client)._endpoint.http_session  # noqa: SLF001 - botocore has no option for it
    if http._verify:  # noqa: SLF001 - same
        http._manager.connection_pool_kw["ssl_context"] = _tls_context(get_cert_path(http._verify))  # noqa: SLF001 - same
    return client


@cache
def _tls_context(certificates: str) -> SSLContext:
    context: SSLContext = create_urllib3_context()
    context.load_verify_locations(certificates)
    # urllib3 would load the same certificates again for each connection.
    context.load_verify_locations = lambda *_: None  # type: ignore[method-assign]
    return context


def _shareable(client: C) -> C:
    """Create a client's error classes together with the client.

    By default, botocore creates these classes at first use without a lock. If two threads use the classes at the same
    time, each thread receives different classes, and does not catch errors from the other thread's classes.
    """
    getattr(client, "exceptions", None)
    return client


class DeferredClient:
    """A client that is created when one of its methods is first used. Threads may share this object."""

    def __init__(self, make: Callable[[], object]) -> None:
        self._make = make
        self._lock = Lock()
        self._client: object = None

    def __getattr__(self, name: str) -> object:
        with self._lock:
            self._client = self._client or self._make()
        return getattr(self._client, name)


class Clients:
    """Creates the clients for all services that duetime calls.

    A client is created at first use and shared by threads, because another client would take 10 ms and open new
    connections.

    Args:
        session: creates the clients; a botocore session by default.
    """

    def __init__(self, session: boto3.Session | None = None) -> None:
        self._session = session or cast("boto3.Session", _BotocoreSession())
        self._made: dict[tuple[object, ...], Any] = {}
        # A session must not create two clients at the same time.
        self._lock = Lock()

    def dynamodb(self) -> DynamoDBClient:
        """A client for DynamoDB."""
        client: DynamoDBClient = self._client("dynamodb", OWN_CONFIG)
        return client

    def sqs(self, region: str | None = None) -> SQSClient:
        """A client for SQS, in this Region by default."""
        client: SQSClient = self._client("sqs", OWN_CONFIG if region is None else ONCE_CONFIG, region)
        return client

    def s3(self) -> S3Client:
        """A client for S3. The client's signed URLs contain the Region, and also work with a loopback endpoint."""
        client: S3Client = self._client("s3", _S3_CONFIG)
        return client

    def lambdas(self) -> LambdaClient:
        """A client for Lambda."""
        client: LambdaClient = self._client("lambda", CONFIG)
        return client

    def calling_lambdas(self, region: str | None = None) -> LambdaClient:
        """A client for Lambda, in this Region by default, that waits until the called function returns."""
        client: LambdaClient = self._client("lambda", CALLING_CONFIG, region)
        return client

    def sns(self, region: str | None = None) -> SNSClient:
        """A client for SNS, in this Region by default."""
        client: SNSClient = self._client("sns", _config(region), region)
        return client

    def events(self, region: str | None = None) -> EventBridgeClient:
        """A client for EventBridge, in this Region by default."""
        client: EventBridgeClient = self._client("events", _config(region), region)
        return client

    def step_functions(self, region: str | None = None) -> SFNClient:
        """A client for Step Functions, in this Region by default."""
        client: SFNClient = self._client("stepfunctions", _config(region), region)
        return client

    def jobs(self, service: str, region: str) -> Any:  # noqa: ANN401 - the types of each service are in another package
        """A client for a service that runs jobs, given the service's name in boto3."""
        return self._client(service, ONCE_CONFIG, region)

    def connections(self, endpoint: str) -> ConnectionsClient:
        """A client that sends messages to a WebSocket API's connections."""
        client: ConnectionsClient = self._client("apigatewaymanagementapi", PUSH_CONFIG, endpoint=endpoint)
        return client

    def logs(self) -> Any:  # noqa: ANN401 - its types are in another package
        """A client for CloudWatch Logs."""
        return self._client("logs", CONFIG)

    def secrets(self) -> SecretsManagerClient:
        """A client for Secrets Manager."""
        client: SecretsManagerClient = self._client("secretsmanager", CONFIG)
        return client

    def _client(self, service: str, config: Config, region: str | None = None, endpoint: str | None = None) -> Any:  # noqa: ANN401 - the callers know the type
        key, session = (service, id(config), region, endpoint), cast("Any", self._session)
        with self._lock:
            if key not in self._made:
                made = session.client(service, config=config, region_name=region, endpoint_url=endpoint)
                self._made[key] = _shareable(made)
            return self._made[key]


def _config(region: str | None) -> Config:
    """The settings for a Region. Only tasks' targets have an explicit Region, and each target is called only once."""
    return CONFIG if region is None else ONCE_CONFIG


@contextmanager
def translated() -> Iterator[None]:
    """Raise `Unavailable` instead of a temporary error. Other errors are raised unchanged."""
    try:
        yield
    except ClientError as error:
        if is_transient(error):
            raise Unavailable(str(error)) from error
        raise
    except (ConnectionError, HTTPClientError, IncompleteReadError) as error:
        raise Unavailable(str(error)) from error


def is_throttled(error: ClientError) -> bool:
    """Whether a service rejected a call only temporarily, so that the call had no effect."""
    return error.response.get("Error", {}).get("Code", "") in _THROTTLED


def is_refused_invocation(error: ClientError) -> bool:
    """Whether Lambda refused to invoke a duetime function that is throttled, being changed, or missing."""
    return is_throttled(error) or error.response.get("Error", {}).get("Code", "") in _NOT_INVOKED


def is_transient(error: ClientError) -> bool:
    """Whether a service's error may be temporary."""
    response: Any = error.response  # the published types do not have the reasons
    code = response.get("Error", {}).get("Code", "")
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    reasons = {reason.get("Code") for reason in response.get("CancellationReasons", ())}
    return code in _TRANSIENT or status >= _SERVER_ERROR or bool(reasons & _THROTTLED_WRITES)
