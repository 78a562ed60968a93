"""A boto3 session whose clients are the fakes, so that functions need neither requests nor a server."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any, Self

from duetime_testing.fakes.connections import FakeConnections
from duetime_testing.fakes.dynamodb import FakeDynamoDB, FakePaginator
from duetime_testing.fakes.errors import Exceptions
from duetime_testing.fakes.events import FakeEvents
from duetime_testing.fakes.s3 import FakeS3
from duetime_testing.fakes.sqs import FakeSQS
from tests import grants

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Meta:
    """The address to which a client would send its requests."""

    endpoint_url: str


class FakeClient:
    """A client for one service, which makes one call at a time and checks whether the function may make the call."""

    def __init__(self, session: FakeSession, fake: Any, service: str) -> None:  # noqa: ANN401 - any fake
        self.fake = fake
        self._session = session
        self._service = service
        self.exceptions = fake.exceptions
        self.meta = Meta(f"https://{service}.us-east-1.amazonaws.com")

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        return partial(self._call, operation)

    def get_paginator(self, operation: str) -> FakePaginator:
        """Return a paginator, which reads page after page."""
        return FakePaginator(partial(self._call, operation))

    def _call(self, operation: str, **request: Any) -> Any:  # noqa: ANN401 - any response of the service
        grants.check_acting(self._service, operation, request)
        with self._session.lock:
            answer = getattr(self.fake, operation)(**request)
            self._session.heard(operation, request)
            return answer


class FakeSession:
    """Stands in for `boto3.Session`: one account with the services that the functions call most.

    `tests/adapters/test_fakes.py` shows that the fakes respond as the embedded engine does, and the tests of the stores
    make all of their calls through boto3.

    Attributes:
        heard: a function that is called with every call that was not refused.
        lock: held during a call, which makes the call atomic.
    """

    def __init__(self, now: Callable[[], int] = lambda: 0) -> None:
        self.dynamodb, self.sqs, self.s3 = FakeDynamoDB(now), FakeSQS(now), FakeS3()
        self.secrets = FakeSecrets()
        self.connections = FakeConnections()
        self.events = FakeEvents()
        self.logs = FakeLogs()
        self._services: dict[str, Any] = {
            "dynamodb": self.dynamodb,
            "sqs": self.sqs,
            "s3": self.s3,
            "secretsmanager": self.secrets,
            "apigatewaymanagementapi": self.connections,
            "events": self.events,
            "logs": self.logs,
        }
        self.heard: Callable[[str, dict[str, Any]], None] = lambda _operation, _request: None
        self.lock = RLock()

    def client(self, service: str, **_settings: Any) -> Any:  # noqa: ANN401 - stands in for any client
        """Return a client for a service."""
        if service not in self._services:
            return Missing(service)
        return FakeClient(self, self._services[service], service)


class FakeSecrets:
    """A Secrets Manager client whose secrets, by name, were never rotated."""

    def __init__(self) -> None:
        self.exceptions = Exceptions()
        self.values: dict[str, str] = {}

    def get_secret_value(self, *, SecretId: str, VersionStage: str = "AWSCURRENT") -> dict[str, Any]:
        """Read a secret."""
        if SecretId not in self.values or VersionStage != "AWSCURRENT":
            raise self.exceptions.make("ResourceNotFoundException", "GetSecretValue", SecretId)
        return {"SecretString": self.values[SecretId]}


class FakeLogs:
    """A CloudWatch Logs client with a single log group.

    Attributes:
        lines: the messages of each stream.
        error: the code of the error with which every call fails, or empty.
    """

    GROUP = "audit"

    def __init__(self) -> None:
        self.exceptions = Exceptions()
        self.lines: dict[str, list[str]] = {}
        self.error = ""

    def create_log_stream(self, *, logGroupName: str, logStreamName: str) -> dict[str, Any]:
        """Create a stream."""
        self._check(logGroupName, "CreateLogStream")
        if logStreamName in self.lines:
            raise self.exceptions.make("ResourceAlreadyExistsException", "CreateLogStream", logStreamName)
        self.lines[logStreamName] = []
        return {}

    def put_log_events(self, *, logGroupName: str, logStreamName: str, logEvents: list[Any]) -> dict[str, Any]:
        """Add lines to a stream."""
        self._check(logGroupName, "PutLogEvents")
        if logStreamName not in self.lines:
            raise self.exceptions.make("ResourceNotFoundException", "PutLogEvents", logStreamName)
        self.lines[logStreamName] += [event["message"] for event in logEvents]
        return {}

    def _check(self, group: str, operation: str) -> None:
        if self.error or group != self.GROUP:
            raise self.exceptions.make(self.error or "ResourceNotFoundException", operation, group)


class Missing:
    """A client for a service without a fake, which must not be called."""

    def __init__(self, service: str) -> None:
        self._service = service
        self.exceptions = Exceptions()

    def __getattr__(self, operation: str) -> Self:
        raise NotImplementedError(f"{self._service}: {operation}")
